"""What a migration leaves behind when its resource goes, looked up at that moment."""

from switchover.answers.errors import Refused
from switchover.api.kafka_migration import KafkaMigration
from switchover.api.status import Direction
from switchover.cluster import names
from switchover.cluster.deletion import UNCLAIMED
from switchover.kubernetes.ports import Workloads


async def leftovers(workloads: Workloads, migration: KafkaMigration) -> list[str]:
    """Everything that the migration made or changed and that is still there, in words. Raises Unreachable."""
    found: list[str] = []
    try:
        await _look(workloads, migration, found)
    except Refused as error:
        found.append(f"whatever cannot be read: {error}")
    return [*found, *_in_zookeeper(migration)]


async def _look(workloads: Workloads, migration: KafkaMigration, found: list[str]) -> None:
    controllers = migration.spec.controllers.name
    if await workloads.stateful_set(controllers) is not None:
        found.append(f"StatefulSet, Service and PodDisruptionBudget {controllers}")
    claims = await workloads.volume_claims({names.CONTROLLERS_LABEL: controllers})
    found += [f"PersistentVolumeClaim {claim}" for claim in claims]
    if await workloads.node_files(names.node_files(controllers)):
        found.append(f"Secret {names.node_files(controllers)}")
    for brokers in migration.spec.brokers:
        workload = await workloads.stateful_set(brokers.name)
        files = await workloads.node_files(names.node_files(brokers.name))
        if files:
            found.append(f"Secret {names.node_files(brokers.name)}, which the pods of StatefulSet {brokers.name} mount")
        if workload is not None and files and workload.update_strategy.get("type") == "OnDelete":
            found.append(f"update strategy OnDelete of StatefulSet {brokers.name}: it replaces no pod by itself")
        if workload is not None and workload.claimed_by == migration.metadata.uid:
            found.append(f"annotation {names.CLAIM} of StatefulSet {brokers.name}: take it off before another migration")
        original = names.original(brokers.name, migration.status.attempt)
        if await workloads.original(original) is not None:
            found.append(f"ControllerRevision {original} with the template as it was")


def _in_zookeeper(migration: KafkaMigration) -> list[str]:
    """As the record tells: nobody is asked any more."""
    progress = migration.status.progress
    if progress.direction is Direction.BACKWARD and progress.complete_time is not None:
        return []
    return ["/migration in ZooKeeper" if progress.step in UNCLAIMED else "/controller and /migration in ZooKeeper"]
