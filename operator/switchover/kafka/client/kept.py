"""Connections to Kafka nodes that stay open between questions: to connect and to log in costs more than most questions."""

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from switchover.kafka.client.connection import Connection, talking
from switchover.network.addresses import Address
from switchover.network.security import Security

KEEP_SECONDS = 30.0
"""For how long the operator uses one: after that the name leads to whoever has it by then. Where it is the evidence which
process answers (nodes.py), each question has its own."""
MOST = 4                    # that are kept to one node; more are there only while more questions go on than that


class KeptConnections:
    """Those of one access, opened when they are needed. One that is free is used again until it is `keep` seconds old; with
    0 each question has its own. Where a question fails none is used again: the node may have gone, and tell nobody."""

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
        """Close those that are free. One that is in use is closed or kept as any other."""
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
        connection.let_go()
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
