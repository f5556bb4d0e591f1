"""The tables of a member's states say all that can happen, and nothing that cannot."""

import random
from collections.abc import Mapping
from typing import Any

import pytest

from switchover.consumer import messages as m
from switchover.consumer.member import following, holdings, machine
from switchover.consumer.member.following import Rules
from switchover.consumer.member.machine import Member
from switchover.consumer.member.states import (
    ASKS,
    ENDING,
    GROUP,
    HANDED,
    LIFE,
    MODE,
    PARTITION,
    SESSION,
    SUSPENDED,
    Cause,
    Group,
    Impossible,
    Life,
    Phase,
    Session,
    after,
)
from switchover.coordination.acknowledgement import Acknowledgement
from switchover.coordination.mode import Mode
from switchover.coordination.registration import Registration
from switchover.coordination.world import Owner, World
from switchover.shared.partition import TopicPartition

ME = "g_me"
P = [TopicPartition(topic, number) for topic in ("t", "u") for number in (0, 1)]
TABLES: Mapping[str, tuple[Mapping[Any, Mapping[Cause, Any]], Any, set[Any]]] = {
    "partition": (PARTITION, Phase.FREE, set(Phase)), "session": (SESSION, Session.NONE, set(Session)),
    "group": (GROUP, Group.OUTSIDE, set(Group)), "mode": (MODE, None, {None, *Mode}), "life": (LIFE, Life.OPEN, set(Life))}
"""Each with its first state, and all that there are."""
SESSIONS = {
    (False, False, False): Session.NONE, (True, False, False): Session.NEW, (True, False, True): Session.REGISTERED,
    (True, True, False): Session.NEW_SUSPENDED, (True, True, True): Session.SUSPENDED}
"""By whether it is connected, suspended and registered."""
BY_HAND = {("partition", Phase.LINGERING, Cause.GIVEN_UP)}
"""Too rare for chance: test_consumer_member.py lives it."""


def from_there(table: Mapping[Any, Mapping[Cause, Any]], first: Any, *, but: Any = "nothing") -> set[Any]:
    """The states that follow one, however many steps on; not by way of `but`."""
    found: set[Any] = set()
    left = [first]
    while left:
        new = {then for then in table[left.pop()].values() if then != but} - found
        found |= new
        left += new
    return found


@pytest.mark.parametrize("name", TABLES)
def test_each_state_has_its_row_and_a_way_to_it(name: str) -> None:
    table, first, states = TABLES[name]
    assert set(table) == from_there(table, first) | {first} == states


def test_what_is_said_of_phases_follows_from_the_table() -> None:
    assert from_there(PARTITION, Phase.FETCHING, but=Phase.FREE) == ENDING
    fetching, = {then for causes in PARTITION.values() for cause, then in causes.items() if cause is Cause.READ}
    assert {fetching, PARTITION[fetching][Cause.UNWANTED]} == HANDED
    assert set(Phase) - ASKS.keys() == {Phase.FREE, Phase.FETCHING, Phase.LINGERING}


def test_what_cannot_happen_is_refused_by_name() -> None:
    with pytest.raises(Impossible, match=r"^<Cause\.STOPPED: 'stopped'> in state Fetching$"):
        after(PARTITION, Phase.FETCHING, Cause.STOPPED)


# --- any events, in any order -----------------------------------------------------------------------------------------


def read(chance: random.Random, member: Member, step: int) -> World:
    """Any group of up to three members, beside whatever owner nodes."""
    names = [name for name in ("g_a", ME, "g_z") if chance.random() < (0.97 if name == ME else 0.5)]
    enabled = {name for name in names if (name == ME and member.rules.enabled) or (name != ME and chance.random() < 0.8)}
    mode = chance.choice([member.mode, member.mode, None, *Mode])
    owners = {}
    for partition in P:
        if partition in member.holdings and chance.random() < 0.9:
            owners[partition] = Owner(member.holdings[partition].thread, 1)
        elif chance.random() < 0.4:
            owners[partition] = chance.choice([Owner("guard"), Owner("g_a-0", 99)])
    return World(
        {name: Registration({"t": 1, "u": 1}) for name in names}, {"g_bad": "is bad"} if chance.random() < 0.03 else {},
        {name: chance.choice([None, Acknowledgement(Mode.KAFKA), Acknowledgement()]) for name in enabled}, mode,
        b"" if mode is None else mode.encode(), chance.choice([-1, step]) if mode is None else step,
        {"t": (0, 1), "u": (0, 1)}, owners)


def some(chance: random.Random, partitions: Any, likely: float) -> frozenset[TopicPartition]:
    return frozenset(each for each in sorted(partitions) if chance.random() < likely)


def answers(chance: random.Random, request: m.Request, member: Member, step: int) -> list[m.Event]:
    """To a request; nothing to what is not answered."""
    match request:
        case m.Register(number):
            told: list[m.Event] = [m.Registered(number)]
        case m.ReadWorld(number):
            told = [m.WorldRead(number, read(chance, member, step))]
        case m.Claim(number, threads):
            told = [m.Claimed(number, some(chance, threads, 0.8))]
        case m.ReadOffsets(number, partitions):
            told = [m.OffsetsRead(number, dict.fromkeys(partitions, 5), some(chance, partitions, 0.4))]
        case m.Stop(number):
            told = [m.Stopped(number)]
        case m.Commit(number, partitions):
            told = [m.CommittedToZooKeeper(number, some(chance, partitions, 0.08)),
                    m.CommittedToKafka(number, chance.random() < 0.2)]
        case m.Release(number):
            told = [m.Released(number)]
        case m.Describe(number):
            others = {"kc": frozenset[TopicPartition]()} if chance.random() < 0.3 else {}
            told = [m.Described(number, {ME: member.assigned or frozenset(), **others})]
        case _:
            return []
    return [m.Failed(number, "") for _ in told[:1]] if chance.random() < 0.15 else told


def unasked(chance: random.Random, member: Member) -> m.Event:
    """What comes of itself. One session ends before another begins (sessions.py)."""
    of_session = [m.Suspended(), m.Resumed(), m.Resumed(), m.Expired()] if member.session is not Session.NONE else [
        m.Connected(1)]
    event = chance.choices(
        [chance.choice(of_session), m.Tick(), m.Changed(), m.OwnerGone(chance.choice(P)), m.OwnerFreed(chance.choice(P)),
         m.GroupAssigned(some(chance, P, 0.5)), m.GroupRevoking(), m.GroupLost(), m.Closing()],
        [14, 10, 20, 4, 8, 12, 5, 8, 0.5])
    return event[0]


class Judge:
    """What others know of a member: what it owns, what it has handed out, and what it took back without a commit yet."""

    def __init__(self, member: Member) -> None:
        self._member = member
        self._owned, self._handed, self._left = set[TopicPartition](), set[TopicPartition](), set[TopicPartition]()
        self._reading = self._registering = 0
        self._connected = self._suspended = self._registered = False
        self._group, self._mode, self._gone = Group.OUTSIDE, member.mode, False

    def before(self, event: m.Event) -> None:
        """What an event says that somebody waits for."""
        held = self._member.holdings
        about = {each for each, holding in held.items() if holding.request == getattr(event, "number", -1)}
        match event:
            case m.Claimed(_, claimed):
                self._owned |= about & claimed
            case m.Released():
                self._owned -= about
            case m.Stopped():
                self._handed -= about
                self._left |= about
            case m.CommittedToZooKeeper(_, gone):
                self._left -= about
                self._lost(gone)
            case m.CommittedToKafka(_, fenced=True):
                self._left -= about
            case m.OwnerGone(partition):
                self._lost({partition})
            case m.WorldRead(number, world) if number == self._reading and ME not in world.registrations:
                self._registered = False
            case m.WorldRead(number, world) if number == self._reading:
                self._lost({each for each in self._owned if world.owners.get(each) != Owner(held[each].thread, 1)})
            case m.GroupAssigned():
                self._group = Group.ASSIGNED
            case m.GroupRevoking():
                self._group = Group.REVOKING
            case m.GroupLost():
                self._group = Group.OUTSIDE
                if self._member.mode is Mode.KAFKA:
                    self._left.clear()
            case m.Connected():
                self._connected = True
            case m.Suspended() | m.Resumed():
                self._suspended = isinstance(event, m.Suspended)
            case m.Registered(number) if number == self._registering:
                self._registered = True
            case m.Expired():
                self._reading = self._registering = 0
                self._connected = self._suspended = self._registered = False
                self._lost(set(self._owned))

    def _lost(self, partitions: set[TopicPartition] | frozenset[TopicPartition]) -> None:
        self._owned -= partitions
        self._left -= partitions

    def asked(self, request: m.Request) -> None:
        assert not self._gone or isinstance(request, m.AllowRevoke)
        match request:
            case m.Register(number):
                self._registering = number
            case m.ReadWorld(number):
                self._reading = number
            case m.Start(starts):
                assert starts.keys() <= self._owned - self._handed
                self._handed |= starts.keys()
            case m.Stop(_, partitions):
                assert partitions <= self._handed
            case m.Abandon(partitions):
                self._handed -= partitions
            case m.Release(_, partitions):
                assert not partitions & (self._handed | self._left)
            case m.AllowRevoke():
                self._group = Group.OUTSIDE
                if self._member.session in SUSPENDED and self._member.mode is Mode.KAFKA:
                    self._left.clear()
            case m.Leave():
                assert not self._owned
                self._gone = True

    def after(self, event: m.Event) -> None:
        """Nothing is owned that is forgotten, and nothing handed out that is not owned, or that is others' now."""
        assert self._owned <= self._member.holdings.keys()
        assert self._handed <= self._owned
        assert self._member.session is SESSIONS[self._connected, self._suspended, self._registered]
        assert self._member.group is self._group
        assert (self._member.assigned is not None) is (self._group is Group.ASSIGNED)
        if isinstance(event, m.Expired):
            assert not self._member.holdings
            kept = self._mode is Mode.KAFKA or not self._member.rules.enabled
            assert self._member.mode is (self._mode if kept else None)
        self._mode = self._member.mode
        if isinstance(event, m.GroupLost) and self._member.mode is Mode.KAFKA:
            assert self._member.holdings.are_given_up()


def lived(seed: int, steps: int) -> None:
    """A member whose answers come in any order, late, or never."""
    chance, now = random.Random(seed), 0.0
    member = Member(Rules(ME, enabled=chance.random() < 0.85))
    judge = Judge(member)
    pace, coming = chance.choice([0.02, 1.0]), list[m.Event]()
    for step in range(steps):
        now += pace * chance.choice([0, 0, 0, 0.02, 0.1, 0.3, 1, 5])
        event = coming.pop(chance.randrange(len(coming))) if coming and chance.random() < 0.7 else unasked(chance, member)
        judge.before(event)
        for request in member.handle(event, now):
            judge.asked(request)
            coming += answers(chance, request, member, step)
        judge.after(event)
        assert member.due > now, "its thread would be woken again and again"


def test_whatever_comes_in_whatever_order_is_in_the_tables_and_all_of_them_is_met(monkeypatch: pytest.MonkeyPatch) -> None:
    met = set()

    def noted(table: Any, state: Any, cause: Cause) -> Any:
        met.add((id(table), state, cause))
        return after(table, state, cause)

    for module in (following, holdings, machine):
        monkeypatch.setattr(module, "after", noted)
    for seed in range(150):
        lived(seed, 300)
    rows = {(name, state, cause) for name, (table, _, _) in TABLES.items() for state, causes in table.items()
            for cause in causes}
    assert {(name, state, cause) for name, state, cause in rows if (id(TABLES[name][0]), state, cause) not in met} <= BY_HAND
