"""The brokers of one Kafka cluster, asked in turn or all at once, on connections that stay open between questions."""

import asyncio
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Generic, TypeVar

from switchover.answers.errors import Refused, Unreachable
from switchover.kafka.client.connection import Connection, talking
from switchover.network.addresses import Address
from switchover.network.credentials import Access
from switchover.network.security import Security, security

Q = TypeVar("Q")
T = TypeVar("T")

EVERY_SECONDS = 0.1
"""How often the questions of a batch (`Together`) are asked at most. Who comes alone does not wait."""


class Question(Generic[Q, T]):
    """What somebody wants to know. Whoever asked may have given up."""

    def __init__(self, asked: Q, future: "asyncio.Future[T]") -> None:
        self.asked = asked
        self._future = future

    def tell(self, answer: T | Exception) -> None:
        """The answer, or why there is none; what comes later is not heard."""
        if self._future.done():
            return
        if isinstance(answer, Exception):
            self._future.set_exception(answer)
        else:
            self._future.set_result(answer)


class Together(Generic[Q, T]):
    """`ask` answers each question of a batch as soon as it can; the others get what it raises. An
    answer is never older than its question."""

    def __init__(self, ask: Callable[[Sequence[Question[Q, T]]], Awaitable[None]]) -> None:
        self._ask = ask
        self._next: list[Question[Q, T]] = []
        self._due_at = -float("inf")
        self._asking: set[asyncio.Task[None]] = set()

    async def get(self, asked: Q) -> T:
        """The answer. Raises what `ask` raises, and Unreachable where it gives none."""
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[T] = loop.create_future()
        self._next.append(Question(asked, answer))
        if len(self._next) == 1:
            loop.call_at(max(loop.time(), self._due_at), self._begin, loop)
        return await answer

    def _begin(self, loop: asyncio.AbstractEventLoop) -> None:
        batch, self._next = self._next, []
        self._due_at = loop.time() + EVERY_SECONDS
        task = loop.create_task(self._all(batch))
        self._asking.add(task)
        task.add_done_callback(self._asking.discard)

    async def _all(self, batch: Sequence[Question[Q, T]]) -> None:
        error: Exception = Unreachable("the question was cancelled while it was asked")     # Kopf ends every task
        try:
            await self._ask(batch)
            error = Unreachable("the answer left it out")
        except Exception as met:  # noqa: BLE001 - whatever it is, whoever asked gets it
            error = met
        finally:
            for question in batch:
                question.tell(error)


CONNECTIONS = 32            # at a time

Item = TypeVar("Item")


class Brokers:
    """`access.servers` is `bootstrap.servers`. A round of questions may take `seconds`. Connections are used
    again until they are `keep` seconds old. Raises Refused for an access that cannot be used."""

    def __init__(self, access: Access, seconds: float, keep: float = 0.0) -> None:
        self.seconds = seconds
        self._servers = list(access.addresses)
        self._connections = OpenConnections(security(access.properties, access.allowed, access.search), keep)

    def connected(self, broker: Address, seconds: float | None = None) -> AbstractAsyncContextManager[Connection]:
        """A connection to one of them, good for `seconds`, those of a round by default."""
        return self._connections.connected(broker, seconds or self.seconds)

    def close(self) -> None:
        """Close the connections that are open."""
        self._connections.close()

    async def any(self, ask: Callable[[Address, Connection], Awaitable[T]]) -> T:
        """Ask the bootstrap servers in turn, beginning with the last one that answered. Raises Unreachable when none does,
        Refused when one does not accept us."""
        errors = []
        for server in tuple(self._servers):
            try:
                async with self.connected(server) as connection:
                    answer = await ask(server, connection)
            except Unreachable as error:
                errors.append(str(error))
            else:
                self._servers.remove(server)
                self._servers.insert(0, server)
                return answer
        raise Unreachable("no bootstrap server answers: " + "; ".join(errors))

    async def each(
        self, work: Mapping[Address, Sequence[Item]], ask: Callable[[Address, Connection, Sequence[Item]], Awaitable[None]],
        failed: Callable[[Iterable[Item], Exception], None], seconds: float | None = None,
    ) -> None:
        """Ask every broker for its part of the work; what one did not answer has failed."""
        deadline = time.monotonic() + (seconds or self.seconds)
        free = asyncio.Semaphore(CONNECTIONS)

        async def one(broker: Address, part: Sequence[Item]) -> None:
            async with free:
                left = round(max(0.1, deadline - time.monotonic()), 1)
                try:
                    async with self.connected(broker, left) as connection:
                        await ask(broker, connection, part)
                except (Unreachable, Refused) as error:
                    failed(part, error)

        await asyncio.gather(*(one(broker, part) for broker, part in work.items()))


def batches(items: Sequence[Item], size: int) -> Iterator[Sequence[Item]]:
    """The items in their order, so many at a time."""
    return (items[start:start + size] for start in range(0, len(items), size))


KEEP_SECONDS = 30.0
"""For how long the operator uses a connection: by then another process may have the name. Where it counts which process
answers (nodes.py), each question has its own."""
MOST = 4                    # connections that stay open to one node


class OpenConnections:
    """Those of one access, opened when they are needed. One that is free is used again until it is `keep` seconds old; with
    0 each question has its own. Where a question fails none is used again: the node may have gone without a sign."""

    def __init__(self, security: Security, keep: float = 0.0) -> None:
        self._security = security
        self._keep = keep
        self._free: dict[Address, list[tuple[Connection, asyncio.TimerHandle]]] = defaultdict(list)

    @asynccontextmanager
    async def connected(self, node: Address, seconds: float) -> AsyncIterator[Connection]:
        """As `connection.connected`."""
        async with talking(node, self._security, seconds):
            connection = self._taken(node, seconds) or await Connection.open(node, self._security)
            try:
                yield connection
            except BaseException:
                connection.close()
                self._drop(node)
                raise
            self._give_back(node, connection)

    def close(self) -> None:
        """Close those that are free. One that is in use is given back as any other."""
        for node in tuple(self._free):
            self._drop(node)

    def _taken(self, node: Address, seconds: float) -> Connection | None:
        free = self._free[node]
        while free:
            connection, expires = free.pop()         # the one that was used last: those beyond the need are closed
            expires.cancel()
            if connection.is_good_for(seconds):
                return connection
            connection.close()
        return None

    def _give_back(self, node: Address, connection: Connection) -> None:
        connection.release_answer()
        loop = asyncio.get_running_loop()
        ends_at = connection.opened_at + self._keep
        if loop.time() < ends_at and len(self._free[node]) < MOST:
            expires = loop.call_at(ends_at, self._expire, node, connection)
            self._free[node].append((connection, expires))
        else:
            connection.close()

    def _expire(self, node: Address, connection: Connection) -> None:
        self._free[node] = [each for each in self._free[node] if each[0] is not connection]
        connection.close()

    def _drop(self, node: Address) -> None:
        for connection, expires in self._free.pop(node, []):
            expires.cancel()
            connection.close()
