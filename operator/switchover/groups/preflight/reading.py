"""How a check of Preflight reads the facts: what is not known raises `Unseen`, and no check passes that could not look."""

from collections.abc import Iterator, Mapping

from switchover.answers.observed import Known
from switchover.engine.gate import Unseen, seen, unknown
from switchover.groups.picture import Picture
from switchover.kafka.group import BrokerGroups, Group
from switchover.kubernetes.members import MemberWorkload
from switchover.reasons.brokers import BROKERS_UNKNOWN
from switchover.reasons.lag import GROUP_UNKNOWN
from switchover.reasons.preflight_group import KUBERNETES_UNKNOWN
from switchover.reasons.rollback import BROKER_SILENT


def group(picture: Picture) -> Group:
    return seen(picture.facts.group, GROUP_UNKNOWN, picture.spec.group)


def brokers(picture: Picture) -> Mapping[int, BrokerGroups]:
    """What every broker said of itself: each must have."""
    if not picture.facts.brokers:
        raise Unseen(unknown(BROKERS_UNKNOWN, "no broker was asked yet", subject="Kafka"))
    return {broker_id: seen(told, BROKER_SILENT, f"broker {broker_id}")
            for broker_id, told in sorted(picture.facts.brokers.items())}


def workloads(picture: Picture) -> Iterator[MemberWorkload]:
    """The managed workloads that exist."""
    seen(picture.facts.fleet, KUBERNETES_UNKNOWN, "Kubernetes")
    for workload in picture.spec.workloads:
        source = picture.source(workload.name)
        if isinstance(source, Known):
            yield source.value
