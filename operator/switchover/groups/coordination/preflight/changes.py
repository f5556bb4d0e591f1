"""The changes that the spec makes, and what they mean for the application."""

from collections.abc import Iterator

from switchover.api.consumer_group_migration import ContainerChange
from switchover.engine.gate import Verdict, check, fail, info
from switchover.groups.picture import Picture
from switchover.reasons.groups import BRIDGE_MISSING, NOTHING_IS_REPLACED
from switchover.reasons.notes import CONSUMER_IS_PYTHON


def find_wrong_changes(picture: Picture) -> Iterator[Verdict]:
    for workload in picture.spec.workloads:
        if picture.replaces and workload.bridge is None:
            yield fail(BRIDGE_MISSING, f"workload {workload.name} has no bridge: between old consumers and KafkaConsumers"
                       " there must be migration-enabled ones", subject=workload.name,
                       unblocks="add a bridge: an image of the application on switchover[consumer]; or set"
                                " spec.coordination.replace to Nothing where its pods are migration-enabled already")
        if not picture.replaces and (workload.bridge is not None or workload.template != ContainerChange()):
            yield fail(NOTHING_IS_REPLACED, f"workload {workload.name} has a change, and spec.coordination.replace is"
                                            " Nothing",
                       subject=workload.name, unblocks="give it an empty template ({}) and no bridge, or replace All")


def find_python(picture: Picture) -> Iterator[Verdict]:
    """There is no other implementation: the old Java consumer was deleted from Kafka in 2.0."""
    if picture.replaces:
        yield info(CONSUMER_IS_PYTHON, "the migration-enabled consumer is a Python library (switchover[consumer]): the"
                   " bridge of a Java application is its processing in Python for as long as the migration takes",
                   subject="bridge",
                   cure="where that cannot be, move offline: stop every old consumer, write ZooKeeper's offsets to Kafka"
                        " (docs/guide/coordination.md), start the KafkaConsumers")


CHECKS = (
    check("Changes", find_wrong_changes, "every workload has the changes that the way needs"),
    check("Library", find_python, "what the bridge is made of is known"),
)
