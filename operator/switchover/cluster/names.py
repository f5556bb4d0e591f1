"""Names of everything that Switchover creates for a KafkaMigration."""

import hashlib

from switchover.api.kafka_migration import KafkaMigrationSpec
from switchover.kubernetes.names import CLAIM as CLAIM
from switchover.kubernetes.names import MANAGER as MANAGER
from switchover.kubernetes.names import MIGRATION_LABEL as MIGRATION_LABEL
from switchover.kubernetes.names import digest as digest
from switchover.kubernetes.names import job as job
from switchover.kubernetes.names import labels as labels

CONTROLLERS_LABEL = "switchover.dev/controllers"


def controller_labels(controllers: str, migration: str) -> dict[str, str]:
    """Of everything that belongs to the controllers' StatefulSet."""
    return {**labels(migration), CONTROLLERS_LABEL: controllers}


def node_files(workload: str) -> str:
    """The Secret with one file for each pod of a StatefulSet."""
    return f"{workload}-switchover"


def original(workload: str, attempt: int) -> str:
    """The ControllerRevision that is the backup of a StatefulSet from before an attempt touched it."""
    return f"{workload}-before-switchover-{attempt}"


def trial(workload: str, migration_uid: str) -> str:
    """The Job in which a StatefulSet's new template is tried; no user's Job has that name by chance."""
    return job(workload, "trial", (migration_uid, workload))


def lease(cluster_id: str) -> str:
    """The Lease that only one migration of a Kafka cluster can hold."""
    return f"switchover-{hashlib.sha256(cluster_id.encode()).hexdigest()[:12]}"


def pod(workload: str, ordinal: int) -> str:
    return f"{workload}-{ordinal}"


def controller_pods(spec: KafkaMigrationSpec) -> dict[str, int]:
    """Pod name -> node.id of every controller."""
    controllers = spec.controllers
    return {pod(controllers.name, n): controllers.first_node_id + n for n in range(controllers.replicas)}
