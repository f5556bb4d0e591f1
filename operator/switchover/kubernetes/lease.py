"""How long the Lease of what a migration changes is held, and whose it is (holder: UID/OPERATOR)."""

from collections.abc import Container, Mapping
from typing import Any

ACTING_SECONDS, LOOKING_SECONDS, LEFT_SECONDS = 30, 900, 60
"""How long it lasts once it was renewed. One of a migration that only looks (Planned, say) is written seldom; one whose
operator ends is left to the next one, and keeps other migrations away meanwhile."""


def holder_of(lease: Mapping[str, Any]) -> str:
    """As the API server has it; "" for nobody."""
    return str((lease.get("spec") or {}).get("holderIdentity") or "")


def shares(holder: str, current: str, lasts: object, before: Container[str] = ()) -> bool:
    """Whether a Lease that is `current`'s keeps no operator of the same migration away: its holder only looks, has left it,
    or is one of those that led `before` this one and do not act any more."""
    (uid, _, _), (own, _, operator) = holder.partition("/"), current.partition("/")
    return uid == own and (lasts in (LOOKING_SECONDS, LEFT_SECONDS) or operator in before)
