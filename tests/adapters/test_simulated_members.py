"""Hundreds of simulated members on one coordinator of Kafka 4.4, and the gate of its capacity.

Sessions are so short here that members who keep no heartbeat are gone before they are counted.
"""

import asyncio
from collections.abc import Iterator
from datetime import timedelta

import pytest
from kio.static.primitive import i32Timedelta

from adapters import simulated_members
from adapters.capacity import BATCH, capacity, stable
from adapters.clusters import KRaftNode, node
from adapters.eventually import eventually
from adapters.group_members import create_topic, heartbeat, leave
from adapters.simulated_members import LEAVES, Topic, crowd
from switchover.api.status import Verdict as Outcome
from switchover.kafka.client.groups import WireGroups
from switchover.kafka.group import GroupType, MemberProtocol
from switchover.lag.group import TopicPartition
from switchover.network.credentials import Access

CLASSIC, CONSUMER = MemberProtocol.CLASSIC, MemberProtocol.CONSUMER
SESSION, INTERVAL = 10.0, 2.0
SETTINGS = f"""\
group.consumer.min.session.timeout.ms={SESSION * 1000:.0f}
group.consumer.session.timeout.ms={SESSION * 1000:.0f}
group.consumer.min.heartbeat.interval.ms={INTERVAL * 1000:.0f}
group.consumer.heartbeat.interval.ms={INTERVAL * 1000:.0f}
"""
MODERN = {"modern-0": 100, "modern-1": 50}
OLD = {"old-0": 100, "old-1": 50}
TOPIC = Topic("orders", 120)
CONNECTIONS = 10
SECONDS = 120.0


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KRaftNode]:
    with node(tmp_path_factory.mktemp("coordinator"), "4.4") as coordinator:
        coordinator.begin(SETTINGS)
        asyncio.run(prepared(coordinator))
        yield coordinator


async def prepared(server: KRaftNode) -> None:
    await create_topic(server.address, TOPIC.name, TOPIC.partitions)
    await eventually(lambda: asking(server).describe("modern-0"), lambda _: True)


@pytest.fixture(autouse=True)
def short_sessions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(simulated_members, "SESSION", i32Timedelta.parse(timedelta(seconds=SESSION)))


def asking(server: KRaftNode) -> WireGroups:
    return WireGroups(Access(str(server.address)))


@pytest.mark.long
async def test_all_are_held_and_the_gate_counts_them(server: KRaftNode) -> None:
    groups = asking(server)
    async with (
        crowd(server.address, CONSUMER, TOPIC, connections=CONNECTIONS, seconds=SECONDS) as modern,
        crowd(server.address, CLASSIC, TOPIC, connections=CONNECTIONS, seconds=SECONDS) as old,
    ):
        await asyncio.gather(modern.join(MODERN), old.join(OLD))
        await stable(server.address, 4)
        for held in (modern, old):
            held.tally.answered.clear()
            held.tally.lost.clear()
        await asyncio.sleep(SESSION + INTERVAL)

        assert await groups.coordinated() == {1: 300}
        assert len(modern.tally.answered) >= 150 * 3
        assert len(old.tally.answered) >= 150 * 2
        assert not modern.tally.lost
        assert not old.tally.lost
        for name, count in (MODERN | OLD).items():
            group = await groups.describe(name)
            assert group.type is (GroupType.CONSUMER if name in MODERN else GroupType.CLASSIC)
            assert len(group.members) == count
            assert sorted(partition for member in group.members for partition in member.assigned) == [
                TopicPartition(TOPIC.name, number) for number in range(TOPIC.partitions)]

        full = await capacity(str(server.address), "old-0", 299 + BATCH)
        assert (full.outcome, full.reason, full.subject) == (Outcome.WAIT, "CoordinatorFull", "broker 1")
        assert (full.observed, full.threshold) == (str(300 + BATCH), str(299 + BATCH))
        assert full.message == "broker 1 coordinates 300 members, and a batch adds 2"
        assert (await capacity(str(server.address), "old-0", 300 + BATCH)).outcome is Outcome.PASS
    await stable(server.address, 0)
    assert await groups.coordinated() == {1: 0}
    assert (await capacity(str(server.address), "old-0", 299 + BATCH)).outcome is Outcome.PASS


@pytest.mark.parametrize("protocol", [CONSUMER, CLASSIC])
async def test_a_member_that_was_thrown_out_is_told_and_joins_again(server: KRaftNode, protocol: MemberProtocol) -> None:
    groups, name = asking(server), f"thrown-out-{protocol}"
    async with crowd(server.address, protocol, TOPIC, connections=1, seconds=SECONDS) as held:
        await held.join({name: 10})
        await stable(server.address, 1)
        held.tally.lost.clear()
        victim = (await groups.describe(name)).members[0].member_id
        if protocol is CONSUMER:
            await heartbeat(server.address, name, "", member=victim, epoch=LEAVES)
        else:
            await leave(server.address, name, victim)
        await eventually(groups.coordinated, lambda seen: seen == {1: 10} and "UNKNOWN_MEMBER_ID" in held.tally.lost, 30)
        assert held.tally.lost["UNKNOWN_MEMBER_ID"] == 1
    await stable(server.address, 0)


@pytest.mark.parametrize(("protocol", "answer"), [(CONSUMER, "INVALID_REQUEST"), (CLASSIC, "INVALID_GROUP_ID")])
async def test_an_answer_that_no_member_expects_ends_the_load(server: KRaftNode, protocol: MemberProtocol,
                                                              answer: str) -> None:
    with pytest.raises(ExceptionGroup) as ended:
        async with crowd(server.address, protocol, TOPIC, connections=1, seconds=SECONDS) as held:
            await held.join({"": 2})
    assert ended.group_contains(AssertionError, match=f"a member of group '' got {answer}")
