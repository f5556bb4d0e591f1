"""Brokers whose release or protocol version is too old: rolled once more for each at the start, and back to their own."""

from typing import Any

import pytest

from fakes.kafka_world import BROKER_MODES
from simulation.migration_world import HOW_FAR, MigrationWorld
from switchover.api.kafka_migration import NodeMode as Mode
from switchover.cluster import modes

BROKERS = ("kafka-0", "kafka-1", "kafka-2")


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> MigrationWorld:
    return MigrationWorld(monkeypatch, protocol="3.5")


def starts(world: MigrationWorld) -> dict[str, list[int]]:
    """Mode -> how often each broker has started in it."""
    return {mode: [world.kafka.starts.get((pod, mode), 0) for pod in BROKERS] for mode in BROKER_MODES}


def started(world: MigrationWorld) -> dict[str, int]:
    """Mode -> how many brokers have started in it; at the end of a migration one starts without ZooKeeper, too."""
    return {mode: sum(counts) for mode, counts in starts(world).items()}


def edited(world: MigrationWorld) -> int:
    """How often brokers have started in another mode than the user's."""
    return sum(count for mode, count in started(world).items() if mode != Mode.ZOOKEEPER)


def stateful_set(world: MigrationWorld) -> Any:
    found = world.api.objects["statefulsets", "kafka"]
    return found["spec"], found["metadata"].get("annotations") or {}


def observed(world: MigrationWorld) -> set[str]:
    return {node["observed"] for node in world.status["nodes"] if node["name"] in BROKERS}


@HOW_FAR
def test_forward(world: MigrationWorld, whole: bool) -> None:
    assert world.live(lambda: world.step == "ProvisionControllers")
    before = (Mode.ZOOKEEPER, Mode.ZOOKEEPER_RAISED)
    assert starts(world) == {mode: [int(mode in before)] * 3 for mode in BROKER_MODES}
    assert observed(world) == {Mode.ZOOKEEPER_RAISED}
    if whole:
        assert world.run_to_the_end()
        assert started(world) == {
            Mode.ZOOKEEPER: 3, Mode.ZOOKEEPER_PINNED: 0, Mode.ZOOKEEPER_RAISED: 3, Mode.MIGRATION: 3, Mode.KRAFT: 4}
        assert observed(world) == {Mode.KRAFT}


@pytest.mark.long
@pytest.mark.parametrize("seed", range(2))
def test_a_kill_after_every_move(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    world = MigrationWorld(monkeypatch, seed, protocol="3.5")
    while not world.live(lambda: world.step == "EnableMigration", kill_when=lambda: world.moves >= world.lives):
        assert world.lives < 1000, f"no end in sight: {world.step}"
    assert (starts(world)[Mode.ZOOKEEPER], starts(world)[Mode.ZOOKEEPER_RAISED]) == ([1, 1, 1], [1, 1, 1])


@pytest.mark.parametrize(("step", "moved"), [
    ("RaiseProtocolVersion", 1), ("EnableMigration", 4), *(pytest.param(*each, marks=pytest.mark.long) for each in (
        ("RaiseProtocolVersion", 3), ("ProvisionControllers", 3), ("MoveBrokers", 7)))])
def test_back_to_the_old_version(world: MigrationWorld, step: str, moved: int) -> None:
    """`moved` is how many brokers have started in another mode than the user's."""
    before = stateful_set(world)
    assert world.live(lambda: world.step == step and edited(world) == moved)
    assert world.roll_back()
    assert {node.mode for node in world.kafka.nodes.values()} == {Mode.ZOOKEEPER}
    assert stateful_set(world) == before
    assert not [secret["metadata"]["name"] for secret in world.api.of("secrets")]


@pytest.mark.long
def test_back_and_forward_again(world: MigrationWorld) -> None:
    assert world.live(lambda: world.step == "EnableMigration" and sum(starts(world)[Mode.MIGRATION]) == 1)
    assert world.roll_back()
    assert world.try_again()
    assert {node.mode for node in world.kafka.nodes.values() if node.pod in BROKERS} == {Mode.KRAFT}


def test_a_pod_that_is_killed_meanwhile_comes_back_in_the_mode_assigned_to_it(world: MigrationWorld) -> None:
    assert world.live(lambda: world.step == "RaiseProtocolVersion" and sum(starts(world)[Mode.ZOOKEEPER_RAISED]) == 1)
    (raised,) = [pod for pod in BROKERS if world.kafka.starts.get((pod, Mode.ZOOKEEPER_RAISED))]
    assert world.live(lambda: world.kafka.nodes[raised].ready)
    world.api.remove("pods", raised)
    assert world.live(lambda: world.step == "ProvisionControllers")
    assert world.kafka.starts[raised, Mode.ZOOKEEPER_RAISED] == 2
    assert world.kafka.starts[raised, Mode.ZOOKEEPER] == 1


# --- an older Kafka -----------------------------------------------------------------------------------------------------

NEW = "kafka:3.9.2"


def old_world(monkeypatch: pytest.MonkeyPatch, protocol: str, seed: int = 0) -> MigrationWorld:
    """Brokers of an older Kafka, and a migration that says what they are upgraded to."""
    world = MigrationWorld(monkeypatch, seed, protocol=protocol, old=True)
    world.api.edit("kafkamigrations", "main", lambda found: found["spec"].update(upgrade={"image": NEW}))
    return world


def image(world: MigrationWorld, name: str = "kafka") -> str:
    return str(world.api.objects["statefulsets", name]["spec"]["template"]["spec"]["containers"][0]["image"])


@HOW_FAR
@pytest.mark.parametrize(("protocol", "raised"), [pytest.param("3.8", 0, marks=pytest.mark.long), ("3.5", 3)])
def test_older_brokers_are_upgraded_first(
        monkeypatch: pytest.MonkeyPatch, protocol: str, raised: int, whole: bool) -> None:
    world = old_world(monkeypatch, protocol)
    after = ("RaiseProtocolVersion", "ProvisionControllers")   # where nothing is raised the first is over at once
    assert world.live(lambda: world.step in after)
    assert observed(world) == {Mode.ZOOKEEPER_PINNED}
    assert image(world) == NEW
    assert world.live(world.approved_and(lambda: world.finished or (not whole and world.step == "DualWrite")))
    assert started(world) == {
        **dict.fromkeys(BROKER_MODES, 3), Mode.ZOOKEEPER_RAISED: raised, Mode.KRAFT: 4 if whole else 0}
    assert (image(world), image(world, "kafka-controller")) == (NEW, NEW)


def test_without_an_image_to_upgrade_to_nothing_is_touched(monkeypatch: pytest.MonkeyPatch) -> None:
    world = MigrationWorld(monkeypatch, protocol="3.8", old=True)
    before = stateful_set(world)
    assert world.live(lambda: any(item["reason"] == "WrongKafkaVersion" for item in world.status.get("waitingFor", ())))
    assert stateful_set(world) == before


def test_brokers_of_the_right_release_are_not_restarted_for_an_upgrade(world: MigrationWorld) -> None:
    world.api.edit("kafkamigrations", "main", lambda found: found["spec"].update(upgrade={"image": NEW}))
    assert world.live(lambda: world.step == "ProvisionControllers")
    assert starts(world)[Mode.ZOOKEEPER_PINNED] == [0, 0, 0]
    assert image(world) != NEW


@pytest.mark.parametrize(("step", "moved"), [
    ("UpgradeBrokers", 1), ("EnableMigration", 7), *(pytest.param(*each, marks=pytest.mark.long) for each in (
        ("UpgradeBrokers", 3), ("RaiseProtocolVersion", 5), ("ProvisionControllers", 6), ("MoveBrokers", 10)))])
def test_back_to_the_older_kafka(monkeypatch: pytest.MonkeyPatch, step: str, moved: int) -> None:
    world = old_world(monkeypatch, "3.5")
    before = stateful_set(world)
    assert world.live(lambda: world.step == step and edited(world) == moved)
    assert world.roll_back()
    assert {node.mode for node in world.kafka.nodes.values()} == {Mode.ZOOKEEPER}
    assert stateful_set(world) == before
    assert not [secret["metadata"]["name"] for secret in world.api.of("secrets")]


@pytest.mark.long
@pytest.mark.parametrize("seed", range(2))
def test_a_kill_after_every_move_of_an_upgrade(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    world = old_world(monkeypatch, "3.5", seed)
    while not world.live(lambda: world.step == "EnableMigration", kill_when=lambda: world.moves >= world.lives):
        assert world.lives < 1000, f"no end in sight: {world.step}"
    assert [starts(world)[mode] for mode in modes.WITHOUT_QUORUM] == [[1, 1, 1]] * 3


def test_an_image_that_is_no_kafka_3_9_is_named_and_the_canary_alone_has_met_it(monkeypatch: pytest.MonkeyPatch) -> None:
    world = old_world(monkeypatch, "3.8")
    world.kafka.old_images.add(NEW)
    assert world.live(lambda: any(
        "runs a Kafka older than 3.9" in item["message"] for item in world.status.get("waitingFor", ())))
    assert edited(world) == 0
    assert sorted(starts(world)[Mode.ZOOKEEPER])[:2] == [1, 1]
    assert world.roll_back()
