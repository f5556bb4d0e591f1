"""With which edits a broker was started, by its own marker."""

from switchover.answers.observed import Known
from switchover.api.kafka_migration import NodeMode
from switchover.api.status import Verdict as Outcome
from switchover.cluster.door import edits
from unit.kraft_gates import GATES, given_back, outcome, started, to_b, to_c
from unit.kraft_spoilers import shown
from unit.pictures import NOW, PRE, moment, spoil, value, with_fact


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
