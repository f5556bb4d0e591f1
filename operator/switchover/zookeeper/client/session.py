"""A session with ZooKeeper on a thread of its own: how every port on kazoo asks, and how its errors become ours."""

import asyncio
import logging
import random
import socket
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any, TypeVar

from kazoo.client import KazooClient
from kazoo.exceptions import (
    AuthFailedError,
    ConnectionClosedError,
    ConnectionDropped,
    ConnectionLoss,
    KazooException,
    NoAuthError,
    NoNodeError,
    SessionExpiredError,
)
from kazoo.handlers.threading import KazooTimeoutError
from kazoo.hosts import collect_hosts
from kazoo.protocol.states import KeeperState
from kazoo.retry import KazooRetry

from switchover.answers import memory
from switchover.answers.errors import Refused, Unreachable
from switchover.network.addresses import Address, looked_up
from switchover.network.credentials import Access
from switchover.shared.kazoo_frames import limit
from switchover.zookeeper.client import security
from switchover.zookeeper.client.security import TlsHandler, credentials, tls
from switchover.zookeeper.client.znode_slices import Node

NO_SUCH_NAME = (socket.EAI_NONAME, socket.EAI_NODATA)
SESSION_SECONDS = 4.0       # the shortest by ZooKeeper's defaults; also the limit of one connection attempt
BATCH = 500                 # requests under way at once; a cluster may have many thousand topics

T = TypeVar("T")

# Below INFO kazoo writes out its requests, those that carry the credentials included.
logging.getLogger("kazoo").setLevel(logging.INFO)


class ZooKeeperSession:
    """`access.servers` is Kafka's `zookeeper.connect`: host:port,…/chroot. `access.properties` are read by
    security.py beside this.

    Every call ends within `seconds`, the wait for a connection included; only very many nodes take longer, as long as
    answers come. Names are resolved at each connection attempt, so servers may move. Raises Refused when the connect
    string or the credentials cannot be used.
    """

    def __init__(self, access: Access, *, seconds: float = 5.0) -> None:
        try:
            hosts, _ = collect_hosts(access.servers)
            self._servers = tuple(Address(host, port) for host, port in hosts)
        except ValueError as error:
            raise Refused(f"zookeeper.connect {access.servers!r} is not host:port,…/chroot: {error}") from error
        self._named, self._search = access.servers, access.search
        self._seconds = seconds
        self._tls = tls(access.properties)
        self._options = credentials(access.properties)
        self._identities = security.identities(access.properties)
        self._client: KazooClient | None = None
        self._live = threading.Event()      # kazoo's: set while there is a session
        self._no_room: Callable[[], Exception] | None = None    # for what the server said, when it was too much
        self._lock = threading.Lock()
        self._held: list[memory.Held] | None = None     # what the answers of a call take, as long as it lasts
        self._remembered: dict[str, memory.Held] = {}         # what is remembered of those before, by what they are about
        self._refused = False               # whether it refused the credentials, whatever error a call under way got
        self._handler = TlsHandler(self._tls)
        # One thread: calls come one after the other, so `connections` can close the session and know it stays closed.
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="zookeeper")

    async def close(self) -> None:
        """End the session; waits no longer than any other call."""
        stopped = asyncio.get_running_loop().run_in_executor(self._thread, self._disconnect)
        self._thread.shutdown(wait=False)
        await asyncio.wait([stopped], timeout=self._seconds)
        for each in self._remembered.values():
            each.give_back()

    # --- below: on the one thread ---------------------------------------------------------------------------------

    def _read(self, deadline: float, paths: Sequence[str]) -> Iterator[tuple[str, Node]]:
        return self._nodes(deadline, self._synced(deadline), paths)

    def _children(self, deadline: float, paths: Sequence[str]) -> Mapping[str, Sequence[str]]:
        client = self._synced(deadline)
        asked = [(path, client.get_children_async(path)) for path in paths]
        return {path: self._answer(deadline, path, result) or () for path, result in asked}

    def _list(self, deadline: float, client: KazooClient, path: str) -> Sequence[str]:
        return self._answer(deadline, path, client.get_children_async(path)) or ()

    def _nodes(self, deadline: float, client: KazooClient, paths: Sequence[str]) -> Iterator[tuple[str, Node]]:
        """Those that exist, in batches under way together; each batch has the time of a call."""
        for start in range(0, len(paths), BATCH):
            deadline = max(deadline, time.monotonic() + self._seconds)
            batch = deque((path, client.get_async(path)) for path in paths[start:start + BATCH])
            try:
                while batch:
                    if node := self._answer(deadline, *batch[0]):
                        yield batch[0][0], node
                    node = None
                    batch.popleft()
            finally:
                batch.clear()       # or the traceback of an error would hold all of it

    def _answer(self, deadline: float, path: str, result: Any, right: str = "READ") -> Any:
        """The result, or None where the node does not exist."""
        try:
            return result.get(timeout=left(deadline))
        except NoNodeError:
            return None
        except NoAuthError as error:
            raise self._forbidden(path, right) from error
        except KazooTimeoutError as error:
            raise KazooTimeoutError(f"waiting for {path}") from error

    def _forbidden(self, path: str, right: str) -> Refused:
        return Refused(f"ZooKeeper at {self._named} does not let us use {path}: its ACL must give our credentials {right}")

    async def _call(self, function: Callable[[float], T], remembered: str = "") -> T:
        """What is `remembered` of the answers takes as much as they do, until the next of that name."""
        deadline = time.monotonic() + self._seconds
        return await asyncio.get_running_loop().run_in_executor(self._thread, self._holding, function, deadline, remembered)

    def _holding(self, function: Callable[[float], T], deadline: float, remembered: str) -> T:
        with self._lock:
            self._held = []
        try:
            found = self._persist(function, deadline)
            if remembered:
                lasting = self._remembered.setdefault(remembered, memory.ANSWERS.lasting(f"ZooKeeper at {self._named}"))
                lasting.resize(sum(each.size for each in self._held or ()), f"{remembered} in ZooKeeper at {self._named}")
            return found
        finally:
            self._release_answers()
            with self._lock:
                self._held = None

    def _release_answers(self) -> None:
        while self._held:
            self._held.pop().give_back()

    @contextmanager
    def _room(self, client: KazooClient, path: str, size: int) -> Iterator[None]:
        """For an answer, on kazoo's thread: twice while it comes in. What nobody asks for any more is gone at once."""
        if client is not self._client and size > memory.SMALL:
            raise ConnectionDropped("given up")
        try:
            held = memory.ANSWERS.wait(f"{path or 'an answer'} in ZooKeeper at {self._named}", 2 * size)
        except (Refused, Unreachable) as error:
            self._no_room = partial(type(error), str(error))    # without its traceback, which holds what was read
            raise ConnectionDropped(str(error)) from error
        try:
            yield
        finally:
            with self._lock:
                if self._held is None or client is not self._client:
                    held.give_back()
                else:
                    held.resize(size)
                    self._held.append(held)

    def _persist(self, function: Callable[[float], T], deadline: float) -> T:
        """Call until the deadline as long as only the connection is in the way; every call may be repeated."""
        while True:
            try:
                return function(deadline)
            except (AuthFailedError, ConnectionLoss, ConnectionClosedError, SessionExpiredError, KazooTimeoutError) as error:
                if self._refused or isinstance(error, AuthFailedError):
                    self._discard()
                    raise Refused(f"ZooKeeper at {self._named} refused the credentials of zookeeper.sasl") from error
                if self._no_room is not None:
                    self._discard()
                    raise self._no_room() from error
                if left(deadline) < 0.1:
                    # The next call starts afresh: servers that lost their history refuse a client that saw more of it.
                    self._discard()
                    raise Unreachable(
                        f"ZooKeeper at {self._named} did not answer within {self._seconds:g} s"
                        f" ({str(error) or type(error).__name__})"
                    ) from error
                time.sleep(0.05)
            except KazooException as error:
                raise Unreachable(f"ZooKeeper at {self._named}: {type(error).__name__} {error}".rstrip()) from error

    def _connected(self, deadline: float) -> KazooClient:
        """The client once it has a session; it goes on connecting when this call has given up."""
        if self._client is None:
            self._handler, self._no_room, self._refused = TlsHandler(self._tls), None, False
            self._client = KazooClient(
                hosts=self._named, timeout=SESSION_SECONDS, handler=self._handler, **self._options,
                connection_retry=KazooRetry(max_tries=-1, delay=0.1, backoff=2, max_delay=1.0),
            )
            limit(self._client, self._remember, partial(self._room, self._client))
            self._client._connection._expand_client_hosts = self._resolved
            self._client.add_listener(partial(self._heard, self._client))
            self._live = self._client.start_async()
        if not self._live.wait(left(deadline)):
            if self._no_room is not None:
                raise self._no_room()
            if distrust := self._handler.distrust:
                raise Refused(f"ZooKeeper at {self._named}: {distrust}")
            raise KazooTimeoutError("no connection")
        return self._client

    def _resolved(self) -> Sequence[tuple[str, str, int]]:
        """Instead of kazoo's: name, address and port of each server that there is, in any order. On kazoo's thread."""
        found = []
        for server in self._servers:
            with suppress(socket.gaierror):
                found += [(server.host, *address[:2]) for *_, address in addresses_of(server, self._search)]
        random.shuffle(found)
        return found

    def _synced(self, deadline: float) -> KazooClient:
        """The client on a server that has caught up with the leader: requests of one session are answered in order."""
        client = self._connected(deadline)
        self._answer(deadline, "/", client.sync_async("/"))
        return client

    def _heard(self, client: KazooClient, _: object) -> None:
        """Of a session's end, on kazoo's thread: it is closed a moment later, and then gives no reason any more."""
        refused = client.client_state == KeeperState.AUTH_FAILED
        self._refused = self._refused or (refused and client is self._client)

    def _remember(self, why: str) -> None:
        self._no_room = partial(Refused, f"ZooKeeper at {self._named}: {why}")

    def _disconnect(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            _stop(client)

    def _discard(self) -> None:
        """Give up the client without waiting for its end."""
        client, self._client = self._client, None
        if client is not None:
            threading.Thread(target=_stop, args=(client,), daemon=True).start()


def _stop(client: KazooClient) -> None:
    """End the session; a connection attempt under way is waited for."""
    client.stop()
    client.close()


def addresses_of(server: Address, search: Sequence[str]) -> Sequence[tuple[Any, ...]]:
    """What the resolver finds under the first of the server's names that exists."""
    *others, last = looked_up(server.host, search)
    for name in others:
        try:
            return socket.getaddrinfo(name, server.port, type=socket.SOCK_STREAM)
        except socket.gaierror as error:
            if error.errno not in NO_SUCH_NAME:
                raise
    return socket.getaddrinfo(last, server.port, type=socket.SOCK_STREAM)


def left(deadline: float) -> float:
    return max(0.001, deadline - time.monotonic())
