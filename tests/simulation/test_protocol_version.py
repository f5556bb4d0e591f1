"""Brokers whose protocol version is too old for a migration: rolled once more at the start, and back to their own."""

from typing import Any

import pytest

from simulation.migration_world import MigrationWorld

BROKERS = ("kafka-0", "kafka-1", "kafka-2")


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> MigrationWorld:
    return MigrationWorld(monkeypatch, protocol="3.5")


def starts(world: MigrationWorld) -> dict[str, list[int]]:
    """Mode -> how often each broker has started in it."""
    return {mode: [world.kafka.starts.get((pod, mode), 0) for pod in BROKERS] for mode in "ARBC"}


def stateful_set(world: MigrationWorld) -> Any:
    found = world.api.objects["statefulsets", "kafka"]
    return found["spec"], found["metadata"].get("annotations") or {}


def observed(world: MigrationWorld) -> set[str]:
    return {node["observed"] for node in world.status["nodes"] if node["name"] in BROKERS}


def test_forward(world: MigrationWorld) -> None:
    assert world.live(lambda: world.step == "ProvisionControllers")
    assert starts(world) == {"A": [1, 1, 1], "R": [1, 1, 1], "B": [0, 0, 0], "C": [0, 0, 0]}
    assert observed(world) == {"R"}
    assert world.run_to_the_end()
    assert starts(world) == {mode: [1, 1, 1] for mode in "ARBC"}
    assert observed(world) == {"C"}


@pytest.mark.long
@pytest.mark.parametrize("seed", range(2))
def test_a_kill_after_every_move(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    world = MigrationWorld(monkeypatch, seed, protocol="3.5")
    while not world.live(lambda: world.step == "EnableMigration", kill_when=lambda: world.moves >= world.lives):
        assert world.lives < 1000, f"no end in sight: {world.step}"
    assert (starts(world)["A"], starts(world)["R"]) == ([1, 1, 1], [1, 1, 1])


@pytest.mark.parametrize(("step", "moved"), [
    ("RaiseProtocolVersion", 1), ("EnableMigration", 4), *(pytest.param(*each, marks=pytest.mark.long) for each in (
        ("RaiseProtocolVersion", 3), ("ProvisionControllers", 3), ("MoveBrokers", 7)))])
def test_back_to_the_old_version(world: MigrationWorld, step: str, moved: int) -> None:
    """`moved` is how many brokers have started in another mode than the user's."""
    before = stateful_set(world)
    assert world.live(lambda: world.step == step and sum(sum(starts(world)[mode]) for mode in "RBC") == moved)
    assert world.roll_back()
    assert {node.mode for node in world.kafka.nodes.values()} == {"A"}
    assert stateful_set(world) == before
    assert not [secret["metadata"]["name"] for secret in world.api.of("secrets")]


@pytest.mark.long
def test_back_and_forward_again(world: MigrationWorld) -> None:
    assert world.live(lambda: world.step == "EnableMigration" and sum(starts(world)["B"]) == 1)
    assert world.roll_back()
    assert world.try_again()
    assert {node.mode for node in world.kafka.nodes.values() if node.pod in BROKERS} == {"C"}


def test_a_pod_that_is_killed_meanwhile_comes_back_in_the_mode_assigned_to_it(world: MigrationWorld) -> None:
    assert world.live(lambda: world.step == "RaiseProtocolVersion" and sum(starts(world)["R"]) == 1)
    (raised,) = [pod for pod in BROKERS if world.kafka.starts.get((pod, "R"))]
    assert world.live(lambda: world.kafka.nodes[raised].ready)
    world.api.remove("pods", raised)
    assert world.live(lambda: world.step == "ProvisionControllers")
    assert world.kafka.starts[raised, "R"] == 2
    assert world.kafka.starts[raised, "A"] == 1
