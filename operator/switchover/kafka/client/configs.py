"""Settings of a broker or a topic, as a broker tells them."""

from collections.abc import Iterable

from kio.schema.describe_configs.v4.request import DescribeConfigsRequest, DescribeConfigsResource
from kio.schema.describe_configs.v4.response import DescribeConfigsResourceResult, DescribeConfigsResponse
from kio.static.primitive import i8

from switchover.kafka.client.connection import Connection, succeeded
from switchover.outside.addresses import Address
from switchover.outside.errors import Unreachable

_TOPIC, BROKER = i8(2), i8(4)                       # ConfigResource.Type


async def broker_settings(
    node: Address, connection: Connection, broker_id: int, names: Iterable[str] | None = None, *, synonyms: bool = False,
) -> tuple[DescribeConfigsResourceResult, ...]:
    """Settings of the broker that is asked, all or those of these `names`. Raises Refused naming the right."""
    answer = await _describe(connection, DescribeConfigsResource(
        resource_type=BROKER, resource_name=str(broker_id), configuration_keys=_keys(names)), synonyms)
    if len(answer.results) != 1:
        raise Unreachable(f"{node}: answered without its settings")
    succeeded(node, answer.results[0].error_code, "read the settings of brokers", "DescribeConfigs")
    return answer.results[0].configs


async def topic_settings(
    node: Address, connection: Connection, topic: str, names: Iterable[str] | None = None,
) -> tuple[DescribeConfigsResourceResult, ...]:
    """Settings in force of a topic. Raises Refused naming the right."""
    answer = await _describe(connection, DescribeConfigsResource(
        resource_type=_TOPIC, resource_name=topic, configuration_keys=_keys(names)), False)
    if len(answer.results) != 1:
        raise Unreachable(f"{node}: answered without the settings of topic {topic}")
    succeeded(node, answer.results[0].error_code, f"read the settings of topic {topic}", "DescribeConfigs",
              f"topic {topic}")
    return answer.results[0].configs


def _keys(names: Iterable[str] | None) -> tuple[str, ...] | None:
    return None if names is None else tuple(names)


async def _describe(
    connection: Connection, resource: DescribeConfigsResource, synonyms: bool
) -> DescribeConfigsResponse:
    return await connection.ask(
        DescribeConfigsRequest(resources=(resource,), include_synonyms=synonyms), DescribeConfigsResponse)
