"""How a check of Preflight reads the facts: what is not known raises `Unseen`, and no check passes that could not look."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from switchover.api.kafka_migration import BrokerSet
from switchover.core.gate import Gate, Unseen, Verdict, complete, gravest, unknown
from switchover.core.kraft import modes, template
from switchover.core.kraft.examination import BrokerExamination
from switchover.core.kraft.facts import KubernetesState, ServerConfiguration, Workload, ZooKeeperState, ZooKeeperTopics
from switchover.core.kraft.overrides import overrides
from switchover.core.kraft.picture import Picture
from switchover.core.observed import Known, Unknown

NAMED = 5
"""How many culprits of one kind a finding names; it counts the others."""


def check(name: str, find: Callable[[Picture], Iterable[Verdict]], passes: str,
          samples: Callable[[Picture], int] = lambda _: 1) -> Gate[Picture]:
    """The gate of a check: it tells all findings, and is open when none of them is a blocker."""
    return Gate(name, lambda picture: gravest(complete(find, picture), passes), samples=samples)


def several(culprits: Iterable[object], at_most: int = NAMED) -> str:
    """The first of them by name, and how many more there are."""
    named = [str(culprit) for culprit in culprits]
    rest = len(named) - at_most
    return ", ".join(named[:at_most]) + (f" and {rest} more" if rest > 0 else "")


def kubernetes(picture: Picture) -> KubernetesState:
    state = picture.facts.kubernetes
    if not isinstance(state, Known):
        raise Unseen(unknown("KubernetesUnknown", state.why, subject="Kubernetes"))
    return state.value


def zookeeper(picture: Picture) -> ZooKeeperState:
    state = picture.facts.zookeeper
    if not isinstance(state, Known):
        raise Unseen(unknown("ZooKeeperUnknown", state.why, subject="ZooKeeper"))
    return state.value


def topics(picture: Picture) -> ZooKeeperTopics:
    found = picture.facts.zookeeper_topics
    if not isinstance(found, Known):
        raise Unseen(unknown("ZooKeeperUnknown", found.why, subject="ZooKeeper"))
    return found.value


def pods(picture: Picture) -> Mapping[str, int]:
    """Pod name -> broker id."""
    found = picture.broker_pods()
    if not isinstance(found, Known):
        raise Unseen(unknown("BrokersNotIdentified", found.why))
    return found.value


def examined(picture: Picture) -> Iterator[tuple[int, BrokerExamination]]:
    """What every broker told of itself."""
    for broker_id in sorted(pods(picture).values()):
        told = picture.facts.examination.brokers.get(broker_id, Unknown(f"broker {broker_id} was not asked"))
        if not isinstance(told, Known):
            raise Unseen(unknown("BrokerSilent", told.why, subject=f"broker {broker_id}"))
        yield broker_id, told.value


def broker_workloads(state: KubernetesState) -> Mapping[str, Workload]:
    """The StatefulSets of brokers that exist."""
    return {name: workload for name, workload in state.brokers.items() if workload is not None}


def workloads(picture: Picture) -> Iterator[tuple[str, BrokerSet, Workload]]:
    """The StatefulSets of brokers; each of them exists."""
    state = kubernetes(picture)
    for name, brokers in picture.broker_sets.items():
        workload = state.brokers.get(name)
        if workload is None:
            raise Unseen(unknown("NotObserved", f"StatefulSet {name} does not exist", subject=name))
        yield name, brokers, workload


class Configured(NamedTuple):
    """A StatefulSet with its configuration: the keys of its file or environment, and those that its command overrides."""

    workload: Workload
    container: Mapping[str, Any]
    source: str
    text: str
    keys: Mapping[str, str]
    overridden: Mapping[str, str]
    by_environment: bool = False


def configured(picture: Picture) -> Iterator[Configured]:
    """Every StatefulSet of brokers with its configuration, which can be read."""
    state = kubernetes(picture)
    for name, brokers, workload in workloads(picture):
        configuration = state.configurations.get(name)
        if not isinstance(configuration, ServerConfiguration):
            raise Unseen(unknown("NotObserved", f"the configuration of {name} cannot be read", subject=name))
        try:
            keys = modes.properties(configuration.text)
            container = template.broker_container(workload, brokers)
        except (ValueError, template.Unsupported) as reason:
            raise Unseen(unknown("NotObserved", f"{configuration.source} cannot be used: {reason}",
                                 subject=configuration.source)) from None
        variables = brokers.configuration.environment
        overridden = overrides(container, variables.prefix if variables is not None else "")
        yield Configured(workload, container, configuration.source, configuration.text, keys, overridden,
                         by_environment=variables is not None)
