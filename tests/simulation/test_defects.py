"""A record that is not believed, one that cannot be read, and an error that nobody expected. Told, and nothing moves."""

from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest

from fakes.kafka_ports import SimulatedNodes
from simulation.migration_world import HOW_FAR, NAME, MigrationWorld
from simulation.moments import before_finalize, quiet_for, reference, until_step
from switchover.answers import ask
from switchover.engine import reconcile
from switchover.engine.calls import News, TooMuchWork
from switchover.kafka.node import WholeView
from switchover.network.addresses import Address


def stalled(world: MigrationWorld) -> dict[str, Any]:
    return next((each for each in world.status.get("conditions", ()) if each["type"] == "Stalled"), {})


def events(world: MigrationWorld, reason: str) -> list[str]:
    return [found["message"] for (plural, _), found in world.api.objects.items()
            if plural == "events" and found["reason"] == reason and found["type"] == "Warning"]


@HOW_FAR
def test_a_defect_is_written_and_the_migration_goes_on_when_it_is_mended(
        world: MigrationWorld, monkeypatch: pytest.MonkeyPatch, whole: bool) -> None:
    until_step(world, "MoveBrokers", 1)
    world.defective = True
    with monkeypatch.context() as broken:
        broken.setattr(reconcile, "decide", lambda *_: {}["s3cret"])
        assert world.live(lambda: stalled(world).get("reason") == "Defect")
        told = stalled(world)
        assert (told["status"], world.status["phase"], world.status["waitingForSummary"]) == ("True", "Stalled", "Defect")
        assert told["message"].startswith("KeyError in engine/reconcile.py:")
        assert events(world, "Defect") == [told["message"]]
        assert "s3cret" not in str(world.api.objects["kafkamigrations", NAME])
        quiet_for(world, 200)
        assert events(world, "Defect") == [told["message"]], "told once"
        assert world.news.count(News.STALLED) == 1
        assert world.status["progress"]["step"] == "MoveBrokers", "what is on record stays"
    world.defective = False
    world.goes_on(whole)
    assert stalled(world)["status"] == "False"
    assert not whole or world.end_state() == reference()[0]


@HOW_FAR
def test_an_object_that_takes_too_much_work_stalls_alone_and_is_tried_seldom_whatever_is_done_to_it(
        world: MigrationWorld, monkeypatch: pytest.MonkeyPatch, whole: bool) -> None:
    until_step(world, "MoveBrokers", 1)
    tried: list[float] = []

    def too_much(*_: object) -> None:
        tried.append(world.timeline.now())
        raise TooMuchWork("Interrupted in engine/windows.py:34 (open_now)")

    with monkeypatch.context() as broken:
        broken.setattr(reconcile, "decide", too_much)
        assert world.live(lambda: stalled(world).get("reason") == "TooMuchWork")
        told = stalled(world)
        assert (told["status"], world.status["phase"]) == ("True", "Stalled")
        assert told["message"].startswith("Interrupted in engine/windows.py:34 (open_now): this object takes more")
        first = len(tried)

        def touched() -> bool:
            annotations = {"touched": str(world.timeline.now())}
            world.api.edit("kafkamigrations", NAME, lambda found: found["metadata"].update(annotations=annotations))
            return len(tried) >= first + 3

        assert world.live(touched, limit=600)
        assert min(later - one for one, later in pairwise(tried[first:])) >= 119
        assert events(world, "TooMuchWork") == [told["message"]], "told once"
    world.goes_on(whole)
    assert stalled(world)["status"] == "False"
    assert not whole or world.end_state() == reference()[0]


@pytest.mark.long
def test_a_watch_that_fails_on_the_way_begins_again_and_the_migration_goes_on(world: MigrationWorld) -> None:
    """With Kopf end all tasks that began since: passes in their middle, and the readings behind them."""
    broken: list[str] = []

    def breaking() -> bool:
        if world.step not in broken and not world.finished:
            broken.append(world.step)
            world.api.watch_errors.append(500)
        return world.finished

    assert world.live(world.approved_and(breaking))
    assert {"Preflight", "CopyMetadata", "DualWrite", "MoveBrokers", "Finalize"} <= set(broken)
    assert world.metrics[0].get_sample_value("switchover_pass_failures_total", {"kind": "watch"}) == len(broken)
    assert world.end_state() == reference()[0]


@HOW_FAR
def test_the_odd_answer_of_one_broker_is_unknown_for_that_broker_alone(
        world: MigrationWorld, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, whole: bool) -> None:
    """It ended every pass of the migration: nothing was told, and the claims of its rollback stood still."""
    until_step(world, "MoveBrokers", 1)
    ask_them = SimulatedNodes.metadata

    async def odd(nodes: SimulatedNodes, broker: Address) -> WholeView:
        if broker.host.startswith("kafka-1."):
            return {}["s3cret"]
        return await ask_them(nodes, broker)

    with monkeypatch.context() as broken:
        broken.setattr(SimulatedNodes, "metadata", odd)
        world.odd = True
        assert world.live(lambda: "a defect of this operator (KeyError in " in str(world.status.get("waitingFor")))
        assert "node 2 at kafka-1." in str(world.status["waitingFor"])
        assert "node 1 at" not in str(world.status["waitingFor"])
        quiet_for(world, 60)
        assert caplog.text.count("a defect of this operator: KeyError in ") == 1
        assert "s3cret" not in str(world.api.objects["kafkamigrations", NAME])
    ask.DEFECTS.clear()
    world.odd = False
    world.goes_on(whole)
    assert not whole or world.end_state() == reference()[0]


@pytest.mark.parametrize(("field", "value"), [
    ("history", "none"), pytest.param("approvals", 7, marks=pytest.mark.long),
    pytest.param("steps", [{"name": 5}], marks=pytest.mark.long)])
@HOW_FAR
def test_a_record_that_cannot_be_read_is_told_and_kept(
    world: MigrationWorld, field: str, value: object, whole: bool
) -> None:
    until_step(world, "MoveBrokers", 1)
    kept = world.status[field]

    def put(what: object) -> None:
        world.api.edit("kafkamigrations", NAME, lambda found: found["status"].update({field: what}))

    put(value)
    assert world.live(lambda: stalled(world).get("reason") == "StatusUnreadable")
    assert f"status.{field}" in stalled(world)["message"]
    assert events(world, "StatusUnreadable") == [stalled(world)["message"]]
    quiet_for(world, 200)
    assert world.status[field] == value
    put(kept)
    world.goes_on(whole)
    assert not whole or world.end_state() == reference()[0]


@pytest.mark.parametrize("reason", ["InvalidSpec", "StatusUnreadable", "Defect"])
def test_whoever_watches_prometheus_is_told_of_it_too_and_by_an_operator_that_has_just_begun(
        world: MigrationWorld, monkeypatch: pytest.MonkeyPatch, reason: str) -> None:
    """The metrics went on saying Running, and after a restart of the operator there was no series of it at all."""
    until_step(world, "MoveBrokers", 1)
    uid, spec, history = (world.migration["metadata"]["uid"], world.migration["spec"], world.status["history"])

    def put(brokers: Any, history: Any) -> None:
        def change(found: dict[str, Any]) -> None:
            found["spec"].update(brokers=brokers)
            found["status"].update(history=history)

        world.api.edit("kafkamigrations", NAME, change)

    def told() -> dict[str, list[tuple[str | None, ...]]]:
        families = {family.name: family.samples for registry in world.metrics for family in registry.collect()}
        labels = {"stalled": ("migration", "reason", "runbook"), "phase": ("migration", "phase"),
                  "step": ("migration", "step", "direction"), "migration_info": ("migration", "name")}
        return {name: [tuple(map(each.labels.get, of)) for each in families[f"switchover_{name}"] if each.value == 1]
                for name, of in labels.items()}

    wanted = {"stalled": [(uid, reason, f"runbooks/walk.md#{reason.lower()}")], "phase": [(uid, "Stalled")],
              "step": [(uid, "MoveBrokers", "Forward")], "migration_info": [(uid, NAME)]}
    begun = world.live(lambda: bool(told()["phase"]))
    assert begun
    assert told()["stalled"] == []
    with monkeypatch.context() as broken:
        if reason == "Defect":
            world.defective = True
            broken.setattr(reconcile, "decide", lambda *_: {}["s3cret"])
        put([] if reason == "InvalidSpec" else spec["brokers"], "none" if reason == "StatusUnreadable" else history)
        for _ in ("the operator that met it", "the next one"):
            assert world.live(lambda: told() == wanted, limit=60)
    world.defective = False
    put(spec["brokers"], history)
    assert world.live(lambda: told()["stalled"] == [] and told()["phase"] == [(uid, "Running")]), "and it is over"


def rewritten(world: MigrationWorld, **progress: object) -> None:
    """As `kubectl edit --subresource=status` does it, or a restore; the jury takes it for what is on record."""
    world.api.edit("kafkamigrations", NAME, lambda found: found["status"]["progress"].update(progress))
    recorded = world.jury.memory.recorded
    assert recorded is not None
    world.jury.memory.recorded = replace(recorded, status=world.status)


@pytest.mark.parametrize("claimed", [pytest.param("HandOver", marks=pytest.mark.long), "ReleaseZooKeeper"])
@HOW_FAR
def test_a_step_that_somebody_wrote_into_the_status_is_no_success(world: MigrationWorld, claimed: str, whole: bool) -> None:
    """Standing before Finalize; it said "every controller is finalized" while all of them migrated."""
    before_finalize(world)
    kept = dict(world.status["progress"])
    rewritten(world, step=claimed)
    assert world.live(lambda: stalled(world).get("reason") == "RecordContradicted")
    quiet_for(world, 100)
    conditions = {each["type"]: each["status"] for each in world.status["conditions"]}
    assert (conditions["Succeeded"], conditions["Ready"], conditions["ZooKeeperRemovable"]) == ("False", "False", "False")
    assert world.status["progress"]["step"] == claimed
    rewritten(world, **kept)
    world.goes_on(whole)
    assert next(each["status"] for each in world.status["conditions"] if each["type"] == "Succeeded") == str(whole)
