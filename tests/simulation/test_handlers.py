"""The loops of `process/handlers.py` on Kopf's own reactor, with a small stand-in for the reconciler."""

from collections.abc import Callable, Coroutine, Mapping
from typing import Any

import kopf
import pytest
from prometheus_client import CollectorRegistry

from fakes.api_server import NAMESPACE, FakeApi
from fakes.incarnation import Incarnation, SimulatedApiServer, serve_kopf
from simulation.operated import login, nothing_missing
from simulation.virtual_time import Timeline, live
from switchover.answers.errors import Fenced, Unreachable
from switchover.kubernetes.client.migrations import KubernetesMigrations
from switchover.process.handlers import FINALIZER, Loops, LoopsByNamespace, Watch, register, serve
from switchover.process.metrics import MeasuredMigrations, Metrics
from switchover.process.turns import Turns

RESOURCE = ("switchover.dev", "v1alpha1", "kafkamigrations")
STEPS = 5


class Counting:
    """Records one step a pass, then acts on it: the order that the reconciler keeps, too."""

    def __init__(self, migrations: MeasuredMigrations, acted: list[tuple[int, int]], holding: list[bool]) -> None:
        self.migrations = migrations
        self.acted = acted
        self.holding = holding
        self.passes: list[float] = []
        self.failures: list[Exception] = []
        self.seen: list[Mapping[str, Any] | None] = []
        self.left: list[str] = []
        self.closed = 0

    async def reconcile(self, name: str, seen: Mapping[str, Any] | None) -> float:
        self.seen.append(seen)
        found = await self.migrations.get(name)
        if found is None:
            return 60.0
        if self.failures:
            raise self.failures.pop()
        step = (found.get("status") or {}).get("step", 0)
        self.acted.append((step, found["spec"].get("generation", 0)))
        if step == STEPS or found["spec"].get("paused"):
            return 30.0
        meta = found["metadata"]
        await self.migrations.record(name, meta["uid"], meta["resourceVersion"], {"step": step + 1})
        return 10.0

    async def release(self, name: str) -> float | None:
        return 5.0 if self.holding[0] else None

    async def leave(self, name: str) -> None:
        self.left.append(name)

    async def close(self) -> None:
        self.closed += 1


class World:
    """One resource in a fake API, and the operator's lives."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, seed: int = 0, lag: float = 2.0) -> None:
        self.timeline = Timeline()
        self.api = FakeApi(self.timeline.now, seed, lag)
        self.api.add("switchover.dev/v1alpha1", "KafkaMigration", "kafkamigrations", "main", spec={})
        self.acted: list[tuple[int, int]] = []
        self.holding = [False]
        self.metrics = CollectorRegistry()
        self.seed = seed
        self.selector: dict[str, Any] = {}
        self._monkeypatch = monkeypatch

    @property
    def main(self) -> dict[str, Any] | None:
        return self.api.objects.get(("kafkamigrations", "main"))

    def step(self) -> int:
        return int(((self.main or {}).get("status") or {}).get("step", 0))

    def live(self, until: Callable[[], bool], limit: float = 600,
             kill_when: Callable[[], bool] = lambda: False, prepare: Callable[[Counting], None] = lambda _: None) -> bool:
        self.seed += 1
        incarnation = Incarnation(self.api, self.seed)
        serve_kopf(incarnation, self._monkeypatch)
        self.metrics = CollectorRegistry()

        def operator() -> Coroutine[Any, Any, None]:
            migrations = KubernetesMigrations(
                SimulatedApiServer(incarnation, NAMESPACE), self.timeline, "KafkaMigration", RESOURCE[2])
            metrics = Metrics(self.metrics, self.timeline.now)
            counting = Counting(MeasuredMigrations(migrations, metrics), self.acted, self.holding)
            prepare(counting)
            watch = Watch([NAMESPACE], selector=self.selector)
            kopf.on.login(registry=watch.registry)(login)
            loops = Loops("Probe", NAMESPACE, counting.reconcile, counting.release, migrations.set_finalizer,
                          migrations.is_ending, counting.leave, counting.close, metrics, Turns())
            register(watch, RESOURCE, LoopsByNamespace("Probe", lambda _: loops, metrics))
            return serve(watch, nothing_missing, metrics)

        return live(self.timeline, self.api, incarnation, operator, until, limit, kill_when)


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    return World(monkeypatch)


def test_each_step_is_recorded_once_although_the_watch_lags(world: World) -> None:
    world.live(lambda: world.step() == STEPS and len(world.acted) > STEPS)
    assert [step for step, _ in world.acted] == [*range(STEPS + 1)]
    assert [write.text for write in world.api.writes] == [
        "PATCH kafkamigrations main", *["PATCH kafkamigrations main status"] * STEPS]
    assert world.main is not None
    assert world.main["metadata"]["finalizers"] == [FINALIZER]


def test_the_first_pass_begins_with_the_object_that_has_its_finalizer_and_no_second_one_follows_from_that(
    world: World
) -> None:
    """Upon what the watch told before that nothing could be recorded: the whole pass would be in vain."""
    operators: list[Counting] = []
    world.api.edit("kafkamigrations", "main", lambda found: found["spec"].update(paused=True))
    world.live(lambda: len(world.acted) > 0 and _passed(world, 20), prepare=operators.append)
    (seen,) = operators[0].seen
    assert seen == world.main


def test_the_same_seed_gives_the_same_writes_at_the_same_times(monkeypatch: pytest.MonkeyPatch) -> None:
    runs = []
    for _ in range(2):
        world = World(monkeypatch, seed=7)
        world.live(lambda world=world: world.step() == STEPS)
        runs.append(world.api.writes)
    assert runs[0] == runs[1]


@pytest.mark.parametrize("write", range(1, STEPS + 2))
def test_a_kill_after_any_write_changes_nothing_in_the_end(world: World, write: int) -> None:
    assert not world.live(lambda: False, kill_when=lambda: len(world.api.writes) == write)
    assert len(world.api.writes) == write
    world.live(lambda: world.step() == STEPS)
    assert len(world.api.writes) == STEPS + 1


def test_a_change_of_the_spec_wakes_the_loop_and_a_status_does_not(world: World) -> None:
    world.api.edit("kafkamigrations", "main", lambda found: found["spec"].update(paused=True))
    world.live(lambda: len(world.acted) == 1)
    start = world.timeline.now()

    def resume(found: dict[str, Any]) -> None:
        found["spec"].update(paused=False)

    resumed = False

    def until() -> bool:
        nonlocal resumed
        if not resumed and len(world.acted) == 2 and world.timeline.now() > start + 5:
            resumed = True
            world.api.edit("kafkamigrations", "main", resume)
        return len(world.acted) == 4

    world.live(until)
    seconds = world.timeline.now() - start
    assert seconds < 30                                # paused passes are 30 s apart: only a wake-up comes earlier
    assert [step for step, _ in world.acted] == [0, 0, 0, 1]


def test_errors_are_retried_counted_by_kind_and_never_end_the_loop(world: World) -> None:
    failures = [Unreachable("gone"), Fenced("moved"), ZeroDivisionError(), Unreachable("gone again")]
    world.live(lambda: len(world.acted) > STEPS, prepare=lambda counting: counting.failures.extend(failures))
    counted = {kind: world.metrics.get_sample_value("switchover_pass_failures_total", {"kind": kind})
               for kind in ("unreachable", "fenced", "defect", "refused")}
    assert counted == {"unreachable": 2, "fenced": 1, "defect": 1, "refused": 0}
    assert world.metrics.get_sample_value("switchover_decision_seconds_count") == STEPS


def test_an_error_that_the_api_server_sends_into_the_watch_ends_nothing(world: World) -> None:
    world.api.watch_errors = [500, 504, 410]
    operators: list[Counting] = []
    world.live(lambda: world.step() == STEPS and not world.api.watch_errors, prepare=operators.append)
    failed = world.metrics.get_sample_value("switchover_pass_failures_total", {"kind": "watch"})
    assert failed == 2, "after 410 Kopf itself lists again"
    assert operators[0].closed >= 2, "with Kopf end the readings that go on behind the passes: they are opened anew"
    assert [write.text for write in world.api.writes] == [
        "PATCH kafkamigrations main", *["PATCH kafkamigrations main status"] * STEPS]


def test_a_deletion_is_held_until_it_is_released(world: World) -> None:
    world.live(lambda: world.step() == 2)
    world.holding[0] = True
    world.api.remove("kafkamigrations", "main")
    world.live(lambda: world.timeline.now() > 0 and len(world.api.changes) > 0 and _passed(world, 60))
    assert world.main is not None
    world.holding[0] = False
    world.live(lambda: world.main is None, limit=60)


def test_a_deletion_that_is_held_outlives_a_restart(world: World) -> None:
    """Kopf's own daemons do not: a new process would drop the finalizer before it asked anybody."""
    world.live(lambda: world.step() == 2)
    world.holding[0] = True
    world.api.remove("kafkamigrations", "main")
    for _ in range(3):
        world.live(lambda: _passed(world, 20))
        assert world.main is not None
        assert world.main["metadata"]["finalizers"] == [FINALIZER]


def test_a_deletion_by_that_of_the_namespace_is_not_held(world: World) -> None:
    world.live(lambda: world.step() == 2)
    world.holding[0] = True
    world.api.is_ending = True
    world.api.remove("kafkamigrations", "main")
    world.live(lambda: world.main is None, limit=60)


def test_an_object_made_anew_under_its_name_gets_a_loop_of_its_own(world: World) -> None:
    world.live(lambda: world.step() == STEPS)

    def until() -> bool:
        if world.main is None:
            world.api.add("switchover.dev/v1alpha1", "KafkaMigration", "kafkamigrations", "main", spec={})
        elif world.main["metadata"]["uid"] == first and "deletionTimestamp" not in world.main["metadata"]:
            world.api.remove("kafkamigrations", "main")
        return world.main is not None and world.main["metadata"]["uid"] != first and world.step() == STEPS

    assert world.main is not None
    first = world.main["metadata"]["uid"]
    world.live(until)


def _passed(world: World, seconds: float, marks: dict[int, float] = {}) -> bool:  # noqa: B006 - remembers its start
    start = marks.setdefault(id(world.timeline._loop), world.timeline.now())
    return world.timeline.now() > start + seconds


def test_an_object_that_another_operator_serves_is_left_and_one_that_comes_back_is_looked_at_again(world: World) -> None:
    """Its labels say which one serves it. What is left is not looked at."""
    operators: list[Counting] = []
    world.selector = {"matchExpressions": [{"key": "shard", "operator": "NotIn", "values": ["b"]}]}
    begun, looks = world.timeline.now(), {}
    labels = {100: "b", 300: "a", 400: ""}

    def labelled() -> bool:
        for at in [each for each in labels if world.timeline.now() - begun >= each]:
            shard, looks[at] = labels.pop(at), len(world.acted)
            world.api.edit("kafkamigrations", "main", lambda found: found["metadata"].update(labels={"shard": shard}))  # noqa: B023
        return not labels

    assert world.live(labelled, prepare=operators.append)
    assert operators[0].left == ["main"]
    assert looks[100] > STEPS
    assert looks[300] - looks[100] <= 1, "the one that went on meanwhile"
    assert looks[400] - looks[300] >= 3
