"""Which broker of a cluster listens at an address, as it tells it itself."""

from collections.abc import Iterable

from kio.schema.describe_configs.v4.request import DescribeConfigsRequest, DescribeConfigsResource
from kio.schema.describe_configs.v4.response import DescribeConfigsResponse
from kio.schema.errors import ErrorCode

from switchover.answers.errors import Refused, Unreachable
from switchover.kafka.client.configs import BROKER
from switchover.kafka.client.connection import Connection, succeeded
from switchover.kafka.client.metadata import metadata
from switchover.network.addresses import Address


async def told_identity(node: Address, connection: Connection, cluster_id: str, among: Iterable[int]) -> frozenset[int]:
    """Those of these brokers whose settings it tells.

    A broker tells its own settings alone, and INVALID_REQUEST of every other's ("Unexpected broker id": ConfigHelper.scala;
    the request is never forwarded). Metadata tells all brokers, and not which of them answers, but it tells the cluster.
    """
    answered = await metadata(node, connection, ())
    if answered.cluster_id != cluster_id:
        raise Refused(f"{node}: is a broker of another cluster")
    asked = {str(broker_id): broker_id for broker_id in among}
    answer = await connection.ask(DescribeConfigsRequest(resources=tuple(
        DescribeConfigsResource(resource_type=BROKER, resource_name=name, configuration_keys=("broker.id",))
        for name in asked)), DescribeConfigsResponse)
    if {result.resource_name for result in answer.results} != asked.keys():
        raise Unreachable(f"{node}: answered without telling which broker it is")
    others = {result.resource_name for result in answer.results if result.error_code is ErrorCode.invalid_request}
    for result in answer.results:
        if result.resource_name not in others:
            succeeded(node, result.error_code, "read the settings of brokers", "DescribeConfigs")
    return frozenset(broker_id for name, broker_id in asked.items() if name not in others)
