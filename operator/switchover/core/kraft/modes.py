"""The server.properties of every node in every mode: a pure function of the user's file, the mode and the node.

The modes are those of kraft-migration.md 1.2 as run in feasibility-kraft.md section 2. The user's file is the ground:
lines that a mode does not touch, comments too, stay as they are.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType

from javaproperties import PropertiesFile

from switchover.core.kraft.facts import Address

ACL_AUTHORIZER = "kafka.security.authorizer.AclAuthorizer"
STANDARD_AUTHORIZER = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
MIGRATION_FLAG = "zookeeper.metadata.migration.enable"
DEFAULT_PROTOCOL_MAP = "PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT,SASL_SSL:SASL_SSL"
"""What Kafka assumes where `listener.security.protocol.map` is absent (SocketServerConfigs)."""

QUORUM_KEYS = frozenset({"controller.quorum.voters", "controller.listener.names", "listener.security.protocol.map"})
BROKER_KEYS = QUORUM_KEYS | {
    MIGRATION_FLAG, "process.roles", "node.id", "authorizer.class.name", "control.plane.listener.name"}
"""Keys that some mode of a broker sets, or must be without: none of them may be overridden on the command line.

Leftover overrides of broker.id (equal), zookeeper.connect and inter.broker.protocol.version do no harm in KRaft mode
(feasibility-implementation.md).
"""

ZOOKEEPER_ONLY = ("zookeeper.", "inter.broker.protocol.version", "log.message.format.version", "broker.id",
                  "control.plane.listener.name", "password.encoder.", "reserved.broker.max.id")
"""Keys that a broker on KRaft has not; one that ends in a dot stands for all that begin so."""
BROKER_ONLY = ("broker.id", "broker.rack", "listeners", "advertised.listeners", "log.dir", "log.dirs", "host.name",
               "port", "control.plane.listener.name", "inter.broker.protocol.version", "log.message.format.version",
               "reserved.broker.max.id")
"""Keys that no controller has; only their values may differ from broker to broker."""
MIGRATION_ONLY = ("zookeeper.", "password.encoder.", "inter.broker.listener.name", "security.inter.broker.protocol",
                  "sasl.mechanism.inter.broker.protocol")
"""Keys that a controller has only while it migrates."""

STOPPED = "switchover.stopped"
"""The one property of a controller's file in mode Stopped; the start script waits instead of starting Kafka."""
STOPPED_FILE = f"{STOPPED}=true\n"

OWN_STORES = tuple(f"ssl.{name}" for name in (
    "keystore.type", "keystore.location", "keystore.password", "keystore.key", "keystore.certificate.chain",
    "key.password", "truststore.type", "truststore.location", "truststore.password", "truststore.certificates"))
"""Keys and certificates for every listener that has none under its own name."""

PROTOCOL_VERSION = "inter.broker.protocol.version"
METADATA_LEVELS: Mapping[str, int] = {"3.6": 14, "3.7": 19, "3.8": 20, "3.9": 21}
"""inter.broker.protocol.version -> finalized level of metadata.version (MetadataVersion: 3.6-IV2, 3.7-IV4, 3.8-IV0,
3.9-IV0). 3.6 is the first release whose level allows a migration to begin (KAFKA-17457)."""

RAISED = "3.9"
"""What mode R gives brokers whose own protocol version is too old for a migration."""
RAISABLE = ("2.8", "3.0", "3.1", "3.2", "3.3", "3.4", "3.5")
"""Protocol versions from which the way up and back was run with data (both ends: tests/adapters/test_protocol_version.py).
Older ones have no topic ids, which a migration needs and which the way back would leave behind."""


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


@lru_cache(maxsize=64)
def properties(text: str) -> Mapping[str, str]:
    """The properties of a file, the last of a key winning as in Java. Raises ValueError for a malformed escape."""
    return MappingProxyType(dict(PropertiesFile.loads(text)))


def release_of(version: str) -> str:
    """The release of a protocol version as Kafka reads it: 3.5 of 3.5-IV2 and of 3.5.1."""
    return ".".join(version.strip().split("-")[0].split(".")[:2])


def is_too_old(text: str) -> bool:
    """Whether a file names a protocol version with which no migration can begin; without one it is Kafka's own."""
    try:
        return _is_too_old(properties(text))
    except ValueError:                             # no properties file names no version; others tell of it
        return False


def _is_too_old(file: Mapping[str, str]) -> bool:
    release = release_of(file.get(PROTOCOL_VERSION, ""))
    return release != "" and release not in METADATA_LEVELS


def without_quorum(text: str, mode: str) -> str:
    """The file of a broker that knows no controllers: mode A, the user's own, or R."""
    if mode == "A" or not is_too_old(text):
        return text
    return _edit(PropertiesFile.loads(text), (), {PROTOCOL_VERSION: RAISED})


def render_broker(text: str, mode: str, node_id: int, voters: Voters) -> str:
    """The broker's file in mode A (ZooKeeper), R (with the protocol version raised), B (with the flag) or C (KRaft)."""
    if mode in ("A", "R"):
        return without_quorum(text, mode)
    file = PropertiesFile.loads(text)
    raised = {PROTOCOL_VERSION: RAISED} if _is_too_old(file) else {}
    changes = _quorum_settings(file, voters)
    if mode == "B":
        return _edit(file, moved_stores(voters), {**changes, **raised, MIGRATION_FLAG: "true"})
    if mode == "C":
        changes |= {"process.roles": "broker", "node.id": str(node_id)} | _standard_authorizer(file)
        return _edit(file, (*ZOOKEEPER_ONLY, *moved_stores(voters)), changes)
    raise ValueError(f"a broker has no mode {mode!r}")


def render_controller(text: str, mode: str, node_id: int, voters: Voters, log_dir: str) -> str:
    """The controller's file in mode P (migrating), F (finalized) or Stopped, made from a broker's file.

    A KRaft controller decides with its own copy of settings such as default.replication.factor and
    min.insync.replicas, so everything that is not a broker's alone is carried over.
    """
    if mode == "Stopped":
        return STOPPED_FILE
    file = PropertiesFile.loads(text)
    changes = {
        **_quorum_settings(file, voters),
        **_standard_authorizer(file),
        "process.roles": "controller",
        "node.id": str(node_id),
        "listeners": f"{voters.listener.name}://:{voters.listener.port}",
        "log.dirs": log_dir,
    }
    if mode == "P":
        # Controllers connect to ZooKeeper-mode brokers there; registration wants it named (KAFKA-16468).
        if "inter.broker.listener.name" not in file:
            changes["inter.broker.listener.name"] = file.get("security.inter.broker.protocol", "PLAINTEXT")
        changes[MIGRATION_FLAG] = "true"
        return _edit(file, (*BROKER_ONLY, "security.inter.broker.protocol", *moved_stores(voters)), changes)
    if mode == "F":
        return _edit(file, (*BROKER_ONLY, *MIGRATION_ONLY, *moved_stores(voters)), changes)
    raise ValueError(f"a controller has no mode {mode!r}")


def _quorum_settings(file: Mapping[str, str], voters: Voters) -> dict[str, str]:
    listener = voters.listener
    protocols = (file.get("listener.security.protocol.map") or DEFAULT_PROTOCOL_MAP).split(",")
    others = [item.strip() for item in protocols if item.partition(":")[0].strip() != listener.name]
    return {
        "controller.quorum.voters": str(voters),
        "controller.listener.names": listener.name,
        "listener.security.protocol.map": ",".join([*others, f"{listener.name}:{listener.security_protocol}"]),
        **(_stores_by_listener(file, others) if moved_stores(voters) else {}),
        **listener.settings,
    }


def moved_stores(voters: Voters) -> tuple[str, ...]:
    """The user's stores for all listeners, when the controllers' listener has its own.

    Kafka takes those for the controllers' listener, too, and then refuses two stores of different kinds at once
    (DefaultSslEngineFactory).
    """
    return OWN_STORES if any(".ssl.keystore." in key for key in voters.listener.settings) else ()


def _stores_by_listener(file: Mapping[str, str], protocols: Iterable[str]) -> dict[str, str]:
    """The same stores under the name of each listener that uses them and has none itself."""
    listeners = [name.strip().lower() for name, _, protocol in (item.partition(":") for item in protocols)
                 if protocol.strip().upper().endswith("SSL")]
    moved = {f"listener.name.{name}.{key}": file[key] for name in listeners for key in OWN_STORES if key in file}
    return {key: value for key, value in moved.items() if key not in file}


def _standard_authorizer(file: Mapping[str, str]) -> dict[str, str]:
    replaced = file.get("authorizer.class.name", "").strip() == ACL_AUTHORIZER
    return {"authorizer.class.name": STANDARD_AUTHORIZER} if replaced else {}


def _edit(file: PropertiesFile, removed: Iterable[str], changes: Mapping[str, str]) -> str:
    """`file` without the keys in `removed` (one ending in '.' stands for all that begin so), with `changes` at its end."""
    exact = {name for name in removed if not name.endswith(".")}
    prefixes = tuple(name for name in removed if name.endswith("."))
    for key in [*file]:
        if key in changes or key in exact or (prefixes and key.startswith(prefixes)):
            del file[key]
    kept = file.dumps()
    if kept and not kept.endswith("\n"):
        kept += "\n"
    if kept.endswith("\\\n"):                       # a line that goes on to nowhere would go on to ours
        kept += "\n"
    ours = PropertiesFile()
    for key in sorted(changes):
        ours[key] = changes[key]
    return f"{kept}# set by Switchover for this mode\n{ours.dumps()}"
