"""An operator of this release goes on where one of the release before stood."""

import pytest

from simulation.migration_world import NAME, MigrationWorld
from simulation.moments import reference, until_step


def test_a_migration_that_the_release_before_has_begun_is_ended_by_this_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its status has no uid, and a hash that was computed in another way; an approval of that is void, and told."""
    world = MigrationWorld(monkeypatch)
    until_step(world, "MoveBrokers", 1)
    old = "c86a4740773ab788"

    def as_before(found: dict) -> None:                                                        # type: ignore[type-arg]
        found["status"] = {key: value for key, value in found["status"].items() if key != "uid"} | {"planHash": old}
        found["spec"]["approvals"] = [{"name": "Finalize", "planHash": old, "approver": "alice"}]

    world.api.edit("kafkamigrations", NAME, as_before)
    world.witness.wish()
    world.jury.memory.recorded = None
    assert world.live(lambda: any(item["reason"] == "ApprovalVoid" for item in world.status.get("waitingFor", ())))
    assert (world.step, world.status["uid"]) == ("Finalize", world.migration["metadata"]["uid"])
    assert world.run_to_the_end()
    assert world.end_state().kafka == reference()[0].kafka
