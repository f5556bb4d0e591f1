"""A StatefulSet whose pods are replaced batch by batch: RollingUpdate, its partition lowered from the replicas to 0.

What Kubernetes does, as seen on 1.36 (tests/apiserver/test_member_stateful_sets.py):

* At or above the partition a pod is made of the update revision, and replaced when it has another, highest ordinal first,
  one at a time, waiting for Ready in between. It is deleted, not evicted: no disruption budget is asked.
* Below the partition nothing is replaced, but a pod that goes away is made again of `status.currentRevision`, which need not
  be the one that it had. It becomes the update revision when all pods have that and are Ready, and under OnDelete never:
  a StatefulSet that was created with it long ago still points to its very first template.
* With OrderedReady a pod that never gets Ready stops everything, its own replacement by a better template too. It has to be
  deleted (DeletePod).

Forward, and back from the end of a roll: `settle` where the strategy is OnDelete, await `settled`, `hold`, and only then
change the template. Back: `hold` at once, then the template; a pod that goes away meanwhile is made of the current revision,
which is where it comes from or where it goes. Forward again from the middle of a rollback: as soon as it `comes_back`.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from switchover.api.status import Direction
from switchover.engine.effects import Effect, Patch, replacement
from switchover.groups.picture import Picture
from switchover.groups.workloads.change import patch, write
from switchover.groups.workloads.member_kind import MemberKind
from switchover.kubernetes.json_patch import unchanged
from switchover.kubernetes.members import MemberPod, MemberWorkload
from switchover.kubernetes.workloads import listed

STRATEGY = "/spec/updateStrategy"


def settle(workload: MemberWorkload) -> Patch:
    """RollingUpdate of all pods, only while nothing `would_restart` under it: then the current revision catches up."""
    return _strategy(workload, 0, "its template for whatever pod starts")


def hold(workload: MemberWorkload) -> Patch:
    """Nothing is replaced from now on, whatever the template. Forward only when it `comes_back`."""
    return _strategy(workload, workload.replicas, "no pod replaced for now")


def holding(workload: MemberWorkload) -> Mapping[str, Any]:
    """What goes with a change of the template: the test that the partition holds every pod."""
    return {"op": "test", "path": f"{STRATEGY}/rollingUpdate/partition", "value": workload.replicas}


def _strategy(workload: MemberWorkload, partition: int, purpose: str) -> Patch:
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"partition": partition}}
    return patch(workload, [unchanged(workload.generation), {"op": "replace", "path": STRATEGY, "value": strategy}], purpose)


def partition_of(strategy: Mapping[str, Any], replicas: int) -> int:
    """How many pods, from the lowest ordinal up, the StatefulSet controller leaves alone; under OnDelete all."""
    if strategy.get("type") == "OnDelete":
        return replicas
    return int((strategy.get("rollingUpdate") or {}).get("partition") or 0)


def is_held(workload: MemberWorkload) -> bool:
    """Whether the strategy is what `hold` makes it."""
    strategy = workload.update_strategy
    return strategy.get("type") == "RollingUpdate" and partition_of(strategy, workload.replicas) == workload.replicas


def settled(workload: MemberWorkload) -> bool:
    """A pod that goes away now comes back as it was: the template may be changed.

    Not while pods of two revisions run, nor while one is not Ready: under RollingUpdate the rest follows by itself.
    """
    return (workload.caught_up and workload.current_revision == workload.update_revision
            and all(pod.revision == workload.update_revision for pod in workload.pods.values()))


def comes_back(workload: MemberWorkload) -> bool:
    """A pod that goes away while the workload is held comes back as one of those that are here.

    After a turn in the middle of a roll they are of two revisions, or the template has changed and none has followed yet.
    """
    here = {pod.revision for pod in workload.pods.values()}
    return settled(workload) or (workload.caught_up and workload.current_revision in here)


def lower(workload: MemberWorkload, updated: int) -> Patch:
    """Let the `updated` pods with the highest ordinals be of the template as it is now."""
    partition = workload.replicas - updated
    return patch(workload, [unchanged(workload.generation),
                            {"op": "replace", "path": f"{STRATEGY}/rollingUpdate/partition", "value": partition}],
                 f"{updated} of {workload.replicas} pods to its template")


def highest(workload: MemberWorkload, count: int) -> tuple[str, ...]:
    """The pods that `lower` reaches, in the order in which they are replaced."""
    last = workload.first_ordinal + workload.replicas - 1
    return tuple(f"{workload.name}-{ordinal}" for ordinal in range(last, last - count, -1))


def would_restart(workload: MemberWorkload, strategy: Mapping[str, Any]) -> tuple[str, ...]:
    """The pods that Kubernetes would replace at once under that strategy; none may be when it is given back."""
    reached = workload.replicas - partition_of(strategy, workload.replicas)
    return tuple(name for name in highest(workload, listed(max(0, reached)))
                 if name not in workload.pods or workload.pods[name].revision != workload.update_revision)


def restore_strategy(workload: MemberWorkload, original: Mapping[str, Any]) -> Patch:
    """Give the update strategy back; only while nothing `would_restart` under it."""
    return patch(workload, [unchanged(workload.generation), {"op": "replace", "path": STRATEGY, "value": original}],
                 "update strategy as it was")


# --- as the plan asks for it --------------------------------------------------------------------------------------------


class StatefulSets(MemberKind):
    """A pod keeps its name, so that its slot is its ordinal; none is made before one goes."""

    def write(self, picture: Picture, source: MemberWorkload, wanted: Mapping[str, Any], purpose: str) -> Iterator[Effect]:
        """Hold and only then write; on the way forward not before a pod that goes away would come back as what is here."""
        if picture.position.direction is Direction.FORWARD and not comes_back(source):
            if source.update_strategy.get("type") == "OnDelete" and source.caught_up and not would_restart(
                    source, {"type": "RollingUpdate"}):
                yield settle(source)
        elif not is_held(source):
            yield hold(source)
        else:
            yield write(source, picture.workload(source.name).container, wanted, purpose, holding(source))

    def roll(self, picture: Picture, source: MemberWorkload) -> Iterator[Effect]:
        updated = _updated(picture, source.name)
        reached = source.replicas - partition_of(source.update_strategy, source.replicas)
        if reached < (onward := _onward(picture, source, updated)):
            yield lower(source, onward)
            return
        for pod in (source.pods[each] for each in highest(source, updated) if each in source.pods):
            if pod.revision != source.update_revision and not pod.ready and not pod.terminating:
                # With OrderedReady it would stand in the way of its own repair.
                yield replacement(pod.name, pod.uid, ready=pod.ready)

    def pod_in(self, picture: Picture, source: MemberWorkload, slot: str) -> MemberPod | None:
        index = int(slot.rpartition("/")[2])
        pod = source.pods.get(f"{source.name}-{source.first_ordinal + index}")
        return pod if pod is not None and pod.name in source.ready() else None

    def is_restored(self, source: MemberWorkload, original: Mapping[str, Any]) -> bool:
        return bool(source.update_strategy == original["updateStrategy"])

    def restore(self, source: MemberWorkload, original: Mapping[str, Any]) -> Iterator[Effect]:
        if not would_restart(source, original["updateStrategy"]):
            yield restore_strategy(source, original["updateStrategy"])


def _updated(picture: Picture, name: str) -> int:
    """How many slots, from the highest down, are assigned to the mode of the batch without a gap."""
    count = 0
    for slot in reversed(picture.slots(name)):
        if picture.position.nodes[slot].assigned != picture.moved_to:
            break
        count += 1
    return count


def _onward(picture: Picture, source: MemberWorkload, updated: int) -> int:
    """How far the partition may go down by now: Kubernetes waits for each pod to be Ready, and here for it to take part."""
    for count, name in enumerate(highest(source, updated), 1):
        pod = source.pods.get(name)
        if pod is None or name not in source.ready() or not picture.takes_part(pod, picture.moved_to):
            return count
    return updated
