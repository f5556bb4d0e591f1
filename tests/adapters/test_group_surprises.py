"""What group coordinators do that nobody would expect (docs/facts/groups.md), and what we do about each.

test_wire_groups.py has the rest: that our questions disturb nobody, and what we do not ask.
"""

import asyncio
import time
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from uuid import uuid4

import pytest
from kio.schema.errors import ErrorCode
from kio.schema.join_group.v6.request import JoinGroupRequest, JoinGroupRequestProtocol
from kio.schema.join_group.v6.response import JoinGroupResponse
from kio.schema.types import GroupId
from kio.static.primitive import i32Timedelta

from adapters.clusters import KRaftNode
from adapters.eventually import eventually
from adapters.group_brokers import QUICK, Broker, Serve, policy
from adapters.group_members import ask, create_topic, heartbeat, joined, leave
from adapters.group_sight import sight, told
from adapters.members import Group as Members
from adapters.members import group, python
from history.events import Kind
from patience import until
from switchover.api.status import Verdict as Outcome
from switchover.groups.gates.convergence import COVERED
from switchover.groups.gates.protocol import PLAIN_ASSIGNMENTS, PROBE_EXPIRED
from switchover.kafka.client.coordinator import NOTHING_SUBSCRIBED
from switchover.kafka.client.groups import WireGroups
from switchover.kafka.group import Group, GroupState, GroupType
from switchover.network.addresses import Address
from switchover.network.credentials import Access
from unit.group_pictures import NOW

PARTITIONS = 4
SESSION = i32Timedelta.parse(timedelta(seconds=6))
BOTH = ("newest_kafka", pytest.param("oldest_kafka_4", marks=pytest.mark.long))


async def settled(server: Address, all_: Members, count: int) -> Group:
    """Once so many members are there and every partition has its owner."""
    return await eventually(
        lambda: WireGroups(Access(str(server))).describe(all_.name),
        lambda seen: seen.state is GroupState.STABLE and len(seen.members) == count
        and sum(len(each.assigned) for each in seen.members) == PARTITIONS, 60)


# --- librdkafka's cooperative-sticky ----------------------------------------------------------------------------------


@pytest.mark.parametrize("which", BOTH)
async def test_a_cooperative_librdkafka_group_is_refused_from_its_second_generation_on(
    which: str, request: pytest.FixtureRequest, tmp_path: Path,
) -> None:
    server: Address = request.getfixturevalue(which).address
    cooperative, consumer = {"ASSIGNOR": "cooperative-sticky"}, {"GROUP_PROTOCOL": "consumer"}
    with group(str(server), tmp_path, PARTITIONS) as all_:
        one = all_.member("one", python(), **cooperative)
        await settled(server, all_, 1)
        all_.member("two", python(), **cooperative)
        before = await settled(server, all_, 2)
        picture = await sight(server, all_.name)
        assert PLAIN_ASSIGNMENTS.check(picture).reason == "AssignmentUserData"
        assert told(picture) == {"AssignmentUserData"}
        newcomer = all_.member("new", python(), **consumer)
        assert newcomer.ended() == 1
        assert "group id does not exist" in newcomer.events(Kind.FENCED)[0].words
        assert await settled(server, all_, 2) == before, "nobody was disturbed"
        assert one.alive


@pytest.mark.parametrize("which", BOTH)
async def test_such_a_group_is_converted_in_its_first_generation(
    which: str, request: pytest.FixtureRequest, tmp_path: Path,
) -> None:
    """So that a gate which asks for the strategy's name alone would be wrong both ways."""
    server: Address = request.getfixturevalue(which).address
    with group(str(server), tmp_path, PARTITIONS) as all_:
        all_.member("one", python(), ASSIGNOR="cooperative-sticky")
        await settled(server, all_, 1)
        assert PLAIN_ASSIGNMENTS.check(await sight(server, all_.name)).outcome is Outcome.PASS
        assert (await heartbeat(server, all_.name, all_.topic)).error_code is ErrorCode.none


# --- a mixed group whose last member of the consumer protocol leaves, under policy `upgrade` --------------------------


@pytest.mark.long
async def test_from_4_3_on_its_partitions_have_no_owner_until_a_member_restarts(serving: Serve, tmp_path: Path) -> None:
    server = serving(Broker("4.4", QUICK + policy("upgrade")))
    groups = WireGroups(Access(str(server)))
    with group(str(server), tmp_path, PARTITIONS) as all_:
        one = all_.member("one", python())
        all_.member("two", python())
        await settled(server, all_, 2)
        before = await sight(server, all_.name)
        assert told(before) == {"NoOnlineRollback"}, "this is said before anything is begun"
        new = all_.member("new", python(), GROUP_PROTOCOL="consumer")
        await settled(server, all_, 3)
        new.stop()
        forgotten = await eventually(
            lambda: groups.describe(all_.name), lambda seen: len(seen.members) == 2, 30)
        deadline = time.monotonic() + 8                         # a rebalance takes 5 s at most
        while time.monotonic() < deadline:
            forgotten = await groups.describe(all_.name)
        assert (forgotten.type, forgotten.state) == (GroupType.CONSUMER, GroupState.ASSIGNING)
        seen = COVERED.check(await sight(server, all_.name))
        assert (seen.outcome, seen.reason) == (Outcome.WAIT, "PartitionsUnowned")
        one.stop()
        all_.member("one-again", python())
        await settled(server, all_, 2)
        assert COVERED.check(await sight(server, all_.name)).outcome is Outcome.PASS


@pytest.mark.long
async def test_on_4_0_they_go_to_those_that_are_left(serving: Serve, tmp_path: Path) -> None:
    server = serving(Broker("4.0", QUICK + policy("upgrade")))
    with group(str(server), tmp_path, PARTITIONS) as all_:
        for name in ("one", "two"):
            all_.member(name, python())
        await settled(server, all_, 2)
        new = all_.member("new", python(), GROUP_PROTOCOL="consumer")
        await settled(server, all_, 3)
        new.stop()
        left = await settled(server, all_, 2)
        assert left.type is GroupType.CONSUMER, "and it stays of that type: this policy has no way back"
        assert COVERED.check(await sight(server, all_.name)).outcome is Outcome.PASS


# --- the question which strategies the members have -------------------------------------------------------------------


async def asked(server: Address, name: str) -> str:
    """JoinGroup of a newcomer that has no id yet; the id that the coordinator keeps for it."""
    answer = await ask(server, JoinGroupRequest(
        group_id=GroupId(name), session_timeout=SESSION, rebalance_timeout=SESSION, member_id="", group_instance_id=None,
        protocol_type="consumer", protocols=(JoinGroupRequestProtocol(name="range", metadata=NOTHING_SUBSCRIBED),),
    ), JoinGroupResponse)
    assert answer.error_code is ErrorCode.member_id_required
    return answer.member_id


async def test_leaving_after_the_question_stops_the_whole_group(newest_kafka: KRaftNode, tmp_path: Path) -> None:
    """Which is why we never do; a real member notices nothing of a question that is left to expire."""
    server = newest_kafka.address
    with group(str(server), tmp_path, PARTITIONS) as all_:
        member = all_.member("member", python(), ASSIGNOR="range")
        until(lambda: member.delivers(PARTITIONS), "it delivers")
        assert await WireGroups(Access(str(server))).all_support(all_.name, "range")
        await asyncio.sleep(7)                                        # its heartbeat (3 s) would tell; the session ends
        assert member.events(Kind.RELEASE) == []
        await leave(server, all_.name, await asked(server, all_.name))
        until(lambda: len(member.events(Kind.RELEASE)) == PARTITIONS, "it gives everything back", 20)


async def test_a_rebalance_waits_for_who_has_only_asked(newest_kafka: KRaftNode, tmp_path: Path) -> None:
    """The gate before a batch lets no pod move before that."""
    server = newest_kafka.address
    with group(str(server), tmp_path, PARTITIONS) as all_:
        all_.member("one", python(), ASSIGNOR="range")
        await settled(server, all_, 1)
        begun = time.monotonic()
        await WireGroups(Access(str(server))).all_support(all_.name, "range")
        all_.member("two", python(), ASSIGNOR="range")
        await settled(server, all_, 2)
        waited = time.monotonic() - begun
        assert waited >= 6
        picture = await sight(server, all_.name, assignmentStrategy={"to": "roundrobin"}, protocol=None)
        for since, outcome in ((6.0, Outcome.WAIT), (9.0, Outcome.PASS)):
            later = replace(picture, position=replace(picture.position, opened=NOW - since))
            assert PROBE_EXPIRED.check(later).outcome is outcome


# --- the same question to a group without members ---------------------------------------------------------------------


async def test_asking_an_empty_group_changes_it(newest_kafka: KRaftNode) -> None:
    """Which is why we ask none that is empty."""
    server, name, groups = newest_kafka.address, uuid4().hex, WireGroups(Access(str(newest_kafka.address)))
    await create_topic(server, name, PARTITIONS)
    await eventually(lambda: groups.describe(name), lambda _: True)
    member = await joined(server, name, name)
    await heartbeat(server, name, name, member=member.member_id or "", epoch=-1)
    assert (await groups.describe(name)).type is GroupType.CONSUMER
    await asked(server, name)
    assert (await groups.describe(name)).type is GroupType.CLASSIC
    missing = uuid4().hex
    assert (await groups.describe(missing)).state is GroupState.DEAD
    await asked(server, missing)
    assert (await groups.describe(missing)).state is GroupState.EMPTY
