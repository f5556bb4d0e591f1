"""Which step on record is believed, by what the metadata log says."""

import pytest

from switchover.api.status import Verdict as Outcome
from switchover.core.kraft.facts import MigrationState
from switchover.core.kraft.gates.on_record import LEFT_BEHIND, check_record_holds
from switchover.core.kraft.plan import PLAN
from switchover.core.observed import Unknown
from unit.pictures import NOW, moment, spoil, with_fact

PRE, ACTIVE, POST = MigrationState.PRE_MIGRATION, MigrationState.MIGRATION, MigrationState.POST_MIGRATION

NAMES = {PRE: "PRE", ACTIVE: "MIGRATION", POST: "POST"}


def seen(step, state, opened):
    return check_record_holds(spoil(moment(step, "CCC", "PPP", (), ACTIVE, opened=opened), "log", migration_state=state))


BELIEVED = {
    "EnableMigration": {PRE}, "CopyMetadata": {PRE, ACTIVE}, "DualWrite": {ACTIVE}, "MoveBrokers": {ACTIVE},
    "Soak": {ACTIVE}, "Finalize": {ACTIVE}, "HandOver": {POST}, "ReleaseZooKeeper": {POST}}


@pytest.mark.parametrize("state", NAMES, ids=NAMES.get)
@pytest.mark.parametrize("step", BELIEVED)
def test_a_step_is_believed_only_in_a_log_that_the_steps_before_it_leave(step, state):
    found = seen(step, state, None)
    assert found.outcome is (Outcome.PASS if state in BELIEVED[step] else Outcome.FAIL)
    assert found.reason == ("Passed" if state in BELIEVED[step] else "RecordContradicted")


@pytest.mark.parametrize(("state", "outcome"), [(PRE, Outcome.FAIL), (ACTIVE, Outcome.PASS), (POST, Outcome.PASS)])
def test_while_it_finalizes_the_log_changes(state, outcome):
    assert seen("Finalize", state, NOW - 5).outcome is outcome


@pytest.mark.parametrize("step", BELIEVED)
def test_after_finalize_a_log_that_cannot_be_read_proves_nothing(step):
    picture = moment(step, "CCC", "PPP", (), ACTIVE)
    found = check_record_holds(with_fact(picture, "log", Unknown("no controller answers")))
    assert found.outcome is (Outcome.UNKNOWN if BELIEVED[step] == {POST} else Outcome.PASS)


def test_every_step_from_the_claim_on_rests_on_it():
    assert [step.name for step in PLAN.steps if step.rests_on] == list(LEFT_BEHIND)
