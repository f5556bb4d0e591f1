"""A migration in which nothing moves costs little: counted in an hour of virtual time."""

from collections import Counter
from typing import Any

import pytest

from simulation.migration_world import MigrationWorld
from switchover.engine.pace import STANDING
from switchover.engine.reconcile import Reconciler

SETTLED, WATCHED, RESTED = 600.0, 1800.0, 150.0            # seconds
SETTLING = 3
"""Looks until a gate that counts passes has got them."""
AN_HOUR = 500
"""Requests to the API server in an hour; one that was Planned asked 24,700 when each pass read everything anew."""


def test_who_is_planned_is_looked_at_seldom(monkeypatch: pytest.MonkeyPatch) -> None:
    world = MigrationWorld(monkeypatch)
    world.want("Planned")
    asked: Counter[str] = Counter()
    begun, witnessed = world.timeline.now(), world.witness.asked

    def counting(method: str, path: str) -> None:
        if world.timeline.now() - begun > SETTLED:
            asked[f"{method} {path}"] += 1
        witnessed(method, path)

    monkeypatch.setattr(world.witness, "asked", counting)
    assert world.live(lambda: world.timeline.now() - begun > SETTLED + WATCHED, limit=SETTLED + WATCHED + 60, late=60.0)
    assert world.phase == "Planned"
    hourly = sum(asked.values()) * 3600 / WATCHED
    assert 0 < hourly <= AN_HOUR, "\n".join(f"{times} {what}" for what, times in asked.most_common(12))


def test_and_at_once_when_it_is_to_run(monkeypatch: pytest.MonkeyPatch) -> None:
    world = MigrationWorld(monkeypatch)
    world.want("Planned")
    begun = world.timeline.now()
    assert world.live(lambda: world.timeline.now() - begun > SETTLED, limit=SETTLED + 60, late=60.0)
    world.want("Running")
    begun = world.timeline.now()
    assert world.live(lambda: world.step not in ("", "Preflight"), limit=120, late=60.0)


def test_an_operator_that_begins_anew_writes_nothing_of_what_it_finds_as_it_is_on_record(
    monkeypatch: pytest.MonkeyPatch
) -> None:
    """A thousand such writes, and a thousand looks every three seconds, are what a restart cost."""
    world = MigrationWorld(monkeypatch)
    world.want("Planned")
    begun = world.timeline.now()
    assert world.live(lambda: world.timeline.now() - begun > SETTLED, limit=SETTLED + 60, late=60.0)
    begun, before, looks = world.timeline.now(), len(world.api.writes), 0
    reconcile = Reconciler.reconcile

    async def counting(*arguments: Any) -> float:
        nonlocal looks
        looks += 1
        return await reconcile(*arguments)

    monkeypatch.setattr(Reconciler, "reconcile", counting)
    assert world.live(lambda: world.timeline.now() - begun > RESTED, limit=RESTED + 60, late=60.0)
    written = [write.text for write in world.api.writes[before:] if write.text.startswith("PATCH kafkamigrations")]
    assert len(written) <= 1, f"a heartbeat at most: {written}"
    assert 1 <= looks <= SETTLING + RESTED / STANDING + 2
