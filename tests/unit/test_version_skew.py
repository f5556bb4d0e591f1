"""Objects of the release before, as it wrote them (`last_release/`), and what the release after may write.

Understood, or told by name with the record left as it is; docs/api.md has the rule.
"""

import json
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from switchover.api.kafka_migration import NodeMode
from switchover.api.status import Direction
from switchover.cluster.kind import kafka_migrations
from switchover.engine.approvals import plan_hash
from switchover.engine.pace import Spent
from switchover.engine.plan import decide
from switchover.engine.policy import Policy
from switchover.groups.kind import consumer_group_migrations

HERE = Path(__file__).parent / "last_release"
KINDS: dict[str, Any] = {
    "kafkamigration": kafka_migrations(Policy(), "switchover:1"),
    "consumergroupmigration": consumer_group_migrations(Policy())}
STEPS = {"kafkamigration": "MoveBrokers", "consumergroupmigration": "Rollout"}
MODES = {"A": "ZooKeeper", "U": "ZooKeeperPinned", "R": "ZooKeeperRaised", "B": "Migration", "C": "KRaft", "K": "OwnKRaft",
         "P": "MigrationController", "F": "KRaftController"}
"""What the release before wrote for a mode."""
NOW = 1_790_000_500.0
each_kind = pytest.mark.parametrize("name", KINDS)


def written(name: str) -> dict[str, Any]:
    """In the middle of a batch, in a step in which pods are replaced."""
    found: dict[str, Any] = json.loads((HERE / f"{name}.json").read_text(encoding="utf-8"))
    return found


def put(raw: dict[str, Any], path: str, value: Any) -> dict[str, Any]:
    """The object with another value at a path of its status, such as nodes.0.assigned."""
    raw = deepcopy(raw)
    *above, last = path.split(".")
    at: Any = raw["status"]
    for part in above:
        at = at[int(part)] if part.isdigit() else at[part]
    at[last] = value
    return raw


def named(status: dict[str, Any]) -> dict[str, Any]:
    """The same status with its modes by their names."""
    nodes = [{**node, "assigned": MODES[node["assigned"]], "observed": MODES[node["observed"]]}
             for node in status.get("nodes", ())]
    paces = [{**pace, "name": MODES[pace["name"]]} for pace in status.get("restarts", ())]
    return {**status, **({"nodes": nodes} if nodes else {}), **({"restarts": paces} if paces else {})}


def folded(name: str, raw: dict[str, Any]) -> tuple[Any, Any, Any]:
    """The object as it is read, what is decided of it by an operator that sees nothing else, and what that one writes."""
    kind = KINDS[name]
    migration = kind.read(raw)
    picture = kind.picture(migration, "sim", NOW)
    decision = decide(kind.plan(picture), picture, kind.intent(migration), {}, NOW)
    return migration, decision, kind.next_status(migration, picture, decision, Spent(), kind.recorded_modes(migration))


# --- the release before -------------------------------------------------------------------------------------------------


@each_kind
def test_a_record_of_the_release_before_is_gone_on_from(name):
    raw = written(name)
    assert "uid" not in raw["status"], "it knew of none"
    migration, decision, status = folded(name, raw)
    at = KINDS[name].picture(migration, "sim", NOW).position
    told = raw["status"]["progress"]
    assert (at.step, at.direction, at.attempt) == (STEPS[name], Direction.FORWARD, raw["status"]["attempt"])
    assert at.batch is not None
    assert (list(at.batch.nodes), at.batch.index) == (told["batchNodes"], told["batch"])
    assert (decision.effects, decision.position) == ((), at)
    assert decision.stalled is None, "blind, and patient"
    assert status.uid == raw["metadata"]["uid"], "adopted: from here on it is this object's"
    mine, theirs = json.loads(json.dumps(status.manifest())), named(raw["status"])
    for part in ("nodes", "slots", "history", "steps", "attempt", "clusterId", "restarts"):
        assert mine.get(part) == theirs.get(part), part
    assert (raw["status"].get("evidence"), mine["evidence"]) == (None, []), "it recorded none: nothing is made up"


@pytest.mark.parametrize("letter", MODES)
def test_a_mode_that_was_a_letter_is_read_and_what_is_written_has_its_name(letter):
    raw = written("kafkamigration")
    pace, change = raw["status"]["restarts"][0], raw["status"]["plan"]["changes"][0]
    for path, value in (("nodes.1.assigned", letter), ("nodes.1.observed", letter),
                        ("restarts", [{**pace, "name": letter}]),
                        ("plan.changes", [{**change, "name": f"kafka/{letter}"}])):
        raw = put(raw, path, value)
    migration, _, status = folded("kafkamigration", raw)
    assert migration.status.nodes[1].assigned is migration.status.restarts[0].name is NodeMode(MODES[letter])
    mine = status.manifest()
    assert (mine["nodes"][1]["assigned"], mine["nodes"][1]["observed"]) == (MODES[letter], MODES[letter])
    assert (mine["restarts"][0]["name"], mine["plan"]["changes"][0]["name"]) == (MODES[letter], f"kafka/{MODES[letter]}")


@each_kind
def test_an_approval_that_the_release_before_took_is_told_as_void(name):
    raw = written(name)
    old = raw["status"]["planHash"]
    raw["spec"]["approvals"] = [{"name": "HandOver", "planHash": old, "approver": "alice"}]
    kind = KINDS[name]
    migration = kind.read(raw)
    intent, steps = kind.intent(migration), kind.plan(kind.picture(migration, "sim", NOW)).names
    now = plan_hash(raw["metadata"]["uid"], 1, steps, migration.spec)
    assert intent.approved == frozenset()
    assert f"given for plan {old}, this is plan {now}" in intent.void["HandOver"]
    assert folded(name, raw)[2].plan_hash == now != old


# --- the release after --------------------------------------------------------------------------------------------------

UNDERSTOOD: dict[str, list[tuple[str, Any]]] = {
    "kafkamigration": [("phase", "Rehearsing"), ("metadataState", "Rehearsed"), ("nodes.0.observed", "D"),
                       ("gates.0.verdict", "Perhaps"), ("waitingFor.0.verdict", "Perhaps"), ("findings.0.severity", "Hint")],
    "consumergroupmigration": [("phase", "Rehearsing"), ("slots.0.observed", "Shadow"), ("gates.0.verdict", "Perhaps")],
}
FIELDS: dict[str, list[tuple[str, Any]]] = {
    "kafkamigration": [("rehearsal", {"passed": True}), ("progress.lane", "left"), ("nodes.0.zone", "a")],
    "consumergroupmigration": [("rehearsal", {"passed": True}), ("progress.lane", "left"), ("slots.0.zone", "a")],
}
DECISIVE: dict[str, list[tuple[str, Any]]] = {
    "kafkamigration": [("nodes.0.assigned", "D"), ("progress.direction", "Sideways")],
    "consumergroupmigration": [("slots.0.assigned", "Shadow"), ("progress.direction", "Sideways")],
}


def cases(of: dict[str, list[tuple[str, Any]]]) -> list[tuple[str, str, Any]]:
    return [(name, path, value) for name, found in of.items() for path, value in found]


@pytest.mark.parametrize(("name", "path", "value"), [*cases(UNDERSTOOD), *cases(FIELDS)])
def test_what_only_tells_people_something_stops_nothing(name, path, value):
    _, decision, status = folded(name, put(written(name), path, value))
    _, as_before, known = folded(name, written(name))
    assert (decision.position, decision.effects) == (as_before.position, as_before.effects)
    assert (status.progress, status.conditions) == (known.progress, known.conditions)


@pytest.mark.parametrize(("name", "path", "value"), cases(DECISIVE))
def test_a_value_on_which_decisions_rest_is_read_by_nobody_who_does_not_know_it(name, path, value):
    """The operator tells it as StatusUnreadable, and keeps the record: `simulation/test_defects.py`."""
    with pytest.raises(ValidationError) as found:
        KINDS[name].read(put(written(name), path, value))
    (told,) = found.value.errors()
    assert told["loc"][0] == "status"
    assert ".".join(map(str, told["loc"][1:])) == path


@each_kind
def test_a_step_of_the_release_after_is_told_and_nothing_moves(name):
    for direction in ("Forward", "Backward"):
        raw = put(put(written(name), "progress.step", "StepOfTheReleaseAfter"), "progress.direction", direction)
        migration, decision, status = folded(name, raw)
        at = KINDS[name].picture(migration, "sim", NOW).position
        assert (decision.effects, decision.position) == ((), at)
        assert decision.stalled is not None
        assert decision.stalled.verdict.reason == "UnknownStep"
        assert (status.phase, status.rollback.available) == ("Stalled", False)
