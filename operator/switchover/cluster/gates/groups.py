"""The consumer groups that the user named stay healthy while brokers are replaced."""

from switchover.cluster.facts import GroupSample
from switchover.cluster.picture import Picture
from switchover.engine.gate import Gate, Verdict, passed, unknown, wait
from switchover.lag.standstill import stalled_seconds
from switchover.outside.observed import Known, Unknown
from switchover.reasons.lag import GROUP_HAS_NO_COMMITS, GROUP_LAG, GROUP_NEVER_COMMITTED, GROUP_STALLED, GROUP_UNKNOWN


def check_groups_healthy(picture: Picture) -> Verdict:
    """The named groups go on: commits advance where there is something to commit, and lag is under its threshold."""
    for group in picture.spec.gates.groups:
        samples = picture.facts.groups.get(group.name, Unknown(f"group {group.name} was not sampled"))
        if not isinstance(samples, Known):
            return unknown(GROUP_UNKNOWN, samples.why, subject=group.name)
        if verdict := _group_trouble(group.name, samples.value, group.max_lag, group.max_stall_seconds):
            return verdict
    return passed("the named groups are healthy")


def _group_trouble(name: str, samples: tuple[GroupSample, ...], max_lag: int, max_stall: float) -> Verdict | None:
    newest = samples[-1]
    if not newest.offsets:
        return wait(GROUP_HAS_NO_COMMITS, f"group {name} has no committed offset", subject=name,
                    unblocks="the group consumes and commits")
    for partition, (committed, end) in sorted(newest.offsets.items()):
        subject = f"{name} {partition}"
        if committed is None:
            if end == 0:
                continue
            return wait(GROUP_NEVER_COMMITTED, f"group {name} has never committed on {partition}, which has records",
                        subject=subject, observed="no commit", threshold="a commit",
                        unblocks="the group consumes and commits there too")
        if end - committed > max_lag:
            return wait(GROUP_LAG, f"group {name} is behind on {partition}", subject=subject,
                        observed=f"{end - committed} records", threshold=f"{max_lag} records",
                        unblocks="the group catches up")
        stalled = stalled_seconds(samples, partition)
        if stalled > max_stall:
            return wait(GROUP_STALLED, f"group {name} has not committed on {partition}", subject=subject,
                        observed=f"{stalled:.0f} s", threshold=f"{max_stall:.0f} s", unblocks="the group commits again")
    return None


GROUPS_HEALTHY: Gate[Picture] = Gate("GroupsHealthy", check_groups_healthy)
