"""The story is a part of the log: who turns that down pays nothing for it."""

import logging

import pytest

from simulation.migration_world import MigrationWorld
from switchover.cluster import kind
from switchover.cluster.picture import Picture


def test_where_nobody_reads_it_nothing_is_made_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def digest(picture: Picture) -> None:
        raise AssertionError(picture.name)

    monkeypatch.setattr(kind, "digest", digest)
    logging.getLogger("switchover").setLevel(logging.WARNING)
    world = MigrationWorld(monkeypatch)
    assert world.live(lambda: world.step == "ProvisionControllers")
    assert [line for _, line in world.story] == ["* operator 1 begins"]
