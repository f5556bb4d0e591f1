"""What an application asks for: the configuration of a migration-enabled consumer, and the topics it subscribes to."""

import re
import socket
import time
import uuid
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, TypeVar

from switchover.consumer.member.following import Rules
from switchover.coordination.assignment import Strategy, Text
from switchover.coordination.registration import Registration, Subscribed, differs_in_java

T = TypeVar("T")

EMBEDDED = "coordination.migration."
"""What follows it is a key of the embedded group member's own."""

_NAME = re.compile(r"[A-Za-z0-9._-]+")
_TEXTS = {"0.11": Text.UP_TO_0_11, "1.0": Text.SINCE_1_0}
_RESETS = {"smallest": "earliest", "earliest": "earliest", "largest": "latest", "latest": "latest"}
_NOT_YOURS = frozenset({
    "client.id", "group.instance.id", "group.protocol", "group.remote.assignor", "enable.auto.offset.store"})
_NOT_THEIRS = _NOT_YOURS | {"group.id", "enable.auto.commit", "partition.assignment.strategy", "bootstrap.servers"}


class BadConfiguration(ValueError):
    """The configuration, or a subscription, cannot be used; says which key, why, and what would do."""


class Store(StrEnum):
    """`offsets.storage`."""

    ZOOKEEPER = "zookeeper"
    KAFKA = "kafka"


@dataclass(frozen=True, slots=True)
class Settings:
    """What `parsed` makes of the dictionary. Times are in seconds; `fetching` and `embedded` are librdkafka's keys."""

    group: str
    zookeeper: str
    consumer_id: str
    rules: Rules
    stores: frozenset[Store]            # in which offsets are written, and of which the later one counts
    bootstrap: str = ""                 # empty: the brokers that ZooKeeper names
    session_timeout: float = 6.0
    connection_timeout: float = 6.0
    max_poll_interval: float = 300.0
    poll_interval: float = 0.25
    reset: str = "latest"
    fetching: Mapping[str, Any] = field(default_factory=dict)
    embedded: Mapping[str, Any] = field(default_factory=dict)


def parsed(configuration: Mapping[str, Any]) -> Settings:
    """The settings. Raises BadConfiguration; what librdkafka thinks of its own keys is seen when a client is made."""
    left = dict(configuration)

    def take(key: str, default: T, convert: Callable[[Any], T]) -> T:
        if key not in left:
            return default
        value = left.pop(key)
        try:
            return convert(value)
        except (KeyError, ValueError) as problem:
            why = str(problem) if isinstance(problem, BadConfiguration) else ""
            raise BadConfiguration(f"{key} cannot be {value!r}{': ' if why else ''}{why}") from None

    group = take("group.id", "", _name)
    zookeeper = take("zookeeper.connect", "", str)
    for key, value in (("group.id", group), ("zookeeper.connect", zookeeper)):
        if not value:
            raise BadConfiguration(f"{key} is missing")
    consumer_id = f"{group}_{take('consumer.id', '', _name) or _unique()}"
    enabled = take("coordination.migration.enabled", True, _flag)
    storage = take("offsets.storage", Store.ZOOKEEPER, Store)
    dual = take("dual.commit.enabled", storage is Store.KAFKA, _flag)
    if enabled and storage is Store.KAFKA and not dual:
        raise BadConfiguration(
            "offsets.storage=kafka without dual.commit.enabled cannot be migrated: old consumers would find old offsets in "
            "ZooKeeper. Set dual.commit.enabled=true on all members first, then offsets.storage=zookeeper")
    alias = take("auto.commit.enable", True, _flag)
    automatic = take("enable.auto.commit", alias, _flag)
    interval = take("auto.commit.interval.ms", 5.0, _seconds)
    strategy = take("partition.assignment.strategy", Strategy.RANGE, _choice(Strategy, "range or roundrobin, which both the "
                                                                            "old consumer and a Kafka group have"))
    rules = Rules(
        consumer_id, enabled, strategy, take("partition.assignment.roundrobin.text", Text.SINCE_1_0, _text),
        take("exclude.internal.topics", True, _flag), interval if automatic else None)
    session_timeout = take("zookeeper.session.timeout.ms", 6.0, _seconds)
    connection_timeout = take("zookeeper.connection.timeout.ms", session_timeout, _seconds)
    max_poll_interval = take("max.poll.interval.ms", 300.0, _seconds)
    poll_interval = take(f"{EMBEDDED}poll.interval.ms", 0.25, _seconds)
    reset = take("auto.offset.reset", "latest", _reset)
    bootstrap = take("bootstrap.servers", "", str)
    embedded = {key.removeprefix(EMBEDDED): left.pop(key) for key in list(left) if key.startswith(EMBEDDED)}
    for key in [*(_NOT_YOURS & left.keys()), *(EMBEDDED + each for each in _NOT_THEIRS & embedded.keys())]:
        raise BadConfiguration(f"{key} is not yours to set: the consumer needs it for itself")
    both = {Store.ZOOKEEPER, Store.KAFKA}
    return Settings(
        group, zookeeper, consumer_id, rules, frozenset(both if enabled or (storage is Store.KAFKA and dual) else {storage}),
        bootstrap, session_timeout, connection_timeout, max_poll_interval, poll_interval, reset, left, embedded)


def _unique() -> str:
    """As the old consumer names itself, so that people find the pod in it."""
    return f"{_name(socket.gethostname())}-{int(time.time() * 1000)}-{uuid.uuid4().hex[:8]}"


def _name(value: Any) -> str:
    if not isinstance(value, str) or not _NAME.fullmatch(value):
        raise BadConfiguration("only letters, digits, dot, dash and underscore of ASCII sort alike everywhere")
    return value


def _flag(value: Any) -> bool:
    return {"true": True, "false": False}[str(value).lower()]


def _seconds(value: Any) -> float:
    milliseconds = int(value)
    if milliseconds <= 0:
        raise BadConfiguration("it must be more than 0 ms")
    return milliseconds / 1000


def _text(value: Any) -> Text:
    if str(value) not in _TEXTS:
        raise BadConfiguration("0.11 where the group's old members are 0.11 or older, 1.0 where they are newer")
    return _TEXTS[str(value)]


def _reset(value: Any) -> str:
    if value not in _RESETS:
        raise BadConfiguration(f"it is one of {', '.join(_RESETS)}")
    return _RESETS[value]


def _choice(kind: Callable[[Any], T], allowed: str) -> Callable[[Any], T]:
    def choose(value: Any) -> T:
        try:
            return kind(value)
        except ValueError:
            raise BadConfiguration(f"it is {allowed}") from None
    return choose


_TOPIC = re.compile(r"[A-Za-z0-9._-]{1,249}")


def registered(topics: Iterable[str] | Mapping[str, int], whitelist: str, blacklist: str, streams: int) -> Registration:
    """Raises BadConfiguration for what is no subscription, or not the same one to members in Java."""
    if isinstance(topics, str):
        raise BadConfiguration(f"topics must be a list, not the text {topics!r}")
    counts = dict(topics) if isinstance(topics, Mapping) else dict.fromkeys(topics, streams)
    if sum(map(bool, (counts, whitelist, blacklist))) != 1:
        raise BadConfiguration("exactly one of topics, whitelist and blacklist must be given")
    for count in (*counts.values(), streams):
        if type(count) is not int or not 1 <= count <= 100:
            raise BadConfiguration(f"{count!r} is no number of streams: 1 to 100 are")
    stamp = int(time.time() * 1000)
    if counts:
        for topic in counts:
            if not isinstance(topic, str) or not _TOPIC.fullmatch(topic):
                raise BadConfiguration(f"{topic!r} is no name of a topic; expressions go into whitelist or blacklist")
        return Registration(counts, timestamp=stamp)
    pattern = whitelist or blacklist
    if differs_in_java(pattern):
        raise BadConfiguration(f"{pattern!r} may not mean the same in Java and in Python, and members must agree: use "
                               "names, | or commas, classes of characters, and . * + ?")
    return Registration({pattern: streams}, Subscribed.WHITE_LIST if whitelist else Subscribed.BLACK_LIST, stamp)
