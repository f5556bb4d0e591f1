"""Why a migration waits: every reason that a gate can give. Their texts are docs/runbooks.

A gate passes the reason itself and not its name, so that none can be given that says nothing.
"""

from switchover.reasons import cluster, groups, preflight, walk, workloads
from switchover.reasons.reason import Reason

MODULES = (walk, preflight, workloads, cluster, groups)
REASONS: dict[str, Reason] = {
    each.name: each for module in MODULES for each in vars(module).values() if isinstance(each, Reason)}
"""Every reason by its name."""


def runbook_of(name: str) -> str:
    """Where a reason's text is, below docs/; the index for a name that is none, such as one of another release."""
    return REASONS[name].runbook if name in REASONS else "runbooks/README.md"
