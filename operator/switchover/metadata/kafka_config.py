"""What Kafka 3.9 takes for the value of a setting that stands in ZooKeeper, as its own ConfigDefs have it.

A broker parses every setting of a topic that it knows when it starts, on ZooKeeper as on KRaft, and ends where it cannot;
what it does not know it leaves alone. Quotas it does not know are what dual write cannot write (docs/facts/public-cases.md).
The tables are `LogConfig`'s, `QuotaConfigs`' and `BrokerFeatures`': Kafka is asked for them again by a test.
"""

import re
from collections.abc import Iterator, Mapping
from math import floor, inf
from typing import NamedTuple

from switchover.metadata.cluster import Entity, entity_text


class Definition(NamedTuple):
    """A key of a ConfigDef: its type, the range that its validator accepts, and the constants; of a number these are
    accepted besides the range.
    """

    type: str
    low: float = -inf
    high: float = inf
    constants: tuple[str, ...] = ()


_BLANKS = "".join(map(chr, range(33)))           # what String.trim takes off
_WHOLE = re.compile(r"[+-]?[0-9]+")
_DECIMAL = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?[fFdD]?")
_THROTTLED = re.compile(r"([0-9]+:[0-9]+)?")
_BITS = {"INT": 32, "LONG": 64}
THROTTLED = "[partitionId]:[brokerId],[partitionId]:[brokerId],..."
"""How Kafka writes what a list of throttled replicas may hold."""

_INT, _LONG, _BOOLEAN = Definition("INT"), Definition("LONG"), Definition("BOOLEAN")
TOPIC: Mapping[str, Definition] = {
    "cleanup.policy": Definition("LIST", constants=("compact", "delete")),
    "compression.gzip.level": Definition("INT", 1, 9, ("-1",)),
    "compression.lz4.level": Definition("INT", 1, 17),
    "compression.type": Definition("STRING", constants=("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer")),
    "compression.zstd.level": Definition("INT", -131072, 22),
    "delete.retention.ms": _LONG._replace(low=0),
    "file.delete.delay.ms": _LONG._replace(low=0),
    "flush.messages": _LONG._replace(low=1),
    "flush.ms": _LONG._replace(low=0),
    "follower.replication.throttled.replicas": Definition("LIST", constants=(THROTTLED,)),
    "index.interval.bytes": _INT._replace(low=0),
    "leader.replication.throttled.replicas": Definition("LIST", constants=(THROTTLED,)),
    "local.retention.bytes": _LONG._replace(low=-2),
    "local.retention.ms": _LONG._replace(low=-2),
    "max.compaction.lag.ms": _LONG._replace(low=1),
    "max.message.bytes": _INT._replace(low=0),
    "message.downconversion.enable": _BOOLEAN,
    "message.timestamp.after.max.ms": _LONG._replace(low=0),
    "message.timestamp.before.max.ms": _LONG._replace(low=0),
    "message.timestamp.difference.max.ms": _LONG._replace(low=0),
    "message.timestamp.type": Definition("STRING", constants=("CreateTime", "LogAppendTime")),
    "min.cleanable.dirty.ratio": Definition("DOUBLE", 0, 1),
    "min.compaction.lag.ms": _LONG._replace(low=0),
    "min.insync.replicas": _INT._replace(low=1),
    "preallocate": _BOOLEAN,
    "remote.log.copy.disable": _BOOLEAN,
    "remote.log.delete.on.disable": _BOOLEAN,
    "remote.storage.enable": _BOOLEAN,
    "retention.bytes": _LONG,
    "retention.ms": _LONG._replace(low=-1),
    "segment.bytes": _INT._replace(low=14),
    "segment.index.bytes": _INT._replace(low=4),
    "segment.jitter.ms": _LONG._replace(low=0),
    "segment.ms": _LONG._replace(low=1),
    "unclean.leader.election.enable": _BOOLEAN,
}
"""Of a topic (`LogConfig`), but for `message.format.version`, of which Kafka has many spellings."""
CLIENT_QUOTAS: Mapping[str, Definition] = {
    "consumer_byte_rate": _LONG, "controller_mutation_rate": Definition("DOUBLE"), "producer_byte_rate": _LONG,
    "request_percentage": Definition("DOUBLE")}
"""Of users and clients (`QuotaConfigs.userAndClientQuotaConfigs`)."""
IP_QUOTAS: Mapping[str, Definition] = {"connection_creation_rate": _INT}
"""Of addresses (`QuotaConfigs.ipConfigs`)."""
BROKER = frozenset((
    "advertised.listeners", "background.threads", "compression.gzip.level", "compression.lz4.level", "compression.type",
    "compression.zstd.level", "follower.replication.throttled.rate", "leader.replication.throttled.rate",
    "listener.security.protocol.map", "listeners", "log.cleaner.backoff.ms", "log.cleaner.dedupe.buffer.size",
    "log.cleaner.delete.retention.ms", "log.cleaner.io.buffer.load.factor", "log.cleaner.io.buffer.size",
    "log.cleaner.io.max.bytes.per.second", "log.cleaner.max.compaction.lag.ms", "log.cleaner.min.cleanable.ratio",
    "log.cleaner.min.compaction.lag.ms", "log.cleaner.threads", "log.cleanup.policy", "log.flush.interval.messages",
    "log.flush.interval.ms", "log.index.interval.bytes", "log.index.size.max.bytes", "log.local.retention.bytes",
    "log.local.retention.ms", "log.message.downconversion.enable", "log.message.timestamp.after.max.ms",
    "log.message.timestamp.before.max.ms", "log.message.timestamp.difference.max.ms", "log.message.timestamp.type",
    "log.preallocate", "log.retention.bytes", "log.retention.ms", "log.roll.jitter.ms", "log.roll.ms", "log.segment.bytes",
    "log.segment.delete.delay.ms", "max.connection.creation.rate", "max.connections", "max.connections.per.ip",
    "max.connections.per.ip.overrides", "message.max.bytes", "metric.reporters", "min.insync.replicas", "num.io.threads",
    "num.network.threads", "num.recovery.threads.per.data.dir", "num.replica.fetchers", "principal.builder.class",
    "producer.id.expiration.ms", "remote.fetch.max.wait.ms", "remote.log.index.file.cache.total.size.bytes",
    "remote.log.manager.copy.max.bytes.per.second", "remote.log.manager.fetch.max.bytes.per.second",
    "replica.alter.log.dirs.io.max.bytes.per.second", "sasl.enabled.mechanisms", "sasl.kerberos.kinit.cmd",
    "sasl.kerberos.min.time.before.relogin", "sasl.kerberos.principal.to.local.rules", "sasl.kerberos.service.name",
    "sasl.kerberos.ticket.renew.jitter", "sasl.kerberos.ticket.renew.window.factor", "sasl.login.refresh.buffer.seconds",
    "sasl.login.refresh.min.period.seconds", "sasl.login.refresh.window.factor", "sasl.login.refresh.window.jitter",
    "sasl.mechanism.inter.broker.protocol", "ssl.cipher.suites", "ssl.client.auth", "ssl.enabled.protocols",
    "ssl.endpoint.identification.algorithm", "ssl.engine.factory.class", "ssl.keymanager.algorithm", "ssl.keystore.location",
    "ssl.keystore.type", "ssl.protocol", "ssl.provider", "ssl.secure.random.implementation", "ssl.trustmanager.algorithm",
    "ssl.truststore.location", "ssl.truststore.type", "transaction.partition.verification.enable",
    "unclean.leader.election.enable"))
"""Of brokers, those that may stand in ZooKeeper (`DynamicBrokerConfig`, `QuotaConfigs.brokerQuotaConfigs`), but for those of
type PASSWORD."""
FEATURES: Mapping[str, tuple[int, int]] = {"kraft.version": (0, 1), "metadata.version": (1, 21)}
"""The features that a broker of 3.9 knows, with the levels that it supports (`BrokerFeatures`)."""


LISTS_OF_CLASSES = ("group.consumer.assignors", "kafka.metrics.reporters", "metric.reporters")
"""Settings of brokers whose type is LIST, and whose items are classes."""


def names_classes(setting: str) -> bool:
    """Whether a setting of brokers names classes, as far as its name shows it: Kafka's type of some is STRING or LIST."""
    return setting.endswith((".class", ".class.name")) or setting in LISTS_OF_CLASSES


def foreign(classes: str) -> tuple[str, ...]:
    """Those of these classes, separated by commas, that are not Kafka's own."""
    named = (each.strip(_BLANKS) for each in classes.split(","))
    return tuple(each for each in named if each and not each.startswith(("org.apache.kafka.", "kafka.")))


def why_not(definition: Definition, text: str) -> str:
    """Why Kafka does not take this value, "" where it does. The value is not repeated."""
    value = text.strip(_BLANKS)
    match definition.type:
        case "BOOLEAN":
            return "" if value.lower() in ("true", "false") else "is neither true nor false"
        case "INT" | "LONG" if not is_whole(value, definition):
            return f"is no whole number of {_BITS[definition.type]} bits"
        case "DOUBLE" if double(value) is None:
            return "is not a number"
        case "INT" | "LONG" | "DOUBLE":
            within = definition.low <= (double(value) or 0.0) <= definition.high
            return "" if within or value in definition.constants else f"is not within {_range(definition)}"
        case "LIST" if definition.constants == (THROTTLED,):
            return "" if _are_throttled(value) else f"is neither * nor of the form {THROTTLED}"
    items = re.split(r"\s*,\s*", value) if definition.type == "LIST" else [value]
    if (not value and definition.type == "LIST") or set(items) <= {*definition.constants}:
        return ""
    return f"is none of {', '.join(definition.constants)}"


def is_whole(text: str, definition: Definition) -> bool:
    """As Java parses an int or a long: digits alone, within its bits."""
    half = 1 << _BITS[definition.type] - 1
    return _WHOLE.fullmatch(text) is not None and len(text) < 25 and -half <= int(text) < half


def double(text: str) -> float | None:
    """A decimal number as Java reads a double; None for what is none, and for what is no number to reckon with."""
    value = text.strip(_BLANKS)
    return float(value.rstrip("fFdD")) if _DECIMAL.fullmatch(value) else None


def _are_throttled(value: str) -> bool:
    items = re.split(r"\s*,\s*", value)
    return items == ["*"] or all(_THROTTLED.fullmatch(item.strip(_BLANKS)) for item in items)


def _range(definition: Definition) -> str:
    low, high = ("" if abs(limit) == inf else f"{limit:g}" for limit in (definition.low, definition.high))
    return f"{low}..{high}"


class Unwritable(NamedTuple):
    """A quota of KRaft's that never gets to ZooKeeper. `instead` is the whole number below, and None for one that Kafka does
    not know: that has no effect, and nothing stands for it."""

    entity: Entity
    key: str
    value: float
    instead: float | None

    def __str__(self) -> str:
        return f"quota {self.key} of {entity_text(self.entity)}"


def unwritable(quotas: Mapping[Entity, Mapping[str, float]]) -> tuple[Unwritable, ...]:
    """The quotas that KRaft takes over and dual write cannot write to ZooKeeper, in order of their names. At the first one
    dual write repeats itself for ever.

    The controller copies a quota by its number alone. The rollback into ZooKeeper goes through the definitions above, which
    refuse an unknown key and a whole number with a decimal (docs/facts/rehearsal.md).
    """
    return tuple(sorted(_unwritable(quotas), key=str))


def _unwritable(quotas: Mapping[Entity, Mapping[str, float]]) -> Iterator[Unwritable]:
    for entity, values in quotas.items():
        definitions = IP_QUOTAS if entity and entity[0][0] == "ip" else CLIENT_QUOTAS
        for key, value in values.items():
            known = definitions.get(key)
            if known is None:
                yield Unwritable(entity, key, value, None)
            elif known.type in ("INT", "LONG") and not value.is_integer():
                yield Unwritable(entity, key, value, float(floor(value)))
