"""A resource as the API server returns it, read by its own models: its status, its plan, and the steps of it. Pure."""

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from switchover.api.consumer_group_migration import ConsumerGroupMigrationSpec, ConsumerGroupMigrationStatus, Slot
from switchover.api.kafka_migration import KafkaMigrationSpec, KafkaMigrationStatus, KafkaMigrationStep, NodeStatus
from switchover.api.lenient import given, lenient
from switchover.api.meta import MigrationSpec
from switchover.api.plan_preview import PlanPreview
from switchover.api.schema import mistakes
from switchover.api.status import MigrationStatus, Phase, StepRecord
from switchover.engine.plan import Plan

Resource = Mapping[str, Any]

_GROUP = "ConsumerGroupMigration"
UNREAD = "left out, since this program cannot read it"
_OPTIONAL = {KafkaMigrationStep.RAISE_PROTOCOL_VERSION}


def status_in(resource: Resource) -> tuple[MigrationStatus, str]:
    """Its status as far as it can be read, and what was left out."""
    of_group = resource.get("kind") == _GROUP
    return lenient(ConsumerGroupMigrationStatus if of_group else KafkaMigrationStatus, resource.get("status"))


def mode_of(node: NodeStatus | Slot) -> str:
    """What it starts as next: "" for as it was, unknown where that cannot be read."""
    mode = given(node, "assigned")
    return "unknown" if mode is None else str(mode)


def spec_in(resource: Resource) -> tuple[MigrationSpec | None, str]:
    """Its spec, and what of it cannot be read: all of it where it lacks what it must have."""
    of_group = resource.get("kind") == _GROUP
    try:
        return lenient(ConsumerGroupMigrationSpec if of_group else KafkaMigrationSpec, resource.get("spec"))
    except ValidationError as error:
        return None, mistakes(error)


def phase_of(status: MigrationStatus) -> str:
    """Its phase; Pending before an operator has looked at it, Unknown where another release calls it something else."""
    return str(given(status, "phase") or ("Unknown" if status.observed_generation >= 0 else Phase.PENDING))


def nodes_of(status: MigrationStatus) -> tuple[NodeStatus | Slot, ...]:
    """Kafka's nodes, or a group's slots."""
    if isinstance(status, KafkaMigrationStatus):
        return status.nodes
    return status.slots if isinstance(status, ConsumerGroupMigrationStatus) else ()


def preview_of(status: MigrationStatus) -> PlanPreview:
    """What Preflight computed, of a cluster; else an empty one."""
    return (status.plan if isinstance(status, KafkaMigrationStatus) else None) or PlanPreview()


def plan_in(resource: Resource) -> Plan[Any]:
    """Its plan. Raises ValidationError for a spec that this program cannot read.

    A plan stands on everything that a step may need: whoever asks for none, such as a shell that completes a name, need not
    wait for it.
    """
    if resource.get("kind") == _GROUP:
        from switchover.groups.plan import plan_of

        return plan_of(ConsumerGroupMigrationSpec.model_validate(resource.get("spec")))
    from switchover.cluster.plan import PLAN

    return PLAN


def steps_of(resource: Resource) -> list[str]:
    """The steps of its plan in their order; of a spec that cannot be read those on record."""
    status, _ = status_in(resource)
    recorded = [name for name in dict.fromkeys((*(record.name for record in status.steps), status.progress.step)) if name]
    try:
        return [name for name in plan_in(resource).names if name not in _OPTIONAL or name in recorded]
    except ValidationError:
        return recorded


def step_record(status: MigrationStatus, name: str) -> StepRecord | None:
    """The record of a step, None before it began."""
    return next((record for record in status.steps if record.name == name), None)
