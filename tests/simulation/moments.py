"""Moments of a simulated KafkaMigration: how to get there, and what is to be seen."""

from functools import cache

import pytest

from fakes.api_server import Object
from simulation.migration_world import EndState, MigrationWorld
from switchover.api.kafka_migration import NodeMode as Mode


def undisturbed(world: MigrationWorld) -> None:
    """Run to the end."""

    def run() -> None:
        assert world.run_to_the_end()

    world.get_to(("end",), run)


@cache
def reference(seed: int = 0) -> tuple[EndState, list[str]]:
    """The end of a run without trouble, and its writes."""
    with pytest.MonkeyPatch.context() as patch:
        world = MigrationWorld(patch, seed)
        undisturbed(world)
        return world.end_state(), [write.text for write in world.api.writes]


def until_step(world: MigrationWorld, step: str, moved: int) -> None:
    """Run until so many brokers of a step have started in its mode."""
    mode = {"EnableMigration": Mode.MIGRATION, "MoveBrokers": Mode.KRAFT}[step]

    def run() -> None:
        assert world.live(lambda: sum(each[1] == mode for each in world.kafka.starts) == moved and world.step == step)

    world.get_to(("until", step, moved), run)


def second_batch(world: MigrationWorld) -> None:
    """Run until the second broker is on record to move to KRaft."""

    def run() -> None:
        assert world.live(lambda: world.step == "MoveBrokers" and world.status["progress"]["batch"] == 2)

    world.get_to(("second batch",), run)


def before_finalize(world: MigrationWorld) -> None:
    """Run until everything is on KRaft, and Finalize waits for its approval."""

    def run() -> None:
        assert world.live(lambda: world.step == "Finalize" and waits_for(world, "AwaitingApproval"))

    world.get_to(("before Finalize",), run)


def quiet_for(world: MigrationWorld, seconds: float) -> None:
    """Run for a while in which no process is started."""
    starts, begin = dict(world.kafka.starts), world.timeline.now()
    assert world.live(lambda: world.timeline.now() > begin + seconds)
    assert world.kafka.starts == starts


def waits_for(world: MigrationWorld, reason: str) -> bool:
    return any(item["reason"] == reason for item in world.status.get("waitingFor") or ())


def opened(world: MigrationWorld, step: str) -> bool:
    """The step has begun, in either direction."""
    return world.step == step and bool(world.status["progress"].get("openTime"))


def to_step(world: MigrationWorld, step: str) -> None:
    """Run until a step has begun; the process dies in that moment."""

    def run() -> None:
        assert not world.live(world.approved_and(lambda: False), kill_when=lambda: opened(world, step))

    world.get_to(("step", step), run)


def to_batch(world: MigrationWorld, step: str, batch: int) -> None:
    """Run until a batch's file is written and its pod is gone: assigned, and not Ready in its mode yet."""

    def moving() -> bool:
        if not opened(world, step):
            return False
        progress = world.status["progress"]
        return progress["batch"] == batch and any(
            "deletionTimestamp" in world.api.objects["pods", name]["metadata"] for name in progress.get("batchNodes") or ())

    def run() -> None:
        assert not world.live(lambda: False, kill_when=moving)

    world.get_to(("batch", step, batch), run)


def reasons(world: MigrationWorld) -> set[str]:
    return {item["reason"] for item in world.status.get("waitingFor") or ()}


def told(world: MigrationWorld, reason: str) -> Object:
    """What is told of that reason, which it waits for."""
    return next(item for item in world.status["waitingFor"] if item["reason"] == reason)
