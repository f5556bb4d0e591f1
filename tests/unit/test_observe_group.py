"""What a pass over a group sees of its offsets: up to where its members are to commit, and judged by the limits of now."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import pytest

from switchover.core.gate import Verdict
from switchover.core.groups.facts import Group, OffsetsTopic
from switchover.core.groups.gates.lag import LAG_HEALTHY
from switchover.core.groups.gates.progress import GOES_ON, PROGRESSED
from switchover.core.groups.picture import Picture
from switchover.core.groups.workloads import MemberWorkload
from switchover.lag.window import Asked, Offsets, Reading, Sweep
from switchover.observe_group import GroupClients, GroupObserver
from switchover.ports import Cluster
from unit.group_pictures import NOW, PARTITIONS, mixed, spec_of, value

PASS_SECONDS = 5.0


class Kafka:
    """Every port of an observer, and its clock: a group that has read all of its quiet topic, which ends in markers.

    Its members read committed records, so that the end that is told to those who do is the last stable offset.
    """

    def __init__(self, group: Group) -> None:
        self.group = group
        self.time = NOW

    def now(self) -> float:
        return self.time

    async def clients(self) -> GroupClients:
        return GroupClients(self, self)  # type: ignore[arg-type]

    async def describe(self, group: str) -> Group:
        return self.group

    async def coordinators(self, group: str) -> frozenset[int]:
        return frozenset({1})

    async def cluster(self) -> Cluster:
        return Cluster("cluster-1", {})

    async def offsets_topic(self) -> OffsetsTopic:
        return OffsetsTopic(1_048_588, False, 0)

    async def sweep(self, asked: Mapping[str, Asked]) -> Sweep:
        at = round(self.time * 1000)
        offsets = {each: Offsets(at, 999, 1000, 0, 1000) for each in PARTITIONS}
        return Sweep(dict.fromkeys(asked, Reading(offsets, frozenset({"orders"}))), {"orders": len(PARTITIONS)})

    async def member_workloads(self, wanted: Iterable[tuple[str, str]]) -> Mapping[str, MemberWorkload]:
        return {}

    async def original(self, name: str) -> None:
        return None


async def seen(observer: GroupObserver, kafka: Kafka, picture: Picture, passes: int) -> Picture:
    """The picture after so many passes; the workloads are as on paper."""
    for _ in range(passes):
        kafka.time += PASS_SECONDS
        found = (await observer.see(replace(picture, now=kafka.time), "")).facts
        picture = replace(picture, facts=replace(found, fleet=picture.facts.fleet), now=kafka.time)
    return picture


def observing(**gates: Any) -> tuple[GroupObserver, Kafka, Picture]:
    picture = replace(mixed(), spec=spec_of(gates=gates))
    kafka = Kafka(value(picture.facts.group))
    return GroupObserver(kafka, kafka, kafka, kafka), kafka, picture  # type: ignore[arg-type]


def told(picture: Picture) -> tuple[str, str, str]:
    found: list[Verdict] = [gate.check(picture) for gate in (GOES_ON, PROGRESSED, LAG_HEALTHY)]
    return found[0].reason, found[1].reason, found[2].reason


@pytest.mark.parametrize(("isolation", "reasons"), [
    ("ReadCommitted", ("Passed", "Passed", "Passed")),
    ("ReadUncommitted", ("PartitionStalled", "NoProgressYet", "LagUnhealthy")),
])
async def test_a_marker_at_the_end_is_nothing_to_commit_for_whoever_reads_committed_records(isolation, reasons):
    assert told(await seen(*observing(isolation=isolation), passes=40)) == reasons


@pytest.mark.parametrize(("changed", "reason"), [
    ({"isolation": "ReadCommitted"}, "Passed"),
    ({"maxStallSeconds": 3600, "maxTimeLagSeconds": 3600}, "LagNotHealthyYet"),
])
async def test_a_limit_that_the_user_changes_counts_from_the_next_pass_on(changed, reason):
    observer, kafka, picture = observing()
    picture = await seen(observer, kafka, picture, passes=40)
    assert told(picture)[2] == "LagUnhealthy"
    picture = replace(picture, spec=spec_of(gates=changed))
    assert told(await seen(observer, kafka, picture, passes=40))[2] == reason
