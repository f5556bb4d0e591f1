"""What stands in the way of a group for which nobody has written a migration yet: those checks of Preflight that need no
workload, as if all of its members were to go online to the other protocol.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Literal

from switchover.answers.observed import Known
from switchover.api.consumer_group_migration import (
    ConsumerGroupMigrationSpec,
    ContainerChange,
    ProtocolMigration,
    Workload,
)
from switchover.api.meta import KafkaConnection
from switchover.engine.approvals import PREFLIGHT
from switchover.engine.gate import Verdict, complete, fail
from switchover.engine.position import Position
from switchover.groups.gates.convergence import check_offsets_replicated
from switchover.groups.gates.protocol import to_consumer
from switchover.groups.picture import Facts, Picture
from switchover.groups.preflight.brokers import (
    FIRST,
    find_old_brokers,
    find_policy,
    find_too_large_records,
    find_too_many_members,
    find_unclear_release,
)
from switchover.groups.preflight.group import find_custom_assignments, find_lost_co_partitioning, find_wrong_group
from switchover.groups.reading import brokers
from switchover.kafka.group import BrokerGroups
from switchover.reasons.workloads import PROTOCOL_REFUSED

Goal = Literal["Consumer", "Classic"]
Find = Callable[[Picture], Iterable[Verdict]]

SERVED = "group.coordinator.rebalance.protocols"
"""A broker's setting, which has all protocols by default (Kafka 4.0)."""


def of_brokers(facts: Facts, to: Goal, now: float) -> tuple[Verdict, ...]:
    """What stands in the way of every group, by `facts.brokers` and `facts.offsets_topic`; what is unknown as well."""
    return _found((find_old_brokers, find_unserved, find_policy, find_unclear_release, _find_short_replicas), "any", facts,
                  to, now)


def of_group(name: str, facts: Facts, to: Goal, now: float) -> tuple[Verdict, ...]:
    """What stands in the way of this one, by the same, `facts.group` and `facts.partitions`."""
    more = (find_custom_assignments, find_lost_co_partitioning, find_too_many_members, find_too_large_records)
    return _found((find_wrong_group, *(more if isinstance(facts.group, Known) else ())), name, facts, to, now)


def find_unserved(picture: Picture) -> Iterator[Verdict]:
    """By its setting. What a coordinator answers to a heartbeat says more, and is a question for each group."""
    if not to_consumer(picture):
        return
    for broker_id, told in brokers(picture).items():
        if told.release >= FIRST and (served := _served(told)) and "consumer" not in served:   # older: a finding of its own
            yield fail(PROTOCOL_REFUSED, f"broker {broker_id} does not serve the consumer protocol",
                       subject=f"broker {broker_id}", observed=", ".join(served), threshold="consumer",
                       unblocks=f"add consumer to the brokers' {SERVED}")


def _served(told: BrokerGroups) -> tuple[str, ...]:
    return tuple(each.strip().lower() for each in told.settings.get(SERVED, "").split(",") if each.strip())


def _find_short_replicas(picture: Picture) -> Iterator[Verdict]:
    yield check_offsets_replicated(picture)


def _found(finds: Iterable[Find], name: str, facts: Facts, to: Goal, now: float) -> tuple[Verdict, ...]:
    picture = Picture("", "", "", _spec(name, to), Position(step=PREFLIGHT, opened=now), facts, now)
    found = dict.fromkeys(each for find in finds for each in complete(find, picture) if each.reason != "Passed")
    return tuple(found)


def _spec(group: str, to: Goal) -> ConsumerGroupMigrationSpec:
    """The shortest one; nobody looks at its workload. A group may have a name that no spec may have: it is not checked."""
    nobody = Workload(name="any", container="any", template=ContainerChange())
    spec = ConsumerGroupMigrationSpec(group="any", kafka=KafkaConnection(bootstrap_servers="any:9092"), workloads=(nobody,),
                                      protocol=ProtocolMigration(to=to))
    return spec.model_copy(update={"group": group})
