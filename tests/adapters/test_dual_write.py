"""Dual write that stands still, at a quota, at partitions without a state or since its controllers have ended, and goes on
once that is put right."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from adapters.clusters import patient_wire
from adapters.formatted import lay_out
from adapters.pasting import Tools
from adapters.servers import KafkaServer, ZooKeeperServer, free_port
from adapters.test_zookeeper import opened, writer
from fakes.planted_trees import planted
from patience import Patience, until
from switchover.cluster.gates.rollback import is_behind
from switchover.cluster.modes import METADATA_LEVELS
from switchover.cluster.rehearsal.settings import Attempt, Ids, Place
from switchover.kafka.client.nodes import register
from switchover.metadata.kafka_config import Unwritable, unwritable
from switchover.network.addresses import Address
from switchover.network.credentials import Access
from switchover.zookeeper.client.copying import KazooTree
from switchover.zookeeper.tree import Tree
from unit.kraft_gates import dual_write

CLUSTER = "rehearsal-Cluster-AAAA"
STANDS_SECONDS = 3.0


@dataclass
class Claimed:
    """A cluster whose metadata a controller has copied, with stand-ins for its brokers."""

    server: KafkaServer
    zookeeper: ZooKeeperServer
    settings: str
    tree: KazooTree
    connect: str
    chroot: str

    @property
    def controller(self) -> Address:
        return self.server.address

    async def offset(self) -> int:
        """Of /migration: how far dual write is."""
        node = (await self.tree.replica_nodes(self.chroot)).migration
        return node.offset if node is not None else -1

    async def reaches(self, offset: int) -> None:
        patience = Patience(90)
        while await self.offset() <= offset:
            assert not patience.over, f"/migration does not get beyond {offset}"
            await asyncio.sleep(0.2)

    async def quotas(self) -> tuple[Unwritable, ...]:
        """Those of KRaft's that cannot be written."""
        return unwritable((await patient_wire({}).log({3000: self.controller})).metadata.quotas)


@asynccontextmanager
async def claimed(directory: Path, *faults: str) -> AsyncIterator[Claimed]:
    zookeeper = ZooKeeperServer(directory / "zookeeper")
    attempt = Attempt(1, Place(str(directory), zookeeper.address.host, zookeeper.address.port, free_port()), Ids(3000, 3001))
    controller = KafkaServer(directory / "controller", Address(attempt.place.host, attempt.place.controller))
    nodes = planted(*faults)
    zookeeper.start(zookeeper.properties())
    tree = KazooTree(Access(str(zookeeper.address)))
    try:
        await tree.load(attempt.chroot, nodes)
        lay_out(controller, CLUSTER, attempt.migrating())
        controller.start(attempt.migrating())
        found = Claimed(controller, zookeeper, attempt.migrating(), tree, str(zookeeper.address), attempt.chroot)
        assert not await register(found.controller, Tree(nodes).registered, CLUSTER, METADATA_LEVELS["3.9"], 30)
        await found.reaches(0)
        yield found
    finally:
        await tree.close()
        controller.kill()
        zookeeper.kill()


@pytest.mark.parametrize("fault", ["unknown quota", pytest.param("quota with a decimal", marks=pytest.mark.long)])
async def test_dual_write_begins_once_the_quota_is_put_right(tmp_path: Path, fault: str) -> None:
    async with claimed(tmp_path, fault) as found:
        copied = await found.offset()
        await asyncio.sleep(STANDS_SECONDS)
        assert await found.offset() == copied, "dual write writes twice a second, and here it does not"
        (quota,) = await found.quotas()
        assert quota.entity == (("client-id", "evil"),)
        await patient_wire({}).set_quota(found.controller, quota.entity, quota.key, quota.instead)
        await found.reaches(copied)
        assert not await found.quotas()


@pytest.mark.parametrize("by", ["the operator", pytest.param("hand", marks=pytest.mark.long)])
async def test_dual_write_goes_on_once_partitions_have_a_state(tmp_path: Path, by: str) -> None:
    """As after a topic grew and the leading controller was another one before ZooKeeper had its partitions
    (docs/facts/kraft.md#a-topic-that-grows-while-the-leader-changes)."""
    async with claimed(tmp_path) as found:
        await found.reaches(await found.offset())
        found.server.stop()
        with writer(found.connect) as client:
            client.delete(f"{found.chroot}/brokers/topics/topic-3/partitions/1", recursive=True)
        found.server.start(found.settings)
        until(lambda: "Could not find partition state in ZK for topic-3-1" in found.server.log.read_text(),
              "the new leader misses the state")
        stands = await found.offset()
        await asyncio.sleep(STANDS_SECONDS)
        assert await found.offset() == stands, "no leader ends this: nothing is proved"
        async with opened(found.connect + found.chroot) as zookeeper:
            missing = await zookeeper.stateless()
            assert set(missing) == {("topic-3", 1)}
            if by == "hand":
                Tools(tmp_path).paste_page("dual-write", "PartitionsWithoutState", ZOOKEEPER=found.connect + found.chroot,
                                           TOPIC="topic-3", **{"N": "1"})
            else:
                await zookeeper.create_states(missing, (await zookeeper.state()).controller_epoch)
        await found.reaches(stands)
        with writer(found.connect) as client:
            state, stat = client.get(f"{found.chroot}/brokers/topics/topic-3/partitions/1/state")
        assert (json.loads(state)["leader_epoch"], stat.version) == (3, 1), "KRaft's own, written over ours"


async def test_what_was_accepted_last_is_seen_to_be_missing_and_comes_with_the_controllers(tmp_path: Path) -> None:
    """A change is answered while ZooKeeper is silent, and the controllers end: `/migration` is behind the last record that
    was seen, which is how a rollback knows that it must start them again (docs/facts/kraft.md#rollback)."""
    user = (("user", "late"),)
    async with claimed(tmp_path) as found, opened(found.connect + found.chroot) as zookeeper:
        await found.reaches(await found.offset())
        with found.zookeeper.frozen():
            await patient_wire({}).set_quota(found.controller, user, "producer_byte_rate", 1024.0)
            seen = await patient_wire({}).quorum([found.controller])
            found.server.kill()
        picture = replace(dual_write(), high_watermark=seen.high_watermark)
        assert is_behind(picture, await zookeeper.state())
        found.server.start(found.settings)
        await found.reaches(seen.high_watermark - 2)
        assert not is_behind(picture, await zookeeper.state())
        with writer(found.connect) as client:
            late, _ = client.get(f"{found.chroot}/config/users/late")
        assert json.loads(late)["config"] == {"producer_byte_rate": "1024"}
