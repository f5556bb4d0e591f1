"""What `audit` may be told."""

from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, model_validator

from switchover.api.schema import Model


def _milliseconds(value: Any) -> Any:
    """A time as RFC 3339 text (or as YAML makes of it) in ms since the epoch; ValueError without a zone."""
    if isinstance(value, str) and not value.isdecimal():
        value = datetime.fromisoformat(value)
    if isinstance(value, datetime):
        if value.tzinfo is None:
            raise ValueError("a time needs its zone, for example 2026-11-22T10:00:00Z")
        return int(value.timestamp() * 1000)
    return value


Time = Annotated[int, Field(ge=0), BeforeValidator(_milliseconds)]
"""Ms since the epoch, given as such or as RFC 3339."""


class AuditedGroup(Model, extra="forbid"):
    """One group."""

    name: Annotated[str, Field(min_length=1)]
    expected: Literal["Drained"] | None = None
    """`Drained`: at `until` it must have passed all that was produced to the topics that it commits."""


class AuditSettings(Model, extra="forbid"):
    """Settings of `audit`."""

    groups: Annotated[tuple[AuditedGroup, ...], Field(min_length=1)]
    since: Time
    until: Time | None = None
    """None: the moment at which the job starts."""
    guard_band_ms: Annotated[int, Field(ge=0, le=3_600_000)] = 5000
    """By how much the clocks of ZooKeeper and of Kafka may differ: what is closer together than this has no known order."""
    capture: bool = True
    """First capture, so that the range is covered up to now. False where one captures all the time beside it."""
    wait_seconds: Annotated[int, Field(ge=0, le=86_400)] = 600
    """Without `capture`: how long to wait for a capture that began at or after `until`."""
    produced: Path | None = None
    """Directory of `*.jsonl`, the producers' own log: {"topic", "partition", "first", "last"} for each range of offsets
    that was acknowledged, both inside."""
    topics: tuple[str, ...] = ()
    """Only these; none: all that the groups commit or own."""

    @model_validator(mode="after")
    def _names_once(self) -> "AuditSettings":
        names = [group.name for group in self.groups]
        if len(set(names)) < len(names):
            raise ValueError("a group is named twice")
        if self.until is not None and self.until <= self.since:
            raise ValueError("until must be later than since")
        return self
