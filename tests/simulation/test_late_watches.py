"""Watches that are far behind: a pass looks through them, and never acts on what they told."""

from typing import Any

import pytest

from fakes.api_server import Object
from simulation.migration_world import HOW_FAR, MigrationWorld

READ = ("pods", "statefulsets", "kafkamigrations")
MOVED = ("step", "direction", "batch", "openTime")


@HOW_FAR
def test_nothing_moves_on_what_a_watch_told(monkeypatch: pytest.MonkeyPatch, whole: bool) -> None:
    """The jury's rules hold, and all is read from the API server itself right before a pod is evicted or a step goes on."""
    world = MigrationWorld(monkeypatch)
    ages: dict[str, list[float]] = {"evicted": [], "moved": []}
    place: list[Any] = [None]
    witnessed = world.api.on_write

    def noting(method: str, plural: str, name: str, subresource: str, request: Any, found: Object) -> None:
        witnessed(method, plural, name, subresource, request, found)
        progress = ((found.get("status") or {}).get("progress") or {}) if subresource == "status" else {}
        there = [progress.get(each) for each in MOVED] if progress else place[0]
        what = "evicted" if subresource == "eviction" else "moved" if there != place[0] else ""
        place[0] = there
        if what:
            ages[what].extend(world.api.now() - world.api.actor.reads.get(kind, -float("inf")) for kind in READ)

    monkeypatch.setattr(world.api, "on_write", noting)
    until = world.approved_and(lambda: world.finished or (not whole and world.step == "DualWrite"))
    assert world.live(until, late=45.0, limit=6000)
    assert len(ages["evicted"]) >= 3 * len(READ), "three brokers were moved"
    assert len(ages["moved"]) > 20
    assert max(*ages["evicted"], *ages["moved"]) < 3.0
