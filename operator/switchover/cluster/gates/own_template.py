"""Whether brokers would come back by a template of the user's own: it is tried first, and no broker pays for it."""

from collections.abc import Mapping
from posixpath import join, relpath
from typing import Any

from switchover.answers.observed import NOT_ASKED
from switchover.api.meta import AcceptedRisk
from switchover.cluster import template
from switchover.cluster.door.layout import ContainerMissing, container_of
from switchover.cluster.ending import trial_job
from switchover.cluster.ending.own_configuration import Broker, Difference, differences, log_dirs
from switchover.cluster.facts import Need
from switchover.cluster.picture import Picture
from switchover.cluster.reading import kubernetes_of
from switchover.engine.gate import Gate, Verdict, fail, passed, seen, several, wait
from switchover.kubernetes.jobs import JobRun
from switchover.kubernetes.reports import started_with
from switchover.kubernetes.workloads import Workload
from switchover.reasons.walk import NOT_OBSERVED
from switchover.reasons.workloads import CONTAINER_MISSING, OWN_CONFIGURATION_DIFFERS, TRIAL_FAILED, TRIAL_RUNNING
from switchover.text.command import kubectl


def check_own_template_tried(picture: Picture) -> Verdict:
    """Of each new template it has been seen what it starts Kafka with, and that is what a broker must run with."""
    state = kubernetes_of(picture)
    if AcceptedRisk.UNTRIED_TEMPLATE in picture.spec.accepted_risks:
        return passed(f"spec.acceptedRisks has {AcceptedRisk.UNTRIED_TEMPLATE}")
    for name, workload in state.brokers.items():
        original = state.originals.get(name)
        if workload is None or not template.is_brought(workload, picture.broker_sets[name], original):
            continue
        if (shut := _shut(picture, workload, original)) is not None:
            return shut
    return passed("what each new template starts Kafka with is what its brokers must run with")


def _shut(picture: Picture, workload: Workload, original: Mapping[str, Any] | None) -> Verdict | None:
    """Why a StatefulSet's new template cannot be rolled to; None where it can."""
    name, brokers = workload.name, picture.broker_sets[workload.name]
    subject = f"StatefulSet {name}"
    try:
        container_of(workload.template, brokers)
    except ContainerMissing as why:
        return fail(CONTAINER_MISSING, f"{subject}: {why}", subject=name, unblocks="correct the template")
    job = seen(picture.facts.trials.get(name, NOT_ASKED), NOT_OBSERVED, subject,
               saying=f"the trial of the new template of {subject} was not seen: ")
    told = started_with(job.message, job.nonce) if job is not None else None
    if job is None or job.given.get(trial_job.TRIES) != trial_job.digest(workload, brokers):
        seen(trial_job.goes_first(picture, name), NOT_OBSERVED, subject,
             saying=f"it is not known with what the new template of {subject} must be compared: ")
        return wait(TRIAL_RUNNING, f"the new template of {subject} is tried in a pod of its own before a broker has it",
                    subject=subject, unblocks="nothing to do: its Job is created")
    now = trial_job.compared_with(job)
    if (told is None or now is None) and (job.ended or job.message):
        words = job.detail or "its pod ended, and Kafka's start script was not run"
        return fail(TRIAL_FAILED, f"the new template of {subject} does not come to the start of Kafka: {words}."
                    " No broker has it", subject=f"Job {job.name}", unblocks=_cure(picture, job))
    if told is None or now is None:
        return wait(TRIAL_RUNNING, f"the new template of {subject} is tried before a broker has it: {job.detail}",
                    subject=f"Job {job.name}",
                    unblocks=f"it ends by itself; where there is no room for its pod, or it cannot run, {_accept(picture)}")
    found = (*differences(told, now), *_moved(workload, picture, now, original))
    if not found:
        return None
    first = found[0]
    return fail(OWN_CONFIGURATION_DIFFERS, f"by the new template of {subject}, tried as {now.pod},"
                f" {several(found)}. No broker has it", subject=f"Job {job.name}",
                observed=f"{first.key}: {first.found or 'not set'}", threshold=f"must {first.wanted}",
                unblocks=_cure(picture, job))


def _moved(workload: Workload, picture: Picture, now: Broker, original: Mapping[str, Any] | None) -> list[Difference]:
    """Log directories that would lie elsewhere than a broker's do now, whatever they are called."""
    brokers = picture.broker_sets[workload.name]
    if original is None:
        return []
    theirs, ours = container_of(workload.template, brokers), container_of(original["template"], brokers)
    return [Difference(f"the place of {each}", _place(theirs, each), f"be {_place(ours, each)}, where its data is")
            for each in log_dirs(now.settings) if _place(theirs, each) != _place(ours, each)]


def _place(container: Mapping[str, Any], path: str) -> str:
    """The volume that a path of a container lies on, and where in it."""
    found = template.mount_below(container, path)
    if found is None:
        return "the container's own file system"
    inner = join(found.get("subPath") or found.get("subPathExpr") or "", relpath(path, found["mountPath"]))
    return f"volume {found['name']}, {inner}"


def _cure(picture: Picture, job: JobRun) -> str:
    return ("correct the values or the manifest, and apply it: a template that has changed is tried again by itself; else,"
            f" {kubectl(picture.namespace, 'delete job {}', job.name)} has it tried again. Where it is meant so:"
            f" {_accept(picture)}")


def _accept(picture: Picture) -> str:
    accepted = {"spec": {"acceptedRisks": [*picture.spec.accepted_risks, AcceptedRisk.UNTRIED_TEMPLATE]}}
    patch = kubectl(picture.namespace, "patch kmig {} --type merge --patch {}", picture.name, accepted)
    return f"{patch}, then approve HandOver again"


OWN_TEMPLATE_TRIED: Gate[Picture] = Gate("OwnTemplateTried", check_own_template_tried, needs=(Need.TRIALS,))
