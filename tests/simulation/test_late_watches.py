"""Watches that are far behind: a pass looks through them, and never acts on what they told."""

import pytest

from fakes.incarnation import Incarnation
from simulation.migration_world import HOW_FAR, MigrationWorld

READ = ("pods", "statefulsets", "kafkamigrations")


@HOW_FAR
def test_nothing_is_done_on_what_a_watch_told(monkeypatch: pytest.MonkeyPatch, whole: bool) -> None:
    """The jury's rules hold, and pods are read from the API server itself right before one of them is evicted."""
    world = MigrationWorld(monkeypatch)
    ages: list[float] = []
    before = Incarnation.before

    async def noting(self: Incarnation, method: str, path: str) -> None:
        if path.endswith("/eviction"):
            ages.extend(self.api.now() - self.reads.get(kind, -float("inf")) for kind in READ)
        await before(self, method, path)

    monkeypatch.setattr(Incarnation, "before", noting)
    until = world.approved_and(lambda: world.finished or (not whole and world.step == "DualWrite"))
    assert world.live(until, late=45.0, limit=6000)
    assert len(ages) >= 9, "three brokers were moved"
    assert max(ages) < 15.0
