"""One group of the fleet, and whether it can be migrated now: blockers, and a score that names its every term."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from switchover.kafka.group import GroupState, GroupType, Kind, MemberProtocol, Standing, obstacles


class Storage(StrEnum):
    """Where a group's offsets are. Both: old consumers with `dual.commit.enabled`, or a migration under way."""

    KAFKA = "Kafka"
    ZOOKEEPER = "ZooKeeper"
    BOTH = "Both"
    NONE = "None"


class Coordination(StrEnum):
    """Who coordinates its members. None: it has none."""

    KAFKA = "Kafka"
    ZOOKEEPER = "ZooKeeper"
    BOTH = "Both"
    NONE = "None"


@dataclass(frozen=True, slots=True)
class Group:
    """What is known of a group. None is what was not captured, or is unknown; times are ms since the epoch.

    `protocol` is the group's type as the broker names it, "" where the last capture does not describe it; `protocol_type`
    that of its last record as a classic group, None without one. `lag` sums over partitions with a commit and a known end;
    `growth` is records an hour by which it grows (negative: it shrinks). `headroom` is the smallest share of a partition's
    log that lies before the committed offset, of topics from which retention deletes: at 0 it has reached the offset, below
    it records are lost (`lost` counts such partitions, of all topics). `subscription` is static, white_list, black_list or
    "" (ZooKeeper groups alone have it). `rebalances` are those of a day.
    """

    name: str
    topics: tuple[str, ...]
    partitions: int
    storage: Storage
    coordination: Coordination
    protocol: str
    protocol_type: str | None
    strategy: str
    state: str
    members: int
    subscription: str
    lag: int | None
    growth: float | None
    headroom: float | None
    lost: int
    rebalances: float | None
    commit_interval: float | None
    last_commit: int | None


READY = 100
"""The score of a group of which nothing is to be said."""
_TYPES = {"Classic": GroupType.CLASSIC, "Consumer": GroupType.CONSUMER}
"""As captures name those that they can describe."""


@dataclass(frozen=True, slots=True)
class Term:
    """What is taken off the score, and why. A blocker takes all of it."""

    points: int
    reason: str
    blocker: bool = False


@dataclass(frozen=True, slots=True)
class Readiness:
    """`score` is 0 to 100; 0 with a blocker."""

    score: int
    terms: tuple[Term, ...]

    @property
    def blockers(self) -> tuple[str, ...]:
        return tuple(term.reason for term in self.terms if term.blocker)


def judge(group: Group, now: int, dead_seconds: int) -> Readiness:
    """The readiness of a group at `now` (ms)."""
    terms = (*_blockers(group, now, dead_seconds), *_terms(group))
    score = 0 if any(term.blocker for term in terms) else max(1, READY - sum(term.points for term in terms))
    return Readiness(score, terms)


def _blockers(group: Group, now: int, dead_seconds: int) -> Iterator[Term]:
    idle = group.last_commit is None or now - group.last_commit > dead_seconds * 1000
    if group.coordination is Coordination.BOTH:
        yield _blocker("has members in ZooKeeper and in Kafka: a migration is under way, or two applications share it")
    elif group.coordination is not Coordination.ZOOKEEPER:
        yield from _of_kafka(group, idle=idle)
    if group.lost:
        yield _blocker(f"{group.lost} partitions have lost records to retention before they were consumed")
    if not group.topics:
        yield _blocker("reads no topic that is known")


def _blocker(reason: str) -> Term:
    return Term(READY, reason, blocker=True)


def _of_kafka(group: Group, *, idle: bool) -> Iterator[Term]:
    """As Preflight judges it, as far as captures show."""
    dead = _blocker("dead: no member, and no commit for a long time" if idle else "no member runs: start it")
    standing = _standing(group)
    if standing is None and group.coordination is Coordination.NONE and group.storage in (Storage.ZOOKEEPER, Storage.NONE):
        yield dead
    elif standing is None:
        yield _blocker("what kind of group it is is not known: no capture describes it and its members, as of Kafka Streams,"
                       " share consumers, or groups that a capture may not Describe")
    else:
        for each in obstacles(standing, MemberProtocol.CLASSIC):
            match each.kind:
                case Kind.NO_MEMBERS:
                    yield dead
                case Kind.NOT_STABLE:
                    yield Term(25, each.message)
                case _:
                    yield _blocker(each.message)


def _standing(group: Group) -> Standing | None:
    """None where no capture shows what kind of group it is."""
    members = group.members if group.coordination is Coordination.KAFKA else 0
    kind, protocol_type = _TYPES.get(group.protocol), group.protocol_type
    if kind is GroupType.CONSUMER:
        protocol_type = "consumer"
    elif kind is GroupType.CLASSIC and not members:
        protocol_type = protocol_type or ""           # only committed offsets
    elif not group.protocol and protocol_type not in (None, "consumer"):
        kind = GroupType.CLASSIC                      # captures describe consumers' groups alone; its record has the rest
    if kind is None or protocol_type is None:
        return None
    state = GroupState(group.state) if group.state in set(GroupState) else None
    own = MemberProtocol.CONSUMER if kind is GroupType.CONSUMER else MemberProtocol.CLASSIC
    return Standing(group.name, kind, state, protocol_type, group.strategy, (own,) * members)


def _terms(group: Group) -> Iterator[Term]:
    if group.storage is Storage.BOTH and group.coordination is Coordination.ZOOKEEPER:
        yield Term(10, "commits to both stores (dual.commit.enabled): compare them before")
    if group.subscription in ("white_list", "black_list"):
        yield Term(15, f"subscribes by a {group.subscription.replace('_', ' ')}: new topics come in by themselves")
    if group.rebalances is not None and group.rebalances > 24:
        yield Term(20, f"rebalances {group.rebalances:.0f} times a day")
    if group.headroom is not None and group.headroom < 0.1 and group.lag:
        yield Term(30, f"retention is near: {max(group.headroom, 0.0):.0%} of a log lies before its offset")
    if group.growth is not None and group.lag and group.growth > max(0.01 * group.lag, 1000):
        yield Term(25, f"its lag grows by {group.growth:,.0f} records an hour")
    if group.commit_interval is not None and group.commit_interval > 60_000:
        yield Term(10, f"commits every {group.commit_interval / 1000:.0f} s: the gates' limits must be above that")
    if group.lag is None:
        yield Term(10, "its lag is not known")
