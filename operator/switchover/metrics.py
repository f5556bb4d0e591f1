"""What the operator tells Prometheus about itself. No label ever carries a name that a user chose."""

from collections.abc import Callable, Mapping
from contextvars import ContextVar
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from switchover.ports import Migrations

_SECONDS = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)

_noticed: ContextVar[float | None] = ContextVar("noticed", default=None)


class Metrics:
    """The operator's metrics. `now` is a monotonic clock in seconds."""

    def __init__(self, registry: CollectorRegistry, now: Callable[[], float]) -> None:
        self.now = now
        self.pass_seconds = Histogram(
            "switchover_pass_seconds",
            "Time of one pass: read, observe, decide, record, act",
            buckets=_SECONDS,
            registry=registry,
        )
        self.decision_seconds = Histogram(
            "switchover_decision_seconds",
            "From noticing a change (a wake-up, or the start of the pass) to the decision on record",
            buckets=_SECONDS,
            registry=registry,
        )
        self.failures = Counter(
            "switchover_pass_failures", "Passes that ended in an error", labelnames=("kind",), registry=registry
        )
        self.oldest_pass = Gauge(
            "switchover_oldest_pass_age_seconds",
            "Time since the end of the last pass of the resource that was served longest ago",
            registry=registry,
        )

    def notice(self, at: float) -> None:
        """The pass that starts in this context answers to something noticed at that time."""
        _noticed.set(at)

    def recorded(self) -> None:
        """A decision is on record; only the first one of a pass counts."""
        if (noticed := _noticed.get()) is not None:
            self.decision_seconds.observe(self.now() - noticed)
            _noticed.set(None)


class MeasuredMigrations:
    """`ports.Migrations` that reports every record to the metrics."""

    def __init__(self, migrations: Migrations, metrics: Metrics) -> None:
        self._migrations = migrations
        self._metrics = metrics

    async def get(self, name: str) -> Mapping[str, Any] | None:
        return await self._migrations.get(name)

    async def record(self, name: str, uid: str, resource_version: str, status: Mapping[str, Any]) -> str:
        written = await self._migrations.record(name, uid, resource_version, status)
        self._metrics.recorded()
        return written

    async def announce(self, name: str, uid: str, reason: str, message: str, *, warning: bool) -> None:
        await self._migrations.announce(name, uid, reason, message, warning=warning)
