"""What a broker tells of all partitions, made of them: as a view, and as the bytes of its answer."""

import io
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import NAMESPACE_DNS, uuid5

from kio.schema.errors import ErrorCode
from kio.schema.metadata.v10 import MetadataResponse
from kio.schema.metadata.v10.response import MetadataResponseBroker, MetadataResponsePartition, MetadataResponseTopic
from kio.serial import entity_writer
from kio.static.primitive import i32, i32Timedelta

from switchover.kafka.node import Partition, Topic, WholeView
from switchover.network.addresses import Address
from switchover.shared.grouped import grouped


def whole_view(cluster_id: str, controller_id: int, brokers: Mapping[int, Address],
               partitions: Iterable[Partition]) -> WholeView:
    return WholeView(cluster_id, controller_id, brokers, _topics(partitions))


def changed(view: WholeView, change: Callable[[Partition], Partition]) -> WholeView:
    """Each of its partitions changed."""
    return replace(view, topics=_topics(map(change, view.partitions)))


def _topics(partitions: Iterable[Partition]) -> Mapping[str, Topic]:
    return {name: Topic(tuple(own)) for name, own in grouped((each.topic, each) for each in partitions).items()}


def metadata_answer(brokers: Mapping[int, Address], partitions: Iterable[Partition]) -> bytes:
    """Metadata v10, without its header."""
    def topic(name: str, own: Iterable[Partition]) -> Any:
        return MetadataResponseTopic(
            error_code=ErrorCode.none, name=name, topic_id=uuid5(NAMESPACE_DNS, name), partitions=tuple(  # type: ignore[arg-type]
                MetadataResponsePartition(
                    error_code=ErrorCode.none, partition_index=i32(each.index), leader_id=each.leader,    # type: ignore[arg-type]
                    leader_epoch=i32(7), replica_nodes=each.replicas, isr_nodes=each.isr, offline_replicas=())  # type: ignore[arg-type]
                for each in own))

    found = MetadataResponse(
        throttle_time=i32Timedelta.parse(timedelta()), cluster_id="a-cluster", controller_id=1,           # type: ignore[arg-type]
        brokers=tuple(MetadataResponseBroker(node_id=each, host=at.host, port=i32(at.port), rack=None)    # type: ignore[arg-type]
                      for each, at in brokers.items()),
        topics=tuple(topic(name, own) for name, own in grouped((each.topic, each) for each in partitions).items()))
    with io.BytesIO() as written:
        entity_writer(MetadataResponse)(written, found)
        return written.getvalue()
