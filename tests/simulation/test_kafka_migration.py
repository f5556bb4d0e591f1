"""A whole KafkaMigration, forward, by the real operator on Kopf in virtual time; then the same with trouble.

`migration_world` judges every write (no effect before its record, one disruption at a time, leader last …) and every
state of the simulated cluster; a broken rule fails the run at once.
"""

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache
from typing import Any

import pytest
from prometheus_client import generate_latest

from fakes import kubelet
from fakes.api_server import NAMESPACE, Object, copied
from fakes.incarnation import Incarnation, SimulatedApiServer
from simulation import migration_world
from simulation.migration_world import HOW_FAR, NAME, SPEC, MigrationWorld
from simulation.moments import (
    at_step,
    have_started,
    opened,
    quiet_for,
    reference,
    second_batch,
    to_step,
    undisturbed,
    until_step,
    waits_for,
)
from simulation.pasting import paste_for
from simulation.virtual_time import VirtualLoop
from switchover.answers.observed import Known
from switchover.api.kafka_migration import NodeMode as Mode
from switchover.api.status import Verdict as Outcome
from switchover.cli.export import Document, export
from switchover.cluster import names
from switchover.cluster.door.mount import VOLUME
from switchover.cluster.picture import Picture
from switchover.engine import rollout
from switchover.engine.gate import Judge, Judgement, Verdict
from switchover.engine.rollout import Move, Rollout
from switchover.kubernetes.client.migrations import KubernetesMigrations
from switchover.kubernetes.client.workloads import KubernetesWorkloads
from switchover.kubernetes.gitops import LAST_APPLIED
from switchover.metadata.parity import MigrationState
from tales import assert_told


def test_a_cluster_without_a_topic_goes_over_like_any_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever tries it out on a fresh chart begins with one."""
    monkeypatch.setattr(migration_world, "TOPICS", {})
    world = MigrationWorld(monkeypatch)
    assert world.live(lambda: world.step == "MoveBrokers")


@pytest.mark.story
def test_forward(world: MigrationWorld, counted: Callable[[str], None]) -> None:
    undisturbed(world)
    end = world.end_state()
    assert end.kafka[0] == {
        **{f"kafka-{n}": Mode.KRAFT for n in range(3)}, **{f"kafka-controller-{n}": Mode.KRAFT_CONTROLLER for n in range(3)}}
    assert end.kafka[1:] == (MigrationState.POST_MIGRATION, False)
    and_again = dict.fromkeys((("kafka-controller", Mode.MIGRATION_CONTROLLER), ("kafka-controller", Mode.KRAFT_CONTROLLER),
                               ("kafka", Mode.KRAFT)), 3 + 1)
    assert end.starts == {(f"kafka-{n}", mode): 1 for mode in (Mode.ZOOKEEPER, Mode.MIGRATION) for n in range(3)} | and_again
    assert end.status["metadataState"] == "KRaft"
    assert end.status["restarts"] == (7, 5)          # one of each once more without ZooKeeper, and the rehearsed failover
    assert end.status["conditions"]["ZooKeeperRemovable"] == "True"
    assert end.status["conditions"]["Succeeded"] == "True"
    assert end.stateful_sets["kafka"][0]["updateStrategy"] == {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}}
    assert_told("forward", "A cluster of three brokers goes to KRaft, and nothing is in its way.", world.story)
    counted(f"{len(world.api.writes)} writes in {world.timeline.now() - 1_790_000_060:.0f} virtual seconds")


@pytest.mark.long
def test_brokers_that_are_configured_by_their_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """There, back from the middle of MoveBrokers, and there again; every pod runs its wrapped command in a real shell."""
    world = MigrationWorld(monkeypatch, by_environment=True)
    before = world.api.objects["statefulsets", "kafka"]["spec"]
    world.live(world.approved_and(lambda: Mode.KRAFT in {node.mode for node in world.kafka.nodes.values()}))
    assert world.roll_back()
    assert {world.kafka.nodes[f"kafka-{n}"].mode for n in range(3)} == {Mode.ZOOKEEPER}
    assert world.api.objects["statefulsets", "kafka"]["spec"] == before
    attempt = world.status["attempt"]
    world.want("Running")
    assert world.live(world.approved_and(lambda: world.status["attempt"] > attempt and "PodsNeedZooKeeper" in {
        item["reason"] for item in world.status["waitingFor"]})), "their entrypoint waits for ZooKeeper at every start"
    assert world.end_state().kafka == reference()[0].kafka
    conditions = world.end_state().status["conditions"]
    assert (conditions["Succeeded"], conditions["ZooKeeperRemovable"]) == ("True", "False")


@pytest.mark.long
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_other_timings_come_to_the_same_end(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    world = MigrationWorld(monkeypatch, seed, lag=5.0)
    assert world.run_to_the_end()
    assert world.end_state() == reference()[0]


@pytest.mark.long
def test_the_same_seed_gives_the_same_writes() -> None:
    assert reference() == reference.__wrapped__()


# --- trouble on the way -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("killed", [False, True])
def test_a_world_that_takes_over_a_moment_goes_on_like_the_one_that_lived_it(
        monkeypatch: pytest.MonkeyPatch, killed: bool) -> None:
    lived, taken_over = MigrationWorld(monkeypatch), MigrationWorld(monkeypatch)
    if killed:
        to_step(taken_over, "EnableMigration")
        assert not lived.live(lambda: False, kill_when=lambda: opened(lived, "EnableMigration"))
    else:
        at_step(taken_over, "EnableMigration")
        assert lived.live(lambda: lived.step == "EnableMigration")
    for world in (lived, taken_over):
        assert world.live(lambda world=world: world.status["progress"].get("batch") == 2)       # type: ignore[misc]
    assert lived.api.writes == taken_over.api.writes
    assert lived.story == taken_over.story
    assert lived.kafka.starts == taken_over.kafka.starts


def test_a_server_that_was_written_wrong_is_put_right_without_a_restart_of_the_operator(world: MigrationWorld) -> None:
    elsewhere = {**SPEC["zookeeper"], "connect": "elsewhere:2181"}
    world.api.edit("kafkamigrations", NAME, lambda found: found["spec"].update(zookeeper=elsewhere))
    wrong = []

    def mended() -> bool:
        if not wrong and waits_for(world, "ZooKeeperUnknown"):
            wrong.append(world.step)
            world.api.edit("kafkamigrations", NAME, lambda found: found["spec"].update(zookeeper=SPEC["zookeeper"]))
        return bool(wrong) and world.step == "ProvisionControllers"

    assert world.live(mended)
    assert wrong == ["Preflight"]


def test_a_scrape_tells_where_it_stands(world: MigrationWorld) -> None:
    assert world.live(lambda: have_started("MoveBrokers", 1)(world))       # lived, since it is what this life has counted
    (registry,) = world.metrics
    uid = world.migration["metadata"]["uid"]

    def sample(name: str, **labels: str) -> float | None:
        return registry.get_sample_value(f"switchover_{name}", {"migration": uid, **labels})

    assert sample("migration_state", state="MigrationActive") == 1
    assert sample("zk_migration_state") == MigrationState.MIGRATION
    assert sample("restarts_total", kind="broker") == 4
    bakes = sample("gate_wait_seconds_total", gate="Bake")        # three, each without the passes that begin and end it
    assert 10 + 5 + 10 - 3 * 2.5 <= (bakes or 0) <= 10 + 5 + 10
    assert (sample("dual_write_lag_records") or 0) < 10
    world.api.edit("kafkamigrations", NAME, lambda found: found["spec"].update(desiredState="Paused"))
    assert world.live(lambda: waits_for(world, "Paused"))
    (registry,) = world.metrics
    assert sample("restarts_total", kind="broker") == 4           # by another process, from the record


def test_a_scrape_tells_nothing_of_a_migration_that_is_gone(world: MigrationWorld) -> None:
    undisturbed(world)
    uid, told = world.migration["metadata"]["uid"], list[bool]()

    def gone() -> bool:
        if not told and uid in generate_latest(world.metrics[0]).decode():
            told.append(True)
            world.api.remove("kafkamigrations", NAME)
        return ("kafkamigrations", NAME) not in world.api.objects

    assert world.live(gone)
    assert told
    assert uid not in generate_latest(world.metrics[0]).decode()


@pytest.mark.long
def test_two_operators_at_once_do_no_harm(world: MigrationWorld) -> None:
    assert world.run_to_the_end(identities=("one", "another"))
    assert world.end_state() == reference()[0]


@pytest.mark.story
@HOW_FAR
def test_a_template_changed_back_stops_all_evictions(world: MigrationWorld, whole: bool) -> None:
    until_step(world, "MoveBrokers", 1)
    world.story.clear()
    ours: list[Object] = []

    def revert(found: Object) -> None:
        """What an apply leaves that knows every mount but ours."""
        container = found["spec"]["template"]["spec"]["containers"][0]
        ours.append({"volumeMounts": container["volumeMounts"]})
        container["volumeMounts"] = [mount for mount in container["volumeMounts"] if mount["name"] != VOLUME]

    def restore(found: Object) -> None:
        found["spec"]["template"]["spec"]["containers"][0].update(ours[0])

    world.say("somebody applies the chart's own template")
    world.api.edit("statefulsets", "kafka", revert)
    assert world.live(lambda: waits_for(world, "RevertedByGitOps"))
    quiet_for(world, 120)
    conditions = {each["type"]: (each["status"], each["reason"]) for each in world.status["conditions"]}
    assert conditions["Stalled"] == ("True", "RevertedByGitOps")
    world.say("the mount of ours is put back")
    world.api.edit("statefulsets", "kafka", restore)
    world.goes_on(whole)
    assert not whole or world.end_state() == reference()[0]
    if not whole:
        assert_told("template-changed-back", "Somebody takes our mount out of the brokers' template between two batches.",
                    world.story)


@pytest.mark.long
def test_git_with_the_new_template_is_handed_over_to_without_an_approval(world: MigrationWorld) -> None:
    assert world.live(world.approved_and(lambda: world.step == "HandOver", only=("Finalize",)))
    assert world.live(lambda: waits_for(world, "NotInGit") and waits_for(world, "AwaitingApproval"))
    starts = dict(world.kafka.starts)
    documents = exported(world)

    def apply(found: Object) -> None:
        """What a client-side apply of the export leaves."""
        (manifest,) = (each.manifest for each in documents if each.manifest and each.manifest["metadata"]["name"] == "kafka")
        found["spec"] = json.loads(json.dumps(manifest["spec"]))
        found["metadata"]["annotations"][LAST_APPLIED] = json.dumps(manifest)

    world.api.edit("statefulsets", "kafka", apply)
    assert world.live(lambda: world.step == "ReleaseZooKeeper")
    assert world.kafka.starts == starts
    approvals = [approval["name"] for approval in world.migration["spec"]["approvals"]]
    assert approvals == ["Finalize"]
    kafka = world.api.objects["statefulsets", "kafka"]
    assert names.CLAIM not in kafka["metadata"]["annotations"]
    assert kafka["spec"]["updateStrategy"] == {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}}


@pytest.mark.story
def test_brokers_are_handed_over_to_kraft_settings_of_the_users_own(world: MigrationWorld) -> None:
    """A chart's next upgrade changes what the chart has, and leaves ours in the template, which goes then."""
    world.want("Running", handOver="OwnConfiguration")
    assert world.live(world.approved_and(lambda: waits_for(world, "TemplateNotBrought"), only=("Finalize",)))
    world.story.clear()
    told = next(item for item in world.status["waitingFor"] if item["reason"] == "TemplateNotBrought")
    assert told["unblocks"].endswith("annotate --overwrite configmap/kafka-config helm.sh/resource-policy=keep")
    voters = ",".join(f"{3000 + n}@kafka-controller-{n}.kafka-controller.{NAMESPACE}.svc:9093" for n in range(3))
    kraft = (f"process.roles=broker\ncontroller.quorum.voters={voters}\ncontroller.listener.names=CONTROLLER\n"
             "listeners=PLAINTEXT://:9092\nlog.dirs=/var/lib/kafka\n")
    theirs = copied(world.original["spec"]["template"])
    checksum = {"checksum/configuration": "of the new file"}
    theirs["metadata"]["annotations"] = checksum
    world.api.edit("configmaps", "kafka-config", lambda found: found.update(data={"server.properties": kraft}))
    world.api.edit("statefulsets", "kafka", lambda found: found["spec"]["template"]["metadata"].update(annotations=checksum))
    world.say("a person upgrades the chart, which has KRaft settings of its own now")
    starts = dict(world.kafka.starts)
    assert world.live(lambda: waits_for(world, "OwnTemplate"))
    told = next(item for item in world.status["waitingFor"] if item["reason"] == "OwnTemplate")
    assert "configmap/kafka-config" in told["unblocks"]
    quiet_for(world, 60)
    assert world.kafka.starts == starts, "it is approved first"
    assert not trials(world), "and tried then"
    assert world.run_to_the_end()
    assert trials(world) == ["POST", "DELETE"]
    assert {node.marker for node in world.kafka.nodes.values() if node.is_broker} == {""}
    assert {pod: node.mode for pod, node in world.kafka.nodes.items() if node.is_broker} == dict.fromkeys(
        ("kafka-0", "kafka-1", "kafka-2"), Mode.KRAFT)
    assert {node["name"]: node["assigned"] for node in world.status["nodes"] if node["nodeId"] < 3000} == dict.fromkeys(
        ("kafka-0", "kafka-1", "kafka-2"), Mode.OWN_KRAFT)
    assert ("secrets", "kafka-switchover") not in world.api.objects
    assert ("controllerrevisions", "kafka-before-switchover-1") not in world.api.objects
    kafka = world.api.objects["statefulsets", "kafka"]
    assert kafka["spec"] == world.original["spec"] | {"template": theirs}
    assert names.CLAIM not in kafka["metadata"]["annotations"]
    assert_told("own-configuration", "The brokers are handed over to KRaft settings of the user's own.", world.story)


def trials(world: MigrationWorld) -> list[str]:
    """What was done to the Job in which the new template is tried, in turn."""
    name = names.trial("kafka", world.migration["metadata"]["uid"])
    return [write.text.split(" ")[0] for write in world.api.writes if write.text.split(" ")[1:3] == ["jobs", name]]


VOTERS = ",".join(f"{3000 + n}@kafka-controller-{n}.kafka-controller.{NAMESPACE}.svc:9093" for n in range(3))
KRAFT = f"""process.roles=broker
controller.quorum.voters={VOTERS}
controller.listener.names=CONTROLLER
listeners=PLAINTEXT://:9092,EXTERNAL://:31090
advertised.listeners=PLAINTEXT://kafka:9092,EXTERNAL://203.0.113.7:31090
log.dirs=/var/lib/kafka
"""
RIGHT, WRONG = (f"{KRAFT}listener.security.protocol.map={listed}CONTROLLER:PLAINTEXT\n"
                for listed in ("PLAINTEXT:PLAINTEXT,EXTERNAL:PLAINTEXT,", "PLAINTEXT:PLAINTEXT,"))


ADVERTISES_TWO = migration_world.SERVER_PROPERTIES.replace(
    "listeners=PLAINTEXT://:9092\n", "listener.security.protocol.map=PLAINTEXT:PLAINTEXT,EXTERNAL:PLAINTEXT\n"
    + "".join(f"{line}\n" for line in KRAFT.splitlines() if "listeners" in line))


@cache
def waits_for_a_template() -> MigrationWorld:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(migration_world, "SERVER_PROPERTIES", ADVERTISES_TWO)
        world = MigrationWorld(patch)
        world.want("Running", handOver="OwnConfiguration")
        assert world.live(world.approved_and(lambda: waits_for(world, "TemplateNotBrought"), only=("Finalize",)))
    world.story.clear()
    return world


@pytest.fixture
def advertises_two(monkeypatch: pytest.MonkeyPatch) -> MigrationWorld:
    """A chart whose brokers always advertise a second listener, EXTERNAL, up to the wait for a template."""
    return waits_for_a_template().copy_for(monkeypatch)


def bring(world: MigrationWorld, file: str, checksum: str) -> None:
    """A person upgrades the chart, of which the template has a checksum of the file."""
    world.api.edit("configmaps", "kafka-config", lambda found: found.update(data={"server.properties": file}))
    world.api.edit("statefulsets", "kafka", lambda found: found["spec"]["template"]["metadata"].update(
        annotations={"checksum/configuration": checksum} if checksum else {}))


def standing_with(world: MigrationWorld, reason: str) -> dict[str, str]:
    """It stands with this reason once HandOver is approved; no broker is restarted, and ours is in the template still."""
    assert world.live(world.approved_and(lambda: waits_for(world, reason)))
    starts, template = dict(world.kafka.starts), world.api.objects["statefulsets", "kafka"]["spec"]["template"]
    quiet_for(world, 60)
    assert world.kafka.starts == starts
    assert VOLUME in str(template), "a pod that is lost comes back by its edits"
    told: dict[str, str] = next(item for item in world.status["waitingFor"] if item["reason"] == reason)
    return told


def is_handed_over(world: MigrationWorld, *, to_the_end: bool = False) -> None:
    def so() -> bool:
        tried = [each for each in world.api.of("jobs") if "-trial-" in each["metadata"]["name"]]
        return not tried and {node.marker for node in world.kafka.nodes.values() if node.is_broker} == {""}

    assert world.live(world.approved_and(lambda: so() and (world.finished or not to_the_end)))


@pytest.mark.story
def test_a_template_that_would_not_do_is_given_to_no_broker_and_goes_on_once_it_is_corrected(
        advertises_two: MigrationWorld) -> None:
    """The values that were on the page of cp-helm-charts: their map lacks the listener EXTERNAL."""
    world = advertises_two
    world.say("a person upgrades the chart, to a map that lacks EXTERNAL")
    bring(world, WRONG, "wrong")
    told = standing_with(world, "OwnConfigurationDiffers")
    assert "is PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT, and must have EXTERNAL:PLAINTEXT." in told["message"]
    assert trials(world) == ["POST"], "an unchanged template is not tried again"
    world.say("a person corrects the map, and upgrades the chart again")
    bring(world, RIGHT, "right")
    is_handed_over(world, to_the_end=True)
    assert trials(world) == ["POST", "DELETE", "POST", "DELETE"]
    assert_told("own-configuration-differs", "The new template of the brokers lacks a listener in its map.", world.story)


@pytest.mark.case("TrialFailed")
def test_an_entry_script_that_ends_before_kafka_has_its_last_words_told(advertises_two: MigrationWorld) -> None:
    world = advertises_two
    world.kubelet.refuses = lambda spec: "ERROR ==> KRaft mode requires an unique node.id"
    bring(world, RIGHT, "right")
    told = standing_with(world, "TrialFailed")
    assert told["message"] == (
        "the new template of StatefulSet kafka did not get as far as starting Kafka: container kafka ended with 1: Error:"
        " ERROR ==> KRaft mode requires an unique node.id. No broker has it")
    world.kubelet.refuses = lambda spec: ""                 # the script reads a Secret, say, which was corrected
    paste_for(world, "TrialFailed", "delete job")
    is_handed_over(world)


@pytest.mark.case("OwnConfigurationDiffers")
def test_a_file_that_was_corrected_without_its_template_is_tried_again_by_the_command_that_is_told(
        advertises_two: MigrationWorld) -> None:
    world = advertises_two
    bring(world, WRONG, "the same")
    standing_with(world, "OwnConfigurationDiffers")
    bring(world, RIGHT, "the same")
    paste_for(world, "OwnConfigurationDiffers", "delete job")
    is_handed_over(world)


@pytest.mark.case("OwnConfigurationDiffers")
def test_a_difference_that_is_meant_is_accepted_by_the_command_that_is_told(advertises_two: MigrationWorld) -> None:
    world = advertises_two
    bring(world, RIGHT.replace("203.0.113.7", "203.0.113.8"), "moved")
    told = standing_with(world, "OwnConfigurationDiffers")
    assert "what is advertised for EXTERNAL is 203.0.113.8:31090, and must be 203.0.113.7:31090" in told["message"]
    paste_for(world, "OwnConfigurationDiffers", "acceptedRisks")
    is_handed_over(world)


@pytest.mark.case("TrialRunning")
def test_a_trial_that_does_not_end_is_done_without_by_the_command_that_is_told(
        advertises_two: MigrationWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    world = advertises_two
    monkeypatch.setattr(kubelet, "TRIAL_SECONDS", float("inf"))
    bring(world, RIGHT, "right")
    standing_with(world, "TrialRunning")
    paste_for(world, "TrialRunning", "acceptedRisks")
    is_handed_over(world)


def test_the_old_template_again_takes_the_trial_away(advertises_two: MigrationWorld) -> None:
    world = advertises_two
    bring(world, WRONG, "wrong")
    standing_with(world, "OwnConfigurationDiffers")
    bring(world, ADVERTISES_TWO, "")
    assert world.live(lambda: trials(world) == ["POST", "DELETE"])
    bring(world, RIGHT, "right")
    is_handed_over(world)


def exported(world: MigrationWorld) -> list[Document]:
    """What `switchover export` prints at this moment; it writes nothing."""
    server = SimulatedApiServer(Incarnation(world.api, 1, world.advance), NAMESPACE)
    workloads = KubernetesWorkloads(server, world.timeline)
    migrations = KubernetesMigrations(server, world.timeline, "KafkaMigration", "kafkamigrations")
    writes, loop = len(world.api.writes), VirtualLoop()
    world.timeline.begin(loop)
    try:
        documents = loop.run_until_complete(export(NAME, migrations, workloads, with_secrets=False))
    finally:
        loop.close()
        world.timeline.end()
    assert len(world.api.writes) == writes
    return documents


@pytest.mark.story
@HOW_FAR
def test_a_strategy_changed_back_stops_all_evictions_and_names_who_did_it(world: MigrationWorld, whole: bool) -> None:
    """Every pod has the update revision by then, so Kubernetes restarts none by itself."""
    until_step(world, "MoveBrokers", 1)
    world.story.clear()

    def revert(found: Object) -> None:
        found["spec"]["updateStrategy"] = {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}}
        found["metadata"]["managedFields"] = [{
            "manager": "argocd-controller", "operation": "Apply", "time": "2026-11-21T10:00:00Z",
            "fieldsV1": {"f:spec": {"f:updateStrategy": {"f:type": {}}}}}]
        tracked = {"argocd.argoproj.io/tracking-id": "streaming:apps/StatefulSet:sim/kafka"}
        found["metadata"].setdefault("annotations", {}).update(tracked)

    def restore(found: Object) -> None:
        found["spec"]["updateStrategy"] = {"type": "OnDelete"}

    world.say("Argo CD sets the update strategy to RollingUpdate")
    world.api.edit("statefulsets", "kafka", revert)
    assert world.live(lambda: waits_for(world, "RevertedByGitOps"), limit=10)
    quiet_for(world, 120)
    (told,) = (item for item in world.status["waitingFor"] if item["reason"] == "RevertedByGitOps")
    assert told["unblocks"].startswith("argocd app set streaming --sync-policy none; then kubectl")
    world.say("the strategy is OnDelete again")
    world.api.edit("statefulsets", "kafka", restore)
    world.goes_on(whole)
    assert not whole or world.end_state() == reference()[0]
    if not whole:
        assert_told("strategy-changed-back", "Argo CD gives the brokers their rolling updates back between two batches.",
                    world.story)


@pytest.mark.story
@HOW_FAR
def test_zookeeper_out_of_sight_stops_and_comes_back(world: MigrationWorld, whole: bool) -> None:
    until_step(world, "MoveBrokers", 1)
    world.story.clear()
    world.say("ZooKeeper cannot be reached any more")
    world.kafka.zookeeper_hidden = True
    assert world.live(lambda: waits_for(world, "ZooKeeperUnknown") or waits_for(world, "NodeUnknown"))
    quiet_for(world, 120)
    world.say("ZooKeeper can be reached again")
    world.kafka.zookeeper_hidden = False
    world.goes_on(whole)
    assert not whole or world.end_state() == reference()[0]
    if not whole:
        assert_told("zookeeper-out-of-sight", "ZooKeeper does not answer for a while, in dual write.", world.story)


@HOW_FAR
def test_metadata_that_differs_stops_and_goes_on_when_it_is_healed(world: MigrationWorld, whole: bool) -> None:
    until_step(world, "MoveBrokers", 1)
    world.kafka.planted = {"next_producer_id": 1000}
    assert world.live(lambda: waits_for(world, "MetadataDiffers"))
    (waiting,) = [item for item in world.status["waitingFor"] if item["reason"] == "MetadataDiffers"]
    assert waiting["message"] == "producer ids next: ZooKeeper says 1000, KRaft says nothing"
    assert waiting["observed"] == "1"
    quiet_for(world, 120)
    world.kafka.planted = {}
    world.goes_on(whole)
    assert not whole or world.end_state() == reference()[0]


def second_batch_with_a_silent_broker(world: MigrationWorld) -> None:
    """The second broker is on record to move, and in that moment the third one stops answering for a while."""
    second_batch(world)
    (moving,) = world.status["progress"]["batchNodes"]
    silent = next(node for node in world.kafka.nodes.values() if node.mode == Mode.MIGRATION and node.pod != moving)
    world.story.clear()
    world.say(f"{silent.pod} stops answering, for 180 s")
    silent.open_at = world.timeline.now() + 180
    silent.in_sync_at = silent.open_at + 5


@pytest.mark.story
@HOW_FAR
def test_a_broker_that_falls_silent_stops_the_next_eviction(world: MigrationWorld, whole: bool) -> None:
    second_batch_with_a_silent_broker(world)
    assert world.live(lambda: waits_for(world, "NoWitness"))
    quiet_for(world, 120)
    world.goes_on(whole)
    assert not whole or world.end_state() == reference()[0]
    if not whole:
        assert_told("silent-broker", "A broker falls silent in the moment in which another one is to move.", world.story)


@pytest.mark.story
@pytest.mark.parametrize("step", ["MoveBrokers", pytest.param("EnableMigration", marks=pytest.mark.long)])
@HOW_FAR
def test_a_pause_holds_and_goes_on(world: MigrationWorld, step: str, whole: bool) -> None:
    until_step(world, step, 1)
    world.story.clear()
    world.want("Paused")
    assert world.live(lambda: waits_for(world, "Paused"))
    quiet_for(world, 120)
    world.want("Running")
    world.goes_on(whole)
    assert not whole or world.end_state() == reference()[0]
    if step == "MoveBrokers" and not whole:
        assert_told("paused", "A person pauses the migration between two batches, and lets it go on.", world.story)


@pytest.mark.story
def test_finalize_waits_for_backups_of_the_soak_and_an_approval_of_this_very_plan(world: MigrationWorld) -> None:
    def edit(**spec: Any) -> None:
        world.say(f"a person sets {', '.join(f'{name} to {json.dumps(value)}' for name, value in spec.items())}")
        world.api.edit("kafkamigrations", NAME, lambda found: found["spec"].update(spec))

    def stands(reason: str) -> None:
        assert world.live(lambda: waits_for(world, reason))
        quiet_for(world, 60)
        assert world.step == "Finalize"
        assert world.status["rollback"]["lostAtStep"] == ""

    def at(seconds: float) -> str:
        return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%SZ}"

    edit(backups={"takenTime": at(world.timeline.now()), "location": "from before the migration"})
    assert world.live(lambda: world.step == "Finalize")
    world.story.clear()
    given = {"name": "Finalize", "planHash": "0123456789abcdef", "approver": "mallory"}
    edit(approvals=[given])
    stands("ApprovalVoid")
    edit(approvals=[{**given, "planHash": world.status["planHash"], "approver": "alice", "reason": "CHG-1"}])
    stands("BackupsMissing")
    assert [item["approver"] for item in world.status["approvals"]] == ["alice"]
    edit(approvals=[])
    stands("AwaitingApproval")
    assert world.status.get("approvals", []) == []
    edit(backups={"takenTime": at(world.timeline.now()), "location": "a shelf"})
    stands("AwaitingApproval")
    assert world.run_to_the_end()
    assert world.end_state() == reference()[0]
    (begun,) = [item["message"] for item in world.status["history"] if item["message"].startswith("Finalize begins")]
    assert "; approved by alice; backups of" in begun
    assert begun.endswith("at a shelf")
    assert_told("finalize", "The point of no return waits for an approval of this very plan, and for backups of the soak.",
                world.story)


# --- the judge bites --------------------------------------------------------------------------------------------------


def test_acting_before_the_record_is_caught(world: MigrationWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    honest = rollout._replace

    def hasty(plan: Rollout[Picture], picture: Picture, name: str, judge: Judge[Picture], now: float) -> Move | None:
        move = honest(plan, picture, name, judge, now)
        seen = plan.sight(picture, name)
        if move is not None and move.position != picture.position and isinstance(seen, Known):
            return Move(picture.position, (plan.replace(picture, name, seen.value),))
        return move

    monkeypatch.setattr(rollout, "_replace", hasty)
    with pytest.raises(AssertionError, match=r"O4: pod kafka-. .* is replaced, on record is none"):
        world.run_to_the_end()


def test_a_gate_that_opens_on_unknown_is_caught(world: MigrationWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    honest = Judge._record

    def lenient(self: Judge[Picture], name: str, verdict: Verdict, *how: Any, **more: Any) -> Judgement:
        if verdict.outcome is Outcome.UNKNOWN:
            verdict = replace(verdict, outcome=Outcome.PASS)
        return honest(self, name, verdict, *how, **more)

    second_batch_with_a_silent_broker(world)
    monkeypatch.setattr(Judge, "_record", lenient)
    with pytest.raises(AssertionError, match="in sync"):
        world.run_to_the_end()
