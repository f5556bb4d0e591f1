"""Connections that are kept between questions: how many are opened, when they are closed, and what a failure costs."""

import asyncio
from typing import Any
from uuid import uuid4

import pytest

from adapters.clusters import KRaftNode
from adapters.eventually import eventually
from adapters.group_members import assignment, classic_member, create_topic, subscription
from fakes.kafka_node import noting_connections
from patience import stretched
from switchover.kafka.client.connection import Connection
from switchover.kafka.client.groups import WireGroups
from switchover.kafka.client.offsets import WireOffsets
from switchover.kafka.group import GroupState
from switchover.lag.window import Asked
from switchover.network.credentials import Access

GROUPS = 60


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[Connection]:
    """Every connection to Kafka that the test opens."""
    return noting_connections(monkeypatch)


def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the requests from now on."""
    found: list[str] = []
    exchange = Connection.exchange

    async def noted(self: Connection, request: Any) -> bytes:
        found.append(type(request).__name__.removesuffix("Request"))
        return await exchange(self, request)

    monkeypatch.setattr(Connection, "exchange", noted)
    return found


async def test_many_groups_of_one_broker_on_one_connection_in_requests_of_fifty(
    newest_kafka: KRaftNode, opened: list[Connection], monkeypatch: pytest.MonkeyPatch,
) -> None:
    server, topic, prefix = newest_kafka.address, uuid4().hex, uuid4().hex
    await create_topic(server, topic, 2)
    groups = WireGroups(Access(str(server)), seconds=stretched(10), keep=600)
    offsets = WireOffsets(Access(str(server)), seconds=stretched(10), keep=600)
    names = [f"{prefix}-{number:02}" for number in range(GROUPS)]
    await eventually(lambda: groups.describe(names[0]), lambda _: True)
    for name in names[:2]:
        await classic_member(server, name, subscription(topic), assignment(topic, 0, 1))
    await groups.describe(names[0])                     # so that the next ones wait for one another
    opened.clear()
    requests = asked(monkeypatch)
    seen = await asyncio.gather(*(groups.describe(name) for name in names))
    assert [group.name for group in seen] == names
    assert [group.state for group in seen] == [GroupState.STABLE] * 2 + [GroupState.DEAD] * (GROUPS - 2)
    assert requests.count("DescribeGroups") == 2
    assert len(requests) <= 6, f"{GROUPS} groups took {requests}"
    assert set(await asyncio.gather(*(groups.coordinators(name) for name in names))) == {frozenset({1})}
    assert not opened, "the one that was opened first is used for all of it"
    await offsets.sweep({names[0]: Asked()})
    del requests[:]
    swept = await asyncio.gather(*(offsets.sweep({name: Asked(frozenset({topic}), index == 1)})
                                   for index, name in enumerate(names)))
    assert [list(sweep.readings) for sweep in swept] == [[name] for name in names]
    assert all(len(sweep.readings[name].offsets) == 2 for sweep, name in zip(swept, names, strict=True))
    assert requests.count("OffsetFetch") == 1
    assert len(opened) == 1
    for each in (groups, offsets):
        await each.close()
    assert not opened[0].is_good_for(0)
