"""Every gate of a KafkaMigration: it passes on a healthy picture of its moment, and is shut when blind.

What each finds wrong is in test_kraft_findings.py, what more a rule of one has to say in the file of its subject.
"""

from collections.abc import Callable
from dataclasses import fields, replace

import pytest

from switchover.api.kafka_migration import NodeMode
from switchover.api.status import Verdict as Outcome
from switchover.cluster.door import edits
from switchover.cluster.facts import Examination, Facts
from switchover.cluster.gates.dual_write import copy_timeout
from switchover.cluster.gates.parity import check_parity
from switchover.cluster.gates.quorum import check_controllers_ready, check_quorum_up
from switchover.cluster.picture import Picture
from switchover.engine.gate import Verdict
from switchover.engine.windows import utc
from switchover.kafka.node import Partition
from switchover.outside.observed import Known, Unknown
from switchover.partition import TopicPartition
from unit.judged_groups import Swept
from unit.kraft_gates import (
    GATES,
    MOMENTS,
    all_kraft,
    claimed,
    dual_write,
    given_back,
    outcome,
    started,
    stopping,
    to_b,
    to_c,
)
from unit.kraft_spoilers import (
    FORMATTED,
    NAMELESS,
    coming_up,
    dead,
    in_trouble,
    log,
    migration_node,
    parity,
    partition,
    pod,
    samples,
    shown,
    silent,
    sweep,
    versions,
    voter,
    with_log_unknown,
    written,
    zookeeper,
)
from unit.pictures import (
    ACTIVE,
    BROKERS,
    NOW,
    ORDERS,
    POST,
    PRE,
    moment,
    spec_of,
    spoil,
    spoil_each,
    spoil_pod,
    value,
    with_fact,
    workload_of,
)

BY_CLOCK_OR_SPEC = {
    "Soaked": "compares the clock with the record alone",
    "Retained": "compares the clock with the record alone",
    "BackupsTaken": "compares the spec with the record alone",
    "WindowsFit": "has nothing to compare while there are no windows",
    "ImageAllowed": "has nothing to compare while no image is named",
    "Addresses": "has nothing to compare while no credentials are named",
    "WithinWindow": "has nothing to compare while there are no windows",
}
"""Gates that observe nothing, so that nothing they need can be unknown."""

each_gate = pytest.mark.parametrize("name", sorted(GATES))


def test_every_gate_has_its_moment_here():
    assert MOMENTS.keys() == GATES.keys()


@each_gate
def test_a_gate_passes_on_a_healthy_picture(name):
    assert GATES[name].check(MOMENTS[name]()).outcome is Outcome.PASS


@each_gate
def test_a_gate_that_sees_nothing_does_not_pass(name):
    seen = GATES[name].check(replace(MOMENTS[name](), facts=Facts()))
    assert (seen.outcome is Outcome.PASS) == (name in BY_CLOCK_OR_SPEC)


READ: set[str] = set()
FACTS = {field.name for field in fields(Facts)} - {"examination"}
EXAMINED = {field.name for field in fields(Examination)}


class WatchedExamination(Examination):
    """Facts of Preflight alone that remember which of them were read."""

    def __getattribute__(self, fact: str) -> object:
        if fact in EXAMINED:
            READ.add(f"examination.{fact}")
        return super().__getattribute__(fact)


class Watched(Facts):
    """Facts that remember which of them were read."""

    def __getattribute__(self, fact: str) -> object:
        if fact in FACTS:
            READ.add(fact)
        return super().__getattribute__(fact)


def watched(facts: Facts) -> Facts:
    examination = WatchedExamination(**{fact: getattr(facts.examination, fact) for fact in EXAMINED})
    return Watched(**{fact: getattr(facts, fact) for fact in FACTS}, examination=examination)


def fact_of(picture: Picture, path: str) -> object:
    outer, _, inner = path.partition(".")
    found = getattr(picture.facts, outer)
    return getattr(found, inner) if inner else found


def without_fact(picture: Picture, path: str, observed: object) -> Picture:
    outer, _, inner = path.partition(".")
    return with_fact(picture, outer, replace(picture.facts.examination, **{inner: observed}) if inner else observed)


OUTWEIGHS = "identities"
"""What pods answer outweighs host names, and is not needed where these tell all (test_identity.py)."""
FINDS_REFUSALS_ALONE = "Readable"
"""What is unknown for another reason shuts the gates that need it, not this one."""


@pytest.mark.parametrize("name", sorted(GATES.keys() - {FINDS_REFUSALS_ALONE}))
def test_a_gate_is_shut_as_soon_as_anything_it_read_is_unknown(name):
    picture = MOMENTS[name]()
    READ.clear()
    GATES[name].check(replace(picture, facts=watched(picture.facts)))
    assert bool(READ) == (name not in BY_CLOCK_OR_SPEC)
    for fact in sorted(READ - {OUTWEIGHS}):
        observed = fact_of(picture, fact)
        several = isinstance(observed, dict)
        blind = [dict.fromkeys(observed, Unknown("no answer")), {}] if several else [Unknown("no answer")]
        for unknown in blind:
            seen = GATES[name].check(without_fact(picture, fact, unknown))
            assert seen.outcome in (Outcome.UNKNOWN, Outcome.WAIT), f"{fact} unknown: {seen}"
            assert seen.message


@each_gate
def test_a_gate_asks_for_at_least_one_sample_and_no_negative_time(name):
    picture = MOMENTS[name]()
    gate = GATES[name]
    assert gate.samples(picture) >= 1
    assert gate.hold(picture) >= 0
    assert gate.patience is None or gate.patience(picture) > 0


# --- what a gate must not mind ------------------------------------------------------------------------------------------


def test_whoever_is_back_in_mode_zookeeper_has_no_marker():
    assert outcome("StartedByItsEdits", given_back()) is Outcome.PASS


def test_the_edits_of_every_broker_of_a_batch_are_asked_for():
    two = started(moment("EnableMigration", (NodeMode.MIGRATION, NodeMode.MIGRATION, NodeMode.ZOOKEEPER),
                         NodeMode.MIGRATION_CONTROLLER, ("kafka-0", "kafka-1"), PRE))
    assert outcome("StartedByItsEdits", two) is Outcome.PASS
    verdict = GATES["StartedByItsEdits"].check(with_fact(two, "markers", {**two.facts.markers, 1: Known("", NOW)}))
    assert (verdict.reason, verdict.subject) == ("DoorNotPassed", "kafka-1")


def test_edits_of_another_mode_have_another_marker():
    """A broker that still runs with the edits of Migration is not in KRaft, whatever else it answers."""
    of_b = edits.marker_of(value(started(to_b()).facts.kubernetes).node_files["kafka"]["kafka-0"])
    verdict = GATES["StartedByItsEdits"].check(shown(of_b)(started(to_c())))
    assert (verdict.reason, verdict.observed) == ("StartedByOtherEdits", of_b)
    assert verdict.threshold.startswith("switchover.C.")
    assert verdict.unblocks == "kubectl --namespace kafka delete pod kafka-0"


def test_a_door_that_was_not_passed_is_told_by_its_container_and_script():
    verdict = GATES["StartedByItsEdits"].check(shown("")(started(to_b())))
    assert "not started by /opt/kafka/bin/kafka-server-start.sh of container kafka" in verdict.message
    assert verdict.unblocks.startswith("roll back (spec.desiredState: RolledBack), set spec.brokers[].start to the script")
    unsure = spoil(shown("")(started(to_b())), "kubernetes", originals={"kafka": {"template": {}, "updateStrategy": {}}})
    assert "not started by its start script" in GATES["StartedByItsEdits"].check(unsure).message


def test_a_restarted_broker_is_no_witness_for_itself():
    blind = silent("views", 0)
    assert outcome("AllInSync", blind(to_b())) is Outcome.PASS
    assert outcome("RestartIsSafe", partition(0, isr=(0,))(to_b())) is Outcome.PASS
    assert outcome("AllInSync", partition(1, isr=(1, 2))(to_b())) is Outcome.WAIT, "it says in sync, another says not"


def test_a_restart_is_safe_when_the_batch_itself_is_out_of_sync():
    assert outcome("RestartIsSafe", partition(1, 2, isr=(1, 2))(to_b())) is Outcome.PASS


def test_a_whole_batch_is_taken_away_at_once_when_a_restart_is_judged():
    two = moment("EnableMigration", (NodeMode.MIGRATION, NodeMode.MIGRATION, NodeMode.ZOOKEEPER),
                 NodeMode.MIGRATION_CONTROLLER, ("kafka-0", "kafka-1"), PRE)
    assert GATES["RestartIsSafe"].check(two).reason == "WouldLoseInSyncReplicas"


def test_an_accepted_topic_may_lose_its_minimum():
    accepted = moment("EnableMigration", (NodeMode.MIGRATION, NodeMode.ZOOKEEPER), NodeMode.MIGRATION_CONTROLLER,
                      ("kafka-0",), PRE, gates={"acceptedTopics": ["orders"]})
    assert outcome("RestartIsSafe", partition(1, isr=(0, 1))(accepted)) is Outcome.PASS


def test_a_partition_on_other_brokers_does_not_hold_a_restart_back():
    elsewhere = Partition("orders", 0, 1, (1, 2), (1,))
    shrunk = spoil_each(to_b(), "views", lambda view: replace(view, partitions=(elsewhere,)))
    assert outcome("RestartIsSafe", shrunk) is Outcome.PASS


def test_a_broker_in_mode_kraft_must_have_left_zookeeper():
    assert outcome("MovedBroker", to_c()) is Outcome.PASS
    stays = zookeeper(brokers={0: {}, 1: {}, 2: {}})(to_c())
    assert GATES["MovedBroker"].check(stays).reason == "ZooKeeperRegistration"


def test_before_the_claim_there_is_no_copy_to_watch_for():
    assert outcome("CopyFollowsClaim", to_b()) is Outcome.PASS


def test_the_watchdog_waits_longer_for_a_larger_cluster():
    picture = claimed()
    many = tuple(Partition("orders", index, 0, (0, 1, 2), (0, 1, 2)) for index in range(5000))
    large = spoil_each(picture, "views", lambda view: replace(view, partitions=many))
    assert copy_timeout(large) - copy_timeout(picture) == pytest.approx(5, abs=0.01)


def test_dual_write_wants_at_least_five_samples_and_the_quorum_its_time():
    picture = moment("DualWrite", NodeMode.MIGRATION, NodeMode.MIGRATION_CONTROLLER, (), ACTIVE,
                     gates={"stableSamples": 1, "quorumStableSeconds": 17})
    assert GATES["DualWrite"].samples(picture) == 5
    assert GATES["QuorumUp"].hold(picture) == 17.0


def test_after_a_change_of_leader_nobody_may_be_fenced_for_longer_than_a_brokers_session():
    picture = all_kraft()
    assert GATES["NobodyFencedForLong"].hold(picture) > picture.spec.gates.broker_session_timeout_seconds


def test_a_group_with_nothing_to_commit_is_healthy():
    idle = samples(sweep(300, 99, 99), sweep(0, 99, 99))
    assert outcome("GroupsHealthy", idle(to_b())) is Outcome.PASS


def test_a_group_stands_still_only_since_there_is_something_to_commit():
    fresh = samples(sweep(300, 99, 99), sweep(10, 99, 100), sweep(0, 99, 105))
    assert outcome("GroupsHealthy", fresh(to_b())) is Outcome.PASS


def test_an_empty_partition_never_committed_does_not_make_a_group_unhealthy():
    partly = Swept(0, {ORDERS: (99, 100, 0), TopicPartition("orders", 1): (None, 0, 0)})
    assert outcome("GroupsHealthy", samples(partly)(to_b())) is Outcome.PASS


@pytest.mark.parametrize("hour", [-3600, 3600])
def test_zookeepers_clock_makes_no_driver_dead_or_alive(hour: float):
    """The attack of the security review: an hour ahead made a dead driver fresh, an hour behind a live one dead."""
    clock = migration_node(mtime=NOW + hour)
    assert GATES["DriverAlive"].check(written(NOW - 60)(clock(dual_write()))).reason == "DualWriteStuck"
    assert outcome("DriverAlive", written(NOW - 1)(clock(dual_write()))) is Outcome.PASS


def test_without_named_groups_there_is_nothing_to_watch():
    none = replace(to_b(), spec=spec_of(gates={}))
    assert outcome("GroupsHealthy", none) is Outcome.PASS


def test_what_kraft_never_accepted_cannot_be_missing_in_zookeeper():
    unclaimed = moment("EnableMigration", (NodeMode.MIGRATION, NodeMode.MIGRATION, NodeMode.ZOOKEEPER),
                       NodeMode.MIGRATION_CONTROLLER, (), PRE)
    assert outcome("WrittenBack", with_log_unknown(unclaimed)) is Outcome.PASS
    assert outcome("WrittenBack", with_log_unknown(migration_node(offset=-1)(dual_write()))) is Outcome.PASS
    stale = migration_node(offset=9_999)(log(migration_state=PRE)(dual_write()))
    assert outcome("WrittenBack", stale) is Outcome.PASS


def test_controllers_that_died_for_good_do_not_lock_the_way_back():
    assert outcome("WrittenBack", dead(dual_write())) is Outcome.PASS


def test_partitions_that_kraft_never_changed_cannot_be_behind():
    unread = versions(None)
    one_left = moment("EnableMigration", (NodeMode.MIGRATION, NodeMode.MIGRATION, NodeMode.ZOOKEEPER),
                      NodeMode.MIGRATION_CONTROLLER, (), PRE)
    assert outcome("PartitionVersions", unread(one_left)) is Outcome.PASS
    assert outcome("PartitionVersions", unread(migration_node(offset=-1)(dual_write()))) is Outcome.PASS
    stale = migration_node(offset=9_999)(log(migration_state=PRE)(dual_write()))
    assert outcome("PartitionVersions", unread(stale)) is Outcome.PASS


def test_once_controllers_stop_or_are_dead_nobody_can_tell_what_is_behind():
    assert outcome("PartitionVersions", versions(None)(dead(dual_write()))) is Outcome.PASS
    assert outcome("PartitionVersions", versions(None)(stopping())) is Outcome.UNKNOWN
    evicted = stopping().position.with_node("kafka-controller-1", replace(
        stopping().position.nodes["kafka-controller-1"], evictions=1))
    assert outcome("PartitionVersions", versions(None)(stopping().at(evicted))) is Outcome.PASS


def test_a_broker_that_is_down_cannot_hang_and_need_not_name_the_controller():
    broken = spoil_pod(silent("views", 0)(given_back()), "kafka-0", ready=False)
    assert outcome("ZooKeeperRules", broken) is Outcome.PASS
    other = spoil_pod(silent("views", 1)(given_back()), "kafka-1", ready=False)
    assert GATES["ZooKeeperRules"].check(other).reason == "BrokerSilent", "it is not the one that is replaced now"


def test_six_answers_in_a_row_are_wanted_before_a_broker_is_stopped():
    assert GATES["ZooKeeperRules"].samples(given_back()) == 6


def test_all_brokers_of_the_demo_are_in_these_pictures():
    assert set(BROKERS) == set(workload_of(to_b()).pods)


def test_a_broker_on_plain_zookeeper_that_has_not_started_since_we_ask_needs_no_report():
    picture = pod("kafka-1", disks=None)(to_b())
    for name in ("DisksAllowRollback", "TopicIdsOnDisk"):
        assert outcome(name, picture) is Outcome.PASS
        assert outcome(name, silent("answers", 1)(picture)) is Outcome.UNKNOWN


def test_what_the_disks_tell_names_directory_and_cure():
    formatted = GATES["DisksAllowRollback"].check(pod("kafka-0", disks=FORMATTED)(to_b()))
    assert "/var/lib/kafka/data-2" in formatted.message
    assert "kubectl delete pod kafka-0" in formatted.unblocks
    nameless = GATES["TopicIdsOnDisk"].check(pod("kafka-0", disks=NAMELESS)(to_b()))
    assert "/var/lib/kafka/data/orders-0" in nameless.message
    assert "kubectl delete pod kafka-0" in nameless.unblocks


# --- who changed a template back ----------------------------------------------------------------------------------------


def test_the_controller_that_is_to_restart_for_a_difference_is_named() -> None:
    differing = parity(difference=True)(moment("Soak"))
    leader = value(differing.facts.quorum).leader_id
    found = check_parity(differing)
    assert found.unblocks.endswith(f"kubectl --namespace kafka delete pod kafka-controller-{leader - 3000}")
    nobody = with_fact(differing, "quorum", Unknown("no controller leads"))
    assert check_parity(nobody).unblocks.endswith("delete the pod of the leading controller, once one leads")


def test_of_several_controllers_the_one_in_trouble_is_told_and_the_others_are_counted() -> None:
    late = coming_up("kafka-controller-0", "kafka-controller-1")(in_trouble("kafka-controller-2")(moment(
        "ProvisionControllers", NodeMode.ZOOKEEPER, NodeMode.MIGRATION_CONTROLLER, state=PRE)))
    told = check_quorum_up(late)
    assert told.message.startswith("pod kafka-controller-2 ")
    assert told.unblocks == "kubectl --namespace kafka logs kafka-controller-2 says more"
    early = check_quorum_up(coming_up("kafka-controller-0", "kafka-controller-1")(moment(
        "ProvisionControllers", NodeMode.ZOOKEEPER, NodeMode.MIGRATION_CONTROLLER, state=PRE)))
    assert early.message == (f"pod kafka-controller-0 runs its init container wait since {utc(NOW - 5)}; 1 more does not"
                             " come up")


def test_a_voter_is_judged_by_when_the_leader_was_asked():
    """With ZooKeeper gone a pass takes 5 s: every other one found each voter silent, and the gate never held for 10 s."""
    released = moment("ReleaseZooKeeper", NodeMode.KRAFT, NodeMode.KRAFT_CONTROLLER, (), POST)
    fetched = voter(3002, last_fetch_ms=int((NOW - 1) * 1000))(released)
    slow = replace(fetched, now=NOW + 5)
    assert check_quorum_up(slow).outcome is Outcome.PASS
    later = replace(slow, facts=replace(slow.facts, quorum=Known(value(slow.facts.quorum), NOW + 3)))
    assert check_quorum_up(later).reason == "VoterBehind"


def test_of_a_voter_that_is_behind_since_its_pod_is_down_the_pod_is_told() -> None:
    def behind(change: Callable[[Picture], Picture]) -> Verdict:
        picture = moment("ProvisionControllers", NodeMode.ZOOKEEPER, NodeMode.MIGRATION_CONTROLLER, state=PRE)
        seen = picture.facts.quorum, picture.facts.log
        picture = with_fact(with_fact(change(picture), "quorum", seen[0]), "log", seen[1])
        return check_quorum_up(voter(3001, last_fetch_ms=int((NOW - 60) * 1000))(picture))

    crashed, starting = behind(in_trouble("kafka-controller-1")), behind(coming_up("kafka-controller-1"))
    assert crashed.reason == starting.reason == "VoterBehind"
    assert crashed.message == ("controller 3001 does not follow the leader: pod kafka-controller-1 runs and is in its mode,"
                               " and its container is not Ready: container kafka: CrashLoopBackOff")
    assert crashed.unblocks == "kubectl --namespace kafka logs kafka-controller-1 says more"
    assert "runs its init container wait since" in starting.message
    assert starting.unblocks == "it catches up"
    assert behind(lambda picture: picture).message == "controller 3001 does not follow the leader"


def test_below_3_7_controllers_do_not_register_and_say_themselves_that_they_are_ready() -> None:
    old = spoil(moment("ProvisionControllers", NodeMode.ZOOKEEPER, NodeMode.MIGRATION_CONTROLLER, state=PRE), "log",
                metadata_version=14, controllers={})
    assert check_controllers_ready(old).outcome is Outcome.PASS
    flagless = spoil_each(old, "answers", lambda told: replace(told, zk_migration_ready=False))
    assert check_controllers_ready(flagless).reason == "ControllerNotReady"
    assert check_controllers_ready(spoil(old, "log", metadata_version=19)).reason == "ControllerNotReady"
