"""The tables of a member's states say all that can happen, and nothing that cannot."""

from collections.abc import Mapping
from typing import Any

import pytest

from switchover.consumer.member.states import (
    ASKS,
    ENDING,
    GROUP,
    HANDED,
    LIFE,
    MODE,
    PARTITION,
    SESSION,
    Cause,
    Group,
    Impossible,
    Life,
    Phase,
    Session,
    after,
)
from switchover.coordination.mode import Mode

TABLES: Mapping[str, tuple[Mapping[Any, Mapping[Cause, Any]], Any, set[Any]]] = {
    "partition": (PARTITION, Phase.FREE, set(Phase)), "session": (SESSION, Session.NONE, set(Session)),
    "group": (GROUP, Group.OUTSIDE, set(Group)), "mode": (MODE, None, {None, *Mode}), "life": (LIFE, Life.OPEN, set(Life))}
"""Each with its first state, and all that there are."""


def from_there(table: Mapping[Any, Mapping[Cause, Any]], first: Any, *, but: Any = "nothing") -> set[Any]:
    """The states that follow one, however many steps on; not by way of `but`."""
    found: set[Any] = set()
    left = [first]
    while left:
        new = {then for then in table[left.pop()].values() if then != but} - found
        found |= new
        left += new
    return found


@pytest.mark.parametrize("name", TABLES)
def test_each_state_has_its_row_and_a_way_to_it(name: str) -> None:
    table, first, states = TABLES[name]
    assert set(table) == from_there(table, first) | {first} == states


def test_what_is_said_of_phases_follows_from_the_table() -> None:
    assert from_there(PARTITION, Phase.FETCHING, but=Phase.FREE) == ENDING
    fetching, = {then for causes in PARTITION.values() for cause, then in causes.items() if cause is Cause.READ}
    assert {fetching, PARTITION[fetching][Cause.UNWANTED]} == HANDED
    assert set(Phase) - ASKS.keys() == {Phase.FREE, Phase.FETCHING, Phase.LINGERING}


def test_what_cannot_happen_is_refused_by_name() -> None:
    with pytest.raises(Impossible, match=r"^<Cause\.STOPPED: 'stopped'> in state Fetching$"):
        after(PARTITION, Phase.FETCHING, Cause.STOPPED)
