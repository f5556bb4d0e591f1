"""What their runbooks have a person do while KRaft's controllers hold the cluster and have not copied its metadata."""

import re
import shutil
from collections.abc import AsyncIterator, Mapping
from pathlib import Path

import pytest
from kazoo.client import KazooClient

from adapters import records
from adapters.admin import create_topic
from adapters.clusters import KafkaCluster, kafka_cluster, patient_wire
from adapters.eventually import eventually
from adapters.formatted import lay_out
from adapters.pasting import Tools
from fakes.metadata_sides import config
from patience import stretched
from switchover.answers.observed import Known
from switchover.api.kafka_migration import NodeMode as Mode
from switchover.api.status import Verdict as Outcome
from switchover.cluster.gates.dual_write import COPY_FOLLOWS_CLAIM, NO_PHANTOM_COPY
from switchover.cluster.picture import Picture
from switchover.cluster.rehearsal.report import ZOOKEEPER, delete
from switchover.engine.gate import Gate, Verdict
from switchover.metadata.parity import LogImage
from switchover.network.credentials import Access
from switchover.zookeeper.client.zookeeper import KazooZooKeeper
from switchover.zookeeper.nodes import ZooKeeperState
from unit.kraft_gates import claimed
from unit.pictures import NOW, moment, with_fact
from unit.preflight_pictures import check

EVIL = "/config/clients/it's $(evil)"


class Story:
    """A broker in mode Migration with records, under a ZooKeeper controller; and one controller that takes it over."""

    def __init__(self, directory: Path, cluster: KafkaCluster) -> None:
        self.cluster, self.controller = cluster, cluster.controllers[3000]
        self.tools = Tools(directory, {"kafka-controller-0": self.controller})
        self.tree = KazooZooKeeper(Access(cluster.zookeeper_connect))
        self.client = KazooClient(cluster.zookeeper_connect, timeout=stretched(30))
        self.names: Mapping[str, str] = {"ZOOKEEPER": cluster.zookeeper_connect}

    def begin(self) -> None:
        self.cluster.zookeeper.start(self.cluster.zookeeper.properties())
        self.cluster.brokers[1].start(self.cluster.broker_properties(1, Mode.MIGRATION))
        self.cluster.wait_for_brokers()
        create_topic(self.cluster.bootstrap, "orders")
        records.write(self.cluster.bootstrap, "orders")
        self.client.start()

    async def start_controller(self) -> None:
        """As its pod starts for the first time."""
        text = self.cluster.controller_properties(3000, Mode.MIGRATION_CONTROLLER)
        lay_out(self.controller, (await self.state()).cluster_id, text)
        self.controller.start(text, wait=False)

    async def state(self) -> ZooKeeperState:
        return await self.tree.state()

    async def log(self) -> LogImage:
        return await patient_wire({}).log({3000: self.controller.address})

    async def says(self, gate: Gate[Picture], **facts: object) -> Verdict:
        """What the operator says of it."""
        picture = with_fact(claimed(), "zookeeper", Known(await self.state(), NOW))
        for fact, found in facts.items():
            picture = with_fact(picture, fact, Known(found, NOW))
        return gate.check(picture)

    async def is_zookeepers(self) -> None:
        """The broker is the controller, and the topic is what it was."""
        state = await eventually(self.state, lambda state: state.controller is not None and state.controller.ephemeral)
        assert (state.migration, state.controller and state.controller.node_id) == (None, 1)
        create_topic(self.cluster.bootstrap, "elected")
        assert set(self.client.get_children("/brokers/topics")) >= {"elected", "orders"}
        records.read(self.cluster.bootstrap, "orders")

    async def is_copied(self) -> None:
        """The migration goes on."""
        await eventually(self.state, lambda state: state.migration is not None and state.migration.offset > 0)
        await eventually(self.log, lambda image: {*image.metadata.topics} >= {"elected", "orders"}
                         and not image.brokers[1].fenced)
        create_topic(self.cluster.bootstrap, "under-kraft")
        records.read(self.cluster.bootstrap, "orders")

    async def end(self) -> None:
        self.client.stop()
        self.client.close()
        await self.tree.close()


@pytest.fixture
async def story(tmp_path: Path) -> AsyncIterator[Story]:
    with kafka_cluster(tmp_path / "cluster", controllers=(3000,)) as cluster:
        story = Story(tmp_path, cluster)
        story.begin()
        yield story
        await story.end()


@pytest.mark.long
@pytest.mark.case("ClaimedNotCopied")
async def test_a_claim_whose_copy_ends_is_taken_back_and_comes_again(story: Story) -> None:
    """The node that ends it is deleted by the command that a rehearsal prints of such a one."""
    story.client.create(EVIL, config({"owner": "team-a"}), makepath=True)
    await story.start_controller()
    story.controller.wait_exit()
    assert (await story.says(COPY_FOLLOWS_CLAIM)).reason == "ClaimedNotCopied"
    story.tools.paste_page("ClaimedNotCopied", **story.names)
    await story.is_zookeepers()
    story.tools.paste(delete(EVIL).replace(ZOOKEEPER, story.cluster.zookeeper_connect))
    assert story.client.get_children("/config/clients") == []
    story.controller.start((story.controller.directory / "server.properties").read_text())
    await story.is_copied()


@pytest.mark.long
@pytest.mark.case("StaleMigrationNode")
async def test_a_leftover_that_new_controllers_take_for_their_own_is_deleted_before_they_delete_topics(story: Story) -> None:
    story.client.create("/migration", b'{"version":0,"kraft_metadata_offset":1000000,"kraft_controller_id":3000,'
                                      b'"kraft_metadata_epoch":3,"kraft_controller_epoch":3}')
    await story.start_controller()
    story.controller.wait()
    await eventually(story.state, lambda state: state.controller is not None and not state.controller.ephemeral)
    assert (await story.says(NO_PHANTOM_COPY, log=await story.log())).reason == "StaleMigrationNode"
    story.tools.paste_page("dual-write", "StaleMigrationNode", **story.names)
    assert not story.controller.answers()
    await story.is_zookeepers()
    story.controller.start((story.controller.directory / "server.properties").read_text())
    await story.is_copied()


@pytest.mark.case("Residue")
async def test_a_cluster_that_an_earlier_attempt_has_claimed_is_zookeepers_again(story: Story) -> None:
    """Its controllers and their volumes are gone. The largest epoch of the partitions is not above the controller's then."""
    await story.start_controller()
    await eventually(story.state, lambda state: state.migration is not None and state.migration.offset > 0)
    story.controller.kill()
    shutil.rmtree(story.controller.directory / "data")
    picture = with_fact(moment("Preflight"), "zookeeper", Known(await story.state(), NOW))
    assert {each.subject for each in check("Residue", picture).findings} >= {"/migration", "/controller"}
    ends = "QuorumVolumesLost"
    largest, epoch = (int(re.findall(r"(?m)(?:^|:)(\d+)$", told)[-1]) for told in story.tools.paste_page(
        ends, like="/state|get /controller_epoch", **story.names))
    story.tools.paste_page(ends, like=" set ", EPOCH=str(max(largest, epoch)), **story.names)
    story.tools.paste_page(ends, like=" delete /", **story.names)
    await story.is_zookeepers()
    assert check("Residue", with_fact(picture, "zookeeper", Known(await story.state(), NOW))).outcome is Outcome.PASS
