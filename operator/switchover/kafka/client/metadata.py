"""Metadata as a broker tells it: who the brokers are, and which topics there are and who leads them."""

from collections.abc import Iterable

from kio.schema.metadata.v10 import MetadataRequest, MetadataResponse
from kio.schema.metadata.v10.request import MetadataRequestTopic
from kio.schema.types import TopicName

from switchover.answers.errors import Malformed, Untold
from switchover.kafka.client.connection import Connection
from switchover.network.addresses import Address


async def metadata(node: Address, connection: Connection, topics: Iterable[str] | None) -> MetadataResponse:
    """Of these topics, or of all for None, with their ids (Kafka 2.8 or newer); nothing is created.

    Raises Untold for a broker that knows of none, not even of itself: it has just started, and does not know of the topics
    either.
    """
    return knowing(node, await connection.ask(request(topics), MetadataResponse))


def request(topics: Iterable[str] | None) -> MetadataRequest:
    """For `metadata`."""
    return MetadataRequest(
        topics=None if topics is None else tuple(
            MetadataRequestTopic(topic_id=None, name=TopicName(topic)) for topic in topics),
        allow_auto_topic_creation=False,
        include_cluster_authorized_operations=False,
        include_topic_authorized_operations=False,
    )


def knowing(node: Address, answer: MetadataResponse) -> MetadataResponse:
    """The answer, as `metadata` gives it."""
    if not answer.brokers:
        raise Untold(f"{node}: has just started, and knows of no broker yet")
    return answer


def addresses(answer: MetadataResponse) -> dict[int, Address]:
    """Where each broker listens, by its id. Raises Malformed."""
    return {broker.node_id: told_address(f"broker {broker.node_id}", broker.host, broker.port) for broker in answer.brokers}


def told_address(who: str, host: str, port: int) -> Address:
    """Where somebody listens, as a broker says. Raises Malformed, which names who."""
    try:
        return Address(host, port)
    except ValueError as error:
        raise Malformed(f"{who} is said to listen at {error}") from None
