"""For all simulations: their world; Kopf asks for a user's name, and its own log of every event is not wanted."""

import logging

import pytest

from named_facts import facts_are_named
from simulation.migration_world import MigrationWorld

__all__ = ["facts_are_named"]


@pytest.fixture(autouse=True)
def quiet_kopf(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("USER", "switchover")
    for name in ("kopf", "kopf.objects", "kopf.activities"):
        logging.getLogger(name).setLevel(logging.WARNING)
    logging.getLogger("switchover").setLevel(logging.INFO)      # the jury reads it
    logging.getLogger("switchover").propagate = False


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> MigrationWorld:
    """A cluster of the demo's and its KafkaMigration, untouched."""
    return MigrationWorld(monkeypatch)
