"""A Deployment whose pods are replaced batch by batch, where they are: held by minReadySeconds, moved by maxSurge and
maxUnavailable.

Under a minReadySeconds that never ends no pod of the template counts as available, and the Deployment's controller then
says exactly how many pods are of which template (docs/facts/deployments.md):

* of the template as it is now there are min(replicas, replicas + maxSurge - earlier), and never fewer than there were;
* of earlier templates there are at most replicas - maxUnavailable, whatever their health, and never more than there were.

So a batch rises (`maxSurge`), is judged, and its predecessors fall (`maxUnavailable`). Between batches the Deployment is
paused: then nothing moves, whoever changes the template or takes the hold off. Where there is no room for a surge, the
predecessors fall first.

The template is changed in the patch that holds, and in a rollback as well: the ReplicaSet that becomes the newest again
counts as available for a moment, so that nothing falls before its controller has said that none is.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from switchover.engine.effects import Effect, Patch
from switchover.engine.gate import Verdict, wait
from switchover.groups.picture import ORIGINAL, Picture
from switchover.groups.workloads import leaving
from switchover.groups.workloads.change import EMPTY, Unsupported, patch, write
from switchover.groups.workloads.member_kind import MemberKind
from switchover.kubernetes import gitops
from switchover.kubernetes.json_patch import as_read, unchanged
from switchover.kubernetes.members import MemberPod, MemberWorkload
from switchover.reasons.workloads import DEPLOYMENT_NOT_HELD, STRATEGY_RESET
from switchover.text.command import kubectl

HOLD_SECONDS = 2_147_483_645
"""minReadySeconds: 68 years. A shorter one ends, and all pods are replaced at once."""
DEADLINE_SECONDS = HOLD_SECONDS + 1
"""progressDeadlineSeconds must be more than minReadySeconds; one second more still would mean that there is none."""
RANDOM_END = 5
"""Characters at the end of a pod's name that no other pod has (SimpleNameGenerator in apiserver's names)."""
SHARED = frozenset({"ReadWriteMany", "ReadOnlyMany"})
"""Access modes with which pods on different nodes can mount one claim."""

Operations = tuple[Mapping[str, Any], ...]


def check_movable(source: MemberWorkload, *, in_place: bool) -> None:
    """Raises Unsupported when a new pod could not run next to those that it is to follow."""
    if in_place:
        return
    hint = "or set spec.rollout.surge to 0, so that pods leave before their successors start"
    pod = source.template["spec"]
    for name, port in _host_ports(pod):
        raise Unsupported(f"container {name} takes port {port} of its node, which two pods cannot share: give it up, {hint}")
    for volume in pod.get("volumes", []):
        claim = (volume.get("persistentVolumeClaim") or {}).get("claimName")
        if claim is None:
            continue
        if claim not in source.claims:
            raise Unsupported(f"volume {volume['name']} names PersistentVolumeClaim {claim}, which does not exist")
        if not SHARED & {*source.claims[claim]}:
            modes = ", ".join(source.claims[claim])
            raise Unsupported(f"PersistentVolumeClaim {claim} is {modes}: new pods could not mount it beside the others;"
                              f" use a claim with ReadWriteMany, {hint}")


def _host_ports(pod: Mapping[str, Any]) -> Iterator[tuple[str, int]]:
    """Of each container; with hostNetwork every port is one, as the API server fills it in."""
    for container in (*pod.get("initContainers", []), *pod.get("containers", [])):
        for port in container.get("ports", []):
            if port.get("hostPort"):
                yield container["name"], port["hostPort"]


# --- what is seen -------------------------------------------------------------------------------------------------------


def is_held(workload: MemberWorkload) -> bool:
    """No pod of the template counts as available, however long it runs."""
    return workload.min_ready == HOLD_SECONDS


def is_shaped(workload: MemberWorkload) -> bool:
    """Whether its strategy is one of this migration's: pods rise, or their predecessors fall, by numbers and never both."""
    shape = (workload.update_strategy.get("rollingUpdate") or {}).values()
    return all(isinstance(each, int) for each in shape) and sorted(map(bool, shape)) == [False, True]


def earlier(workload: MemberWorkload) -> int:
    """How many pods are wanted of templates before the one of now."""
    return sum(size for revision, size in workload.sizes.items() if revision != workload.update_revision)


def risen(workload: MemberWorkload) -> int:
    """How many pods are wanted of the template as it is now."""
    return workload.sizes.get(workload.update_revision, 0)


def is_whole(workload: MemberWorkload) -> bool:
    """All its pods are of its template, and none of another is left, not even one that ends."""
    return (workload.caught_up and risen(workload) == workload.replicas and not earlier(workload)
            and not workload.predecessors)


def is_of_one(workload: MemberWorkload) -> bool:
    """All its pods are of one template: its own, or, paused, the one before somebody changed what is not the migration's."""
    wanted = {revision: size for revision, size in workload.sizes.items() if size}
    return workload.caught_up and [*wanted.values()] == [workload.replicas] and {*wanted} == {
        pod.revision for pod in workload.pods.values()}


def is_moved(workload: MemberWorkload, moved: int) -> bool:
    """So many pods of the template are Ready, and of their predecessors none is left over that still consumes as it ends."""
    return (workload.caught_up and len(workload.ready()) >= moved and earlier(workload) <= workload.replicas - moved
            and len(workload.predecessors) <= workload.replicas - moved)


# --- what is done -------------------------------------------------------------------------------------------------------


def holding(workload: MemberWorkload) -> Operations:
    """What goes with a change of the template, so that no pod leaves because of it.

    At rest, and before the first change, nothing moves at all. In the middle of a batch pods of the new template rise, as
    many as there are too many already: with a pause they would be shared out among the ReplicaSets instead.
    """
    if not is_held(workload):
        return _shape(workload, surge=0, unavailable=1, paused=True)
    if workload.paused:
        return (_still_held(), {"op": "test", "path": "/spec/paused", "value": True})
    return (_still_held(), *_shape(workload, surge=max(1, _surplus(workload)), unavailable=0))


def hold_again(workload: MemberWorkload) -> Patch:
    """After somebody has taken the hold off, or given it another strategy: nobody leaves from now on.

    A paused one stays so. Of its strategy only as much is said as leaves it the pods that it has: what would not would be
    shared out among the ReplicaSets.
    """
    surplus = _surplus(workload)
    if not workload.paused:
        again = _shape(workload, surge=max(1, surplus), unavailable=0)
    elif is_shaped(workload):
        again = _seconds()
    else:
        again = _shape(workload, surge=surplus, unavailable=int(not surplus), paused=True)
    return patch(workload, [unchanged(workload.generation), *again], "no pod replaced for now")


def roll(workload: MemberWorkload, moved: int, *, joined: bool, in_place: bool, worth: leaving.Worth) -> tuple[Patch, ...]:
    """The next changes that make `moved` pods be of the template as it is now; none while something is awaited, or nothing
    is left to do.

    `joined`: the pods of the template that are Ready take part in the group, so that their predecessors may leave: first
    those that are `worth` the least.
    """
    if not (workload.caught_up and is_held(workload) and is_shaped(workload)):
        return ()
    total = workload.replicas
    have_left = earlier(workload) <= total - moved and len(workload.predecessors) <= total - moved
    if spared := leaving.spared(workload, all_left=have_left):
        return spared
    if in_place and (risen(workload) < moved or earlier(workload) > total - moved):
        return _fall(workload, moved, worth)
    if risen(workload) < moved:
        rise = max(1, moved - (total - earlier(workload)))
        return _reshaped(workload, rise, 0, f"{moved} of {total} pods of its template started")
    if len(workload.ready()) < moved or not joined:
        return ()
    if earlier(workload) > total - moved:
        return _fall(workload, moved, worth)
    at_rest = risen(workload) == moved and have_left
    if workload.paused or not at_rest:                  # a pause with too many pods would take some of them away
        return ()
    if _surge(workload):                                # and one with a surge that is not used up would add some
        return _fall(workload, moved, worth)
    return (patch(workload, [unchanged(workload.generation), _still_held(), _paused()], "no pod replaced for now"),)


def _fall(workload: MemberWorkload, moved: int, worth: leaving.Worth) -> tuple[Patch, ...]:
    if workload.available:                              # what counts as available would let others fall in its place
        return ()
    leave = earlier(workload) - (workload.replicas - moved)
    return leaving.chosen(workload, leave, worth) or _reshaped(
        workload, 0, moved, f"{moved} of {workload.replicas} pods to its template")


def restore(workload: MemberWorkload, original: Mapping[str, Any]) -> Patch:
    """Give the user's own fields back; only while it `is_of_one`, and nobody has written it since: nothing restarts, but for
    what somebody else has changed meanwhile.
    """
    operations: list[Mapping[str, Any]] = [*as_read(workload.uid, workload.resource_version),
                                           {"op": "replace", "path": "/spec/strategy", "value": original["updateStrategy"]}]
    for path, now, before in (("/spec/minReadySeconds", workload.min_ready, original["minReadySeconds"]),
                              ("/spec/progressDeadlineSeconds", workload.deadline, original["progressDeadlineSeconds"])):
        if before:
            operations.append({"op": "add", "path": path, "value": before})
        elif now:
            operations.append({"op": "remove", "path": path})
    if workload.paused:
        operations.append({"op": "remove", "path": "/spec/paused"})
    return patch(workload, operations, "rolled by its own settings again")


def is_restored(workload: MemberWorkload, original: Mapping[str, Any]) -> bool:
    """Whether its settings are the user's own."""
    return not workload.paused and (workload.update_strategy, workload.min_ready, workload.deadline) == (
        original["updateStrategy"], original["minReadySeconds"], original["progressDeadlineSeconds"])


def _surplus(workload: MemberWorkload) -> int:
    return max(0, sum(workload.sizes.values()) - workload.replicas)


def _surge(workload: MemberWorkload) -> int:
    return int(workload.update_strategy["rollingUpdate"]["maxSurge"])


def _reshaped(workload: MemberWorkload, surge: int, unavailable: int, purpose: str) -> tuple[Patch, ...]:
    if workload.update_strategy == _strategy(surge, unavailable) and not workload.paused:
        return ()
    operations = [unchanged(workload.generation), _still_held(), *_shape(workload, surge=surge, unavailable=unavailable)]
    return (patch(workload, operations, purpose),)


def _shape(workload: MemberWorkload, *, surge: int, unavailable: int, paused: bool = False) -> Operations:
    resumed: Operations = ({"op": "remove", "path": "/spec/paused"},) if workload.paused else ()
    return (*_seconds(), {"op": "add", "path": "/spec/strategy", "value": _strategy(surge, unavailable)},
            *((_paused(),) if paused else resumed))


def _strategy(surge: int, unavailable: int) -> dict[str, Any]:
    return {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": surge, "maxUnavailable": unavailable}}


def _seconds() -> Operations:
    return ({"op": "add", "path": "/spec/minReadySeconds", "value": HOLD_SECONDS},
            {"op": "add", "path": "/spec/progressDeadlineSeconds", "value": DEADLINE_SECONDS})


def _still_held() -> Mapping[str, Any]:
    return {"op": "test", "path": "/spec/minReadySeconds", "value": HOLD_SECONDS}


def _paused() -> Mapping[str, Any]:
    return {"op": "add", "path": "/spec/paused", "value": True}


# --- as the plan asks for it --------------------------------------------------------------------------------------------


class Deployments(MemberKind):
    """Pods rise next to those that they follow, or these fall first; which one fills which slot does not matter."""

    rises = True

    def check_movable(self, picture: Picture, source: MemberWorkload) -> None:
        if source.paused and not is_held(source):
            raise Unsupported("it is paused: its controller would roll nothing out; "
                              + kubectl(picture.namespace, "rollout resume deployment {}", source.name))
        if picture.rolls:
            check_movable(source, in_place=picture.in_place)

    def is_whole(self, source: MemberWorkload) -> bool:
        return is_whole(source)

    def own_marks(self, pod: MemberPod) -> tuple[str, ...]:
        return (pod.name[-RANDOM_END:],)

    def write(self, picture: Picture, source: MemberWorkload, wanted: Mapping[str, Any], purpose: str) -> Iterator[Effect]:
        container = picture.workload(source.name).container
        if picture.offline:
            yield write(source, container, wanted, purpose, EMPTY)
        elif is_held(source) or is_whole(source):
            yield write(source, container, wanted, purpose, *holding(source))

    def roll(self, picture: Picture, source: MemberWorkload) -> tuple[Effect, ...]:
        if picture.live_mode(source.name) != picture.moved_to:
            return ()
        joined = all(picture.takes_part(source.pods[name], picture.moved_to) for name in source.ready())
        return roll(source, picture.assigned(source.name, picture.moved_to), joined=joined, in_place=picture.in_place,
                    worth=leaving.worth(picture, source))

    def fall(self, source: MemberWorkload) -> tuple[Effect, ...]:
        return _fall(source, source.replicas, {}) if earlier(source) else ()

    def pod_in(self, picture: Picture, source: MemberWorkload, slot: str) -> MemberPod | None:
        alike = picture.alike(source.name, picture.position.nodes[slot].assigned)
        return source.pods[source.ready()[alike[slot]]] if is_moved(source, len(alike)) else None

    def find_lost_hold(self, picture: Picture, source: MemberWorkload) -> Verdict | None:
        """One that is in the middle, and whose own settings would roll it on; or that is held, and whose strategy would let
        other pods rise or fall than the batch's. It is held again in the same pass."""
        if source.replicas == 0 or not picture.rolls or picture.template(source.name, ORIGINAL) is None:
            return None
        if picture.live_mode(source.name) == ORIGINAL and not earlier(source):
            return None
        if is_held(source) and is_shaped(source):
            return None
        who, stop = gitops.written_by(source, ("strategy",), picture.namespace)
        unblocks = f"{stop}, or leave strategy, minReadySeconds, progressDeadlineSeconds and paused out of it"
        if not is_held(source):
            return wait(DEPLOYMENT_NOT_HELD, f"{who} set minReadySeconds of {source} to {source.min_ready}: Kubernetes would"
                        " replace all its pods at once, so it is held again", subject=source.name, observed=source.min_ready,
                        threshold=HOLD_SECONDS, unblocks=unblocks)
        shape = source.update_strategy.get("rollingUpdate") or {}
        strategy = ", ".join([source.update_strategy["type"], *(f"{name} {value}" for name, value in sorted(shape.items()))])
        return wait(STRATEGY_RESET, f"{who} set the strategy of {source}: pods outside the batch could come and go, so"
                    " it is set again", subject=source.name, observed=strategy,
                    threshold="maxSurge or maxUnavailable, the other 0", unblocks=unblocks)

    def hold_again(self, source: MemberWorkload) -> tuple[Effect, ...]:
        return (hold_again(source),)

    def can_undo(self, source: MemberWorkload) -> bool:
        """Of one that is paused kubectl undoes nothing."""
        return not is_held(source)

    def is_given_back(self, picture: Picture, source: MemberWorkload) -> bool:
        return picture.rolls and not is_held(source)

    def is_restored(self, source: MemberWorkload, original: Mapping[str, Any]) -> bool:
        return is_restored(source, original)

    def restore(self, source: MemberWorkload, original: Mapping[str, Any]) -> Iterator[Effect]:
        if is_of_one(source):
            yield restore(source, original)

    def left_held(self, source: MemberWorkload) -> str:
        if not is_held(source):
            return ""
        return (f"the hold of {source}: minReadySeconds, progressDeadlineSeconds, strategy and paused, which must be its own"
                " again")
