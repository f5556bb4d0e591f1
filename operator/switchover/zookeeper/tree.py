"""Which nodes of a cluster's ZooKeeper tree a rehearsal works on, and what it must know of them (docs/rehearsal.md).

Paths are below the cluster's chroot. A node without data (None) is not one with empty data (b""): Kafka reads
the second as broken JSON.
"""

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from switchover.metadata.cluster import ClusterMetadata
from switchover.metadata.node_json import document, mapping, replicas
from switchover.metadata.tree import TreeParser, assembled, state_path

COPIED = (
    "/admin/delete_topics", "/brokers/ids", "/brokers/topics", "/cluster/id", "/config/brokers", "/config/clients",
    "/config/ips", "/config/topics", "/config/users", "/controller_epoch", "/delegation_token/tokens", "/feature",
    "/kafka-acl", "/kafka-acl-extended", "/latest_producer_id_block")
"""What is copied, with all that is below. Left out: /controller and /migration, which belong to a controller that has
claimed; /consumers, which no migration reads; and what only signals that something else was written."""

_TOPIC = re.compile(r"/brokers/topics/[^/]+")
_STATE = re.compile(r"/brokers/topics/[^/]+/partitions/[^/]+/state")
_LEAF = re.compile(
    r"/config/(?:topics|brokers|ips|clients)/[^/]+|/config/users/[^/]+/clients/[^/]+|/kafka-acl/[^/]+/[^/]+"
    r"|/kafka-acl-extended/[^/]+/[^/]+/[^/]+|/delegation_token/tokens/[^/]+|/brokers/ids/[^/]+|/admin/delete_topics/[^/]+"
    r"|/cluster/id|/controller_epoch|/feature|/latest_producer_id_block|" + _STATE.pattern)
_METADATA = re.compile(
    r"/brokers/topics/[^/]+|/config/(?:topics|brokers|users|ips|clients)/[^/]+|/config/users/[^/]+/clients/[^/]+"
    r"|/kafka-acl/[^/]+/[^/]+|/kafka-acl-extended/[^/]+/[^/]+/[^/]+|/delegation_token/tokens/[^/]+|/feature"
    r"|/latest_producer_id_block")
_MOVES_BY_ITSELF = re.compile(rf"{_STATE.pattern}|/controller_epoch|/latest_producer_id_block")
_ID = re.compile(r"/brokers/ids/(\d+)")


@dataclass(frozen=True)
class Tree:
    """Nodes by path, the paths that may not be read, and the number of nodes that went while they were read.

    What follows from the nodes is worked out once: there may be a million of them.
    """

    nodes: Mapping[str, bytes | None]
    denied: tuple[str, ...] = ()
    gone: int = 0

    @cached_property
    def digest(self) -> str:
        """Of all but what brokers write while nobody changes anything, and of what their registrations say."""
        found = hashlib.sha256()
        for path in sorted(self.nodes):
            if _MOVES_BY_ITSELF.fullmatch(path):
                continue
            data = b"" if _ID.fullmatch(path) else self.nodes[path]
            found.update(f"{path}\0{-1 if data is None else len(data)}\0".encode() + (data or b""))
        return found.hexdigest()[:16]

    @cached_property
    def registered(self) -> tuple[int, ...]:
        """The brokers that are registered."""
        return tuple(sorted(int(found[1]) for path in self.nodes if (found := _ID.fullmatch(path))))

    @cached_property
    def assigned(self) -> frozenset[int]:
        """The brokers that have replicas, by the assignments that can be read."""
        return frozenset(broker for path, data in self.nodes.items() if _TOPIC.fullmatch(path)
                         for ids in _assignment(data).values() for broker in ids)

    @cached_property
    def topics(self) -> frozenset[str]:
        """The topics, but for those that are marked for deletion."""
        return frozenset(path.rpartition("/")[2] for path in self.nodes if _TOPIC.fullmatch(path)) - self.marked

    @cached_property
    def marked(self) -> frozenset[str]:
        """The topics that are marked for deletion."""
        return frozenset(path.rpartition("/")[2] for path in self.nodes if path.startswith("/admin/delete_topics/"))

    def metadata(self, secret: str | None = None) -> ClusterMetadata:
        """What the tree says, read as the gates read it; `secret` is the brokers' password.encoder.secret."""
        parser = TreeParser(secret)
        return assembled(parser.entries(path, data) for path, data in self.nodes.items() if is_metadata(path))


def is_metadata(path: str) -> bool:
    """Whether a node holds metadata of the cluster, rather than only what is below it or a state."""
    return _METADATA.fullmatch(path) is not None


def below(path: str, data: bytes | None) -> Sequence[str] | None:
    """The nodes that Kafka keeps below this one; None where ZooKeeper has to be asked.

    Those of a topic follow from its assignment, where that can be read: a listing for each partition is spared.
    """
    if _LEAF.fullmatch(path):
        return ()
    if _TOPIC.fullmatch(path):
        topic = path.rpartition("/")[2]
        return [state_path(topic, index) for index in _assignment(data)] or None
    return None


def to_create(nodes: Mapping[str, bytes | None]) -> Iterator[tuple[str, bytes | None]]:
    """Every node with its data, and those above them that are no nodes of the tree without: each after the one above it."""
    made: set[str] = set()
    for path in sorted(nodes):
        parts = path.split("/")
        for length in range(2, len(parts) + 1):
            each = "/".join(parts[:length])
            if each not in made:
                made.add(each)
                yield each, nodes.get(each)


def _assignment(data: bytes | None) -> Mapping[int, tuple[int, ...]]:
    try:
        return {int(index): replicas(ids) for index, ids in mapping(document(data), "partitions").items()}
    except ValueError:
        return {}
