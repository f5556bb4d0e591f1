"""Schemas of the metadata log's records, as data. A record that is to be read needs an entry here and nothing else.

The facts are those of `metadata/src/main/resources/common/metadata/*.json` of Kafka 3.9; every version is flexible.
"""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Array:
    """A sequence of primitives, by name, or of structures."""

    of: "str | tuple[Field, ...]"


@dataclass(frozen=True, slots=True)
class Field:
    """One field. Before version `since`, and when a tagged field was left out, its value is `default`."""

    name: str
    type: str | Array
    since: int = 0
    tag: int | None = None
    nullable: bool = False
    default: object = None


@dataclass(frozen=True, slots=True)
class Schema:
    """A record type: its name, the newest version known here (the oldest is 0) and its fields in order."""

    name: str
    newest: int
    fields: tuple[Field, ...] = ()


_ENDPOINTS = Array((
    Field("name", "string"),
    Field("host", "string"),
    Field("port", "uint16"),
    Field("security_protocol", "int16"),
))

_FEATURES = Array((
    Field("name", "string"),
    Field("min_supported_version", "int16"),
    Field("max_supported_version", "int16"),
))

_LOG_DIRS = Array("uuid")

RECORDS: Mapping[int, Schema] = {
    0: Schema("RegisterBroker", 3, (
        Field("broker_id", "int32"),
        Field("is_migrating_zk_broker", "bool", since=2, default=False),
        Field("incarnation_id", "uuid"),
        Field("broker_epoch", "int64"),
        Field("endpoints", _ENDPOINTS),
        Field("features", _FEATURES),
        Field("rack", "string", nullable=True),
        Field("fenced", "bool"),
        Field("in_controlled_shutdown", "bool", since=1, default=False),
        Field("log_dirs", _LOG_DIRS, since=3, tag=0, default=()),
    )),
    1: Schema("UnregisterBroker", 0, (
        Field("broker_id", "int32"),
        Field("broker_epoch", "int64"),
    )),
    7: Schema("FenceBroker", 0, (
        Field("id", "int32"),
        Field("epoch", "int64"),
    )),
    8: Schema("UnfenceBroker", 0, (
        Field("id", "int32"),
        Field("epoch", "int64"),
    )),
    12: Schema("FeatureLevel", 0, (
        Field("name", "string"),
        Field("feature_level", "int16"),
    )),
    17: Schema("BrokerRegistrationChange", 2, (
        Field("broker_id", "int32"),
        Field("broker_epoch", "int64"),
        Field("fenced", "int8", tag=0, default=0),
        Field("in_controlled_shutdown", "int8", since=1, tag=1, default=0),
        Field("log_dirs", _LOG_DIRS, since=2, tag=2, default=()),
    )),
    20: Schema("NoOp", 0),
    21: Schema("ZkMigrationState", 0, (
        Field("zk_migration_state", "int8"),
    )),
    23: Schema("BeginTransaction", 0, (
        Field("name", "string", tag=0, nullable=True),
    )),
    24: Schema("EndTransaction", 0),
    25: Schema("AbortTransaction", 0, (
        Field("reason", "string", tag=0, nullable=True),
    )),
    27: Schema("RegisterController", 0, (
        Field("controller_id", "int32"),
        Field("incarnation_id", "uuid"),
        Field("zk_migration_ready", "bool"),
        Field("endpoints", _ENDPOINTS),
        Field("features", _FEATURES),
    )),
}

# Types of Kafka 3.9 that nobody here reads yet; any type in neither table is unknown.
SKIPPED: Mapping[int, str] = {
    2: "Topic",
    3: "Partition",
    4: "Config",
    5: "PartitionChange",
    9: "RemoveTopic",
    10: "DelegationToken",
    11: "UserScramCredential",
    14: "ClientQuota",
    15: "ProducerIds",
    18: "AccessControlEntry",
    19: "RemoveAccessControlEntry",
    22: "RemoveUserScramCredential",
    26: "RemoveDelegationToken",
}
