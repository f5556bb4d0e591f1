"""How many pods a workload has: written through /scale only, and moved from one Deployment to another.

The /scale subresource leaves the replicas of a Deployment that Git describes without them to us, and an autoscaler's trace
and ours can be told apart (`Manager.subresource`).
"""

from switchover.core.effects import Patch
from switchover.core.groups.change import as_read
from switchover.core.groups.workloads import MemberWorkload


def scale(workload: MemberWorkload, replicas: int) -> Patch:
    """Set the replicas, if nobody has written the workload since it was read.

    The scale shows no generation: the resourceVersion fences it, which status moves as well. Fenced means read again.
    """
    operations = (*as_read(workload.uid, workload.resource_version),
                  {"op": "replace", "path": "/spec/replicas", "value": replicas})
    return Patch("apps/v1", workload.kind, workload.name, operations, f"{workload.replicas} to {replicas} replicas", "scale")


def exchange(rising: MemberWorkload, falling: MemberWorkload, moved: int, total: int) -> Patch | None:
    """The next change that gives `moved` of `total` pods to the one and leaves the rest to the other; None when there is
    nothing to do or the new pods are awaited.

    More first, less only when every new pod is Ready: there are never fewer than `total`. Pods of an earlier template of
    `rising` do not count.
    """
    if rising.replicas < moved:
        return scale(rising, moved)
    if len(rising.ready()) >= moved and falling.replicas > total - moved:
        return scale(falling, total - moved)
    return None


def is_exchanged(rising: MemberWorkload, falling: MemberWorkload, moved: int, total: int) -> bool:
    """Seen in this pass: the new pods are Ready, and of the others none is left over that still consumes as it ends."""
    return (rising.caught_up and falling.caught_up and rising.replicas >= moved and len(rising.ready()) >= moved
            and falling.replicas <= total - moved and len(falling.pods) <= total - moved)
