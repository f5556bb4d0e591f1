"""The workloads whose pods are to be moved: there, movable, nobody else's, and with the size that they should have."""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

from switchover.answers.observed import Known, Unknown
from switchover.api.consumer_group_migration import ContainerChange, Workload
from switchover.engine.gate import Verdict, check, fail, several, unknown, wait, warn
from switchover.engine.policy import Policy, matches
from switchover.groups.facts import Need
from switchover.groups.picture import Picture
from switchover.groups.reading import workloads
from switchover.groups.workloads import autoscalers, bounds, kinds
from switchover.groups.workloads.bounds import trials_of
from switchover.groups.workloads.change import Unsupported, changed, container_of
from switchover.kubernetes import gitops, names
from switchover.kubernetes.members import CANARY, PRIMARY, MemberWorkload
from switchover.kubernetes.workloads import MOST_PODS
from switchover.reasons.cluster import BROKERS_UNKNOWN
from switchover.reasons.groups import BRIDGE_MISSING, NOTHING_TO_CHANGE
from switchover.reasons.notes import AUTOSCALER_IS_PAUSED, GITOPS_OWNS_IT, STRICT_BUDGET
from switchover.reasons.preflight import (
    CHANGE_REFUSED,
    CHANGE_UNDONE,
    CLAIM_NOT_ALLOWED,
    CLAIMED_BY_ANOTHER,
    LEASE_HELD_BY_ANOTHER,
    SECRET_NOT_ALLOWED,
    WORKLOAD_NOT_READY,
    WORKLOAD_OWNED,
    WORKLOAD_UNSUPPORTED,
)
from switchover.reasons.walk import NOT_OBSERVED
from switchover.reasons.workloads import AUTOSCALER_IN_THE_WAY, TOO_MANY_PODS, WORKLOAD_MISSING
from switchover.text import nearest
from switchover.text.command import kubectl


def find_unmovable(picture: Picture) -> Iterator[Verdict]:
    there = {source.name: source for source in workloads(picture)}
    for workload in picture.spec.workloads:
        source = there.get(workload.name)
        if source is None:
            yield _missing(picture, workload)
            continue
        try:
            container_of(source.template, workload.container)
            kinds.of(source).check_movable(picture, source)
            if picture.replaces:
                yield from _changes_wrongly(workload, source)
        except Unsupported as error:
            yield fail(WORKLOAD_UNSUPPORTED, f"{source}: {error}", subject=workload.name,
                       unblocks="change that in the workload or in spec.workloads")
        if picture.spec.protocol is not None and picture.bridged and workload.bridge is None:
            yield fail(BRIDGE_MISSING, f"workload {workload.name} has no bridge, and others have one: its pods would take"
                       " the new protocol too early", subject=workload.name,
                       unblocks="give every workload a bridge, or none")
        if source.claimed_by not in ("", picture.uid):
            yield fail(CLAIMED_BY_ANOTHER, f"{source} is claimed by another migration", subject=workload.name,
                       observed=source.claimed_by, threshold=picture.uid,
                       unblocks="let that migration end first; if it is gone: " + kubectl(
                           picture.namespace, "annotate {} {} {}-", source.kind.lower(), source.name, names.CLAIM))
        if source.owner:
            yield _owned(source)
        if other := _run_by(picture, source):
            yield other
        elif source.replicas < 1 or not source.caught_up or len(source.ready()) < source.replicas \
                or not kinds.of(source).is_whole(source):
            yield wait(WORKLOAD_NOT_READY, f"{len(source.ready())} of {source.replicas} pods of {source} are Ready",
                       subject=workload.name, observed=len(source.ready()), threshold=source.replicas,
                       unblocks="wait until all its pods are Ready; look at the first that is not")
        for budget, allowed in source.budgets.items():
            if allowed < 1:
                yield warn(STRICT_BUDGET, f"PodDisruptionBudget {budget} allows no disruption of {source}: batches go on,"
                           " but node drains are refused, and in a rollback under policy upgrade (Kafka 4.3 and newer) the"
                           " eviction that gives partitions their owners back", subject=budget,
                           cure="let it allow one; or, in such a rollback, delete that pod yourself")
    largest = max(there.values(), key=lambda each: each.replicas, default=None)
    pods = sum(source.replicas for source in there.values())
    if largest is not None and pods > MOST_PODS:
        yield fail(TOO_MANY_PODS, f"{largest} wants {largest.replicas} pods, all workloads together {pods}: Switchover"
                   f" moves at most {MOST_PODS}", subject=largest.name, observed=pods, threshold=MOST_PODS,
                   unblocks="scale it to what it needs")



def _as_flagger_does(name: str) -> str:
    return ("let Flagger roll out the change, and watch the group with `switchover lag`; or remove the Canary, run the pods"
            f" in {name} again, and name that")


def _owned(source: MemberWorkload) -> Verdict:
    """Something else owns it."""
    message, unblocks = f"{source} belongs to {source.owner}", f"change {source.owner} itself, or migrate by hand"
    if source.owner.startswith(f"{CANARY} "):
        message, unblocks = f"{message} of Flagger", _as_flagger_does(source.name.removesuffix(PRIMARY))
    return fail(WORKLOAD_OWNED, f"{message}, which would revert the change", subject=source.name, unblocks=unblocks)


def _run_by(picture: Picture, source: MemberWorkload) -> Verdict | None:
    """It has no pod since something else runs them."""
    if source.replicas > 0:
        return None
    others = picture.facts.others
    what = others.value.get(source.name, "") if isinstance(others, Known) else ""
    if what.startswith(f"{CANARY} "):
        return fail(WORKLOAD_OWNED, f"{source} has 0 replicas: {what} of Flagger runs its pods in Deployment"
                    f" {source.name}{PRIMARY}", subject=source.name, observed=0, unblocks=_as_flagger_does(source.name))
    if what:
        return fail(WORKLOAD_UNSUPPORTED, f"{source} has 0 replicas, and a {what} of that name may run its pods:"
                    " Switchover moves the pods of Deployments and StatefulSets alone", subject=source.name, observed=what,
                    unblocks=INSTEAD[what])
    return None


INSTEAD = {
    "Rollout": "move its pods by its own steps (setWeight and pause), change by change; or run them as a Deployment",
    "CloneSet": "move its pods by its own updateStrategy.partition, change by change; or run them as a Deployment",
    "StrimziPodSet": "change its Strimzi resource (KafkaConnect, KafkaMirrorMaker2): Strimzi's operator would revert what is"
                     " changed here",
    "DaemonSet": "stop its pods (a nodeSelector that no node has), change it, and start them again",
}
"""What moves the pods of workloads that Switchover leaves alone."""


def _missing(picture: Picture, workload: Workload) -> Verdict:
    """It does not exist; or something else has its name, which is not moved."""
    others = picture.facts.others
    kind = others.value.get(workload.name, "") if isinstance(others, Known) else ""
    if kind not in INSTEAD:
        found = picture.facts.neighbours
        there = found.value if isinstance(found, Known) else {}
        correct = (f"set its kind in spec.workloads to {there[workload.name]}" if workload.name in there
                   else f"correct spec.workloads[].name{nearest.found(workload.name, there)}, or create it")
        return fail(WORKLOAD_MISSING, f"{workload.kind} {workload.name} does not exist", subject=workload.name,
                    unblocks=correct)
    return fail(WORKLOAD_UNSUPPORTED, f"{workload.name} is a {kind}: Switchover moves the pods of Deployments and"
                " StatefulSets alone", subject=workload.name, observed=kind, threshold=workload.kind, unblocks=INSTEAD[kind])


def _changes_wrongly(workload: Workload, source: MemberWorkload) -> Iterator[Verdict]:
    """No change at all, which is never seen to be done; or more than a patch may change."""
    modes = [source.template]
    for name, change in (("bridge", workload.bridge), ("template", workload.template)):
        if change is None:
            continue
        after = changed(source.template, workload.container, change)
        if after == modes[-1]:
            yield fail(NOTHING_TO_CHANGE, f"the {name} of spec.workloads {workload.name} changes nothing",
                       subject=workload.name,
                       unblocks="name there the image, variables, arguments or patch that must change")
        alone = changed(source.template, workload.container, ContainerChange(patch=change.patch))
        for why in (*bounds.beyond(source.template, alone),
                    *(each for mode in modes for each in bounds.reordered(mode, after, workload.container))):
            yield fail(WORKLOAD_UNSUPPORTED, f"the patch in {name} of spec.workloads {workload.name} changes {why}",
                       subject=workload.name, unblocks="leave it out of the patch, or change the workload itself")
        modes.append(after)


def find_not_allowed(picture: Picture) -> Iterator[Verdict]:
    there = {source.name: source for source in workloads(picture)}
    for workload in picture.spec.workloads:
        present = ""
        if workload.name in there:
            with suppress(Unsupported):                              # found above
                present = container_of(there[workload.name].template, workload.container)[1].get("image", "")
        for name, change in (("bridge", workload.bridge), ("template", workload.template)):
            if change is not None and change.image is not None:
                field = f"spec.workloads[{workload.name}].{name}.image"
                yield from picture.policy.find_image(field, change.image, present)
            if workload.name in there and change is not None and change.patch is not None:
                with suppress(Unsupported):
                    yield from _brought_in(picture.policy, workload, name, change, there[workload.name].template)
    audit = picture.spec.audit
    if audit.enabled and audit.image is not None and audit.claim is not None:
        yield from picture.policy.find_image("spec.audit.image", audit.image)
        yield from _find_claim(picture.policy, "spec.audit.claim", audit.claim)


def _brought_in(policy: Policy, workload: Workload, name: str, change: ContainerChange,
                before: Mapping[str, Any]) -> Iterator[Verdict]:
    """What the patch alone brings in: the image that is named next to it replaces its own."""
    field, after = f"spec.workloads[{workload.name}].{name}.patch", changed(before, workload.container, change)
    for container, image, present in bounds.images(before, after):
        if container != f"containers[{workload.container}]" or change.image is None:
            yield from policy.find_image(f"{field} of {container}", image, present)
    for claim in bounds.claims(before, after):
        yield from _find_claim(policy, field, claim)
    for secret in bounds.secrets(before, after):
        if not matches(secret, policy.secrets):
            yield fail(SECRET_NOT_ALLOWED, f"{field} brings in Secret {secret}, which the chart does not allow",
                       subject=field, observed=secret, threshold=", ".join(policy.secrets) or "none",
                       unblocks=policy.allow("secrets", secret))
    yield from policy.find_pod_changes(field, before, after)


def _find_claim(policy: Policy, field: str, claim: str) -> Iterator[Verdict]:
    if not matches(claim, policy.claims):
        yield fail(CLAIM_NOT_ALLOWED, f"{field} names volume claim {claim}, which the chart does not allow", subject=field,
                   observed=claim, threshold=", ".join(policy.claims) or "none", unblocks=policy.allow("claims", claim))


def find_refused_change(picture: Picture) -> Iterator[Verdict]:
    """Each change of a template, as the API server and its admission would make it: a dry run."""
    answers = picture.facts.trials
    for trial in (each for source in workloads(picture) if picture.replaces
                  for each in trials_of(picture.workload(source.name), source)):
        not_made = Unknown(f"no dry run was made on {trial.source}")
        outcome = answers.value.get(trial.name, not_made) if isinstance(answers, Known) else answers
        workload, _, name = trial.name.rpartition(".")
        change = f"the {name} of spec.workloads {workload}"
        if isinstance(outcome, Known):
            if otherwise := trial.stored_otherwise(outcome.value):
                yield fail(CHANGE_UNDONE, f"the API server or a webhook alters {change} at {several(otherwise)}",
                           subject=workload, observed=several(otherwise), unblocks="write what it stores, as kubectl get"
                           " --output yaml shows it; or exempt that workload from the mutating webhook")
        elif outcome.refused:
            yield fail(CHANGE_REFUSED, f"{change} is refused: {outcome.why}", subject=workload,
                       unblocks="correct what validation refuses, or let that policy or webhook allow it for"
                       " Switchover's account")
        else:
            yield unknown(NOT_OBSERVED, outcome.why, subject=workload)


def find_autoscalers(picture: Picture) -> Iterator[Verdict]:
    for source in workloads(picture):
        for each in source.autoscalers:
            if found := autoscalers.in_the_way(each):
                why, unblocks = found
                yield fail(AUTOSCALER_IN_THE_WAY, why, subject=str(each), unblocks=unblocks)
            else:
                yield warn(AUTOSCALER_IS_PAUSED, f"{each} is paused while the pods of {source} are moved, then restored",
                           subject=str(each), cure="nothing to do")


def find_gitops(picture: Picture) -> Iterator[Verdict]:
    for source in workloads(picture):
        tool = gitops.tool_of(source, picture.namespace)
        if tool is not None and tool.reverts and not tool.quiet:
            yield warn(GITOPS_OWNS_IT, f"{tool} applies {source} continuously: a revert would stop the migration",
                       subject=source.name, observed=str(tool), cure=tool.tolerate)


def find_lease(picture: Picture) -> Iterator[Verdict]:
    holder, cluster = picture.facts.lease_holder, picture.facts.cluster_id
    if not isinstance(cluster, Known):
        yield unknown(BROKERS_UNKNOWN, cluster.why, subject="Kafka")
    elif holder and not holder.startswith(f"{picture.uid}/"):
        yield wait(LEASE_HELD_BY_ANOTHER, f"another migration of group {picture.spec.group} holds its Lease",
                   subject="Lease", observed=holder, threshold=picture.uid,
                   unblocks="that migration ends, or its Lease expires")


MOVABLE = check("Workloads", find_unmovable, "the workloads can be moved", needs=(Need.OTHERS,))
CHECKS = (
    MOVABLE,
    check("Allowed", find_not_allowed, "images, volume claims and Secrets are those that the chart allows"),
    check("TemplateChange", find_refused_change, "a dry run of each change of a template succeeds", needs=(Need.TRIALS,)),
    check("Autoscalers", find_autoscalers, "no autoscaler is in the way"),
    check("GitOps", find_gitops, "no GitOps tool would revert the change"),
    check("Lease", find_lease, "no other migration of the group is under way"),
)
