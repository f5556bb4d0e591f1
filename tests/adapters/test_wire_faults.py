"""Answers that real Kafka does not give on demand, from a node on loopback that speaks the protocol by script."""

import asyncio
import contextlib
import io
import threading
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any, cast
from uuid import UUID

import pytest
from kio.records.schema import NewRecordBatch, Record
from kio.records.writers import write_new_batch
from kio.schema.api_versions import v0 as api_versions_v0
from kio.schema.errors import ErrorCode
from kio.schema.fetch.v13 import FetchRequest, FetchResponse
from kio.schema.fetch.v13 import response as fetch_v13
from kio.schema.fetch_snapshot.v0 import FetchSnapshotRequest, FetchSnapshotResponse
from kio.schema.fetch_snapshot.v0 import response as snapshot_v0
from kio.schema.find_coordinator.v4 import response as find_coordinator_v4
from kio.schema.metadata.v10 import response as metadata_v10
from kio.schema.offset_fetch.v8 import response as offset_fetch_v8
from kio.schema.sasl_authenticate.v1 import SaslAuthenticateRequest, SaslAuthenticateResponse
from kio.schema.sasl_handshake.v1 import SaslHandshakeResponse
from kio.schema.types import BrokerId, GroupId, TopicName
from kio.serial import entity_reader, entity_writer
from kio.static.primitive import Records, TZAwareMicros, i8, i16, i32, i32Timedelta, i64, i64Timedelta

from adapters.clusters import patient_wire
from fakes.kafka_node import NODE, Node, quorum_answer
from patience import stretched
from switchover.answers import memory
from switchover.answers.ask import known
from switchover.answers.clock import WallClock
from switchover.answers.errors import Refused, Unreachable
from switchover.answers.observed import Unknown
from switchover.kafka.client import bounds
from switchover.kafka.client.connection import LARGE_ANSWER, Connection
from switchover.kafka.client.groups import WireGroups
from switchover.kafka.client.metadata import WholeViews
from switchover.kafka.client.metadata_log import MetadataLog
from switchover.kafka.client.nodes import KafkaWire
from switchover.kafka.client.offsets import WireOffsets
from switchover.lag.window import Asked
from switchover.metadata.parity import MigrationState
from switchover.network.addresses import Address
from switchover.network.credentials import KAFKA, Access, allowed_servers

FETCH, DESCRIBE_QUORUM, FETCH_SNAPSHOT, SASL_HANDSHAKE = 1, 55, 59, 17
METADATA, OFFSET_FETCH, FIND_COORDINATOR, SASL_AUTHENTICATE = 3, 9, 10, 36

NO_OP = bytes.fromhex("01140000")
PRE_MIGRATION, MIGRATION = bytes.fromhex("0115000200"), bytes.fromhex("0115000100")
CONTROL = 0x20


def batch(offset: int, *values: bytes, epoch: int = 1, attributes: int = 0, at: int = 0) -> bytes:
    time = TZAwareMicros.parse(datetime(2026, 11, 21, tzinfo=UTC) + timedelta(seconds=at))
    with io.BytesIO() as out:
        write_new_batch(out, NewRecordBatch(
            producer_id=i64(-1), producer_epoch=i16(-1), base_sequence=i32(-1), attributes=i16(attributes),
            partition_leader_epoch=i32(epoch), records=tuple(
                Record(attributes=i8(0), timestamp=time, offset=i64(offset + index), key=None, value=value, headers=())
                for index, value in enumerate(values)),
        ))
        return out.getvalue()


@dataclass
class Leader:
    """A quorum of one whose log is `batches`; keeps what it was asked for as (offset, last epoch)."""

    batches: dict[int, bytes]
    high_watermark: int
    epoch: int = 1
    change: dict[str, Any] = field(default_factory=dict)
    """What is different in the next partition answers."""
    asked: list[tuple[int, int]] = field(default_factory=list)

    def __call__(self, api_key: int, body: bytes) -> Any:
        if api_key == DESCRIBE_QUORUM:
            return quorum_answer(epoch=self.epoch)
        assert api_key == FETCH
        request, _ = entity_reader(FetchRequest)(body, 1)           # after the header's empty tagged fields
        wanted = request.topics[0].partitions[0]
        assert request.replica_id == -1
        assert request.topics[0].topic_id == UUID(int=1)
        assert wanted.current_leader_epoch == self.epoch
        self.asked.append((wanted.fetch_offset, wanted.last_fetched_epoch))
        records = b"".join(data for offset, data in self.batches.items() if offset >= wanted.fetch_offset)
        partition = replace(fetch_v13.PartitionData(
            partition_index=i32(0), error_code=ErrorCode.none, high_watermark=i64(self.high_watermark),
            log_start_offset=i64(0), aborted_transactions=None, records=Records(records),
        ), **self.change)
        return FetchResponse(
            throttle_time=i32Timedelta.parse(timedelta()), error_code=ErrorCode.none,
            responses=(fetch_v13.FetchableTopicResponse(topic_id=UUID(int=1), partitions=(partition,)),),
        )


@contextlib.asynccontextmanager
async def reading(leader: Callable[[int, bytes], Any], seconds: float = 10) -> AsyncIterator[Callable[[], Any]]:
    """`log()` of that leader, by one wire that lives as long as the block."""
    wire = KafkaWire({}, seconds=seconds)
    async with Node(leader) as node:
        yield lambda: wire.log({NODE: node.address})


# --- Any question -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("answer", "why"), [
    (None, r"no complete answer within 0\.4 s"),
    (b"HTTP/1.1 400 Bad Request\r\n", "does not speak Kafka's protocol"),
    (b"\x00\x00\x00\x02\x00\x00", "does not speak Kafka's protocol"),
    (b"\x00\x00\x00\x06\x00\x00\x00\x07\x00\x00", "answered another request"),
    (b"\x00\x00\x00\x06\x00\x00\x00\x00\x00\x00", "unreadable answer: "),
    (b"\x00\x00\x00\x06\x00\x00\x00\x00\x7f\xff", "unreadable answer: "),
])
async def test_answers_that_are_none(answer: bytes | None, why: str) -> None:
    async with Node(lambda *_: answer) as node:
        with pytest.raises(Unreachable, match=f"^{node.address}: {why}"):
            await KafkaWire({}, seconds=10 if answer else 0.4).api_versions(node.address)


async def test_an_answer_that_the_memory_limit_has_no_room_for_is_refused_with_the_limit_that_has(
        monkeypatch: pytest.MonkeyPatch) -> None:
    """512,000 API keys of six bytes: 78 MiB when they are read. What is only announced is not waited for."""
    monkeypatch.setattr(memory, "limit", lambda: 128 * memory.MIB)
    monkeypatch.setattr(memory, "room", memory.room.__wrapped__)
    count = 512_000
    frame = bytes(4) + i16(0).to_bytes(2) + count.to_bytes(4) + bytes.fromhex("7fff 7fff 7fff".replace(" ", "")) * count
    old = bytes(4) + ErrorCode.unsupported_version.value.to_bytes(2) + bytes(4)
    answers = iter([old, frame])

    def script(api_key: int, body: bytes) -> bytes:
        answer = next(answers)
        return len(answer).to_bytes(4) + answer[:3] + (b"\1" if answer is frame else b"\0") + answer[4:]

    async with Node(script) as node:
        with pytest.raises(Refused, match=f"^{node.address}: an answer of it takes 81 MiB of memory, more than the operator"
                                          r" has for one; give the operator a limit of 242Mi \(resources\.limits\.memory\)"):
            await KafkaWire({}, seconds=stretched(10)).api_versions(node.address)
    async with Node(lambda *_: (40 * memory.MIB).to_bytes(4)) as node:
        with pytest.raises(Refused, match="takes 80 MiB of memory"):
            await KafkaWire({}, seconds=stretched(10)).api_versions(node.address)


async def test_a_large_answer_is_read_beside_the_event_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    threads: dict[bool, set[str]] = {False: set(), True: set()}
    made = bounds.Measured.made

    def noted(measured: bounds.Measured[Any]) -> Any:
        threads[measured.end > LARGE_ANSWER].add(threading.current_thread().name)
        return made(measured)

    monkeypatch.setattr(bounds.Measured, "made", noted)
    broker = metadata_v10.MetadataResponseBroker(node_id=BrokerId(1), host="a", port=i32(9092), rack=None)

    def metadata(topics: int) -> Any:
        return metadata_v10.MetadataResponse(
            throttle_time=i32Timedelta.parse(timedelta()), brokers=(broker,), topics=tuple(
                metadata_v10.MetadataResponseTopic(
                    error_code=ErrorCode.none, name=TopicName(f"t{number}"), topic_id=None, partitions=())
                for number in range(topics)))

    read = WholeViews.read

    def noted_whole(views: WholeViews, told: Address, data: bytes) -> Any:
        threads[len(data) > LARGE_ANSWER].add(threading.current_thread().name)
        return read(views, told, data)

    monkeypatch.setattr(WholeViews, "read", noted_whole)
    answers = iter([metadata(1), metadata(1), metadata(30_000), metadata(30_000)])
    async with Node(lambda *_: next(answers)) as node:
        wire = KafkaWire({}, seconds=stretched(10))
        for ask in (wire.known_brokers, wire.metadata, wire.known_brokers, wire.metadata):
            monkeypatch.setattr(bounds.Measured, "made", made if ask == wire.metadata else noted)
            await ask(node.address)
    assert threads[False] == {threading.main_thread().name}
    assert all(name.startswith("large answers") for name in threads[True]), threads
    assert threads[True]


async def test_a_name_that_does_not_resolve() -> None:
    with pytest.raises(Unreachable, match=r"^kafka\.invalid:9092: "):
        await patient_wire({}).metadata(Address("kafka.invalid", 9092))


async def test_a_node_too_old_for_api_versions_3_still_tells_its_keys() -> None:
    answers = iter((
        api_versions_v0.ApiVersionsResponse(error_code=ErrorCode.unsupported_version, api_keys=()),
        api_versions_v0.ApiVersionsResponse(error_code=ErrorCode.none, api_keys=(
            api_versions_v0.response.ApiVersion(api_key=i16(4), min_version=i16(0), max_version=i16(2)),)),
    ))
    async with Node(lambda *_: next(answers)) as node:
        answer = await patient_wire({}).api_versions(node.address)
    assert (dict(answer.api_keys), answer.features_epoch, answer.metadata_version) == ({4: 2}, -1, None)


async def test_missing_rights_are_a_refusal_that_names_them() -> None:
    denied = ErrorCode.cluster_authorization_failed
    async with Node(lambda *_: quorum_answer(error=denied)) as node:
        with pytest.raises(Refused, match=f"{node.address}: the user may not describe the quorum; grant it Describe"):
            await patient_wire({}).quorum([node.address])
    async with reading(Leader({}, 0, change={"error_code": denied})) as log:
        with pytest.raises(Refused, match="may not read the metadata log; grant it ClusterAction on the Cluster"):
            await log()


async def test_a_broker_that_has_just_started_and_knows_of_none_is_no_evidence() -> None:
    """Not of a cluster without brokers, nor of topics that do not exist, nor of ones without compression."""
    def script(api_key: int, body: bytes) -> Any:
        if api_key == OFFSET_FETCH:
            return offset_fetch_v8.OffsetFetchResponse(throttle_time=i32Timedelta.parse(timedelta()), groups=(
                offset_fetch_v8.OffsetFetchResponseGroup(group_id=GroupId("g"), topics=(), error_code=ErrorCode.none),))
        if api_key == FIND_COORDINATOR:
            return find_coordinator_v4.FindCoordinatorResponse(throttle_time=i32Timedelta.parse(timedelta()), coordinators=(
                find_coordinator_v4.Coordinator(key="g", node_id=BrokerId(1), host=node.address.host, port=i32(
                    node.address.port), error_code=ErrorCode.none, error_message=None),))
        assert api_key == METADATA
        return metadata_v10.MetadataResponse(throttle_time=i32Timedelta.parse(timedelta()), brokers=(), topics=(
            metadata_v10.MetadataResponseTopic(error_code=ErrorCode.unknown_topic_or_partition, name=TopicName("t"),
                                               topic_id=None, partitions=()),))

    async with Node(script) as node:
        access = Access(str(node.address))
        groups = WireGroups(access)
        for question in (groups.cluster(), groups.partitions(["t"]), groups.offsets_topic(), patient_wire({}).metadata(
                node.address), WireOffsets(access).sweep({"g": Asked(frozenset({"t"}))})):
            with pytest.raises(Unreachable, match=f"{node.address}: has just started, and has no metadata yet"):
                await question
        assert await known(patient_wire({}).metadata(node.address), stretched(10), WallClock()) == Unknown(
            f"{node.address}: has just started, and has no metadata yet", no_metadata=True)


async def test_a_node_that_wants_a_password_hashed_for_minutes_is_refused() -> None:
    def script(api_key: int, body: bytes) -> Any:
        if api_key == SASL_HANDSHAKE:
            return SaslHandshakeResponse(error_code=ErrorCode.none, mechanisms=("SCRAM-SHA-256",))
        nonce = entity_reader(SaslAuthenticateRequest)(body, 0)[0].auth_bytes.partition(b"r=")[2]
        return SaslAuthenticateResponse(error_code=ErrorCode.none, error_message=None, session_lifetime=i64Timedelta.parse(
            timedelta()), auth_bytes=b"r=" + nonce + b"x,s=MTIzNDU2Nzg5MDEy,i=3000000")

    login = 'org.apache.kafka.common.security.scram.ScramLoginModule required username="u" password="p";'
    wire = KafkaWire({"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "SCRAM-SHA-256", "sasl.jaas.config": login},
                     seconds=10)
    async with Node(script) as node:
        with pytest.raises(Refused, match="wants the password hashed 3,000,000 times, and no Kafka wants more than 16,384"):
            await wire.api_versions(node.address)


async def test_credentials_go_to_no_node_that_their_secret_does_not_name() -> None:
    """Neither to one that is asked directly, nor to one that a broker tells of."""
    told: list[int] = []
    login = 'org.apache.kafka.common.security.plain.PlainLoginModule required username="u" password="canary";'
    ours = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN", "sasl.jaas.config": login}

    def foreign(api_key: int, body: bytes) -> Any:
        told.append(api_key)

    async with Node(foreign) as other:
        def broker(api_key: int, body: bytes) -> Any:
            if api_key == SASL_HANDSHAKE:
                return SaslHandshakeResponse(error_code=ErrorCode.none, mechanisms=("PLAIN",))
            if api_key == SASL_AUTHENTICATE:
                return SaslAuthenticateResponse(error_code=ErrorCode.none, error_message=None, auth_bytes=b"",
                                                session_lifetime=i64Timedelta.parse(timedelta()))
            assert api_key == FIND_COORDINATOR
            return find_coordinator_v4.FindCoordinatorResponse(throttle_time=i32Timedelta.parse(timedelta()), coordinators=(
                find_coordinator_v4.Coordinator(key="g", node_id=BrokerId(1), host=other.address.host, port=i32(
                    other.address.port), error_code=ErrorCode.none, error_message=None),))

        async with Node(broker) as node:
            allowed = allowed_servers("ours", "demo", {KAFKA: str(node.address)}, KAFKA)
            refusal = f"Secret ours does not name {other.address} in its key bootstrap.servers"
            with pytest.raises(Refused, match=refusal):
                await KafkaWire(ours, allowed).metadata(other.address)
            access = Access(str(node.address), ours, allowed)
            [reading] = (await WireOffsets(access).sweep({"g": Asked(frozenset({"t"}))})).readings.values()
            assert refusal in str(reading)
    assert not told


async def test_of_two_that_claim_to_lead_the_later_epoch_counts() -> None:
    async with Node(lambda *_: quorum_answer(epoch=4)) as old, Node(lambda *_: quorum_answer(epoch=5)) as new:
        assert (await patient_wire({}).quorum([old.address, new.address])).leader_epoch == 5


# --- The metadata log -------------------------------------------------------------------------------------------------


async def test_batches_are_applied_up_to_the_high_watermark_and_the_next_call_goes_on() -> None:
    uncommitted = batch(5, MIGRATION, epoch=2)
    leader = Leader({0: batch(0, b"leader change", attributes=CONTROL), 1: batch(1, PRE_MIGRATION, NO_OP),
                     3: batch(3, NO_OP, NO_OP, epoch=2), 5: uncommitted}, high_watermark=5, epoch=2)
    async with reading(leader) as log:
        first = await log()
        assert (first.offset, first.epoch, first.migration_state) == (4, 2, MigrationState.PRE_MIGRATION)
        leader.high_watermark = 6
        second = await log()
    assert (second.offset, second.migration_state) == (5, MigrationState.MIGRATION)
    assert leader.asked == [(0, 0), (3, 1)], "the last batch is read again, after the epoch before it"


async def test_a_batch_cut_off_at_the_end_of_an_answer_is_read_with_the_next() -> None:
    whole = {0: batch(0, PRE_MIGRATION), 1: batch(1, NO_OP), 2: batch(2, MIGRATION)}

    class Cutting(Leader):
        def __call__(self, api_key: int, body: bytes) -> Any:
            self.batches = {0: whole[0], 1: whole[1], 2: whole[2][:-3 if len(self.asked) < 1 else None]}
            return super().__call__(api_key, body)

    leader = Cutting({}, high_watermark=3)
    async with reading(leader) as log:
        assert (await log()).migration_state is MigrationState.MIGRATION
    assert leader.asked == [(0, 0), (1, 1)]


async def test_an_empty_log_is_an_empty_image() -> None:
    async with reading(Leader({}, high_watermark=0)) as log:
        assert (await log()).offset == -1


async def test_what_was_read_stays_when_the_time_is_up() -> None:
    class Tiring(Leader):
        """Half the log, then silence; the other half when it is asked anew."""

        def __call__(self, api_key: int, body: bytes) -> Any:
            if api_key == FETCH and len(self.asked) == 1:
                self.asked.append((-1, -1))
                return None
            self.batches = {0: batch(0, PRE_MIGRATION), 1: batch(1, NO_OP)}
            if len(self.asked) > 1:
                self.batches[2] = batch(2, MIGRATION)
            return super().__call__(api_key, body)

    leader = Tiring({}, high_watermark=3)
    async with reading(leader, seconds=2) as log:
        with pytest.raises(Unreachable, match="no complete answer within"):
            await log()
        assert (await log()).migration_state is MigrationState.MIGRATION
    assert leader.asked == [(0, 0), (-1, -1), (1, 1)]


@pytest.mark.parametrize(
    "why", ["diverging", "another first batch", "nothing there", "epochs ran back"])
async def test_a_log_that_is_not_the_one_read_before_is_read_from_its_start(why: str) -> None:
    leader = Leader({0: batch(0, MIGRATION, epoch=3), 1: batch(1, NO_OP, epoch=3)}, high_watermark=2, epoch=3)
    anew = {0: batch(0, PRE_MIGRATION, epoch=1, at=9), 1: batch(1, NO_OP, epoch=1, at=9)}

    first_answer: dict[str, dict[str, Any]] = {
        "diverging": {"diverging_epoch": fetch_v13.EpochEndOffset(epoch=i32(1), end_offset=i64(1))},
        "nothing there": {"records": None},
    }

    class Replaced(Leader):
        def __call__(self, api_key: int, body: bytes) -> Any:
            self.change = {} if self.asked else first_answer.get(why, {})
            return super().__call__(api_key, body)

    replaced = Replaced(anew, high_watermark=2, epoch=1 if why == "epochs ran back" else 3)
    current: list[Leader] = [leader]
    async with reading(lambda api_key, body: current[0](api_key, body)) as log:
        assert (await log()).migration_state is MigrationState.MIGRATION
        current[0] = replaced
        image = await log()
    assert image.migration_state is MigrationState.PRE_MIGRATION
    assert replaced.asked[-1] == (0, 0)
    assert len(replaced.asked) == (1 if why == "epochs ran back" else 2)


# --- Snapshots --------------------------------------------------------------------------------------------------------


@dataclass
class Trimmed(Leader):
    """A log that begins at `start`, with a snapshot of what was before, sent in parts of `part` bytes."""

    start: int = 5
    start_epoch: int = 1
    snapshot: bytes = b""
    part: int = 1 << 20
    positions: list[int] = field(default_factory=list)
    error: ErrorCode = ErrorCode.none
    """What the next request for the snapshot is answered."""

    def __call__(self, api_key: int, body: bytes) -> Any:
        if api_key == FETCH_SNAPSHOT:
            request, _ = entity_reader(FetchSnapshotRequest)(body, 1)
            return self._part(request)
        if api_key == FETCH:
            request, _ = entity_reader(FetchRequest)(body, 1)
            wanted = request.topics[0].partitions[0]
            older = wanted.fetch_offset < self.start or (wanted.fetch_offset, wanted.last_fetched_epoch) == (self.start, 0)
            known = fetch_v13.SnapshotId(epoch=i32(self.start_epoch), end_offset=i64(self.start))
            self.change = {"snapshot_id": known} if older else {}
        return super().__call__(api_key, body)

    def _part(self, request: FetchSnapshotRequest) -> Any:
        assert request.replica_id == -1
        wanted = request.topics[0].partitions[0]
        assert (wanted.snapshot_id.end_offset, wanted.snapshot_id.epoch) == (self.start, self.start_epoch)
        assert wanted.current_leader_epoch == self.epoch
        self.positions.append(wanted.position)
        error, self.error = self.error, ErrorCode.none
        data = self.snapshot[wanted.position:wanted.position + self.part]
        return FetchSnapshotResponse(
            throttle_time=i32Timedelta.parse(timedelta()), error_code=ErrorCode.none,
            topics=(snapshot_v0.TopicSnapshot(name=TopicName("__cluster_metadata"), partitions=(
                snapshot_v0.PartitionSnapshot(
                    index=i32(0), error_code=error,
                    snapshot_id=snapshot_v0.SnapshotId(end_offset=i64(self.start), epoch=i32(self.start_epoch)),
                    current_leader=snapshot_v0.LeaderIdAndEpoch(leader_id=BrokerId(NODE), leader_epoch=i32(self.epoch)),
                    size=i64(len(self.snapshot)), position=wanted.position, unaligned_records=cast(Records, data),
                ),),),),
        )


SNAPSHOT = (batch(0, b"header", attributes=CONTROL) + batch(1, PRE_MIGRATION, NO_OP, MIGRATION)
            + batch(4, b"footer", attributes=CONTROL))
HALF = len(SNAPSHOT) // 2 + 1


async def test_a_trimmed_log_begins_with_its_snapshot() -> None:
    leader = Trimmed({5: batch(5, NO_OP), 6: batch(6, NO_OP)}, high_watermark=7, snapshot=SNAPSHOT)
    async with reading(leader) as log:
        image = await log()
        assert (image.migration_state, image.offset) == (MigrationState.MIGRATION, 6)
        leader.batches[7] = batch(7, PRE_MIGRATION)
        leader.high_watermark = 8
        assert (await log()).migration_state is MigrationState.PRE_MIGRATION
    assert leader.positions == [0]
    assert leader.asked == [(0, 0), (5, 1), (6, 1)]


@pytest.mark.parametrize("part", [1, 7, 61, 100])
async def test_a_snapshot_in_parts_of_any_size(part: int) -> None:
    leader = Trimmed({}, high_watermark=5, snapshot=SNAPSHOT, part=part)
    async with reading(leader, seconds=20) as log:
        image = await log()
    assert (image.migration_state, image.offset, image.epoch) == (MigrationState.MIGRATION, 4, 1)
    assert len(leader.positions) == -(-len(SNAPSHOT) // part)


async def test_a_log_trimmed_behind_our_back_is_read_from_the_snapshot() -> None:
    before = Leader({0: batch(0, PRE_MIGRATION), 1: batch(1, NO_OP)}, high_watermark=2)
    after = Trimmed({5: batch(5, NO_OP)}, high_watermark=6, snapshot=SNAPSHOT)
    current: list[Leader] = [before]
    async with reading(lambda api_key, body: current[0](api_key, body)) as log:
        assert (await log()).migration_state is MigrationState.PRE_MIGRATION
        current[0] = after
        assert (await log()).migration_state is MigrationState.MIGRATION
    assert after.asked == [(1, 1), (5, 1)]


@pytest.mark.parametrize("error", [ErrorCode.snapshot_not_found, ErrorCode.position_out_of_range])
async def test_a_snapshot_that_made_room_for_a_newer_one_is_given_up(error: ErrorCode) -> None:
    leader = Trimmed({}, high_watermark=5, snapshot=SNAPSHOT, part=HALF, error=error)
    async with reading(leader) as log:
        assert (await log()).migration_state is MigrationState.MIGRATION
    assert leader.positions == [0, 0, HALF]
    assert leader.asked == [(0, 0), (0, 0), (5, 1)]


async def test_a_snapshot_interrupted_is_read_on_where_it_was() -> None:
    class Tiring(Trimmed):
        def __call__(self, api_key: int, body: bytes) -> Any:
            if api_key == FETCH_SNAPSHOT and len(self.positions) == 1:
                self.positions.append(-1)
                return None
            return super().__call__(api_key, body)

    leader = Tiring({}, high_watermark=5, snapshot=SNAPSHOT, part=HALF)
    async with reading(leader, seconds=2) as log:
        with pytest.raises(Unreachable, match="no complete answer within"):
            await log()
        assert (await log()).migration_state is MigrationState.MIGRATION
    assert leader.positions == [0, -1, HALF]


async def test_a_batch_interrupted_half_way_is_not_replayed_twice() -> None:
    """A transaction begun twice would be an error."""
    begin, end = bytes.fromhex(BEGIN), bytes.fromhex("01180000")
    leader = Leader({0: batch(0, begin, *[NO_OP] * 700, end, MIGRATION)}, high_watermark=703)
    node = Address("nobody", 1)
    log = MetadataLog()

    class AtOnce:
        async def ask(self, request: FetchRequest, _: object) -> Any:
            body = io.BytesIO(b"\x00")
            body.seek(1)
            entity_writer(FetchRequest)(body, request)
            return leader(FETCH, body.getvalue())

    connection = cast(Connection, AtOnce())
    first = asyncio.create_task(log.follow(node, connection, 1))
    for _ in range(2):
        await asyncio.sleep(0)
    first.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await first
    assert first.cancelled()
    assert (await log.follow(node, connection, 1)).migration_state is MigrationState.MIGRATION


BEGIN = "01170001001212426f6f747374726170207265636f726473"


@pytest.mark.parametrize(("leader", "error", "why"), [
    (Trimmed({}, 5, snapshot=b""), Unreachable, "a snapshot of the metadata log ends at byte 0 of 0"),
    (Trimmed({}, 5, snapshot=SNAPSHOT[:-3]), Unreachable, "a snapshot of the metadata log ends within a batch"),
    (Trimmed({}, 5, snapshot=batch(0, b"\x01\x63\x00\x00")), Refused, "offset 0: record type 99 .*only logs of Kafka"),
])
async def test_snapshots_that_cannot_be_read(leader: Trimmed, error: type[Exception], why: str) -> None:
    async with reading(leader) as log:
        with pytest.raises(error, match=rf"^127\.0\.0\.1:\d+: .*{why}"):
            await log()


async def test_a_right_that_is_missing_for_snapshots_is_named() -> None:
    leader = Trimmed({}, 5, snapshot=SNAPSHOT, error=ErrorCode.cluster_authorization_failed)
    async with reading(leader) as log:
        with pytest.raises(Refused, match="may not read a snapshot of the metadata log; grant it ClusterAction"):
            await log()


def damaged(data: bytes) -> bytes:
    return data[:-1] + bytes([data[-1] ^ 1])


@pytest.mark.parametrize(("leader", "error", "why"), [
    (Leader({0: batch(0, NO_OP, attributes=4)}, 1), Refused, r"compressed \(zstd\) at offset 0"),
    (Leader({0: batch(0, NO_OP), 1: damaged(batch(1, NO_OP))}, 2), Unreachable, "damaged batch at offset 1"),
    (Leader({0: batch(0, NO_OP, b"\x01\x63\x00\x00")}, 2), Refused, "offset 1: record type 99 .*only logs of Kafka"),
    (Leader({0: batch(0, bytes.fromhex("01180000"))}, 1), Refused, "offset 0: a transaction ends that never began"),
    (Leader({}, -1), Unreachable, "does not know its high watermark yet"),
    (Leader({0: batch(0, NO_OP)}, 5), Unreachable, "no record between offset 1 and the high watermark 5"),
    (Leader({}, 0, change={"error_code": ErrorCode.fenced_leader_epoch}), Unreachable, "now: FENCED_LEADER_EPOCH"),
])
async def test_logs_that_cannot_be_read(leader: Leader, error: type[Exception], why: str) -> None:
    async with reading(leader) as log:
        for _ in range(2):                                          # a second try meets the same, not a half-read state
            with pytest.raises(error, match=rf"^127\.0\.0\.1:\d+: .*{why}"):
                await log()
            leader.asked.clear()


async def test_others_may_run_while_a_long_log_is_read() -> None:
    leader = Leader({offset: batch(offset, NO_OP) for offset in range(3000)}, high_watermark=3000)

    class AtOnce:
        """A connection whose answers are there without waiting: whoever lets others run then is the reader."""

        async def ask(self, request: FetchRequest, _: object) -> Any:
            body = io.BytesIO(b"\x00")
            body.seek(1)
            entity_writer(FetchRequest)(body, request)
            return leader(FETCH, body.getvalue())

    turns = 0

    async def other() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    beside = asyncio.create_task(other())
    image = await MetadataLog().follow(Address("leader", 9093), cast(Connection, AtOnce()), leader_epoch=1)
    beside.cancel()
    assert image.offset == 2999
    assert turns >= 6
