"""The brokers of one Kafka cluster, asked one after the other or all at once."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import TypeVar

from switchover.answers.errors import Refused, Unreachable
from switchover.kafka.client.connection import Connection
from switchover.kafka.client.kept import KeptConnections
from switchover.network.access import Access
from switchover.network.addresses import Address
from switchover.network.security import security

CONNECTIONS = 32            # at a time

Item = TypeVar("Item")
T = TypeVar("T")


class Brokers:
    """`access.servers` is `bootstrap.servers`. A round of questions may take `seconds`. Connections are used
    again until they are `keep` seconds old. Raises Refused for an access that cannot be used."""

    def __init__(self, access: Access, seconds: float, keep: float = 0.0) -> None:
        self.seconds = seconds
        self._servers = list(access.addresses)
        self._connections = KeptConnections(security(access.properties, access.allowed, access.search), keep)

    def connected(self, broker: Address, seconds: float | None = None) -> AbstractAsyncContextManager[Connection]:
        """A connection to one of them, good for `seconds`, those of a round unless told."""
        return self._connections.connected(broker, seconds or self.seconds)

    def close(self) -> None:
        """Close what is kept open."""
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
