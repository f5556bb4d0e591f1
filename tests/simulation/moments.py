"""Moments of a simulated KafkaMigration: how to get there, and what is to be seen."""

from collections.abc import Callable
from functools import cache

import pytest

from fakes.api_server import Object
from simulation.migration_world import ON_THE_WAY, TO_THE_END, EndState, MigrationWorld, Moment
from switchover.api.kafka_migration import NodeMode as Mode


def undisturbed(world: MigrationWorld) -> None:
    """Run to the end."""

    def run() -> None:
        assert world.run_to_the_end()

    world.get_to(TO_THE_END, run)


@cache
def reference(seed: int = 0) -> tuple[EndState, list[str]]:
    """The end of a run without trouble, and its writes."""
    with pytest.MonkeyPatch.context() as patch:
        world = MigrationWorld(patch, seed)
        undisturbed(world)
        return world.end_state(), [write.text for write in world.api.writes]


Is = Callable[[MigrationWorld], bool]


def on_the_way(moment: Moment, *, kills: bool = False) -> Callable[[Is], Is]:
    """What is so at a moment that the life of all tests passes."""

    def noted(is_there: Is) -> Is:
        ON_THE_WAY[moment] = is_there, kills
        return is_there

    return noted


def get_to(world: MigrationWorld, moment: Moment, is_there: Is, *, kills: bool = False, approving: bool = False) -> None:
    """Run until something is so, or until the process is killed by it."""

    def run() -> None:
        def so() -> bool:
            return is_there(world)

        def lives_on() -> bool:
            return False

        if kills:
            assert not world.live(world.approved_and(lives_on) if approving else lives_on, kill_when=so)
        else:
            assert world.live(so)

    world.get_to(moment, run)


def have_started(step: str, moved: int) -> Is:
    mode = {"EnableMigration": Mode.MIGRATION, "MoveBrokers": Mode.KRAFT}[step]
    return lambda world: sum(each[1] == mode for each in world.kafka.starts) == moved and world.step == step


def until_step(world: MigrationWorld, step: str, moved: int) -> None:
    """Run until so many brokers of a step have started in its mode."""
    get_to(world, ("until", step, moved), have_started(step, moved))


def at_step(world: MigrationWorld, step: str) -> None:
    """Run until a step is on record."""
    get_to(world, ("at", step), lambda world: world.step == step)


@on_the_way(("second batch",))
def is_second_batch(world: MigrationWorld) -> bool:
    return world.step == "MoveBrokers" and bool(world.status["progress"]["batch"] == 2)


def second_batch(world: MigrationWorld) -> None:
    """Run until the second broker is on record to move to KRaft."""
    get_to(world, ("second batch",), is_second_batch)


@on_the_way(("before Finalize",))
def is_before_finalize(world: MigrationWorld) -> bool:
    return world.step == "Finalize" and waits_for(world, "AwaitingApproval")


def before_finalize(world: MigrationWorld) -> None:
    """Run until everything is on KRaft, and Finalize waits for its approval."""
    get_to(world, ("before Finalize",), is_before_finalize)


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
    get_to(world, ("step", step), lambda world: opened(world, step), kills=True, approving=True)


def is_moving(step: str, batch: int) -> Is:
    def moving(world: MigrationWorld) -> bool:
        if not opened(world, step):
            return False
        progress = world.status["progress"]
        return progress["batch"] == batch and any(
            "deletionTimestamp" in world.api.objects["pods", name]["metadata"] for name in progress.get("batchNodes") or ())

    return moving


def to_batch(world: MigrationWorld, step: str, batch: int) -> None:
    """Run until a batch's file is written and its pod is gone: assigned, and not Ready in its mode yet."""
    get_to(world, ("batch", step, batch), is_moving(step, batch), kills=True, approving=True)


for _step in ("EnableMigration", "MoveBrokers"):
    on_the_way(("until", _step, 1))(have_started(_step, 1))
for _step in ("Rehearse", "ProvisionControllers", "EnableMigration", "DualWrite", "MoveBrokers", "Soak"):
    on_the_way(("at", _step))(lambda world, step=_step: world.step == step)                        # type: ignore[misc]
for _step in ("ProvisionControllers", "EnableMigration", "CopyMetadata", "DualWrite", "Soak", "Finalize"):
    on_the_way(("step", _step), kills=True)(lambda world, step=_step: opened(world, step))         # type: ignore[misc]
for _step, _batch in (("CopyMetadata", 1), ("MoveBrokers", 1), ("MoveBrokers", 2)):
    on_the_way(("batch", _step, _batch), kills=True)(is_moving(_step, _batch))


def reasons(world: MigrationWorld) -> set[str]:
    return {item["reason"] for item in world.status.get("waitingFor") or ()}


def told(world: MigrationWorld, reason: str) -> Object:
    """What is told of that reason, which it waits for."""
    return next(item for item in world.status["waitingFor"] if item["reason"] == reason)
