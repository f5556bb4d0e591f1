"""Another cluster's id after Preflight: in ZooKeeper, from a broker, in the status. Nothing is moved or written until it is
put right; a cluster id once was a line of the controllers' edits, of whoever writes /cluster/id."""

import base64

import pytest

from fakes.kafka_world import CLUSTER_ID
from simulation.migration_world import HOW_FAR, NAME, MigrationWorld
from simulation.moments import at_step, before_finalize, quiet_for, reference, until_step
from simulation.test_defects import stalled

LONG = pytest.mark.long
ANOTHER = "anotherClusterAAAAAAAA"
EVIL = f"{CLUSTER_ID} 3.9 /d\nset super.users=User:ANONYMOUS\nformat {CLUSTER_ID}"


def edits(world: MigrationWorld) -> str:
    """All edits that are written."""
    found = [world.api.objects.get(("secrets", f"{name}-switchover")) for name in ("kafka", "kafka-controller")]
    return "\n".join(base64.b64decode(text).decode() for secret in found if secret is not None
                     for pod, text in sorted(secret["data"].items()) if pod != "door.sh")


def stands_changed(world: MigrationWorld, whole: bool, told: str) -> None:
    """It says who says what, and neither Kafka nor anything else is touched; then it goes on where that is put right."""
    assert world.live(lambda: stalled(world).get("reason") == "ClusterIdChanged")
    assert told in stalled(world)["message"]
    assert repr(CLUSTER_ID) in stalled(world)["message"]
    writes, started, written = world.moves, dict(world.kafka.starts), edits(world)
    quiet_for(world, 100)
    assert (world.moves, dict(world.kafka.starts), edits(world)) == (writes, started, written)
    world.kafka.clusters.clear()
    world.goes_on(whole)
    assert "super.users" not in edits(world)
    assert not whole or world.end_state().kafka == reference()[0].kafka


@pytest.mark.parametrize("said", [pytest.param(ANOTHER, id="another", marks=LONG), pytest.param(EVIL, id="a directive")])
@HOW_FAR
def test_the_id_in_zookeeper_is_written_before_there_are_controllers(world: MigrationWorld, said: str, whole: bool) -> None:
    at_step(world, "Rehearse")
    world.kafka.clusters["ZooKeeper"] = said
    stands_changed(world, whole, f"ZooKeeper's /cluster/id says that the cluster is {said[:60]!r}")


@HOW_FAR
def test_the_id_in_zookeeper_is_written_in_the_middle(world: MigrationWorld, whole: bool) -> None:
    until_step(world, "MoveBrokers", 1)
    world.kafka.clusters["ZooKeeper"] = ANOTHER
    stands_changed(world, whole, "ZooKeeper's /cluster/id")


@HOW_FAR
def test_a_broker_is_of_another_cluster(world: MigrationWorld, whole: bool) -> None:
    before_finalize(world)
    world.kafka.clusters["kafka-1"] = ANOTHER
    stands_changed(world, whole, "broker 2 says")


def test_the_controllers_are_of_another_cluster(world: MigrationWorld) -> None:
    """They compare the id that they are told with theirs: no gate opens on such a log."""
    at_step(world, "ProvisionControllers")
    world.kafka.clusters["controllers"] = ANOTHER
    assert world.live(lambda: any(f"a controller of another cluster than {CLUSTER_ID}" in item["message"]
                                  for item in world.status.get("waitingFor", ())))
    quiet_for(world, 60)
    assert world.step == "ProvisionControllers"
    world.kafka.clusters.clear()
    world.goes_on(False)


@pytest.mark.parametrize("said", [pytest.param(ANOTHER, id="another", marks=LONG),
                                  pytest.param(EVIL[:64], id="a directive")])
def test_the_id_on_record_is_written_over(world: MigrationWorld, said: str) -> None:
    """By whoever may write the status: the edits are made of that record."""
    at_step(world, "Rehearse")
    world.api.edit("kafkamigrations", NAME, lambda found: found["status"].update(clusterId=said))
    world.jury.memory.recorded = None
    assert world.live(lambda: stalled(world).get("reason") == "ClusterIdChanged")
    quiet_for(world, 60)
    assert edits(world) == ""
