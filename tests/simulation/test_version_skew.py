"""An operator of this release goes on where one of the release before stood, or was put back meanwhile: at each step."""

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import samples
from fakes.api_server import copied
from simulation.migration_world import HOW_FAR, NAME, MigrationWorld
from simulation.moments import reference, until_step
from simulation.test_defects import stalled
from simulation.test_modes_by_letter import by_letter
from simulation.test_restored_records import reached, snapshots
from switchover.engine.record import stopped_status
from switchover.reasons.walk import STATUS_UNREADABLE

FIELDS = json.loads((Path(__file__).parents[1] / "unit/last_release/kafkamigration-fields.json").read_text(encoding="utf-8"))
"""The fields of the status in the CRD of the release before: the API server drops others where it has that one."""
OLD_HASH = "c86a4740773ab788"


def dropped(status: Any, fields: Mapping[str, Any] | None) -> Any:
    """A status without the fields that the release before does not know."""
    if isinstance(status, list):
        return [dropped(each, fields) for each in status]
    if fields is None or not isinstance(status, dict):
        return status
    return {name: dropped(value, fields[name]) for name, value in status.items() if name in fields}


def as_the_release_before_wrote_it(found: Any, now: float) -> None:
    by_letter(found)
    found["status"] = dropped({**found["status"], "planHash": OLD_HASH}, FIELDS)


def as_the_release_before_left_it(found: Any, now: float) -> None:
    """`helm rollback`, and this release again: it cannot read the modes, said so, and did nothing."""
    told = stopped_status(found, STATUS_UNREADABLE, "status.nodes.0.assigned: it is no mode", now)
    found["status"] = dropped(told, FIELDS)


SKEWS: dict[str, Callable[[Any, float], None]] = {
    "from the release before": as_the_release_before_wrote_it, "back from it": as_the_release_before_left_it}


def goes_on(skew: str, number: int) -> None:
    """One of this release goes on to the end, and restarts no more than it would have."""
    with pytest.MonkeyPatch.context() as patch:
        world = MigrationWorld(patch)
        reached(world, snapshots()[number].place)
        written, now = copied(dict(world.migration)), world.timeline.now()
        nodes = copied(world.status["nodes"])
        SKEWS[skew](written, now)
        assert written["status"] != world.status
        world.api.edit("kafkamigrations", NAME, lambda found: found.update(status=written["status"]))
        recorded = world.jury.memory.recorded
        if recorded is not None:                               # a mode by its letter is the same mode
            world.jury.memory.recorded = replace(recorded, status={**world.status, "nodes": nodes})
        assert world.run_to_the_end()
        assert stalled(world)["status"] == "False"
        assert world.end_state().kafka == reference()[0].kafka
        assert world.end_state().starts == reference()[0].starts


def all_skews() -> list[tuple[str, int]]:
    """At each place of a migration at which nodes are on record."""
    return [(skew, number) for skew in SKEWS for number, each in enumerate(snapshots())
            if each.status.get("nodes") and each.status.get("plan")]


def test_a_release_apart_at_some_steps(counted: Callable[[str], None]) -> None:
    samples.each(1, all_skews(), "skews", goes_on, counted)


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("skew", SKEWS)
def test_a_release_apart_at_each_step(skew: str, counted: Callable[[str], None]) -> None:
    found = [each for each in all_skews() if each[0] == skew]
    samples.each(len(found), found, "skews", goes_on, counted)


@HOW_FAR
def test_a_migration_that_the_release_before_has_begun_is_ended_by_this_one(world: MigrationWorld, whole: bool) -> None:
    """Its status has no uid, and a hash that was computed in another way; an approval of that is void, and told."""
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
    world.goes_on(whole)
    assert not whole or world.end_state().kafka == reference()[0].kafka
