"""Position to status and back: what decisions rest on survives being written, read by people, and read again."""

import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from made_reasons import fail, info, unknown, wait, warn
from switchover.api.kafka_migration import KafkaMigrationStatus
from switchover.api.kafka_migration import NodeMode as Mode
from switchover.api.status import Direction, GateStreak, MoveKind, Progress, Severity, StepRecord, Transition
from switchover.api.status import Verdict as Outcome
from switchover.cluster.status import nodes_of, records_of
from switchover.engine.gate import Gate, Judge, Judgement, Streak, Verdict, gravest, passed
from switchover.engine.pace import Spent
from switchover.engine.position import Batch, NodeRecord, Position
from switchover.engine.status import (
    ANSWERS_KEPT,
    HISTORY_KEPT,
    LASTING,
    column_of,
    evidence_of,
    findings_of,
    history_of,
    linked,
    position_of,
    progress_of,
    sentence_of,
    steps_of,
    streaks_of,
    summary_of,
    waiting_of,
)

STEPS = ("Preflight", "Move", "Finalize")
NOW = 1_800_000_000.0
TIMES = st.integers(1_700_000_000, 1_900_000_000).map(float)
PODS = ("kafka-0", "kafka-1", "kafka-controller-0")
RECORDS = st.builds(NodeRecord, st.integers(0, 4000), st.sampled_from([mode for mode in Mode if mode]),
                    st.sampled_from(["", "0b4e5f0e-9d8a-4d5e-8f3e-1c2d3e4f5a6b"]), st.integers(0, 2))


@st.composite
def positions(draw: st.DrawFn) -> Position:
    done = draw(st.integers(0, 5))
    nodes = draw(st.dictionaries(st.sampled_from(PODS), RECORDS))
    batch = None
    if nodes and draw(st.booleans()):
        members = draw(st.lists(st.sampled_from(sorted(nodes)), min_size=1, unique=True))
        batch = Batch(done + 1, tuple(members), draw(TIMES), draw(st.none() | TIMES))
    return Position(
        attempt=draw(st.integers(1, 9)), step=draw(st.sampled_from([*STEPS, "StepOfALaterVersion"])),
        direction=draw(st.sampled_from(Direction)), entered=draw(TIMES), opened=draw(st.none() | TIMES), batch=batch,
        batches_done=done, finished=batch is None and draw(st.booleans()), nodes=nodes)


def written(at: Position, before: KafkaMigrationStatus | None = None) -> KafkaMigrationStatus:
    """The part of a status that holds the position, as it comes back from the API server."""
    progress = progress_of(at, (before or KafkaMigrationStatus()).progress, STEPS, Spent(), None, NOW)
    status = KafkaMigrationStatus(attempt=at.attempt, progress=progress, nodes=nodes_of(at, {}, {}))
    return KafkaMigrationStatus.model_validate(json.loads(json.dumps(status.manifest())))


def read(status: KafkaMigrationStatus, now: float) -> Position:
    return position_of(status, records_of(status), now)


@settings(deadline=None)
@given(positions())
def test_a_position_that_was_written_is_read_as_it_was(at):
    assert read(written(at), NOW + 5) == at


@settings(deadline=None)
@given(positions(), positions())
def test_what_was_written_before_does_not_show_through(earlier, at):
    assert read(written(at, written(earlier)), NOW + 5) == at


def test_nothing_on_record_is_the_start_of_the_plan():
    assert read(KafkaMigrationStatus(), NOW) == Position(step="Preflight", entered=NOW)


def test_an_attempt_counted_before_the_first_step_is_kept():
    assert read(KafkaMigrationStatus(attempt=3), NOW).attempt == 3


# --- progress -----------------------------------------------------------------------------------------------------------


def progress(at: Position, before: Progress | None = None, now: float = NOW) -> Progress:
    return progress_of(at, before or Progress(), STEPS, Spent(1.9, 2.5, 3.0), 60.0, now)


def test_progress_counts_the_steps_that_are_done():
    told = progress(Position(step="Finalize", entered=NOW))
    assert (told.index, told.total, told.percent, told.summary) == (2, 3, 66, "2/3 66%")


def test_progress_is_whole_at_the_end_and_nothing_after_a_rollback():
    assert progress(Position(step="Finalize", entered=NOW, finished=True)).percent == 100
    back = Position(step="Preflight", entered=NOW, finished=True, direction=Direction.BACKWARD)
    assert progress(back).percent == 0


def test_the_end_is_told_once_and_stays():
    at = Position(step="Finalize", entered=NOW, finished=True)
    first = progress(at)
    assert progress(at, first, NOW + 100).complete_time == first.complete_time


def test_an_estimate_is_given_only_on_the_way():
    assert progress(Position(step="Move", entered=NOW)).estimated_completion_time is not None
    assert progress(Position(step="Finalize", entered=NOW, finished=True)).estimated_completion_time is None


def test_time_is_told_in_whole_seconds_by_how_it_was_spent():
    told = progress(Position(step="Move", entered=NOW))
    assert (told.active_seconds, told.gate_wait_seconds, told.human_wait_seconds) == (1, 2, 3)


# --- what is waited for -------------------------------------------------------------------------------------------------


def judged(**verdicts: tuple[Verdict, float, bool]) -> dict[str, Judgement]:
    return {name: Judgement(name, verdict, Streak(verdict.outcome, since, 0), opened, False)
            for name, (verdict, since, opened) in verdicts.items()}


def held(message: str, lasted: float, *, seconds: float, samples: int = 1) -> Mapping[str, Judgement]:
    """A gate that passes for so long, and must for `seconds`, and `samples` times."""
    before = {"Quorum": Streak(Outcome.PASS, NOW - lasted, 0)}
    judge: Judge[float] = Judge("at", {f"at/{name}": streak for name, streak in before.items()}, NOW)
    judge.all_open([Gate("Quorum", lambda _: passed(message), lambda _: samples, lambda _: seconds)], NOW)
    return judge.judged


def test_the_most_urgent_comes_first_and_of_equals_the_oldest():
    told = waiting_of(judged(
        Young=(wait("Waiting", "w"), NOW, False), Old=(wait("Waiting", "older"), NOW - 9, False),
        Blind=(unknown("NotObserved", "u"), NOW - 99, False), Broken=(fail("Failed", "f"), NOW, False)))
    assert [item.gate for item in told] == ["Broken", "Blind", "Old", "Young"]


def test_what_is_open_is_not_waited_for():
    assert waiting_of(judged(Open=(passed(), NOW, True))) == ()


def test_what_many_gates_found_is_told_once_with_their_names():
    """The same sentence stood there once for each gate of the quorum."""
    found = wait("Waiting", "pod kafka-controller-0 does not come up", subject="pod kafka-controller-0", unblocks="look")
    gates = {f"G{number}": (found, NOW + number, False) for number in range(7)}
    first, other = waiting_of(judged(**gates, Other=(replace(found, subject="pod kafka-controller-1"), NOW + 9, False)))
    assert (first.gate, first.unblocks) == ("G0, G1, G2, G3, G4 and 2 more", "look")
    assert first.since == datetime.fromtimestamp(NOW, UTC), "since when the first of them found it"
    assert (other.gate, other.subject) == ("Other", "pod kafka-controller-1")
    for different in ({"message": "it does"}, {"reason": "Other"}, {"unblocks": "wait"}, {"outcome": Outcome.FAIL}):
        assert len(waiting_of(judged(A=(found, NOW, False), B=(replace(found, **different), NOW, False)))) == 2
    assert len(streaks_of(judged(**gates))) == 7, "each gate is in status.gates"


def test_a_gate_that_passes_and_must_go_on_is_told_as_waiting():
    waiting = waiting_of(held("leader 3000", 4.9, seconds=9))
    (told,) = waiting
    assert (told.verdict, told.reason, told.observed, told.threshold) == (Outcome.WAIT, "MustHold", "4 s", "9 s")
    assert told.message == "passes, and must go on passing (4 of 9 s): leader 3000"
    assert told.runbook_url == "docs/runbooks/walk.md#musthold"
    assert column_of(waiting) == "Quorum 4/9 s"


def test_what_must_pass_more_often_is_told_in_passes():
    waiting = waiting_of(held("", 4.9, seconds=0, samples=3))
    assert (waiting[0].message, column_of(waiting)) == (
        "passes, and must go on passing (1 of 3 passes)", "Quorum 1/3 passes")


def test_the_column_names_the_reason_and_its_subject():
    assert column_of(waiting_of(judged(Lag=(wait("GroupLag", "behind", subject="orders"), NOW, False)))) == "GroupLag orders"
    assert column_of(()) == ""


@pytest.mark.parametrize(("at", "told"), [
    (Position(step="Move", entered=NOW), "Move waits for Lag: behind (and 1 more in status.waitingFor)"),
    (Position(step="Move", direction=Direction.BACKWARD, entered=NOW),
     "taking Move back waits for Lag: behind (and 1 more in status.waitingFor)"),
    (Position(step="Move", entered=NOW, batch=Batch(2, tuple("abcd"), NOW, None)),
     "Move, batch 2 (a, b, c, …) waits for Lag: behind (and 1 more in status.waitingFor)"),
])
def test_one_sentence_says_where_it_is_and_what_it_waits_for(at, told):
    waiting = waiting_of(judged(
        Lag=(wait("GroupLag", "behind"), NOW - 9, False), Quorum=(wait("NoController", "none"), NOW, False)))
    assert sentence_of(at, at, waiting, "Move begins") == told


def test_where_nothing_is_waited_for_the_sentence_says_what_is_done():
    at = Position(step="Move", entered=NOW)
    assert sentence_of(at, replace(at, opened=NOW), (), "Move begins") == "Move begins"
    assert sentence_of(replace(at, step="Begin"), at, (), "Begin done") == "Move: Begin done"
    assert sentence_of(at, at, (), "") == "Move: under way"


def test_every_reason_leads_to_its_runbook():
    assert waiting_of(judged(Lag=(wait("GroupLag", "behind"), NOW, False)))[0].runbook_url == "docs/runbooks/lag.md#grouplag"


def test_runbooks_are_linked_below_the_address_that_the_operator_was_told():
    waiting = waiting_of(judged(
        Lag=(wait("GroupLag", "behind"), NOW, False), Quorum=(wait("NoController", "none"), NOW, False)))
    written = KafkaMigrationStatus(waiting_for=waiting).manifest()
    assert [each["runbookURL"] for each in linked(written, "https://git.example.com/docs")["waitingFor"]] == [
        "https://git.example.com/docs/runbooks/lag.md#grouplag", "https://git.example.com/docs/runbooks/rollback.md#nocontroller"]
    assert linked(written, "") == written
    nothing = KafkaMigrationStatus().manifest()
    assert linked(nothing, "https://git.example.com/docs") == nothing


def test_a_message_of_any_length_can_be_written():
    assert len(waiting_of(judged(Long=(wait("Waiting", "x" * 10_000), NOW, False)))[0].message) <= 1024


def test_streaks_are_told_by_the_name_of_the_gate():
    told = streaks_of(judged(B=(passed(), NOW, True), A=(fail("Failed", "f"), NOW, False)))
    assert [(item.name, item.verdict) for item in told] == [("A", Outcome.FAIL), ("B", Outcome.PASS)]
    assert isinstance(told[0], GateStreak)


def found(*findings: Verdict) -> Mapping[str, Judgement]:
    return judged(A=(gravest(findings, "nothing"), NOW, False))


def test_findings_are_told_the_gravest_first_with_their_cure():
    residue = fail("Residue", "left over", subject="/migration", unblocks="delete it")
    told = findings_of(found(info("Size", "12 topics"), warn("Policy", "differs", cure="try it"), residue))
    assert [(item.code, item.severity, item.cure) for item in told] == [
        ("Residue", Severity.BLOCKER, "delete it"), ("Policy", Severity.WARNING, "try it"), ("Size", Severity.INFO, "")]


def test_what_waits_is_a_blocker_and_what_nobody_saw_is_no_finding():
    told = findings_of(found(wait("OutOfSync", "behind"), unknown("BrokerSilent", "no answer")))
    assert [(item.code, item.severity) for item in told] == [("OutOfSync", Severity.BLOCKER)]


def test_gates_that_judge_one_thing_have_no_findings():
    assert findings_of(judged(A=(fail("PointOfNoReturn", "passed"), NOW, False), B=(wait("Paused", "p"), NOW, False))) == ()


def test_of_very_many_findings_the_gravest_are_kept():
    told = findings_of(found(*(info("Size", str(n)) for n in range(200)), fail("Residue", "left over")))
    assert len(told) == 100
    assert told[0].code == "Residue"


@pytest.mark.parametrize(("findings", "told"), [
    ((), ""),
    ((info("Size", "12 topics"),), ""),
    ((warn("Policy", "differs"), info("Size", "12 topics")), "1 warning: differs"),
    ((warn("Policy", "differs"), fail("A", "a"), fail("B", "b"), fail("C", "c")), "3 blockers, 1 warning: a; b; c"),
])
def test_findings_in_a_sentence(findings, told):
    assert summary_of(findings_of(found(*findings))) == told


# --- the record of steps and moves --------------------------------------------------------------------------------------

AT = Position(step="Preflight", entered=NOW)


def test_a_step_that_is_left_has_an_end_and_the_next_a_beginning():
    told = steps_of((), AT, replace(AT, step="Move"), NOW + 30)
    assert [(item.name, item.seconds) for item in told] == [("Preflight", 30), ("Move", None)]


def test_a_step_under_way_has_no_end():
    begun = datetime.fromtimestamp(NOW, UTC)
    assert steps_of((), AT, AT, NOW + 30) == (StepRecord(name="Preflight", start_time=begun),)


def test_the_last_step_ends_with_the_plan():
    at = Position(step="Finalize", entered=NOW)
    assert steps_of((), at, replace(at, finished=True), NOW + 7)[0].seconds == 7


def test_a_step_that_is_entered_again_begins_again():
    there = steps_of((), AT, replace(AT, step="Move"), NOW + 30)
    back = steps_of(there, replace(AT, step="Move", entered=NOW + 30), AT, NOW + 40)
    assert {item.name: item.end_time is None for item in back} == {"Preflight": True, "Move": False}


def test_history_keeps_the_last_moves():
    told: tuple[Transition, ...] = ()
    for number in range(HISTORY_KEPT + 5):
        told = history_of(told, AT, AT, f"move {number}", NOW)
    assert len(told) == HISTORY_KEPT
    assert told[-1].message == f"move {HISTORY_KEPT + 4}"


MOVING = replace(AT, step="Move", opened=NOW, nodes={"kafka-0": NodeRecord(0, "KRaft", settled=False)})
BATCH, PROVEN = (replace(MOVING, batch=Batch(1, ("kafka-0",), NOW, proven)) for proven in (None, NOW))
BACK = replace(MOVING, direction=Direction.BACKWARD)
MOVES = [
    (AT, replace(AT, opened=NOW), MoveKind.STEP_BEGUN),
    (replace(AT, opened=NOW), AT, MoveKind.STEP_WAITS_AGAIN),
    (AT, AT.enter("Move", NOW), MoveKind.STEP_DONE),
    (MOVING, replace(MOVING, finished=True), MoveKind.STEP_DONE),
    (BACK, BACK.enter("Preflight", NOW), MoveKind.STEP_DONE),
    (MOVING, MOVING.enter("Preflight", NOW), MoveKind.SPEC_CHANGED),
    (MOVING, BATCH, MoveKind.BATCH_BEGUN),
    (MOVING, BATCH.as_rescue(), MoveKind.REMEDIATION_BEGUN),
    (BATCH, replace(BATCH, batch=Batch(1, ("kafka-1",), NOW, rescue=True)), MoveKind.REMEDIATION_BEGUN),
    (BATCH, BATCH.with_node("kafka-0", NodeRecord(0, "KRaft", evicting="uid-1", evictions=1)), MoveKind.POD_CHOSEN),
    (BATCH, PROVEN, MoveKind.BATCH_PROVEN),
    (PROVEN, PROVEN.unproven(), MoveKind.BAKE_RESTARTED),
    (PROVEN, PROVEN.batch_void(), MoveKind.BATCH_VOID),
    (PROVEN, PROVEN.batch_done(), MoveKind.BATCH_DONE),
    (PROVEN.as_rescue(), PROVEN.as_rescue().batch_done(), MoveKind.BATCH_DONE),
    (PROVEN, PROVEN.turn(Direction.BACKWARD, NOW), MoveKind.TURNED),
    (BACK, BACK.turn(Direction.FORWARD, NOW), MoveKind.TURNED),
    (BATCH, replace(BATCH.turn(Direction.BACKWARD, NOW), failure="GroupLag"), MoveKind.AUTOMATIC_ROLLBACK),
    (replace(BACK, failure="GroupLag"), BACK, MoveKind.ROLLBACK_ACKNOWLEDGED),
]


@pytest.mark.parametrize(("old", "new", "kind"), MOVES, ids=lambda item: item if isinstance(item, str) else "")
def test_a_move_says_of_which_kind_it_is(old, new, kind):
    assert history_of((), old, new, "any words", NOW)[0].reason == kind


def test_each_kind_of_move_is_made_or_befalls():
    assert {kind for _, _, kind in MOVES} | {*LASTING, MoveKind.VOLUME_CAUGHT_UP, MoveKind.MOVED} == {*MoveKind}


def test_what_lasts_is_told_once_and_what_happens_twice_is_told_twice():
    long = "x" * 2000
    befallen = [(MoveKind.INCIDENT, long), (MoveKind.DUAL_WRITE_REPAIRED, "a quota"), (MoveKind.VOLUME_CAUGHT_UP, "kafka-1")]
    once = history_of((), AT, replace(AT, opened=NOW), "Preflight begins", NOW, befallen)
    assert [each.reason for each in once] == [MoveKind.STEP_BEGUN, *(kind for kind, _ in befallen)]
    twice = history_of(once, AT, AT, "", NOW, [*befallen, (MoveKind.INCIDENT, "another")])
    assert [(each.reason, each.message) for each in twice[len(once):]] == [
        (MoveKind.VOLUME_CAUGHT_UP, "kafka-1"), (MoveKind.INCIDENT, "another")]


def test_a_pass_without_a_move_leaves_no_history():
    assert history_of((), AT, AT, "", NOW) == ()


@pytest.mark.parametrize(("at", "place"), [
    (AT, "Preflight"),
    (replace(AT, step="Move", batch=Batch(2, ("kafka-0",), NOW)), "Move/2"),
    (replace(AT, finished=True), "Completed"),
    (replace(AT, finished=True, direction=Direction.BACKWARD), "RolledBack"),
], ids=lambda item: item if isinstance(item, str) else "")
def test_history_names_places(at, place):
    assert history_of((), AT, at, "moved", NOW)[0].to == place


# --- evidence -----------------------------------------------------------------------------------------------------------

BEFORE, ENTERED = Position(step="Move", entered=NOW), Position(step="Finalize", entered=NOW)
BEGUN = replace(ENTERED, opened=NOW + 20)
FINAL = frozenset({"Finalize"})


def passing(*gates: str, count: int = 0) -> dict[str, Judgement]:
    names = (*gates, *(f"Gate{number}" for number in range(count)))
    return {name: Judgement(name, passed(f"{name} says {'x' * 2000}"), Streak(Outcome.PASS, NOW - 60, 3), True, False)
            for name in names}


def test_what_the_gates_said_before_a_final_step_is_kept_of_its_entry_and_its_beginning():
    entered = evidence_of((), BEFORE, ENTERED, passing("Soaked", "DualWrite"), FINAL, "Move done", NOW)
    waits = evidence_of(entered, ENTERED, ENTERED, passing("DualWrite"), FINAL, "", NOW + 10)
    assert waits == entered
    (told,) = evidence_of(waits, ENTERED, BEGUN, passing("DualWrite", "AllKRaft"), FINAL, "Finalize begins", NOW + 20)
    assert [(each.name, each.time.timestamp() - NOW) for each in told.gates] == [
        ("DualWrite", 20), ("Soaked", 0), ("AllKRaft", 20)]
    assert (entered[0].begin_time, told.begin_time.timestamp(), told.message) == (None, NOW + 20, "Finalize begins")
    assert evidence_of((told,), BEGUN, BEGUN, passing("Finalized"), FINAL, "", NOW + 30) == (told,)


def test_a_step_that_waits_again_has_no_beginning_in_the_evidence():
    begun = evidence_of((), ENTERED, BEGUN, passing("DualWrite"), FINAL, "Finalize begins", NOW + 20)
    (told,) = evidence_of(begun, BEGUN, ENTERED, passing("RecordHolds"), FINAL, "Finalize waits again", NOW + 30)
    assert (told.begin_time, told.message) == (None, "")


def test_a_step_that_can_be_taken_back_leaves_no_evidence_and_neither_does_the_way_back():
    assert evidence_of((), BEFORE, ENTERED, passing("Soaked"), frozenset(), "Move done", NOW) == ()
    back = replace(ENTERED, direction=Direction.BACKWARD)
    assert evidence_of((), BEFORE, back, passing("Soaked"), FINAL, "", NOW) == ()


def test_evidence_is_bounded():
    status = KafkaMigrationStatus(evidence=evidence_of(
        (), BEFORE, ENTERED, passing(count=ANSWERS_KEPT + 9), FINAL, "", NOW))
    (told,) = KafkaMigrationStatus.model_validate(json.loads(json.dumps(status.manifest()))).evidence
    assert len(told.gates) == ANSWERS_KEPT
    assert {len(each.message) for each in told.gates} == {256}
