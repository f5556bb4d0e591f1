"""A migration in which nothing moves costs little: counted in an hour of virtual time."""

from collections import Counter

import pytest

from simulation.migration_world import MigrationWorld

SETTLED, WATCHED = 600.0, 1800.0            # seconds
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
