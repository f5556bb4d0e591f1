"""Objects of both kinds as tools find them: in every phase, before the operator has looked, and where no pass decides."""

from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from typing import Any

from switchover.api.status import UNSEEN
from switchover.engine.record import stopped_status
from switchover.reasons.walk import DEFECT, INVALID_SPEC
from unit.group_walk import PLANS, Walk, new
from unit.pictures import NOW, migration
from unit.small_plan import BACKWARD
from unit.test_kraft_status import PICTURES, everything, folded, on_record, taken_back

Object = dict[str, Any]
POLICIES = ("OnCompletion", "OnAcceptance")


@cache
def all_objects() -> list[Object]:
    """One of each sort: which kind, what is wanted, where it is, and the conditions."""
    every = [each for policy in POLICIES for each in (*_clusters(policy), *_groups(policy))]
    every += [unseen for each in (every[0], every[-1]) for unseen in _undecided(each)]
    return list({_sort(each): each for each in every}.values())


def _sort(of: Object) -> tuple[Any, ...]:
    spec, status = of["spec"], of["status"]
    progress = status.get("progress") or {}
    return (of["kind"], spec["readinessPolicy"], spec["desiredState"], status["observedGeneration"], status["phase"],
            progress.get("step"), progress.get("direction"), (status.get("rollback") or {}).get("failure"),
            *((each["type"], each["status"]) for each in status.get("conditions", ())))


def _clusters(policy: str) -> Iterator[Object]:
    own = migration(readinessPolicy=policy)
    for _, wanted, status in everything(policy):
        yield on_record(wanted, status).manifest()
    for desired in ("RolledBack", "Paused", "Planned"):
        wanted = migration(desiredState=desired, readinessPolicy=policy)
        yield on_record(wanted, folded(taken_back(), wanted, direction=BACKWARD)).manifest()
    going = PICTURES["MoveBrokers"]()
    by_itself = going.at(replace(going.position.turn(BACKWARD, NOW), failure="GroupLag"))
    for picture in (by_itself, taken_back("GroupLag")):
        yield on_record(own, folded(picture, own, direction=BACKWARD)).manifest()


def _groups(policy: str) -> Iterator[Object]:
    def walk(**spec: Any) -> Walk:
        walk = PLANS["Deployment"]()
        walk.wants(readinessPolicy=policy, **spec)
        return walk

    def passes(walk: Walk, count: int) -> Iterator[Object]:
        for _ in range(count):
            walk.step()
            yield walk.migration.manifest()
            if walk.ended():
                return

    whole = walk(holds=["Rollout"])
    yield from passes(whole, 60)
    whole.wants(approvals=[{"name": "Rollout", "planHash": whole.migration.status.plan_hash, "approver": "alice"}])
    yield from passes(whole, 5)
    for desired in ("Paused", "RolledBack"):
        whole.wants(desiredState=desired)
        yield from passes(whole, 90)
    yield from passes(walk(desiredState="Planned"), 3)
    yield from passes(walk(), 200)
    failing = walk(onFailure="RollBack")
    failing.world.silent.add(new("Deployment"))
    yield from passes(failing, 200)
    stalled = walk()
    stalled.world.silent.add(new("Deployment"))
    yield from passes(stalled, 60)


def _undecided(of: Object) -> Iterator[Object]:
    metadata = {**of["metadata"], "generation": 7}
    fresh = {**of, "metadata": metadata, "status": dict(UNSEEN)}
    yield fresh
    yield {**of, "metadata": metadata}
    yield {**fresh, "status": stopped_status(fresh, INVALID_SPEC, "spec.brokers: must not be empty", NOW)}
    yield {**fresh, "status": stopped_status(fresh, DEFECT, "KeyError in a.py:1 (b)", NOW)}
