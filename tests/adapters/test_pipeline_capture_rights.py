"""What a capture may read, on a real Kafka 4.4 with SASL and an authorizer, right after right."""

import json
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import javaproperties
import pytest

from adapters.admin import commit_for
from adapters.clusters import KRaftNode, node
from adapters.eventually import eventually
from adapters.group_members import create_topic
from adapters.guarded import DESCRIBE, DESCRIBE_CONFIGS, GROUP, READ, TOPIC, allow, settings, user
from switchover.pipeline.capture import client
from switchover.pipeline.capture import plan as planning
from switchover.pipeline.capture.client import configuration
from switchover.pipeline.capture.facts import Cluster
from switchover.pipeline.capture.plan import splits
from switchover.pipeline.capture.source import OffsetsReader, Reading, Split
from switchover.pipeline.outcome import BadConfig, JobFailed


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KRaftNode]:
    with node(tmp_path_factory.mktemp("guarded"), "4.4") as server:
        server.begin(settings(server))
        yield server


def commit(server: KRaftNode, group: str) -> None:
    commit_for(str(server.address), group, "orders", 5, client.as_librdkafka(user("admin")))


async def comes_to(question: Callable[[], object], answer: object) -> None:
    """A right takes effect a moment after it was granted."""
    async def asked() -> object:
        try:
            return question()
        except JobFailed as error:
            return str(error)

    await eventually(asked, lambda told: told == answer, 30)


async def test_each_right_opens_what_the_docs_say(guarded: KRaftNode, tmp_path: Path) -> None:
    server = guarded.address
    await create_topic(server, "orders", 2, user("admin"))
    commit(guarded, "payments")
    file = tmp_path / "client.properties"
    file.write_text(javaproperties.dumps(user("switchover"), timestamp=None))
    cluster = Cluster(configuration(str(server), file))

    def offsets() -> object:
        log = cluster.log()
        assert log is not None
        reading = Reading(str(tmp_path), "test", uuid.uuid4().hex, 0, str(server), str(file),
                          splits(planning.plan({}, log).ranges, 1))
        (files, _, _, error), = OffsetsReader(reading).read(Split(0))
        return error or sum(file["rows"] for file in json.loads(files) if file["table"] == "commits")

    await comes_to(offsets, "topic __consumer_offsets: Broker: Topic authorization failed; "
                            "a capture needs the rights Describe and Read on it")
    await allow(server, TOPIC, "__consumer_offsets", DESCRIBE)
    await comes_to(offsets, "__consumer_offsets-0: Fetch from broker 1 failed: Broker: Topic authorization failed")
    await allow(server, TOPIC, "__consumer_offsets", READ)
    await comes_to(offsets, 1)

    def seen() -> object:
        topics, unknown = cluster.topics(0)
        return [(row["topic"], row["retention_ms"]) for row in topics.to_pylist() if not row["internal"]], [
            words for words in unknown if "orders" in words]

    await comes_to(seen, ([], []))
    await allow(server, TOPIC, "orders", DESCRIBE)
    await comes_to(lambda: seen()[0], [("orders", None)])         # type: ignore[index]
    assert "topic 'orders': its configuration is not known: Topic authorization failed" in seen()[1][0]  # type: ignore[index]
    await allow(server, TOPIC, "orders", DESCRIBE_CONFIGS)
    await comes_to(seen, ([("orders", 604_800_000)], []))

    def groups() -> object:
        found, failed = cluster.groups(0)
        return found["group"].to_pylist(), failed

    await comes_to(groups, ([], []))
    await allow(server, GROUP, "payments", DESCRIBE)
    await comes_to(groups, (["payments"], []))


def test_properties_that_cannot_be_used_are_refused_by_name(tmp_path: Path) -> None:
    file = tmp_path / "client.properties"
    with pytest.raises(BadConfig, match=r"cannot read .*client\.properties: No such file"):
        configuration("x:1", file)
    file.write_text("security.protocol=SSL\nssl.truststore.location=/a.jks\n")
    with pytest.raises(BadConfig, match=r"ssl\.truststore\.location names a file; give the PEM text"):
        configuration("x:1", file)
    file.write_text("security.protocol=SSL\nssl.truststore.certificates=no certificate\n")
    with pytest.raises(BadConfig, match=r"kafka: .*PEM"):
        Cluster(configuration("x:1", file))
