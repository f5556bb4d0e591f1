"""A consumer group of a KafkaMigration as the lag kernel judges it, after sweeps that are written down."""

from collections.abc import Mapping
from typing import NamedTuple

from switchover.api.meta import GroupHealth
from switchover.cluster.observe.groups import thresholds
from switchover.lag.samples import NONE
from switchover.lag.watch import JudgedGroup, Watch
from switchover.lag.window import Offsets, Reading
from switchover.shared.partition import TopicPartition


class Swept(NamedTuple):
    """One sweep: when, `ago` seconds, and of each partition its commit (None: none), its end, and where its log starts."""

    ago: float
    offsets: Mapping[TopicPartition, tuple[int | None, int, int]]


def judged(group: GroupHealth, sweeps: tuple[Swept, ...], now: float) -> JudgedGroup:
    """The group after these, the oldest first, at `now` (seconds since the epoch)."""
    watch = Watch(thresholds(group), read_committed=group.isolation == "ReadCommitted")
    for swept in sweeps:
        at = round((now - swept.ago) * 1000)
        watch.add(Reading({each: Offsets(at, NONE if committed is None else committed, end, start, end)
                           for each, (committed, end, start) in swept.offsets.items()}))
    return watch.judge(round(now * 1000))
