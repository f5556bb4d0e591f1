"""Somebody writes the status: `kubectl edit --subresource=status`, a restore, a role with that right. It is no order."""

from typing import Any

from simulation.migration_world import HOW_FAR, NAME, MigrationWorld
from simulation.moments import before_finalize, quiet_for, reference, until_step, waits_for
from simulation.test_defects import events, rewritten, stalled
from switchover.api.kafka_migration import NodeMode as Mode
from switchover.kubernetes.names import CLAIM

GATES_OFF = {"groups": [], "dualWriteMaxLag": 1_000_000}


def conditions(world: MigrationWorld) -> dict[str, str]:
    return {each["type"]: each["status"] for each in world.status["conditions"]}


def spec(world: MigrationWorld, **changes: Any) -> None:
    world.api.edit("kafkamigrations", NAME, lambda found: found["spec"].update(changes))
    world.witness.wish()


def approval(world: MigrationWorld, **changes: Any) -> dict[str, Any]:
    return {"name": "Finalize", "planHash": world.status["planHash"], "approver": "alice", **changes}


def stands_contradicted(world: MigrationWorld, whole: bool, **kept: Any) -> None:
    """It says so, and neither Kafka nor anything else is touched; then the record is put right."""
    assert world.live(lambda: stalled(world).get("reason") == "RecordContradicted")
    writes, started = world.moves, dict(world.kafka.starts)
    quiet_for(world, 100)
    assert (world.moves, dict(world.kafka.starts)) == (writes, started)
    assert (conditions(world)["Succeeded"], conditions(world)["ZooKeeperRemovable"]) == ("False", "False")
    rewritten(world, **kept)
    world.goes_on(whole)
    assert conditions(world)["Succeeded"] == str(whole)


# --- approvals ----------------------------------------------------------------------------------------------------------


@HOW_FAR
def test_a_hash_written_by_hand_into_status_and_approval_lets_nothing_begin(world: MigrationWorld, whole: bool) -> None:
    before_finalize(world)
    world.api.edit("kafkamigrations", NAME, lambda found: found["status"].update(planHash="deadbeef"))
    spec(world, approvals=[approval(world, planHash="deadbeef", approver="mallory")])
    assert world.live(lambda: waits_for(world, "ApprovalVoid"))
    quiet_for(world, 60)
    assert world.status["planHash"] != "deadbeef", "computed anew"
    assert (world.step, world.status["rollback"]["lostAtStep"]) == ("Finalize", "")
    world.goes_on(whole)


def test_what_somebody_changes_after_the_approval_is_not_approved(world: MigrationWorld) -> None:
    """alice approves; bob takes the groups out of the gates, and the backups, in one edit with her approval in it."""
    before_finalize(world)
    spec(world, approvals=[approval(world)], gates=GATES_OFF, backups={"skipReason": "bob says so"})
    assert world.live(lambda: waits_for(world, "ApprovalVoid"))
    quiet_for(world, 60)
    assert (world.step, world.status["rollback"]["available"]) == ("Finalize", True)


@HOW_FAR
def test_finalize_that_is_opened_in_the_status_alone_waits_for_its_approval(world: MigrationWorld, whole: bool) -> None:
    before_finalize(world)
    rewritten(world, openTime=world.status["progress"]["stepStartTime"])
    assert world.live(lambda: "openTime" not in world.status["progress"])
    quiet_for(world, 60)
    assert waits_for(world, "AwaitingApproval")
    assert (world.step, world.status["rollback"]["available"]) == ("Finalize", True)
    assert any("waits again" in item["message"] for item in world.status["history"])
    world.goes_on(whole)
    assert not whole or world.end_state().kafka == reference()[0].kafka


# --- another object's record --------------------------------------------------------------------------------------------


@HOW_FAR
def test_an_object_restored_with_its_status_begins_anew_and_says_what_it_found(world: MigrationWorld, whole: bool) -> None:
    """Velero, or a dump applied with its status: an approval of the old object let Finalize begin."""
    before_finalize(world)
    given, uid, kept = approval(world), world.migration["metadata"]["uid"], world.status
    spec(world, approvals=[given])

    def restore(found: dict[str, Any]) -> None:
        found["metadata"]["uid"] = "uid-restored"
        for lease in world.api.of("leases"):
            lease["spec"]["holderIdentity"] = ""                     # it ended with the old object

    world.api.edit("kafkamigrations", NAME, restore)
    world.jury.memory.recorded = None
    assert world.live(lambda: any(item["reason"] == "RecordOfAnother" for item in world.status.get("history", ())))
    (told,) = [item for item in world.status["history"] if item["reason"] == "RecordOfAnother"]
    assert (told["from"], told["to"]) == ("Finalize", "Preflight")
    assert f"written for the object with uid {uid}, at Finalize (attempt 1)" in told["message"]
    assert events(world, "RecordOfAnother") == [told["message"]]
    moves = world.moves
    quiet_for(world, 60)
    assert (world.step, world.status["uid"], world.status.get("approvals", [])) == ("Preflight", "uid-restored", [])
    assert (world.status["planHash"], world.moves) == ("", moves)
    found = {(item["code"], item["subject"]) for item in world.status["findings"]}
    assert ("ClaimedByAnother", "StatefulSet kafka") in found, "what the earlier object has claimed"
    assert "Residue" in {code for code, _ in found}, "and what it has made"

    # As the runbook of ClaimedByAnother has it, where the object was lost in the middle.
    world.api.edit("kafkamigrations", NAME, lambda found: found.update(status={**kept, "uid": "uid-restored"}))
    world.jury.memory.recorded = None
    assert world.live(lambda: "is claimed by the migration with uid" in stalled(world).get("message", ""))
    world.api.edit("statefulsets", "kafka", lambda found: found["metadata"]["annotations"].update({CLAIM: "uid-restored"}))
    assert world.live(lambda: waits_for(world, "ApprovalVoid"))
    world.goes_on(whole)
    assert not whole or world.end_state().kafka == reference()[0].kafka


# --- a step on record ---------------------------------------------------------------------------------------------------


def test_no_way_back_on_record_stops_controllers_under_brokers_on_kraft(world: MigrationWorld) -> None:
    """All brokers on KRaft, and somebody writes direction Backward and step EnableMigration: an outage, it would be."""
    before_finalize(world)
    kept = dict(world.status["progress"])
    world.want("RolledBack")
    rewritten(world, step="EnableMigration", direction="Backward", openTime=kept["stepStartTime"])
    assert world.live(lambda: stalled(world).get("reason") == "RecordContradicted")
    assert "still runs on KRaft" in stalled(world)["message"]
    quiet_for(world, 100)
    controllers = {node.mode for name, node in world.kafka.nodes.items() if name.startswith("kafka-controller")}
    assert controllers == {Mode.MIGRATION_CONTROLLER}
    world.want("Running")
    rewritten(world, **{"openTime": None, **kept})
    assert world.live(lambda: waits_for(world, "AwaitingApproval"))


@HOW_FAR
def test_an_end_that_somebody_wrote_is_looked_at(world: MigrationWorld, whole: bool) -> None:
    """A finished record was never looked at again, and what else stood in the status stayed."""
    until_step(world, "MoveBrokers", 1)
    kept = dict(world.status["progress"])

    def ended(found: dict[str, Any]) -> None:
        for each in found["status"]["conditions"]:
            if each["type"] in ("Succeeded", "Ready", "ZooKeeperRemovable"):
                each["status"] = "True"

    rewritten(world, step="ReleaseZooKeeper", completeTime=kept["stepStartTime"])
    world.api.edit("kafkamigrations", NAME, ended)
    stands_contradicted(world, whole, **{"completeTime": None, **kept})
    assert not whole or world.end_state().kafka == reference()[0].kafka


@HOW_FAR
def test_a_record_that_is_cleared_in_the_middle_is_no_new_beginning(world: MigrationWorld, whole: bool) -> None:
    until_step(world, "MoveBrokers", 1)
    kept = dict(world.status)
    world.api.edit("kafkamigrations", NAME, lambda found: found.update(status={"observedGeneration": -1}))
    world.jury.memory.recorded = None
    assert world.live(lambda: stalled(world).get("reason") == "RecordContradicted")
    assert "claimed by this migration" in stalled(world)["message"]
    quiet_for(world, 60)
    world.api.edit("kafkamigrations", NAME, lambda found: found.update(status=kept))
    world.jury.memory.recorded = None
    world.goes_on(whole)
    assert not whole or world.end_state().kafka == reference()[0].kafka
