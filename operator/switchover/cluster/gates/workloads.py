"""What must hold of StatefulSets, pods and nodes, and of the edits that brokers were started with."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from switchover.answers.observed import Known, Unknown
from switchover.api.kafka_migration import BrokerSet, NodeMode
from switchover.api.kafka_migration import KafkaMigrationStep as Step
from switchover.cluster import names, template
from switchover.cluster.controllers import manifests
from switchover.cluster.door import edits
from switchover.cluster.door.brokers import ContainerMissing, container_of
from switchover.cluster.facts import KubernetesState
from switchover.cluster.picture import Picture
from switchover.cluster.reading import kubernetes_of, samples
from switchover.engine.gate import Gate, Verdict, fail, passed, seen, unknown, wait
from switchover.kubernetes import gitops
from switchover.kubernetes.workloads import Workload
from switchover.reasons.cluster import DOOR_NOT_PASSED, DOOR_STILL_THERE, STARTED_BY_OTHER_EDITS
from switchover.reasons.walk import BROKER_SILENT, NOT_OBSERVED
from switchover.reasons.workloads import (
    CONTAINER_MISSING,
    NODE_CORDONED,
    NOT_IN_GIT,
    OLD_IMAGE,
    ORIGINAL_MISSING,
    OWN_TEMPLATE,
    REPLICAS_CHANGED,
    REVERTED_BY_GITOPS,
    STATEFUL_SET_MISSING,
    TEMPLATE_NOT_BROUGHT,
    TEMPLATE_NOT_HELD,
    WOULD_RESTART,
)
from switchover.text.command import command, kubectl


def check_template_is_ours(picture: Picture) -> Verdict:
    """Before each eviction the template is read again: not ours, no eviction
    (docs/facts/kubernetes.md#an-unchanged-apply-makes-a-hybrid)."""
    state = kubernetes_of(picture)
    for name, brokers in picture.broker_sets.items():
        workload = state.brokers.get(name)
        if workload is None:
            return _missing(name)
        if changed := template.changed_back(workload, brokers, _new_image(picture, name)):
            return _reverted(picture, workload, changed)
        if state.originals.get(name) is None:
            return original_missing(picture, name)
    return passed("the brokers' templates are ours")


def _new_image(picture: Picture, name: str) -> str:
    """The image that the brokers of a StatefulSet were upgraded to, "" for none."""
    found = picture.brokers_of(name)
    return found.value.image if isinstance(found, Known) else ""


def _missing(name: str) -> Verdict:
    return fail(STATEFUL_SET_MISSING, f"StatefulSet {name} does not exist", subject=name,
                unblocks="create it again with updateStrategy OnDelete and the template that its pods run; with its manifest"
                         " from before the migration, brokers would start in the wrong mode")


def original_missing(picture: Picture, name: str) -> Verdict:
    """Without its backup neither a rollback nor HandOver can restore a StatefulSet."""
    subject = f"ControllerRevision {picture.original_of(name)}"
    return fail(ORIGINAL_MISSING, f"{subject}, the backup of StatefulSet {name} from before the migration, is missing:"
                " no more pods are moved, since the StatefulSet could not be restored", subject=subject,
                unblocks="create it again from a backup, or from the StatefulSet's own history as the runbook shows")


def check_originals_kept(picture: Picture) -> Verdict:
    """Before the update strategies are restored: the backups have them."""
    state = kubernetes_of(picture)
    for name, workload in state.brokers.items():
        if workload is not None and workload.claimed_by == picture.uid and state.originals.get(name) is None:
            return original_missing(picture, name)
    return passed("every StatefulSet has its backup")


def _reverted(picture: Picture, workload: Workload, changed: Sequence[str]) -> Verdict:
    """Who did it, what it means, and what to do: stop the writer, then restore what it changed."""
    name, brokers = workload.name, picture.brokers_of(workload.name)
    container = brokers.value.container if isinstance(brokers, Known) else ""
    parts = [f"image of {container}" if part == "image" else part for part in changed]
    writer, tool = gitops.last_writer(workload, parts), gitops.tool_of(workload, picture.namespace)
    who = gitops.called(writer) + (f" for {tool}" if tool is not None else "")
    meaning = "a pod that starts now would not get the edits of its mode, so no pod is evicted"
    if "strategy" in changed:
        meaning = "Kubernetes may now restart its pods by itself"
    stop = tool.suspend if tool is not None else "stop whatever applies the old manifest"
    steps = [stop]
    if "strategy" in changed:
        held = {"spec": {"updateStrategy": {"type": "OnDelete", "rollingUpdate": None}}}
        steps.append(kubectl(picture.namespace, "patch statefulset {} --type merge --patch {}", name, held))
    if {"volumes", "mounts", "image"} & {*changed}:
        steps.append(kubectl(picture.namespace, "rollout undo statefulset {}", name))
    return fail(REVERTED_BY_GITOPS, f"{who} changed {', '.join(changed)} of StatefulSet {name} back: {meaning}",
                subject=f"StatefulSet {name}", observed=writer.name if writer is not None else "", threshold=names.MANAGER,
                unblocks="; then ".join(steps))


def check_replicas_unchanged(picture: Picture) -> Verdict:
    """The nodes are the ones on record: a new pod has no edits, and with a pod its replicas or its vote are gone."""
    state = kubernetes_of(picture)
    sets = {name: (workload, picture.pods_of(name)) for name, workload in state.brokers.items()}
    sets[picture.spec.controllers.name] = state.controllers, tuple(picture.controllers)
    for name, (workload, pods) in sets.items():
        if workload is None or workload.wanted == pods:
            continue
        if workload.replicas != len(pods):
            return fail(REPLICAS_CHANGED, f"StatefulSet {name} was scaled while its nodes are being moved", subject=name,
                        observed=workload.replicas, threshold=len(pods),
                        unblocks="stop what scaled it (an autoscaler?); then "
                        + kubectl(picture.namespace, "scale statefulset {} --replicas {}", name, len(pods)))
        first = int(pods[0].rpartition("-")[2])
        restored = kubectl(picture.namespace, "patch statefulset {} --type merge --patch {}", name,
                           {"spec": {"ordinals": {"start": first}}})
        return fail(REPLICAS_CHANGED, f"spec.ordinals.start of StatefulSet {name} was changed while its nodes are being"
                    " moved: Kubernetes replaces pods by others", subject=name, observed=workload.first_ordinal,
                    threshold=first, unblocks=restored)
    return passed("the number of nodes is as on record")


def check_nodes_schedulable(picture: Picture) -> Verdict:
    """No batch starts while a node that carries a broker is cordoned."""
    state = kubernetes_of(picture)
    for workload in state.brokers.values():
        for pod in workload.pods.values() if workload is not None else ():
            if pod.cordoned:
                return wait(NODE_CORDONED, f"node {pod.node} is cordoned and runs {pod.name}", subject=pod.node,
                            unblocks=command("kubectl uncordon {}", pod.node))
    unseen = any(pod.cordoned is None for each in state.brokers.values() if each for pod in each.pods.values())
    return passed("the operator may not read nodes" if unseen else "no node of a broker is cordoned")


def check_no_pod_would_restart(picture: Picture) -> Verdict:
    """The update strategy may only be restored while every pod has the update revision
    (docs/facts/kubernetes.md#the-update-strategy)."""
    state = kubernetes_of(picture)
    for name, workload in state.brokers.items():
        if workload is None:
            return _missing(name)
        for pod in workload.pods.values():
            if pod.revision != workload.update_revision:
                return wait(WOULD_RESTART, f"{pod.name} does not have the update revision: Kubernetes would restart it"
                            f"{_who_wrote(workload)}", subject=pod.name, observed=pod.revision,
                            threshold=workload.update_revision, unblocks=_back_to(picture, workload, pod.revision))
    return passed("no pod would restart")


TEMPLATE = ("volumes", "mounts", "command", "annotations")
"""Parts of a template as `Manager.parts` names them, without those of a container."""


def _who_wrote(workload: Workload) -> str:
    parts = {part for manager in workload.managers for part in manager.parts if part in TEMPLATE or " of " in part}
    writer = gitops.last_writer(workload, parts)
    if writer is None:
        return ""
    return f"; {writer.name} wrote {', '.join(sorted(writer.parts & parts))} of its template last"


def _back_to(picture: Picture, workload: Workload, revision: str) -> str:
    """A ControllerRevision has the name that the pods have as their revision, and a number that `undo` wants."""
    number = kubectl(picture.namespace, "get controllerrevision {} --output jsonpath={{.revision}}", revision)
    undo = kubectl(picture.namespace, "rollout undo statefulset {} --to-revision=$({})", workload.name, number)
    return f"stop whatever writes the template, then restore the one that the pods run: {undo}"


def check_users_template_can_be(picture: Picture) -> Verdict:
    """What brokers on KRaft would start with is not what they had on ZooKeeper, and no pod is replaced but by us."""
    state = kubernetes_of(picture)
    for name, workload in state.brokers.items():
        if workload is None:
            return _missing(name)
        brokers = picture.broker_sets[name]
        changed = template.changed_back(workload, brokers)
        if {"volumes", "mounts"} & {*changed} and not template.is_users_new(
                workload, brokers, state.originals.get(name)):
            return _reverted(picture, workload, changed)
        if _new_image(picture, name) and _has_the_image_of(workload, brokers, state.originals.get(name)):
            return wait(OLD_IMAGE, f"the template of StatefulSet {name} has the image from before the upgrade: its brokers"
                        " would start an older Kafka", subject=f"StatefulSet {name}", threshold=_new_image(picture, name),
                        unblocks="apply it with an image of Kafka 3.9")
        if workload.update_strategy.get("type") != "OnDelete":
            return wait(TEMPLATE_NOT_HELD, f"StatefulSet {name} does not have the update strategy OnDelete: Kubernetes may"
                        " restart its pods by itself", subject=name,
                        unblocks="nothing to do: Switchover sets OnDelete again within seconds")
    return passed("each template is ours, or one of the user's own")


def _has_the_image_of(workload: Workload, brokers: BrokerSet, original: Mapping[str, Any] | None) -> bool:
    try:
        present = container_of(workload.template, brokers).get("image")
        return original is not None and present == container_of(original["template"], brokers).get("image")
    except ContainerMissing:
        return False


def check_only_ours_would_restart(picture: Picture) -> Verdict:
    """Every pod has the update revision; or each template is one that the user has brought, to which they are rolled."""
    state = kubernetes_of(picture)
    if picture.own_configuration:
        return _missing_template(picture, state) or passed("the brokers are rolled to their new templates")
    found = check_no_pod_would_restart(picture)
    if found.reason != "WouldRestart":
        return found
    return replace(found, unblocks=f"{found.unblocks}; or, if it is your own template with KRaft settings:"
                                   f" {_to_own_configuration(picture)}")


def _to_own_configuration(picture: Picture) -> str:
    return kubectl(picture.namespace, "patch kmig {} --type merge --patch {}", picture.name,
                   {"spec": {"handOver": "OwnConfiguration"}})


def _and_keep(picture: Picture, state: KubernetesState) -> str:
    """The controllers' pods are a copy of the brokers', and use what the brokers' chart or manifests made."""
    own = state.controllers
    found = manifests.keep_borrowed(own.template, own.name, picture.namespace) if own is not None else ""
    return f". {found}" if found else ""


def _missing_template(picture: Picture, state: KubernetesState) -> Verdict | None:
    """The StatefulSet that has no new template of the user's yet; None where all have."""
    for name, workload in state.brokers.items():
        if workload is None:
            return _missing(name)
        brokers = picture.broker_sets[name]
        if not template.is_brought(workload, brokers, state.originals.get(name)):
            return wait(TEMPLATE_NOT_BROUGHT, f"StatefulSet {name} still has its template from before the migration, with"
                        " ZooKeeper: its brokers cannot be rolled to a new one yet", subject=name,
                        unblocks="apply what `switchover export` prints, in the chart's values or the manifest;"
                                 " if the configuration is a file of its own, change an annotation of the template too"
                        f"{_and_keep(picture, state)}")
        try:
            container_of(workload.template, brokers)
        except ContainerMissing as why:
            return fail(CONTAINER_MISSING, f"StatefulSet {name}: {why}", subject=name, unblocks="correct the template")
    return None


def check_git_has_the_template(picture: Picture) -> Verdict:
    """Somebody's manifest has what runs: the next apply of it takes no file away from a broker."""
    state = kubernetes_of(picture)
    if picture.own_configuration:
        return _missing_template(picture, state) or wait(
            OWN_TEMPLATE, f"{', '.join(f'StatefulSet {name}' for name in state.brokers)} has a new template: once"
            " HandOver is approved, Switchover removes its own script and edits from it and rolls the brokers to it,"
            " canary first", subject=next(iter(state.brokers)),
            unblocks="check that its configuration has what `switchover export` prints, then approve HandOver"
                     f"{_and_keep(picture, state)}")
    for name, workload in state.brokers.items():
        if workload is None:
            return _missing(name)
        if template.is_users_new(workload, picture.broker_sets[name], state.originals.get(name)):
            return wait(OWN_TEMPLATE, f"StatefulSet {name} has a template without Switchover's edits, and no pod runs by it"
                        " yet", subject=name,
                        unblocks="if its configuration has what `switchover export` prints:"
                                 f" {_to_own_configuration(picture)}{_and_keep(picture, state)}")
        if not workload.applied_by:
            return wait(NOT_IN_GIT, f"only Switchover has applied the template of StatefulSet {name}: the next apply of the"
                        " old manifest would remove the brokers' edits", subject=name,
                        unblocks="put what `switchover export` prints into Git and apply it; if no tool applies this"
                                 " StatefulSet, or one that leaves no trace (Helm 3), approve HandOver instead")
    return passed("Git has the template that runs")


TEMPLATE_IS_OURS: Gate[Picture] = Gate("TemplateIsOurs", check_template_is_ours)
REPLICAS_UNCHANGED: Gate[Picture] = Gate("ReplicasUnchanged", check_replicas_unchanged)
NODES_SCHEDULABLE: Gate[Picture] = Gate("NodesSchedulable", check_nodes_schedulable)
GIT_HAS_THE_TEMPLATE: Gate[Picture] = Gate("GitHasTheTemplate", check_git_has_the_template, samples=samples)
ORIGINALS_KEPT: Gate[Picture] = Gate("OriginalsKept", check_originals_kept)
USERS_TEMPLATE_CAN_BE: Gate[Picture] = Gate("UsersTemplateCanBe", check_users_template_can_be)
ONLY_OURS_WOULD_RESTART: Gate[Picture] = Gate("OnlyOursWouldRestart", check_only_ours_would_restart, samples=samples)
NO_POD_WOULD_RESTART: Gate[Picture] = Gate("NoPodWouldRestart", check_no_pod_would_restart, samples=samples)


# --- door -----------------------------------------------------------------------------------------------------------------
# Which edits a broker was started with: its own process has their marker among its settings.

OWN = (NodeMode.ZOOKEEPER, NodeMode.OWN_KRAFT)
"""The modes in which brokers run by their own template."""


def check_started_by_its_edits(picture: Picture) -> Verdict:
    """Each broker of the batch runs with the edits that are written for it or, by its own template alone, with none."""
    state = kubernetes_of(picture)
    for name in picture.batch:
        record, workload = picture.position.nodes[name], name.rpartition("-")[0]
        asked = picture.facts.markers.get(record.node_id, Unknown(f"broker {record.node_id} was not asked"))
        shown = seen(asked, BROKER_SILENT, name)
        written = edits.marker_of(state.node_files.get(workload, {}).get(name, ""))
        if not written and record.assigned not in OWN:
            return unknown(NOT_OBSERVED, f"Secret {names.node_files(workload)} has no edits for {name}", subject=name)
        wanted = "" if record.assigned in OWN or _went_its_own_way(picture, state.brokers.get(workload)) else written
        if shown == wanted:
            continue
        if not wanted:
            return wait(DOOR_STILL_THERE, f"{name} was started by Switchover's start script, not by its own template alone",
                        subject=name, observed=shown, threshold="no marker",
                        unblocks=f"once its template is restored: {kubectl(picture.namespace, 'delete pod {}', name)}")
        if not shown:
            return fail(DOOR_NOT_PASSED, not_passed(picture, name), subject=name, observed="no marker", threshold=wanted,
                        unblocks="roll back (spec.desiredState: RolledBack), set spec.brokers[].start to the script by which"
                        " the container starts Kafka, and try again")
        return wait(STARTED_BY_OTHER_EDITS, f"{name} was started with other edits than Secret {names.node_files(workload)}"
                    " has for it", subject=name, observed=shown, threshold=wanted,
                    unblocks=kubectl(picture.namespace, "delete pod {}", name))
    return passed(f"{', '.join(picture.batch)} started as written")


def _went_its_own_way(picture: Picture, workload: Workload | None) -> bool:
    """After HandOver the template is the user's: one without the door starts brokers without a marker."""
    if picture.position.step != Step.RELEASE_ZOOKEEPER or workload is None:
        return False
    return bool({"volumes", "mounts"} & {*template.changed_back(workload, picture.broker_sets[workload.name])})


def not_passed(picture: Picture, name: str) -> str:
    """What it means that a process has no marker."""
    brokers, where = picture.brokers_of(name.rpartition("-")[0]), "its start script"
    if isinstance(brokers, Known):
        where = f"{brokers.value.script} of container {brokers.value.container}"
    return f"{name} runs Kafka, but was not started by {where}: the edits of its mode did not reach it"


STARTED_BY_ITS_EDITS: Gate[Picture] = Gate("StartedByItsEdits", check_started_by_its_edits)
