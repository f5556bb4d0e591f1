"""What must hold before anything is touched: docs/preflight-groups.md lists it.

A chain of pure checks over facts that were gathered once. A check finds Blockers, which shut its gate, Warnings and Infos,
which do not, each with what to do. docs/preflight-groups.md lists them.
"""

from switchover.engine.gate import Gate
from switchover.groups.picture import Picture
from switchover.groups.preflight import brokers, clients, group, workloads

GATES: tuple[Gate[Picture], ...] = (
    *brokers.RIGHTS,
    *group.CHECKS,
    *workloads.CHECKS,
    *brokers.BROKERS,
    *brokers.SIZE,
    *clients.CHECKS,
    *group.STRATEGY,
)
