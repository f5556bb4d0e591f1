"""The largest limits that the spec of a ConsumerGroupMigration may set: each still shuts its gate."""

from dataclasses import replace

from switchover.api.consumer_group_migration import ConsumerGroupMigrationGates
from switchover.api.status import Verdict as Outcome
from switchover.groups.gates.lag import thresholds
from switchover.lag.verdicts import Verdict as Found
from switchover.lag.watch import Watch
from switchover.lag.window import Offsets, Reading
from unit.group_gates import GATES, MOMENTS
from unit.group_pictures import mixed, samples
from unit.group_spoilers import FIRST, known, sampled, specced
from unit.limits import largest


def test_the_largest_limit_of_a_standstill_is_still_one():
    longest = largest("max_stall_seconds", ConsumerGroupMigrationGates)
    patient = specced(gates={"maxStallSeconds": longest})(mixed())
    watch = Watch(thresholds(patient))
    for ago in (*range(longest + 900, 600, -60), *range(600, -1, -5)):
        at = round(1000 * (patient.now - ago))
        watch.add(Reading({FIRST: Offsets(at, 90, 99, 0, 99)}))
    stands = sampled(*samples()[:-1], replace(samples()[-1], stood=watch.judge(at).stood))(patient)
    assert GATES["GoesOn"].check(stands).reason == "PartitionStalled"
    assert GATES["GoesOn"].check(patient).outcome is Outcome.PASS


def test_the_largest_age_of_a_record_is_one_that_the_window_shows():
    most = largest("max_time_lag_seconds", ConsumerGroupMigrationGates)
    judged_by = thresholds(specced(gates={"maxTimeLagSeconds": most})(mixed()))
    assert judged_by.max_time_lag == most * 1000
    for behind, verdict in ((most - 900, Found.OK), (most + 900, Found.BEHIND)):
        watch = Watch(judged_by)                              # a record a second, and each waits for as long
        for at in (*range(0, 2 * most, 60), *range(2 * most, 2 * most + 600, 5)):
            watch.add(Reading({FIRST: Offsets(at * 1000, most + at - behind, most + at, 0, most + at)}))
        assert watch.judge(at * 1000).judged.verdict.tolist() == [verdict]


def test_the_largest_load_of_a_coordinator_is_still_one():
    most = largest("max_consumers_per_coordinator", ConsumerGroupMigrationGates)
    full = specced(gates={"maxConsumersPerCoordinator": most})(
        known("coordinated", {1: most})(MOMENTS["CoordinatorCapacity"]()))
    assert GATES["CoordinatorCapacity"].check(full).reason == "CoordinatorFull"


LIMITS = {"max_time_lag_seconds", "max_stall_seconds", "max_consumers_per_coordinator"}
"""Each has a test above that its largest value shuts its gate still."""
LONGER = {"stable_samples", "step_patience_seconds", "lag_pass_seconds", "quiet_seconds"}
"""A larger one waits longer before a gate opens, or before it is overdue."""


def test_every_limit_of_a_groups_migration_is_known_by_what_a_large_one_does():
    numbers = {name for name, field in ConsumerGroupMigrationGates.model_fields.items()
               if any(hasattr(each, "le") for each in field.metadata)}
    assert numbers == LIMITS | LONGER
