"""Servers that say what no ZooKeeper says: what they announce is not set aside, and what does not end is given up."""

import asyncio
import contextlib
import socket
import time
from pathlib import Path

import pytest

from adapters.hostile import REGISTRATION, hostile, zookeeper
from patience import stretched, until
from switchover.answers import memory
from switchover.answers.errors import Refused, Unreachable
from switchover.consumer.sessions import Lease, Sessions
from switchover.consumer.sessions import Unreachable as NoSession
from switchover.consumer.settings import parsed
from switchover.coordination.registration import Registration
from switchover.network.credentials import Access
from switchover.zookeeper.client.zookeeper import KazooZooKeeper

GRANTED = bytes.fromhex("00000024 00000000 00000fa0 0000000000000001 00000010") + bytes(16)
"""The answer to a request for a session: 4 s, id 1, a password of zeros."""
BLOCK = bytes(65_536)
MEMORY = 64 * 1024 * 1024


def stream(connection: socket.socket) -> None:
    for _ in range(16_384):                             # a gigabyte, then it ends by itself
        connection.sendall(BLOCK)


def announces(connection: socket.socket) -> None:
    """Grants a session, and then an answer of two gigabytes."""
    connection.recv(4096)
    connection.sendall(GRANTED + bytes.fromhex("7ffffff0"))
    stream(connection)


def resident() -> int:
    """Bytes of memory of this process."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


async def test_what_a_server_announces_is_not_set_aside() -> None:
    before = resident()
    with hostile(announces) as address:
        zookeeper = KazooZooKeeper(Access(str(address)), seconds=3)
        with pytest.raises(Refused, match=f"{address}: it announces an answer of more than 8,388,608 bytes"):
            await zookeeper.state()
        await asyncio.sleep(1)                           # what went on behind the call went on here
        assert resident() - before < MEMORY
        await zookeeper.close()


def test_a_consumer_sets_aside_no_more(caplog: pytest.LogCaptureFixture) -> None:
    before = resident()
    with hostile(announces) as address:
        sessions = Sessions(
            parsed({"group.id": "g", "zookeeper.connect": str(address), "zookeeper.connection.timeout.ms": 5_000}),
            Registration({"t": 1}), Lease(0.0), lambda _: None)
        with contextlib.suppress(NoSession):
            sessions.start()
        until(lambda: f"ZooKeeper at {address}: it announces an answer of more than" in caplog.text, "it is told", 10)
        time.sleep(1)
        assert resident() - before < MEMORY
        sessions.client.stop()


@pytest.mark.parametrize("pause", [0.0, 0.0005], ids=["at once", "slowly"])
async def test_an_answer_to_a_four_letter_word_that_does_not_end(pause: float) -> None:
    def goes_on(connection: socket.socket) -> None:
        connection.recv(4)
        while True:
            connection.sendall(b"a" if pause else BLOCK)
            time.sleep(pause)

    with hostile(goes_on) as address:
        zookeeper = KazooZooKeeper(Access(str(address)), seconds=2)
        began = time.monotonic()
        with pytest.raises(Unreachable, match=f"{address}: its answer to srvr does not end"):
            await zookeeper.connections(address)
        assert time.monotonic() - began < stretched(4)
        await zookeeper.close()


async def test_what_some_other_service_says_is_not_repeated() -> None:
    def other(connection: socket.socket) -> None:
        connection.recv(4)
        connection.sendall(b"220 secret-host ESMTP")

    with hostile(other) as address:
        zookeeper = KazooZooKeeper(Access(str(address)), seconds=2)
        with pytest.raises(Refused) as refused:
            await zookeeper.connections(address)
        await zookeeper.close()
    assert "secret" not in str(refused.value)


async def test_many_nodes_that_are_large_together_are_refused_by_the_path_and_the_memory_is_free_again(
        monkeypatch: pytest.MonkeyPatch) -> None:
    """60 registrations of a megabyte each, where there is room for some; an honest ZooKeeper is read as ever."""
    monkeypatch.setattr(memory, "room", lambda: 8 * memory.MIB)
    monkeypatch.setattr(memory, "TURN_SECONDS", 0.5)
    with hostile(zookeeper(60, b" " * 1_000_000)) as large, hostile(zookeeper(3, REGISTRATION)) as small:
        flood, honest = KazooZooKeeper(Access(str(large)), seconds=stretched(5)), KazooZooKeeper(Access(str(small)))
        for _ in range(2):
            with pytest.raises(Unreachable, match=r"^/brokers/ids/\d+ in ZooKeeper at .* takes .* limit of \d+Mi"):
                await flood.state()
            assert sorted((await honest.state()).brokers) == [0, 1, 2]
        assert 0 < memory.ANSWERS.held < memory.SMALL, "what is remembered of the honest one"
        await asyncio.gather(flood.close(), honest.close())
        assert memory.ANSWERS.held == 0
