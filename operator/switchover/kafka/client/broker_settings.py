"""Settings of a broker or of topics, as a broker shows them, and what else it answers about itself in Preflight."""

from collections.abc import Iterable
from typing import Final

from kio.schema.describe_configs.v4.request import DescribeConfigsRequest, DescribeConfigsResource
from kio.schema.describe_configs.v4.response import DescribeConfigsResourceResult, DescribeConfigsResponse
from kio.schema.describe_log_dirs.v4.request import DescribeLogDirsRequest
from kio.schema.describe_log_dirs.v4.response import DescribeLogDirsResponse
from kio.schema.errors import ErrorCode
from kio.schema.metadata.v9 import MetadataRequest, MetadataResponse
from kio.static.primitive import i8

from switchover.answers.errors import Refused, Unreachable
from switchover.kafka.client.connection import Connection, succeeded
from switchover.kafka.client.metadata import metadata
from switchover.kafka.node import MARKER, BrokerExamination, LogDirectory
from switchover.metadata.kafka_config import names_classes
from switchover.network.addresses import Address

_TOPIC, BROKER = i8(2), i8(4)                       # ConfigResource.Type
TOPICS: Final = 1000
"""In one request; of each a single setting is asked for, which makes some 100 bytes."""
MIN_INSYNC: Final = "min.insync.replicas"


async def broker_settings(
    node: Address, connection: Connection, broker_id: int, names: Iterable[str] | None = None, *, synonyms: bool = False,
) -> tuple[DescribeConfigsResourceResult, ...]:
    """Settings of the broker that is asked, all or those of these `names`. Raises Refused naming the right."""
    answer = await _describe(connection, [DescribeConfigsResource(
        resource_type=BROKER, resource_name=str(broker_id), configuration_keys=_keys(names))], synonyms)
    if len(answer.results) != 1:
        raise Unreachable(f"{node}: answered without its settings")
    succeeded(node, answer.results[0].error_code, "read the settings of brokers", "DescribeConfigs")
    return answer.results[0].configs


async def topic_settings(
    node: Address, connection: Connection, topic: str, names: Iterable[str] | None = None,
) -> tuple[DescribeConfigsResourceResult, ...]:
    """Settings in force of a topic. Raises Refused naming the right."""
    answer = await _describe(connection, [DescribeConfigsResource(
        resource_type=_TOPIC, resource_name=topic, configuration_keys=_keys(names))])
    if len(answer.results) != 1:
        raise Unreachable(f"{node}: answered without the settings of topic {topic}")
    _check_topic(node, topic, answer.results[0].error_code)
    return answer.results[0].configs


async def min_insync_replicas(node: Address, connection: Connection, topics: Iterable[str]) -> dict[str, int]:
    """`min.insync.replicas` in force of each topic. One that the broker does not know is absent: it was deleted, or the
    broker has just started and knows none. Raises Refused naming the right.
    """
    wanted, found = sorted(set(topics)), {}
    for start in range(0, len(wanted), TOPICS):
        batch = wanted[start:start + TOPICS]
        answer = await _describe(connection, [
            DescribeConfigsResource(resource_type=_TOPIC, resource_name=topic, configuration_keys=(MIN_INSYNC,))
            for topic in batch])
        if sorted(each.resource_name for each in answer.results) != batch:
            raise Unreachable(f"{node}: answered without the settings of every topic")
        for each in answer.results:
            if each.error_code is ErrorCode.unknown_topic_or_partition:
                continue
            _check_topic(node, each.resource_name, each.error_code)
            found[each.resource_name] = _number(node, each.resource_name, each.configs)
    return found


def _check_topic(node: Address, topic: str, code: ErrorCode) -> None:
    succeeded(node, code, f"read the settings of topic {topic}", "DescribeConfigs", f"topic {topic}")


def _number(node: Address, topic: str, configs: Iterable[DescribeConfigsResourceResult]) -> int:
    values = [each.value or "" for each in configs if each.name == MIN_INSYNC]
    if len(values) != 1 or not (values[0].isascii() and values[0].isdigit()):
        raise Unreachable(f"{node}: answered without {MIN_INSYNC} of topic {topic}")
    return int(values[0])


def _keys(names: Iterable[str] | None) -> tuple[str, ...] | None:
    return None if names is None else tuple(names)


async def _describe(
    connection: Connection, resources: Iterable[DescribeConfigsResource], synonyms: bool = False,
) -> DescribeConfigsResponse:
    return await connection.ask(
        DescribeConfigsRequest(resources=tuple(resources), include_synonyms=synonyms), DescribeConfigsResponse)


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
    """Of keys that it does not know Kafka shows the names (docs/facts/last-door.md). Raises Refused."""
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


async def identify(node: Address, connection: Connection, cluster_id: str, among: Iterable[int]) -> frozenset[int]:
    """Those of these brokers whose settings it shows.

    A broker shows its own settings alone, and answers INVALID_REQUEST for every other's ("Unexpected broker id":
    ConfigHelper.scala; the request is never forwarded). Metadata names the cluster and all brokers, not the one that
    answers.
    """
    answered = await metadata(node, connection, ())
    if answered.cluster_id != cluster_id:
        raise Refused(f"{node}: is a broker of another cluster")
    asked = {str(broker_id): broker_id for broker_id in among}
    answer = await connection.ask(DescribeConfigsRequest(resources=tuple(
        DescribeConfigsResource(resource_type=BROKER, resource_name=name, configuration_keys=("broker.id",))
        for name in asked)), DescribeConfigsResponse)
    if {result.resource_name for result in answer.results} != asked.keys():
        raise Unreachable(f"{node}: answered without saying which broker it is")
    others = {result.resource_name for result in answer.results if result.error_code is ErrorCode.invalid_request}
    for result in answer.results:
        if result.resource_name not in others:
            succeeded(node, result.error_code, "read the settings of brokers", "DescribeConfigs")
    return frozenset(broker_id for name, broker_id in asked.items() if name not in others)
