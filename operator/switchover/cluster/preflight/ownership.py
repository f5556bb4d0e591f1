"""Whom the brokers' StatefulSets belong to besides this migration, and who would put back what it changes."""

from collections.abc import Iterator

from switchover.cluster.picture import Picture
from switchover.cluster.reading import workloads
from switchover.engine.gate import Verdict, check, fail, info, warn
from switchover.kubernetes import gitops
from switchover.kubernetes.workloads import Workload
from switchover.reasons.notes import (
    AUTOSCALER_OWNS_REPLICAS,
    GITOPS_OWNED,
    GITOPS_TOLERATES,
    HELM_OWNED,
    TEMPLATE_REWRITTEN,
    WRITTEN_BEFORE,
)
from switchover.reasons.preflight import GITOPS_CONFLICT, OWNED_BY_ANOTHER_OPERATOR
from switchover.text.command import kubectl

AUTOSCALER = "kube-controller-manager"
"""The manager that a HorizontalPodAutoscaler, also KEDA's, leaves on the scale subresource."""


def find_other_owners(picture: Picture) -> Iterator[Verdict]:
    for name, _, workload in workloads(picture):
        subject = f"StatefulSet {name}"
        if workload.owner:
            yield fail(OWNED_BY_ANOTHER_OPERATOR, f"StatefulSet {name} is kept by {workload.owner}, whose operator would put"
                       " every change of ours back", subject=subject, observed=workload.owner,
                       unblocks="let that operator migrate it, or take the StatefulSet out of its hands")
        if any(manager.subresource == "scale" and manager.name == AUTOSCALER for manager in workload.managers):
            yield warn(AUTOSCALER_OWNS_REPLICAS, f"an autoscaler sets the replicas of StatefulSet {name}: a broker that"
                       " comes or goes stops the migration", subject=subject,
                       cure=f"set its minReplicas and maxReplicas to {workload.replicas} until HandOver")
        if workload.marks.get(gitops.WAVE, "").casefold() == "true":
            yield warn(TEMPLATE_REWRITTEN, f"Wave writes a hash of every Secret that StatefulSet {name} mounts into its"
                       " template: each change of ours would ask for a restart that is not due, and HandOver would wait for"
                       " it", subject=subject, observed=gitops.WAVE,
                       cure=f"until HandOver: {_unmark(picture, name, gitops.WAVE)}")
        if mark := gitops.reloads(workload):
            yield warn(TEMPLATE_REWRITTEN, f"Stakater's Reloader writes into the template of StatefulSet {name} whenever"
                       " one of its Secrets or ConfigMaps changes: ours are marked to be ignored, a change of another would"
                       " ask for a restart that is not due, and HandOver would wait for it", subject=subject, observed=mark,
                       cure=f"change none of them before HandOver, or until then: {_unmark(picture, name, mark)}")
        yield from _tool(workload, picture.namespace)


def _unmark(picture: Picture, name: str, mark: str) -> str:
    return kubectl(picture.namespace, "annotate statefulset {} {}-", name, mark)


def _tool(workload: Workload, namespace: str) -> Iterator[Verdict]:
    name, tool = workload.name, gitops.tool_of(workload, namespace)
    subject = f"StatefulSet {name}"
    if tool is None:
        if writer := gitops.last_writer(workload, ("volumes", "mounts", "strategy")):
            yield info(WRITTEN_BEFORE, f"{writer.name} wrote mounts or strategy of StatefulSet {name} last; applied again"
                       " during the migration, that manifest would put ours back", subject=subject, observed=writer.name,
                       cure="do not apply it again until HandOver")
    elif tool.quiet:
        yield info(GITOPS_TOLERATES, f"{tool} owns StatefulSet {name}, and a mark on it says to leave it alone",
                   subject=subject, observed=tool.name)
    elif tool.name == gitops.FLUX:
        yield fail(GITOPS_CONFLICT, f"{tool} owns StatefulSet {name} and would put mount, volume and update strategy back"
                   " with its next reconciliation", subject=subject, observed=tool.name, unblocks=tool.tolerate)
    elif tool.reverts:
        yield warn(GITOPS_OWNED, f"{tool} owns StatefulSet {name}; unless told otherwise it puts mount, volume and update"
                   " strategy back, and whether it was told cannot be seen from this namespace", subject=subject,
                   observed=tool.name, cure=tool.tolerate)
    else:
        yield info(HELM_OWNED, f"{tool} owns StatefulSet {name}; an upgrade of it would put mount, volume and update"
                   " strategy back", subject=subject, observed=tool.name, cure=tool.tolerate)


CHECKS = (check("Ownership", find_other_owners, "nobody else keeps the brokers' StatefulSets"),)
