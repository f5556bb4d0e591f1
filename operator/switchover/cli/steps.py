"""The steps of a resource as the API server returns it: those of its plan, and what is on record of each. Pure."""

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from switchover.api.consumer_group_migration import ConsumerGroupMigrationSpec
from switchover.api.kafka_migration import KafkaMigrationStep
from switchover.engine.plan import Plan

Resource = Mapping[str, Any]

_OPTIONAL = {KafkaMigrationStep.RAISE_PROTOCOL_VERSION}


def plan_in(resource: Resource) -> Plan[Any]:
    """Its plan. Raises ValidationError for a spec that this program cannot read.

    A plan stands on everything that a step may need: whoever asks for none, such as a shell that completes a name, need not
    wait for it.
    """
    if resource.get("kind") == "ConsumerGroupMigration":
        from switchover.groups.plan import plan_of

        return plan_of(ConsumerGroupMigrationSpec.model_validate(resource.get("spec")))
    from switchover.cluster.plan import PLAN

    return PLAN


def steps_of(resource: Resource) -> list[str]:
    """The steps of its plan in their order; of a spec that cannot be read those on record."""
    status = resource.get("status") or {}
    records = [*(record["name"] for record in status.get("steps", [])), (status.get("progress") or {}).get("step")]
    recorded = [name for name in dict.fromkeys(records) if name]
    try:
        return [name for name in plan_in(resource).names if name not in _OPTIONAL or name in recorded]
    except ValidationError:
        return recorded


def step_record(status: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """The record of a step in status.steps, empty before it began."""
    return next((record for record in status.get("steps", []) if record["name"] == name), {})
