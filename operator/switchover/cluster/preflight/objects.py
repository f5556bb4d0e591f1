"""What must be there in Kubernetes, and be ours to change."""

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

from switchover.answers.observed import Known, Unknown
from switchover.api.controllers import ControllerTemplate
from switchover.cluster import names, template
from switchover.cluster.door.brokers import ContainerMissing, container_of, layout_of
from switchover.cluster.ending import zookeeper_users
from switchover.cluster.facts import Need
from switchover.cluster.picture import Picture
from switchover.cluster.reading import configured, examined, image_of, kubernetes_in_preflight, workloads
from switchover.engine.gate import Unseen, Verdict, check, fail, info, several, unknown, wait, warn
from switchover.kubernetes.workloads import MOST_PODS, Workload
from switchover.reasons.notes import (
    BROKER_DATA_IS_ON_A_NODE,
    NO_BUDGET,
    NO_READINESS_PROBE,
    NODES_UNSEEN,
    PODS_MAY_NEED_ZOOKEEPER,
    PODS_NEED_ZOOKEEPER,
    START_SCRIPT,
    STORAGE_CLASS_UNSEEN,
)
from switchover.reasons.preflight import (
    BROKER_DATA_IS_VOLATILE,
    BUDGET_ALLOWS_NOTHING,
    CHANGE_REFUSED,
    CHANGE_UNDONE,
    CLAIMED_BY_ANOTHER,
    CLUSTER_IS_TAKEN,
    PODS_NOT_READY,
    SEVERAL_BUDGETS,
    START_NOT_SUPPORTED,
    STORAGE_CLASS_MISSING,
)
from switchover.reasons.walk import NOT_OBSERVED
from switchover.reasons.workloads import CONTAINER_MISSING, STATEFUL_SET_MISSING, TOO_MANY_PODS
from switchover.shared.grouped import grouped
from switchover.text.command import kubectl
from switchover.text.nearest import found

MOST_BROKERS = MOST_PODS - 5
"""Five controllers are pods of the migration, too."""
STARTED_BY_ITSELF = re.compile(r"\bjava\b.*(?<![\w.])kafka\.Kafka(?![\w.])", re.DOTALL)


def find_missing_objects(picture: Picture) -> Iterator[Verdict]:
    state = kubernetes_in_preflight(picture)
    for name in picture.broker_sets:
        workload = state.brokers.get(name)
        if workload is None:
            sets = picture.facts.examination.stateful_sets
            there = sets.value if isinstance(sets, Known) else ()
            yield fail(STATEFUL_SET_MISSING, f"StatefulSet {name} does not exist in namespace {picture.namespace}",
                       subject=f"StatefulSet {name}",
                       unblocks=f"correct spec.brokers[].name{found(name, there)}, or create it")
            continue
        try:
            container_of(workload.template, picture.broker_sets[name])
        except ContainerMissing as why:
            yield fail(CONTAINER_MISSING, f"StatefulSet {name}: {why}", subject=f"StatefulSet {name}",
                       unblocks="set spec.brokers[].container to the one that runs Kafka"
                       + found(picture.broker_sets[name].container or "", (
                           each["name"] for each in workload.template["spec"].get("containers") or ())))
        if workload.claimed_by not in ("", picture.uid):
            yield fail(CLAIMED_BY_ANOTHER, f"StatefulSet {name} is claimed by the migration with uid"
                       f" {workload.claimed_by}", subject=f"StatefulSet {name}",
                       unblocks="finish that migration; if it is gone: " + kubectl(
                           picture.namespace, "annotate statefulset {} {}-", name, names.CLAIM))
        if {*workload.pods} != {*workload.wanted} or not all(pod.ready for pod in workload.pods.values()):
            ready = sum(pod.ready for pod in workload.pods.values())
            troubles = {**workload.absent, **{pod.name: pod.trouble for pod in workload.pods.values()}}
            first = next((f": {pod}: {trouble}" for pod, trouble in sorted(troubles.items()) if trouble), "")
            yield wait(PODS_NOT_READY, f"not every pod of StatefulSet {name} is Ready{first}",
                       subject=f"StatefulSet {name}", observed=ready, threshold=workload.replicas,
                       unblocks="wait until all its pods are Ready; look at the first that is not")
    largest = max(filter(None, state.brokers.values()), key=lambda each: each.replicas, default=None)
    pods = sum(each.replicas for each in state.brokers.values() if each is not None)
    if largest is not None and pods > MOST_BROKERS:
        yield fail(TOO_MANY_PODS, f"StatefulSet {largest.name} wants {largest.replicas} pods, all StatefulSets together"
                   f" {pods}: Switchover moves at most {MOST_BROKERS}",
                   subject=f"StatefulSet {largest.name}", observed=pods, threshold=MOST_BROKERS,
                   unblocks="scale it to the brokers that exist")


def find_start_scripts(picture: Picture) -> Iterator[Verdict]:
    """Over what the door will stand: proven by the controllers' pods, before a broker is touched."""
    for name, brokers, workload in workloads(picture):
        try:
            container = container_of(workload.template, brokers)
        except ContainerMissing:
            continue                                                 # told above
        script, subject = layout_of(container, brokers).script, f"StatefulSet {name}"
        words = " ".join(map(str, (*(container.get("command") or ()), *(container.get("args") or ()))))
        if brokers.start is None and STARTED_BY_ITSELF.search(words):
            yield fail(START_NOT_SUPPORTED, f"container {container['name']} of {subject} runs java kafka.Kafka, not Kafka's"
                       " start script", subject=subject, observed="kafka.Kafka", threshold=script,
                       unblocks=f"start Kafka with {script} in the container's command")
        else:
            yield info(START_SCRIPT, f"container {container['name']} of {subject} starts Kafka with {script}, by its"
                       " template: Switchover sets a node's mode there", subject=subject, observed=script,
                       cure="if that is wrong, set spec.brokers[].start; the controllers' pods start first, and prove it")


def find_not_allowed(picture: Picture) -> Iterator[Verdict]:
    """Brokers and controllers run with the brokers' ServiceAccount and what their file names of Secrets."""
    own = picture.spec.controllers.template
    chosen = own.annotations or own.labels or own.tolerations
    if own.image is None and not chosen and not picture.new_image:
        return
    present = [image_of(brokers, workload) for _, brokers, workload in workloads(picture)]
    if own.image is not None:                                        # they are a copy of the first set's
        yield from picture.policy.find_image("spec.controllers.template.image", own.image, present[0])
    if chosen:
        before = next(workload.template for _, _, workload in workloads(picture))
        yield from picture.policy.find_pod_changes("spec.controllers.template", before, _with(own, before))
    for each in sorted({*present}) if picture.new_image else ():
        yield from picture.policy.find_image("spec.upgrade.image", picture.new_image, each)


def _with(own: ControllerTemplate, before: Mapping[str, Any]) -> dict[str, Any]:
    """The brokers' template with what the spec says of the controllers' pods."""
    metadata, tolerations = before.get("metadata") or {}, [each.manifest() for each in own.tolerations]
    return {
        "metadata": {"annotations": {**(metadata.get("annotations") or {}), **own.annotations},
                     "labels": {**(metadata.get("labels") or {}), **own.labels}},
        "spec": {**before["spec"], **({"tolerations": tolerations} if tolerations else {})}}


def find_missing_probes(picture: Picture) -> Iterator[Verdict]:
    """A pod without a readiness probe is Ready as soon as its process runs, and a budget lets the next one go then."""
    for name, brokers, workload in workloads(picture):
        try:
            probed = "readinessProbe" in container_of(workload.template, brokers)
        except ContainerMissing:
            continue                                                 # told above
        if not probed:
            yield warn(NO_READINESS_PROBE, f"the brokers of StatefulSet {name} have no readinessProbe: a pod counts as Ready"
                       " before Kafka listens, for node drains too", subject=f"StatefulSet {name}",
                       cure="add one, such as a tcpSocket on the port of a listener")


def find_pods_that_need_zookeeper(picture: Picture) -> Iterator[Verdict]:
    """Nothing of a broker's pod but Kafka asks for ZooKeeper: such a pod would not start once that is gone."""
    for name, brokers, workload in workloads(picture):
        if asking := zookeeper_users.users(workload.template, picture.spec.zookeeper.connect):
            yield warn(PODS_NEED_ZOOKEEPER, f"{several(asking)} of StatefulSet {name} asks for ZooKeeper: without it no pod"
                       " would start, so ReleaseZooKeeper waits while that is so", subject=f"StatefulSet {name}",
                       observed=several(asking), cure="remove it from the template at HandOver")
        with suppress(ContainerMissing):
            kafka = container_of(workload.template, brokers)["name"]
            if seems := zookeeper_users.suspects(workload.template, picture.spec.zookeeper.connect, kafka):
                yield warn(PODS_MAY_NEED_ZOOKEEPER, f"{several(seems)} of StatefulSet {name} seems to ask for ZooKeeper: if"
                           " it does, no pod would start without it. ReleaseZooKeeper tries with one pod",
                           subject=f"StatefulSet {name}", observed=several(seems),
                           cure="look what it does; if it asks for ZooKeeper, remove it from the template at HandOver")


def find_another_migration(picture: Picture) -> Iterator[Verdict]:
    """The Lease of this Kafka cluster is held by this migration: two of them would disrupt it together."""
    holder = kubernetes_in_preflight(picture).lease_holder
    if holder and not holder.startswith(f"{picture.uid}/"):
        yield fail(CLUSTER_IS_TAKEN, "another migration holds the Lease of this Kafka cluster", subject="Lease",
                   observed=holder, threshold=picture.uid, unblocks="finish or delete the other migration")


def find_nodes_unseen(picture: Picture) -> Iterator[Verdict]:
    """Without the right to read nodes, the gate NodesSchedulable has nothing to look at."""
    if any(pod.cordoned is None for _, _, workload in workloads(picture) for pod in workload.pods.values()):
        yield warn(NODES_UNSEEN, "the operator may not read nodes: it does not see that one is cordoned, and may begin a"
                   " batch during a drain", subject="nodes",
                   cure="install the chart with rbac.readNodes=true, or drain no node while a migration runs")


def find_budgets_in_the_way(picture: Picture) -> Iterator[Verdict]:
    """An eviction is refused for ever where two budgets select a pod, or where one allows no disruption at all."""
    for name, _, workload in workloads(picture):
        subject = f"StatefulSet {name}"
        yield from _budgets_of_a_pod(picture, workload)
        for budget in workload.strict_budgets:
            yield fail(BUDGET_ALLOWS_NOTHING, f"PodDisruptionBudget {budget} allows no disruption even while every pod of"
                       f" {subject} is healthy: no broker could be evicted", subject=f"PodDisruptionBudget {budget}",
                       unblocks="have it allow one: " + kubectl(
                           picture.namespace, "patch poddisruptionbudget {} --type merge --patch {}", budget,
                           {"spec": {"minAvailable": None, "maxUnavailable": 1}}))
        if unguarded := sorted(pod.name for pod in workload.pods.values() if not pod.budgets):
            yield warn(NO_BUDGET, f"no PodDisruptionBudget selects {several(unguarded)} of StatefulSet {name}: a drain may"
                       " take brokers away while others are being moved", subject=subject,
                       cure="create one with maxUnavailable 1")


def _budgets_of_a_pod(picture: Picture, workload: Workload) -> Iterator[Verdict]:
    """By the pods' own labels, as Kubernetes judges, and by the template's, which the next pods have."""
    pods = sorted(workload.pods.values(), key=lambda pod: pod.name)
    alike = grouped((pod.budgets, pod.name) for pod in pods)
    for budgets, named in {workload.budgets: [], **alike}.items():
        if len(budgets) < 2:
            continue
        who = (f"pod {named[0]} has" if len(named) == 1 else f"pods {several(named)} have" if named else
               f"the next pods of StatefulSet {workload.name} have")
        selected = {budget: sum(budget in pod.budgets for pod in pods) for budget in budgets}
        narrow = [budget for budget in budgets if selected[budget] < max(selected.values())]
        known = len(narrow) == len(budgets) - 1
        delete = kubectl(picture.namespace, "delete poddisruptionbudget {}", narrow if known else "NAME")
        cure = (f"delete one, unless it guards other pods too: {delete}" if known
                else f"{delete}, where NAME is the one of {several(budgets)} that guards nothing else")
        yield fail(SEVERAL_BUDGETS, f"{who} more than one PodDisruptionBudget ({several(budgets)}): Kubernetes refuses to"
                   " evict such a pod", subject=f"StatefulSet {workload.name}", observed=len(budgets), threshold=1,
                   unblocks=cure)


def find_volatile_data(picture: Picture) -> Iterator[Verdict]:
    """Every directory of a broker lies on a volume that is known to outlive its pod."""
    told = dict(examined(picture))
    places = {(found.workload.name, path): template.volume_below(found.workload, found.container, path)
              for found in configured(picture) for path in (
                  *(directory.path for directory in told[found.broker_id].log_directories),
                  *filter(None, (found.keys.get("metadata.log.dir"),)))}     # docs/facts/kraft.md#metadatalogdir
    for (workload, directory), kind in sorted(places.items()):
        name = f"StatefulSet {workload}"
        if kind == "hostPath":
            yield warn(BROKER_DATA_IS_ON_A_NODE, f"{directory} of {name} lies on a hostPath: a broker that comes back on"
                       " another node has lost its replicas", subject=name, observed=kind,
                       cure="check that each broker's pod can be scheduled to its own node alone")
        elif kind not in template.OUTLIVES_THE_POD:
            where = f"a volume of kind {kind}" if kind else "the container's own file system"
            yield fail(BROKER_DATA_IS_VOLATILE, f"{directory} of {name} lies on {where}, which may not outlive the pod:"
                       " an eviction may lose the broker's data there", subject=name, observed=kind,
                       threshold="persistentVolumeClaim", unblocks="move that directory to a volume from a claim")


def find_storage_trouble(picture: Picture) -> Iterator[Verdict]:
    """The controllers' volumes need a storage class; those of the cluster may be hidden from a Role."""
    examined, wanted = picture.facts.examination, picture.spec.controllers.storage.storage_class_name
    classes = examined.storage_classes
    if isinstance(classes, Known):
        if wanted and wanted not in classes.value.existing:
            yield fail(STORAGE_CLASS_MISSING, f"storage class {wanted} of the controllers does not exist", subject=wanted,
                       observed=several(sorted(classes.value.existing)) or "none", threshold=wanted,
                       unblocks="correct spec.controllers.storage.storageClassName"
                       f"{found(wanted, classes.value.existing)}, or create it")
        elif wanted is None and not classes.value.default:
            yield fail(STORAGE_CLASS_MISSING, "no storage class is the default, and spec.controllers.storage names none",
                       subject="storage class", observed=several(sorted(classes.value.existing)) or "none",
                       unblocks=f"name one in spec.controllers.storage.storageClassName{found('', classes.value.existing)}")
        return
    if not classes.refused:
        raise Unseen(unknown(NOT_OBSERVED, classes.why, subject="storage classes"))
    used = examined.classes_in_use
    if not (isinstance(used, Known) and wanted in used.value):
        there = several(sorted(used.value)) if isinstance(used, Known) and used.value else "none"
        yield info(STORAGE_CLASS_UNSEEN, "this account may not read storage classes, so that of the controllers is not"
                   f" checked; bound claims here use: {there}", subject=wanted or "the default storage class",
                   cure="check that it exists: `kubectl get storageclasses`")


def find_refused_change(picture: Picture) -> Iterator[Verdict]:
    """The one change of each template, as the API server and its admission would make it: a dry run."""
    for name, brokers, workload in workloads(picture):
        if template.is_ours(workload, brokers):
            continue
        change = picture.facts.examination.template_changes.get(name, Unknown(f"no dry run was made on StatefulSet {name}"))
        subject = f"StatefulSet {name}"
        if not isinstance(change, Known):
            if change.refused:
                yield fail(CHANGE_REFUSED, f"a dry run of the migration's change of {subject} is refused: {change.why}",
                           subject=subject, unblocks="let that policy or webhook allow it for Switchover's account")
            else:
                yield unknown(NOT_OBSERVED, change.why, subject=subject)
            continue
        changed = replace(workload, template=change.value.template, update_strategy=change.value.update_strategy)
        if undone := template.changed_back(changed, brokers, picture.new_image):
            yield fail(CHANGE_UNDONE, f"the API server or a webhook undoes the migration's change of {several(undone)} in"
                       f" {subject}", subject=subject, observed=several(undone),
                       unblocks="exempt that StatefulSet from the mutating webhook")


IMAGE_ALLOWED = check("ImageAllowed", find_not_allowed, "the chart allows the images and pods of brokers and controllers")
STORAGE = check("Storage", find_storage_trouble, "the controllers' storage class exists", needs=(Need.EXAMINATION,))

CHECKS = (
    check("ObjectsExist", find_missing_objects, "the brokers' StatefulSets exist", needs=(Need.EXAMINATION,)),
    check("StartScripts", find_start_scripts, "the script that starts Kafka is known"),
    IMAGE_ALLOWED,
    check("Probes", find_missing_probes, "a broker's pod is ready only when Kafka listens"),
    check("PodsWithoutZooKeeper", find_pods_that_need_zookeeper, "in the brokers' pods only Kafka asks for ZooKeeper"),
    check("NodesSeen", find_nodes_unseen, "the nodes of the brokers can be seen"),
    check("Budgets", find_budgets_in_the_way, "every broker can be evicted"),
    check("BrokerVolumes", find_volatile_data, "the brokers' data outlives their pods", needs=(Need.EXAMINATION,)),
    STORAGE,
    check("TemplateChange", find_refused_change, "a dry run of the template change succeeds", needs=(Need.EXAMINATION,)),
    check("ClusterIsFree", find_another_migration, "no other migration moves this cluster"),
)
