"""The kinds of workload that can be moved.

To add one: its name in `api/consumer_group_migration.py` and in `kubernetes/members.py`, how it is read in
`kubernetes/client/member_workloads.py`, a class next to this file, and its line here; the chart's Role grants the rights.
"""

from switchover.groups.workloads.deployment import Deployments
from switchover.groups.workloads.member_kind import MemberKind
from switchover.groups.workloads.stateful_set import StatefulSets
from switchover.kubernetes.members import MemberWorkload

KINDS: dict[str, MemberKind] = {"Deployment": Deployments(), "StatefulSet": StatefulSets()}


def of(source: MemberWorkload) -> MemberKind:
    """What answers for a workload."""
    return KINDS[source.kind]
