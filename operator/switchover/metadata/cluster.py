"""A cluster's metadata, in one form for either side: the ZooKeeper tree or the metadata log.

Not compared, because dual write does not carry it or it belongs to one side alone: leaders and in-sync replicas,
registrations, features, and configurations of anything but topics and brokers.
"""

from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar

K = TypeVar("K")

TOPIC, BROKER = "topic", "broker"
QUOTA, SCRAM_USER = "quota", "SCRAM user"
DEFAULT = "(default)"
ABSENT = "nothing"
LIMIT = 1000
"""How many differences are named: beyond that, more say nothing more."""


@dataclass(frozen=True, slots=True, repr=False)
class Hidden:
    """A secret value: it can be compared, and is never shown."""

    value: str | bytes | tuple[bytes, ...]

    def __repr__(self) -> str:
        return "(hidden)"


class Assignment(NamedTuple):
    """The replicas of a partition; `adding` and `removing` are those of a reassignment under way."""

    replicas: tuple[int, ...]
    adding: tuple[int, ...] = ()
    removing: tuple[int, ...] = ()

    def __str__(self) -> str:
        moves = ((" adding", self.adding), (" removing", self.removing))
        return f"replicas {list(self.replicas)}" + "".join(f"{name} {list(ids)}" for name, ids in moves if ids)


class Topic(NamedTuple):
    """A topic: its id as Kafka writes it (base64), None where it has none, and its partitions."""

    id: str | None
    partitions: Mapping[int, Assignment]

    def __str__(self) -> str:
        return f"id {self.id}, {len(self.partitions)} partitions"


class Resource(NamedTuple):
    """What a configuration belongs to: type `topic` or `broker`; the empty name is the default of all brokers."""

    type: str
    name: str


Entity = tuple[tuple[str, str | None], ...]
"""Whom a quota is for: (type, name) of user, client-id or ip, ordered by type; the name None is the default."""


class Acl(NamedTuple):
    """One access control entry, spelled as in Kafka's ZooKeeper nodes."""

    principal: str
    host: str
    permission: str
    operation: str
    resource: str
    pattern: str
    name: str

    def __str__(self) -> str:
        return (f"{self.permission} {self.principal} from {self.host} {self.operation} on {self.resource} {self.pattern} "
                f"{self.name}")


class Scram(NamedTuple):
    """A SCRAM credential; `keys` are salt, stored key and server key."""

    iterations: int
    keys: Hidden

    def __str__(self) -> str:
        return f"{self.iterations} iterations, salt and keys {self.keys}"


class Token(NamedTuple):
    """A delegation token's description; times in milliseconds. Its HMAC is stored on neither side."""

    owner: str
    requester: str
    renewers: tuple[str, ...]
    issued: int
    expires: int
    latest: int

    def __str__(self) -> str:
        return (f"owner {self.owner}, requester {self.requester}, renewers {list(self.renewers)}, issued {self.issued}, "
                f"expires {self.expires}, at the latest {self.latest}")


@dataclass(frozen=True, slots=True)
class ClusterMetadata:
    """Every kind of metadata that dual write carries. `malformed` holds nodes that cannot be read: path -> why.

    `epochs` are the partitions' epochs, (topic, index) -> version: in ZooKeeper that of the node of its state, None where
    they were not read. They are no metadata, and are compared by `behind` alone.
    """

    topics: Mapping[str, Topic] = field(default_factory=dict)
    configs: Mapping[Resource, Mapping[str, str | Hidden]] = field(default_factory=dict)
    quotas: Mapping[Entity, Mapping[str, float]] = field(default_factory=dict)
    acls: Set[Acl] = frozenset()
    scram: Mapping[tuple[str, str], Scram] = field(default_factory=dict)        # (user, mechanism)
    tokens: Mapping[str, Token] = field(default_factory=dict)                   # token id
    next_producer_id: int | None = None
    malformed: Mapping[str, str] = field(default_factory=dict)
    epochs: Mapping[tuple[str, int], int] | None = field(default=None, compare=False)


class Behind(NamedTuple):
    """A partition whose state has a lower version in ZooKeeper than its epoch in KRaft, by so many.

    Dual write sets a state once for several changes that it learns of together; every change counts in KRaft.
    """

    topic: str
    partition: int
    by: int
    topic_id: str | None = None                     # a topic that was created again is another


def behind(zookeeper: ClusterMetadata, kraft: ClusterMetadata) -> tuple[Behind, ...]:
    """The partitions whose leaders a ZooKeeper controller would not believe: it takes one that knows a newer version of the
    state than it does for another controller's (NOT_CONTROLLER, `KafkaController.tryProcessAlterPartition` of 3.9), and a
    broker takes no older state from a controller (`Partition.makeLeader`)."""
    known = kraft.epochs or {}
    return tuple(Behind(*key, known[key] - version, _id(kraft, key[0]))
                 for key, version in (zookeeper.epochs or {}).items() if known.get(key, 0) > version)


class Difference(NamedTuple):
    """One thing on which the two sides do not agree; no secret is in it.

    `topic_id` is that of its topic in KRaft, None where it is of none: of another topic it is another difference.
    """

    kind: str
    key: str
    zookeeper: str
    kraft: str
    topic_id: str | None = None

    def __str__(self) -> str:
        return f"{self.kind} {self.key}: ZooKeeper says {self.zookeeper}, KRaft says {self.kraft}"


def difference(zookeeper: ClusterMetadata, kraft: ClusterMetadata) -> tuple[Difference, ...]:
    """What differs between the two sides, by kind and key; at most LIMIT."""
    found: list[Difference] = []
    for kind, key, left, right, topic in _unequal(zookeeper, kraft):
        found.append(Difference(kind, key, *_texts(left, right), _id(kraft, topic)))
        if len(found) == LIMIT:
            break
    return tuple(found)


def _texts(left: object, right: object) -> tuple[str, str]:
    said = tuple(ABSENT if value is None else repr(value) if isinstance(value, str) else str(value)
                 for value in (left, right))
    if said[0] == said[1]:                          # what is hidden looks the same
        return said[0], f"another value, {said[1]}"
    return said[0], said[1]


def _id(metadata: ClusterMetadata, topic: str | None) -> str | None:
    found = metadata.topics.get(topic) if topic is not None else None
    return found.id if found is not None else None


def _unequal(zookeeper: ClusterMetadata, kraft: ClusterMetadata) -> Iterator[tuple[str, str, Any, Any, str | None]]:
    """(kind, key, ZooKeeper's value, KRaft's value, the topic that it is of)."""
    for path, why, _ in _pairs(zookeeper.malformed, kraft.malformed):
        yield "znode", path, why, None, None
    for name, left, right in _pairs(zookeeper.topics, kraft.topics):
        if left is None or right is None or left.id != right.id:
            yield "topic", name, left, right, name
        else:
            for index, ours, theirs in _pairs(left.partitions, right.partitions):
                yield "partition", f"{name}-{index}", ours, theirs, name
    for resource, key, left, right in _nested(zookeeper.configs, kraft.configs):
        topic = resource.name if resource.type == TOPIC else None
        yield f"{resource.type} configuration", f"{resource.name or DEFAULT} {key}", left, right, topic
    for entity, key, left, right in _nested(zookeeper.quotas, kraft.quotas):
        yield QUOTA, f"{entity_text(entity)} {key}", left, right, None
    for acl in sorted(zookeeper.acls ^ kraft.acls):
        there = acl in zookeeper.acls
        yield "ACL", str(acl), "present" if there else None, None if there else "present", None
    for (user, mechanism), left, right in _pairs(zookeeper.scram, kraft.scram):
        yield SCRAM_USER, f"{user} {mechanism}", left, right, None
    for token, left, right in _pairs(zookeeper.tokens, kraft.tokens):
        yield "delegation token", token, left, right, None
    if zookeeper.next_producer_id != kraft.next_producer_id:
        yield "producer ids", "next", zookeeper.next_producer_id, kraft.next_producer_id, None


def _pairs(left: Mapping[K, Any], right: Mapping[K, Any]) -> Iterator[tuple[K, Any, Any]]:
    """The keys with unequal values, in order; None stands for a key that is not there."""
    if left == right:
        return
    keys = [key for key, value in left.items() if right.get(key) != value]
    keys += [key for key in right if key not in left]
    for key in sorted(keys, key=str):
        yield key, left.get(key), right.get(key)


def _nested(left: Mapping[K, Mapping[str, Any]],
            right: Mapping[K, Mapping[str, Any]]) -> Iterator[tuple[K, str, Any, Any]]:
    for outer, ours, theirs in _pairs(left, right):
        for inner, one, other in _pairs(ours or {}, theirs or {}):
            yield outer, inner, one, other


def entity_text(entity: Entity) -> str:
    """Whom a quota is for, as a message names it."""
    return ", ".join(f"{kind} {DEFAULT if name is None else name}" for kind, name in entity)
