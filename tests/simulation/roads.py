"""Migrations that differ in what they do, each from where it begins to its end."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import pytest

from fakes.api_server import NAMESPACE
from simulation.group_migrations import GroupMigrationWorld
from simulation.migration_world import SERVER_PROPERTIES, MigrationWorld
from simulation.moments import to_batch, to_step, waits_for
from simulation.operated import OperatedWorld
from simulation.test_protocol_version import old_world
from switchover.api.kafka_migration import NodeMode as Mode
from unit.group_pictures import written_spec
from unit.group_walk import PLANS, spared, wanted


@dataclass(frozen=True)
class Road:
    """`begin` gives a world in which no operator lives, right before the first write that counts."""

    begin: Callable[[pytest.MonkeyPatch], OperatedWorld]
    is_over: Callable[[OperatedWorld], bool]

    def go(self, world: OperatedWorld, **how: Any) -> bool:
        """Let one process live until it is over, approving what waits; False when it is killed before."""
        return world.live(world.approved_and(lambda: self.is_over(world)), **how)


def is_finished(world: OperatedWorld) -> bool:
    return world.finished


def is_back(world: OperatedWorld) -> bool:
    return world.phase == "RolledBack"


def from_an_old_kafka(patch: pytest.MonkeyPatch) -> MigrationWorld:
    """UpgradeBrokers and RaiseProtocolVersion come first."""
    return old_world(patch, "3.5")


def with_an_own_configuration(patch: pytest.MonkeyPatch) -> MigrationWorld:
    """All but HandOver is done, and a chart has brought KRaft settings of its own."""
    world = MigrationWorld(patch)

    def run() -> None:
        world.want("Running", handOver="OwnConfiguration")
        assert world.live(world.approved_and(lambda: waits_for(world, "TemplateNotBrought"), only=("Finalize",)))

    world.get_to(("own configuration",), run)
    voters = ",".join(f"{3000 + n}@kafka-controller-{n}.kafka-controller.{NAMESPACE}.svc:9093" for n in range(3))
    kept = "".join(f"{line}\n" for line in SERVER_PROPERTIES.splitlines() if line.startswith(("listeners", "log.dirs")))
    kraft = f"process.roles=broker\ncontroller.quorum.voters={voters}\ncontroller.listener.names=CONTROLLER\n{kept}"
    world.api.edit("configmaps", "kafka-config", lambda found: found.update(data={"server.properties": kraft}))
    world.api.edit("statefulsets", "kafka", lambda found: found["spec"]["template"]["metadata"].update(
        annotations={"checksum/configuration": "of the new file"}))
    return world


def with_a_tree_that_changes(patch: pytest.MonkeyPatch) -> MigrationWorld:
    """What was rehearsed is no longer what will be copied: it is rehearsed again."""
    world = MigrationWorld(patch)
    to_step(world, "EnableMigration")
    assert world.kafka.change("quota new", "1")
    return world


def back(world: MigrationWorld) -> MigrationWorld:
    """The way back is asked for, after a change."""
    assert world.kafka.change("config orders", "retention.ms=3600000")
    world.want("RolledBack")
    return world


def back_from_soak(patch: pytest.MonkeyPatch) -> MigrationWorld:
    world = MigrationWorld(patch)
    to_step(world, "Soak")
    return back(world)


def back_from_a_batch(patch: pytest.MonkeyPatch) -> MigrationWorld:
    """One broker is on KRaft, the next on its way there."""
    world = MigrationWorld(patch)
    to_batch(world, "MoveBrokers", 2)
    return back(world)


def back_to_an_old_kafka(patch: pytest.MonkeyPatch) -> MigrationWorld:
    world = from_an_old_kafka(patch)
    assert world.live(lambda: world.step == "EnableMigration" and sum(
        mode == Mode.MIGRATION for _, mode in world.kafka.starts) == 1)
    return back(world)


def a_second_attempt(patch: pytest.MonkeyPatch) -> MigrationWorld:
    """One attempt was taken back."""
    world = MigrationWorld(patch)
    to_step(world, "DualWrite")
    assert Road(MigrationWorld, is_back).go(back(world))
    world.want("Running")
    return world


def of_a_group(plan: str, patch: pytest.MonkeyPatch) -> GroupMigrationWorld:
    """A ConsumerGroupMigration along one of the plans that `unit.group_walk` walks."""
    given = dict(PLANS[plan].keywords)
    asked = wanted(*PLANS[plan].args, change=given.pop("change", None), spec=given.pop("spec", None))
    return GroupMigrationWorld(
        patch, written_spec(*asked.pop("workloads"), **asked), PLANS[plan].args, spared(plan), **given)


def a_group_back(plan: str, patch: pytest.MonkeyPatch) -> GroupMigrationWorld:
    """From the middle of its steps."""
    world = of_a_group(plan, patch)
    middle = world.steps[len(world.steps) // 2]
    assert world.live(lambda: world.step == middle and bool(world.status["progress"].get("openTime")))
    world.want("RolledBack")
    return world


OF_CLUSTERS = {
    "forward": Road(MigrationWorld, is_finished),
    "from an old Kafka": Road(from_an_old_kafka, is_finished),
    "own configuration": Road(with_an_own_configuration, is_finished),
    "rehearsed again": Road(with_a_tree_that_changes, is_finished),
    "back from Soak": Road(back_from_soak, is_back),
    "back from a batch": Road(back_from_a_batch, is_back),
    "back to an old Kafka": Road(back_to_an_old_kafka, is_back),
    "a second attempt": Road(a_second_attempt, lambda world: world.finished and world.status["attempt"] == 2),
}
OF_GROUPS = {
    **{plan: Road(partial(of_a_group, plan), is_finished) for plan in PLANS},
    **{f"{plan}, back": Road(partial(a_group_back, plan), is_back) for plan in PLANS},
}
ROADS = OF_CLUSTERS | OF_GROUPS
