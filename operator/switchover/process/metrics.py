"""What the operator reports to Prometheus, about itself and about its migrations.

No label carries a name that a user chose: migrations go by their uid. One metric says which name that is.
"""

from collections import Counter as Sums
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from switchover.cluster import figures as kraft
from switchover.engine import figures
from switchover.engine.figures import Figure, shared
from switchover.groups import figures as groups
from switchover.groups.figures import LAG_METRICS
from switchover.kubernetes.ports import Migrations

METRICS = {**kraft.METRICS, **groups.METRICS, **LAG_METRICS, **figures.METRICS}
INFO = "switchover_migration_info"
FAILURES = ("fenced", "unreachable", "refused", "work", "defect", "watch")
OUTCOMES = ("sent", "failed")
_SECONDS = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)

_noticed: ContextVar[float | None] = ContextVar("noticed", default=None)


@dataclass(slots=True)
class _Latest:
    """The last figures of one migration, and how long its gates made it wait while this process was there."""

    uid: str
    figures: Sequence[Figure] = ()
    waits: Sums[str] = field(default_factory=Sums)


class MigrationFigures:
    """Those of all migrations of one kind in one namespace, by their names; those of one that is gone vanish with it."""

    def __init__(self) -> None:
        self._latest: dict[str, _Latest] = {}

    def update(self, name: str, uid: str, figures: Sequence[Figure], waits: Mapping[str, float]) -> None:
        """The figures after one pass; `waits` are the seconds that it adds to each gate."""
        if name not in self._latest or self._latest[name].uid != uid:
            self._latest[name] = _Latest(uid)
        known = self._latest[name]
        known.figures = tuple(map(shared, figures))
        known.waits.update(waits)                                # adds

    def gone(self, name: str) -> None:
        """The migration does not exist any more."""
        self._latest.pop(name, None)

    def names(self) -> Iterator[tuple[str, str]]:
        """The uid and the name of each migration."""
        for name, known in tuple(self._latest.items()):            # scraped by another thread
            yield known.uid, name

    def all(self) -> Iterator[tuple[str, Figure]]:
        """Each figure with the uid of its migration."""
        for known in tuple(self._latest.values()):                 # scraped by another thread
            for figure in known.figures:
                yield known.uid, figure
            for gate, spent in tuple(known.waits.items()):
                yield known.uid, Figure("switchover_gate_wait_seconds", (gate,), spent)


class _AllFigures(Collector):
    """The figures of every kind of migration in every namespace: (kind, namespace) -> those of its migrations."""

    def __init__(self) -> None:
        self.known: dict[tuple[str, str], MigrationFigures] = {}

    def collect(self) -> Iterable[GaugeMetricFamily | CounterMetricFamily]:
        """Every metric with the values of all migrations, as prometheus_client asks for them on a scrape."""
        info = GaugeMetricFamily(INFO, "1 for each migration: whose uid it is that the others carry",
                                 labels=("migration", "namespace", "kind", "name"))
        for (kind_of_resource, namespace), known in tuple(self.known.items()):
            for uid, name in known.names():
                info.add_metric((uid, namespace, kind_of_resource, name), 1)
        yield info
        families = {name: (CounterMetricFamily if metric.counter else GaugeMetricFamily)(
            name, metric.says, labels=("migration", *metric.labels)) for name, metric in METRICS.items()}
        for latest in tuple(self.known.values()):
            for uid, figure in latest.all():
                families[figure.metric].add_metric((uid, *figure.labels), figure.value)
        yield from families.values()


class Metrics:
    """The operator's metrics. `now` is a monotonic clock in seconds."""

    def __init__(self, registry: CollectorRegistry, now: Callable[[], float]) -> None:
        self.now = now
        self._figures = _AllFigures()
        registry.register(self._figures)
        self.pass_seconds = Histogram(
            "switchover_pass_seconds",
            "Time of one pass: read, observe, decide, record, act",
            buckets=_SECONDS,
            registry=registry,
        )
        self.decision_seconds = Histogram(
            "switchover_decision_seconds",
            "From noticing a change (a wake-up, or that a pass is due) to the decision on record",
            buckets=_SECONDS,
            registry=registry,
        )
        self.turn_seconds = Histogram(
            "switchover_turn_wait_seconds",
            "From the moment at which a pass is due until it begins; seconds mean an operator with too much to do",
            buckets=_SECONDS,
            registry=registry,
        )
        self.failures = Counter(
            "switchover_pass_failures", "Passes and watches that ended in an error", labelnames=("kind",), registry=registry
        )
        self._notifications = Counter(
            "switchover_notifications", "Messages to the webhook, by whether it took them", labelnames=("outcome",),
            registry=registry)
        self._leads = Gauge("switchover_leads", "1 for the instance that acts; 0 for one that stands by", registry=registry)
        self._waiting = Gauge("switchover_passes_waiting", "Passes that are due and wait for their turn", registry=registry)
        self._running = Gauge("switchover_passes_running", "Passes that go on at this moment", registry=registry)
        self._watch_age = Gauge(
            "switchover_watch_age_seconds",
            "Time since the API server's last event about the pods, workloads or budgets of which that is longest ago; "
            "beyond two minutes they are listed again",
            registry=registry)
        for kind in FAILURES:                                    # from 0 on: an increase from nothing is none for Prometheus
            self.failures.labels(kind)
        for outcome in OUTCOMES:
            self._notifications.labels(outcome)
        self.oldest_pass = Gauge(
            "switchover_oldest_pass_age_seconds",
            "Time since the end of the last pass of the resource of a kind that was served longest ago; one that the API "
            "server did not answer does not count",
            labelnames=("kind",), registry=registry,
        )

    def watch_leads(self, leads: Callable[[], bool]) -> None:
        """Whether this instance acts, from now on."""
        self._leads.set_function(leads)

    def watch_turns(self, waiting: Callable[[], float], running: Callable[[], float]) -> None:
        """How many passes wait and go on, from now on."""
        self._waiting.set_function(waiting)
        self._running.set_function(running)

    def watch_age(self, age: Callable[[], float]) -> None:
        """How old what the watches say is, in seconds, from now on; asked by another thread."""
        self._watch_age.set_function(age)

    def migrations(self, kind: str, namespace: str) -> MigrationFigures:
        """Where the figures of that kind of migration in that namespace go."""
        return self._figures.known.setdefault((kind, namespace), MigrationFigures())

    def notice(self, at: float) -> None:
        """The pass that starts in this context answers to something noticed at that time."""
        _noticed.set(at)

    def notified(self, taken: bool) -> None:
        """The webhook took a message, or it is lost."""
        self._notifications.labels(OUTCOMES[not taken]).inc()

    def recorded(self) -> None:
        """A decision is on record; only the first one of a pass counts."""
        if (noticed := _noticed.get()) is not None:
            self.decision_seconds.observe(self.now() - noticed)
            _noticed.set(None)


class MeasuredMigrations:
    """`kubernetes.ports.Migrations` that reports every record to the metrics."""

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
