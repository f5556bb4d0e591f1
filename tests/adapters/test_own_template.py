"""What the trial of a template reports, beside real Kafka: what is named keeps it from starting, what a broker runs with is
not named, and a Kafka that is started past the door in such a pod ends.
"""

import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from adapters.clusters import KafkaCluster, kafka_cluster, patient_wire
from adapters.formatted import lay_out, random_id
from adapters.pods import as_pod
from adapters.servers import KafkaServer, ServerError, loopback
from switchover.api.kafka_migration import NodeMode as Mode
from switchover.cluster.door.mount import DOOR, TRIAL
from switchover.cluster.ending.own_configuration import KEYS, Broker, differences
from switchover.cluster.ending.trial_job import EDITS
from switchover.kubernetes import reports

CLUSTER = random_id()


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaCluster]:
    """A controller and broker 1, which advertises two listeners."""
    with kafka_cluster(tmp_path_factory.mktemp("cluster"), controllers=(3000,)) as found:
        found.start_controllers(CLUSTER, Mode.KRAFT_CONTROLLER)
        broker = found.brokers[1]
        lay_out(broker, CLUSTER, file_of(found, broker))
        broker.start(file_of(found, broker))
        yield found


def file_of(cluster: KafkaCluster, server: KafkaServer) -> str:
    """Of broker 1 with two listeners, where this server is."""
    return cluster.broker_properties(1, Mode.KRAFT) + f"""
log.dirs={server.directory / 'data'}
listeners=PLAINTEXT://{server.address},EXTERNAL://{server.address.host}:9192
advertised.listeners=PLAINTEXT://{server.address},EXTERNAL://{server.address.host}:9192
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,EXTERNAL:PLAINTEXT,CONTROLLER:PLAINTEXT
"""


def tried(directory: Path, file: str) -> Mapping[str, str]:
    """What a trial of this file reports."""
    pod = KafkaServer(directory, loopback(9092))
    as_pod(pod, file)
    pod.start(f"{EDITS}marker n0nce\n", wait=False)
    assert pod.wait_exit() == 0, pod.last_words()
    report = reports.started_with((directory / "run" / "termination-log").read_text(), "n0nce")
    assert report is not None
    return report


def lay_out_trial(data: Path, run: Path) -> None:
    """The first init container of a trial as broker 2."""
    run.mkdir()
    subprocess.run(["bash", "-c", TRIAL, "trial", DOOR, EDITS, f"version=0\nbroker.id=2\ncluster.id={CLUSTER}\n", data],
                   env={"PATH": "/usr/bin:/bin", "SWITCHOVER_RUN": str(run)}, check=True)


async def running(cluster: KafkaCluster) -> Broker:
    """Broker 1, as the operator has it."""
    broker = cluster.brokers[1]
    settings = await patient_wire({}).settings(broker.address, 1)
    return Broker("kafka-1", 1, (broker.address.host,), {key: value for key, value in settings.items() if key in KEYS})


async def test_what_a_broker_runs_with_is_no_difference(cluster: KafkaCluster, tmp_path: Path) -> None:
    """It tells its defaults, too; the file has none of them."""
    assert differences(tried(tmp_path, file_of(cluster, cluster.brokers[1])), await running(cluster)) == ()


@pytest.mark.parametrize(("line", "named", "said"), [
    ("listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT", "must have EXTERNAL:PLAINTEXT",
     "No security protocol defined for listener EXTERNAL"),
    ("node.id=", "node.id is not set, and must be 1", "Invalid value  for configuration broker.id"),
    ("node.id=2", "node.id is 2, and must be 1", "Stored node id 1 doesn't match previous node id 2"),
    ("process.roles=", "process.roles is not set, and must be broker", "Missing required configuration `zookeeper.connect`"),
])
async def test_what_is_named_keeps_kafka_from_starting(
        line: str, named: str, said: str, cluster: KafkaCluster, tmp_path: Path) -> None:
    server = KafkaServer(tmp_path / "as it would be", loopback(9092))
    file = f"{file_of(cluster, server)}{line}\n"
    found = differences(tried(tmp_path / "trial", file), await running(cluster))
    assert named in "; ".join(map(str, found))
    lay_out(server, CLUSTER, file_of(cluster, server))
    with pytest.raises(ServerError) as refused:
        server.start(file)
    assert said in server.log.read_text(), refused


async def test_kafka_that_is_started_past_the_door_ends_before_it_registers(cluster: KafkaCluster, tmp_path: Path) -> None:
    """Its container may start it by another script: then it has a broker's own id, and an empty disk."""
    past = KafkaServer(tmp_path / "past", loopback(9092))
    file = file_of(cluster, past).replace("node.id=1", "node.id=2")
    lay_out_trial(past.directory / "data", tmp_path / "run")
    with pytest.raises(ServerError, match="__cluster_metadata-0"):
        past.start(file)
    assert "FileAlreadyExistsException" in past.log.read_text()
    view = await patient_wire({}).metadata(cluster.brokers[1].address)
    assert view.brokers.keys() == {1}
