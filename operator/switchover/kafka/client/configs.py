"""Settings of a broker or of topics, as a broker tells them."""

from collections.abc import Iterable
from typing import Final

from kio.schema.describe_configs.v4.request import DescribeConfigsRequest, DescribeConfigsResource
from kio.schema.describe_configs.v4.response import DescribeConfigsResourceResult, DescribeConfigsResponse
from kio.schema.errors import ErrorCode
from kio.static.primitive import i8

from switchover.answers.errors import Unreachable
from switchover.kafka.client.connection import Connection, succeeded
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
    _told(node, topic, answer.results[0].error_code)
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
            _told(node, each.resource_name, each.error_code)
            found[each.resource_name] = _number(node, each.resource_name, each.configs)
    return found


def _told(node: Address, topic: str, code: ErrorCode) -> None:
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
