"""`switchover plan` looks and tells; it writes nothing."""

import json
from dataclasses import replace
from typing import Any

import yaml

from fakes.api_server import NAMESPACE
from fakes.incarnation import Incarnation, SimulatedApiServer
from simulation.migration_world import NAME, SPEC, MigrationWorld, simulated
from simulation.moments import second_batch
from simulation.virtual_time import VirtualLoop
from switchover.cli.objects import in_file
from switchover.cli.plan import Look, as_lines, document, look, preflight
from switchover.cluster.kind import kafka_migrations
from switchover.engine.policy import Policy
from switchover.kubernetes.client.migrations import KubernetesMigrations
from switchover.kubernetes.client.survey import KubernetesSurvey
from switchover.kubernetes.client.workloads import KubernetesWorkloads
from switchover.process.connections import Connections


def looked(world: MigrationWorld, manifest: str = "") -> Look[Any]:
    incarnation = Incarnation(world.api, 1, world.advance)
    server = SimulatedApiServer(incarnation, NAMESPACE)
    workloads = KubernetesWorkloads(server, world.timeline)
    migrations = KubernetesMigrations(server, world.timeline, "KafkaMigration", "kafkamigrations")

    connections = Connections(NAMESPACE, workloads, KubernetesSurvey(server), world.timeline,
                              simulated(incarnation, world.kafka))
    loop = VirtualLoop()
    world.timeline.begin(loop)
    try:
        applied = loop.run_until_complete(migrations.get(NAME))
        resource = in_file(manifest, NAMESPACE).resource if manifest else applied
        assert resource is not None
        kind = kafka_migrations(Policy(images=("*",)), "*")
        return loop.run_until_complete(look(resource, kind, NAMESPACE, connections, world.timeline))
    finally:
        loop.close()
        world.timeline.end()


def told(world: MigrationWorld) -> list[str]:
    return list(as_lines(looked(world)))


def test_blockers_are_told_with_their_cures(world: MigrationWorld) -> None:
    labels = {"kustomize.toolkit.fluxcd.io/name": "kafka"}
    world.api.edit("statefulsets", "kafka", lambda found: found["metadata"].update(labels=labels))
    world.kafka.nodes["kafka-1"].settings = {**world.kafka.nodes["kafka-1"].settings, "log.dirs": "/elsewhere"}
    lines = told(world)
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
    second_batch(world)
    writes = len(world.api.writes)
    lines = told(world)
    (moving,) = world.status["progress"]["batchNodes"]
    assert "> MoveBrokers" in lines
    assert f"batch 2: {moving}" in lines
    assert any(line.startswith("gate GroupsHealthy: Pass") for line in lines)
    assert any(line.startswith("gate DriverAlive: Pass") for line in lines), "that it writes is seen by a second look alone"
    moves = ("next: write the files of Secret kafka-switchover", f"next: record: evict {moving}")
    assert any(line.startswith(moves) for line in lines)
    assert len(world.api.writes) == writes


def test_the_exit_code_is_of_the_worst_that_was_found(world: MigrationWorld) -> None:
    found = looked(world)
    assert (found.code, {finding.severity for finding in found.findings}) == (3, {"Warning", "Info"})
    as_json = json.loads(json.dumps(document(found)))
    assert (as_json["step"], as_json["findings"][0]["severity"]) == ("Preflight", "Warning")
    assert as_json["plan"]["restarts"] > 0
    world.api.edit("statefulsets", "kafka", lambda found: found["metadata"].update(
        labels={"kustomize.toolkit.fluxcd.io/name": "kafka"}))
    assert looked(world).code == 1, "a blocker"


def test_of_a_manifest_the_same_is_found_before_it_is_applied(world: MigrationWorld) -> None:
    manifest = {"apiVersion": "switchover.dev/v1alpha1", "kind": "KafkaMigration", "metadata": {"name": NAME}, "spec": SPEC}
    found, applied = looked(world, yaml.safe_dump(manifest)), looked(world)
    assert (found.code, found.findings) == (applied.code, applied.findings)


def test_what_could_not_be_seen_is_no_blocker(world: MigrationWorld) -> None:
    """D8: with ZooKeeper silent it cannot be told which pod is which broker, and nobody is to blame for it."""
    world.kafka.zookeeper_hidden = True
    found = looked(world)
    assert [finding.code for finding in found.findings if finding.severity == "Blocker"] == []
    assert found.code == 3
    (told,) = (line for line in as_lines(found) if line.startswith("gate ") and ", Membership, " in line)
    assert ": Unknown ZooKeeperUnknown " in told, "many gates could not see it, and it is said once"


def test_preflight_tells_findings_what_it_could_not_see_and_what_would_be_done(world: MigrationWorld) -> None:
    lines = list(preflight(looked(world)))
    assert any(line.startswith("finding Info MetadataSize") for line in lines)
    assert any(line.startswith("plan: ") for line in lines)
    assert lines[-1].startswith("0 Blockers, ")
    world.kafka.zookeeper_hidden = True
    lines = list(preflight(looked(world)))
    assert any(line.startswith("unseen ZooKeeperUnknown [ZooKeeper] ZooKeeper does not answer") for line in lines)
    assert lines[-1].startswith("0 Blockers, ")
    assert not lines[-1].endswith(" 0 unseen")
    unseen = [line.partition(" (")[0] for line in lines if line.startswith("unseen ")]
    assert len(unseen) == len(set(unseen)), "what many gates miss is said once"
    inside = "deployment/switchover -- switchover preflight --namespace sim --file - < MANIFEST"
    told_where = "where an operator runs that serves the namespace, kubectl --namespace ITS-NAMESPACE exec --stdin "
    assert any(line.endswith(f"cannot be reached from here: {told_where}{inside}") for line in lines)


def test_what_cannot_be_seen_from_here_is_asked_in_the_operators_pod_wherever_that_is(world: MigrationWorld) -> None:
    world.kafka.zookeeper_hidden = True
    seen = replace(looked(world), operator=("operators", "switchover-7f6c-x2"))
    assert any(line.endswith("from here: kubectl --namespace operators exec switchover-7f6c-x2 -- switchover plan "
                             f"--namespace sim kmig/{NAME}") for line in as_lines(seen))
    assert any(line.endswith("exec --stdin switchover-7f6c-x2 -- switchover preflight --namespace sim --file - < MANIFEST")
               for line in preflight(seen))
