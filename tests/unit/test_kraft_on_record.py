"""What of a record is believed, by the metadata log, the claims and the modes: a status is no order."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from switchover.answers.observed import Unknown
from switchover.api.kafka_migration import NodeMode as Mode
from switchover.api.status import Verdict as Outcome
from switchover.cluster.door import edits, mount
from switchover.cluster.gates.on_record import (
    RECORD_HOLDS,
    check_finalize_begun,
    check_hand_over_begun,
    check_record_holds,
)
from switchover.cluster.picture import Picture
from switchover.cluster.plan import PLAN
from switchover.cluster.rollback import give_back, remove_controllers
from switchover.cluster.step import ClusterStep
from switchover.engine.plan import decide
from switchover.engine.position import NodeRecord
from switchover.metadata.parity import MigrationState
from unit.pictures import (
    ACTIVE,
    CONTROLLERS,
    NOW,
    POST,
    PRE,
    UID,
    answer,
    moment,
    spoil,
    spoil_each,
    spoil_workload,
    stateful_set,
    value,
    with_fact,
    workload_of,
)
from unit.small_plan import BACKWARD, FORWARD, intent

EXPECTED = {step.name: step.expected for step in PLAN.steps if isinstance(step, ClusterStep)}
NAMES = {PRE: "PRE", ACTIVE: "MIGRATION", POST: "POST"}
BROKERS_IN = {
    **dict.fromkeys(("Rehearse", "UpgradeBrokers", "RaiseProtocolVersion", "ProvisionControllers"), Mode.ZOOKEEPER),
    "EnableMigration": (Mode.MIGRATION, Mode.ZOOKEEPER), "CopyMetadata": Mode.MIGRATION, "DualWrite": Mode.MIGRATION,
    "MoveBrokers": (Mode.KRAFT, Mode.MIGRATION),
    **dict.fromkeys(("Soak", "Finalize", "HandOver", "ReleaseZooKeeper"), Mode.KRAFT)}
WITHOUT_CONTROLLERS = ("Rehearse", "UpgradeBrokers", "RaiseProtocolVersion")
AT_THE_END = ("HandOver", "ReleaseZooKeeper")


def at(step: str, state: MigrationState | None = None, opened: float | None = NOW - 60) -> Picture:
    """A healthy moment of a step, with the metadata log in this state."""
    healthy = moment(step, BROKERS_IN[step], Mode.KRAFT_CONTROLLER if step in AT_THE_END else Mode.MIGRATION_CONTROLLER, (),
                     POST if step in AT_THE_END else ACTIVE if step in BELIEVED else PRE, opened=opened)
    if step in WITHOUT_CONTROLLERS:                    # they are on record still where a rollback was turned
        healthy = spoil(healthy, "kubernetes", controllers=None)
    return spoil(healthy, "log", migration_state=state or BELIEVED.get(step, {PRE}).copy().pop())


def back(picture: Picture) -> Picture:
    return picture.at(replace(picture.position, direction=BACKWARD))


def claimed_by(picture: Picture, uid: str) -> Picture:
    return spoil_workload(picture, claimed_by=uid)


BELIEVED = {
    "EnableMigration": {PRE}, "CopyMetadata": {PRE, ACTIVE}, "DualWrite": {ACTIVE}, "MoveBrokers": {ACTIVE},
    "Soak": {ACTIVE}, "Finalize": {ACTIVE}, "HandOver": {POST}, "ReleaseZooKeeper": {POST}}


# --- the metadata log ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("state", NAMES, ids=NAMES.get)
@pytest.mark.parametrize("step", BELIEVED)
def test_a_step_is_believed_only_in_a_log_that_the_steps_before_it_leave(step, state):
    found = check_record_holds(at(step, state, None))
    assert found.outcome is (Outcome.PASS if state in BELIEVED[step] else Outcome.FAIL)
    assert found.reason == ("Passed" if state in BELIEVED[step] else "RecordContradicted")


@pytest.mark.parametrize(("state", "outcome"), [(PRE, Outcome.FAIL), (ACTIVE, Outcome.PASS), (POST, Outcome.PASS)])
def test_while_it_finalizes_the_log_changes(state, outcome):
    assert check_record_holds(at("Finalize", state, NOW - 5)).outcome is outcome


@pytest.mark.parametrize("step", BELIEVED)
def test_after_finalize_a_log_that_cannot_be_read_proves_nothing(step):
    found = check_record_holds(with_fact(at(step), "log", Unknown("no controller answers")))
    assert found.outcome is (Outcome.UNKNOWN if BELIEVED[step] == {POST} else Outcome.PASS)


def test_every_step_rests_on_it():
    assert PLAN.rests_on == (RECORD_HOLDS,)
    assert {name: {*found.log} for name, found in EXPECTED.items() if found.log} == BELIEVED


# --- claims -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("step", "direction"), [
    (step.name, direction) for step in PLAN.steps[1:-2] for direction in (FORWARD, BACKWARD)
    if direction is FORWARD or step.back is not None])
def test_what_another_migration_has_claimed_is_not_touched_whatever_the_record_says(step, direction):
    """A restored record of an object of the same name: the claims are the earlier object's."""
    picture = claimed_by(at(step), "uid-of-an-earlier-object")
    picture = picture.at(replace(picture.position, direction=direction))
    decision = decide(PLAN, picture, intent(direction), {}, NOW)
    assert (decision.effects, decision.position) == ((), picture.position)
    assert decision.stalled is not None
    assert decision.stalled.verdict.reason == "RecordContradicted"
    assert "claimed by the migration with uid uid-of-an-earlier-object" in decision.stalled.verdict.message


@pytest.mark.parametrize("step", [step for step in BROKERS_IN if step not in AT_THE_END])
def test_a_step_that_none_reaches_without_a_claim_is_not_believed_without(step):
    found = check_record_holds(claimed_by(at(step), ""))
    assert found.outcome is (Outcome.FAIL if EXPECTED[step].claimed else Outcome.PASS)
    assert ("annotate statefulset kafka switchover.dev/claimed-by=" + UID in found.unblocks) == (EXPECTED[step].claimed)


@pytest.mark.parametrize("step", [step.name for step in PLAN.steps[1:] if step.back is not None])
def test_a_claim_that_was_lost_keeps_no_way_back_standing(step):
    assert check_record_holds(back(claimed_by(at(step), ""))).outcome is Outcome.PASS


def test_a_record_that_somebody_cleared_in_the_middle_is_not_a_new_beginning():
    picture = claimed_by(moment("Preflight"), UID)
    decision = decide(PLAN, picture, intent(), {}, NOW)
    assert decision.stalled is not None
    assert "Preflight, but StatefulSet kafka is claimed by this migration" in decision.stalled.verdict.message


@pytest.mark.parametrize("step", ["Preflight", "EnableMigration", "MoveBrokers"])
def test_a_stateful_set_that_is_not_there_contradicts_nothing(step):
    """Its name may be misspelt, which Preflight says."""
    picture = at(step, ACTIVE) if step == "MoveBrokers" else at(step, PRE) if EXPECTED[step].brokers else moment(step)
    assert check_record_holds(spoil(picture, "kubernetes", brokers={"kafka": None})).outcome is Outcome.PASS


@pytest.mark.parametrize("step", WITHOUT_CONTROLLERS)
def test_nothing_is_claimed_while_no_node_is_on_record(step):
    """A record of before the nodes, put back later: the brokers' nodes would be put on record as they were at first."""
    picture = moment(step, opened=None)
    assert not picture.position.nodes
    assert check_record_holds(picture).outcome is Outcome.PASS
    found = check_record_holds(claimed_by(picture, UID))
    assert (found.outcome, found.reason, found.subject) == (Outcome.FAIL, "RecordContradicted", "StatefulSet kafka")


# --- controllers --------------------------------------------------------------------------------------------------------


def with_controllers(picture: Picture) -> Picture:
    return spoil(picture, "kubernetes", controllers=value(at("ProvisionControllers").facts.kubernetes).controllers)


@pytest.mark.parametrize("direction", [FORWARD, BACKWARD])
@pytest.mark.parametrize("step", [*WITHOUT_CONTROLLERS, "ProvisionControllers"])
def test_controllers_that_are_there_contradict_a_record_of_before_them(step, direction):
    """It went on as far as ProvisionControllers, where Residue named the live quorum's volumes, to be deleted."""
    before = moment(step, opened=None)
    before = before.at(replace(before.position, direction=direction))
    assert check_record_holds(before).outcome is Outcome.PASS
    picture = with_controllers(before)
    decision = decide(PLAN, picture, intent(direction), {}, NOW)
    assert (decision.effects, decision.position) == ((), picture.position)
    assert decision.stalled is not None
    found = decision.stalled.verdict
    assert (found.reason, found.subject) == ("RecordContradicted", "StatefulSet kafka-controller")


@pytest.mark.parametrize("direction", [FORWARD, BACKWARD])
@pytest.mark.parametrize("step", WITHOUT_CONTROLLERS)
def test_a_record_of_a_rollback_before_contradicts_controllers_of_now(step, direction):
    """Every node is on record still, and brokers would be taken back from above their controllers."""
    picture = at(step) if direction is FORWARD else back(at(step))
    assert check_record_holds(picture).outcome is Outcome.PASS
    found = check_record_holds(with_controllers(picture))
    assert (found.outcome, found.subject) == (Outcome.FAIL, "StatefulSet kafka-controller")


# --- modes --------------------------------------------------------------------------------------------------------------


def assigned(picture: Picture, name: str, mode: str) -> Picture:
    nodes = {**picture.position.nodes, name: replace(picture.position.nodes[name], assigned=mode)}
    return picture.at(replace(picture.position, nodes=nodes))


@pytest.mark.parametrize("mode", list(Mode))
@pytest.mark.parametrize("name", ["kafka-1", "kafka-controller-1"])
@pytest.mark.parametrize("step", [name for name, found in EXPECTED.items() if found.brokers])
def test_no_node_is_assigned_a_mode_to_which_its_step_brings_none(step, name, mode):
    picture = assigned(at(step), name, mode)
    moving = replace(picture.position.nodes[name], settled=False)             # as in its batch: its edits may be of before
    found = check_record_holds(picture.at(picture.position.with_node(name, moving)))
    expected = EXPECTED[step]
    allowed = mode in (expected.controllers if name in CONTROLLERS else expected.brokers)
    assert (found.outcome is Outcome.PASS) == allowed, found
    assert allowed or name in found.message


def test_a_record_without_brokers_stops_no_controllers():
    picture = at("Soak")
    nodes = {name: record for name, record in picture.position.nodes.items() if name in CONTROLLERS}
    found = check_record_holds(picture.at(replace(picture.position, nodes=nodes)))
    assert (found.outcome, found.subject) == (Outcome.FAIL, "status.nodes")


def test_brokers_that_the_record_has_on_kraft_and_are_not_keep_the_next_batch_from_its_files():
    """The files of all brokers are written with a batch: a crash would bring such a one back on KRaft, without a gate."""
    picture = assigned(moment("MoveBrokers", Mode.MIGRATION, Mode.MIGRATION_CONTROLLER, (), ACTIVE), "kafka-0", Mode.KRAFT)
    decision = decide(PLAN, picture, intent(), {}, NOW)
    assert (decision.effects, decision.position) == ((), picture.position)
    assert decision.judged["ModesOnRecord"].verdict.subject == "kafka-0"


# --- the way back -------------------------------------------------------------------------------------------------------

BEHIND_KRAFT = (
    "UpgradeBrokers", "RaiseProtocolVersion", "ProvisionControllers", "EnableMigration", "CopyMetadata", "DualWrite")


@pytest.mark.parametrize("step", BROKERS_IN)
def test_nothing_is_taken_back_in_a_cluster_that_is_finalized(step):
    picture = back(spoil(at(step), "log", migration_state=POST))
    found = check_record_holds(picture)
    assert (found.outcome, found.reason) == (Outcome.FAIL, "RecordContradicted")


SEEN_ON_KRAFT: dict[str, Callable[[Picture], Picture]] = {
    "by its answer": lambda picture: spoil_each(
        with_fact(picture, "log", Unknown("no controller answers")), "answers", lambda _: answer(Mode.KRAFT), 1),
    "by the metadata log": lambda picture: spoil(picture, "log", brokers={
        **value(picture.facts.log).brokers, 1: replace(value(moment(
            "Soak", Mode.KRAFT, Mode.MIGRATION_CONTROLLER, (), ACTIVE).facts.log).brokers[1], migrating_zk=False)}),
}


@pytest.mark.parametrize("seen", SEEN_ON_KRAFT.values(), ids=SEEN_ON_KRAFT)
@pytest.mark.parametrize("step", BEHIND_KRAFT)
def test_no_controller_stops_under_a_broker_on_kraft(step, seen):
    """In Soak somebody writes direction Backward, this step, and every broker in a mode that it may have."""
    picture = back(seen(at(step, ACTIVE)))
    found = check_record_holds(picture)
    assert (found.outcome, found.subject) == (Outcome.FAIL, "broker 1")
    decision = decide(PLAN, picture, intent(BACKWARD), {}, NOW)
    assert (decision.effects, decision.position) == ((), picture.position)


def test_the_controllers_of_a_finalized_cluster_are_not_removed_by_a_record():
    """ZooKeeper's nodes are gone: without the metadata log and the brokers it looks as if there never was a claim."""
    picture = moment("ReleaseZooKeeper", Mode.KRAFT, Mode.KRAFT_CONTROLLER, (), POST)
    picture = spoil(picture, "zookeeper", controller=replace(value(picture.facts.zookeeper).controller, ephemeral=True))
    forged = back(picture.at(replace(picture.position, step="ProvisionControllers")))
    assert remove_controllers(forged), "so it would have been"
    assert give_back(forged), "so it would have been"
    assert decide(PLAN, forged, intent(BACKWARD), {}, NOW).effects == ()


@pytest.mark.parametrize("step", [step.name for step in PLAN.steps if step.back is not None])
def test_the_way_back_as_it_is_walked_is_believed(step):
    picture = moment("Preflight") if step == "Preflight" else at(step)
    assert check_record_holds(back(picture)).outcome is Outcome.PASS


def test_a_record_that_is_not_believed_is_no_failure_that_takes_steps_back():
    picture = spoil(at("Soak"), "log", migration_state=PRE)
    decision = decide(PLAN, picture, replace(intent(), undo_failures=True), {}, NOW)
    assert decision.stalled is not None
    assert decision.position == picture.position


# --- the ends -----------------------------------------------------------------------------------------------------------


def finished(picture: Picture) -> Picture:
    return picture.at(replace(picture.position, finished=True))


def test_an_end_on_record_is_looked_at():
    holds = decide(PLAN, finished(at("ReleaseZooKeeper")), intent(), {}, NOW)
    assert [item.open for item in holds.judged.values()] == [True]
    forged = decide(PLAN, finished(at("ReleaseZooKeeper", ACTIVE)), intent(), {}, NOW)
    assert forged.stalled is not None
    assert forged.stalled.verdict.reason == "RecordContradicted"


def test_a_rollback_that_left_its_claims_is_none():
    rolled_back = finished(back(moment("Preflight")))
    assert decide(PLAN, rolled_back, intent(BACKWARD), {}, NOW).stalled is None
    forged = decide(PLAN, claimed_by(rolled_back, UID), intent(BACKWARD), {}, NOW)
    assert forged.stalled is not None
    assert forged.stalled.verdict.reason == "RecordContradicted"


def test_what_others_do_to_a_cluster_after_a_rollback_contradicts_nothing():
    since = moment("Soak", Mode.KRAFT, Mode.MIGRATION_CONTROLLER, (), ACTIVE)
    since = claimed_by(since, "uid-of-the-next-migration")
    rolled_back = since.at(replace(since.position, step="Preflight", direction=BACKWARD, finished=True, nodes={}))
    assert check_record_holds(rolled_back).outcome is Outcome.PASS


# --- a step that was let begin ------------------------------------------------------------------------------------------


def test_finalize_that_somebody_opened_in_the_status_waits_for_its_approval():
    """progress.openTime of Finalize, written by hand: no approval was given, and nothing of it was done."""
    forged = with_controller_files(moment("Finalize", Mode.KRAFT, Mode.MIGRATION_CONTROLLER, (), ACTIVE, opened=NOW - 5))
    decision = decide(PLAN, forged, intent(), {}, NOW)
    assert (decision.effects, decision.position.opened) == ((), None)
    assert "waits again" in decision.note
    approved = decide(PLAN, forged, replace(intent(), approved=frozenset({"Finalize"})), {}, NOW)
    assert approved.position.opened is not None


def test_a_batch_of_it_that_somebody_wrote_goes_with_it():
    forged = with_controller_files(moment("Finalize", Mode.KRAFT, Mode.MIGRATION_CONTROLLER, (), ACTIVE, opened=NOW - 5))
    position = forged.position.with_batch(["kafka-controller-1"], Mode.KRAFT_CONTROLLER, NOW - 3)
    decision = decide(PLAN, forged.at(position), intent(), {}, NOW)
    assert (decision.position.opened, decision.position.batch) == (None, None)
    assert decision.position.nodes["kafka-controller-1"] == NodeRecord(3001, Mode.MIGRATION_CONTROLLER)


def with_controller_files(picture: Picture, *finalized: str) -> Picture:
    """Every controller's edits as ProvisionControllers wrote them, but of these."""
    migrating, others = ("mode P", "set zookeeper.metadata.migration.enable=true"), ("mode F", "drop zookeeper.")
    files = {name: edits.written(others if name in finalized else migrating) for name in CONTROLLERS}
    state = value(picture.facts.kubernetes)
    script = {mount.SCRIPT_KEY: "exit 0\n"}
    return spoil(picture, "kubernetes", node_files={**state.node_files, "kafka-controller": {**script, **files}})


BEGUN = {
    "a file": lambda picture: with_controller_files(picture, "kafka-controller-1"),
    "a controller": lambda picture: spoil_each(with_controller_files(picture), "answers",
                                               lambda _: answer(Mode.KRAFT_CONTROLLER), 3001),
    "the log": lambda picture: spoil(with_controller_files(picture), "log", migration_state=POST),
}


@pytest.mark.parametrize("seen", BEGUN.values(), ids=BEGUN)
def test_finalize_that_has_begun_goes_on_without_its_approval(seen):
    picture = seen(moment("Finalize", Mode.KRAFT, Mode.MIGRATION_CONTROLLER, (), ACTIVE, opened=NOW - 5))
    assert check_finalize_begun(picture).outcome is Outcome.PASS
    assert decide(PLAN, picture, intent(), {}, NOW).position.opened is not None


def test_what_cannot_be_seen_takes_no_opening_back():
    blind = with_fact(moment("Finalize", Mode.KRAFT, Mode.MIGRATION_CONTROLLER, (), ACTIVE, opened=NOW - 5), "kubernetes",
                      Unknown("no answer"))
    assert check_finalize_begun(blind).outcome is Outcome.UNKNOWN
    assert decide(PLAN, blind, intent(), {}, NOW).position.opened is not None


def test_hand_over_has_begun_with_the_first_strategy_or_claim_that_is_back():
    held = moment("HandOver", Mode.KRAFT, Mode.KRAFT_CONTROLLER, (), POST)
    assert check_hand_over_begun(held).outcome is Outcome.WAIT
    assert decide(PLAN, held, intent(FORWARD), {}, NOW).position.opened is None
    original = value(held.facts.kubernetes).originals["kafka"]
    assert check_hand_over_begun(spoil_workload(held, update_strategy=original["updateStrategy"])).outcome is Outcome.PASS
    assert check_hand_over_begun(claimed_by(held, "")).outcome is Outcome.PASS
    theirs = stateful_set()["spec"]["template"] | {"metadata": {"labels": {"app": "kafka"}, "annotations": {"of": "KRaft"}}}
    brought = spoil_workload(held, template=theirs, update_revision="theirs")
    assert check_hand_over_begun(brought).outcome is Outcome.WAIT, "no broker runs by it yet"
    first = {name: replace(pod, revision="theirs" if name == "kafka-1" else pod.revision)
             for name, pod in workload_of(held).pods.items()}
    assert check_hand_over_begun(spoil_workload(brought, pods=first)).outcome is Outcome.PASS


# --- edits --------------------------------------------------------------------------------------------------------------


def older(step: str, name: str, mode: Mode, **record: bool) -> Picture:
    """The record of this node is one of before, when it was in another mode than its edits have."""
    picture = at(step)
    written = edits.written(("mode C" if step == "MoveBrokers" else "mode B",))
    files = {**value(picture.facts.kubernetes).node_files, "kafka": {name: written}}
    picture = spoil(picture, "kubernetes", node_files=files)
    return picture.at(picture.position.with_node(name, replace(picture.position.nodes[name], assigned=mode, **record)))


OLDER = [("MoveBrokers", "kafka-0", Mode.MIGRATION), ("EnableMigration", "kafka-0", Mode.ZOOKEEPER),
         ("CopyMetadata", "kafka-1", Mode.ZOOKEEPER_RAISED)]


@pytest.mark.parametrize(("step", "name", "mode"), OLDER)
def test_edits_that_are_ahead_of_the_record_are_not_taken_back(step, name, mode):
    """The record is one of before its batch, as a restore brings it. It would be obeyed: edits first, gates later."""
    picture = older(step, name, mode)
    found = check_record_holds(picture)
    assert (found.outcome, found.reason, found.subject) == (Outcome.FAIL, "RecordContradicted", name)
    decision = decide(PLAN, picture, intent(), {}, NOW)
    assert (decision.effects, decision.position) == ((), picture.position)
    assert f'"path":"/status/nodes/{[*picture.position.nodes].index(name)}/assigned"' in found.unblocks


@pytest.mark.parametrize(("step", "name", "mode"), OLDER)
def test_edits_alone_that_somebody_changed_are_written_again(step, name, mode):
    """The process is in the mode on record."""
    picture = older(step, name, mode)
    node = picture.position.nodes[name].node_id
    running = spoil_each(picture, "answers", lambda _: answer(Mode.ZOOKEEPER if mode != Mode.MIGRATION else mode), node)
    assert check_record_holds(running).outcome is Outcome.PASS


def test_a_node_of_a_batch_may_have_the_edits_of_either_mode():
    assert check_record_holds(older(*OLDER[0], settled=False)).outcome is Outcome.PASS


def moving_to_migration(runs: Mode) -> Picture:
    """The record has kafka-1 in a batch to Migration, as on a way forward; its edits are those of KRaft."""
    picture = at("CopyMetadata", ACTIVE)
    files = {**value(picture.facts.kubernetes).node_files, "kafka": {"kafka-1": edits.written(("mode C",))}}
    picture = spoil_each(spoil(picture, "kubernetes", node_files=files), "answers", lambda _: answer(runs), 1)
    return picture.at(picture.position.with_batch(["kafka-1"], Mode.MIGRATION, NOW - 3))


def test_a_node_of_an_older_batch_that_has_gone_further_is_not_taken_back():
    """Such a record was obeyed: the files of all brokers are written with a batch, and those of KRaft became Migration's."""
    picture = moving_to_migration(Mode.KRAFT)
    found = check_record_holds(picture)
    assert (found.outcome, found.reason, found.subject) == (Outcome.FAIL, "RecordContradicted", "kafka-1")
    assert decide(PLAN, picture, intent(), {}, NOW).effects == ()
    assert check_record_holds(picture.at(picture.position.as_rescue())).outcome is Outcome.PASS, "a restart in its own mode"


@pytest.mark.parametrize("runs", [Mode.ZOOKEEPER, Mode.MIGRATION])
def test_a_node_of_a_batch_that_is_no_further_gets_its_edits_again(runs):
    assert check_record_holds(moving_to_migration(runs)).outcome is Outcome.PASS


def test_a_node_that_does_not_answer_does_not_bear_an_older_record_out():
    silent = older(*OLDER[0])
    silent = with_fact(silent, "answers", {**silent.facts.answers, 1: Unknown("it does not answer")})
    assert check_record_holds(silent).outcome is Outcome.FAIL


def test_edits_that_no_pod_starts_by_say_nothing():
    """The template is the user's own again: what is left in the Secret is of before."""
    picture = older(*OLDER[0])
    theirs = stateful_set()["spec"]["template"]
    assert check_record_holds(spoil_workload(picture, template=theirs)).outcome is Outcome.PASS


@pytest.mark.parametrize("step", [*WITHOUT_CONTROLLERS, "ProvisionControllers"])
def test_no_controllers_are_made_beside_a_claim_of_kraft(step):
    """etcd was restored to before them: their pods are gone, and by a stale `/migration` new ones would delete topics."""
    picture = at(step, PRE)
    assert check_record_holds(picture).outcome is Outcome.PASS
    controller = replace(value(picture.facts.zookeeper).controller, ephemeral=False)
    claimed = spoil(picture, "zookeeper", controller=controller)
    assert (check_record_holds(claimed).outcome, check_record_holds(claimed).subject) == (Outcome.FAIL, "/controller")
    assert decide(PLAN, claimed, intent(), {}, NOW).effects == ()
    assert check_record_holds(back(claimed)).outcome is Outcome.PASS, "which gives it back"
