"""The port ZooKeeperGroups on kazoo: one group whose coordination moves."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace

from kazoo.client import KazooClient
from kazoo.exceptions import BadVersionError, NoAuthError, NodeExistsError, NoNodeError
from kazoo.security import ACL

from switchover.answers.errors import Fenced, Malformed, Refused, Unreachable
from switchover.consumer.reading import NoTopic, Unsettled, read_world
from switchover.coordination.layout import BROKERS, Layout
from switchover.coordination.mode import Mode
from switchover.coordination.world import World
from switchover.shared.partition import TopicPartition
from switchover.zookeeper.client import security
from switchover.zookeeper.client.session import ZooKeeperSession, left


class KazooZooKeeperGroups(ZooKeeperSession):
    """Consumer groups below the chroot of `access.servers`. Every answer is as new as the leader's."""

    async def world(self, group: str) -> World:
        """What the group looks like, read at once."""
        return await self._call(lambda deadline: self._world(deadline, Layout(group)))

    async def offsets(self, group: str) -> Mapping[TopicPartition, int]:
        """The offsets that are committed to ZooKeeper; what is negative or no number is none
        (docs/facts/coordination.md#znodes)."""
        return await self._call(lambda deadline: self._offsets(deadline, Layout(group)))

    async def set_mode(self, group: str, mode: Mode, version: int) -> None:
        """Write the mode znode over the version in `World.mode_version`, or create it where that is -1. Fenced where it is
        another, and says what is there; that it says `mode` already is success.
        """
        await self._call(lambda deadline: self._set_mode(deadline, Layout(group), mode, version))

    async def remove_guards(self, group: str, partitions: Collection[TopicPartition]) -> None:
        """Delete the owner nodes of these partitions that belong to no session."""
        await self._call(lambda deadline: self._remove_guards(deadline, Layout(group), sorted(partitions)))

    async def missing_rights(self, group: str) -> tuple[str, ...]:
        """What our credentials lack, by the nodes' ACLs, to own the mode znode and to remove guards: "WRITE on /…"."""
        return await self._call(lambda deadline: tuple(self._missing_rights(deadline, Layout(group))))

    # --- below: on the one thread ---------------------------------------------------------------------------------

    def _world(self, deadline: float, layout: Layout) -> World:
        client = self._synced(deadline)
        try:
            world = read_world(client, layout)
        except Unsettled as error:
            raise Unreachable(f"ZooKeeper at {self._named}: {error}") from error
        except NoAuthError as error:
            raise Refused(f"ZooKeeper at {self._named} does not let us read {layout.root}, or the topics below"
                          " /brokers/topics: their ACLs must give our credentials READ") from error
        except NoTopic as error:
            raise Malformed(f"a topic of group {layout.group} in ZooKeeper at {self._named} is not what Kafka writes:"
                            f" {error}") from error
        return replace(world, brokers=frozenset(map(int, filter(str.isdigit, self._list(deadline, client, BROKERS)))))

    def _offsets(self, deadline: float, layout: Layout) -> Mapping[TopicPartition, int]:
        client = self._synced(deadline)
        topics = [f"{layout.offsets}/{topic}" for topic in self._list(deadline, client, layout.offsets)]
        asked = [(topic, client.get_children_async(topic)) for topic in topics]
        paths = [f"{topic}/{number}" for topic, result in asked for number in self._answer(deadline, topic, result) or ()
                 if number.isdecimal()]
        found: dict[TopicPartition, int] = {}
        for path, (data, _) in self._nodes(deadline, client, paths):
            _, topic, number = path.rsplit("/", 2)
            text = (data or b"").decode(errors="replace")
            if text.isascii() and text.isdecimal():
                found[TopicPartition(topic, int(number))] = int(text)
        return found

    def _set_mode(self, deadline: float, layout: Layout, mode: Mode, version: int) -> None:
        client = self._synced(deadline)
        found = self._answer(deadline, layout.mode, client.get_async(layout.mode))
        if found is not None and found[0] == mode.encode():
            return
        if (-1 if found is None else found[1].mzxid) != version:
            there = "is not there" if found is None else f"holds {found[0]!r} since transaction {found[1].mzxid}"
            raise Fenced(f"{layout.mode} {there}, where {version} was read: somebody else writes it")
        written = (client.create_async(layout.mode, mode.encode(), makepath=True) if found is None
                   else client.set_async(layout.mode, mode.encode(), found[1].version))
        try:
            done = self._answer(deadline, layout.mode, written, "WRITE, or CREATE on its parent")
        except (BadVersionError, NodeExistsError):
            done = None
        if done is None:
            raise Fenced(f"{layout.mode} was changed while it was written: somebody else writes it")

    def _remove_guards(self, deadline: float, layout: Layout, partitions: Sequence[TopicPartition]) -> None:
        client = self._synced(deadline)
        for path, (_, stat) in self._nodes(deadline, client, [layout.owner(each) for each in partitions]):
            if stat.ephemeralOwner:
                continue
            try:
                self._answer(deadline, path, client.delete_async(path, stat.version), "DELETE on its parent")
            except BadVersionError as error:
                raise Fenced(f"{path} was written since it was read") from error

    def _missing_rights(self, deadline: float, layout: Layout) -> Iterator[str]:
        client = self._synced(deadline)
        above = layout.mode.rpartition("/")[0]
        for path, right in ((layout.mode, "WRITE"), (above, "CREATE"), (layout.root, "CREATE")):
            lacks = self._lacks(deadline, client, path, right)
            if lacks:
                yield f"{right} on {path}"
            if lacks is not None:
                break                                       # it exists: nothing above it has to be written
        for path in [f"{layout.owners}/{topic}" for topic in self._list(deadline, client, layout.owners)]:
            if self._lacks(deadline, client, path, "DELETE"):
                yield f"DELETE on {path}"

    def _lacks(self, deadline: float, client: KazooClient, path: str, right: str) -> bool | None:
        """Whether the node's ACL denies us this; None where it does not exist. What cannot be judged is not denied."""
        try:
            found: tuple[Sequence[ACL], object] = client.get_acls_async(path).get(timeout=left(deadline))
        except NoNodeError:
            return None
        except NoAuthError:
            return True
        return right not in security.granted(found[0], self._identities) and not security.unjudged(found[0])
