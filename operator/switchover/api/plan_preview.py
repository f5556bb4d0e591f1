"""The plan of a KafkaMigration as it is shown before anything is done."""

from enum import StrEnum
from typing import Annotated

from pydantic import Field

from switchover.api.schema import Clipped, Model, Time, Unique
from switchover.api.status import Count, Name, Seconds

LINES_SHOWN = 40
"""Lines of configuration in all changes of one preview together: what is in the status stays small."""

Line = Annotated[str, Clipped(200)]


class Basis(StrEnum):
    """What the times of an estimate rest on."""

    ASSUMED = "Assumed"
    MEASURED = "Measured"


class PlannedStep(Model):
    """One step of the plan that takes longer than a moment, or waits for a person."""

    name: Annotated[str, Clipped(63)]
    """The step."""
    restarts: Count = 0
    """Pods that it restarts."""
    estimated_seconds: Seconds = 0
    """How long it takes once it has begun."""
    hold: bool = False
    """It waits for an approval before it begins."""


class PlannedNodes(Model):
    """The pods of one StatefulSet."""

    name: Name
    """The StatefulSet."""
    nodes: Count
    """How many pods it has."""
    restarts_each: Count
    """How often each of them is restarted; the controller that leads in the soak once more."""


class PlannedChange(Model):
    """What one restart changes in the configuration of every pod of a StatefulSet."""

    name: Name
    """The StatefulSet and the mode that its pods are restarted into, such as kafka/Migration."""
    lines: Annotated[tuple[Line, ...], Field(max_length=LINES_SHOWN)] = ()
    """Keys that go (`- key=value`) and come (`+ key=value`). Secret values are hidden."""
    own: Annotated[tuple[Name, ...], Field(max_length=LINES_SHOWN)] = ()
    """Keys among them whose values differ from pod to pod."""
    omitted: Count = 0
    """Lines that are not shown here; `switchover plan` prints all."""


class PlanPreview(Model):
    """What will be done: computed in Preflight, from what was seen there, and stored."""

    steps: Annotated[tuple[PlannedStep, ...], Field(max_length=16), Unique("name")] = ()
    """The steps, in their order."""
    nodes: Annotated[tuple[PlannedNodes, ...], Field(max_length=17), Unique("name")] = ()
    """Restarts of every node."""
    changes: Annotated[tuple[PlannedChange, ...], Field(max_length=50), Unique("name")] = ()
    """The configuration of every node, restart by restart."""
    restarts: Count = 0
    """Restarts of all nodes together."""
    basis: Basis = Basis.ASSUMED
    """Whether the times of restarts are assumed, or were measured in an earlier attempt."""
    broker_restart_seconds: Seconds = 0
    """What one batch of brokers is reckoned with, without its bake: the assumption, or the average of what was measured."""
    controller_restart_seconds: Seconds = 0
    """What one controller is reckoned with."""
    estimated_seconds: Seconds = 0
    """Until it has succeeded, were every window open and every approval given at once."""
    estimated_completion_time: Time | None = None
    """When it would have succeeded if it began now, with the times in which windows are closed; absent if it never could."""
