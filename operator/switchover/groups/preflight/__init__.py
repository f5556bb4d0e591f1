"""What must hold before anything is touched: docs/preflight-groups.md lists it.

A chain of pure checks over facts that were gathered once. A check finds Blockers, which shut its gate, Warnings and Infos,
which do not, each with its cure. docs/preflight-groups.md lists them.
"""

from switchover.engine.gate import Gate
from switchover.groups.picture import Picture
from switchover.groups.preflight import brokers, clients, group, rights, size, strategy, workloads

GATES: tuple[Gate[Picture], ...] = (
    *rights.CHECKS,
    *group.CHECKS,
    *workloads.CHECKS,
    *brokers.CHECKS,
    *size.CHECKS,
    *clients.CHECKS,
    *strategy.CHECKS,
)
