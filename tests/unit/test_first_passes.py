"""Of many objects that an operator finds at its start those that move are looked at first."""

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from simulation.virtual_time import in_virtual_time
from switchover.engine.pace import STANDING
from switchover.process.handlers import FINALIZER, Loops
from switchover.process.metrics import Metrics
from switchover.process.turns import Turns

PASS_SECONDS = 0.1
MANY = 300


def found(name: str, status: object) -> dict[str, Any]:
    return {"metadata": {"name": name, "uid": f"uid of {name}", "generation": 1, "finalizers": [FINALIZER]}, "spec": {},
            "status": status}


class Passes:
    """What loops are given: passes that take their time, and are noted with the time at which each began."""

    def __init__(self) -> None:
        self.begun: list[tuple[str, float]] = []

    def loops(self) -> Loops:
        metrics = Metrics(CollectorRegistry(), asyncio.get_running_loop().time)
        return Loops("Probe", "here", self._reconcile, self._never, self._never, self._never, self._never, self._close,
                     metrics, Turns(at_once=1))

    async def _reconcile(self, name: str, _: Mapping[str, Any] | None) -> float:
        self.begun.append((name, asyncio.get_running_loop().time()))
        await asyncio.sleep(PASS_SECONDS)
        return STANDING

    async def _never(self, *_: object) -> Any:
        raise AssertionError("nothing is released or held")

    async def _close(self) -> None:
        pass


def order(*objects: dict[str, Any]) -> list[str]:
    """The names in the order in which they were looked at first."""
    passes = Passes()

    async def run() -> None:
        loops = passes.loops()
        for each in objects:
            loops.noticed(each)
        await asyncio.sleep(len(objects) * PASS_SECONDS)
        for each in objects:
            loops.forget(each["metadata"]["name"])

    in_virtual_time(run())
    return list(dict.fromkeys(name for name, _ in passes.begun))


@pytest.mark.parametrize("phase", ["Running", "RollingBack"])
def test_those_that_move_come_before_those_that_stand(phase: str) -> None:
    idle = [found(f"idle-{number}", {"phase": "Planned"}) for number in range(MANY)]
    moving = [found(f"moving-{number}", {"phase": phase}) for number in range(9)]
    looked_at = order(*idle, *moving)
    assert len(looked_at) == MANY + len(moving)
    assert {each["metadata"]["name"] for each in moving} <= set(looked_at[:2 * len(moving)])


def test_one_that_somebody_changes_meanwhile_does_not_wait_for_those_before_it() -> None:
    passes = Passes()

    async def run() -> None:
        loops = passes.loops()
        for number in range(MANY):
            loops.noticed(found(f"idle-{number}", {"phase": "Planned"}))
        await asyncio.sleep(10.5 * PASS_SECONDS)
        changed = found(f"idle-{MANY - 1}", {"phase": "Planned"})
        changed["metadata"]["generation"] = 2
        loops.noticed(changed)
        await asyncio.sleep(2 * PASS_SECONDS)
        for number in range(MANY):
            loops.forget(f"idle-{number}")

    in_virtual_time(run())
    assert f"idle-{MANY - 1}" in {name for name, _ in passes.begun}


def test_whatever_somebody_has_written_into_the_status_stops_nothing() -> None:
    odd = [found(f"odd-{number}", status) for number, status in enumerate((None, "Running", [], {"phase": ["Running"]}))]
    assert len(order(*odd)) == len(odd)
