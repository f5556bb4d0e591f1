"""`switchover plan` looks and tells; it writes nothing."""

import pytest

from fakes.api_server import NAMESPACE
from fakes.incarnation import Incarnation, SimulatedApiServer
from simulation.migration_world import NAME, MigrationWorld, simulated
from simulation.virtual_time import VirtualLoop
from switchover.adapters.kubernetes import KubernetesWorkloads
from switchover.adapters.migrations import KubernetesMigrations
from switchover.adapters.survey import KubernetesSurvey
from switchover.cli.connections import Connections
from switchover.cli.plan import explain
from switchover.ports import Refused


def told(world: MigrationWorld, name: str) -> list[str]:
    incarnation = Incarnation(world.api, 1, world.advance)
    server = SimulatedApiServer(incarnation, NAMESPACE)
    workloads = KubernetesWorkloads(server, world.timeline)
    migrations = KubernetesMigrations(server, world.timeline, "KafkaMigration", "kafkamigrations")

    connections = Connections(NAMESPACE, workloads, KubernetesSurvey(server), world.timeline,
                              simulated(incarnation, world.kafka))
    loop = VirtualLoop()
    world.timeline.begin(loop)
    try:
        return loop.run_until_complete(explain(name, NAMESPACE, migrations, connections, world.timeline))
    finally:
        loop.close()
        world.timeline.end()


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> MigrationWorld:
    return MigrationWorld(monkeypatch)


def test_before_anything_happened(world: MigrationWorld) -> None:
    lines = told(world, NAME)
    assert "> Preflight" in lines
    assert any(line.startswith("next: record:") for line in lines)
    assert any(line.startswith("finding Info MetadataSize 2 topics with 9 partitions") for line in lines)
    assert any(line.startswith("finding Info StorageClassUnseen [the default storage class]") for line in lines)
    assert world.api.writes == []


def test_blockers_are_told_with_their_cures(world: MigrationWorld) -> None:
    labels = {"kustomize.toolkit.fluxcd.io/name": "kafka"}
    world.api.edit("statefulsets", "kafka", lambda found: found["metadata"].update(labels=labels))
    world.kafka.nodes["kafka-1"].settings = {**world.kafka.nodes["kafka-1"].settings, "log.dirs": "/elsewhere"}
    lines = told(world, NAME)
    (conflict,) = (index for index, line in enumerate(lines) if line.startswith("finding Blocker GitOpsConflict"))
    assert lines[conflict + 1].strip() == (
        "cure: kubectl --namespace sim annotate --overwrite statefulset kafka"
        " kustomize.toolkit.fluxcd.io/reconcile=disabled")
    volatile = next(line for line in lines if line.startswith("finding Blocker BrokerDataIsVolatile [StatefulSet kafka]"))
    assert "/elsewhere of StatefulSet kafka lies on the container's own file system" in volatile
    begin = world.timeline.now()
    assert world.live(lambda: world.timeline.now() > begin + 60)
    assert world.step == "Preflight"
    assert {"GitOpsConflict", "BrokerDataIsVolatile"} <= {finding["code"] for finding in world.status["findings"]}
    (passed,) = (each for each in world.status["conditions"] if each["type"] == "PreflightPassed")
    assert passed["message"].startswith("2 blockers")


def test_in_the_middle_of_a_batch(world: MigrationWorld) -> None:
    world.live(lambda: False, kill_when=lambda: world.step == "MoveBrokers" and world.status["progress"]["batch"] == 2)
    writes = len(world.api.writes)
    lines = told(world, NAME)
    (moving,) = world.status["progress"]["batchNodes"]
    assert "> MoveBrokers" in lines
    assert f"batch 2: {moving}" in lines
    assert any(line.startswith("gate GroupsHealthy: Pass") for line in lines)
    assert any(line.startswith("gate DriverAlive: Pass") for line in lines), "that it writes is seen by a second look alone"
    moves = ("next: write the files of Secret kafka-switchover", f"next: record: evict {moving}")
    assert any(line.startswith(moves) for line in lines)
    assert len(world.api.writes) == writes


def test_a_migration_that_does_not_exist_is_refused_in_words(world: MigrationWorld) -> None:
    with pytest.raises(Refused, match="KafkaMigration nothing does not exist in this namespace"):
        told(world, "nothing")
