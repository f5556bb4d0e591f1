"""What tests do to a real cluster by an admin client, again and again until the cluster takes it."""

import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future, TimeoutError
from typing import Any

from confluent_kafka import ConsumerGroupTopicPartitions, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from patience import Patience, stretched

SECONDS = 120


def changed(servers: str, change: Callable[[AdminClient], Mapping[Any, "Future[Any]"]],
            properties: Mapping[str, Any] | None = None) -> list[Any]:
    """The results of one change, by a client of its own, which lives until they are there."""
    client = AdminClient({"bootstrap.servers": servers, **(properties or {})})
    return [future.result(stretched(30)) for future in change(client).values()]


def create_topic(servers: str, name: str, partitions: int = 1, *, replicas: int = 1,
                 config: dict[str, str] | None = None, properties: Mapping[str, Any] | None = None) -> None:
    """A broker that has just started has no controller, or no others for replicas, for a moment.

    Each time by a new client: one that came before the controller waits in vain.
    """
    topic, patience, again = NewTopic(name, partitions, replicas, config=config or {}), Patience(SECONDS), False
    while True:
        try:
            changed(servers, lambda client: client.create_topics([topic]), properties)
            return
        except (KafkaException, TimeoutError) as error:
            if again and isinstance(error, KafkaException) and error.args[0].code() == KafkaError.TOPIC_ALREADY_EXISTS:
                return                                          # the first time it was, and the answer came too late
            if patience.over:
                raise
        again = True
        time.sleep(0.2)


def commit_for(servers: str, group: str, topic: str, offset: int, properties: Mapping[str, Any] | None = None,
               partition: int = 0) -> None:
    """By a client that joins nothing. The coordinator may have to be made first."""
    asked, patience = [ConsumerGroupTopicPartitions(group, [TopicPartition(topic, partition, offset)])], Patience(SECONDS)
    while True:
        try:
            [answer] = changed(servers, lambda client: client.alter_consumer_group_offsets(asked), properties)
            if (error := answer.topic_partitions[0].error) is None:
                return
            raise KafkaException(error)
        except (KafkaException, TimeoutError):
            if patience.over:
                raise
        time.sleep(0.2)
