"""The configuration files of every mode, accepted and obeyed by real Kafka: one broker there, and one broker back."""

import shlex
import shutil
import time
import uuid
from collections.abc import AsyncIterator
from pathlib import Path
from typing import TypeVar

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import (
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)

from adapters.admin import create_topic
from adapters.clusters import COMMON
from adapters.eventually import eventually
from adapters.finalized import finalized
from adapters.servers import KAFKA, STOP_SECONDS, KafkaServer, ZooKeeperServer, free_port, loopback
from adapters.way_back import end_claim
from patience import Patience, stretched
from switchover.adapters.kafka import ConfluentKafkaAdmin
from switchover.adapters.wire import KafkaWire
from switchover.adapters.zookeeper import KazooZooKeeper
from switchover.api.status import Verdict as Outcome
from switchover.core.gate import Verdict
from switchover.core.kraft import environment
from switchover.core.kraft.door import SCRIPT, edits
from switchover.core.kraft.environment import variable_of
from switchover.core.kraft.facts import Address, LogImage, MigrationState, ZooKeeperState
from switchover.core.kraft.modes import ControllerListener, Voters, properties, render_broker, render_controller
from switchover.core.observed import Known
from switchover.core.visible_brokers import check_brokers_visible
from switchover.ports import Access

RECORDS = 200

Answer = TypeVar("Answer")


class Story:
    """One broker with the user's file, the controllers that Switchover adds, and clients to ask them all."""

    def __init__(self, directory: Path, controllers: int, security_protocol: str, settings: dict[str, str]) -> None:
        self.directory = directory
        self.zookeeper = ZooKeeperServer(directory / "zookeeper")
        self.broker = KafkaServer(directory / "broker", loopback(9092))
        addresses = {3000 + i: Address("127.0.0.1", free_port()) for i in range(controllers)}
        self.listeners = {
            node: ControllerListener("CONTROLLER", address.port, security_protocol, settings)
            for node, address in addresses.items()}
        self.addresses = addresses
        self.controllers = {
            node: KafkaServer(directory / f"controller-{node}", address, heap="160m")
            for node, address in addresses.items()}
        self.file = ""
        self.tree = KazooZooKeeper(Access(f"{self.zookeeper.address}/kafka"))
        self.brokers = KafkaWire({})
        self.quorum = KafkaWire({"security.protocol": security_protocol, "sasl.mechanism": "PLAIN",
                                 "sasl.jaas.config": settings.get("listener.name.controller.plain.sasl.jaas.config", "")})

    def voters(self, node: int) -> Voters:
        """In pods all controllers listen on one port; here they share an address, so each has a port of its own."""
        return Voters(self.addresses, self.listeners[node])

    def broker_file(self, mode: str) -> str:
        return render_broker(self.file, mode, 1, self.voters(3000))

    def controller_file(self, node: int, mode: str) -> str:
        return render_controller(
            self.file, mode, node, self.voters(node), str(self.directory / f"controller-{node}" / "data"))

    def take_over(self, cluster_id: str) -> None:
        """The change of the template, which keeps the id for images that want it."""

    async def state(self) -> ZooKeeperState:
        return await self.tree.state()

    async def log(self) -> LogImage:
        return await self.quorum.log(self.addresses)

    async def begin(self, file: str) -> None:
        """ZooKeeper and the broker on the user's file, with data."""
        self.file = file
        self.zookeeper.start(self.zookeeper.properties())
        self.broker.start(self.broker_file("A"))
        await eventually(self.state, lambda state: state.controller is not None and 1 in state.brokers)
        await eventually(self.visible, lambda found: found.outcome is Outcome.PASS)
        self.create_topic("before")
        producer = Producer({"bootstrap.servers": str(self.broker.address)})
        for number in range(RECORDS):
            producer.produce("before", str(number))
        assert producer.flush(stretched(60)) == 0

    def create_topic(self, name: str) -> None:
        create_topic(str(self.broker.address), name, config={"min.insync.replicas": "1"})

    async def has_kept_everything(self) -> None:
        """The topic, its setting and every record, read from the broker as it runs now."""
        admin = ConfluentKafkaAdmin(Access(str(self.broker.address)))
        await eventually(lambda: admin.min_insync_replicas(["before"]), lambda found: found == {"before": 1})
        await admin.close()
        consumer = Consumer({"bootstrap.servers": str(self.broker.address), "group.id": uuid.uuid4().hex,
                             "enable.auto.commit": False})
        consumer.assign([TopicPartition("before", 0, 0)])
        seen: list[str] = []
        patience = Patience(60)
        while len(seen) < RECORDS and not patience.over:
            seen += [(m.value() or b"").decode() for m in consumer.consume(RECORDS, timeout=1) if m.error() is None]
        low_high = consumer.get_watermark_offsets(TopicPartition("before", 0), timeout=stretched(30))
        consumer.close()
        assert seen == [str(number) for number in range(RECORDS)]
        assert low_high == (0, RECORDS)

    async def start_controllers(self) -> None:
        """P, formatted with the cluster's id; they wait for the brokers."""
        cluster_id = (await self.state()).cluster_id
        for node, server in self.controllers.items():
            server.format(cluster_id, self.controller_file(node, "P"))
            server.start(self.controller_file(node, "P"), wait=False)
        for server in self.controllers.values():
            server.wait()
        image = await eventually(self.log, lambda image: len(image.controllers) == len(self.controllers))
        assert all(image.controllers.values()), "every controller is ready to migrate"
        assert image.migration_state is MigrationState.PRE_MIGRATION
        state = await self.state()
        assert state.controller is not None
        assert state.controller.ephemeral, "the broker still is the controller"

    async def migrate_to_dual_write(self) -> None:
        """The broker to B: claimed and copied."""
        self.broker.restart(self.broker_file("B"))
        state = await eventually(self.state, lambda state: state.migration is not None and state.migration.offset > 0)
        assert state.controller is not None
        assert not state.controller.ephemeral
        assert state.controller.node_id in self.controllers
        image = await eventually(self.log, lambda image: image.migration_state is MigrationState.MIGRATION)
        assert image.brokers[1].migrating_zk
        assert (await self.brokers.api_versions(self.broker.address)).zk_migration_ready

    async def move_to_kraft(self) -> None:
        """The broker to C."""
        self.broker.restart(self.broker_file("C"))
        await eventually(
            self.log, lambda image: not image.brokers[1].migrating_zk and not image.brokers[1].fenced)
        answer = await self.brokers.api_versions(self.broker.address)
        assert answer.metadata_version == 21
        assert not answer.zk_migration_ready
        assert (await self.state()).brokers == {}
        await eventually(     # right after its start it lists no broker yet
            self.visible, lambda found: (found.reason, found.subject) == ("BrokersOnKRaft", "broker 1"))

    async def visible(self) -> Verdict:
        """Whether old consumers would find the broker."""
        listed = (await self.brokers.metadata(self.broker.address)).brokers
        return check_brokers_visible(Known(listed, 0.0), Known(frozenset((await self.state()).brokers), 0.0))

    async def leader_last(self) -> list[int]:
        leader = (await self.quorum.quorum(self.addresses.values())).leader_id
        return sorted(self.controllers, key=lambda node: node == leader)

    async def end(self) -> None:
        await self.tree.close()
        for server in (self.broker, *self.controllers.values(), self.zookeeper):
            server.kill()


IMAGE = r"""
file=$1
: >"$file"
env -0 | while IFS= read -r -d "" item; do
    name=${item%%=*}
    case $name in KAFKA_LIBS | KAFKA_HEAP_OPTS | KAFKA_OPTS) continue ;; KAFKA_*) ;; *) continue ;; esac
    key=$(printf %s "${name#KAFKA_}" | sed 's/___/-/g; s/__/%/g; s/_/./g; s/%/_/g' | tr '[:upper:]' '[:lower:]')
    printf '%s=%s\n' "$key" "${item#*=}" >>"$file"
done
if [ -n "${KAFKA_PROCESS_ROLES-}" ]; then
    told=$("$BIN/kafka-storage.sh" format --cluster-id="${CLUSTER_ID:?}" -c "$file" 2>&1) || case $told in
        *"already formatted"*) ;; *) echo "$told"; exit 1 ;; esac
fi
exec "$BIN/kafka-server-start.sh" "$file"
"""
"""What images such as confluentinc/cp-kafka do at start, in KRaft mode, too: format what is not formatted."""


class EnvironmentStory(Story):
    """The same with an image that makes server.properties of its variables; the file of a mode is a piece of shell."""

    async def begin(self, file: str) -> None:
        variables = [{"name": variable_of(key, "KAFKA_"), "value": value} for key, value in properties(file).items()]
        found = environment.resolve({"env": variables}, {}, "kafka")
        self.own = {variable["name"]: variable["value"] for variable in variables}
        self.own["BIN"] = str(KAFKA / "bin")
        self.broker = KafkaServer(self.directory / "broker", self.broker.address, variables=self.own)
        own_file = str(self.broker.directory / "server.properties")              # where `start` puts what it is given
        command = environment.wrapped(["bash", "-c", IMAGE, "image", str(self.directory / "written.properties")])
        command = [word.replace(f"{environment.DIRECTORY}/{environment.FILE}", own_file) for word in command]
        entrypoint = self.directory / "entrypoint"
        entrypoint.write_text(f"#!/bin/sh\nexec {shlex.join(command)}\n")
        entrypoint.chmod(0o755)
        self.broker.script = str(entrypoint)
        await super().begin(environment.read_configuration("the environment", found, "KAFKA_").text)

    def take_over(self, cluster_id: str) -> None:
        self.own["CLUSTER_ID"] = cluster_id

    def broker_file(self, mode: str) -> str:
        return environment.changes(self.file, super().broker_file(mode), "KAFKA_")


class DoorStory(Story):
    """The same with the door over the image's start script; the file of a mode are its directives.

    Where the data is stands on the command line, in words of a shell.
    """

    async def begin(self, file: str) -> None:
        lines = file.splitlines(keepends=True)
        [data] = [line.strip() for line in lines if line.startswith("log.dirs=")]
        file = "".join(line for line in lines if not line.startswith("log.dirs="))
        image, run, users = self.directory / "image", self.directory / "run", self.directory / "users.properties"
        shutil.copytree(KAFKA, image)
        run.mkdir()
        users.write_text(file)
        door = image / "bin" / "kafka-server-start.sh"
        (run / "original").write_text(door.read_text().replace("${BASH_SOURCE[0]}", "$0"))
        door.write_text(SCRIPT)
        entrypoint = self.directory / "entrypoint"
        entrypoint.write_text(f"""#!/bin/sh
key=log.dirs
SWITCHOVER_EDITS=$1 SWITCHOVER_RUN={run} exec {door} {users} --override "$key"={data.removeprefix("log.dirs=")}
""")
        entrypoint.chmod(0o755)
        self.broker.script = str(entrypoint)
        await super().begin(file)

    def broker_file(self, mode: str) -> str:
        return "\n".join((*edits.broker(mode, 1, self.voters(3000), edits.Brokers()), f"marker {mode}.7", ""))

    async def has_kept_everything(self) -> None:
        """And the process itself says which edits started it."""
        await super().has_kept_everything()
        mode = self.broker.directory.joinpath("server.properties").read_text().split()[1]
        told = await self.brokers.examine(self.broker.address, 1)
        assert [name for name in told.hidden if name.startswith("switchover.")] == [f"switchover.{mode}.7"]


@pytest.fixture
async def stories() -> AsyncIterator[list[Story]]:
    told: list[Story] = []
    yield told
    for story in told:
        await story.end()


PLAIN_LOGIN = 'org.apache.kafka.common.security.plain.PlainLoginModule required username="kafka" password="s e=c" '


@pytest.mark.parametrize("controllers", [1, pytest.param(3, marks=pytest.mark.long)])
async def test_a_secured_broker_goes_all_the_way(controllers: int, tmp_path: Path, stories: list[Story]) -> None:
    """Named listeners, SASL between brokers and to the controllers, ACLs: everything a mode has to carry over."""
    story = Story(tmp_path, controllers, "SASL_PLAINTEXT", {
        "sasl.mechanism.controller.protocol": "PLAIN",
        "listener.name.controller.sasl.enabled.mechanisms": "PLAIN",
        "listener.name.controller.plain.sasl.jaas.config": f'{PLAIN_LOGIN}user_kafka="s e=c";',
    })
    stories.append(story)
    address = story.broker.address
    await story.begin(COMMON + f"""\
# Kafka of the shop.  Do not edit: ask the platform team, see C:\\\\wiki
broker.id = 1
broker.rack: r1
listeners=INTERNAL://{address.host}:9094,EXTERNAL://{address}
advertised.listeners=INTERNAL://{address.host}:9094,EXTERNAL://{address}
listener.security.protocol.map=INTERNAL:SASL_PLAINTEXT,EXTERNAL:PLAINTEXT
inter.broker.listener.name=INTERNAL
sasl.mechanism.inter.broker.protocol=PLAIN
listener.name.internal.sasl.enabled.mechanisms=PLAIN
listener.name.internal.plain.sasl.jaas.config={PLAIN_LOGIN} \\
    user_kafka="s e=c";
log.dirs={tmp_path / 'broker' / 'one'},{tmp_path / 'broker' / 'two'}
zookeeper.connect={story.zookeeper.address}/kafka
zookeeper.session.timeout.ms=10000
zookeeper.set.acl=false
inter.broker.protocol.version=3.9
log.message.format.version=3.0
password.encoder.secret=encoder
authorizer.class.name=kafka.security.authorizer.AclAuthorizer
super.users=User:kafka;User:ANONYMOUS
auto.leader.rebalance.enable=false
reserved.broker.max.id=1000
""")
    await story.has_kept_everything()
    await story.start_controllers()
    await story.migrate_to_dual_write()
    await story.has_kept_everything()
    await story.move_to_kraft()
    await story.has_kept_everything()

    for node in await story.leader_last():
        await finalized(story.controllers[node], story.controller_file(node, "F"), node, story.log)
    await eventually(story.log, lambda image: image.migration_state is MigrationState.POST_MIGRATION)
    story.zookeeper.stop()
    story.create_topic("after")
    await story.has_kept_everything()
    admin = AdminClient({"bootstrap.servers": str(address)})
    anything = AclBindingFilter(ResourceType.ANY, None, ResourcePatternType.ANY, None, None, AclOperation.ANY,
                                AclPermissionType.ANY)
    assert admin.describe_acls(anything).result(stretched(30)) == [], "there is an authorizer; without one this is an error"


@pytest.mark.parametrize("style", [
    pytest.param(Story, id="file", marks=pytest.mark.long),            # there and back by files: test_secured.py, too
    pytest.param(EnvironmentStory, id="environment"),
    pytest.param(DoorStory, id="door", marks=pytest.mark.long),        # until the product goes by it
])
async def test_a_plain_broker_goes_there_and_back(tmp_path: Path, stories: list[Story], style: type[Story]) -> None:
    """The shortest configuration there is, to C and back to the user's own."""
    story = style(tmp_path, 1, "PLAINTEXT", {})
    stories.append(story)
    await story.begin(COMMON + f"broker.id=1\nlisteners=PLAINTEXT://{story.broker.address}\n"
                               f"log.dirs={tmp_path / 'broker' / 'data'}\n"
                               f"zookeeper.connect={story.zookeeper.address}/kafka\n")
    before = await story.state()
    story.take_over(before.cluster_id)
    await story.start_controllers()
    await story.migrate_to_dual_write()
    await story.move_to_kraft()
    await story.has_kept_everything()

    # The way back, in the order of feasibility-kraft.md 5.1.
    story.broker.restart(story.broker_file("B"))
    await eventually(story.log, lambda image: image.brokers[1].migrating_zk and not image.brokers[1].fenced)
    assert set((await eventually(story.state, lambda state: 1 in state.brokers)).brokers) == {1}
    await eventually(story.visible, lambda found: found.outcome is Outcome.PASS)
    story.controllers[3000].stop()
    shutil.rmtree(story.controllers[3000].directory / "data")
    await end_claim(story.tree)
    state = await eventually(story.state, lambda state: state.controller is not None and state.controller.ephemeral)
    assert state.migration is None
    assert state.controller_epoch > before.controller_epoch
    story.create_topic("back-in-zookeeper")             # the ZooKeeper controller works, and the broker knows it
    started = time.monotonic()
    story.broker.stop()
    assert time.monotonic() - started < stretched(STOP_SECONDS), "it was killed"
    story.broker.start(story.broker_file("A"))
    await story.has_kept_everything()
    answer = await story.brokers.api_versions(story.broker.address)
    assert not answer.zk_migration_ready
    assert (await story.state()).cluster_id == before.cluster_id
