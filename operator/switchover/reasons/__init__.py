"""Why a migration waits: every reason that a gate can give, in a module for each subject. Their texts are docs/runbooks.

A gate passes the reason itself and not its name, so that none can be given that says nothing.
"""

from switchover.reasons import (
    brokers,
    controllers,
    coordination,
    dual_write,
    ending,
    lag,
    members,
    preflight_cluster,
    preflight_group,
    rehearsal,
    rollback,
    walk,
    workloads,
)
from switchover.reasons.reason import Reason

MODULES = (walk, preflight_cluster, rehearsal, workloads, controllers, brokers, dual_write, rollback, ending,
           preflight_group, members, lag, coordination)
REASONS: dict[str, Reason] = {
    each.name: each for module in MODULES for each in vars(module).values() if isinstance(each, Reason)}
"""Every reason by its name."""


def runbook_of(name: str) -> str:
    """Where a reason's text is, below docs/; the index for a name that is none, such as one of another release."""
    return REASONS[name].runbook if name in REASONS else "runbooks/README.md"
