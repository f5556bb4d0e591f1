"""How long the Lease of what a migration changes is held, and whose it is (holder: UID/OPERATOR)."""

ACTING_SECONDS, LOOKING_SECONDS = 30, 900
"""How long it lasts once it was renewed; one of a migration that only looks (Planned, say) is written seldom."""


def shares(holder: str, current: str, lasts: object) -> bool:
    """Whether a Lease that is `current`'s keeps no operator of the same migration away: its holder only looks."""
    return lasts == LOOKING_SECONDS and current.partition("/")[0] == holder.partition("/")[0]
