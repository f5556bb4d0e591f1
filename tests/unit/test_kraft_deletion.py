"""What a deletion means at every moment: back before the claim, on after it, and gone when there is nothing left to do."""

from dataclasses import replace
from typing import Any

import pytest

from switchover.answers.observed import Unknown
from switchover.api.kafka_migration import KafkaMigration
from switchover.api.kafka_migration import NodeMode as Mode
from switchover.api.status import Direction
from switchover.cluster.kind import check_deletion, is_before_the_claim, may_go, while_deleted
from switchover.cluster.picture import Picture
from switchover.cluster.plan import PLAN
from switchover.engine.intent import ABANDON
from unit.pictures import ACTIVE, PRE, migration, moment, spoil, with_fact
from unit.small_plan import BACKWARD, FORWARD, intent

NOT_CLAIMED = moment("CopyMetadata", (Mode.MIGRATION, Mode.MIGRATION, Mode.ZOOKEEPER), Mode.MIGRATION_CONTROLLER, (), PRE)
CLAIMED = moment("CopyMetadata", Mode.MIGRATION, Mode.MIGRATION_CONTROLLER, (), ACTIVE)


@pytest.mark.parametrize(("picture", "before"), [
    (moment("Preflight"), True),
    (moment("ProvisionControllers", Mode.ZOOKEEPER, Mode.MIGRATION_CONTROLLER, (), PRE), True),
    (moment("EnableMigration", (Mode.MIGRATION, Mode.ZOOKEEPER), Mode.MIGRATION_CONTROLLER, (), PRE), True),
    (NOT_CLAIMED, True),
    (CLAIMED, False),
    (spoil(NOT_CLAIMED, "zookeeper", controller=None), False),
    (with_fact(NOT_CLAIMED, "zookeeper", Unknown("no answer")), False),
    (moment("DualWrite", Mode.MIGRATION, Mode.MIGRATION_CONTROLLER, (), ACTIVE), False),
    (moment("MoveBrokers", (Mode.KRAFT, Mode.MIGRATION), Mode.MIGRATION_CONTROLLER, (), ACTIVE), False),
    (moment("Finalize", Mode.KRAFT, Mode.MIGRATION_CONTROLLER, (), ACTIVE), False),
], ids=lambda item: item if isinstance(item, bool) else item.position.step)
def test_the_claim_is_told_by_the_step_or_by_what_was_seen(picture, before):
    assert is_before_the_claim(picture) is before
    for paused in (False, True):
        wanted = while_deleted(intent(paused=paused), picture)
        assert (wanted.direction, wanted.paused) == ((BACKWARD, False) if before else (FORWARD, paused))


def test_a_way_back_is_not_turned_again_by_a_deletion():
    going_back = replace(CLAIMED, position=replace(CLAIMED.position, direction=BACKWARD))
    assert while_deleted(intent(FORWARD), going_back).direction is BACKWARD
    assert while_deleted(intent(BACKWARD, paused=True), going_back).paused      # after the claim a pause is the user's
    assert while_deleted(intent(BACKWARD), CLAIMED).direction is BACKWARD       # and so is a rollback


@pytest.mark.parametrize(("picture", "reason"), [
    (NOT_CLAIMED, "BeingDeleted"), (CLAIMED, "HeldUntilTheEnd"),
    (replace(CLAIMED, position=replace(CLAIMED.position, direction=BACKWARD)), "BeingDeleted"),
], ids=["before the claim", "after the claim", "on the way back"])
def test_it_says_why_it_is_still_there_and_how_to_let_it_go(picture: Picture, reason: str):
    verdict = check_deletion(picture)
    assert verdict.reason == reason
    assert "switchover abandon kmig/to-kraft --namespace kafka" in verdict.unblocks


def deleted(step: str, direction: Direction = FORWARD, complete: bool = False, **annotations: str) -> KafkaMigration:
    progress: dict[str, Any] = {"step": step, "direction": direction.value}
    if complete:
        progress["completeTime"] = "2026-11-21T20:00:00Z"
    own = migration().manifest()
    own["metadata"] |= {"deletionTimestamp": "2026-11-21T20:00:00Z", "annotations": annotations}
    return KafkaMigration.model_validate({**own, "status": {"progress": progress}})


def test_it_may_go_when_nothing_was_touched_when_it_ended_and_when_it_is_abandoned():
    may = {step.name for step in PLAN.steps if may_go(deleted(step.name))}
    assert may == {"Preflight", "Rehearse", "HandOver", "ReleaseZooKeeper"}
    assert may_go(deleted(""))
    for step in PLAN.steps:
        assert may_go(deleted(step.name, BACKWARD, complete=True))
        assert may_go(deleted(step.name, **{ABANDON: "true"}))
    assert not may_go(deleted("EnableMigration", BACKWARD))


