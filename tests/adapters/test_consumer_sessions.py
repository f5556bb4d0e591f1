"""Sessions with a real ZooKeeper of their own: what is told of them, and how long they may be believed in."""

import queue
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from kazoo.client import KazooClient

from adapters.servers import ZooKeeperServer
from patience import stretched, until
from switchover.consumer.messages import Changed, Connected, Event, Expired, Failed, Registered, Resumed, Suspended
from switchover.consumer.sessions import SHARE, Lease, Sessions
from switchover.consumer.settings import parsed
from switchover.consumer.znodes import Znodes
from switchover.coordination.registration import Registration


class Bench:
    """One member's sessions, and what was posted."""

    def __init__(self, server: ZooKeeperServer, timeout: float) -> None:
        self.lease, self._posted = Lease(0.0), queue.SimpleQueue[Event]()
        self.sessions = Sessions(
            parsed({"group.id": "g", "zookeeper.connect": str(server.address), "consumer.id": "a",
                    "zookeeper.session.timeout.ms": int(timeout * 1000), "zookeeper.connection.timeout.ms": 10_000}),
            Registration({"t": 1}), self.lease, self._post)
        self.connected = 0.0
        self.sessions.start()

    def _post(self, event: Event) -> None:
        if isinstance(event, Connected):
            self.connected = time.monotonic()
        self._posted.put(event)

    def next(self, seconds: float = 30) -> Event:
        """What was posted next, but for what the heartbeat finds until we are registered."""
        while isinstance(event := self._posted.get(timeout=stretched(seconds)), Changed):
            pass
        return event

    def end_session(self, server: ZooKeeperServer) -> None:
        """As if it had run out: another client takes it over and closes it."""
        other = KazooClient(str(server.address), client_id=self.sessions.client.client_id)
        other.start()
        other.stop()
        other.close()

    def holds(self) -> bool:
        return self.lease.holds(time.monotonic())


def register(znodes: Znodes) -> Event:
    znodes.register()
    return Registered(1)


def wait_for(event: threading.Event) -> None:
    event.wait(60)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ZooKeeperServer]:
    """Its tick of 500 ms allows sessions from 1 to 10 s."""
    made = ZooKeeperServer(tmp_path / "zookeeper")
    made.start(made.properties())
    try:
        yield made
    finally:
        made.kill()


def test_the_lease_goes_by_the_timeout_that_was_granted_and_runs_out_before_kazoo_notices(server: ZooKeeperServer) -> None:
    bench = Bench(server, 6.0)
    wishful = Bench(server, 60.0)
    try:
        assert wishful.lease.timeout == pytest.approx(10.0)
        until(bench.holds, "a heartbeat was answered", 10)
        with server.frozen():
            frozen = time.monotonic()
            until(lambda: not bench.holds(), "the lease has run out", 10, pause=0.05)
            assert time.monotonic() - frozen < SHARE * 6.0 + stretched(0.5)
            assert bench.sessions.client.connected, "kazoo has not noticed yet"
    finally:
        bench.sessions.stop()
        wishful.sessions.stop()


def test_the_session_is_believed_in_from_the_request_by_which_it_was_made(server: ZooKeeperServer) -> None:
    begun = time.monotonic()
    bench = Bench(server, 9.0)
    try:
        assert begun < bench.lease.until - SHARE * 9.0 < bench.connected, "before the answer"
    finally:
        bench.sessions.stop()


def test_a_request_belongs_to_the_session_for_which_it_was_asked(server: ZooKeeperServer) -> None:
    bench = Bench(server, 1.5)
    go_on = threading.Event()                           # until then what is asked next waits for its turn
    try:
        first = bench.next()
        assert isinstance(first, Connected)
        bench.sessions.ask(1, register)
        assert bench.next() == Registered(1)
        until(bench.holds, "a heartbeat was answered", 10)
        bench.sessions.send(lambda _: wait_for(go_on))
        bench.sessions.ask(2, register)
        bench.end_session(server)
        while (event := bench.next()) in (Suspended(), Resumed()):
            pass
        assert event == Expired()
        second = bench.next()
        go_on.set()
        assert isinstance(second, Connected)
        assert second.session != first.session
        failed = bench.next()
        assert isinstance(failed, Failed)
        assert failed.number == 2
        assert bench.sessions.client.exists("/consumers/g/ids/a") is None
    finally:
        go_on.set()
        bench.sessions.stop()


def test_a_suspension_ends_the_lease_at_once_and_the_session_may_come_back(server: ZooKeeperServer) -> None:
    """The longest session that our ZooKeeper grants: on a starved machine its server may take longer to start, even so."""
    bench = Bench(server, 10.0)
    try:
        assert isinstance(bench.next(), Connected)
        until(bench.holds, "a heartbeat was answered", 10)
        last = time.monotonic()
        server.kill()
        assert bench.next() == Suspended()
        assert not bench.holds()
        server.start(server.properties())
        back = bench.next()
        assert back == Resumed() or (back == Expired() and time.monotonic() - last > 10.0)
        until(bench.holds, "a heartbeat was answered", 10)
    finally:
        bench.sessions.stop()
