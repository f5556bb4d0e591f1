"""How a check of Preflight reads the facts: what is not known raises `Unseen`, and no check passes that could not look."""

from collections.abc import Iterator, Mapping

from switchover.answers.observed import Known
from switchover.engine.gate import Unseen, unknown
from switchover.groups.picture import Picture
from switchover.kafka.group import BrokerGroups, Group
from switchover.kubernetes.members import MemberWorkload
from switchover.reasons.brokers import BROKERS_UNKNOWN
from switchover.reasons.lag import GROUP_UNKNOWN
from switchover.reasons.preflight_group import KUBERNETES_UNKNOWN
from switchover.reasons.rollback import BROKER_SILENT


def group(picture: Picture) -> Group:
    found = picture.facts.group
    if not isinstance(found, Known):
        raise Unseen(unknown(GROUP_UNKNOWN, found.why, subject=picture.spec.group))
    return found.value


def brokers(picture: Picture) -> Mapping[int, BrokerGroups]:
    """What every broker said of itself: each must have."""
    if not picture.facts.brokers:
        raise Unseen(unknown(BROKERS_UNKNOWN, "no broker was asked yet", subject="Kafka"))
    found: dict[int, BrokerGroups] = {}
    for broker_id, told in sorted(picture.facts.brokers.items()):
        if not isinstance(told, Known):
            raise Unseen(unknown(BROKER_SILENT, told.why, subject=f"broker {broker_id}"))
        found[broker_id] = told.value
    return found


def workloads(picture: Picture) -> Iterator[MemberWorkload]:
    """The managed workloads that exist."""
    if not isinstance(picture.facts.fleet, Known):
        raise Unseen(unknown(KUBERNETES_UNKNOWN, picture.facts.fleet.why, subject="Kubernetes"))
    for workload in picture.spec.workloads:
        source = picture.source(workload.name)
        if isinstance(source, Known):
            yield source.value
