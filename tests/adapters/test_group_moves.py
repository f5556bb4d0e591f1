"""With real members and the oracle: a group moved online and offline, there and back, under load.

After each move: no deliveries overlap, no committed offset goes back, nothing is lost; duplicates are counted and printed.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from adapters.eventually import eventually
from adapters.group_brokers import QUICK, Broker, Serve, policy
from adapters.group_sight import sight
from adapters.members import Group as Members
from adapters.members import Process, group, java, python
from patience import until
from switchover.api.status import Verdict as Outcome
from switchover.groups.gates.convergence import COVERED
from switchover.groups.gates.membership import ALL_MOVED, NO_FOREIGN_MEMBERS
from switchover.groups.gates.protocol import PLAIN_ASSIGNMENTS
from switchover.kafka.client.groups import WireGroups
from switchover.kafka.group import Group, GroupState, GroupType, MemberProtocol
from switchover.network.addresses import Address
from switchover.network.credentials import Access

PARTITIONS = 4
MEMBERS = 2
SECONDS = 240
"""For what takes a few: on a busy machine, and where static members must time out (45 s)."""
VERSIONS = ("4.4", "4.0")


@dataclass(frozen=True)
class Family:
    """A client and the strategy that its classic members have; librdkafka's cooperative ones do not go online."""

    client: Callable[[], list[str]]
    strategy: str
    static: bool

    def __str__(self) -> str:
        return f"{self.client.__name__} {self.strategy} {'static' if self.static else 'dynamic'}"

    def settings(self, protocol: str, place: int) -> dict[str, str]:
        found = {"GROUP_PROTOCOL": protocol, "ASSIGNOR": self.strategy if protocol == "classic" else "uniform"}
        return found | ({"INSTANCE_ID": f"place-{place}"} if self.static else {})


FAMILIES = [Family(client, strategy, static) for client, strategy in ((python, "range"), (java, "cooperative-sticky"))
            for static in (False, True)]


@dataclass
class Moving:
    """A group of `family`, whose members are replaced."""

    server: Address
    all_: Members
    family: Family
    members: list[Process]

    @staticmethod
    async def begun(server: Address, all_: Members, family: Family, protocol: str = "classic", **more: str) -> "Moving":
        """Members that own everything between them."""
        made = Moving(server, all_, family, [])
        made.members = [made._member(f"old-{place}", protocol, place, **more) for place in range(MEMBERS)]
        await made.working()
        return made

    def _member(self, name: str, protocol: str, place: int, **more: str) -> Process:
        return self.all_.member(name, self.family.client(), **self.family.settings(protocol, place), **more)

    async def working(self) -> Group:
        """Once they own everything and each has delivered."""
        seen = await self.settled()
        for member in self.members:
            until(lambda member=member: member.delivers(1), f"{member.name} delivers", SECONDS)
        return seen

    async def settled(self, beside: tuple[str, ...] = ()) -> Group:
        """Once exactly our members, and those beside, own everything between them."""
        names = {member.name for member in self.members} | {*beside}
        return await eventually(
            lambda: WireGroups(Access(str(self.server)), seconds=30).describe(self.all_.name),
            lambda seen: seen.state is GroupState.STABLE and {each.client_id for each in seen.members} == names
            and all(each.assigned == each.target for each in seen.members)
            and sum(len(each.assigned) for each in seen.members) == PARTITIONS, SECONDS)

    async def rolled(self, protocol: str, beside: tuple[str, ...] = (), **more: str) -> list[Group]:
        """One by one: the next is stopped when the group has settled and the new one delivers. The group after each."""
        seen = []
        for place, old in enumerate(self.members):
            old.stop()
            since = time.monotonic()
            new = self.members[place] = self._member(f"{old.name}-{protocol}", protocol, place, **more)
            seen.append(await self.settled(beside))
            until(lambda new=new, since=since: new.delivers(1, since), f"{new.name} delivers", SECONDS)
        return seen

    async def restarted(self, protocol: str) -> Group:
        """All of them stopped, and when the group is empty started by the other protocol."""
        for old in self.members:
            old.stop()
        await eventually(lambda: WireGroups(Access(str(self.server)), seconds=30).describe(self.all_.name),
                         lambda seen: seen.state is GroupState.EMPTY, SECONDS)
        self.members = [self._member(f"{old.name}-{protocol}", protocol, place) for place, old in enumerate(self.members)]
        return await self.working()

    def judge(self, what: str) -> None:
        """Everything that was produced is committed, and the oracle finds no fault."""
        assert self.all_.producer.stop() == 0
        until(lambda: self.all_.committed() == self.all_.acknowledged(), "everything is committed", SECONDS)
        for member in self.members:
            member.stop()
        report = self.all_.report()
        *_, summary = report.lines()
        print(f"\n{what}, {self.family}: {summary}")
        assert (report.faults, report.never_owned) == ([], [])
        assert report.deliveries >= self.all_.acknowledged() > 0


def protocols(seen: Group) -> list[MemberProtocol]:
    return sorted(member.protocol for member in seen.members)


CLASSIC, CONSUMER = MemberProtocol.CLASSIC, MemberProtocol.CONSUMER


@pytest.mark.parametrize(("version", "family"), [
    pytest.param(version, family, id=f"{version} {family}",
                 marks=[] if (version, family) == ("4.4", FAMILIES[0]) else [pytest.mark.long])
    for version in VERSIONS for family in FAMILIES
])
async def test_online_there_and_back(version: str, family: Family, serving: Serve, tmp_path: Path) -> None:
    server = serving(Broker(version, QUICK))
    with group(str(server), tmp_path, PARTITIONS) as all_:
        moving = await Moving.begun(server, all_, family)
        assert PLAIN_ASSIGNMENTS.check(await sight(server, all_.name)).outcome is Outcome.PASS
        up = await moving.rolled("consumer")
        assert [(each.type, protocols(each)) for each in up] == [
            (GroupType.CONSUMER, [CLASSIC, CONSUMER]), (GroupType.CONSUMER, [CONSUMER, CONSUMER])]
        down = await moving.rolled("classic")
        assert [(each.type, protocols(each)) for each in down] == [
            (GroupType.CONSUMER, [CLASSIC, CONSUMER]), (GroupType.CLASSIC, [CLASSIC, CLASSIC])]
        assert down[-1].assignor == family.strategy
        moving.judge(f"online, {version}")


@pytest.mark.long
@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(("name", "before", "after"), [
    ("upgrade", "classic", "consumer"), ("downgrade", "consumer", "classic")])
async def test_online_under_a_policy_of_one_way(
    version: str, name: str, before: str, after: str, serving: Serve, tmp_path: Path,
) -> None:
    server = serving(Broker(version, QUICK + policy(name)))
    with group(str(server), tmp_path, PARTITIONS) as all_:
        moving = await Moving.begun(server, all_, FAMILIES[0], before)
        *_, moved = await moving.rolled(after)
        assert {moved.type.lower(), *(each.protocol.lower() for each in moved.members)} == {after}
        moving.judge(f"online under {name}, {version}")


@pytest.mark.long
@pytest.mark.parametrize("family", FAMILIES, ids=str)
@pytest.mark.parametrize("version", VERSIONS)
async def test_offline_there_and_back_whatever_the_policy(
    version: str, family: Family, serving: Serve, tmp_path: Path,
) -> None:
    server = serving(Broker(version, QUICK + policy("disabled")))
    with group(str(server), tmp_path, PARTITIONS) as all_:
        moving = await Moving.begun(server, all_, family)
        there = await moving.restarted("consumer")
        assert (there.type, protocols(there)) == (GroupType.CONSUMER, [CONSUMER, CONSUMER])
        back = await moving.restarted("classic")
        assert (back.type, back.assignor, protocols(back)) == (GroupType.CLASSIC, family.strategy, [CLASSIC, CLASSIC])
        moving.judge(f"offline, {version}")


@pytest.mark.long
@pytest.mark.parametrize("version", VERSIONS)
async def test_a_pattern_is_taken_along(version: str, serving: Serve, tmp_path: Path) -> None:
    """Matched by the client before, and by the brokers after: they tell it (librdkafka puts it in brackets) and no topic."""
    server = serving(Broker(version, QUICK))
    with group(str(server), tmp_path, PARTITIONS) as all_:
        pattern = f"^{all_.topic[:20]}.*"
        moving = await Moving.begun(server, all_, FAMILIES[0], TOPIC=pattern)
        before = await moving.settled()
        assert {(each.topics, each.regex) for each in before.members} == {(frozenset({all_.topic}), "")}
        await moving.rolled("consumer", TOPIC=pattern)
        after = await moving.settled()
        assert {(each.topics, each.regex) for each in after.members} == {(frozenset(), f"({pattern})")}
        assert COVERED.check(await sight(server, all_.name)).outcome is Outcome.PASS
        moving.judge(f"a pattern, {version}")


@pytest.mark.parametrize("version", [version if version == "4.4" else pytest.param(version, marks=pytest.mark.long)
                                     for version in VERSIONS])
async def test_a_member_of_nobody_is_named(version: str, serving: Serve, tmp_path: Path) -> None:
    """The pods are orders-0 and orders-1; somebody runs a third member by hand. It neither hinders nor ends the move."""
    server, stranger = serving(Broker(version, QUICK)), "by-hand"
    with group(str(server), tmp_path, PARTITIONS) as all_:
        hand = all_.member(stranger, python(), ASSIGNOR="range")
        moving = Moving(server, all_, FAMILIES[0], [])
        moving.members = [all_.member(name, python(), ASSIGNOR="range") for name in ("orders-0", "orders-1")]
        await moving.settled((stranger,))

        async def strangers() -> list[str]:
            picture = await sight(server, all_.name, modes="OO")
            assert (NO_FOREIGN_MEMBERS.check(picture).reason == "ForeignMembers") == bool(picture.foreign_members())
            return [each.client_id for each in picture.foreign_members()]

        assert await strangers() == [stranger]
        await moving.rolled("consumer", (stranger,))
        assert await strangers() == [stranger]
        picture = await sight(server, all_.name, modes="OO")
        assert (ALL_MOVED.check(picture).reason, ALL_MOVED.check(picture).subject) == ("MembersNotMoved", stranger)
        hand.stop()
        await moving.settled()
        assert await strangers() == []
        assert ALL_MOVED.check(replace(picture, facts=(await sight(server, all_.name)).facts)).outcome is Outcome.PASS
        moving.judge(f"beside a member of nobody, {version}")
