"""A ZooKeeper tree with every kind of metadata, as Kafka writes it, and the faults that were planted in one
(docs/facts/rehearsal.md): what a rehearsal has to say of each."""

import json
from collections.abc import Callable
from dataclasses import dataclass

from fakes.metadata_sides import config, nodes_of
from switchover.metadata.cluster import (
    Acl,
    Assignment,
    ClusterMetadata,
    Hidden,
    Resource,
    Scram,
    Token,
    Topic,
)
from switchover.metadata.tree import state_path
from switchover.zookeeper.tree import COPIED

Nodes = dict[str, bytes | None]
BROKERS = (1, 2)
KEYS = Hidden((bytes(range(20)), bytes(range(64)), bytes(range(64, 128))))
TOKEN = Token("User:alice", "User:bob", ("User:carol",), 1_700_000_000_000, 1_999_999_999_999, 1_999_999_999_999)

METADATA = ClusterMetadata(
    topics={f"topic-{number}": Topic(f"{'A' * 20}{number}g", {
        index: Assignment((BROKERS[index % 2], BROKERS[(index + 1) % 2])) for index in range(3)}) for number in range(8)},
    configs={
        Resource("topic", "topic-1"): {"cleanup.policy": "compact", "segment.bytes": "1048576"},
        Resource("topic", "topic-2"): {"retention.ms": "86400000"},
        Resource("broker", "1"): {"log.cleaner.threads": "2"},
        Resource("broker", ""): {"message.max.bytes": "2000000"},
    },
    quotas={
        (("user", "alice"),): {"producer_byte_rate": 1048576.0},
        (("user", "CN=Jürgen Groß,O=a@b/c*"),): {"consumer_byte_rate": 1048576.0},
        (("client-id", "app one"), ("user", "bob")): {"consumer_byte_rate": 2097152.0},
        (("client-id", None),): {"request_percentage": 150.0},
        (("ip", "127.0.0.9"),): {"connection_creation_rate": 99.0},
        (("user", None),): {"producer_byte_rate": 5000000.0},
    },
    acls=frozenset({
        Acl("User:alice", "*", "Allow", "Read", "Topic", "literal", "topic-1"),
        Acl("User:bob", "127.0.0.1", "Deny", "All", "Group", "prefixed", "g-"),
        Acl("User:ops", "*", "Allow", "Alter", "Cluster", "literal", "kafka-cluster"),
    }),
    scram={("alice", "SCRAM-SHA-512"): Scram(4096, KEYS), ("bob", "SCRAM-SHA-256"): Scram(8192, KEYS)},
    tokens={"token-1": TOKEN},
    next_producer_id=5000,
)


def clean() -> Nodes:
    """Two brokers in ZooKeeper mode, and nothing wrong."""
    nodes = nodes_of(METADATA)
    nodes |= dict.fromkeys(path for path in COPIED if path not in nodes)
    nodes["/cluster/id"] = json.dumps({"version": "1", "id": "rehearsal-Cluster-AAAA"}).encode()
    nodes["/controller_epoch"] = b"7"
    for broker in BROKERS:
        nodes[f"/brokers/ids/{broker}"] = json.dumps({
            "features": {}, "listener_security_protocol_map": {"PLAINTEXT": "PLAINTEXT"}, "version": 5, "jmx_port": -1,
            "endpoints": [f"PLAINTEXT://kafka-{broker}:9092"], "host": f"kafka-{broker}", "port": 9092,
            "timestamp": "1732500000000"}).encode()
    for name, topic in METADATA.topics.items():
        for index, assignment in topic.partitions.items():
            nodes[state_path(name, index)] = state(assignment.replicas[0], list(assignment.replicas))
    return nodes


def state(leader: int, isr: list[int]) -> bytes:
    return json.dumps({"controller_epoch": 7, "leader": leader, "version": 1, "leader_epoch": 3, "isr": isr}).encode()


def acls(*entries: tuple[str, str, str, str], version: int = 1) -> bytes:
    return json.dumps({"version": version, "acls": [
        {"principal": who, "permissionType": permission, "operation": operation, "host": host}
        for who, permission, operation, host in entries]}).encode()


@dataclass(frozen=True)
class Fault:
    """What is planted, and what a rehearsal says: a reason and its node, or nothing."""

    plant: Callable[[Nodes], object]
    reason: str = ""
    subject: str = ""


def topic(name: str, **changes: object) -> Callable[[Nodes], None]:
    """Change fields of a topic's node; None takes one away."""
    def plant(nodes: Nodes) -> None:
        fields = json.loads(nodes[f"/brokers/topics/{name}"] or b"{}") | changes
        nodes[f"/brokers/topics/{name}"] = json.dumps(
            {key: value for key, value in fields.items() if value is not None}).encode()
    return plant


def node(path: str, data: bytes | None) -> Callable[[Nodes], None]:
    """Put a node there."""
    return lambda nodes: nodes.__setitem__(path, data)


READ = ("User:u", "Allow", "Read", "*")
EVIL_CLIENT, EVIL_USER, EVIL_ACL = "/config/clients/evil", "/config/users/evil", "/kafka-acl/Topic/evil"
TOPIC, STATE = "/brokers/topics/topic-3", "/brokers/topics/topic-3/partitions/1/state"
SALTED = f"salt={'A' * 28},stored_key={'B' * 88},server_key={'C' * 88},iterations=4096"

ENDS, STUCK, STALLS, DIES = "CopyWouldFail", "DualWriteWouldNotBegin", "ClaimWouldNotCome", "BrokersWouldEnd"

FAULTS: dict[str, Fault] = {
    "nothing": Fault(lambda nodes: None),
    "quota is no number": Fault(node(EVIL_USER, config({"producer_byte_rate": "not-a-number"})), ENDS, EVIL_USER),
    "quota with a decimal": Fault(node(EVIL_CLIENT, config({"producer_byte_rate": "1048576.5"})), STUCK, EVIL_CLIENT),
    "unknown quota": Fault(node(EVIL_CLIENT, config({"foo_rate": "10"})), STUCK, EVIL_CLIENT),
    "unknown quota of words": Fault(node(EVIL_CLIENT, config({"owner": "team-a"})), ENDS, EVIL_CLIENT),
    "quota of a host that is none": Fault(
        node("/config/ips/no-such-host.invalid", config({"connection_creation_rate": "10"})), "BrokersWouldComplain"),
    "broken escape": Fault(node("/config/users/50%off", config({"producer_byte_rate": "1"})), ENDS, "/config/users/50%off"),
    "user not sanitized": Fault(
        node("/config/users/CN=x,O=y", config({"producer_byte_rate": "1048576"})), "NodeWouldBeCreated",
        "/config/users/CN%3Dx%2CO%3Dy"),
    "SCRAM without keys": Fault(node(EVIL_USER, config({"SCRAM-SHA-512": "salt=xyz"})), ENDS, EVIL_USER),
    "unknown mechanism": Fault(node(EVIL_USER, config({"SCRAM-SHA-1": SALTED})), ENDS, EVIL_USER),
    "setting no broker starts with": Fault(
        node("/config/topics/topic-2", config({"retention.ms": "abc"})), DIES, "/config/topics/topic-2"),
    "setting is a number": Fault(
        node("/config/topics/topic-2", b'{"version":1,"config":{"retention.ms":86400000}}'), ENDS, "/config/topics/topic-2"),
    "unknown setting": Fault(node("/config/topics/topic-2", config({"foo.bar": "1", "message.format.version": "0.10.0"}))),
    "settings of a topic that is gone": Fault(
        node("/config/topics/gone", config({"retention.ms": "1"})), "NodeWouldBeDeleted", "/config/topics/gone"),
    "ACL of an unknown operation": Fault(
        node(EVIL_ACL, acls(("User:u", "Allow", "Frobnicate", "*"))), "MetadataWouldDiffer"),
    "ACL for nobody": Fault(node(EVIL_ACL, acls(("nobody", "Allow", "Read", "*"))), ENDS, EVIL_ACL),
    "ACL for a host name": Fault(node(EVIL_ACL, acls(("User:u", "Allow", "Read", "kafka.example.invalid")))),
    "ACLs of another version": Fault(node(EVIL_ACL, acls(READ, version=2)), ENDS, EVIL_ACL),
    "ACLs not JSON": Fault(node(EVIL_ACL, b"{"), "MetadataWouldBeLost", EVIL_ACL),
    "ACLs without entries": Fault(node(EVIL_ACL, acls()), "NodeWouldBeDeleted", EVIL_ACL),
    "7,000 ACLs in a node": Fault(node(EVIL_ACL, acls(*((f"User:u{n}", "Allow", "Read", "*") for n in range(7000))))),
    "topic without an id": Fault(topic("topic-3", topic_id=None), STALLS, TOPIC),
    "topic marked for deletion": Fault(
        node("/admin/delete_topics/topic-7", None), "TopicWouldGo", "/brokers/topics/topic-7"),
    "partition without a state": Fault(lambda nodes: nodes.pop(STATE)),
    "state not JSON": Fault(node(STATE, b'{"leader":')),
    "no leader": Fault(node(STATE, state(-1, [1]))),
    "nobody in sync": Fault(node(STATE, state(-1, []))),
    "reassignment under way": Fault(topic("topic-3", adding_replicas={"0": [1]})),
    "replica on a broker that is gone": Fault(
        topic("topic-3", partitions={"0": [1, 9]}), "DeadBrokerInAssignment", "/brokers/ids"),
    "topic not JSON": Fault(node(TOPIC, b'{"version"'), STALLS, TOPIC),
    "topic without data": Fault(node(TOPIC, b""), STALLS, TOPIC),
    "two topics with one id": Fault(topic("topic-3", topic_id=METADATA.topics["topic-4"].id), "TopicWouldVanish"),
    "partition without replicas": Fault(topic("topic-3", partitions={"0": []})),
    "hole in the partitions": Fault(topic("topic-3", partitions={"0": [1], "2": [1]})),
    "no producer ever": Fault(node("/latest_producer_id_block", None)),
    "producer ids empty": Fault(node("/latest_producer_id_block", b""), ENDS, "/latest_producer_id_block"),
    "producer ids malformed": Fault(
        node("/latest_producer_id_block", b'{"version":1,"broker":1}'), ENDS, "/latest_producer_id_block"),
}


def planted(*names: str) -> Nodes:
    """The tree with these faults."""
    nodes = clean()
    for name in names:
        FAULTS[name].plant(nodes)
    return nodes
