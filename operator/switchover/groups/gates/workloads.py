"""What must hold of the managed workloads: nobody else changes them, and in the end nothing of ours is left."""

from switchover.answers.observed import Known
from switchover.api.consumer_group_migration import Workload
from switchover.api.status import Direction
from switchover.engine.gate import Gate, Verdict, fail, passed, wait
from switchover.groups import goals
from switchover.groups.picture import INTERMEDIATE, ORIGINAL, TARGET, Picture
from switchover.groups.reading import fleet_of
from switchover.groups.workloads import autoscalers, change, kinds
from switchover.kubernetes import gitops, names
from switchover.kubernetes.members import MemberWorkload
from switchover.reasons.cluster import NOT_CLAIMED
from switchover.reasons.workloads import (
    AUTOSCALER_ACTIVE,
    AUTOSCALER_IN_THE_WAY,
    NOT_RELEASED,
    REPLICAS_CHANGED,
    REVERTED_BY_GITOPS,
    WORKLOAD_MISSING,
)
from switchover.text.command import kubectl


def check_ours(picture: Picture) -> Verdict:
    """The templates are of this migration, and the replicas those that the record asks for."""
    fleet = fleet_of(picture)
    for workload in picture.spec.workloads:
        source = picture.source(workload.name)
        if not isinstance(source, Known):
            return fail(WORKLOAD_MISSING, source.why, subject=workload.name,
                        unblocks="create it again with the template that its pods had")
        if source.value.claimed_by != picture.uid:
            return not_claimed(picture, source.value)
        if fleet.originals.get(workload.name) is not None and _is_reverted(picture, workload, source.value):
            return _reverted(picture, source.value, tuple(f"{field} of {workload.container}" for field in change.FIELDS))
        if (lost := kinds.of(source.value).find_lost_hold(picture, source.value)) is not None:
            return lost
        if source.value.replicas != (total := len(picture.slots(workload.name))):
            return _not_as_many(picture, source.value, total)
        for each in source.value.autoscalers:
            if found := autoscalers.in_the_way(each):
                why, unblocks = found
                return wait(AUTOSCALER_IN_THE_WAY, why, subject=str(each), unblocks=unblocks)
            if not autoscalers.is_paused(each):
                ours = autoscalers.is_stored(each, fleet.originals.get(workload.name))
                return wait(AUTOSCALER_ACTIVE, f"{each} may change the number of pods of {source.value}", subject=str(each),
                            unblocks="it is paused again; stop what resumed it (mostly a GitOps tool)" if ours
                            else "it was created after Baseline: delete it until the migration has ended")
    return passed("the workloads are as this migration has them")


def not_claimed(picture: Picture, source: MemberWorkload) -> Verdict:
    """The claim was taken off, or another migration's stands there."""
    first = (f"let the migration with uid {source.claimed_by} end, or delete it" if source.claimed_by
             else "stop what takes annotations off that Git does not have")
    return fail(NOT_CLAIMED, f"{source} is claimed by {source.claimed_by or 'nobody'}, and not by this migration any more:"
                " no pod is moved, forward or back",
                subject=source.name, observed=source.claimed_by or "nobody", threshold=picture.uid,
                unblocks=f"{first}; then " + kubectl(picture.namespace, "annotate {} {} --overwrite {}={}",
                                                     source.kind.lower(), source.name, names.CLAIM, picture.uid))


def _is_reverted(picture: Picture, workload: Workload, source: MemberWorkload) -> bool:
    """Somebody wrote another template than the record asks for: none of this migration's, or after us an earlier one."""
    live, container = picture.live_mode(workload.name), workload.container
    modes = [picture.position.nodes[slot].assigned for slot in picture.slots(workload.name)]
    wanted = next((mode for mode in (TARGET, INTERMEDIATE) if mode in modes), ORIGINAL)
    template = picture.template(workload.name, wanted)
    if not live or template is None:
        return True
    if picture.position.direction is Direction.BACKWARD or not (parts := change.differing(source, container, template)):
        return False
    writer = gitops.last_writer(source, parts)
    ours = [manager.at for manager in source.managers if manager.name == names.MANAGER and manager.parts & {*parts}]
    return writer is not None and writer.at > max(ours, default=0.0)


def _not_as_many(picture: Picture, scaled: MemberWorkload, wanted: int) -> Verdict:
    return fail(REPLICAS_CHANGED, f"{scaled} was scaled while pods are being moved: it has {scaled.replicas}, where by the"
                f" record it has {wanted}; no pod is moved, forward or back", subject=scaled.name, observed=scaled.replicas,
                threshold=wanted, unblocks="stop what scaled it (an autoscaler, or Git with replicas in it); then "
                + kubectl(picture.namespace, "scale {} {} --replicas {}", scaled.kind.lower(), scaled.name, wanted))


def _reverted(picture: Picture, source: MemberWorkload, parts: tuple[str, ...]) -> Verdict:
    writer, tool = gitops.last_writer(source, parts), gitops.tool_of(source, picture.namespace)
    who, stop = gitops.written_by(source, parts, picture.namespace)
    undo: str = kubectl(picture.namespace, "rollout undo {} {}", source.kind.lower(), source.name)
    if not kinds.of(source).can_undo(source):
        undo = (f"{kubectl(picture.namespace, 'edit {} {}', source.kind.lower(), source.name)}: {', '.join(parts)} as in"
                " spec.workloads, or, in a rollback, as before")
    return fail(REVERTED_BY_GITOPS, f"{who}{f' for {tool}' if tool is not None else ''} changed the template of {source}:"
                " it is none of this migration's, so no pod is moved", subject=str(source),
                observed=writer.name if writer is not None else "", threshold=names.MANAGER,
                unblocks=f"{stop}; then {undo}")


def check_autoscalers_paused(picture: Picture) -> Verdict:
    fleet_of(picture)
    for workload in picture.spec.workloads:
        source = picture.source(workload.name)
        for each in source.value.autoscalers if isinstance(source, Known) else ():
            if not autoscalers.is_paused(each):
                return wait(AUTOSCALER_ACTIVE, f"{each} may change the number of pods of {workload.name}",
                            subject=str(each), unblocks="it is paused")
    return passed("no autoscaler changes the number of pods")


def check_claimed(picture: Picture) -> Verdict:
    """Each workload is claimed and what it was is stored: from here on there is a rollback."""
    fleet = fleet_of(picture)
    for workload in picture.spec.workloads:
        source = picture.source(workload.name)
        if not isinstance(source, Known) or source.value.claimed_by != picture.uid \
                or fleet.originals.get(workload.name) is None:
            return wait(NOT_CLAIMED, f"{workload.kind} {workload.name} is not claimed yet", subject=workload.name,
                        unblocks="the claim and the original are written")
    return passed("the workloads are claimed, and their originals are stored")


def check_released(picture: Picture) -> Verdict:
    fleet_of(picture)
    for workload in picture.spec.workloads:
        if not goals.is_released(picture, workload.name):
            return wait(NOT_RELEASED, f"{workload.kind} {workload.name} is still claimed",
                        subject=workload.name,
                        unblocks="its own update settings are given back, and the claim is taken off")
    return passed("nothing of the migration is left on the workloads")


OURS: Gate[Picture] = Gate("WorkloadsAreOurs", check_ours)
CLAIMED: Gate[Picture] = Gate("WorkloadsClaimed", check_claimed)
AUTOSCALERS_PAUSED: Gate[Picture] = Gate("AutoscalersPaused", check_autoscalers_paused)
RELEASED: Gate[Picture] = Gate("WorkloadsReleased", check_released)
