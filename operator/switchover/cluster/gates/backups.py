"""ZooKeeper and the metadata log are backed up before the point of no return, or a person said why not."""

from switchover.api.kafka_migration import KafkaMigrationStep as Step
from switchover.cluster.picture import Picture
from switchover.engine.gate import Gate, Verdict, passed, unknown, wait
from switchover.engine.windows import utc
from switchover.reasons.walk import BACKUPS_MISSING, NOT_OBSERVED

SOAK = Step.SOAK.value
CLOCKS_APART_SECONDS = 300.0
"""How far the clock of whoever took the backups may run ahead of ours."""
CURE = "take both backups with the commands of the runbook, then set spec.backups: {takenTime, location}, or {skipReason}"


def check_backups_taken(picture: Picture) -> Verdict:
    """A backup counts when it was taken after Soak began: from then on every broker runs on KRaft."""
    backups, since = picture.spec.backups, picture.entered.get(SOAK)
    if backups is not None and backups.skip_reason is not None:
        return passed(f"backups skipped: {backups.skip_reason}")
    if since is None:
        return unknown(NOT_OBSERVED, f"the status does not tell when {SOAK} began", subject=SOAK)
    if backups is None or backups.taken_time is None:
        return wait(BACKUPS_MISSING, "spec.backups does not confirm backups of ZooKeeper and the metadata log",
                    observed="none", subject="spec.backups", threshold=f"taken after {utc(since)}", unblocks=CURE)
    taken = backups.taken_time.timestamp()
    if taken > picture.now + CLOCKS_APART_SECONDS:
        return wait(BACKUPS_MISSING, "spec.backups.takenTime is in the future", subject="spec.backups",
                    observed=utc(taken), threshold=f"not after {utc(picture.now)}", unblocks=CURE)
    if taken <= since:
        return wait(BACKUPS_MISSING, "the backups are older than the state in which every broker runs on KRaft",
                    subject="spec.backups", observed=utc(taken), threshold=f"after {utc(since)}", unblocks=CURE)
    return passed(f"backups of {utc(taken)}" + (f" at {backups.location}" if backups.location else ""))


BACKUPS_TAKEN: Gate[Picture] = Gate("BackupsTaken", check_backups_taken)
