"""Whether the quorum is up and its controllers are ready: who is behind, since when, and which pod is told as the cause."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from switchover.answers.observed import Known
from switchover.api.kafka_migration import NodeMode
from switchover.api.status import Verdict as Outcome
from switchover.cluster.gates.quorum import CONTROLLERS_READY, QUORUM_UP
from switchover.cluster.picture import Picture
from switchover.engine.gate import Verdict
from switchover.engine.windows import utc
from unit.kraft_spoilers import coming_up, in_trouble, voter
from unit.pictures import NOW, POST, PRE, moment, spoil, spoil_each, value, with_fact
from unit.small_plan import BACKWARD, FORWARD


def test_of_several_controllers_the_one_in_trouble_is_told_and_the_others_are_counted() -> None:
    late = coming_up("kafka-controller-0", "kafka-controller-1")(in_trouble("kafka-controller-2")(moment(
        "ProvisionControllers", NodeMode.ZOOKEEPER, NodeMode.MIGRATION_CONTROLLER, state=PRE)))
    told = QUORUM_UP.check(late)
    assert told.message.startswith("pod kafka-controller-2 ")
    assert told.unblocks.startswith("find out why: kubectl --namespace kafka logs kafka-controller-2")
    early = QUORUM_UP.check(coming_up("kafka-controller-0", "kafka-controller-1")(moment(
        "ProvisionControllers", NodeMode.ZOOKEEPER, NodeMode.MIGRATION_CONTROLLER, state=PRE)))
    assert early.message == (f"pod kafka-controller-0 runs its init container wait since {utc(NOW - 5)}; 1 more does not"
                             " come up")


def test_a_voter_is_judged_by_when_the_leader_was_asked():
    """With ZooKeeper gone a pass takes 5 s: every other one found each voter silent, and the gate never held for 10 s."""
    released = moment("ReleaseZooKeeper", NodeMode.KRAFT, NodeMode.KRAFT_CONTROLLER, (), POST)
    fetched = voter(3002, last_fetch_ms=int((NOW - 1) * 1000))(released)
    slow = replace(fetched, now=NOW + 5)
    assert QUORUM_UP.check(slow).outcome is Outcome.PASS
    later = replace(slow, facts=replace(slow.facts, quorum=Known(value(slow.facts.quorum), NOW + 3)))
    assert QUORUM_UP.check(later).reason == "VoterBehind"


def test_of_a_voter_that_is_behind_since_its_pod_is_down_the_pod_is_told() -> None:
    def behind(change: Callable[[Picture], Picture]) -> Verdict:
        picture = moment("ProvisionControllers", NodeMode.ZOOKEEPER, NodeMode.MIGRATION_CONTROLLER, state=PRE)
        seen = picture.facts.quorum, picture.facts.log
        picture = with_fact(with_fact(change(picture), "quorum", seen[0]), "log", seen[1])
        return QUORUM_UP.check(voter(3001, last_fetch_ms=int((NOW - 60) * 1000))(picture))

    crashed, starting = behind(in_trouble("kafka-controller-1")), behind(coming_up("kafka-controller-1"))
    assert crashed.reason == starting.reason == "VoterBehind"
    assert crashed.message == ("controller 3001 does not follow the leader: pod kafka-controller-1 runs in its mode, but"
                               " its container is not Ready: container kafka: CrashLoopBackOff")
    assert crashed.unblocks == "find out why: kubectl --namespace kafka logs kafka-controller-1"
    assert "runs its init container wait since" in starting.message
    assert starting.unblocks == "wait until it has caught up"
    assert behind(lambda picture: picture).message == "controller 3001 does not follow the leader"


def test_below_3_7_controllers_do_not_register_and_say_themselves_that_they_are_ready() -> None:
    old = spoil(moment("ProvisionControllers", NodeMode.ZOOKEEPER, NodeMode.MIGRATION_CONTROLLER, state=PRE), "log",
                metadata_version=14, controllers={})
    assert CONTROLLERS_READY.check(old).outcome is Outcome.PASS
    flagless = spoil_each(old, "answers", lambda told: replace(told, zk_migration_ready=False))
    assert CONTROLLERS_READY.check(flagless).reason == "ControllerNotReady"
    assert CONTROLLERS_READY.check(spoil(old, "log", metadata_version=19)).reason == "ControllerNotReady"


OTHER = ("; if spec.controllers must change: switchover rollback kmig/to-kraft --namespace kafka, change it once that is"
         " RolledBack, then switchover retry kmig/to-kraft --namespace kafka")


@pytest.mark.parametrize(("step", "direction", "other"), [
    ("ProvisionControllers", FORWARD, OTHER), ("EnableMigration", FORWARD, ""), ("ProvisionControllers", BACKWARD, "")])
def test_where_nothing_but_the_controllers_was_made_it_says_how_other_ones_are_made(step, direction, other):
    picture = in_trouble("kafka-controller-0")(moment(
        "ProvisionControllers", NodeMode.ZOOKEEPER, NodeMode.MIGRATION_CONTROLLER, state=PRE))
    found = QUORUM_UP.check(picture.at(replace(picture.position, step=step, direction=direction)))
    assert found.unblocks == f"find out why: kubectl --namespace kafka logs kafka-controller-0{other}"
