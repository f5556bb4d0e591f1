"""The commands of the runbooks that ask Kafka and ZooKeeper, as they stand there: in a cluster that is in dual write, with
groups of both worlds, and on Kafka 4."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer
from kazoo.client import KazooClient

from adapters.admin import create_topic
from adapters.clusters import KafkaCluster, kafka_cluster, node
from adapters.formatted import random_id
from adapters.servers import KAFKA, libraries
from patience import stretched, until
from runbook_commands import IN_A_POD, OF_CASES, UNTRIED, Command, commands
from switchover.api.kafka_migration import NodeMode as Mode

pytestmark = pytest.mark.long

ONE_JVM = Path(__file__).with_name("ToolsInOneJvm.java")
TOOLS = {
    "kafka-acls": "kafka.admin.AclCommand", "kafka-configs": "kafka.admin.ConfigCommand",
    "kafka-consumer-groups": "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand",
    "kafka-dump-log": "kafka.tools.DumpLogSegments", "kafka-features": "org.apache.kafka.tools.FeatureCommand",
    "kafka-log-dirs": "org.apache.kafka.tools.LogDirsCommand",
    "kafka-metadata-quorum": "org.apache.kafka.tools.MetadataQuorumCommand",
    "kafka-reassign-partitions": "org.apache.kafka.tools.reassign.ReassignPartitionsCommand",
    "kafka-storage": "kafka.tools.StorageTool", "kafka-topics": "org.apache.kafka.tools.TopicCommand",
    "zookeeper-shell": "org.apache.zookeeper.ZooKeeperMain -server",
}
"""As Kafka's scripts of these names start them."""
TOOL = f"""#!{sys.executable} -IS
import socket, struct, sys
def text(word): return struct.pack(">H", len(word.encode())) + word.encode()
name, *arguments = "{{java}}".split() + sys.argv[1:]
with socket.create_connection(("127.0.0.1", {{port}})) as jvm:
    jvm.sendall(text(name) + struct.pack(">i", len(arguments)) + b"".join(map(text, arguments)))
    answer = b"".join(iter(lambda: jvm.recv(65536), b""))
sys.stdout.buffer.write(answer[4:])
sys.exit(struct.unpack(">i", answer[:4])[0])
"""
OF_SECTIONS = {"DualWriteStandsStill": {"KEY": "segment.ms"}}
NC = f"""#!{sys.executable}
import socket, sys
with socket.create_connection((sys.argv[1], int(sys.argv[2]))) as server:
    server.sendall(sys.stdin.buffer.read())
    while answer := server.recv(4096):
        sys.stdout.buffer.write(answer)
"""
GROUP, TOPIC = "shop", "orders"
BROKER = "authorizer.class.name=kafka.security.authorizer.AclAuthorizer\nsuper.users=User:ANONYMOUS\n"
CONTROLLER = """\
authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer
super.users=User:ANONYMOUS
metadata.log.max.snapshot.interval.ms=1000
"""
TREE = {"ids/a": b"{}", "owners/orders/0": b"a", "migration/ids/a": b"{}", "migration/mode": b"the mode",
        "offsets/orders/0": b"271828"}


class Person:
    """At a shell, with Kafka's tools; what is in a pod is on this machine."""

    def __init__(self, directory: Path, port: str, names: Mapping[str, str]) -> None:
        self.directory, self.names = directory, names
        tools = directory / "tools"
        tools.mkdir()
        for name, java in TOOLS.items():
            script(tools / f"{name}.sh", TOOL.format(java=java, port=port))
        script(tools / "nc", NC)
        self._environment = os.environ | {"PATH": f"{tools}:{Path(sys.executable).parent}:{os.environ['PATH']}"}

    def pastes(self, command: Command) -> str:
        """What it prints; AssertionError where it fails. One that goes on for minutes is ended."""
        text = IN_A_POD.sub("", command.filled({**self.names, **OF_SECTIONS.get(command.section, {})}), count=1)
        watches = text.startswith("switchover lag ") and " --samples " not in text
        done = subprocess.run(
            ["timeout", "--signal=INT", str(stretched(8 if watches else 60)), "bash", "-o", "pipefail", "-c", text],
            cwd=self.directory, env=self._environment, capture_output=True, text=True, stdin=subprocess.DEVNULL)
        ends = (0, 1) if " -- tar " in command.text else (0,)              # a segment that grows, says the page
        assert done.returncode in ends or watches, f"{done.returncode} {done.stdout[-500:]}{done.stderr[-800:]}"
        return done.stdout + done.stderr


def script(path: Path, text: str) -> None:
    path.write_text(text)
    path.chmod(0o755)


@pytest.fixture
def jvm(tmp_path: Path) -> Iterator[str]:
    """The port of the one that runs the tools, in the person's directory."""
    with subprocess.Popen([KAFKA / "bin" / "kafka-run-class.sh", ONE_JVM], stdout=subprocess.PIPE, text=True, cwd=tmp_path,
                          env=os.environ | {"KAFKA_LIBS": str(libraries())}) as process:
        assert process.stdout is not None
        yield process.stdout.readline().strip()
        process.kill()


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[KafkaCluster]:
    """In dual write, with a group in Kafka that consumes, and what consumers leave in ZooKeeper."""
    with kafka_cluster(tmp_path, controllers=(3000,)) as found:
        found.zookeeper.start(found.zookeeper.properties() + "4lw.commands.whitelist=*\n")
        broker, (controller,) = found.brokers[1], found.controllers.values()
        broker.start(found.broker_properties(1, Mode.ZOOKEEPER, BROKER))
        found.wait_for_brokers()
        create_topic(found.bootstrap, TOPIC, config={"retention.ms": "1000000", "segment.ms": "2000000"})
        tree = KazooClient(found.zookeeper_connect, timeout=stretched(30))
        tree.start()
        try:
            cluster_id = re.findall(r'"id":"([^"]+)"', tree.get("/cluster/id")[0].decode())[0]
            for name, data in TREE.items():
                tree.create(f"/consumers/{GROUP}/{name}", data, makepath=True)
            controller.format(cluster_id, text := found.controller_properties(3000, Mode.MIGRATION_CONTROLLER, CONTROLLER))
            controller.start(text)
            broker.restart(found.broker_properties(1, Mode.MIGRATION, BROKER))
            found.wait_for_brokers()
            until(lambda: tree.exists("/migration"), "the controllers have copied the metadata")
            tree.create("/brokers/topics/late", b"")        # a topic whose partitions have no node
            tree.create("/brokers/topics/late/partitions", b"")
        finally:
            tree.stop()
            tree.close()
        yield found


@pytest.fixture
def member(cluster: KafkaCluster) -> Iterator[Consumer]:
    """Of the group, which has committed."""
    producer = Producer({"bootstrap.servers": cluster.bootstrap})
    producer.produce(TOPIC, b"x")
    assert producer.flush(stretched(60)) == 0
    consumer = Consumer({"bootstrap.servers": cluster.bootstrap, "group.id": GROUP, "auto.offset.reset": "earliest"})
    consumer.subscribe([TOPIC])
    until(lambda: consumer.poll(0.5), "a member consumes")
    consumer.commit(asynchronous=False)
    yield consumer
    consumer.close()


SEEN = {
    "kafka-acls.sh": "User:somebody", "kafka-configs.sh .* --describe --all ": "log.dirs=", "--reset-offsets": TOPIC,
    "kafka-configs.sh .* --describe ": "Dynamic configs for broker 1", "kafka-configs.sh .* --alter ": "Completed updating",
    "kafka-consumer-groups.sh .* --state": "Stable", "kafka-consumer-groups.sh .* --members": "rdkafka",
    "kafka-consumer-groups.sh .* --delete-offsets": "Successful", "kafka-consumer-groups.sh": TOPIC,
    "kafka-dump-log.sh|tar -xf": "FEATURE_LEVEL_RECORD", "kafka-features.sh .* describe": "metadata.version",
    "kafka-features.sh .* upgrade": "was upgraded", "kafka-log-dirs.sh": '"partition":"orders-0"',
    "kafka-metadata-quorum.sh": "LeaderId", "kafka-reassign-partitions.sh": "No partition reassignments found",
    "kafka-storage.sh": "Formatting", "kafka-topics.sh .* --under-replicated": "",
    "kafka-topics.sh .* __consumer_offsets": "__consumer_offsets", "kafka-topics.sh": TOPIC,
    "kubectl exec \\S+ (--container \\S+ )?-- tar": "", "(kubectl exec .* )?switchover lag": f"{GROUP} +Stable|more samples",
    "echo cons": r"/127\.",
    "zookeeper-shell.sh \\S+ create": "Created /brokers", "zookeeper-shell.sh \\S+ delete /consumers/": "",
    "zookeeper-shell.sh \\S+ get /migration": "kraft_metadata_offset",
    "zookeeper-shell.sh \\S+ get /controller": '"kraftControllerEpoch"', "zookeeper-shell.sh \\S+ ls /brokers/ids": r"\[1\]",
    "zookeeper-shell.sh \\S+ (get|stat) (-s )?/brokers/topics/TOPIC": "topic_id|dataVersion = ",
    "zookeeper-shell.sh \\S+ (get|ls) (-s |-R )?/consumers/": r"\[a\]|the mode|owners/orders/0|271828",
}
"""What a command shows that has understood what it was asked, by how it begins."""
KAFKA_4 = re.compile(r"kafka-features\.sh ")


def of_kafka(*, newer: bool) -> list[Command]:
    """Each text once; what takes offsets away is last."""
    found = {each.text: each for each in reversed(commands()) if each.asks_kafka and each.text not in UNTRIED
             and not OF_CASES.match(each.text)
             and (KAFKA_4.match(each.text) is not None) == newer}
    pages = sorted(found.values(), key=lambda each: [each.text for each in commands()].index(each.text))
    return sorted(pages, key=lambda each: bool(re.search("--reset-offsets|--delete-offsets", each.text)))


def tried(person: Person, which: list[Command], ends: Consumer | None = None) -> Iterator[str]:
    """What came out wrong."""
    for command in which:
        if ends is not None and "-offsets " in command.text and command.text.startswith("kafka-consumer-groups.sh"):
            ends.close()                                            # these want a group without members
            ends = None
        wanted = next((seen for begin, seen in SEEN.items() if re.search(begin, command.text)), None)
        try:
            said = person.pastes(command)
            assert wanted is None or re.search(wanted, said), f"{wanted} is not in {said[-500:]}"
            assert wanted is not None, "nobody says what it is to show"
        except AssertionError as error:
            yield f"{command}\n  {error}"


def test_what_asks_a_cluster_in_dual_write_is_answered(
        cluster: KafkaCluster, member: Consumer, jvm: str, tmp_path: Path) -> None:
    (controller,) = cluster.controllers.values()
    log = controller.directory / "data"
    until(lambda: any((log / "__cluster_metadata-0").glob("*.checkpoint")), "the metadata log has a snapshot")
    (tmp_path / "volume.properties").write_text(cluster.controller_properties(3000, Mode.KRAFT_CONTROLLER).replace(
        str(log), str(tmp_path / "volume")))
    connect = cluster.zookeeper_connect
    person = Person(tmp_path, jvm, {
        "kafka:9092": cluster.bootstrap, "CONTROLLER:9093": str(controller.address), "ZOOKEEPER": connect,
        "HOST": cluster.zookeeper.address.host, "GROUP": GROUP, "TOPIC": TOPIC, "TOPIC:PARTITION": f"{TOPIC}:0",
        "PARTITION": "0", "partitions/N": "partitions/0",
        "create /brokers/topics/TOPIC/partitions/N": "create /brokers/topics/late/partitions/0", "KEY": "retention.ms",
        "CLIENT": "somebody", "KEY=NUMBER": "producer_byte_rate=1000", "USER": "somebody", "ID": "1",
        "CLUSTER-ID": random_id(), "FILE": "volume.properties",
        "SNAPSHOT": str(next((log / "__cluster_metadata-0").glob("*.checkpoint"))),
        "/var/lib/zookeeper": str(cluster.zookeeper.directory / "data"), "/var/lib/kafka/kraft-controller": str(log),
    })
    wrong = [*tried(person, of_kafka(newer=False), member)]
    assert not wrong, "\n".join(wrong)


def test_what_asks_kafka_4_is_answered(jvm: str, tmp_path: Path) -> None:
    with node(tmp_path / "node", "4.4") as server:
        server.begin(features={"group.version": 0})
        person = Person(tmp_path, jvm, {"kafka:9092": str(server.address)})
        wrong = [*tried(person, sorted(of_kafka(newer=True), key=lambda each: "upgrade" in each.text))]
    assert not wrong, "\n".join(wrong)
