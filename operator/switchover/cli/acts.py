"""What a person may ask of a migration: what each act says before it is done, and the patch that it is. Pure."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from switchover.answers.errors import Refused
from switchover.api.lenient import given
from switchover.api.meta import DesiredState
from switchover.api.status import Phase
from switchover.cli.display import clock, is_backward, wait_line
from switchover.cli.objects import KAFKA_MIGRATION, UNREAD, Found, mode_of, nodes_of, preview_of, status_in, step_record
from switchover.engine.approvals import PREFLIGHT
from switchover.engine.intent import ABANDON, RETRY, retry_of
from switchover.engine.record import without_foreign_record
from switchover.engine.status import by_itself
from switchover.kubernetes.json_patch import as_read
from switchover.text.command import command
from switchover.text.nearest import meant
from switchover.text.visible import counted

Operation = Mapping[str, Any]


class Act(StrEnum):
    """What may be asked, approvals apart."""

    PAUSE = "pause"
    RESUME = "resume"
    ROLLBACK = "rollback"
    RETRY = "retry"
    ABANDON = "abandon"


DESIRED = {Act.PAUSE: DesiredState.PAUSED, Act.RESUME: DesiredState.RUNNING, Act.RETRY: DesiredState.RUNNING,
           Act.ROLLBACK: DesiredState.ROLLED_BACK}
"""What the spec says after it; ABANDON is a deletion."""


@dataclass(frozen=True, slots=True)
class Approval:
    """Who lets which step begin, and why; `plan_hash` is the plan that they were shown."""

    step: str
    approver: str
    reason: str
    plan_hash: str

    @property
    def manifest(self) -> Mapping[str, str]:
        """As spec.approvals has it."""
        return {"name": self.step, "planHash": self.plan_hash, "approver": self.approver, "reason": self.reason}


# --- approvals ----------------------------------------------------------------------------------------------------------


def plan_to_approve(found: Found, step: str) -> str:
    """The hash of the plan on record. Refused where there is none, or the plan has no such step."""
    names = found.plan().names
    if step not in names or step == PREFLIGHT:
        raise Refused(f"{found.name} has no step {step} that could be approved; it has {', '.join(names[1:])}"
                      f"{meant(step, names[1:])}")
    hashed = status_in(without_foreign_record(found.named, 0.0)[0])[0].plan_hash
    if not hashed:
        raise Refused(f"{found.name} has no plan to approve yet: Preflight has not ended ({_command('status', found)})")
    return hashed


def approval_lines(found: Found, approval: Approval) -> Iterator[str]:
    """What is approved, what it does, and what cannot be undone after it."""
    status = found.status
    yield f"approve {approval.step} of {found.name} in namespace {found.resource['metadata']['namespace']}"
    yield f"plan {approval.plan_hash}, attempt {status.attempt}, as {approval.approver}"
    yield from _unread(found)
    for planned in preview_of(status).steps:
        if planned.name == approval.step and planned.estimated_seconds:
            yield f"it restarts {counted(planned.restarts, 'pod')} and takes about {clock(planned.estimated_seconds)}"
    if approval.step == found.plan().point_of_no_return:
        yield f"{approval.step} is the point of no return: once it has begun, no step can be taken back"
    if waits_for(found, approval.step):
        for item in (each for each in status.waiting_for if each.gate != "Approval"):
            yield f"it also waits for {wait_line(item)}"
    else:
        yield f"it does not wait for this approval now: it stands at {_place(found)}"
    for each in (found.resource.get("spec") or {}).get("approvals", ()):
        if each["name"] == approval.step:
            yield f"it takes the place of {each['approver']}'s approval of plan {each['planHash']}"


def waits_for(found: Found, step: str) -> bool:
    """Whether it waits for this step's approval."""
    return any(item.gate == "Approval" and item.subject == step for item in found.status.waiting_for)


def approved_by(found: Found, approval: Approval) -> str:
    """Who has approved this step of this plan already; "" for nobody."""
    before = (found.resource.get("spec") or {}).get("approvals", ())
    return next((str(each["approver"]) for each in before
                 if each["name"] == approval.step and each["planHash"] == approval.plan_hash), "")


def approval_patch(resource: Mapping[str, Any], approval: Approval) -> Sequence[Operation]:
    """The approval added to those that there are; one of the same step, given for another plan, gives way to it."""
    before = (resource.get("spec") or {}).get("approvals")
    same = [index for index, each in enumerate(before or ()) if each["name"] == approval.step]
    if not before:
        change: Operation = {"op": "add", "path": "/spec/approvals", "value": [approval.manifest]}
    elif same:
        change = {"op": "replace", "path": f"/spec/approvals/{same[0]}", "value": approval.manifest}
    else:
        change = {"op": "add", "path": "/spec/approvals/-", "value": approval.manifest}
    return (*_as_read(resource), change)


# --- the other acts -----------------------------------------------------------------------------------------------------


def refuse(found: Found, act: Act) -> None:
    """Refused where the act could not be done, or would do nothing."""
    phase, rollback, wanted = found.status.phase, found.status.rollback, _desired(found)
    if "deletionTimestamp" in found.resource["metadata"] and act is not Act.ABANDON:
        raise Refused(f"{found.name} is being deleted: {_command('status', found)} says what it waits for")
    if phase == Phase.SUCCEEDED and act is not Act.ABANDON:
        raise Refused(f"{found.name} has succeeded: there is nothing to {act}")
    if act is Act.RETRY:
        _refuse_retry(found)
    elif act is Act.RESUME and wanted == DESIRED[act] and is_backward(found.status):
        raise Refused(f"{found.name} {_turned(found)}: resume changes nothing; {_command('retry', found)} begins attempt"
                      f" {_next_attempt(found)}")
    elif act in DESIRED and wanted == DESIRED[act]:
        raise Refused(f"{found.name}: spec.desiredState is {wanted} already ({_command('status', found)})")
    if act is Act.ROLLBACK and not rollback.available:
        lost = rollback.lost_at_step or "a step that cannot be taken back"
        raise Refused(f"{found.name} cannot be rolled back: the point of no return was passed with {lost}")


def lines(found: Found, act: Act) -> Iterator[str]:
    """What the act does, and what it costs."""
    step, place = _step(found), _place(found)
    yield f"{act} {found.name} in namespace {found.resource['metadata']['namespace']}, which stands at {place}"
    yield from _unread(found)
    match act:
        case Act.PAUSE:
            yield "no step and no batch begins; what must not stay half done is finished first; gates are still evaluated"
            yield f"nothing is rolled back; to go on: {_command('resume', found)}"
        case Act.RESUME:
            yield from _resumed(found, step)
        case Act.ROLLBACK:
            yield from _taken_back(found, step)
        case Act.RETRY:
            yield from _begun_again(found)
        case Act.ABANDON:
            yield from _left(found, step)


def done(found: Found, act: Act) -> str:
    """What has been done, once it is."""
    match act:
        case Act.ABANDON:
            return "is deleted, and its operator released it"
        case Act.RETRY:
            return f"begins attempt {_next_attempt(found)}{'' if _is_over(found) else ' once it is rolled back'}"
        case _:
            return f"now wants {DESIRED[act].value}"


def desired_patch(resource: Mapping[str, Any], act: Act) -> Sequence[Operation]:
    """spec.desiredState, of the object that was read and no other."""
    return (*_as_read(resource), {"op": "add", "path": "/spec/desiredState", "value": DESIRED[act].value})


def retry_patch(resource: Mapping[str, Any]) -> Sequence[Operation]:
    """Another attempt after the one that the object has been, or is being, rolled back from; its rollback ends first."""
    metadata, (status, _) = resource["metadata"], status_in(resource)
    annotations = {**(metadata.get("annotations") or {}), RETRY: retry_of(metadata["uid"], status.attempt)}
    return (*desired_patch(resource, Act.RETRY), {"op": "add", "path": "/metadata/annotations", "value": annotations})


def abandon_patch(resource: Mapping[str, Any]) -> Sequence[Operation]:
    """The annotation with which a deletion is released at once."""
    annotations = {**(resource["metadata"].get("annotations") or {}), ABANDON: "true"}
    return (*_as_read(resource), {"op": "add", "path": "/metadata/annotations", "value": annotations})


def _as_read(resource: Mapping[str, Any]) -> Sequence[Operation]:
    return as_read(resource["metadata"]["uid"], resource["metadata"]["resourceVersion"])


def _command(act: str, found: Found) -> str:
    return command("switchover {} {} --namespace {}", act, found.name, found.resource["metadata"]["namespace"])


def _desired(found: Found) -> str:
    return str((found.resource.get("spec") or {}).get("desiredState", DesiredState.RUNNING))


def _place(found: Found) -> str:
    moving = found.status.progress.batch_nodes
    return _step(found) + (f", batch of {counted(len(moving), 'pod')}" if moving else "")


def _next_attempt(found: Found) -> int:
    return found.status.attempt + 1


def _is_over(found: Found) -> bool:
    return found.status.progress.complete_time is not None


def _turned(found: Found) -> str:
    """What a rollback is at, and what had it begin where nobody asked for it."""
    rollback = found.status.rollback
    because = f" {by_itself(rollback)}" if rollback.failure else ""
    return f"has rolled back{because}" if _is_over(found) else f"is rolling back{because}, and stands at {_step(found)}"


def _step(found: Found) -> str:
    step = given(found.status.progress, "step")
    return "an unknown step" if step is None and found.status.observed_generation >= 0 else step or PREFLIGHT


def _unread(found: Found) -> Iterator[str]:
    if left := status_in(found.named)[1]:
        yield f"{UNREAD}: {left}"


def _refuse_retry(found: Found) -> None:
    if not is_backward(found.status):
        raise Refused(f"{found.name} is not rolled back: it stands at {_step(found)}, and goes on once its gates pass; to"
                      f" begin from the start, first {_command('rollback', found)}")
    if found.is_retried:
        raise Refused(f"{found.name} {_turned(found)}: attempt {_next_attempt(found)} begins by itself after that")


def _begun_again(found: Found) -> Iterator[str]:
    yield f"it {_turned(found)}"
    first = "" if _is_over(found) else "once every step is rolled back, "
    yield f"{first}attempt {_next_attempt(found)} begins with Preflight; no approval is carried over"
    yield ("what had it roll back is not repaired by that: it may roll back again" if found.status.rollback.failure else
           "what was changed of its spec since then counts")


def _resumed(found: Found, step: str) -> Iterator[str]:
    plan = preview_of(found.status)
    if found.status.rollback.failure and _desired(found) != DesiredState.ROLLED_BACK:
        yield f"it {_turned(found)}, and that goes on; {_command('retry', found)} begins attempt {_next_attempt(found)}"
        return
    match _desired(found):
        case DesiredState.ROLLED_BACK if found.status.phase == Phase.ROLLED_BACK:
            yield f"attempt {_next_attempt(found)} begins with Preflight; no approval is carried over"
        case DesiredState.ROLLED_BACK:
            yield f"it turns forward again at {step}, or finishes the rollback first and begins a new attempt"
        case DesiredState.PLANNED:
            yield "the migration begins, as it was planned"
        case _:
            yield f"it goes on from {step}, as soon as its gates pass"
    if plan.steps and step == PREFLIGHT:
        yield f"in all {counted(plan.restarts, 'restart')}, about {clock(plan.estimated_seconds)}"


def _taken_back(found: Found, step: str) -> Iterator[str]:
    if is_backward(found.status):
        goes_on = "" if _is_over(found) else ": that goes on to its end"
        yield f"it {_turned(found)}{goes_on}; nothing begins again before {_command('retry', found)}"
        return
    names = list(found.plan().names)
    done = [name for name in names[1:names.index(step) + 1] if step_record(found.status, name)] if step in names else []
    if not done:
        yield ("nothing was changed yet, so there is nothing to roll back: the attempt ends" if step in names else
               "which steps are rolled back is unknown")
        return
    yield f"these steps are rolled back, the last one first: {', '.join(reversed(done))}"
    takes = found.status.rollback.estimated_seconds
    if takes is not None:
        yield f"it takes about {clock(takes)}, restarts included, and waits for no window"
    yield f"{_command('resume', found)} turns it forward again; once the rollback is finished, every approval is void"


def _left(found: Found, step: str) -> Iterator[str]:
    yield "the object is deleted at once: nothing is rolled back, and nothing is changed any more"
    if step == PREFLIGHT or _is_over(found):
        yield "it is not under way: nothing is left half done"
        return
    modes = Counter(mode_of(node) or "as it was" for node in nodes_of(found.status))
    if modes:
        what = "nodes by mode" if found.kind is KAFKA_MIGRATION else "pods by template"
        yield f"it stays half done, {what}: {', '.join(f'{count} {mode}' for mode, count in sorted(modes.items()))}"
    if found.kind is KAFKA_MIGRATION:
        yield "brokers keep their mode and the update strategy OnDelete; controllers and Secrets stay, unwatched"
    else:
        yield "a Deployment that is held rolls nothing out by itself, and autoscalers stay paused"
    yield f"to roll it back instead: {_command('rollback', found)}"
