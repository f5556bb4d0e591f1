"""The port ZooKeeper on kazoo. It writes for a rollback, and `create_states` where dual write stands still."""

import asyncio
import contextlib
import errno
import socket
import ssl
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar

from kazoo.client import KazooClient, TransactionRequest
from kazoo.exceptions import (
    BadVersionError,
    KazooException,
    NoAuthError,
    NodeExistsError,
    NoNodeError,
    NotEmptyError,
    RolledBackError,
    RuntimeInconsistency,
)
from kazoo.security import ACL

from switchover.answers import memory
from switchover.answers.errors import Fenced, NotListening, Refused, Unreachable
from switchover.metadata.parity import TreeReading
from switchover.metadata.tree import state_path
from switchover.network.addresses import Address
from switchover.network.credentials import Access
from switchover.zookeeper.client import security, znodes
from switchover.zookeeper.client.legacy_groups import GroupReader
from switchover.zookeeper.client.session import NO_SUCH_NAME, ZooKeeperSession, addresses_of, left
from switchover.zookeeper.client.topics import StateReader, TopicReader
from switchover.zookeeper.client.tree import TreeReader
from switchover.zookeeper.client.znode_slices import Node
from switchover.zookeeper.nodes import IdleGroups, ZooKeeperGroup, ZooKeeperRights, ZooKeeperState, ZooKeeperTopics

EPOCH = "/controller_epoch"
FORBIDDEN = "srvr is not executed because it is not in the whitelist."
RIGHTS_ON = ("/", EPOCH)    # deleting a node takes DELETE on its parent
WRITES = 100                # of one node in one transaction
LONGEST_STATUS = 65_536      # bytes of an answer to `srvr`
NOBODY_THERE = (errno.ECONNREFUSED, errno.ENETUNREACH, errno.EHOSTUNREACH)
"""How a host or the network says that there is no server: a Service without endpoints refuses, or no way leads to it."""

T = TypeVar("T")


class KazooZooKeeper(ZooKeeperSession):
    """The ZooKeeper tree of one Kafka cluster."""

    def __init__(self, access: Access, *, seconds: float = 5.0) -> None:
        super().__init__(access, seconds=seconds)
        room = partial(memory.ANSWERS.lasting, f"ZooKeeper at {access.servers}")
        self._tree = TreeReader(self._call, self._read, self._children, room())
        self._groups = GroupReader(self._call, self._read, self._children)
        self._states = StateReader(self._call, self._read, self._children)
        self._topics = TopicReader(self._call, self._read, self._children, room())

    async def close(self) -> None:
        """End the session."""
        await super().close()
        self._tree.close()
        self._topics.close()

    async def state(self) -> ZooKeeperState:
        """The small nodes, as new as the leader's. Refused names a node that is missing or malformed."""
        return await self._call(self._state, "/brokers/ids")

    async def topics(self) -> ZooKeeperTopics:
        """All topics and pending work; malformed nodes are named in it. Other calls are answered between its slices."""
        return await self._topics.topics()

    async def metadata(self, secret: str | None, *, states: bool = False) -> TreeReading:
        """The metadata in the tree; malformed nodes are named in it. Other calls are answered between its slices."""
        return await self._tree.read(secret, states=states)

    async def groups(self) -> Mapping[str, ZooKeeperGroup]:
        """The groups that have members. Refused names a node that we may not read; other calls are answered in between."""
        return await self._groups.live()

    async def idle_groups(self) -> IdleGroups:
        """When groups without members committed last, by the times of their offsets' nodes; the sweep is bounded."""
        return await self._groups.idle()

    def servers(self) -> Sequence[Address]:
        """The servers of the connect string."""
        return self._servers

    async def connections(self, server: Address) -> int:
        """Connections that are not ours, of every server that this name stands for.

        `srvr` counts every connection, the asker's too. Our session is closed first rather than subtracted: behind a
        Service nobody knows which server it is on. A virtual address shows one of its servers only. NotListening where
        the name is gone, or each of its addresses refuses or has no way to it; Refused where the answer is not ZooKeeper's.
        """
        return await self._call(lambda deadline: self._connections(deadline, server))

    async def partition_epoch(self) -> int:
        """The largest `controller_epoch` in the state of any partition; other calls are answered between its slices."""
        return await self._states.largest_epoch()

    async def stateless(self) -> Mapping[tuple[str, int], tuple[int, ...]]:
        """The partitions that a topic's node lists and that have no state: (topic, index) -> replicas; a read for each."""
        return await self._states.missing()

    async def create_states(self, replicas: Mapping[tuple[str, int], tuple[int, ...]], controller_epoch: int) -> None:
        """Create partitions' states as Kafka takes a missing one; Fenced when `/controller_epoch` was written."""
        for (topic, index), brokers in replicas.items():
            await self._call(partial(
                self._create_state, path=state_path(topic, index), brokers=brokers, controller_epoch=controller_epoch))

    async def delete(self, path: str, version: int, controller_epoch: int) -> None:
        """Delete a node without children in that version, in one transaction with a check of `/controller_epoch`.

        Done when it does not exist; Fenced when either is not what was read.
        """
        await self._call(lambda deadline: self._delete(deadline, path, version, controller_epoch))

    async def raise_epoch(self, epoch: int, expected: int) -> None:
        """Set `/controller_epoch`; Fenced when it is not `expected` any more (KAFKA-20488)."""
        await self._call(lambda deadline: self._raise_epoch(deadline, epoch, expected))

    async def raise_versions(self, epochs: Mapping[tuple[str, int], int], controller_epoch: int) -> None:
        """Write partitions' states again as they are until their versions are no less; Fenced when they are written by
        others, or `/controller_epoch` was.
        """
        for (topic, index), epoch in epochs.items():
            await self._call(partial(
                self._raise_version, path=state_path(topic, index), epoch=epoch, controller_epoch=controller_epoch))

    async def rights(self) -> ZooKeeperRights:
        """What our credentials may do with the chroot's root and `/controller_epoch`, by their ACLs."""
        return await self._call(self._rights)

    async def server_mode(self, server: Address) -> str:
        """standalone, leader, follower or observer; Refused where the answer is not ZooKeeper's."""
        answer = await asyncio.to_thread(_srvr_of, server, self._search, self._tls, time.monotonic() + self._seconds)
        return _field(server, answer, "Mode")

    # --- below: on the one thread ---------------------------------------------------------------------------------

    def _state(self, deadline: float) -> ZooKeeperState:
        client = self._connected(deadline)
        paths = ("/cluster/id", "/controller", "/controller_epoch", "/migration", "/brokers/seqid")
        # Requests of one session are answered in order: after `sync` a lagging follower has caught up.
        synced = client.sync_async("/")
        nodes = dict(zip(paths, [client.get_async(path) for path in paths], strict=True))
        ids = client.get_children_async("/brokers/ids")
        self._answer(deadline, "/", synced)
        identity, controller, epoch, migration, sequence = (
            self._answer(deadline, path, result) for path, result in nodes.items()
        )
        if identity is None:
            raise Refused(
                f"ZooKeeper at {self._named} has no /cluster/id: is it the brokers' zookeeper.connect, chroot included?"
            )
        brokers = {f"/brokers/ids/{name}": name for name in self._answer(deadline, "/brokers/ids", ids) or ()}
        registered = dict(self._nodes(deadline, client, list(brokers)))
        return ZooKeeperState(
            cluster_id=_parsed("/cluster/id", znodes.cluster_id, identity[0]),
            controller=controller
            and _parsed("/controller", znodes.controller, controller[0], controller[1].ephemeralOwner,
                        controller[1].version),
            controller_epoch=_parsed("/controller_epoch", znodes.integer, epoch[0]) if epoch else 0,
            migration=migration
            and _parsed("/migration", znodes.migration, migration[0], migration[1].version, migration[1].mtime),
            brokers={
                _parsed(path, int, brokers[path]): _parsed(path, znodes.endpoints, data)
                for path, (data, _) in registered.items()
            },
            ahead={int(brokers[path]): at - stat.ctime / 1000 for path, (data, stat) in registered.items()
                   if (at := _parsed(path, znodes.registered_at, data)) is not None},
            generated_ids=bool(sequence and sequence[1].version > 0),     # each generated id is one write of this node
        )

    def _rights(self, deadline: float) -> ZooKeeperRights:
        client = self._connected(deadline)
        asked = {path: client.get_acls_async(path) for path in RIGHTS_ON}
        acls: dict[str, Sequence[ACL]] = {}
        for path, result in asked.items():
            try:
                acls[path] = (self._answer(deadline, path, result) or ((), None))[0]
            except Refused:
                acls[path] = ()                                    # who may not even read it may not write it either
        return ZooKeeperRights({path: security.granted(acl, self._identities) for path, acl in acls.items()},
                               {path: security.unjudged(acl) for path, acl in acls.items()})

    def _create_state(self, deadline: float, path: str, brokers: Sequence[int], controller_epoch: int) -> None:
        client, known = self._at_epoch(deadline, controller_epoch)
        partition = path.rpartition("/")[0]
        partitions = partition.rpartition("/")[0]
        topic = self._answer(deadline, path, client.get_acls_async(partitions.rpartition("/")[0]))
        if topic is None:
            return
        acl = list(topic[0])                    # Kafka gives all nodes of a topic the same
        parents = [node for node in (partitions, partition)
                   if self._answer(deadline, node, client.exists_async(node)) is None]
        transaction = client.transaction()
        transaction.check(EPOCH, known)
        for parent in parents:
            transaction.create(parent, acl=acl)
        transaction.create(path, znodes.missing_state(brokers, controller_epoch), acl=acl)
        self._commit(deadline, transaction, path, "CREATE on its parent")

    def _delete(self, deadline: float, path: str, version: int, controller_epoch: int) -> None:
        client, known = self._at_epoch(deadline, controller_epoch)
        transaction = client.transaction()
        transaction.check(EPOCH, known)
        transaction.delete(path, version)
        self._commit(deadline, transaction, path, "DELETE on its parent")

    def _raise_epoch(self, deadline: float, epoch: int, expected: int) -> None:
        client, known = self._at_epoch(deadline, expected)
        try:
            self._answer(deadline, EPOCH, client.set_async(EPOCH, str(epoch).encode(), known), "WRITE")
        except BadVersionError as error:
            raise Fenced(f"{EPOCH} in ZooKeeper was written in between") from error

    def _raise_version(self, deadline: float, path: str, epoch: int, controller_epoch: int) -> None:
        client, known = self._at_epoch(deadline, controller_epoch)
        while found := self._answer(deadline, path, client.get_async(path)):
            data, state = found
            if state.version >= epoch:
                return
            transaction = client.transaction()
            transaction.check(EPOCH, known)
            for version in range(state.version, min(epoch, state.version + WRITES)):
                transaction.set_data(path, data, version)
            self._commit(deadline, transaction, path, "WRITE")

    def _commit(self, deadline: float, transaction: TransactionRequest, path: str, right: str) -> None:
        """A node that is gone, or there, is what was wanted, or nothing to write to."""
        for result in self._answer(deadline, path, transaction.commit_async(), right):
            match result:
                case NoNodeError() | NodeExistsError():
                    return
                case NoAuthError():
                    raise self._forbidden(path, right)
                case BadVersionError():
                    raise Fenced(f"{path} in ZooKeeper is not what was read")
                case NotEmptyError():
                    raise Refused(f"{path} in ZooKeeper has children and was not deleted")
                case KazooException() if not isinstance(result, (RolledBackError, RuntimeInconsistency)):
                    raise result

    def _at_epoch(self, deadline: float, expected: int) -> tuple[KazooClient, int]:
        """The client, and the version of the controller epoch's node, which must be what was read."""
        client = self._synced(deadline)
        found: Node | None = self._answer(deadline, EPOCH, client.get_async(EPOCH))
        if found is None or _parsed(EPOCH, znodes.integer, found[0]) != expected:
            raise Fenced(f"{EPOCH} in ZooKeeper is not {expected} any more")
        return client, found[1].version

    def _connections(self, deadline: float, server: Address) -> int:
        self._disconnect()
        try:
            found = addresses_of(server, self._search)
            # One family: in the other one the same servers would be met again.
            addresses = {str(address[0]) for family, *_, address in found if family == found[0][0]}
            answers, refused = [], []
            for address in sorted(addresses):
                try:
                    answers.append(_srvr(address, server, self._tls, deadline))
                except OSError as error:
                    if error.errno not in NOBODY_THERE:
                        raise
                    refused.append(error)
            if refused:
                why = refused[0].strerror or refused[0]
                raise (Unreachable if answers else NotListening)(f"ZooKeeper server {server}: {why}")
        except socket.gaierror as error:
            gone = error.errno in NO_SUCH_NAME
            raise (NotListening if gone else Unreachable)(f"ZooKeeper server {server}: {error.strerror or error}") from error
        except ssl.SSLCertVerificationError as error:
            raise Refused(f"ZooKeeper server {server}: its certificate is not accepted ({error.verify_message})") from error
        except OSError as error:
            raise Unreachable(f"ZooKeeper server {server}: {error.strerror or error}") from error
        return sum(_others(server, answer) for answer in answers)


def _srvr(host: str, server: Address, tls: ssl.SSLContext | None, deadline: float) -> str:
    """The answer to `srvr`; the server closes the connection after it."""
    with contextlib.ExitStack() as opened:
        connection = opened.enter_context(socket.create_connection((host, server.port), timeout=left(deadline)))
        if tls is not None:
            connection = opened.enter_context(tls.wrap_socket(connection, server_hostname=server.host))
        connection.sendall(b"srvr")
        answer = b""
        with contextlib.suppress(TimeoutError):
            while len(answer) <= LONGEST_STATUS and time.monotonic() <= deadline:
                connection.settimeout(left(deadline))
                if not (part := connection.recv(4096)):
                    return answer.decode(errors="replace")
                answer += part
    raise Unreachable(f"ZooKeeper server {server}: {'its answer to srvr does not end' if answer else 'no answer to srvr'}")


def _srvr_of(server: Address, search: Sequence[str], tls: ssl.SSLContext | None, deadline: float) -> str:
    """From the first of its addresses that answers."""
    why: OSError | None = None
    try:
        for *_, address in addresses_of(server, search):
            try:
                return _srvr(str(address[0]), server, tls, deadline)
            except OSError as error:
                why = error
    except OSError as error:
        why = error
    raise Unreachable(f"ZooKeeper server {server}: {(why and why.strerror) or why}") from why


def _others(server: Address, answer: str) -> int:
    found = _field(server, answer, "Connections")
    if not found.isdecimal():
        raise Refused(f"ZooKeeper server {server} reports {found!r} as its connections")
    return max(0, int(found) - 1)


def _field(server: Address, answer: str, wanted: str) -> str:
    """What a server says of itself in its answer to `srvr`."""
    for line in answer.splitlines():
        name, _, value = line.partition(":")
        if name == wanted:
            return value.strip()
    if "not currently serving" in answer:
        raise Unreachable(f"ZooKeeper server {server} is not serving requests now")
    if answer.strip() == FORBIDDEN:
        why = f'it says "{FORBIDDEN}"'
    elif not answer:
        why = "it gives no answer, as a TLS port does"
    else:
        why = "what answers there is not ZooKeeper"     # and is not repeated: anybody may name any address in a spec
    raise Refused(f"ZooKeeper server {server} does not report its {wanted.lower()}: asked for srvr, {why}")


def _parsed(path: str, parse: Callable[..., T], *arguments: Any) -> T:
    try:
        return parse(*arguments)
    except ValueError as error:
        raise Refused(f"{path} in ZooKeeper is not what Kafka writes: {error}") from error
