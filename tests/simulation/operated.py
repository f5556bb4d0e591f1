"""A world in which operators live: Kopf and our handlers in virtual time, against a fake API server, before a jury."""

import asyncio
import logging
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import kopf
import pytest
from prometheus_client import CollectorRegistry

from fakes.api_server import NAMESPACE, FakeApi, Object
from fakes.incarnation import Fault, Incarnation, LateServer, SimulatedApiServer, serve_kopf
from invariants.jury import Jury
from invariants.memory import OF_A_CLUSTER, Course, Limits
from simulation.history import LogWitness, Witness
from simulation.virtual_time import Timeline, live
from switchover.answers import ask
from switchover.engine.calls import Call, News, Undelivered
from switchover.engine.kind import Kind
from switchover.engine.reconcile import Connect, Reconciler
from switchover.kubernetes.client.migrations import KubernetesMigrations
from switchover.kubernetes.client.workloads import KubernetesWorkloads
from switchover.process.handlers import Loops, LoopsByNamespace, Watch, register, serve
from switchover.process.metrics import MeasuredMigrations, Metrics
from switchover.process.turns import Turns
from tales import Tale

DOCS = "https://git.example.com/docs"


@dataclass(frozen=True)
class Of:
    """The migration whose world it is."""

    kind: str
    plural: str
    short: str
    name: str

    def __str__(self) -> str:
        return f"{self.short}/{self.name}"


class OperatedWorld(ABC):
    """The world of one migration; `live` runs an operator in it. Each kind says how time passes in its world, what a person
    approves there, and what its operator is."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, of: Of, seed: int, lag: float, limits: Limits,
                 protocol: str = "", course: Course = OF_A_CLUSTER) -> None:
        self.of = of
        self.timeline = Timeline()
        self.jury = Jury(limits, course=course)
        self.api = FakeApi(self.timeline.now, seed, lag, watched=frozenset({of.plural}))
        self.witness = Witness(self.api, self.jury, self._migration_if_any, of.plural, protocol)
        self.metrics: list[CollectorRegistry] = []
        self.lives = 0
        self.news: list[News] = []          # what a webhook would have been told, by every life
        self.story: Tale = []               # what every life has told, and what people did meanwhile
        self.defective = False              # passes are meant to end in an error that nobody expected
        self.odd = False                    # and answers of servers to meet one
        ask.DEFECTS.clear()
        self._seed = seed
        self._monkeypatch = monkeypatch

    # --- what a kind of world says of itself --------------------------------------------------------------------------

    @abstractmethod
    def advance(self) -> None:
        """Let the world catch up with the time."""

    @abstractmethod
    def approve_what_waits(self, only: tuple[str, ...] = ()) -> None:
        """What a person does who trusts the operator, with all steps or with some."""

    @property
    @abstractmethod
    def kind(self) -> Kind[Any, Any]:
        """What the operator knows of such migrations, with what the chart allows them."""

    @abstractmethod
    def connect(self, incarnation: Incarnation, server: SimulatedApiServer, workloads: KubernetesWorkloads,
                watched: KubernetesWorkloads) -> Connect[Any, Any]:
        """The operator's connections, with the simulated world at their other end."""

    @abstractmethod
    def end_state(self) -> Any:
        """What must not depend on what troubled the operator: a dataclass."""

    # --- what is there ------------------------------------------------------------------------------------------------

    @property
    def violations(self) -> list[str]:
        """The rules that were broken."""
        return self.jury.violations

    @property
    def moves(self) -> int:
        """How often something moved: an effect, or a new position on record."""
        return self.witness.moves

    def _migration_if_any(self) -> Object | None:
        return self.api.objects.get((self.of.plural, self.of.name))

    @property
    def migration(self) -> Object:
        return self.api.objects[self.of.plural, self.of.name]

    @property
    def status(self) -> dict[str, Any]:
        return self.migration.get("status") or {}

    @property
    def step(self) -> str:
        return str((self.status.get("progress") or {}).get("step", ""))

    @property
    def finished(self) -> bool:
        return bool((self.status.get("progress") or {}).get("completeTime"))

    @property
    def phase(self) -> str:
        return str(self.status.get("phase", ""))

    def want(self, state: str, **spec: Any) -> None:
        """What a person asks for: Running, Paused or RolledBack."""
        self.say(f"a person wants {', '.join([state, *spec])}")
        self.api.edit(self.of.plural, self.of.name, lambda found: found["spec"].update(desiredState=state, **spec))
        self.witness.wish()

    def say(self, what: str) -> None:
        """Tell in the story what nobody logs."""
        self.story.append((self.timeline.now(), f"* {what}"))

    # --- the operator -------------------------------------------------------------------------------------------------

    def live(self, until: Callable[[], bool], limit: float = 1500,
             kill_when: Callable[[], bool] = lambda: False, identities: tuple[str, ...] = ("operator",),
             stopped_before: Callable[[str, str], float] = lambda method, path: 0.0,
             loses: Callable[[int], bool] = lambda number: False, late: float = 0.0,
             fault: Callable[[str, str], Fault | None] = lambda verb, path: None) -> bool:
        """Run an operator process (or several at once); see `virtual_time.live`. Fails as soon as a rule is broken.

        `loses` and `fault` concern the first of several. What is watched is up to `late` seconds behind.
        """
        self.lives += 1
        self.witness.lives = self.lives
        seeds = [self._seed * 1000 + self.lives, *range(1, len(identities))]
        incarnations = [Incarnation(self.api, seed, self.advance, identity)
                        for seed, identity in zip(seeds, identities, strict=True)]
        incarnation = incarnations[0]
        serve_kopf(incarnation, self._monkeypatch)
        for each in incarnations:
            each.asked, each.stopped_before = self.witness.asked, stopped_before
        metrics = self.metrics = [CollectorRegistry() for _ in identities]
        incarnation.loses, incarnation.fault = loses, fault
        log = LogWitness(self.api, self.jury, self.story, str(self.of))
        self.say(f"operator {self.lives} begins" if len(identities) == 1 else f"operators begin: {', '.join(identities)}")
        logging.getLogger("switchover").addHandler(log)

        async def operator() -> None:
            await asyncio.gather(*(
                self.operate(each, identity, registry, late)
                for each, identity, registry in zip(incarnations, identities, metrics, strict=True)))

        def judged() -> bool:
            self.advance()
            assert not self.violations, self.violations
            return until()

        try:
            ended = live(self.timeline, self.api, incarnation, operator, judged, limit, kill_when)
        finally:
            logging.getLogger("switchover").removeHandler(log)
            defects = [each.get_sample_value("switchover_pass_failures_total", {"kind": "defect"}) for each in metrics]
            assert bool(ask.DEFECTS) == self.odd, "an answer met an error that nobody expected, or should have"
            assert any(defects) == self.defective, "a pass ended in an error that is none of the three, or should have"
        if not ended:
            self.say(f"operator {self.lives} is killed")
        self.advance()
        assert not self.violations, self.violations
        return ended

    async def operate(self, incarnation: Incarnation, identity: str, registry: CollectorRegistry, late: float) -> None:
        """The operator as `process.run` puts it together, for one kind in one namespace."""
        server = SimulatedApiServer(incarnation, NAMESPACE)
        workloads = KubernetesWorkloads(server, self.timeline)
        watched = KubernetesWorkloads(LateServer(incarnation, NAMESPACE, late), self.timeline) if late else workloads
        migrations = KubernetesMigrations(server, self.timeline, self.of.kind, self.of.plural)
        metrics = Metrics(registry, self.timeline.now)
        reconciler = Reconciler(
            self.kind, NAMESPACE, identity, MeasuredMigrations(migrations, metrics), workloads, watched,
            self.connect(incarnation, server, workloads, watched), self.timeline,
            metrics.migrations(self.of.kind, NAMESPACE), DOCS, self._notify)
        watch = Watch([NAMESPACE])
        kopf.on.login(registry=watch.registry)(login)
        loops = Loops(self.of.kind, NAMESPACE, reconciler.reconcile, reconciler.release, migrations.set_finalizer,
                      migrations.is_ending, reconciler.leave, reconciler.close, metrics, Turns())
        register(watch, ("switchover.dev", "v1alpha1", self.of.plural),
                 LoopsByNamespace(self.of.kind, lambda _: loops, metrics))
        await serve(watch, nothing_missing, metrics)

    def _notify(self, name: str, uid: str, call: Call, undelivered: Undelivered) -> None:
        if call.news is not None:
            self.news.append(call.news)

    def approved_and(self, until: Callable[[], bool], only: tuple[str, ...] = ()) -> Callable[[], bool]:
        """Approve whatever waits for it, until something is so."""

        def approving() -> bool:
            self.approve_what_waits(only)
            return until()

        return approving


async def nothing_missing(_: str) -> tuple[str, ...]:
    return ()


async def login(**_: Any) -> kopf.ConnectionInfo:
    return kopf.ConnectionInfo(server="http://sim")
