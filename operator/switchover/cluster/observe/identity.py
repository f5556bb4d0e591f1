"""Identify: ask pods which brokers they are, where host names do not tell all of them."""

import asyncio
from collections.abc import Mapping
from dataclasses import replace

from switchover.answers.ask import READ_SECONDS, known
from switchover.answers.clock import Clock
from switchover.answers.observed import Known, Observed, Unknown
from switchover.cluster import identity
from switchover.cluster.facts import KubernetesState
from switchover.kafka.ports import KafkaNodes
from switchover.network.addresses import Address
from switchover.zookeeper.nodes import ZooKeeperState


async def identities(nodes: KafkaNodes, clock: Clock, kubernetes: Observed[KubernetesState],
                     zookeeper: Observed[ZooKeeperState], bootstrap: Mapping[int, Address],
                     settings: Mapping[int, Observed[Mapping[str, str]]]) -> dict[str, Observed[frozenset[int]]]:
    """Pod -> the registered brokers that it says it is. Never raises."""
    if not isinstance(kubernetes, Known) or not isinstance(zookeeper, Known):
        return {}
    state = zookeeper.value
    workloads = [workload for workload in kubernetes.value.brokers.values() if workload is not None]

    async def at(place: Address) -> Observed[frozenset[int]]:
        return await known(nodes.identity(place, state.cluster_id, state.brokers), READ_SECONDS, clock)

    async def one(places: tuple[Address, ...] | str) -> Observed[frozenset[int]]:
        if isinstance(places, str):
            return Unknown(places)
        answers = dict(zip(places, await asyncio.gather(*map(at, places)), strict=True))
        told = [answer for answer in answers.values() if isinstance(answer, Known)]
        if told:
            return Known(frozenset[int]().union(*(answer.value for answer in told)), told[0].at)
        place, why = next((place, answer) for place, answer in answers.items() if isinstance(answer, Unknown))
        return why if str(place) in why.why else replace(why, why=f"{place}: {why.why}")

    asked = identity.places(workloads, state.brokers, bootstrap, settings)
    return dict(zip(asked, await asyncio.gather(*map(one, asked.values())), strict=True))
