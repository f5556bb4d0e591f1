"""What others do to the cluster in the middle of a migration: drains, autoscalers, a second migration.

The judge of `migration_world` fails a run in which anything is replaced while replicas are out of sync.
"""

from typing import Any

import pytest

from fakes.api_server import NAMESPACE, Object, copied
from simulation.migration_world import HOW_FAR, NAME, SPEC, MigrationWorld
from simulation.moments import at_step, before_finalize, quiet_for, reference, second_batch, until_step, waits_for
from simulation.operated import DOCS
from simulation.pasting import paste_for
from switchover.api.kafka_migration import NodeMode as Mode
from switchover.cluster import names
from switchover.engine.approvals import REQUESTER
from switchover.metadata.parity import MigrationState
from tales import assert_told


def drain(world: MigrationWorld, pod: str, seconds: float) -> None:
    """Somebody evicts a pod, and its node takes no new one for a while."""
    stateful_set, _, ordinal = pod.rpartition("-")
    world.kubelet._due[stateful_set, int(ordinal)] = world.timeline.now() + seconds
    world.api.remove("pods", pod)


@pytest.mark.parametrize("moment", ["batchStartTime", pytest.param("bakeStartTime", marks=pytest.mark.long)])
@HOW_FAR
def test_while_somebody_drains_nothing_of_ours_starts(world: MigrationWorld, moment: str, whole: bool) -> None:
    def at_the_moment() -> bool:
        progress = world.status.get("progress") or {}
        return bool(progress.get(moment))

    second_batch(world)
    assert world.live(at_the_moment)
    (moving,) = world.status["progress"]["batchNodes"]
    drained = next(pod for pod in ("kafka-0", "kafka-1", "kafka-2") if pod != moving)
    mode = world.kafka.nodes[drained].mode
    drain(world, drained, 300)
    told = ("WouldLoseInSyncReplicas", "OutOfSync", "NoWitness", "EffectRefused")
    assert world.live(lambda: any(waits_for(world, why) for why in told))
    before = dict(world.kafka.starts)
    quiet_for(world, 200)
    world.goes_on(whole)
    assert world.kafka.starts[drained, mode] == before[drained, mode] + 1      # it came back in the mode assigned to it
    world.kafka.starts[drained, mode] -= 1
    assert not whole or world.end_state() == reference()[0]


@pytest.mark.story
@HOW_FAR
def test_a_budget_that_others_have_used_up_is_told_and_waited_for(world: MigrationWorld, whole: bool) -> None:
    until_step(world, "MoveBrokers", 1)
    world.story.clear()
    world.say("somebody allows no disruption")
    world.api.edit("poddisruptionbudgets", "kafka", lambda found: found["spec"].update(maxUnavailable=0))
    assert world.live(lambda: waits_for(world, "EffectRefused"))
    told = next(item for item in world.status["waitingFor"] if item["reason"] == "EffectRefused")
    assert "disruption budget kafka" in told["message"]
    quiet_for(world, 120)
    world.say("one disruption is allowed again")
    world.api.edit("poddisruptionbudgets", "kafka", lambda found: found["spec"].update(maxUnavailable=1))
    world.goes_on(whole)
    assert not whole or world.end_state() == reference()[0]
    if not whole:
        assert_told("budget-used-up", "The brokers' disruption budget allows no eviction for a while.", world.story)


@pytest.mark.case("ReplicasChanged")
@pytest.mark.parametrize("name", ["kafka", pytest.param("kafka-controller", marks=pytest.mark.long)])
@HOW_FAR
def test_an_autoscaler_stops_the_migration_in_words_until_it_is_scaled_back(
    world: MigrationWorld, name: str, whole: bool
) -> None:
    until_step(world, "MoveBrokers", 1)
    world.kubelet._due[name, 3] = float("inf")                    # no room for it, so that no process starts without a file
    world.api.edit("statefulsets", name, lambda found: found["spec"].update(replicas=4))
    assert world.live(lambda: waits_for(world, "ReplicasChanged"))
    told = next(item for item in world.status["waitingFor"] if item["reason"] == "ReplicasChanged")
    assert (told["subject"], told["observed"], told["threshold"]) == (name, "4", "3")
    quiet_for(world, 120)
    paste_for(world, "ReplicasChanged")
    world.goes_on(whole)
    assert not whole or world.end_state() == reference()[0]


SECOND = {**SPEC, "controllers": {**SPEC["controllers"], "name": "second-controller", "firstNodeId": 4000}}  # type: ignore[dict-item]


@pytest.mark.parametrize(("step", "wish"), [
    ("MoveBrokers", "Running"), pytest.param("MoveBrokers", "RolledBack", marks=pytest.mark.long),
    pytest.param("HandOver", "Running", marks=pytest.mark.long)])
@HOW_FAR
def test_nothing_is_moved_without_what_the_statefulset_was_before(
        world: MigrationWorld, step: str, wish: str, whole: bool) -> None:
    """Some advise to delete ControllerRevisions of StatefulSets under OnDelete (argo-cd#1881), and ours looks like one."""
    holds = ["MoveBrokers", "Finalize", "HandOver"]
    world.api.edit("kafkamigrations", NAME, lambda found: found["spec"].update(holds=holds))
    before = tuple(holds[:holds.index(step)]) or ("none",)
    assert world.live(world.approved_and(lambda: world.step == step and waits_for(world, "AwaitingApproval"), before))
    kept = ("controllerrevisions", "kafka-before-switchover-1")
    original = world.api.objects.pop(kept)
    world.want(wish)
    starts = dict(world.kafka.starts)
    assert world.live(world.approved_and(lambda: waits_for(world, "OriginalMissing")))
    if step != "HandOver":                              # behind it stands a migration that has Succeeded
        assert {item["reason"] for item in world.status["conditions"] if item["type"] == "Stalled"} == {"OriginalMissing"}
    quiet_for(world, 200)
    assert {name: count for name, count in world.kafka.starts.items() if starts.get(name) != count} == {}
    world.api.objects[kept] = original
    if wish == "RolledBack":
        assert world.roll_back()
    else:
        world.goes_on(whole)


KEPT = ("controllerrevisions", "kafka-before-switchover-1")


def plant(world: MigrationWorld, data: Object) -> None:
    """Somebody makes what keeps the brokers' StatefulSet as it was, with our labels, in place of the one that is there."""
    world.api.objects.pop(KEPT, None)
    world.api.add("apps/v1", "ControllerRevision", *KEPT, metadata={"labels": names.labels(NAME)}, revision=1, data=data)


@pytest.mark.case("RecordContradicted")
@pytest.mark.parametrize("step", ["EnableMigration", "MoveBrokers"])
def test_nothing_is_rolled_back_to_what_this_migration_has_not_kept(world: MigrationWorld, step: str) -> None:
    """But to what a person has made, who says so on record."""
    world.api.edit("kafkamigrations", NAME, lambda found: found["spec"].update(holds=[step]))
    assert world.live(world.approved_and(lambda: world.step == step and waits_for(world, "AwaitingApproval"), ("none",)))
    kept = copied(world.api.objects[KEPT]["data"])
    evil = copied(kept)
    evil["template"]["spec"]["containers"][0]["image"] = "evil"
    plant(world, evil)
    world.want("RolledBack")
    assert world.live(lambda: waits_for(world, "RecordContradicted"))
    quiet_for(world, 100)
    assert "evil" not in str(world.api.objects["statefulsets", "kafka"])
    plant(world, {**kept, "by": "hand"})
    quiet_for(world, 20)
    paste_for(world, "RecordContradicted")
    assert world.roll_back()


def test_what_somebody_has_put_there_before_is_written_anew(world: MigrationWorld) -> None:
    """It has the template of now, and says of the brokers what the controllers' pods are made of."""
    spec = world.original["spec"]
    plant(world, {"template": copied(spec["template"]), "updateStrategy": spec.get("updateStrategy") or {}, "brokers": {
        "container": "kafka", "script": "/evil", "log_dir": "/evil", "release": "3.9", "raised": False, "encrypted": []}})
    assert world.live(lambda: world.step == "EnableMigration")
    assert "evil" not in str([*world.api.of("controllerrevisions"), *world.api.of("statefulsets")])


def test_a_claim_that_has_the_controllers_label_alone_is_nobodys_to_delete(world: MigrationWorld) -> None:
    world.api.edit("kafkamigrations", NAME, lambda found: found["spec"].update(holds=["EnableMigration"]))
    assert world.live(lambda: world.step == "EnableMigration")
    own = [each["metadata"]["name"] for each in world.api.of("persistentvolumeclaims")]
    labels = names.controller_labels("kafka-controller", NAME)
    world.api.add("v1", "PersistentVolumeClaim", "persistentvolumeclaims", "payroll", metadata={"labels": labels}, spec={})
    assert len([name for name in own if "kafka-controller" in name]) == 3
    assert world.roll_back()
    assert {each["metadata"]["name"] for each in world.api.of("persistentvolumeclaims")} == {"payroll", *(
        name for name in own if "kafka-controller" not in name)}


@pytest.mark.story
def test_a_broker_that_does_not_start_without_zookeeper_is_told_and_zookeeper_asked_away_anew_once_it_is_back(
        world: MigrationWorld) -> None:
    """Its entry script asks for ZooKeeper, which nobody could see: it is put back, the image mended, it is stopped again."""
    before_finalize(world)
    labels = {"app": "zookeeper"}
    world.api.add("v1", "Service", "services", "zookeeper", spec={"selector": labels})
    world.api.add("apps/v1", "StatefulSet", "statefulsets", "zoo", spec={
        "replicas": 0, "template": {"metadata": {"labels": labels}, "spec": {"containers": []}}})
    world.api.edit("kafkamigrations", NAME, lambda found: found["spec"]["gates"].update(stepPatienceSeconds=60))
    assert world.live(world.approved_and(lambda: waits_for(world, "ZooKeeperRuns"), only=("Finalize", "HandOver")))
    world.story.clear()
    world.say("a person stops ZooKeeper, and the brokers' entry script cannot do without it")
    world.kafka.refuses = {(f"kafka-{n}", Mode.KRAFT) for n in range(3)}
    world.kafka.zookeeper_stopped = True
    assert world.live(lambda: condition(world, "Stalled") == ("True", "NotBackWithoutZooKeeper"))
    (victim,) = world.status["progress"]["batchNodes"]
    (told,) = (item for item in world.status["waitingFor"] if item["reason"] == "NotBackWithoutZooKeeper")
    assert "CrashLoopBackOff" in told["message"]
    assert f"kubectl --namespace {NAMESPACE} scale statefulset/zoo --replicas=N" in told["unblocks"]
    assert (world.phase, condition(world, "Succeeded")[0]) == ("Stalled", "True")

    world.say("ZooKeeper is started again")
    world.kafka.zookeeper_stopped = False
    assert world.live(lambda: waits_for(world, "BrokerSilent"))
    assert condition(world, "Stalled")[0] == "False"
    assert not waits_for(world, "ZooKeeperRuns"), f"{victim} is down still"
    world.say("the entry script is mended")
    world.kafka.refuses.clear()
    assert world.live(lambda: waits_for(world, "ZooKeeperRuns"))
    assert victim in world.kafka.nodes
    begun = world.kafka.starts[victim, Mode.KRAFT]
    assert world.run_to_the_end()
    assert sum(times for (_, mode), times in world.kafka.starts.items() if mode == Mode.KRAFT) == 3 + 2
    assert begun >= 2, "it was started again, by nobody's hand"
    assert condition(world, "ZooKeeperRemovable") == ("True", "Proven")
    assert_told("not-back-without-zookeeper", "A broker does not start without ZooKeeper, which nobody could see before.",
                world.story)


@pytest.mark.story
def test_an_operator_that_dies_beside_a_stopped_zookeeper_changes_nothing(world: MigrationWorld) -> None:
    before_finalize(world)
    assert not world.live(world.approved_and(lambda: False), kill_when=lambda: (
        world.step == "ReleaseZooKeeper" and bool(world.status["progress"].get("batchNodes"))))
    world.story.clear()
    assert not world.run_to_the_end(kill_when=lambda: any(
        "deletionTimestamp" in world.api.objects["pods", name]["metadata"] for name in BROKERS))
    assert world.run_to_the_end()
    assert world.end_state() == reference()[0]
    assert_told("killed", "The operator dies right after it has evicted a broker, and the next one goes on.", world.story)


def condition(world: MigrationWorld, kind: str) -> tuple[str, str]:
    return next(((each["status"], each["reason"]) for each in world.status["conditions"] if each["type"] == kind), ("", ""))


BROKERS = [f"kafka-{n}" for n in range(3)]


def second(world: MigrationWorld) -> Object:
    return world.api.objects["kafkamigrations", "second"]


def told_to_second(world: MigrationWorld) -> dict[str, Any]:
    return {item["reason"]: item for item in (second(world).get("status") or {}).get("waitingFor") or ()}


@HOW_FAR
@pytest.mark.parametrize("step", ["Preflight", pytest.param("MoveBrokers", marks=pytest.mark.long)])
def test_a_second_migration_of_the_cluster_touches_nothing(world: MigrationWorld, step: str, whole: bool) -> None:
    """Whoever comes second: of two that come at once either may be the first."""
    if step == "Preflight":
        assert world.live(lambda: any(world.api.of("leases")))
    else:
        until_step(world, step, 1)
    world.api.add("switchover.dev/v1alpha1", "KafkaMigration", "kafkamigrations", "second", spec=SECOND)
    assert world.live(world.approved_and(lambda: "ClusterIsTaken" in told_to_second(world)))
    assert told_to_second(world)["ClusterIsTaken"]["observed"].startswith(world.migration["metadata"]["uid"])
    assert world.live(world.approved_and(lambda: world.finished or (not whole and world.step == "MoveBrokers")))
    assert second(world)["status"]["progress"]["step"] == "Preflight"
    assert second(world)["status"]["nodes"] == []
    assert ("statefulsets", "second-controller") not in world.api.objects
    if whole:
        assert world.kafka.state is MigrationState.POST_MIGRATION
        assert world.end_state().starts == reference()[0].starts
        world.api.remove("kafkamigrations", NAME)
        assert world.live(lambda: ("kafkamigrations", NAME) not in world.api.objects)


def replace_volume(world: MigrationWorld, *pods: str) -> None:
    """Somebody deletes a claim and its pod: both are made anew, empty."""
    for pod in pods:
        world.api.remove("persistentvolumeclaims", f"data-{pod}")
        world.api.remove("pods", pod)


def volumes(world: MigrationWorld) -> dict[str, list[str]]:
    return {node["name"]: node["volumes"] for node in world.status["nodes"]}


@HOW_FAR
def test_a_replaced_volume_is_an_incident_until_its_node_has_caught_up(world: MigrationWorld, whole: bool) -> None:
    at_step(world, "MoveBrokers")
    assert world.live(lambda: "bakeStartTime" in world.status["progress"])
    before = volumes(world)
    assert all(len(claims) == 1 for claims in before.values())
    victim = next(pod for pod, node in world.kafka.nodes.items() if node.mode == Mode.MIGRATION)
    replace_volume(world, victim)
    assert world.live(lambda: waits_for(world, "VolumeReplaced"))
    told = next(item for item in world.status["waitingFor"] if item["reason"] == "VolumeReplaced")
    assert told["subject"] == victim
    assert volumes(world)[victim] == before[victim] == [told["threshold"]]
    assert world.live(lambda: volumes(world)[victim] == [told["observed"]])
    words = [item["message"] for item in world.status["history"]]
    assert [f"incident: {victim}" in word for word in words].count(True) == 1
    assert any(f"{victim} caught up on another volume" in word for word in words)
    world.goes_on(whole)
    world.kafka.starts[victim, Mode.MIGRATION] -= 1
    assert not whole or world.end_state() == reference()[0]


def test_the_majority_of_the_controllers_volumes_lost_stops_everything_in_words(world: MigrationWorld) -> None:
    until_step(world, "MoveBrokers", 1)
    replace_volume(world, "kafka-controller-0", "kafka-controller-1")
    world.timeline.wait(30)
    world.advance()
    assert all(each.startswith("K8: ") for each in world.violations), "the incident itself, by somebody else"
    world.violations.clear()
    assert world.live(lambda: waits_for(world, "QuorumVolumesLost"))
    assert world.live(lambda: world.status["phase"] == "Stalled")
    quiet_for(world, 120)
    told = next(item for item in world.status["waitingFor"] if item["reason"] == "QuorumVolumesLost")
    assert "kafka-controller-0, kafka-controller-1" in told["message"]
    assert told["runbookURL"] == f"{DOCS}/runbooks/QuorumVolumesLost.md"


def test_who_is_named_after_the_end_is_noted_as_well(world: MigrationWorld) -> None:
    """Or nobody else could change the spec for another attempt."""
    assert world.roll_back()
    begun = world.timeline.now()

    def named_and_noted() -> bool:
        """By the operator that has seen the end, and looks at it no more."""
        metadata = world.migration["metadata"]
        if world.timeline.now() - begun > 120 and not metadata.get("annotations"):
            world.api.edit("kafkamigrations", NAME, lambda found: found["metadata"].update(annotations={REQUESTER: "alice"}))
        return bool(world.status.get("requesters") == ["alice"])

    assert world.live(named_and_noted, limit=600)


@HOW_FAR
def test_no_broker_moves_to_kraft_while_a_controller_does_not_follow(world: MigrationWorld, whole: bool) -> None:
    """Brokers on KRaft live by the quorum, and the next controller that is lost would be one too many."""
    at_step(world, "DualWrite")
    follower = next(pod for pod, node in world.kafka.nodes.items()
                    if node.mode == Mode.MIGRATION_CONTROLLER and node.node_id != world.kafka.leader)
    world.kafka.hang(follower)
    assert world.live(lambda: world.step == "MoveBrokers" and waits_for(world, "VoterBehind"))
    quiet_for(world, 60)
    [told] = [each["message"] for each in world.status["waitingFor"] if each["reason"] == "VoterBehind"]
    assert f"pod {follower} runs" in told
    world.api.remove("pods", follower)
    world.goes_on(whole)
