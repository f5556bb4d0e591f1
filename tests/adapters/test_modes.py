"""The edits of every mode, made by the door and obeyed by real Kafka: one broker there, and one broker back."""

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

from adapters import tiered
from adapters.admin import create_topic
from adapters.clusters import COMMON, patient_wire
from adapters.eventually import eventually
from adapters.finalized import finalized
from adapters.pods import as_pod, brokers_of, given
from adapters.servers import STOP_SECONDS, KafkaServer, ZooKeeperServer, free_port, loopback
from adapters.way_back import end_claim
from patience import Patience, stretched
from switchover.answers.observed import Known
from switchover.api.kafka_migration import NodeMode as Mode
from switchover.api.status import Verdict as Outcome
from switchover.cluster import modes
from switchover.cluster.door import edits
from switchover.cluster.door.brokers import Brokers
from switchover.cluster.modes import ControllerListener, Voters
from switchover.cluster.picture import is_older
from switchover.engine.gate import Verdict
from switchover.groups.coordination.brokers import check_brokers_visible
from switchover.metadata.parity import LogImage, MigrationState
from switchover.network.addresses import Address
from switchover.network.credentials import Access
from switchover.zookeeper.client.zookeeper import KazooZooKeeper
from switchover.zookeeper.nodes import ZooKeeperState

RECORDS = 200

Answer = TypeVar("Answer")


class Story:
    """One broker of a user's, the controllers that Switchover adds as copies of it, and clients to ask them all."""

    brokers: Brokers
    """What is found of the broker while it runs by the user's own template."""
    cluster_id: str

    def __init__(self, directory: Path, controllers: int, security_protocol: str, settings: dict[str, str]) -> None:
        self.directory = directory
        self.zookeeper = ZooKeeperServer(directory / "zookeeper")
        self.broker = KafkaServer(directory / "broker", loopback(9092))
        self.addresses = {3000 + i: Address("127.0.0.1", free_port()) for i in range(controllers)}
        self.listeners = {
            node: ControllerListener("CONTROLLER", address.port, security_protocol, settings)
            for node, address in self.addresses.items()}
        self.controllers = {
            node: KafkaServer(directory / f"controller-{node}", address, heap="160m")
            for node, address in self.addresses.items()}
        self.tree = KazooZooKeeper(Access(f"{self.zookeeper.address}/kafka"))
        self.wire = patient_wire({})
        self.quorum = patient_wire({"security.protocol": security_protocol, "sasl.mechanism": "PLAIN",
                                 "sasl.jaas.config": settings.get("listener.name.controller.plain.sasl.jaas.config", "")})

    def voters(self, node: int) -> Voters:
        """In pods all controllers listen on one port; here they share an address, so each has a port of its own."""
        return Voters(self.addresses, self.listeners[node])

    def broker_edits(self, mode: str) -> str:
        return edits.written(edits.broker(mode, 1, self.voters(3000), self.brokers))

    def controller_edits(self, node: int, mode: str) -> str:
        return edits.written(edits.controller(
            mode, node, self.voters(node), self.brokers, self.cluster_id, str(self.log_dir(node))))

    def log_dir(self, node: int) -> Path:
        return self.directory / f"controller-{node}" / "metadata"

    async def state(self) -> ZooKeeperState:
        return await self.tree.state()

    async def log(self) -> LogImage:
        return await self.quorum.log(self.addresses)

    async def begin(self, file: str, options: str = "", image: str = "") -> None:
        """ZooKeeper and the broker on the user's file and command line, with data; `image` is what it is upgraded to."""
        for server in (self.broker, *self.controllers.values()):
            as_pod(server, file, options)
        self.zookeeper.start(self.zookeeper.properties())
        self.broker.start("")
        await eventually(self.state, lambda state: state.controller is not None and 1 in state.brokers)
        await eventually(self.visible, lambda found: found.outcome is Outcome.PASS)
        self.create_topic("before")
        producer = Producer({"bootstrap.servers": str(self.broker.address)})
        for number in range(RECORDS):
            producer.produce("before", str(number))
        assert producer.flush(stretched(60)) == 0
        self.brokers = await brokers_of(self.wire, self.broker.address, 1, image)
        self.cluster_id = (await self.state()).cluster_id

    def create_topic(self, name: str) -> None:
        create_topic(str(self.broker.address), name, config={"min.insync.replicas": "1"})

    async def has_kept_everything(self) -> None:
        """The topic, its setting and every record, read from the broker as it runs now; and the edits are those it tells."""
        await eventually(lambda: self.wire.min_insync_replicas(self.broker.address, ["before"]),
                         lambda found: found == {"before": 1})
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
        written = (self.broker.directory / "server.properties").read_text()
        assert await self.wire.marker(self.broker.address, 1) == edits.marker_of(written)

    async def start_controllers(self) -> None:
        """In mode MigrationController, formatted with the cluster's id; they wait for the brokers."""
        for node, server in self.controllers.items():
            server.start(self.controller_edits(node, Mode.MIGRATION_CONTROLLER), wait=False)
        for server in self.controllers.values():
            server.wait()
        register = modes.METADATA_LEVELS[self.brokers.release] >= modes.CONTROLLERS_REGISTER
        image = await eventually(self.log, lambda image: image.migration_state is not None and (
            len(image.controllers) == (len(self.controllers) if register else 0)))
        for address in self.addresses.values():
            assert (await self.quorum.api_versions(address)).zk_migration_ready
        assert all(image.controllers.values()), "every controller is ready to migrate"
        assert image.migration_state is MigrationState.PRE_MIGRATION
        state = await self.state()
        assert state.controller is not None
        assert state.controller.ephemeral, "the broker still is the controller"

    async def migrate_to_dual_write(self) -> None:
        """The broker to Migration: claimed and copied."""
        self.broker.restart(self.broker_edits(Mode.MIGRATION))
        state = await eventually(self.state, lambda state: state.migration is not None and state.migration.offset > 0)
        assert state.controller is not None
        assert not state.controller.ephemeral
        assert state.controller.node_id in self.controllers
        image = await eventually(self.log, lambda image: image.migration_state is MigrationState.MIGRATION)
        assert image.brokers[1].migrating_zk
        assert (await self.wire.api_versions(self.broker.address)).zk_migration_ready
        await self.passes_on()

    async def move_to_kraft(self) -> None:
        """The broker to KRaft."""
        self.broker.restart(self.broker_edits(Mode.KRAFT))
        await eventually(
            self.log, lambda image: not image.brokers[1].migrating_zk and not image.brokers[1].fenced)
        answer = await self.wire.api_versions(self.broker.address)
        assert answer.metadata_version == modes.METADATA_LEVELS[self.brokers.release]
        assert not answer.zk_migration_ready
        assert (await self.state()).brokers == {}
        await self.passes_on()
        await eventually(     # right after its start it lists no broker yet
            self.visible, lambda found: (found.reason, found.subject) == ("BrokersOnKRaft", "broker 1"))

    async def move_back_to_zookeeper(self, before: ZooKeeperState) -> None:
        """In the order of docs/facts/kraft.md#rollback, to a broker with the flag under a ZooKeeper controller."""
        self.broker.restart(self.broker_edits(Mode.MIGRATION))
        await eventually(self.log, lambda image: image.brokers[1].migrating_zk and not image.brokers[1].fenced)
        assert set((await eventually(self.state, lambda state: 1 in state.brokers)).brokers) == {1}
        await eventually(self.visible, lambda found: found.outcome is Outcome.PASS)
        self.controllers[3000].stop()
        shutil.rmtree(self.log_dir(3000))
        await end_claim(self.tree)
        state = await eventually(self.state, lambda state: state.controller is not None and state.controller.ephemeral)
        assert state.migration is None
        assert state.controller_epoch > before.controller_epoch
        self.create_topic("back-in-zookeeper")             # the ZooKeeper controller works, and the broker knows it
        await self.passes_on()

    async def passes_on(self) -> None:
        """In each mode that knows of a quorum the broker brings a question to the controller, and its answer back."""
        async def asked() -> bool:
            await self.wire.ask_controller(self.broker.address)
            return True

        await eventually(asked, bool)

    async def survives_a_kill(self) -> None:
        """Whatever starts the broker's container again, it comes back in its mode."""
        started_with = (self.broker.directory / "server.properties").read_text()
        self.broker.kill()
        await eventually(self.state, lambda state: 1 not in state.brokers)         # else its old session keeps it out
        self.broker.start(started_with)
        await self.has_kept_everything()

    async def visible(self) -> Verdict:
        """Whether old consumers would find the broker."""
        listed = (await self.wire.metadata(self.broker.address)).brokers
        return check_brokers_visible(Known(listed, 0.0), Known(frozenset((await self.state()).brokers), 0.0))

    async def leader_last(self) -> list[int]:
        leader = (await self.quorum.quorum(self.addresses.values())).leader_id
        return sorted(self.controllers, key=lambda node: node == leader)

    async def end(self) -> None:
        await self.tree.close()
        for server in (self.broker, *self.controllers.values(), self.zookeeper):
            server.kill()


@pytest.fixture
async def stories() -> AsyncIterator[list[Story]]:
    told: list[Story] = []
    yield told
    for story in told:
        await story.end()


PLAIN_LOGIN = 'org.apache.kafka.common.security.plain.PlainLoginModule required username="kafka" password="s e=c" '


@pytest.mark.long
@pytest.mark.parametrize("controllers", [1, 3])
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
    told = given(story.controllers[3000])
    assert told["super.users"] == "User:kafka;User:ANONYMOUS", "a controller decides by what the user has set"
    assert not {"broker.id", "broker.rack", "advertised.listeners", "reserved.broker.max.id"} & told.keys()
    await story.migrate_to_dual_write()
    await story.has_kept_everything()
    await story.move_to_kraft()
    await story.has_kept_everything()

    for node in await story.leader_last():
        await finalized(story.controllers[node], story.controller_edits(node, Mode.KRAFT_CONTROLLER), node, story.log)
    await eventually(story.log, lambda image: image.migration_state is MigrationState.POST_MIGRATION)
    story.zookeeper.stop()
    story.create_topic("after")
    await story.has_kept_everything()
    for node, server in story.controllers.items():
        server.kill()
        server.start(story.controller_edits(node, Mode.KRAFT_CONTROLLER), wait=False)
    for server in story.controllers.values():
        server.wait()
    story.create_topic("after-the-whole-quorum-was-killed")
    await story.has_kept_everything()
    admin = AdminClient({"bootstrap.servers": str(address)})
    anything = AclBindingFilter(ResourceType.ANY, None, ResourcePatternType.ANY, None, None, AclOperation.ANY,
                                AclPermissionType.ANY)
    assert admin.describe_acls(anything).result(stretched(30)) == [], "there is an authorizer; without one this is an error"


CONTROL_PLANE = """,CONTROL://{host}:9097
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROL:PLAINTEXT
control.plane.listener.name=CONTROL"""


@pytest.mark.parametrize("more", [
    "", pytest.param(CONTROL_PLANE, marks=pytest.mark.long, id="control plane (BH3-10)"),
    pytest.param(f"\n{tiered.SETTINGS}", marks=pytest.mark.long, id="tiered storage (BH3-10)")])
async def test_a_plain_broker_goes_there_and_back(
        more: str, tmp_path: Path, stories: list[Story], monkeypatch: pytest.MonkeyPatch) -> None:
    """A short configuration, to KRaft and back to the user's own; where data is, the command line says."""
    if tiered.SETTINGS in more:
        monkeypatch.setenv("CLASSPATH", str(tiered.classes(tmp_path / "classes")))
    story = Story(tmp_path, 1, "PLAINTEXT", {})
    stories.append(story)
    own = more.format(host=story.broker.address.host)
    await story.begin(COMMON + f"broker.id=1\nlisteners=PLAINTEXT://{story.broker.address}{own}\n"
                               f"zookeeper.connect={story.zookeeper.address}/kafka\n"
                               f"metadata.log.dir={tmp_path / 'broker' / 'metadata'}\n",
                      f"""--override "$(printf log.)dirs"='{tmp_path / 'broker' / 'data'}'""")
    before = await story.state()
    await story.has_kept_everything()
    await story.start_controllers()
    assert (story.log_dir(3000) / "__cluster_metadata-0").is_dir(), "the controller's log is where its own edits say"
    await story.migrate_to_dual_write()
    await story.move_to_kraft()
    await story.has_kept_everything()

    await story.move_back_to_zookeeper(before)
    started = time.monotonic()
    story.broker.stop()
    assert time.monotonic() - started < stretched(STOP_SECONDS), "it was killed"
    story.broker.start(story.broker_edits(Mode.ZOOKEEPER))          # where a template is not restored yet
    await story.has_kept_everything()
    story.broker.restart("")
    await story.has_kept_everything()
    assert not (await story.wire.api_versions(story.broker.address)).zk_migration_ready
    assert (await story.state()).cluster_id == before.cluster_id


@pytest.mark.long
async def test_whoever_is_killed_comes_back_in_its_mode(tmp_path: Path, stories: list[Story]) -> None:
    """Broker and controller, by SIGKILL, in each of their modes, there and back."""
    story = Story(tmp_path, 1, "PLAINTEXT", {})
    stories.append(story)
    controller = story.controllers[3000]
    await story.begin(COMMON + f"broker.id=1\nlisteners=PLAINTEXT://{story.broker.address}\n"
                               f"zookeeper.connect={story.zookeeper.address}/kafka\n"
                               f"log.dirs={tmp_path / 'broker' / 'data'}\n")
    before = await story.state()
    await story.start_controllers()
    controller.kill()
    await story.start_controllers()
    await story.migrate_to_dual_write()
    await story.survives_a_kill()
    controller.kill()
    controller.start(story.controller_edits(3000, Mode.MIGRATION_CONTROLLER))
    await story.move_to_kraft()
    await story.survives_a_kill()
    await story.move_back_to_zookeeper(before)
    story.broker.restart(story.broker_edits(Mode.ZOOKEEPER))
    await story.survives_a_kill()


@pytest.mark.long
@pytest.mark.parametrize("old", ["3.6", "3.8"])
async def test_a_broker_of_an_older_kafka_is_upgraded_goes_there_and_comes_back_to_it(
        old: str, tmp_path: Path, stories: list[Story]) -> None:
    """No file says a protocol version: 3.9 would take its own, and what it writes then the older Kafka could not read."""
    story = Story(tmp_path, 1, "PLAINTEXT", {})
    stories.append(story)
    story.broker.version = old
    await story.begin(COMMON + f"broker.id=1\nlisteners=PLAINTEXT://{story.broker.address}\n"
                               f"zookeeper.connect={story.zookeeper.address}/kafka\n"
                               f"log.dirs={tmp_path / 'broker' / 'data'}\n", image="kafka:3.9")
    before, version = await story.state(), story.brokers.version
    assert modes.release_of(version) == old

    async def runs(mode: str, release: str) -> None:
        story.broker.stop()
        story.broker.version = release
        story.broker.start(story.broker_edits(mode) if mode else "")
        await eventually(story.visible, lambda found: found.outcome is Outcome.PASS)
        await story.has_kept_everything()
        answer = await story.wire.api_versions(story.broker.address)
        assert is_older(answer) is (release != "3.9")
        assert answer.api_keys[modes.LEADER_AND_ISR] == modes.LEADER_AND_ISR_OF_3_4
        assert (await story.wire.settings(story.broker.address, 1))[modes.PROTOCOL_VERSION] == version

    await runs(Mode.ZOOKEEPER_PINNED, "3.9")
    await runs("", old)
    await runs(Mode.ZOOKEEPER_PINNED, "3.9")
    await story.survives_a_kill()
    await story.start_controllers()
    await story.migrate_to_dual_write()
    await story.has_kept_everything()
    await story.move_to_kraft()
    await story.has_kept_everything()
    await story.move_back_to_zookeeper(before)
    await runs("", old)
