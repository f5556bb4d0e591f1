"""Times of the clock, as people read them."""

from datetime import UTC, datetime


def utc(seconds: float) -> str:
    """Seconds since the epoch as 2026-11-26T14:35:00Z."""
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%SZ}"
