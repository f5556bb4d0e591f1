"""Brokers leave ZooKeeper only when no consumer group needs it: each that moves vanishes from `/brokers/ids`."""

from switchover.cluster.facts import Need
from switchover.cluster.picture import Picture
from switchover.cluster.preflight.groups import described, remedy
from switchover.cluster.reading import groups_in_zookeeper
from switchover.engine.gate import Gate, Verdict, passed, several, wait
from switchover.reasons.groups import GROUP_ON_ZOOKEEPER

CURES_TOLD = 3


def check_no_zookeeper_groups(picture: Picture) -> Verdict:
    """No group below `/consumers` has a member, one whose partitions Kafka assigns included."""
    groups = groups_in_zookeeper(picture)
    if not groups:
        return passed("ZooKeeper coordinates no consumer group")
    found = sorted(groups.items())
    meaning = ("MoveBrokers has begun: its members find no broker that is on KRaft, and no further batch starts"
               if picture.position.opened is not None else "its members would find no broker that is on KRaft")
    more = f" and {len(found) - 1} more" if len(found) > 1 else ""
    return wait(GROUP_ON_ZOOKEEPER, f"{described(*found[0])}{more}; {meaning}", subject=several(name for name, _ in found),
                observed=f"members: {several(f'{name} {len(group.members)}' for name, group in found)}", threshold="none",
                unblocks=several((remedy(picture, name) for name, _ in found), CURES_TOLD))


NO_ZOOKEEPER_GROUPS: Gate[Picture] = Gate(
    "NoZooKeeperGroups", check_no_zookeeper_groups, needs=(Need.GROUPS_IN_ZOOKEEPER,))
