"""The step on record against the metadata log: a status is a record, not an order, and anybody may have written it."""

from collections.abc import Mapping

from switchover.core.gate import Gate, Verdict, fail, passed, unknown
from switchover.core.kraft.facts import MigrationState
from switchover.core.kraft.picture import Picture
from switchover.core.observed import Known

PRE, MIGRATION, POST = MigrationState.PRE_MIGRATION, MigrationState.MIGRATION, MigrationState.POST_MIGRATION
LEFT_BEHIND: Mapping[str, tuple[MigrationState, ...]] = {
    "EnableMigration": (PRE,), "CopyMetadata": (PRE, MIGRATION), "DualWrite": (MIGRATION,), "MoveBrokers": (MIGRATION,),
    "Soak": (MIGRATION,), "Finalize": (MIGRATION,), "HandOver": (POST,), "ReleaseZooKeeper": (POST,)}
"""What the metadata log says in each step, by what the steps before it do; in Finalize POST_MIGRATION once it has begun."""


def check_record_holds(picture: Picture) -> Verdict:
    """After Finalize the log must say so; before it, a log that cannot be read is for the gates that read it."""
    step, log = picture.position.step, picture.facts.log
    wanted = LEFT_BEHIND[step]
    if not isinstance(log, Known):
        return unknown("MetadataLogUnknown", log.why, subject="metadata log") if wanted == (POST,) else passed("not read")
    found = log.value.migration_state
    if step == "Finalize" and picture.position.opened is not None:
        wanted = (MIGRATION, POST)
    if found is None or found in wanted:
        return passed("the metadata log says so too")
    return fail(
        "RecordContradicted", f"the status says {step} and the metadata log {found.name}: something else wrote that status",
        subject=step, observed=found.name, threshold=" or ".join(each.name for each in wanted),
        unblocks="put back the step that was on record (status.history has the moves)")


RECORD_HOLDS: Gate[Picture] = Gate("RecordHolds", check_record_holds)
