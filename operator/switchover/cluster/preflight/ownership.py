"""Whom the brokers' StatefulSets belong to besides this migration, and who would put back what it changes."""

from collections.abc import Iterator

from switchover.api.kafka_migration import StartPreset
from switchover.cluster import names
from switchover.cluster.door.brokers import ContainerMissing, container_of, preset_of
from switchover.cluster.facts import Need
from switchover.cluster.picture import Picture
from switchover.cluster.reading import kubernetes_in_preflight, workloads, zookeeper_of
from switchover.engine.gate import Verdict, check, fail, info, seen, wait, warn
from switchover.kubernetes import gitops
from switchover.kubernetes.gitops import HELM
from switchover.kubernetes.workloads import Workload
from switchover.reasons.notes import (
    AUTOSCALER_OWNS_REPLICAS,
    GITOPS_OWNED,
    GITOPS_TOLERATES,
    HELM_OWNED,
    NAME_OF_THE_CHART,
    TEMPLATE_REWRITTEN,
    WRITTEN_BEFORE,
)
from switchover.reasons.preflight import GITOPS_CONFLICT, NAME_TAKEN, OWNED_BY_ANOTHER_OPERATOR, RESIDUE
from switchover.reasons.walk import NO_CONTROLLER, NOT_OBSERVED
from switchover.text.command import command, kubectl

AUTOSCALER = "kube-controller-manager"
"""The manager that a HorizontalPodAutoscaler, also KEDA's, leaves on the scale subresource."""


def find_other_owners(picture: Picture) -> Iterator[Verdict]:
    for name, _, workload in workloads(picture):
        subject = f"StatefulSet {name}"
        if workload.owner:
            yield fail(OWNED_BY_ANOTHER_OPERATOR, f"StatefulSet {name} is owned by {workload.owner}: its operator would"
                       " revert Switchover's changes", subject=subject, observed=workload.owner,
                       unblocks="let that operator migrate it, or end its ownership of the StatefulSet")
        if any(manager.subresource == "scale" and manager.name == AUTOSCALER for manager in workload.managers):
            yield warn(AUTOSCALER_OWNS_REPLICAS, f"an autoscaler sets the replicas of StatefulSet {name}: a broker that"
                       " comes or goes stops the migration", subject=subject,
                       cure=f"set its minReplicas and maxReplicas to {workload.replicas} until HandOver")
        if workload.marks.get(gitops.WAVE, "").casefold() == "true":
            yield warn(TEMPLATE_REWRITTEN, f"Wave writes a hash of the Secrets of StatefulSet {name} into its template:"
                       " each change by Switchover would ask for a restart too early, and HandOver would wait for it",
                       subject=subject, observed=gitops.WAVE,
                       cure=f"turn it off until HandOver: {_unmark(picture, name, gitops.WAVE)}")
        if mark := gitops.reloads(workload):
            yield warn(TEMPLATE_REWRITTEN, f"Reloader changes the template of StatefulSet {name} when its Secrets or"
                       " ConfigMaps change, Switchover's excepted: that asks for an early restart, and HandOver waits for"
                       " it", subject=subject, observed=mark,
                       cure=f"change none before HandOver, or turn it off: {_unmark(picture, name, mark)}")
        yield from _tool(workload, picture.namespace)


def _unmark(picture: Picture, name: str, mark: str) -> str:
    return kubectl(picture.namespace, "annotate statefulset {} {}-", name, mark)


def _tool(workload: Workload, namespace: str) -> Iterator[Verdict]:
    name, tool = workload.name, gitops.tool_of(workload, namespace)
    subject = f"StatefulSet {name}"
    if tool is None:
        if writer := gitops.last_writer(workload, ("volumes", "mounts", "strategy")):
            yield info(WRITTEN_BEFORE, f"{writer.name} wrote mounts or strategy of StatefulSet {name} last; applied again"
                       " during the migration, that manifest would undo Switchover's", subject=subject, observed=writer.name,
                       cure="do not apply it again before HandOver")
    elif tool.quiet:
        yield info(GITOPS_TOLERATES, f"{tool} owns StatefulSet {name}, and is set to leave it alone",
                   subject=subject, observed=tool.name)
    elif tool.name == gitops.FLUX:
        yield fail(GITOPS_CONFLICT, f"{tool} owns StatefulSet {name} and would revert mount, volume and update strategy with"
                   " its next reconciliation", subject=subject, observed=tool.name, unblocks=tool.tolerate)
    elif tool.reverts:
        yield warn(GITOPS_OWNED, f"{tool} owns StatefulSet {name}, and may revert mount, volume and update strategy:"
                   " whether it is set not to cannot be seen from this namespace", subject=subject,
                   observed=tool.name, cure=tool.tolerate)
    else:
        yield info(HELM_OWNED, f"{tool} owns StatefulSet {name}: an upgrade of it would revert mount, volume and update"
                   " strategy", subject=subject, observed=tool.name, cure=tool.tolerate)


# --- residue --------------------------------------------------------------------------------------------------------------
# Nothing is left of an earlier attempt: with a stale `/migration` the controllers would delete every topic.

NONE_RUNS = "make sure that no KRaft controller runs"
"""They may be a quorum that is in use, whose log is its cluster."""


def _delete(picture: Picture, path: str) -> str:
    return f"{NONE_RUNS}, then delete {path}: " + command(
        "zookeeper-shell.sh {} delete {}", picture.spec.zookeeper.connect, path)


def find_znodes(picture: Picture) -> Iterator[Verdict]:
    state = zookeeper_of(picture)
    if state.migration is not None:
        told = "it is empty (KAFKA-19480)" if state.migration.empty else f"its offset is {state.migration.offset}"
        yield fail(RESIDUE, f"/migration exists in ZooKeeper, left by an earlier attempt: {told}",
                   subject="/migration", unblocks=_delete(picture, "/migration"))
    if state.controller is None:
        yield wait(NO_CONTROLLER, "/controller does not exist: no broker is the controller", subject="/controller",
                   unblocks="wait until a broker becomes the controller")
    elif not state.controller.ephemeral:
        yield fail(RESIDUE, "/controller is not ephemeral: KRaft controllers claimed it in an earlier attempt",
                   subject="/controller", observed=f"node {state.controller.node_id}",
                   unblocks=_delete(picture, "/controller"))


def find_objects(picture: Picture) -> Iterator[Verdict]:
    state = kubernetes_in_preflight(picture)
    if state.controller_claims:
        yield fail(RESIDUE, "volumes of an earlier attempt's controllers exist: the new ones would start with that log",
                   subject=f"claim {state.controller_claims[0]}",
                   unblocks=f"{NONE_RUNS}, then delete the claims: "
                   + kubectl(picture.namespace, "delete persistentvolumeclaim {}", state.controller_claims))
    reserved = seen(picture.facts.examination.objects, NOT_OBSERVED, "objects with the controllers' names")
    own = {f"Secret {names.node_files(brokers)}" for brokers in picture.broker_sets}
    for found, manager in sorted(reserved.items()):
        if found not in own:
            yield fail(RESIDUE, f"{found} exists already, where the migration would create it", subject=found,
                       unblocks=f"choose another spec.controllers.name. If an earlier attempt left it: {NONE_RUNS}, then"
                                " delete it: "
                       + kubectl(picture.namespace, "delete {} {}", *found.split(" ", 1)))
        elif manager != names.MANAGER:
            yield fail(NAME_TAKEN, f"{found} exists and is not Switchover's: the migration would overwrite or replace it",
                       subject=found, observed=manager or "no label app.kubernetes.io/managed-by", threshold=names.MANAGER,
                       unblocks="see who uses it. If somebody does, copy it under another name for them; then delete it")


def find_names_of_charts(picture: Picture) -> Iterator[Verdict]:
    """Bitnami's charts call what they render for controllers so once their values say KRaft, and Helm then refuses the
    upgrade (docs/facts/hand-over.md); by then the name cannot be changed any more."""
    controllers = picture.spec.controllers.name
    for name, brokers, workload in workloads(picture):
        release = name.removesuffix("-broker")
        if HELM not in workload.marks or controllers != f"{release}-controller":
            continue
        try:
            preset = preset_of(container_of(workload.template, brokers))
        except ContainerMissing:
            continue                                   # told by its own reason
        if preset is StartPreset.BITNAMI:
            yield warn(NAME_OF_THE_CHART, f"the chart of StatefulSet {name} creates objects named {controllers} once its"
                       " values say KRaft: Helm would refuse that upgrade, since Switchover's have that name",
                       subject=f"StatefulSet {controllers}", observed=controllers,
                       cure=f"set spec.controllers.name to {release}-kraft")


NAMES = check("Names", find_objects, "no object has a name that Switchover's will have", needs=(Need.EXAMINATION,))


CHECKS = (
    check("Ownership", find_other_owners, "nobody else owns the brokers' StatefulSets"),
    check("Residue", find_znodes, "ZooKeeper has no nodes of an earlier attempt"),
    NAMES,
    check("NamesOfCharts", find_names_of_charts, "no chart will create objects with the controllers' name"),
)
