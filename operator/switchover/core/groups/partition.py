"""A StatefulSet whose pods are replaced batch by batch: RollingUpdate, its partition lowered from the replicas to 0.

What Kubernetes does, as seen on 1.36 (tests/apiserver/test_member_workloads.py):

* At or above the partition a pod is made of the update revision, and replaced when it has another, highest ordinal first,
  one at a time, waiting for Ready in between. It is deleted, not evicted: no disruption budget is asked.
* Below the partition nothing is replaced, but a pod that goes away is made anew of `status.currentRevision`, which need not
  be the one that it had. It becomes the update revision when all pods have that and are Ready, and under OnDelete never:
  a StatefulSet that was created with it long ago still points to its very first template.
* With OrderedReady a pod that never gets Ready stops everything, its own replacement by a better template too. It has to be
  deleted (DeletePod).

Forward: `hold`, await `settled`, and only then change the template. Held, the current revision catches up as well, where it
was one of long ago: what counts is that all pods have the update revision and are Ready, whatever the partition. Back:
`hold`, then the template at once; a pod that goes away meanwhile is made of the current revision, which is where it comes
from or where it goes.
"""

from collections.abc import Mapping
from typing import Any

from switchover.core.effects import Patch
from switchover.core.groups.change import patch, unchanged
from switchover.core.groups.workloads import MemberWorkload

STRATEGY = "/spec/updateStrategy"


def hold(workload: MemberWorkload) -> Patch:
    """Nothing is replaced from now on, whatever the template."""
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"partition": workload.replicas}}
    return patch(workload, [unchanged(workload), {"op": "replace", "path": STRATEGY, "value": strategy}],
                 "no pod replaced for now")


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
    """A pod that goes away now comes back as one that was here: the template may be changed.

    Pods of two revisions there are only after a turn in the middle of a roll: either is one of this migration's.
    """
    known = {workload.update_revision, *(pod.revision for pod in workload.pods.values())}
    return workload.caught_up and workload.current_revision in known


def lower(workload: MemberWorkload, updated: int) -> Patch:
    """Let the `updated` pods with the highest ordinals be of the template as it is now."""
    partition = workload.replicas - updated
    return patch(workload, [unchanged(workload),
                            {"op": "replace", "path": f"{STRATEGY}/rollingUpdate/partition", "value": partition}],
                 f"{updated} of {workload.replicas} pods to its template")


def highest(workload: MemberWorkload, count: int) -> tuple[str, ...]:
    """The pods that `lower` reaches, in the order in which they are replaced."""
    last = workload.first_ordinal + workload.replicas - 1
    return tuple(f"{workload.name}-{ordinal}" for ordinal in range(last, last - count, -1))


def would_restart(workload: MemberWorkload, strategy: Mapping[str, Any]) -> tuple[str, ...]:
    """The pods that Kubernetes would replace at once under that strategy; none may be when it is given back."""
    reached = workload.replicas - partition_of(strategy, workload.replicas)
    return tuple(name for name in highest(workload, max(0, reached))
                 if name not in workload.pods or workload.pods[name].revision != workload.update_revision)


def restore_strategy(workload: MemberWorkload, original: Mapping[str, Any]) -> Patch:
    """Give the update strategy back; only while nothing `would_restart` under it."""
    return patch(workload, [unchanged(workload), {"op": "replace", "path": STRATEGY, "value": original}],
                 "update strategy as it was")
