"""Schemas of the metadata log's records, as data.

The facts are those of `metadata/src/main/resources/common/metadata/*.json` of Kafka 3.9; every version is flexible.
Tagged fields that nobody reads are left out: a reader passes over them.
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
_IDS = Array("int32")

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
    2: Schema("Topic", 0, (
        Field("name", "string"),
        Field("topic_id", "uuid"),
    )),
    3: Schema("Partition", 2, (
        Field("partition_id", "int32"),
        Field("topic_id", "uuid"),
        Field("replicas", _IDS),
        Field("isr", _IDS),
        Field("removing_replicas", _IDS),
        Field("adding_replicas", _IDS),
        Field("leader", "int32"),
        Field("leader_epoch", "int32"),
        Field("partition_epoch", "int32"),
        Field("directories", Array("uuid"), since=1, default=()),
    )),
    4: Schema("Config", 0, (
        Field("resource_type", "int8"),
        Field("resource_name", "string"),
        Field("name", "string"),
        Field("value", "string", nullable=True),
    )),
    5: Schema("PartitionChange", 2, (
        Field("partition_id", "int32"),
        Field("topic_id", "uuid"),
        Field("replicas", _IDS, tag=2, nullable=True),
        Field("removing_replicas", _IDS, tag=3, nullable=True),
        Field("adding_replicas", _IDS, tag=4, nullable=True),
    )),
    7: Schema("FenceBroker", 0, (
        Field("id", "int32"),
        Field("epoch", "int64"),
    )),
    8: Schema("UnfenceBroker", 0, (
        Field("id", "int32"),
        Field("epoch", "int64"),
    )),
    9: Schema("RemoveTopic", 0, (
        Field("topic_id", "uuid"),
    )),
    10: Schema("DelegationToken", 0, (
        Field("owner", "string"),
        Field("requester", "string"),
        Field("renewers", Array("string")),
        Field("issue_timestamp", "int64"),
        Field("max_timestamp", "int64"),
        Field("expiration_timestamp", "int64"),
        Field("token_id", "string"),
    )),
    11: Schema("UserScramCredential", 0, (
        Field("name", "string"),
        Field("mechanism", "int8"),
        Field("salt", "bytes"),
        Field("stored_key", "bytes"),
        Field("server_key", "bytes"),
        Field("iterations", "int32"),
    )),
    12: Schema("FeatureLevel", 0, (
        Field("name", "string"),
        Field("feature_level", "int16"),
    )),
    14: Schema("ClientQuota", 0, (
        Field("entity", Array((
            Field("entity_type", "string"),
            Field("entity_name", "string", nullable=True),
        ))),
        Field("key", "string"),
        Field("value", "float64"),
        Field("remove", "bool"),
    )),
    15: Schema("ProducerIds", 0, (
        Field("broker_id", "int32"),
        Field("broker_epoch", "int64"),
        Field("next_producer_id", "int64"),
    )),
    17: Schema("BrokerRegistrationChange", 2, (
        Field("broker_id", "int32"),
        Field("broker_epoch", "int64"),
        Field("fenced", "int8", tag=0, default=0),
        Field("in_controlled_shutdown", "int8", since=1, tag=1, default=0),
        Field("log_dirs", _LOG_DIRS, since=2, tag=2, default=()),
    )),
    18: Schema("AccessControlEntry", 0, (
        Field("id", "uuid"),
        Field("resource_type", "int8"),
        Field("resource_name", "string"),
        Field("pattern_type", "int8"),
        Field("principal", "string"),
        Field("host", "string"),
        Field("operation", "int8"),
        Field("permission_type", "int8"),
    )),
    19: Schema("RemoveAccessControlEntry", 0, (
        Field("id", "uuid"),
    )),
    20: Schema("NoOp", 0),
    21: Schema("ZkMigrationState", 0, (
        Field("zk_migration_state", "int8"),
    )),
    22: Schema("RemoveUserScramCredential", 0, (
        Field("name", "string"),
        Field("mechanism", "int8"),
    )),
    23: Schema("BeginTransaction", 0, (
        Field("name", "string", tag=0, nullable=True),
    )),
    24: Schema("EndTransaction", 0),
    25: Schema("AbortTransaction", 0, (
        Field("reason", "string", tag=0, nullable=True),
    )),
    26: Schema("RemoveDelegationToken", 0, (
        Field("token_id", "string"),
    )),
    27: Schema("RegisterController", 0, (
        Field("controller_id", "int32"),
        Field("incarnation_id", "uuid"),
        Field("zk_migration_ready", "bool"),
        Field("endpoints", _ENDPOINTS),
        Field("features", _FEATURES),
    )),
}
