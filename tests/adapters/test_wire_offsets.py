"""The ports GroupOffsets and GroupMemberships against real brokers, and the verdicts that come of it."""

import asyncio
import contextlib
import json
import re
import signal
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from datetime import timedelta
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from kio.schema.errors import ErrorCode
from kio.schema.find_coordinator.v4 import response as coordinator_v4
from kio.schema.offset_fetch.v8 import response as offsets_v8
from kio.schema.types import BrokerId, GroupId
from kio.static.primitive import i32, i32Timedelta
from typer.testing import CliRunner, Result

from adapters.admin import create_topic
from adapters.clusters import KafkaCluster, kafka_cluster
from adapters.eventually import eventually
from adapters.servers import loopback
from adapters.test_wire_settings import committed, created, filled
from fakes.kafka_node import Node
from patience import Patience, stretched
from switchover.answers.clock import WallClock
from switchover.answers.errors import Refused, Unreachable
from switchover.api.meta import GROUP_BYTES, GroupHealth
from switchover.cli.lag import GroupReport, Question, follow_from_here, thresholds_of
from switchover.cli.main import app
from switchover.kafka.client.connection import Connection
from switchover.kafka.client.groups import WireGroups
from switchover.kafka.client.offsets import WireOffsets
from switchover.lag.collector import LagCollector
from switchover.lag.group import Group, Membership, group_of
from switchover.lag.group import TopicPartition as Named
from switchover.lag.samples import NONE
from switchover.lag.thresholds import Thresholds
from switchover.lag.verdicts import Effect, Verdict
from switchover.lag.watch import Assessment
from switchover.lag.window import Asked, Sweep
from switchover.network.credentials import Access

QUICK = Thresholds(poll=2000, window=120_000, min_samples=4, min_span=500, max_time_lag=2000, min_time_lag=1000,
                   slo_ceiling=3000, max_stall=2000, min_quiet=2000, pass_evaluations=3, pass_time=500,
                   standing_evaluations=3)
"""The rules in a fraction of their time; with room for holes, since a loaded machine stretches every poll."""
POLL = 0.25
NO_WAIT = i32Timedelta.parse(timedelta())


@pytest.fixture
def servers(zookeeper_cluster: KafkaCluster) -> str:
    return zookeeper_cluster.bootstrap


def read(sweep: Sweep, group: str) -> dict[Named, tuple[int, int, int, int]]:
    """Committed, end, log start and high watermark of each partition."""
    return {each: found[1:] for each, found in sweep.readings[group].offsets.items()}


# --- what a sweep reads ---------------------------------------------------------------------------------------------------


async def test_all_groups_in_one_sweep_of_five_requests(servers: str, monkeypatch: pytest.MonkeyPatch) -> None:
    one, two = created(servers, 3), created(servers, 2)
    filled(servers, one, {0: 5, 1: 7})
    filled(servers, two, {0: 1})
    groups = [f"{number}-{uuid.uuid4().hex}" for number in range(5)]
    for number, group in enumerate(groups[:4]):
        committed(servers, group, [TopicPartition(one, 0, number), TopicPartition(one, 1, 7)])
    requests, exchange = [], Connection.exchange

    async def counted(self: Connection, request: object) -> bytes:
        requests.append(type(request).__name__)
        return await exchange(self, request)                # type: ignore[arg-type]

    monkeypatch.setattr(Connection, "exchange", counted)
    before = time.time()
    sweep = await WireOffsets(Access(servers)).sweep({group: Asked(frozenset({two})) for group in groups})
    assert requests == ["FindCoordinatorRequest", "OffsetFetchRequest", "MetadataRequest", *["ListOffsetsRequest"] * 2]
    unread = {Named(two, 0): (NONE, 1, 0, 1), Named(two, 1): (NONE, 0, 0, 0)}
    for number, group in enumerate(groups[:4]):
        assert read(sweep, group) == {
            Named(one, 0): (number, 5, 0, 5), Named(one, 1): (7, 7, 0, 7), Named(one, 2): (NONE, 0, 0, 0), **unread}
        assert sweep.readings[group].committed == {one}
    assert read(sweep, groups[4]) == unread
    assert sweep.partitions == {one: 3, two: 2}
    times = [found.time for reading in sweep.readings.values() for found in reading.offsets.values()]
    assert all(before * 1000 - 1 <= at <= time.time() * 1000 for at in times)


async def test_batches_lose_nothing(servers: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for size in ("GROUPS", "PARTITIONS"):
        monkeypatch.setattr(f"switchover.kafka.client.offsets.{size}", 2)
    topic = created(servers, 5)
    groups = [uuid.uuid4().hex for _ in range(3)]
    for group in groups:
        committed(servers, group, [TopicPartition(topic, number, 0) for number in range(5)])
    sweep = await WireOffsets(Access(servers)).sweep(dict.fromkeys(groups, Asked()))
    assert {group: len(reading.offsets) for group, reading in sweep.readings.items()} == dict.fromkeys(groups, 5)


async def test_the_longest_id_of_a_group(servers: str) -> None:
    """Nothing but a string of the protocol bounds it: Kafka keeps its commits, and tells them and its members."""
    topic = created(servers, 1)
    group = f"connect-{uuid.uuid4().hex}-{'s3-sink-' * 5000}"[:GROUP_BYTES]
    filled(servers, topic, {0: 5})
    committed(servers, group, [TopicPartition(topic, 0, 2)])
    assert GroupHealth(name=group).name == group
    sweep = await WireOffsets(Access(servers)).sweep({group: Asked()})
    assert read(sweep, group) == {Named(topic, 0): (2, 5, 0, 5)}
    assert await WireGroups(Access(servers)).memberships([group]) == {group: Membership("Empty", {})}


async def test_a_group_and_a_topic_that_do_not_exist(servers: str) -> None:
    sweep = await WireOffsets(Access(servers)).sweep({"nobody": Asked(frozenset({"no-such-topic"}))})
    [reading] = sweep.readings.values()
    assert (reading.offsets, reading.failed, reading.why, sweep.partitions) == ({}, {}, "", {})
    assert (await WireOffsets(Access(servers)).sweep({})).readings == {}


async def test_deleted_records_and_commits_beyond_the_end_are_not_beautified(servers: str) -> None:
    topic, group = created(servers, 2), uuid.uuid4().hex
    filled(servers, topic, {0: 9, 1: 3})
    committed(servers, group, [TopicPartition(topic, 0, 2), TopicPartition(topic, 1, 8)])
    delete_records(servers, topic, 6)
    sweep = await WireOffsets(Access(servers)).sweep({group: Asked()})
    assert read(sweep, group) == {Named(topic, 0): (2, 9, 6, 9), Named(topic, 1): (8, 3, 0, 3)}


def delete_records(servers: str, topic: str, offset: int) -> None:
    admin = AdminClient({"bootstrap.servers": servers})
    for future in admin.delete_records([TopicPartition(topic, 0, offset)]).values():
        future.result(stretched(30))


async def test_the_end_of_a_group_that_reads_committed_records_is_the_last_stable_offset(servers: str) -> None:
    topic, reads, peeks = created(servers), uuid.uuid4().hex, uuid.uuid4().hex
    for group in (reads, peeks):
        committed(servers, group, [TopicPartition(topic, 0, 3)])
    offsets = WireOffsets(Access(servers))

    async def both() -> list[tuple[int, int, int, int]]:
        sweep = await offsets.sweep({reads: Asked(read_committed=True), peeks: Asked()})
        return [read(sweep, group)[Named(topic, 0)] for group in (reads, peeks)]

    producer = Producer({"bootstrap.servers": servers, "transactional.id": topic})
    producer.init_transactions(stretched(30))
    for end, finish in ((4, producer.commit_transaction), (8, producer.abort_transaction)):     # three records and a marker
        producer.begin_transaction()
        for _ in range(3):
            producer.produce(topic, b"x", partition=0)
        assert producer.flush(stretched(30)) == 0
        assert await both() == [(3, end - 4, 0, end - 1), (3, end - 1, 0, end - 1)]
        finish(30)
        await eventually(both, lambda found, end=end: found == [(3, end, 0, end)] * 2)          # markers come a moment later


# --- faults ---------------------------------------------------------------------------------------------------------------


async def test_nobody_listens_and_nonsense_is_refused() -> None:
    first, second = loopback(9092), loopback(9092)
    with pytest.raises(Unreachable, match=rf"no bootstrap server answers: {first}: nobody listens there; {second}: "):
        await WireOffsets(Access(f"{first}, {second}")).sweep({"g": Asked()})
    for nonsense in ("kafka", "kafka:", ":9092", "kafka:no", "kafka:70000", "a:1,,b:2"):
        with pytest.raises(Refused, match="is not of the form HOST:PORT"):
            WireOffsets(Access(nonsense))


async def test_a_bootstrap_server_that_is_down_is_asked_last_from_then_on(servers: str) -> None:
    down = loopback(9092)
    offsets = WireOffsets(Access(f"{down},{servers}"))
    await offsets.sweep({})
    assert [str(server) for server in offsets._brokers._servers] == [servers, str(down)]


async def test_a_broker_that_hangs_spoils_only_what_it_coordinates_and_leads(tmp_path: Path) -> None:
    with kafka_cluster(tmp_path, brokers=(1, 2)) as cluster:
        cluster.start_zookeeper_mode("offsets.topic.num.partitions=8\n")
        topic = created(cluster.bootstrap, 2)
        groups = [f"group-{number}" for number in range(8)]
        for group in groups:
            committed(cluster.bootstrap, group, [TopicPartition(topic, number, 0) for number in range(2)])
        offsets = WireOffsets(Access(str(cluster.brokers[1].address)), seconds=1.5)
        whole = await offsets.sweep(dict.fromkeys(groups, Asked()))
        assert all(len(reading.offsets) == 2 for reading in whole.readings.values())
        with cluster.brokers[2].frozen():
            began = time.monotonic()
            sweep = await offsets.sweep(dict.fromkeys(groups, Asked()))
            assert time.monotonic() - began < stretched(5)
        lost = {group: reading for group, reading in sweep.readings.items() if reading.why}
        assert 0 < len(lost) < len(groups)
        # What is left of the time for the sweep is what the broker has, and goes into the words.
        silent = re.compile(rf"{cluster.brokers[2].address}: no complete answer within [01]\.?\d* s")
        assert all(silent.fullmatch(reading.why) for reading in lost.values())
        for group in set(groups) - lost.keys():
            reading = sweep.readings[group]
            assert len(reading.offsets) == 1
            [why] = reading.failed.values()
            assert silent.fullmatch(why)
        after = await offsets.sweep(dict.fromkeys(groups, Asked()))
        assert all(len(reading.offsets) == 2 for reading in after.readings.values())


async def test_a_coordinator_that_has_moved_or_loads_says_so() -> None:
    codes = {"moved": ErrorCode.not_coordinator, "loads": ErrorCode.coordinator_load_in_progress,
             "denied": ErrorCode.group_authorization_failed}

    def script(key: int, _request: bytes) -> object:
        if key == 10:
            return coordinator_v4.FindCoordinatorResponse(throttle_time=NO_WAIT, coordinators=tuple(
                coordinator_v4.Coordinator(
                    key=group, node_id=BrokerId(1), host=node.address.host, port=i32(node.address.port), error_message=None,
                    error_code=ErrorCode.coordinator_not_available if group == "none" else ErrorCode.none)
                for group in ("none", *codes)))
        return offsets_v8.OffsetFetchResponse(throttle_time=NO_WAIT, groups=tuple(
            offsets_v8.OffsetFetchResponseGroup(group_id=GroupId(group), topics=(), error_code=code)
            for group, code in codes.items()))

    async with Node(script) as node:
        sweep = await WireOffsets(Access(str(node.address))).sweep(dict.fromkeys(("none", "forgotten", *codes), Asked()))
    no_leader = "its partition of __consumer_offsets has no leader (COORDINATOR_NOT_AVAILABLE)"
    assert {group: reading.why for group, reading in sweep.readings.items()} == {
        "none": f"the group has no coordinator: {no_leader}",
        "moved": "the group's coordinator has moved (NOT_COORDINATOR)",
        "loads": "the group's coordinator is still loading its groups (COORDINATOR_LOAD_IN_PROGRESS)",
        "denied": "our user is not allowed to ask; it needs DESCRIBE on the group (GROUP_AUTHORIZATION_FAILED)",
        "forgotten": "the broker left it out of its answer",
    }


# --- verdicts on real groups ----------------------------------------------------------------------------------------------


class Member:
    """A consumer in a thread: commits every 200 ms; `frozen` it stays in the group and reads nothing."""

    def __init__(self, servers: str, group: str, topic: str) -> None:
        self._consumer = Consumer({
            "bootstrap.servers": servers, "group.id": group, "auto.offset.reset": "earliest",
            "auto.commit.interval.ms": 200, "session.timeout.ms": 6000, "allow.auto.create.topics": False})
        self._consumer.subscribe([topic])
        self.frozen = False
        self._ends = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        while not self._ends.is_set():
            if self.frozen and (assigned := self._consumer.assignment()):
                self._consumer.pause(assigned)
            self._consumer.poll(0.05)

    def leave(self) -> None:
        if not self._ends.is_set():
            self._ends.set()
            self._thread.join()
            self._consumer.close()


@contextlib.contextmanager
def traffic(servers: str, topic: str, partitions: int) -> Iterator[None]:
    """Some ten records a second to each partition."""
    ends = threading.Event()

    def run() -> None:
        producer = Producer({"bootstrap.servers": servers, "linger.ms": 0})
        while not ends.wait(0.1):
            for number in range(partitions):
                producer.produce(topic, b"x", partition=number)
            producer.poll(0)
        producer.purge()

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        ends.set()
        thread.join()


class Watched:
    """One group, polled as the operator would."""

    def __init__(self, servers: str, group: str, *, read_committed: bool = False) -> None:
        self._memberships = WireGroups(Access(servers))
        self._collector = LagCollector(WireOffsets(Access(servers)), WallClock(), QUICK)
        self._group = group
        self._read_committed = read_committed
        self.membership = Membership("", {})

    async def poll(self) -> Assessment:
        found = (await self._memberships.memberships([self._group]))[self._group]
        assert isinstance(found, Membership), found
        self.membership = found
        sweep = await self._collector.sweep({self._group: Asked(found.topics, self._read_committed)})
        reading = sweep.readings[self._group]
        return self._collector.assess(self._group, group_of(found, sweep.partitions, reading.committed))

    async def until(self, *verdicts: Verdict, gate: Effect | None = None, seconds: float = 60) -> Assessment:
        """Until every expected partition has one of these verdicts, and the gate says that."""
        patience, last = Patience(seconds), None
        while not patience.over:
            last = await self.poll()
            rows = [row for row, each in enumerate(last.partitions) if each in last.group.expected]
            if (rows and not last.evaluation.missing and {last.judged.verdict[row] for row in rows} <= set(verdicts)
                    and (gate is None or last.gate.effect is gate)):
                return last
            await asyncio.sleep(POLL)
        assert last is not None
        raise AssertionError(f"{self.membership.state}: {last.group}, {last.gate}, "
                             f"{[Verdict(code).name for code in last.judged.verdict]}, {last.reading}")


@pytest.fixture
def group(servers: str) -> Iterator[tuple[str, str, Member]]:
    """A topic of two partitions under load, and a group with one member."""
    topic, name = created(servers, 2), uuid.uuid4().hex
    with traffic(servers, topic, 2):
        member = Member(servers, name, topic)
        try:
            yield name, topic, member
        finally:
            member.leave()


async def test_a_healthy_group_passes_and_one_that_stands_still_fails(servers: str, group: tuple[str, str, Member]) -> None:
    name, topic, member = group
    watched = Watched(servers, name)
    passing = await watched.until(Verdict.OK, gate=Effect.PASS)
    assert passing.group == Group(frozenset({Named(topic, 0), Named(topic, 1)}), True, watched.membership.generation, True)
    assert passing.sampled is not None
    assert abs(passing.sampled - time.time() * 1000) < 5000
    member.frozen = True
    failing = await watched.until(Verdict.STOPPED, gate=Effect.FAIL)
    assert failing.group.stable
    member.frozen = False


async def test_a_group_whose_members_are_gone_fails_and_never_passes(servers: str, group: tuple[str, str, Member]) -> None:
    name, topic, member = group
    watched = Watched(servers, name)
    await watched.until(Verdict.OK, gate=Effect.PASS)
    member.leave()
    assert (await watched.poll()).gate.effect is not Effect.PASS
    failing = await watched.until(Verdict.STOPPED, gate=Effect.FAIL)
    assert watched.membership == Membership("Empty", {})
    assert failing.group.expected == {Named(topic, 0), Named(topic, 1)}


async def test_a_new_member_is_another_generation(servers: str, group: tuple[str, str, Member]) -> None:
    name, topic, _ = group
    watched = Watched(servers, name)
    before = await watched.until(Verdict.OK, gate=Effect.PASS)
    second = Member(servers, name, topic)
    try:
        patience = Patience(30)
        while len(watched.membership.assigned) < 2 or not (after := await watched.poll()).group.stable:
            assert not patience.over
            after = await watched.poll()
        assert after.group.generation != before.group.generation
        assert after.gate.effect is not Effect.PASS
        await watched.until(Verdict.OK, gate=Effect.PASS)
    finally:
        second.leave()


async def test_records_deleted_before_they_were_consumed_are_lost(servers: str) -> None:
    topic, name = created(servers), uuid.uuid4().hex
    filled(servers, topic, {0: 20})
    committed(servers, name, [TopicPartition(topic, 0, 5)])
    delete_records(servers, topic, 10)
    assert (await Watched(servers, name).until(Verdict.LOST)).gate.effect is Effect.FAIL


@pytest.mark.long
async def test_a_topic_that_is_deleted_is_never_a_pass(servers: str) -> None:
    topic, name = created(servers), uuid.uuid4().hex
    filled(servers, topic, {0: 20})
    member = Member(servers, name, topic)
    try:
        watched = Watched(servers, name)
        await watched.until(Verdict.OK, Verdict.IDLE, gate=Effect.PASS)
        admin = AdminClient({"bootstrap.servers": servers})
        admin.delete_topics([topic])[topic].result(stretched(30))
        found = await eventually(watched.poll, lambda seen: seen.evaluation.effect is Effect.INCONCLUSIVE)
        for _ in range(8):
            assert found.gate.effect is Effect.INCONCLUSIVE
            await asyncio.sleep(POLL)
            found = await watched.poll()
    finally:
        member.leave()


async def test_an_open_transaction_is_lag_only_for_who_reads_uncommitted_records(servers: str) -> None:
    topic, name = created(servers), uuid.uuid4().hex
    producer = Producer({"bootstrap.servers": servers, "transactional.id": topic})
    producer.init_transactions(stretched(30))
    producer.begin_transaction()
    for _ in range(5):
        producer.produce(topic, b"x", partition=0)
    assert producer.flush(stretched(30)) == 0
    committed(servers, name, [TopicPartition(topic, 0, 0)])
    await Watched(servers, name, read_committed=True).until(Verdict.IDLE)
    await Watched(servers, name).until(Verdict.STOPPED)
    producer.abort_transaction(stretched(30))


# --- the command ----------------------------------------------------------------------------------------------------------

COMMAND = (sys.executable, "-c", "from switchover.cli.entry import main; main()")
BRISK = ("--every", "2", "--samples", "3", "--span", "3")


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["lag", "--bootstrap-server", *arguments])


def test_the_command_judges_a_healthy_group(servers: str, group: tuple[str, str, Member]) -> None:
    name, topic, _ = group
    asyncio.run(Watched(servers, name).until(Verdict.OK))
    done = run(servers, "--group", name, *BRISK)
    assert done.exit_code == 0, done
    header, row, at = done.stdout.splitlines()
    assert header.split() == ["GROUP", "STATE", "MEMBERS", "PARTITIONS", "LAG", "TIME", "LAG", "VERDICT"]
    assert row.split()[:4] == [name, "Stable", "1", "2"]
    assert row.split()[-1] == "PASS"
    assert at.startswith("at 20")
    assert done.stderr.splitlines()[:2] == ["switchover: needs 2 more samples over 4 s for a verdict",
                                            "switchover: needs 1 more sample over 2 s for a verdict"]
    document = json.loads(run(servers, "--topic", topic, "--output", "json", *BRISK).stdout)
    [told] = document["groups"]
    assert (document["verdict"], told["group"], told["state"], told["members"]) == ("PASS", name, "Stable", 1)
    assert [(each["partition"], each["verdict"]) for each in told["partitions"]] == [(0, "OK"), (1, "OK")]


def test_the_command_fails_where_records_are_lost(servers: str) -> None:
    topic, name = created(servers), uuid.uuid4().hex
    filled(servers, topic, {0: 20})
    committed(servers, name, [TopicPartition(topic, 0, 5)])
    delete_records(servers, topic, 10)
    done = run(servers, "--group", name, *BRISK)
    assert done.exit_code == 1, done
    assert f"{name}: {topic}-0 is LOST: the log starts at 10 and the committed offset is 5" in done.stdout


def test_an_interrupted_watch_ends_cleanly_with_the_last_verdict(servers: str, group: tuple[str, str, Member]) -> None:
    name, _, _ = group
    asyncio.run(Watched(servers, name).until(Verdict.OK))
    for lines, code in ((6, 0), (0, 3)):
        command = subprocess.Popen(
            [*COMMAND, "lag", "--bootstrap-server", servers, "--group", name, "--watch", *BRISK],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert command.stdout is not None
        assert command.stderr is not None
        if lines:
            assert all(command.stdout.readline() for _ in range(lines))
        else:
            assert command.stderr.readline()
        command.send_signal(signal.SIGINT)
        _, errors = command.communicate(timeout=stretched(30))
        assert command.returncode == code
        assert "Traceback" not in errors


@pytest.mark.parametrize(("arguments", "words"), [
    (("127.0.0.1:1",), "no bootstrap server answers: 127.0.0.1:1: nobody listens there"),
    (("SERVERS", "--group", "nobody-is-here"), "group nobody-is-here does not exist at SERVERS"),
    (("SERVERS", "--topic", "nothing"), "no consumer group at SERVERS has anything to consume of nothing"),
])
def test_what_cannot_be_asked_is_told_in_words(servers: str, arguments: tuple[str, ...], words: str) -> None:
    done = run(*(each.replace("SERVERS", servers) for each in arguments))
    assert done.exit_code == 2
    assert done.stdout == ""
    assert done.stderr.startswith(f"switchover: {words.replace('SERVERS', servers)}")
    assert len(done.stderr.splitlines()) == 1


def test_the_command_tells_at_once_what_one_sample_proves(servers: str) -> None:
    topic, drained, behind, lost = created(servers), *(uuid.uuid4().hex for _ in range(3))
    filled(servers, topic, {0: 9})
    committed(servers, drained, [TopicPartition(topic, 0, 9)])
    committed(servers, behind, [TopicPartition(topic, 0, 7)])
    committed(servers, lost, [TopicPartition(topic, 0, 2)])
    delete_records(servers, topic, 6)
    started = time.monotonic()
    done = run(servers, "--once", "--output", "json", *(f"--group={name}" for name in (drained, behind, lost)))
    assert time.monotonic() - started < stretched(10)
    assert done.exit_code == 1, done
    groups = {each["group"]: each for each in json.loads(done.stdout)["groups"]}
    assert {name: [each["verdict"] for each in groups[name]["partitions"]] for name in groups} == {
        drained: ["OK"], behind: ["UNKNOWN"], lost: ["LOST"]}
    assert "not judged yet: lag 2" in groups[behind]["partitions"][0]["says"]


async def test_a_topic_that_was_made_anew_and_a_group_that_is_gone_are_told(servers: str) -> None:
    topic, kept, gone = created(servers), *(uuid.uuid4().hex for _ in range(2))
    filled(servers, topic, {0: 3})
    for name in (kept, gone):
        committed(servers, name, [TopicPartition(topic, 0, 3)])
    question = Question(Access(servers), (), frozenset(), False, thresholds_of(1, 2, 1))
    admin = AdminClient({"bootstrap.servers": servers})
    async with contextlib.aclosing(follow_from_here(question)) as reports:
        async def until(holds: Callable[[Mapping[str, GroupReport]], bool]) -> None:
            patience = Patience(40)
            async for report in reports:
                groups = {each.name: each for each in report.groups}
                assert groups.keys() >= {kept, gone}, "nobody is dropped"
                if holds(groups):
                    return
                assert not patience.over, [each.name for each in report.groups]

        await until(lambda groups: not groups[gone].gone and not groups[kept].remade)
        admin.delete_consumer_groups([gone])[gone].result(stretched(30))
        await until(lambda groups: groups[gone].gone and not groups[kept].gone)
        admin.delete_topics([topic])[topic].result(stretched(30))
        await until(lambda groups: not groups[kept].assessment.reading.offsets)
        create_topic(servers, topic, 1)
        await until(lambda groups: groups[kept].remade == (topic,) and groups[kept].effect is not Effect.PASS)
