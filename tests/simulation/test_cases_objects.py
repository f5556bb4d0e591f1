"""Cases: what a person is asked to change of objects, so that a migration goes on."""

from typing import Any

import pytest

from fakes.api_server import copied
from fakes.kafka_ports import SimulatedZooKeeper
from simulation.migration_world import NAME, MigrationWorld
from simulation.moments import before_finalize, quiet_for, until_step, waits_for
from simulation.pasting import commands, paste, paste_for
from switchover.answers.errors import NotListening, Refused
from switchover.api.kafka_migration import NodeMode as Mode
from switchover.cluster import names
from switchover.cluster.door.mount import VOLUME
from switchover.cluster.rehearsal.report import Report, as_message
from switchover.network.addresses import Address

KAFKA = ("statefulsets", "kafka")
FLUX = "kustomize.toolkit.fluxcd.io"


@pytest.mark.long
@pytest.mark.case("RecordContradicted")
def test_a_claim_that_somebody_took_off_is_put_on_again(world: MigrationWorld) -> None:
    until_step(world, "MoveBrokers", 1)
    world.api.edit(*KAFKA, lambda found: found["metadata"]["annotations"].pop(names.CLAIM))
    assert world.live(lambda: waits_for(world, "RecordContradicted"))
    quiet_for(world, 30)
    paste_for(world, "RecordContradicted")
    assert world.api.objects[KAFKA]["metadata"]["annotations"][names.CLAIM] == world.migration["metadata"]["uid"]
    world.goes_on(whole=False)


@pytest.mark.case("GitOpsConflict")
def test_flux_is_told_to_leave_the_statefulset_alone(world: MigrationWorld) -> None:
    marks = {f"{FLUX}/name": "streaming", f"{FLUX}/namespace": "flux-system"}
    world.api.edit(*KAFKA, lambda found: found["metadata"].setdefault("labels", {}).update(marks))
    assert world.live(lambda: waits_for(world, "GitOpsConflict"))
    before = copied(world.api.objects[KAFKA])
    paste_for(world, "GitOpsConflict")
    assert world.api.objects[KAFKA]["metadata"]["annotations"] == {f"{FLUX}/reconcile": "disabled"}
    assert world.api.objects[KAFKA]["spec"] == before["spec"]
    assert world.live(lambda: world.step == "EnableMigration")


@pytest.mark.case("RehearsalFailed")
def test_a_rehearsal_is_made_again_once_its_job_is_deleted(world: MigrationWorld) -> None:
    def stopped(_: Report) -> str:
        return "the replica's controller did not come up"

    world.kubelet.rehearsed = stopped
    assert world.live(lambda: waits_for(world, "RehearsalFailed"))
    quiet_for(world, 60)
    world.kubelet.rehearsed = as_message
    quiet_for(world, 60)                                    # nothing changed that it could see
    paste_for(world, "RehearsalFailed")
    assert world.live(lambda: world.step == "EnableMigration")


@pytest.mark.case("NodeCordoned")
def test_a_node_is_uncordoned(world: MigrationWorld) -> None:
    until_step(world, "MoveBrokers", 1)
    for number in range(3):
        world.api.add("v1", "Node", "nodes", f"node-{number}", spec={"unschedulable": True} if number == 2 else {})
    assert world.live(lambda: waits_for(world, "NodeCordoned"))
    quiet_for(world, 30)
    paste_for(world, "NodeCordoned")
    assert world.api.objects["nodes", "node-2"]["spec"] == {}
    world.goes_on(whole=False)


@pytest.mark.case("WouldRestart")
def test_a_template_that_would_restart_brokers_is_the_one_that_they_run_again(world: MigrationWorld) -> None:
    before_finalize(world)
    world.kubelet.keeps_history = True
    world.timeline.wait(1)
    world.advance()
    template = copied(world.api.objects[KAFKA]["spec"]["template"])
    world.api.edit(*KAFKA, lambda found: found["spec"]["template"]["metadata"].update(annotations={"restartedAt": "now"}))
    starts = dict(world.kafka.starts)
    assert world.live(world.approved_and(lambda: waits_for(world, "WouldRestart"), only=("Finalize",)))
    quiet_for(world, 30)
    paste_for(world, "WouldRestart", "rollout undo")
    assert world.api.objects[KAFKA]["spec"]["template"] == template
    assert world.live(world.approved_and(lambda: world.step == "ReleaseZooKeeper"))
    assert {pod: count for pod, count in world.kafka.starts.items() if "controller" not in pod[0]} == {
        pod: count for pod, count in starts.items() if "controller" not in pod[0]}


@pytest.mark.case("RevertedByGitOps")
def test_a_strategy_and_a_template_that_were_changed_back_are_ours_again(world: MigrationWorld) -> None:
    until_step(world, "MoveBrokers", 1)
    world.kubelet.keeps_history = True
    world.timeline.wait(1)
    world.advance()
    ours = copied(world.api.objects[KAFKA]["spec"])

    def revert(found: Any) -> None:
        """What an apply leaves that knows every mount but ours; every pod has that revision, as far as Kubernetes goes."""
        container = found["spec"]["template"]["spec"]["containers"][0]
        container["volumeMounts"] = [mount for mount in container["volumeMounts"] if mount["name"] != VOLUME]

    world.api.edit(*KAFKA, revert)
    assert world.live(lambda: waits_for(world, "RevertedByGitOps"))
    quiet_for(world, 30)
    starts = dict(world.kafka.starts)
    paste_for(world, "RevertedByGitOps", "rollout undo")
    world.api.edit(*KAFKA, lambda found: found["spec"].update(updateStrategy={"type": "RollingUpdate"}))
    assert world.live(lambda: waits_for(world, "RevertedByGitOps"))
    paste_for(world, "RevertedByGitOps", "OnDelete")
    assert world.api.objects[KAFKA]["spec"] == ours
    assert world.kafka.starts == starts
    world.goes_on(whole=False)


@pytest.mark.long
@pytest.mark.case("OwnTemplate")
def test_a_template_of_the_users_own_is_handed_over_to_by_one_field(world: MigrationWorld) -> None:
    assert world.live(world.approved_and(lambda: world.step == "HandOver", only=("Finalize",)))
    voters = ",".join(f"{3000 + n}@kafka-controller-{n}.kafka-controller.sim.svc:9093" for n in range(3))
    kraft = (f"process.roles=broker\ncontroller.quorum.voters={voters}\ncontroller.listener.names=CONTROLLER\n"
             "listeners=PLAINTEXT://:9092\nlog.dirs=/var/lib/kafka\n")
    theirs = copied(world.original["spec"]["template"])
    theirs["metadata"]["annotations"] = {"checksum/configuration": "of the new file"}
    world.api.edit("configmaps", "kafka-config", lambda found: found.update(data={"server.properties": kraft}))
    world.api.edit(*KAFKA, lambda found: found["spec"].update(template=theirs))
    starts = dict(world.kafka.starts)
    assert world.live(lambda: waits_for(world, "OwnTemplate"))
    quiet_for(world, 30)
    for line in [*commands(world, "OwnTemplate")]:          # what the controllers use of the chart's is to stay, too
        paste(world, line)
    assert world.migration["spec"]["handOver"] == "OwnConfiguration"
    assert world.kafka.starts == starts
    assert world.run_to_the_end()
    assert {node.marker for node in world.kafka.nodes.values() if node.is_broker} == {""}
    assert {node.mode for node in world.kafka.nodes.values() if node.is_broker} == {Mode.KRAFT}


def with_zookeeper(world: MigrationWorld) -> None:
    """Its StatefulSet stands behind the Service that the migration names; its pods are played by the world."""
    world.kubelet._due |= {("zoo", number): float("inf") for number in range(3)}
    labels = {"app": "zookeeper"}
    world.api.add("v1", "Service", "services", "zookeeper", spec={"selector": labels})
    world.api.add("apps/v1", "StatefulSet", "statefulsets", "zoo", spec={
        "replicas": 3, "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": {"containers": []}}})


def follow(world: MigrationWorld) -> None:
    """Its pods end with what the StatefulSet wants."""
    world.kafka.zookeeper_stopped = world.api.objects["statefulsets", "zoo"]["spec"]["replicas"] == 0


def approved_until(world: MigrationWorld, reason: str) -> None:
    """Everything is approved until it waits for that, which nobody does."""
    assert world.live(lambda: waits_for(world, reason) or (world.approve_what_waits() or False))


@pytest.mark.long
@pytest.mark.case("ZooKeeperRuns", "NotBackWithoutZooKeeper")
def test_zookeeper_is_scaled_away_and_back_and_away_again(world: MigrationWorld) -> None:
    before_finalize(world)
    with_zookeeper(world)
    world.api.edit("kafkamigrations", NAME, lambda found: found["spec"]["gates"].update(stepPatienceSeconds=60))
    approved_until(world, "ZooKeeperRuns")
    world.kafka.refuses = {(f"kafka-{n}", Mode.KRAFT) for n in range(3)}
    paste_for(world, "ZooKeeperRuns")
    follow(world)
    assert world.kafka.zookeeper_stopped
    assert world.live(lambda: waits_for(world, "NotBackWithoutZooKeeper"))
    [start] = commands(world, "NotBackWithoutZooKeeper")
    paste(world, start.replace("=N", "=3"))                 # how many there were behind the Service a person knows
    follow(world)
    assert not world.kafka.zookeeper_stopped
    world.kafka.refuses.clear()
    assert world.live(lambda: waits_for(world, "ZooKeeperRuns"))
    paste_for(world, "ZooKeeperRuns")
    follow(world)
    assert world.run_to_the_end()
    assert {world.kafka.nodes[f"kafka-{n}"].mode for n in range(3)} == {Mode.KRAFT}


@pytest.mark.long
@pytest.mark.case("ZooKeeperUnverified")
def test_a_zookeeper_that_says_nothing_of_its_clients_is_scaled_away(
        world: MigrationWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    async def connections(zookeeper: SimulatedZooKeeper, server: Address) -> int:
        if zookeeper._kafka.zookeeper_stopped:
            raise NotListening(f"nobody listens at {server}")
        raise Refused("srvr is not executed because it is not in the whitelist")

    monkeypatch.setattr(SimulatedZooKeeper, "connections", connections)
    before_finalize(world)
    with_zookeeper(world)
    approved_until(world, "ZooKeeperUnverified")
    quiet_for(world, 30)
    paste_for(world, "ZooKeeperUnverified")
    follow(world)
    assert world.run_to_the_end()
