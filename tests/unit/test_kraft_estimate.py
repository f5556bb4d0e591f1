"""How long what is left takes, and what may start within a window: tables over positions, paces and windows."""

from dataclasses import replace
from typing import Any

import pytest

from made_reasons import wait
from switchover.api.kafka_migration import NodeMode as Mode
from switchover.api.meta import Window
from switchover.api.status import Direction
from switchover.api.status import Verdict as Outcome
from switchover.cluster.estimate import ahead, direction_seconds, remaining, rollback_seconds
from switchover.cluster.facts import Facts
from switchover.cluster.gates.operations import WITHIN_WINDOW
from switchover.cluster.picture import Picture
from switchover.cluster.plan import PLAN
from switchover.engine.gate import Verdict
from switchover.engine.pace import Pace, Spent, spend, with_batch
from switchover.engine.plan import decide
from switchover.engine.position import NodeRecord
from switchover.engine.windows import seconds_until_done
from switchover.metadata.parity import MigrationState
from unit.pictures import ACTIVE, NOW, POST, PRE, Modes, moment
from unit.small_plan import NEW, OLD, intent, moving
from unit.small_plan import PLAN as SMALL_PLAN

# The pictures' own rollout: one broker at a time, a bake of 60 s and then of 10 s; a soak of 3600 s; a copy within 30 s.
MIGRATION, KRAFT, FINALIZED, STOP, ZOOKEEPER = 20.0, 30.0, 8.0, 5.0, 25.0
"""Seconds of a restart into each mode."""
PACES = {Mode.ZOOKEEPER: Pace(3, ZOOKEEPER, ZOOKEEPER), Mode.MIGRATION: Pace(3, MIGRATION, 2 * MIGRATION),
         Mode.KRAFT: Pace(1, KRAFT, KRAFT),
         Mode.KRAFT_CONTROLLER: Pace(1, FINALIZED, FINALIZED), Mode.MIGRATION_CONTROLLER: Pace(1, 7.0, 7.0),
         Mode.STOPPED: Pace(1, STOP, STOP)}


def at(step: str, brokers: Modes = Mode.ZOOKEEPER, controllers: Modes = Mode.MIGRATION_CONTROLLER,
       batch: tuple[str, ...] = (), paces: Any = PACES, state: MigrationState | None = ACTIVE, **spec: Any) -> Picture:
    return replace(moment(step, brokers, controllers, batch, state, **spec), paces=paces)


def evicted(picture: Picture, started: float = NOW - 10, proven: float | None = None) -> Picture:
    """The batch on record with its pods evicted."""
    position = picture.position
    assert position.batch is not None
    nodes = {**position.nodes, **{name: replace(position.nodes[name], evictions=1) for name in position.batch.nodes}}
    return picture.at(replace(position, nodes=nodes, batch=replace(position.batch, started=started, proven=proven)))


# --- forward ------------------------------------------------------------------------------------------------------------

SOAK = 3600.0
FINALIZE = 3 * FINALIZED
MOVE = 3 * KRAFT + 60 + 10 + 10
CLAIM = MIGRATION + 60 + 30


@pytest.mark.parametrize(("picture", "seconds"), [
    (at("ProvisionControllers", state=PRE), 7 + 2 * MIGRATION + 60 + 10 + CLAIM + MOVE + SOAK + FINALIZE),
    (at("EnableMigration", state=PRE), 2 * MIGRATION + 60 + 10 + CLAIM + MOVE + SOAK + FINALIZE),
    (evicted(at("EnableMigration", (Mode.MIGRATION, Mode.ZOOKEEPER), Mode.MIGRATION_CONTROLLER, ("kafka-0",), state=PRE)),
     (MIGRATION - 10) + 60 + (MIGRATION + 10) + CLAIM + MOVE + SOAK + FINALIZE),
    (evicted(at("EnableMigration", (Mode.MIGRATION, Mode.ZOOKEEPER), Mode.MIGRATION_CONTROLLER, ("kafka-0",), state=PRE),
             NOW - 60, proven=NOW - 25),
     35 + (MIGRATION + 10) + CLAIM + MOVE + SOAK + FINALIZE),
    (evicted(at("EnableMigration", (Mode.MIGRATION, Mode.ZOOKEEPER), Mode.MIGRATION_CONTROLLER, ("kafka-0",), state=PRE),
             NOW - 900), 60 + (MIGRATION + 10) + CLAIM + MOVE + SOAK
     + FINALIZE),                                                  # slower than ever: it must be done any moment
    (at("CopyMetadata", (Mode.MIGRATION, Mode.MIGRATION, Mode.ZOOKEEPER), state=PRE), CLAIM + MOVE + SOAK + FINALIZE),
    (at("CopyMetadata", Mode.MIGRATION), 30 + MOVE + SOAK + FINALIZE),
    (at("DualWrite", Mode.MIGRATION), MOVE + SOAK + FINALIZE),
    (at("MoveBrokers", (Mode.KRAFT, Mode.MIGRATION)), 2 * KRAFT + 60 + 10 + SOAK + FINALIZE),
    (at("Soak", Mode.KRAFT), SOAK - 60 + FINALIZE),
    (at("Finalize", Mode.KRAFT), FINALIZE),
    (at("Finalize", Mode.KRAFT, (Mode.MIGRATION_CONTROLLER, Mode.KRAFT_CONTROLLER), state=POST), FINALIZED),
    (at("ReleaseZooKeeper", Mode.KRAFT, Mode.KRAFT_CONTROLLER, state=POST), 7200 - 60 + KRAFT + 60 + FINALIZED),
    (at("ReleaseZooKeeper", Mode.KRAFT, Mode.KRAFT_CONTROLLER, state=POST, zookeeper={"connect": "zk:2181", "shared": True}),
     7200 - 60),
], ids=lambda item: item.position.step if isinstance(item, Picture) else "")
def test_what_is_left_forward(picture, seconds):
    assert direction_seconds(picture) == pytest.approx(seconds, abs=0.1)


def test_batches_of_several_take_as_long_as_one():
    steps = {"steps": [{"pods": 1, "bakeSeconds": 60}, {"percent": 60, "bakeSeconds": 5}]}
    picture = at("MoveBrokers", Mode.MIGRATION, rollout=steps)
    assert direction_seconds(picture) == pytest.approx(2 * KRAFT + 65 + SOAK + FINALIZE, abs=0.1)


@pytest.mark.parametrize(("paces", "seconds"), [
    ({}, 120.0), ({Mode.MIGRATION: Pace(2, 20.0, 21.0)}, 20.0),
    ({Mode.MIGRATION: Pace(2, 20.0, 21.0), Mode.KRAFT: Pace(1, 33.0, 33.0)}, 33.0),
    ({Mode.KRAFT_CONTROLLER: Pace(1, 5.0, 5.0)}, 120.0),
], ids=["nothing: assumed", "another mode's", "its own", "a controller tells nothing of brokers"])
def test_a_restart_takes_what_was_measured_and_else_what_is_assumed(paces, seconds):
    work = ahead(at("MoveBrokers", Mode.MIGRATION, paces=paces))
    assert work[0].seconds == seconds + 60


def test_before_anything_is_on_record_the_replicas_are_counted():
    picture = replace(moment("Preflight"), paces=PACES)
    assert sum(each.restarts for each in ahead(picture)) == 2 * 3 + 3 + 1, "brokers twice, controllers once, a leader"
    assert direction_seconds(replace(picture, facts=Facts())) is None, "nobody knows how many brokers there are"


# --- back ---------------------------------------------------------------------------------------------------------------


def backward(picture: Picture) -> Picture:
    return picture.at(replace(picture.position, direction=Direction.BACKWARD))


TO_ZOOKEEPER = 3 * ZOOKEEPER
STOPS = 3 * STOP                          # one by one, once KRaft has claimed the cluster


def copied(picture: Picture) -> Picture:
    return replace(picture, high_watermark=100)


@pytest.mark.parametrize(("picture", "seconds"), [
    (moment("Preflight"), 0),
    (at("ProvisionControllers", state=PRE), STOP),
    (at("EnableMigration", (Mode.MIGRATION, Mode.ZOOKEEPER), state=PRE), STOP + ZOOKEEPER),
    (at("EnableMigration", (Mode.MIGRATION, Mode.MIGRATION, Mode.ZOOKEEPER), Mode.MIGRATION_CONTROLLER, ("kafka-1",),
        state=PRE), STOP + 2 * ZOOKEEPER),
    (copied(at("DualWrite", Mode.MIGRATION)), STOPS + TO_ZOOKEEPER),
    (copied(at("MoveBrokers", (Mode.KRAFT, Mode.MIGRATION))), MIGRATION + STOPS + TO_ZOOKEEPER),
    (copied(at("MoveBrokers", (Mode.KRAFT, Mode.KRAFT, Mode.MIGRATION), Mode.MIGRATION_CONTROLLER, ("kafka-1",))),
     2 * MIGRATION + STOPS + TO_ZOOKEEPER),
    (copied(at("Soak", Mode.KRAFT)), 3 * MIGRATION + STOPS + TO_ZOOKEEPER),
    (copied(backward(at("MoveBrokers", (Mode.MIGRATION, Mode.KRAFT), Mode.MIGRATION_CONTROLLER, ("kafka-0",)))),
     3 * MIGRATION + STOPS + TO_ZOOKEEPER),
    (copied(backward(at("EnableMigration", Mode.MIGRATION))), STOPS + TO_ZOOKEEPER),
], ids=lambda item: item.position.step if isinstance(item, Picture) else "")
def test_the_way_back_is_the_sum_of_its_restarts(picture, seconds):
    picture = replace(picture, paces=PACES)
    assert rollback_seconds(picture) == pytest.approx(seconds, abs=0.1)
    if picture.position.direction is Direction.BACKWARD:
        assert direction_seconds(picture) == rollback_seconds(picture)


# --- windows ------------------------------------------------------------------------------------------------------------

HOUR = 3600
# NOW is a Friday, 08:00 UTC.


def window(cron: str, seconds: float, name: str = "w", zone: str = "UTC") -> Window:
    """Unlike those that a user may ask for, it may be open for less than a minute."""
    return Window.model_construct(name=name, cron=cron, duration_seconds=int(seconds), time_zone=zone)


def verdict(picture: Picture, *windows: Window) -> Verdict:
    return WITHIN_WINDOW.check(replace(picture, spec=picture.spec.model_copy(update={"windows": windows})))


FIRST = 2 * MIGRATION + 60                        # the canary, were it as slow as the slowest so far
ENABLE = at("EnableMigration", state=PRE)


@pytest.mark.parametrize(("windows", "reason"), [
    ([window("0 7 * * *", 2 * HOUR)], "Passed"),
    ([window("0 9 * * *", 2 * HOUR)], "OutsideWindow"),
    ([window("0 8 * * *", int(FIRST) + 60)], "Passed"),                   # the latest start is this very moment
    ([window("0 8 * * *", int(FIRST) + 59), window("0 9 * * *", HOUR, "longer")], "WindowTooShort"),
    ([window("0 8 * * *", 100), window("1 8 * * *", 100, "next"), window("2 8 * * *", 100, "last")], "Passed"),
    ([window("0 8 * * *", int(FIRST) + 59)], "NoWindowFits"),
    ([window("* 9 * * *", 30)], "WindowsOpenTooOften"),
], ids=lambda item: item if isinstance(item, str) else "")
def test_a_batch_starts_only_where_it_can_end(windows, reason):
    assert verdict(ENABLE, *windows).reason == reason


def test_a_closed_window_tells_when_and_where_it_opens():
    told = verdict(ENABLE, window("0 1 * * 1-5", 4 * HOUR, "night", "Europe/Berlin"))
    assert told == wait("OutsideWindow", "every window is closed; night opens at 2027-01-18 01:00 Europe/Berlin",
                        subject="night", threshold="2027-01-18T00:00:00Z",
                        unblocks="nothing to do: it goes on at 2027-01-18 01:00 Europe/Berlin, or change spec.windows")


def chosen(picture: Picture) -> Picture:
    assert picture.position.batch is not None
    return picture.at(replace(picture.position, batch=replace(picture.position.batch, started=picture.now)))


COPY_BATCH = at("CopyMetadata", Mode.MIGRATION, Mode.MIGRATION_CONTROLLER, ("kafka-2",), state=PRE)
LAST = 2 * MIGRATION + 60 + 31                    # restart, bake, and the limit of the copy


@pytest.mark.parametrize(("picture", "seconds", "open_"), [
    # A batch on record of which no pod was evicted has not begun; one that has must end.
    (at("MoveBrokers", (Mode.KRAFT, Mode.MIGRATION), Mode.MIGRATION_CONTROLLER, ("kafka-0",)), KRAFT + 60, True),
    (at("MoveBrokers", (Mode.KRAFT, Mode.MIGRATION), Mode.MIGRATION_CONTROLLER, ("kafka-0",)), KRAFT + 59, False),
    (evicted(at("MoveBrokers", (Mode.KRAFT, Mode.MIGRATION), Mode.MIGRATION_CONTROLLER, ("kafka-0",))), 0, True),
    # Chosen and not on record yet: a minute more, so that it does not stand on record until tomorrow.
    (chosen(at("MoveBrokers", (Mode.KRAFT, Mode.MIGRATION), Mode.MIGRATION_CONTROLLER, ("kafka-0",))), KRAFT + 60 + 59,
     False),
    (chosen(evicted(at("MoveBrokers", (Mode.KRAFT, Mode.MIGRATION), Mode.MIGRATION_CONTROLLER, ("kafka-0",)), started=NOW)),
     KRAFT + 60 + 59, False),
    (chosen(at("MoveBrokers", (Mode.KRAFT, Mode.MIGRATION), Mode.MIGRATION_CONTROLLER, ("kafka-0",))), KRAFT + 60 + 60,
     True),
    # The claim is one piece with the last broker and the copy.
    (COPY_BATCH, LAST, True), (COPY_BATCH, LAST - 2, False), (evicted(COPY_BATCH), 0, True),
    # All controllers are one piece; once one has moved, the others follow.
    (at("Finalize", Mode.KRAFT), 3 * FINALIZED + 60, True), (at("Finalize", Mode.KRAFT), 3 * FINALIZED + 59, False),
    (at("Finalize", Mode.KRAFT, (Mode.KRAFT_CONTROLLER, Mode.MIGRATION_CONTROLLER), ("kafka-controller-0",)),
     3 * FINALIZED - 1,
     False),
    (evicted(at("Finalize", Mode.KRAFT, (Mode.KRAFT_CONTROLLER, Mode.MIGRATION_CONTROLLER), ("kafka-controller-0",))), 0,
     True),
    # What only watches needs an open window and nothing more.
    (at("DualWrite", Mode.MIGRATION), 60, True),
], ids=lambda item: item.position.step if isinstance(item, Picture) else "")
def test_what_has_begun_ends_and_what_has_not_must_fit(picture, seconds, open_):
    opens = window("0 8 * * *", seconds) if seconds else window("0 20 * * *", HOUR)      # closed for hours
    assert (verdict(picture, opens).outcome is Outcome.PASS) == open_


def test_a_second_controller_follows_the_first_outside_of_the_window():
    after_one = at("Finalize", Mode.KRAFT, (Mode.KRAFT_CONTROLLER, Mode.MIGRATION_CONTROLLER))
    after_one = after_one.at(replace(after_one.position, batches_done=1))
    assert verdict(after_one, window("0 20 * * *", HOUR)).outcome is Outcome.PASS


def test_the_way_back_waits_for_no_window():
    assert verdict(backward(at("MoveBrokers", (Mode.KRAFT, Mode.MIGRATION))),
                   window("0 20 * * *", HOUR)).outcome is Outcome.PASS


@pytest.mark.parametrize(("windows", "seconds"), [
    ([], 2 * (KRAFT + 10) + SOAK + FINALIZE),
    ([window("0 9 * * *", 2 * HOUR)], HOUR + 2 * (KRAFT + 10) + SOAK + FINALIZE),     # all within one window, and the soak
    # The second broker waits for a day; the soak goes on in the night, and Finalize waits for the morning after.
    ([window("0 8 * * *", 70)], 2 * 24 * HOUR + FINALIZE),
    ([window("0 8 * * *", 39)], None),
], ids=["always", "later today", "one broker a day", "never"])
def test_an_estimate_knows_when_windows_are_closed(windows, seconds):
    steps = {"steps": [{"pods": 1, "bakeSeconds": 10}]}
    picture = at("MoveBrokers", (Mode.KRAFT, Mode.MIGRATION), rollout=steps)
    assert seconds_until_done(ahead(picture), windows, NOW) == (seconds and pytest.approx(seconds, abs=0.1))


def test_closed_windows_are_no_lack_of_progress():
    for reason in ("OutsideWindow", "WindowTooShort", "NoWindowFits", "WindowsOpenTooOften"):
        scene = replace(moving(), verdict=lambda _, reason=reason: wait(reason, "closed"))
        streaks: Any = {}
        for late in (0.0, 1e6):
            decision = decide(SMALL_PLAN, scene, intent(patience=10), streaks, NOW + late)
            streaks = decision.streaks
        assert decision.stalled is None


# --- what is measured ---------------------------------------------------------------------------------------------------


def test_the_time_of_a_batch_begins_with_its_first_eviction_and_ends_when_it_is_proven():
    scene = moving(batch=("n0",))
    record: NodeRecord = scene.position.nodes["n0"]
    begun = scene.position.with_node("n0", replace(record, evictions=1))
    proven = replace(begun, batch=replace(begun.batch, proven=NOW))
    done = begun.batch_done()
    spent = Spent()
    for seconds, before, after in ((100.0, scene.position, begun), (4.0, begun, begun), (5.0, begun, proven),
                                   (300.0, proven, done)):
        decision = replace(decide(SMALL_PLAN, scene, intent(), {}, NOW), position=after, judged={})
        spent = spend(spent, seconds, before, decision)
    assert spent.batch == 9.0
    paces = with_batch({NEW: Pace(1, 5.0, 5.0)}, proven, done, spent.batch)
    assert paces == {NEW: Pace(2, 7.0, 9.0)}
    assert with_batch(paces, begun, proven, 99.0) == paces, "counted once, when the batch is done"


def test_a_pause_is_not_the_clusters_slowness():
    scene = moving(batch=("n0",))
    begun = scene.position.with_node("n0", replace(scene.position.nodes["n0"], evictions=1))
    paused = decide(SMALL_PLAN, scene.at(begun), intent(paused=True), {}, NOW)
    assert spend(Spent(batch=4.0), 3600.0, begun, paused) == Spent(human=3600.0, batch=4.0)


def test_a_dropped_batch_is_not_measured():
    begun = moving(batch=("n0",), assigned=(NEW, OLD, OLD)).position
    assert with_batch({}, begun, begun.turn(Direction.BACKWARD, NOW), 50.0) == {}


def test_no_estimate_while_a_person_is_waited_for_and_one_while_a_window_is():
    picture = at("MoveBrokers", (Mode.KRAFT, Mode.MIGRATION))
    plain = decide(SMALL_PLAN, moving(), intent(), {}, NOW)

    def told(**verdicts: Verdict) -> float | None:
        judge = decide(SMALL_PLAN, moving(), intent(paused=True), {}, NOW).judged["Paused"]
        judged = {name: replace(judge, gate=name, verdict=found) for name, found in verdicts.items()}
        return remaining(picture, replace(plain, position=picture.position, judged=judged))

    assert told() == direction_seconds(picture)
    assert told(WithinWindow=wait("OutsideWindow", "closed")) == direction_seconds(picture)
    assert told(Approval=wait("AwaitingApproval", "held")) is None
    assert told(Paused=wait("Paused", "paused")) is None


def test_every_restart_on_the_way_forward_is_asked_for_a_window_and_none_on_the_way_back():
    for step in PLAN.steps:
        forward = {rollout.mode: WITHIN_WINDOW in rollout.before for rollout in step.forward.rollouts}
        assert all(forward.values()), step.name
        later = step.name in ("Soak", "HandOver", "ReleaseZooKeeper")
        assert WITHIN_WINDOW in step.forward.enter or later or not forward, step.name
        back = step.back.rollouts if step.back is not None else ()
        assert not any(WITHIN_WINDOW in rollout.before for rollout in back), step.name
