"""What a pass over a group sees of its offsets: up to where its members are to commit, and judged by the limits of now."""

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import pytest

from simulation.virtual_time import in_virtual_time
from switchover.answers.errors import Refused, Unreachable
from switchover.engine.gate import Verdict
from switchover.groups.gates.lag import GOES_ON, LAG_HEALTHY, PROGRESSED
from switchover.groups.observe.observer import GroupClients, GroupObserver
from switchover.groups.picture import Picture
from switchover.groups.status import _summary
from switchover.kafka.group import Group, OffsetsTopic
from switchover.kafka.ports import Cluster
from switchover.kubernetes.members import MemberWorkload
from switchover.lag.baseline import KEY, Usuals, WeeklyBaseline, text_of
from switchover.lag.samples import NONE
from switchover.lag.window import Asked, Offsets, Reading, Sweep
from unit.group_pictures import NOW, PARTITIONS, mixed, spec_of, value

PASS_SECONDS = 5.0


class Kafka:
    """Every port of an observer, and its clock: a group that has read all of its quiet topic, which ends in markers.

    Its members read committed records, so that the end that is told to those who do is the last stable offset.
    """

    def __init__(self, group: Group) -> None:
        self.group = group
        self.time = NOW
        self.config_maps: dict[str, dict[str, str] | Exception] = {}
        self.everywhere = Offsets(0, 999, 1000, 0, 1000)
        self.next_record: int | None = None             # of all partitions; None: nobody can look

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
        offsets = dict.fromkeys(PARTITIONS, self.everywhere._replace(time=at))
        return Sweep({name: Reading(offsets, frozenset({"orders"}), unreadable={
            each: stretch._replace(end=self.next_record) for each, stretch in wanted.looks.items()
            if self.next_record is not None}) for name, wanted in asked.items()}, {"orders": len(PARTITIONS)})

    async def member_workloads(self, wanted: Iterable[tuple[str, str]]) -> Mapping[str, MemberWorkload]:
        return {}

    async def others_called(self, names: Iterable[str]) -> Mapping[str, str]:
        return {}

    async def config_map(self, name: str) -> dict[str, str] | None:
        found = self.config_maps.get(name)
        if isinstance(found, Exception):
            raise found
        return found

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


@pytest.mark.parametrize(("committed", "next_record", "reasons"), [
    (990, 1000, ("Passed", "Passed", "Passed")),
    (NONE, 1000, ("Passed", "Passed", "Passed")),
    (990, 995, ("PartitionStalled", "NoProgressYet", "LagUnhealthy")),
    (990, None, ("PartitionStalled", "NoProgressYet", "LagUnhealthy")),
])
async def test_where_no_record_is_behind_the_commit_there_is_nothing_to_commit(committed, next_record, reasons):
    """spring-projects/spring-kafka#2590: what is last in each partition is an aborted transaction."""
    observer, kafka, picture = observing(isolation="ReadCommitted")
    kafka.everywhere, kafka.next_record = kafka.everywhere._replace(committed=committed), next_record
    assert told(await seen(observer, kafka, picture, passes=40)) == reasons


@pytest.mark.parametrize("committed", [990, NONE])
@pytest.mark.parametrize("isolation", ["ReadCommitted", "ReadUncommitted"])
async def test_in_an_emptied_log_there_is_nothing_to_commit(committed, isolation):
    """redpanda-data/redpanda#30624: retention deleted all that was behind the commit."""
    observer, kafka, picture = observing(isolation=isolation)
    kafka.everywhere = Offsets(0, committed, 1000, 1000, 1000)
    assert told(await seen(observer, kafka, picture, passes=40)) == ("Passed", "Passed", "Passed")


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


# --- baseline -----------------------------------------------------------------------------------------------------------


def used_to(*, lag: int, interval: int, group: str = "orders") -> dict[str, str]:
    """The ConfigMap of a group whose partitions are all used to the same (ms)."""
    usuals = Usuals((lag, interval))
    return {KEY: text_of(WeeklyBaseline(group, 5, dict.fromkeys(PARTITIONS, usuals)))}


WIDE = {"maxStallSeconds": 600, "maxTimeLagSeconds": 600, "baselineRef": {"name": "usual"}}


@pytest.mark.parametrize(("usual", "reason"), [
    (used_to(lag=1000, interval=5000), "LagUnhealthy"),               # 30 s and 60 s
    (used_to(lag=10**9, interval=10**9), "LagNotHealthyYet"),         # never more than the user allows
])
async def test_a_baseline_is_what_the_lag_is_judged_by(usual, reason):
    observer, kafka, picture = observing(**WIDE)
    kafka.config_maps["usual"] = usual
    picture = await seen(observer, kafka, picture, passes=40)
    assert told(picture)[2] == reason
    assert _summary(picture).baseline == f"usual tells of {len(PARTITIONS)} of {len(PARTITIONS)} partitions"


@pytest.mark.parametrize(("usual", "reason", "words"), [
    (None, "BaselineUnusable", "ConfigMap usual: it does not exist"),
    ({}, "BaselineUnusable", "ConfigMap usual: it has no key baseline"),
    ({KEY: "lag: 5"}, "BaselineUnusable", "does not begin with switchover-baseline"),
    (used_to(lag=1, interval=1, group="payments"), "BaselineUnusable", "it is the baseline of group 'payments'"),
    (Unreachable("the API server is away"), "BaselineUnknown", "ConfigMap usual cannot be read: the API server is away"),
    (Refused("needs get configmaps"), "BaselineUnknown", "needs get configmaps"),
])
async def test_a_baseline_that_is_not_there_shuts_the_gate_in_words(usual, reason, words):
    observer, kafka, picture = observing(isolation="ReadCommitted", baselineRef={"name": "usual"})
    if usual is not None:
        kafka.config_maps["usual"] = usual
    picture = await seen(observer, kafka, picture, passes=20)
    verdict = LAG_HEALTHY.check(picture)
    assert verdict.reason == reason
    assert words in verdict.message
    assert _summary(picture).baseline == "usual cannot be used"


async def test_a_baseline_is_read_anew_and_one_that_is_named_anew_at_once():
    observer, kafka, picture = observing(isolation="ReadCommitted", baselineRef={"name": "usual"})
    picture = await seen(observer, kafka, picture, passes=1)
    assert told(picture)[2] == "BaselineUnusable"
    kafka.config_maps["usual"] = used_to(lag=1000, interval=5000)
    picture = await seen(observer, kafka, picture, passes=20)
    assert told(picture)[2] == "Passed"
    picture = replace(picture, spec=spec_of(gates={"isolation": "ReadCommitted", "baselineRef": {"name": "other"}}))
    assert told(await seen(observer, kafka, picture, passes=1))[2] == "BaselineUnusable"
    picture = replace(picture, spec=spec_of(gates={"isolation": "ReadCommitted"}))
    picture = await seen(observer, kafka, picture, passes=20)
    assert (told(picture)[2], _summary(picture).baseline) == ("Passed", "")


class Slow(Kafka):
    """Each of its answers takes a second."""

    async def describe(self, group: str) -> Group:
        await asyncio.sleep(1.0)
        return await super().describe(group)

    async def coordinators(self, group: str) -> frozenset[int]:
        await asyncio.sleep(1.0)
        return await super().coordinators(group)

    async def cluster(self) -> Cluster:
        await asyncio.sleep(1.0)
        return await super().cluster()

    async def offsets_topic(self) -> OffsetsTopic:
        await asyncio.sleep(1.0)
        return await super().offsets_topic()

    async def sweep(self, asked: Mapping[str, Asked]) -> Sweep:
        await asyncio.sleep(1.0)
        return await super().sweep(asked)


def test_a_pass_describes_the_group_and_asks_all_the_rest_at_once():
    """A thousand passes a restart: what one waits for decides how many an operator gets through."""
    picture = replace(mixed(), spec=spec_of())
    kafka = Slow(value(picture.facts.group))
    observer = GroupObserver(kafka, kafka, kafka, kafka)  # type: ignore[arg-type]

    async def run() -> float:
        begun = asyncio.get_running_loop().time()
        facts = (await observer.see(picture, "")).facts
        for each in (facts.group, facts.coordinators, facts.cluster_id, facts.offsets_topic, facts.samples):
            value(each)
        return asyncio.get_running_loop().time() - begun

    assert in_virtual_time(run()) == pytest.approx(2.0)
