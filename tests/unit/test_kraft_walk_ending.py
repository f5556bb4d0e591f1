"""How a KafkaMigration ends: brokers by a configuration of their own where that is asked for, and a ZooKeeper that stops."""

import copy
import functools
from dataclasses import replace
from typing import Any

import pytest

from switchover.answers.observed import Known, Unknown
from switchover.api.kafka_migration import HandOver
from switchover.api.kafka_migration import NodeMode as Mode
from switchover.api.meta import AcceptedRisk
from switchover.cluster import names
from switchover.cluster.nodes import brokers_to_own_kraft
from switchover.cluster.plan import PLAN
from switchover.engine.plan import decide
from switchover.metadata.parity import MigrationState
from unit.kraft_walk import PROOF, Walk
from unit.pictures import BROKERS, NOW, UID, moment, spec_of, spoil_pod, stateful_set, with_fact
from unit.small_plan import FORWARD, intent

# --- HandOver -----------------------------------------------------------------------------------------------------------

OWN = {"hand_over": HandOver.OWN_CONFIGURATION}


def brought(walk: Walk, merged: bool, **strategy: Any) -> None:
    """The user's own KRaft settings in their file, and a template that says so as a chart's does.

    An apply leaves in the StatefulSet what the manifest has not, that is all of ours; `kubectl replace` leaves nothing.
    """
    walk.cluster.kraft = True
    spec = walk.cluster.manifest["spec"]
    theirs = copy.deepcopy(spec["template"]) if merged else stateful_set()["spec"]["template"]
    theirs["metadata"]["annotations"] = {"checksum/configuration": "of the new file"}
    walk.cluster.manifest["spec"] |= {"template": theirs, **strategy}
    walk.cluster.manifest["metadata"]["generation"] += 1


def at_hand_over(**changes: Any) -> Walk:
    """Before its approval, with these fields of the spec changed by then."""
    walk = Walk()
    walk.until("HandOver")
    walk.spec = walk.spec.model_copy(update=changes)
    return walk


@pytest.mark.parametrize("merged", [True, False], ids=["applied", "replaced"])
@pytest.mark.parametrize("strategy", [{}, {"updateStrategy": {"type": "RollingUpdate"}}], ids=["held", "rolling"])
def test_brokers_go_over_to_a_configuration_of_the_users_own_and_nothing_of_ours_stays(merged, strategy):
    """A chart's upgrade brings its own strategy, too: no pod is replaced by it."""
    walk = at_hand_over(**OWN)
    before = list(walk.cluster.replaced)
    brought(walk, merged, **strategy)
    for _ in range(30):
        decision = walk.step(approved=False)
    assert walk.cluster.replaced == before
    assert decision.judged["GitHasTheTemplate"].verdict.reason == "OwnTemplate"
    assert walk.cluster.manifest["spec"]["updateStrategy"] == {"type": "OnDelete"}
    assert ("switchover" in str(walk.cluster.manifest["spec"])) == merged, "nothing is taken out before the approval"
    walk.until()
    assert sorted(walk.cluster.replaced[len(before):]) == sorted([*BROKERS, "kafka-controller-1", *PROOF])
    assert walk.cluster.replaced[-3] == "kafka-controller-1", "after the brokers, by what was changed for them"
    assert {walk.position.nodes[name].assigned for name in BROKERS} == {Mode.OWN_KRAFT}
    assert {node.marker for node in walk.cluster.brokers.values()} == {""}
    assert set(walk.cluster.files) == {"kafka-controller-switchover"}
    assert (walk.cluster.original, walk.cluster.claimed_by) == (None, "")
    assert walk.cluster.manifest["spec"]["updateStrategy"] == stateful_set()["spec"]["updateStrategy"]
    assert "switchover" not in str(walk.cluster.manifest)
    theirs = stateful_set()["spec"]["template"]
    theirs["metadata"]["annotations"] = {"checksum/configuration": "of the new file"}
    assert walk.cluster.manifest["spec"]["template"] == theirs, "to the last word: the next apply restarts nothing"


@pytest.mark.parametrize("changes", [OWN, {}], ids=["asked for", "not asked for"])
def test_a_template_that_says_zookeeper_still_is_rolled_to_by_nobody(changes):
    walk = at_hand_over(**changes)
    before = list(walk.cluster.replaced)
    walk.cluster.manifest["spec"] |= {"template": stateful_set()["spec"]["template"]}
    walk.cluster.manifest["metadata"]["generation"] += 1
    for _ in range(30):
        decision = walk.step()
    assert walk.cluster.replaced == before
    assert ("TemplateNotBrought" if changes else "WouldRestart") in {
        judged.verdict.reason for judged in decision.judged.values()}


@pytest.mark.parametrize("own", [True, False])
def test_hand_over_does_not_wait_for_a_zookeeper_that_is_stopped(own):
    """No broker uses it any more: somebody stops it early, or an older status leads from ReleaseZooKeeper to here."""
    picture = moment("HandOver", Mode.KRAFT, Mode.KRAFT_CONTROLLER, (), MigrationState.POST_MIGRATION)
    picture = replace(picture, spec=picture.spec.model_copy(update=OWN if own else {}))
    stopped = with_fact(picture, "zookeeper", Unknown("ZooKeeper does not answer"))
    assert isinstance(brokers_to_own_kraft(stopped), Known)
    assert "Order" not in decide(PLAN, stopped, intent(FORWARD), {}, NOW).judged


def test_before_the_user_has_brought_a_template_an_approval_hands_nothing_over():
    walk = at_hand_over(**OWN)
    for _ in range(30):
        decision = walk.step()
    assert walk.position.opened is None
    assert decision.judged["OnlyOursWouldRestart"].verdict.reason == "TemplateNotBrought"
    assert walk.cluster.claimed_by == UID


@pytest.mark.parametrize("merged", [True, False], ids=["applied", "replaced"])
def test_a_template_of_the_users_own_is_not_rolled_to_unless_asked_for(merged):
    """With the export in Git they change what they like after HandOver."""
    walk = at_hand_over()
    before = list(walk.cluster.replaced)
    brought(walk, merged)
    for _ in range(30):
        decision = walk.step()
    assert walk.cluster.replaced == before
    (verdict,) = {judged.verdict for judged in decision.judged.values() if judged.verdict.reason == "WouldRestart"}
    assert '{"spec":{"handOver":"OwnConfiguration"}}' in verdict.unblocks


def test_a_template_whose_trial_finds_that_it_would_not_do_is_given_to_no_broker_until_it_is_corrected():
    walk = at_hand_over(**OWN)
    before, written = list(walk.cluster.replaced), dict(walk.cluster.files)
    brought(walk, merged=True)
    walk.cluster.kraft = False
    for _ in range(30):
        decision = walk.step()
    assert (walk.cluster.replaced, walk.cluster.files) == (before, written)
    assert decision.stalled is not None
    assert decision.stalled.verdict.reason == "OwnConfigurationDiffers"
    assert "switchover" in str(walk.cluster.manifest["spec"]), "a pod that is lost meanwhile comes back by its edits"
    brought(walk, merged=True)
    walk.cluster.manifest["spec"]["template"]["metadata"]["annotations"] = {"checksum/configuration": "of a better one"}
    walk.until()
    assert {walk.position.nodes[name].assigned for name in BROKERS} == {Mode.OWN_KRAFT}
    assert [str(effect) for effect in walk.cluster.done if "-trial-" in str(effect)] == [
        f"{act} Job {names.trial('kafka', UID)}" for act in ("create", "delete", "create", "delete")]


def test_a_canary_that_does_not_come_back_on_kraft_is_the_last_to_go():
    """Whoever leaves the trial out has it in the canary."""
    walk = at_hand_over(**OWN, accepted_risks=(AcceptedRisk.UNTRIED_TEMPLATE,))
    before = list(walk.cluster.replaced)
    brought(walk, merged=True)
    walk.cluster.kraft = False
    for _ in range(200):
        decision = walk.step()
    assert len(set(walk.cluster.replaced[len(before):])) == 1
    assert decision.stalled is not None
    assert decision.stalled.verdict.reason == "ModeMismatch"


# --- ReleaseZooKeeper ---------------------------------------------------------------------------------------------------


@functools.cache
def released() -> Walk:
    walk = Walk()
    walk.until("ReleaseZooKeeper")
    return walk


def test_no_broker_is_restarted_before_zookeeper_is_stopped():
    walk = copy.deepcopy(released())
    before = list(walk.cluster.replaced)
    for _ in range(50):
        walk.cluster.connections = 0
        decision = walk.step()
    assert (walk.position.batch, walk.position.finished, walk.cluster.replaced) == (None, False, before)
    found = decision.judged["ZooKeeperStopped"].verdict
    assert found.reason == "ZooKeeperRuns"
    assert "kubectl --namespace kafka scale statefulset/zookeeper --replicas=0" in found.unblocks
    assert decision.stalled is None, "a person may take the time they want"


def test_a_restart_with_zookeeper_back_proves_nothing_and_is_done_again():
    walk = copy.deepcopy(released())
    before = len(walk.cluster.replaced)
    walk.go(lambda: len(walk.cluster.replaced) > before)
    walk.cluster.connections = 0
    decision = walk.step()
    assert (walk.position.batch, walk.position.batches_done) == (None, 0)
    assert decision.note == "batch 1 is void: kafka-2 must be restarted again"
    assert all(record.settled for record in walk.position.nodes.values())
    walk.go(lambda: walk.position.finished)
    assert walk.cluster.replaced[-3:] == ["kafka-2", *PROOF]
    assert walk.position.batches_done == 2


def test_it_is_void_in_a_pause_too():
    walk = copy.deepcopy(released())
    walk.go(lambda: walk.position.batch is not None)
    walk.cluster.connections = 0
    decision = decide(PLAN, walk.picture(), intent(FORWARD, paused=True), walk.streaks, walk.cluster.now)
    assert decision.position.batch is None


def test_while_a_broker_is_down_zookeeper_is_not_asked_away():
    walk = copy.deepcopy(released())
    walk.step()
    walk.cluster.pass_time(1e6)
    for _ in range(5):
        picture = spoil_pod(walk.picture(), "kafka-1", ready=False, trouble="CrashLoopBackOff")
        decision = walk.step(picture=picture)
    assert walk.cluster.connections == 0
    found = decision.judged["ZooKeeperStopped"].verdict
    assert (found.reason, found.message) == ("BrokerSilent", "CrashLoopBackOff")


def test_a_zookeeper_that_does_not_answer_is_not_taken_for_stopped():
    walk = copy.deepcopy(released())
    for _ in range(50):
        silent = with_fact(walk.picture(), "zookeeper_connections", {"zookeeper:2181": Unknown("no answer within 10 s")})
        walk.step(picture=silent)
    assert (walk.position.step, walk.position.batch, walk.position.finished) == ("ReleaseZooKeeper", None, False)


def test_a_shared_zookeeper_is_not_asked_away():
    walk = copy.deepcopy(released())
    walk.spec = spec_of(zookeeper={"connect": "zookeeper:2181", "shared": True})
    before, walk.cluster.connections = list(walk.cluster.replaced), 12
    walk.until()
    assert (walk.position.finished, walk.position.batches_done, walk.cluster.connections) == (True, 0, 12)
    assert walk.cluster.replaced == before
