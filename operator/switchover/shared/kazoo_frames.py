"""How much of an answer kazoo takes: it sets aside what a server announces, and goes on reading when the call has ended."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from kazoo.client import KazooClient
from kazoo.exceptions import ConnectionDropped

LARGEST_ANSWER = 8 * 1024 * 1024
"""In bytes. ZooKeeper's own client refuses more than 1 MiB (jute.maxbuffer)."""
LENGTH = 4                  # bytes, in which the length of what follows is announced
TOO_LARGE = (f"it announces an answer of more than {LARGEST_ANSWER:,} bytes;"
             " zookeeper.ssl.client.enable may not fit the port")


def limit(client: KazooClient, too_large: Callable[[str], None],
          room: Callable[[str, int], AbstractContextManager[object]] = lambda path, length: nullcontext()) -> None:
    """End the connection that announces more, after a call of `too_large` on kazoo's thread. What is about a path is read
    within `room` for so many bytes, which raises ConnectionDropped where there are none."""
    read = client._connection._read

    def limited(length: int, timeout: float) -> Any:
        if not 0 <= length <= LARGEST_ANSWER:
            too_large(TOO_LARGE)
            raise ConnectionDropped(TOO_LARGE)
        if length == LENGTH:
            return read(length, timeout)
        with room(getattr(client._pending[0][0], "path", "") if client._pending else "", length):
            return read(length, timeout)

    client._connection._read = limited
