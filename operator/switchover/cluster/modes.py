"""The modes of Kafka's nodes by what they have in common, and Kafka's own names in them: which keys a mode sets, removes or
moves (`door.edits` does it)."""

from collections.abc import Mapping
from dataclasses import dataclass

from switchover.api.kafka_migration import NodeMode
from switchover.kafka.releases import FINAL_LEVELS, FIRST_LEVELS
from switchover.network.addresses import Address

WITHOUT_QUORUM = (NodeMode.ZOOKEEPER, NodeMode.ZOOKEEPER_PINNED, NodeMode.ZOOKEEPER_RAISED)
"""The modes of brokers that know of no controllers of KRaft."""
ON_KRAFT = (NodeMode.KRAFT, NodeMode.OWN_KRAFT)
"""Those of brokers on KRaft: by their edits, and by the user's own configuration."""
BROKERS = (*WITHOUT_QUORUM, NodeMode.MIGRATION, *ON_KRAFT)
"""Those of all brokers, in the order in which a migration brings them."""
RUNNING_CONTROLLERS = (NodeMode.MIGRATION_CONTROLLER, NodeMode.KRAFT_CONTROLLER)
CONTROLLERS = (*RUNNING_CONTROLLERS, NodeMode.STOPPED)

ACL_AUTHORIZER = "kafka.security.authorizer.AclAuthorizer"
MIGRATION_FLAG = "zookeeper.metadata.migration.enable"
DEFAULT_PROTOCOL_MAP = "PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT,SASL_SSL:SASL_SSL"
"""What Kafka assumes where `listener.security.protocol.map` is absent (SocketServerConfigs)."""

ZOOKEEPER_ONLY = ("zookeeper.", "inter.broker.protocol.version", "log.message.format.version", "broker.id",
                  "control.plane.listener.name", "password.encoder.", "reserved.broker.max.id")
"""Keys that no broker on KRaft has; one that ends in a dot means all that begin so."""
BROKER_ONLY = ("broker.id", "broker.rack", "listeners", "advertised.listeners", "log.dir", "log.dirs", "host.name",
               "port", "control.plane.listener.name", "inter.broker.protocol.version", "log.message.format.version",
               "reserved.broker.max.id", "metadata.log.dir")
"""Keys that no controller has; only their values may differ from broker to broker."""
MIGRATION_ONLY = ("zookeeper.", "password.encoder.", "inter.broker.listener.name", "security.inter.broker.protocol",
                  "sasl.mechanism.inter.broker.protocol")
"""Keys that a controller has only while it migrates."""

OWN_STORES = tuple(f"ssl.{name}" for name in (
    "keystore.type", "keystore.location", "keystore.password", "keystore.key", "keystore.certificate.chain",
    "key.password", "truststore.type", "truststore.location", "truststore.password", "truststore.certificates"))
"""Keys and certificates for every listener that has none under its own name."""

PROTOCOL_VERSION = "inter.broker.protocol.version"
FETCH, LEADER_AND_ISR = 1, 4
FETCH_OF_3_9 = 17
"""Kafka 3.9 is the first release whose brokers speak Fetch v17, and the last one with ZooKeeper (FetchRequest.json)."""
LEADER_AND_ISR_OF_3_4 = 7
"""Kafka 3.4, the first with migrations, is the first that speaks LeaderAndIsr v7 (KIP-866, LeaderAndIsrRequest.json)."""
METADATA_LEVELS: Mapping[str, int] = {release: FINAL_LEVELS[release] for release in ("3.6", "3.7", "3.8", "3.9")}
"""inter.broker.protocol.version -> finalized level of metadata.version (3.6-IV2, 3.7-IV4, 3.8-IV0, 3.9-IV0). 3.6 is
the first release whose level allows a migration to begin (KAFKA-17457), 3.9 the last one with ZooKeeper."""

CONTROLLERS_REGISTER = FIRST_LEVELS["3.7"]
"""The level from which controllers register in the metadata log, 3.7-IV0; below it ApiVersions alone shows that they are
ready (run with 3.6: docs/facts/upgrade.md)."""
RAISED = "3.9"
"""What the mode ZooKeeperRaised gives brokers whose own protocol version is too old for a migration."""
RAISABLE = ("2.8", "3.0", "3.1", "3.2", "3.3", "3.4", "3.5")
"""Protocol versions from which upgrade and rollback were run with data (both ends: tests/adapters/test_protocol_version.py).
Older ones have no topic ids, which a migration needs and a rollback would leave in place."""


@dataclass(frozen=True, slots=True)
class ControllerListener:
    """The listener of the controllers, as every node must know it. `settings` are its TLS and SASL properties."""

    name: str
    port: int
    security_protocol: str
    settings: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Voters:
    """The static quorum: node id -> address, and the listener they speak on."""

    addresses: Mapping[int, Address]
    listener: ControllerListener

    def __str__(self) -> str:
        return ",".join(f"{node_id}@{address}" for node_id, address in sorted(self.addresses.items()))


def release_of(version: str) -> str:
    """The release of a protocol version as Kafka reads it: 3.5 of 3.5-IV2 and of 3.5.1."""
    return ".".join(version.strip().split("-")[0].split(".")[:2])


def moved_stores(voters: Voters) -> tuple[str, ...]:
    """The user's stores for all listeners, when the controllers' listener has its own.

    Kafka takes those for the controllers' listener, too, and then refuses two stores of different kinds at once
    (DefaultSslEngineFactory).
    """
    return OWN_STORES if any(".ssl.keystore." in key for key in voters.listener.settings) else ()

