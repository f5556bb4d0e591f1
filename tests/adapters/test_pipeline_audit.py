"""Commits of real clients that go back, captured from a real broker and judged by who could have made them."""

import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, TopicPartition
from pyspark.sql import SparkSession

from adapters.admin import changed, create_topic
from adapters.clusters import KafkaCluster, KRaftNode
from patience import Patience
from pipeline.few_rows import FEW_ROWS, small_session
from switchover.pipeline.audit.job import run
from switchover.pipeline.capture.job import Capture
from switchover.pipeline.config import Config
from switchover.pipeline.outcome import Outcome, Progress

BACK = (100, 200, 150, 300)


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    with small_session(tmp_path_factory.mktemp("spark")) as started:
        yield started


@pytest.fixture
def topic(newest_kafka: KRaftNode) -> str:
    name = f"audited-{uuid.uuid4().hex[:8]}"
    create_topic(str(newest_kafka.address), name)
    return name


def commit(server: KRaftNode, topic: str, group: str, *, protocol: str | None) -> None:
    """BACK by one consumer: a member by this protocol, or one that has chosen its partition itself (None)."""
    consumer = Consumer({"bootstrap.servers": str(server.address), "group.id": group, "enable.auto.commit": False,
                         "group.protocol": protocol or "classic"})
    if protocol is None:
        consumer.assign([TopicPartition(topic, 0)])
    else:
        consumer.subscribe([topic])
        patience = Patience(60)
        while not consumer.assignment():
            assert not patience.over, "it never got its partition"
            consumer.poll(0.2)
    for offset in BACK:
        consumer.commit(offsets=[TopicPartition(topic, 0, offset)], asynchronous=False)
    consumer.close()


def audited(server: KRaftNode, store: Path, spark: SparkSession, topic: str, protocol: str | None) -> Outcome:
    group = uuid.uuid4().hex
    config = Config.model_validate({"cluster": "test", "store": store, "kafka": {"bootstrapServers": str(server.address)},
                                    "spark": {"options": FEW_ROWS}})
    Capture(config, spark, Progress()).once()
    since = int(time.time() * 1000)
    commit(server, topic, group, protocol=protocol)
    audit = {"groups": [{"name": group}], "since": since, "topics": [topic]}
    return run(Config.model_validate({**config.model_dump(by_alias=True), "audit": audit}), Progress())


@pytest.mark.long
@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_member_may_have_sent_an_older_commit_again(
        newest_kafka: KRaftNode, topic: str, tmp_path: Path, spark: SparkSession, protocol: str) -> None:
    outcome = audited(newest_kafka, tmp_path, spark, topic, protocol)
    assert (outcome.verdict, outcome.summary["violations"]) == ("Indeterminate", 0), outcome.summary
    [words] = outcome.evidence
    assert "50 records [150, 200) consumed twice from" in words
    assert words.endswith(", or a commit was late")


@pytest.mark.long
def test_where_there_is_no_member_two_have_consumed(
        newest_kafka: KRaftNode, topic: str, tmp_path: Path, spark: SparkSession) -> None:
    outcome = audited(newest_kafka, tmp_path, spark, topic, None)
    assert (outcome.verdict, outcome.summary["recordsTwice"]) == ("Violations", 50), outcome.summary


BAND_MS = 500


@pytest.fixture(params=["zookeeper_cluster", "newest_kafka"])
def servers(request: pytest.FixtureRequest) -> str:
    """3.9 leaves it to captures which topic a commit is about; 4.4 writes it."""
    found: KafkaCluster | KRaftNode = request.getfixturevalue(request.param)
    return str(found.brokers[1].address if isinstance(found, KafkaCluster) else found.address)


@pytest.mark.long
def test_a_topic_that_was_created_again_is_another(servers: str, tmp_path: Path, spark: SparkSession) -> None:
    """Its coordinator writes tombstones, and offsets begin at 0 again: by its name alone 190 records were read twice."""
    topic, group = f"again-{uuid.uuid4().hex[:8]}", uuid.uuid4().hex
    kafka = {"cluster": "test", "store": tmp_path, "kafka": {"bootstrapServers": servers}, "spark": {"options": FEW_ROWS}}
    capture = Capture(Config.model_validate(kafka), spark, Progress())
    consumer = Consumer({"bootstrap.servers": servers, "group.id": group, "enable.auto.commit": False})

    def commits(*offsets: int) -> None:
        for offset in offsets:
            consumer.commit(offsets=[TopicPartition(topic, 0, offset)], asynchronous=False)

    def seen() -> None:
        time.sleep(2 * BAND_MS / 1000)
        capture.once()
        time.sleep(2 * BAND_MS / 1000)

    create_topic(servers, topic)
    seen()
    since = int(time.time() * 1000)
    commits(10, 500, 1000)
    seen()
    changed(servers, lambda client: client.delete_topics([topic]))
    patience = Patience(60)
    while consumer.committed([TopicPartition(topic, 0)], 10)[0].offset >= 0:
        assert not patience.over, "the coordinator never forgot the offset"
        time.sleep(0.1)
    create_topic(servers, topic)
    seen()
    commits(5, 50, 200)
    consumer.close()
    audit = {"groups": [{"name": group}], "since": since, "topics": [topic], "guardBandMs": BAND_MS}
    outcome = run(Config.model_validate({**kafka, "audit": audit}), Progress())
    assert (outcome.verdict, list(outcome.evidence)) == ("Clean", [])
