"""How many pods a workload has, where all of them are stopped and started again: written through /scale only.

The /scale subresource leaves the replicas of a Deployment that Git describes without them to us, and an autoscaler's trace
and ours can be told apart (`Manager.subresource`).
"""

from switchover.engine.effects import Patch
from switchover.kubernetes.json_patch import as_read
from switchover.kubernetes.members import KINDS, MemberWorkload


def scale(workload: MemberWorkload, replicas: int) -> Patch:
    """Set the replicas, if nobody has written the workload since it was read.

    The scale shows no generation: the resourceVersion fences it, which status moves as well. Fenced means read again.
    """
    operations = (*as_read(workload.uid, workload.resource_version),
                  {"op": "replace", "path": "/spec/replicas", "value": replicas})
    version, _ = KINDS[workload.kind]
    return Patch(version, workload.kind, workload.name, operations, f"{workload.replicas} to {replicas} replicas", "scale")
