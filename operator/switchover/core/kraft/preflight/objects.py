"""What must be there in Kubernetes, and be ours to change."""

from collections.abc import Iterator

from switchover.core.gate import Verdict, fail, wait, warn
from switchover.core.kraft import names, template
from switchover.core.kraft.facts import ServerConfiguration
from switchover.core.kraft.picture import Picture
from switchover.core.kraft.preflight.reading import check, kubernetes, workloads


def find_missing_objects(picture: Picture) -> Iterator[Verdict]:
    state = kubernetes(picture)
    for name in picture.broker_sets:
        workload = state.brokers.get(name)
        if workload is None:
            yield fail("StatefulSetMissing", f"StatefulSet {name} does not exist in namespace {picture.namespace}",
                       subject=f"StatefulSet {name}", unblocks="correct spec.brokers[].name, or create it")
            continue
        configuration = state.configurations.get(name)
        if not isinstance(configuration, ServerConfiguration):
            yield fail("ConfigurationMissing", configuration or f"the configuration of {name} cannot be read",
                       subject=f"StatefulSet {name}", unblocks="correct spec.brokers[].configuration")
        if workload.claimed_by not in ("", picture.uid):
            yield fail("ClaimedByAnother", f"StatefulSet {name} is claimed by the migration with uid"
                       f" {workload.claimed_by}", subject=f"StatefulSet {name}",
                       unblocks=f"finish that migration; if it is gone, remove the annotation {names.CLAIM}")
        if len(workload.pods) != workload.replicas or not all(pod.ready for pod in workload.pods.values()):
            ready = sum(pod.ready for pod in workload.pods.values())
            yield wait("PodsNotReady", f"not every pod of StatefulSet {name} is ready", subject=f"StatefulSet {name}",
                       observed=ready, threshold=workload.replicas, unblocks="all pods are ready")


def find_unsupported_templates(picture: Picture) -> Iterator[Verdict]:
    for name, brokers, workload in workloads(picture):
        try:
            template.check_supported(workload, brokers)
        except template.Unsupported as reason:
            by_variables = brokers.configuration.environment is not None
            cure = ("write the image's own entrypoint into the container's command, for instance /etc/confluent/docker/run"
                    if by_variables else "mount the configuration as a directory, or its key by subPath")
            yield fail("TemplateUnsupported", f"StatefulSet {name}: {reason}", subject=f"StatefulSet {name}", unblocks=cure)


def find_another_migration(picture: Picture) -> Iterator[Verdict]:
    """The Lease of this Kafka cluster is held by this migration: two of them would disrupt it together."""
    holder = kubernetes(picture).lease_holder
    if holder and not holder.startswith(f"{picture.uid}/"):
        yield fail("ClusterIsTaken", "another migration holds the Lease of this Kafka cluster", subject="Lease",
                   observed=holder, threshold=picture.uid, unblocks="finish or delete the other migration")


def find_nodes_unseen(picture: Picture) -> Iterator[Verdict]:
    """Without the right to read nodes, the gate NodesSchedulable has nothing to look at."""
    if any(pod.cordoned is None for _, _, workload in workloads(picture) for pod in workload.pods.values()):
        yield warn("NodesUnseen", "the operator may not read nodes: it cannot tell that one is cordoned, and may begin a"
                   " batch while somebody drains", subject="nodes",
                   cure="install the chart with rbac.readNodes=true, or drain no node while a migration runs")


CHECKS = (
    check("ObjectsExist", find_missing_objects, "StatefulSets and configurations exist"),
    check("TemplateSupported", find_unsupported_templates, "the configuration mounts can be taken over"),
    check("NodesSeen", find_nodes_unseen, "the nodes of the brokers can be seen"),
    check("ClusterIsFree", find_another_migration, "no other migration moves this cluster"),
)
