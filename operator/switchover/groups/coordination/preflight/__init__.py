"""What must hold before the coordination of a group is moved (docs/facts/coordination.md); docs/preflight-groups.md
lists it."""

from switchover.engine.gate import Gate
from switchover.groups.coordination.capacity import CAPACITY
from switchover.groups.coordination.preflight import changes, registrations, stores
from switchover.groups.gates.convergence import OFFSETS_REPLICATED, ONE_COORDINATOR
from switchover.groups.picture import Picture
from switchover.groups.preflight import brokers, workloads

GATES: tuple[Gate[Picture], ...] = (
    *brokers.RIGHTS,
    *registrations.CHECKS,
    *stores.CHECKS,
    *workloads.CHECKS,
    *changes.CHECKS,
    ONE_COORDINATOR,
    CAPACITY,
    OFFSETS_REPLICATED,
)
