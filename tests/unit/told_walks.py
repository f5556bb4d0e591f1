"""Objects of both kinds as the API server has them, written pass after pass over clusters and groups on paper."""

import json
from collections.abc import Callable
from copy import deepcopy
from functools import cache
from typing import Any

from switchover.api.kafka_migration import KafkaMigration
from switchover.api.status import Direction
from switchover.cli.objects import KINDS, Found
from switchover.cluster.kind import observed_modes
from switchover.cluster.status import next_status
from switchover.engine.pace import Spent
from unit.group_walk import PLANS, new
from unit.kraft_walk import Walk
from unit.pictures import migration
from unit.small_plan import BACKWARD, FORWARD

SPENT = Spent(812.0, 1490.0, 5400.0, 0.0)
GIVEN = {"approver": "alice@example.org", "reason": "CHG-1182"}
QUICK = {"rollout": {"steps": [{"pods": 1, "bakeSeconds": 5}]}}


class _Cluster:
    """A walk along the plan of a KafkaMigration, with the status that each pass of it writes."""

    def __init__(self) -> None:
        self.walk, self.own = Walk(), migration(**QUICK)
        self.walk.spec = self.own.spec

    def go(self, reached: Callable[[], bool] = lambda: False, *, approved: bool = True,
           direction: Direction = FORWARD) -> None:
        for _ in range(900):
            at = self.walk.position
            if reached() or (at.finished and at.direction is direction):
                return
            picture = self.walk.picture()
            decision = self.walk.step(approved, picture, direction)
            self.own = self.own.evolve(status=next_status(
                self.own, picture, decision, SPENT, None, observed_modes(picture)))
        raise AssertionError(f"never came there: {self.walk.position}")

    def waits(self) -> bool:
        return any(each.reason == "AwaitingApproval" for each in self.own.status.waiting_for)

    def approve(self, *steps: str) -> None:
        hashed = self.own.status.plan_hash
        wanted = migration(**QUICK, approvals=[{"name": each, "planHash": hashed, **GIVEN} for each in steps])
        self.own = self.own.evolve(spec=wanted.spec)

    def found(self) -> Found:
        return _found(self.own)


def _found(own: Any) -> Found:
    resource = json.loads(json.dumps(own.manifest()))
    resource["metadata"] |= {"namespace": "kafka", "creationTimestamp": "2026-11-18T11:00:00Z"}
    (kind,) = (each for each in KINDS if each.name == resource["kind"])
    return Found(kind, resource)


def _clusters() -> dict[str, Found]:
    ahead = _Cluster()
    ahead.go(ahead.waits, approved=False)
    held = ahead.found()
    ahead.approve("Finalize", "HandOver")
    ahead.go()
    back = _Cluster()
    back.go(lambda: back.walk.position.step == "EnableMigration" and back.walk.position.batch is not None)
    back.go(direction=BACKWARD)
    assert isinstance(back.own, KafkaMigration)
    return {"cluster held": held, "cluster done": ahead.found(), "cluster rolled back": back.found()}


def _groups() -> dict[str, Found]:
    ahead = PLANS["Deployment"]()
    ahead.wants(holds=["Rollout"])
    ahead.until(lambda: ahead.migration.status.phase == "AwaitingApproval")
    held = _found(ahead.migration)
    ahead.wants(approvals=[{"name": "Rollout", "planHash": ahead.migration.status.plan_hash, **GIVEN}])
    ahead.until()
    back = PLANS["StatefulSet"]()
    back.until(lambda: back.position.step == "Rollout")
    back.wants(desiredState="RolledBack")
    back.until()
    by_itself = PLANS["Deployment"]()
    by_itself.wants(onFailure="RollBack")
    by_itself.world.silent.add(new("Deployment"))
    while not by_itself.position.finished:
        by_itself.step()
    return {"group held": held, "group done": _found(ahead.migration), "group rolled back": _found(back.migration),
            "group rolled back by itself": _found(by_itself.migration)}


@cache
def _all() -> dict[str, Found]:
    return _clusters() | _groups()


NAMES = ("cluster held", "cluster done", "cluster rolled back", "group held", "group done", "group rolled back",
         "group rolled back by itself")


def told_walk(name: str) -> Found:
    """The object of that name in NAMES, to be changed at will."""
    found = _all()[name]
    return Found(found.kind, deepcopy(dict(found.resource)))
