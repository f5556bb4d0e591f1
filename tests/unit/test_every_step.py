"""The gates of every step: they are told with those of the step, and without the Lease nothing moves and nothing is done."""

import pytest

from made_reasons import fail, wait
from switchover.engine.every_step import EveryStep, lease_not_held
from switchover.engine.plan import Decision, decide
from switchover.engine.position import NodeRecord, Position
from unit.small_plan import NODES, NOW, OLD, PLAN, Scene, World, intent, open_gates

SHUT = wait("Waiting", "somebody else's"), NOW - 7
LEASE = lease_not_held("me", "another", ""), NOW
OTHERS = [EveryStep(deletion=SHUT), EveryStep(effects=SHUT), EveryStep(SHUT, effects=SHUT)]


def decided(every: EveryStep, *, made: bool = False, opened: bool = True, patience: float = 1e9) -> Decision:
    at = Position(step="Prepare", entered=NOW, opened=NOW if opened else None, nodes={
        name: NodeRecord(index, OLD) for index, name in enumerate(NODES)})
    return decide(PLAN, Scene(at, World(made=made), open_gates), intent(patience=patience), {}, NOW, every)


@pytest.mark.parametrize(("made", "opened"), [(False, False), (False, True), (True, True)])
def test_without_the_lease_nothing_moves_and_all_is_told(made: bool, opened: bool) -> None:
    free, held = (decided(every, made=made, opened=opened) for every in (EveryStep(), EveryStep(SHUT, LEASE, SHUT)))
    assert free.effects or free.note, "with it, it goes on"
    assert (held.effects, held.note, held.stalled) == ((), "", None)
    assert (held.position.step, held.position.opened is not None) == ("Prepare", opened)
    assert [name for name in held.judged if name not in free.judged] == ["Deletion", "Lease"], "nothing is done in vain"
    assert held.streaks == free.streaks


@pytest.mark.parametrize("every", OTHERS)
def test_the_others_are_told_and_hold_nothing(every: EveryStep) -> None:
    free, told = decided(EveryStep()), decided(every)
    assert (told.position, told.effects, told.note, told.streaks) == (free.position, free.effects, free.note, free.streaks)
    own = {name: item for name, item in told.judged.items() if name not in free.judged}
    assert own.keys() == every.judged(acts=True).keys()
    assert {(item.verdict.reason, item.streak.since, item.open, item.overdue) for item in own.values()} == {
        ("Waiting", NOW - 7, False, False)}


def test_what_was_done_in_vain_is_told_while_it_is_to_be_done() -> None:
    assert "Effects" in decided(EveryStep(effects=SHUT)).judged
    assert "Effects" not in decided(EveryStep(effects=SHUT), made=True).judged


def test_they_stall_nothing() -> None:
    shut = fail("Failed", "somebody must act"), NOW - 1e6
    assert decided(EveryStep(shut, shut, shut), patience=1.0).stalled is None
