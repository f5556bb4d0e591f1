"""An upgrade of the operator in the middle of a migration whose modes are on record by letters."""

from typing import Any

import pytest

from simulation.migration_world import HOW_FAR, NAME, MigrationWorld
from simulation.moments import reference, to_batch
from switchover.api.kafka_migration import FORMERLY
from switchover.api.kafka_migration import NodeMode as Mode

LETTERS = {mode.value: letter for letter, mode in FORMERLY.items()}


def by_letter(migration: Any) -> None:
    """The object as the operator of before would have written it."""
    status = migration["status"]
    for node in status["nodes"]:
        node.update({key: LETTERS.get(node[key], node[key]) for key in ("assigned", "observed")})
    for pace in status["restarts"]:
        pace["name"] = LETTERS.get(pace["name"], pace["name"])
    for change in status["plan"]["changes"]:
        workload, mode = change["name"].split("/")
        change["name"] = f"{workload}/{LETTERS[mode]}"


def letters_of(status: Any) -> list[str]:
    """All that is told by a letter."""
    told = [node[key] for node in status["nodes"] for key in ("assigned", "observed")]
    told += [pace["name"] for pace in status["restarts"]]
    told += [change["name"].rpartition("/")[2] for change in status["plan"]["changes"]]
    return [mode for mode in told if mode in FORMERLY]


@pytest.mark.parametrize(("step", "number"), [
    pytest.param("EnableMigration", 2, marks=pytest.mark.long), ("MoveBrokers", 1),
    pytest.param("Finalize", 2, marks=pytest.mark.long)])
@HOW_FAR
def test_a_migration_goes_on_and_nothing_is_restarted_for_it(
        world: MigrationWorld, step: str, number: int, whole: bool) -> None:
    to_batch(world, step, number)
    world.api.edit("kafkamigrations", NAME, by_letter)
    assert len(letters_of(world.status)) > 12
    edits = {secret["metadata"]["name"]: secret["data"] for secret in world.api.of("secrets")}
    told = len(world.story)

    assert world.live(lambda: not letters_of(world.status)), "all of them in one write"
    assert {secret["metadata"]["name"]: secret["data"] for secret in world.api.of("secrets")} == edits
    world.goes_on(whole)
    assert not whole or world.end_state() == reference()[0]
    assert "StartedByOtherEdits" not in "".join(line for _, line in world.story[told:])


def test_a_rollback_goes_on_with_the_controllers_that_have_stopped(world: MigrationWorld) -> None:
    to_batch(world, "MoveBrokers", 2)
    stopped = lambda: any(node["assigned"] == Mode.STOPPED for node in world.status["nodes"])  # noqa: E731
    assert not world.roll_back(kill_when=stopped)
    world.api.edit("kafkamigrations", NAME, by_letter)
    assert world.live(lambda: world.phase == "RolledBack")
    assert {node.mode for node in world.kafka.nodes.values()} == {Mode.ZOOKEEPER}
