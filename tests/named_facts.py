"""Whatever is decided in a test rests on facts that are named: what nobody names is never read in a cluster.

A fact that is read only where something needs it (`Need`) is there in most tests, asked for or not. Here a gate that reads
one that neither it nor its leg names fails at once, and so does a leg's own function.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields
from typing import Any

import pytest

from switchover.cluster.facts import Facts as ClusterFacts
from switchover.engine import plan as engine
from switchover.engine.gate import Gate, Judge
from switchover.engine.position import Position
from switchover.groups.picture import Facts as GroupFacts

NAMES: Mapping[type, Mapping[str, frozenset[str]]] = {
    facts: {each.name: each.metadata["needs"] for each in fields(facts) if "needs" in each.metadata}
    for facts in (ClusterFacts, GroupFacts)}
"""Of each kind's facts: field -> the needs that have it read."""


class Watched:
    """Stands over a field of the facts."""

    def __init__(self, slot: Any, field: str, names: frozenset[str]) -> None:
        self._slot, self._field, self._names = slot, field, names

    def __get__(self, facts: Any, owner: type) -> Any:
        if facts is None:
            return self
        if named and not named[-1][1] & self._names:
            raise AssertionError(f"{named[-1][0]} reads {self._field} and does not name it: in a cluster it is not there")
        return self._slot.__get__(facts, owner)

    def __set__(self, facts: Any, value: Any) -> None:
        self._slot.__set__(facts, value)


named: list[tuple[str, frozenset[str]]] = []
"""Who reads at this moment, innermost last, and what it names."""


@contextmanager
def reading(who: str, needs: frozenset[str]) -> Iterator[None]:
    named.append((who, needs))
    try:
        yield
    finally:
        named.pop()


def of_the_leg(plan: engine.Plan[Any], at: Position) -> frozenset[str]:
    """What the functions of the leg on record name, without its gates."""
    index = plan.index(at.step)
    leg = None if index is None else plan.steps[index].leg(at.direction)
    if leg is None:
        return frozenset()
    rollouts = (*leg.rollouts, *(rescue.rollout for rescue in leg.rescues))
    return frozenset((*leg.needs, *leg.keep.needs, *(need for each in rollouts for need in each.needs)))


@pytest.fixture(autouse=True, scope="session")
def facts_are_named() -> Iterator[None]:
    """Watch every decision of the session."""
    move, judge = engine._move, Judge._judge
    leg: list[Any] = ["no step", frozenset[str]()]

    def watched_move(plan: engine.Plan[Any], picture: Any, *more: Any) -> Any:
        at = picture.position
        leg[:] = f"{at.step}, {at.direction},", of_the_leg(plan, at)
        with reading(leg[0], plan.needs(at)):
            return move(plan, picture, *more)

    def watched_judge(self: Judge[Any], gate: Gate[Any], picture: Any) -> Any:
        with reading(f"{gate.name} in {leg[0]}", leg[1] | frozenset(gate.needs)):
            return judge(self, gate, picture)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(engine, "_move", watched_move)
        patch.setattr(Judge, "_judge", watched_judge)
        for facts, fields in NAMES.items():
            for field, needs in fields.items():
                patch.setattr(facts, field, Watched(facts.__dict__[field], field, needs))
        yield
