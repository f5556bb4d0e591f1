"""How a check of Preflight reads the facts: what is not known raises `Unseen`, and no check passes that could not look."""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple, TypeVar

from switchover.answers.observed import Observed, Unknown
from switchover.api.kafka_migration import BrokerSet
from switchover.cluster.door.layout import ContainerMissing, container_of
from switchover.cluster.facts import KubernetesState
from switchover.cluster.picture import Picture
from switchover.engine.gate import Unseen, seen, unknown
from switchover.kafka.node import BrokerExamination
from switchover.kubernetes.workloads import Workload
from switchover.reasons.brokers import ZOOKEEPER_UNKNOWN
from switchover.reasons.preflight_cluster import BROKERS_NOT_IDENTIFIED
from switchover.reasons.preflight_group import KUBERNETES_UNKNOWN
from switchover.reasons.rollback import BROKER_SILENT
from switchover.reasons.walk import NOT_OBSERVED
from switchover.zookeeper.nodes import ZooKeeperState, ZooKeeperTopics

T = TypeVar("T")


def kubernetes(picture: Picture) -> KubernetesState:
    return seen(picture.facts.kubernetes, KUBERNETES_UNKNOWN, "Kubernetes")


def zookeeper(picture: Picture) -> ZooKeeperState:
    return seen(picture.facts.zookeeper, ZOOKEEPER_UNKNOWN, "ZooKeeper")


def topics(picture: Picture) -> ZooKeeperTopics:
    return seen(picture.facts.zookeeper_topics, ZOOKEEPER_UNKNOWN, "ZooKeeper")


def pods(picture: Picture) -> Mapping[str, int]:
    """Pod name -> broker id."""
    return seen(picture.broker_pods(), BROKERS_NOT_IDENTIFIED)


def of_each_broker(picture: Picture, told: Mapping[int, Observed[T]]) -> Iterator[tuple[int, T]]:
    """What every broker told, by its id."""
    for broker_id in sorted(pods(picture).values()):
        answer = told.get(broker_id, Unknown(f"broker {broker_id} was not asked"))
        yield broker_id, seen(answer, BROKER_SILENT, f"broker {broker_id}")


def examined(picture: Picture) -> Iterator[tuple[int, BrokerExamination]]:
    """What every broker told of itself."""
    return of_each_broker(picture, picture.facts.examination.brokers)


def broker_workloads(state: KubernetesState) -> Mapping[str, Workload]:
    """The StatefulSets of brokers that exist."""
    return {name: workload for name, workload in state.brokers.items() if workload is not None}


def workloads(picture: Picture) -> Iterator[tuple[str, BrokerSet, Workload]]:
    """The StatefulSets of brokers; each of them exists."""
    state = kubernetes(picture)
    for name, brokers in picture.broker_sets.items():
        workload = state.brokers.get(name)
        if workload is None:
            raise Unseen(unknown(NOT_OBSERVED, f"StatefulSet {name} does not exist", subject=name))
        yield name, brokers, workload


def image_of(brokers: BrokerSet, workload: Workload) -> str:
    """Of the container that runs Kafka, "" where that is not known."""
    try:
        return str(container_of(workload.template, brokers).get("image", ""))
    except ContainerMissing:
        return ""


class Configured(NamedTuple):
    """A StatefulSet with what one of its brokers runs with: `keys` are the settings that it was given, without defaults,
    `hidden` the names of those that it keeps to itself."""

    workload: Workload
    container: Mapping[str, Any]
    broker_id: int
    keys: Mapping[str, str]
    hidden: frozenset[str]

    def has(self, key: str) -> bool:
        return key in self.keys or key in self.hidden


def configured(picture: Picture) -> Iterator[Configured]:
    """Every broker of every StatefulSet."""
    told, brokers = dict(examined(picture)), pods(picture)
    for name, spec, workload in workloads(picture):
        try:
            container = container_of(workload.template, spec)
        except ContainerMissing as why:
            raise Unseen(unknown(NOT_OBSERVED, f"StatefulSet {name}: {why}", subject=name)) from None
        for pod, broker_id in sorted(brokers.items(), key=lambda item: item[1]):
            if pod.rpartition("-")[0] == name:
                found = told[broker_id]
                yield Configured(workload, container, broker_id, found.static_settings, found.hidden)
