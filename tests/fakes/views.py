"""What a broker tells of all partitions, made of them."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from switchover.grouped import grouped
from switchover.kafka.node import Partition, Topic, WholeView
from switchover.outside.addresses import Address


def whole_view(cluster_id: str, controller_id: int, brokers: Mapping[int, Address],
               partitions: Iterable[Partition]) -> WholeView:
    return WholeView(cluster_id, controller_id, brokers, _topics(partitions))


def changed(view: WholeView, change: Callable[[Partition], Partition]) -> WholeView:
    """Each of its partitions changed."""
    return replace(view, topics=_topics(map(change, view.partitions)))


def _topics(partitions: Iterable[Partition]) -> Mapping[str, Topic]:
    return {name: Topic(tuple(own)) for name, own in grouped((each.topic, each) for each in partitions).items()}
