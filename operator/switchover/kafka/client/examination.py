"""What a broker tells of itself for Preflight: settings, log directories, and what our user may do on the cluster."""

from kio.schema.describe_configs.v4.response import DescribeConfigsResourceResult
from kio.schema.describe_log_dirs.v4.request import DescribeLogDirsRequest
from kio.schema.describe_log_dirs.v4.response import DescribeLogDirsResponse
from kio.schema.errors import ErrorCode
from kio.schema.metadata.v9 import MetadataRequest, MetadataResponse

from switchover.kafka.client.configs import broker_settings
from switchover.kafka.client.connection import Connection, succeeded
from switchover.kafka.node import MARKER, BrokerExamination, LogDirectory
from switchover.metadata.kafka_config import names_classes
from switchover.network.addresses import Address

DYNAMIC, STATIC = 2, 4                 # DescribeConfigsResponse.ConfigSource: DYNAMIC_BROKER_CONFIG, STATIC_BROKER_CONFIG
CLASS = 8                              # DescribeConfigsResponse.ConfigType.CLASS
OPERATIONS = {3: "READ", 4: "WRITE", 5: "CREATE", 6: "DELETE", 7: "ALTER", 8: "DESCRIBE", 9: "CLUSTER_ACTION",
              10: "DESCRIBE_CONFIGS", 11: "ALTER_CONFIGS", 12: "IDEMPOTENT_WRITE"}
"""AclOperation by its number, which is its bit in Metadata's answer."""


async def examine_broker(node: Address, connection: Connection, broker_id: int) -> BrokerExamination:
    """Three questions on one connection. Raises Refused naming the right that is missing."""
    operations = await cluster_operations(connection)
    configs = await broker_settings(node, connection, broker_id, synonyms=True)
    static = {setting.name: _static(setting) for setting in configs if not setting.is_sensitive}
    in_force = {setting.name: setting.value for setting in configs if setting.value}
    return BrokerExamination(
        static_settings={name: value for name, value in static.items() if value is not None},
        log_directories=await _directories(node, connection),
        operations=operations,
        hidden=frozenset(setting.name for setting in configs if setting.is_sensitive and _is_static(setting)),
        classes={setting.name: in_force[setting.name] for setting in configs if setting.name in in_force and (
            setting.config_type == CLASS or names_classes(setting.name))},
        own_dynamic={setting.name: in_force[setting.name] for setting in configs
                     if setting.name in in_force and setting.config_source == DYNAMIC})


async def shown_marker(node: Address, connection: Connection, broker_id: int) -> str:
    """Kafka tells keys that it does not know by their names (docs/facts/last-door.md). Raises Refused."""
    configs = await broker_settings(node, connection, broker_id)
    return next((setting.name for setting in configs if setting.name.startswith(MARKER)), "")


async def cluster_operations(connection: Connection) -> frozenset[str]:
    """What our user may do on the cluster, by the names of OPERATIONS."""
    answer = await connection.ask(MetadataRequest(
        topics=(),
        allow_auto_topic_creation=False,
        include_cluster_authorized_operations=True,
        include_topic_authorized_operations=False,
    ), MetadataResponse)
    bits = answer.cluster_authorized_operations
    return frozenset(name for bit, name in OPERATIONS.items() if bits & 1 << bit)


def _is_static(setting: DescribeConfigsResourceResult) -> bool:
    """Whether it stands in the file or on the command line."""
    return setting.config_source == STATIC or any(
        other.source == STATIC and other.name == setting.name for other in setting.synonyms)


def _static(setting: DescribeConfigsResourceResult) -> str | None:
    """The value from the file or the command line, which a dynamic one may hide; None where there is none."""
    if setting.config_source == STATIC:
        return setting.value
    hidden = (other.value for other in setting.synonyms if other.source == STATIC and other.name == setting.name)
    return next(hidden, None)


async def _directories(node: Address, connection: Connection) -> tuple[LogDirectory, ...]:
    answer = await connection.ask(DescribeLogDirsRequest(topics=()), DescribeLogDirsResponse)
    succeeded(node, answer.error_code, "describe the log directories", "Describe")
    return tuple(
        LogDirectory(result.log_dir, offline=result.error_code is not ErrorCode.none) for result in answer.results)
