"""The sessions of one member with ZooKeeper, one after the other: what kazoo says becomes events, requests are done.

Requests are done in order on one thread. kazoo holds what it is given while it is not connected, and would do it in the
next session: so each request is bound to the session for which it was asked, and fails outside of it.

How long a member may believe that its session lives it knows by its own clock (rule R8 of
docs/facts/coordination.md#the-rules). kazoo notices a silent server only after two thirds of the timeout, and a process that
was stopped wakes up believing what it believed. So every hand-out asks the lease, which runs out before the server can have
ended the session.
"""

import logging
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from kazoo.client import KazooClient
from kazoo.exceptions import KazooException
from kazoo.handlers.threading import KazooTimeoutError
from kazoo.protocol.states import KazooState
from kazoo.retry import KazooRetry

from switchover.consumer.messages import Changed, Connected, Event, Expired, Failed, OwnerGone, Resumed, Suspended
from switchover.consumer.reading import ANSWER, NoTopic, Unsettled
from switchover.consumer.serial import Serial
from switchover.consumer.settings import BadConfiguration, Settings
from switchover.consumer.znodes import Taken, Znodes
from switchover.coordination.layout import Layout
from switchover.coordination.registration import Registration
from switchover.shared.kazoo_frames import limit

SHARE = 0.6
"""Of the negotiated timeout: the server counts from the same request that the lease counts from, and no earlier."""


@dataclass(slots=True)
class Lease:
    """`timeout`: seconds that were negotiated. `until`: when it runs out, of a monotonic clock. `doubts` counts how often it
    was ended."""

    timeout: float
    until: float = float("-inf")
    doubts: int = 0

    def renewed(self, asked: float) -> None:
        """The server has answered what was sent at `asked`."""
        self.until = max(self.until, asked + SHARE * self.timeout)

    def end(self) -> None:
        """Suspended, or another session: nothing is known any more until the server answers again."""
        self.until = float("-inf")
        self.doubts += 1

    def holds(self, now: float) -> bool:
        """Whether the session is certain to live."""
        return now < self.until


logger = logging.getLogger(__name__)

BEATS = 6
"""Heartbeats in one session timeout."""


class Unreachable(Exception):
    """A server does not answer; says which."""


class Sessions:
    """`post` gets the events, from any thread. `lease` is renewed by connecting and by heartbeats, and ended at once by a
    suspension."""

    def __init__(self, settings: Settings, registration: Registration, lease: Lease, post: Callable[[Event], None]) -> None:
        self._settings, self._registration, self._lease, self._post = settings, registration, lease, post
        try:
            self.client = KazooClient(
                settings.zookeeper, timeout=settings.session_timeout,
                connection_retry=KazooRetry(max_tries=-1, delay=0.1, max_delay=1.0))
        except ValueError:
            raise BadConfiguration(f"zookeeper.connect {settings.zookeeper!r} is not host:port,…/chroot") from None
        limit(self.client, lambda why: logger.error("ZooKeeper at %s: %s", settings.zookeeper, why))
        self._learn_timeout()
        # Without a lock: kazoo's thread writes `_znodes`; others read it once, and on the thread of requests it is asked
        # whether that is still the one.
        self._znodes: Znodes | None = None
        self._complaint = ""
        self._known: int | None = None                          # the session that the member knows
        self._serial = Serial("switchover-zookeeper")
        self._heart: Serial | None = None

    def start(self) -> None:
        """Connect. Raises Unreachable when that takes longer than `zookeeper.connection.timeout.ms`, and BadConfiguration
        where the chroot does not exist."""
        self.client.add_listener(self._listen)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")                     # of a chroot that does not exist: refused below
            try:
                self.client.start(timeout=self._settings.connection_timeout)
            except KazooTimeoutError:
                self._serial.end(0)
                raise Unreachable(f"ZooKeeper at {self._settings.zookeeper} does not answer within "
                                  f"{self._settings.connection_timeout:g} s") from None
        if self.client.chroot and self.client.exists("/") is None:
            self.stop()
            raise BadConfiguration(f"zookeeper.connect {self._settings.zookeeper!r}: there is no {self.client.chroot} there")
        self._heart = Serial("switchover-zookeeper-heartbeat", self._beat, self._settings.session_timeout / BEATS)

    def ask(self, number: int, do: Callable[[Znodes], Event | None]) -> None:
        """Do it in the present session; what it gives is posted, Failed with this number where it could not be done."""
        self._submit(do, lambda why: self._post(Failed(number, why)))

    def send(self, do: Callable[[Znodes], Event | None]) -> None:
        """The same of what is not answered."""
        self._submit(do, lambda _: None)

    def call(self, do: Callable[[Znodes], Any]) -> Any:
        """Do it in the present session and wait. Raises Unreachable."""
        znodes = self._znodes
        try:
            return self._serial.submit(lambda: self._do(znodes, do)).result(2 * ANSWER)
        except (KazooException, KazooTimeoutError, TimeoutError) as problem:
            raise Unreachable(f"ZooKeeper: {reason_of(problem)}") from None

    def _submit(self, do: Callable[[Znodes], Event | None], failed: Callable[[str], None]) -> None:
        znodes = self._znodes
        self._serial.submit(lambda: self._answer(znodes, do, failed))

    def stop(self) -> None:
        """End the session: every ephemeral node goes."""
        self._lease.end()
        self.client.remove_listener(self._listen)
        for each in (self._heart, self._serial):
            if each is not None:
                each.end(2.0)
        self.client.stop()
        self.client.close()

    # --- on the thread of requests ------------------------------------------------------------------------------------

    def _answer(self, znodes: Znodes | None, do: Callable[[Znodes], Event | None], failed: Callable[[str], None]) -> None:
        try:
            event = self._do(znodes, do)
        except (KazooException, KazooTimeoutError, Unsettled, NoTopic, Taken, Unreachable) as problem:
            self._complain(problem, logging.WARNING)
            failed(reason_of(problem))
        except Exception as problem:  # noqa: BLE001 - what is never answered is never asked again
            self._complain(problem, logging.ERROR, problem)
            failed(reason_of(problem))
        else:
            self._complaint = ""
            if event is not None:
                self._post(event)

    def _complain(self, problem: Exception, level: int, traceback: Exception | None = None) -> None:
        """Once: it is asked again several times a second."""
        if (why := reason_of(problem)) != self._complaint:
            self._complaint = why
            logger.log(level, "ZooKeeper: %s", why, exc_info=traceback)

    def _do(self, znodes: Znodes | None, do: Callable[[Znodes], Any]) -> Any:
        if znodes is None or znodes is not self._znodes or not self.client.connected:
            raise Unreachable("not connected to ZooKeeper")
        return do(znodes)

    def _look_at(self, znodes: Znodes, event: OwnerGone) -> Event | None:
        return event if znodes.has_lost(event.partition) else None

    # --- on kazoo's threads: nothing is done here ---------------------------------------------------------------------

    def _listen(self, state: str) -> None:
        if state == KazooState.CONNECTED:
            session, _ = self.client.client_id
            if session == self._known:
                self._post(Resumed())
                return
            if self._known is not None:
                self._lease.end()
                self._post(Expired())
            self._known = session
            self._znodes = Znodes(self.client, session, Layout(self._settings.group), self._settings.consumer_id,
                                  self._registration, self._settings.rules.enabled, self._notify)
            self._post(Connected(session))
        elif state == KazooState.SUSPENDED:
            self._lease.end()
            self._post(Suspended())
        elif self._known is not None:
            self._lease.end()
            self._known = self._znodes = None
            self._post(Expired())

    def _notify(self, event: Event) -> None:
        if isinstance(event, OwnerGone):
            self.send(lambda znodes: self._look_at(znodes, event))
        else:
            self._post(event)

    # --- the lease ----------------------------------------------------------------------------------------------------

    def _beat(self) -> None:
        """Renew the lease with the time before the question: the server counts from when it came."""
        znodes = self._znodes
        if znodes is None or not self.client.connected:
            return
        asked = time.monotonic()
        try:
            registered = znodes.is_registered()
        except (KazooException, KazooTimeoutError):
            return
        if znodes is self._znodes:
            self._lease.renewed(asked)
            if not registered:
                self._post(Changed())

    def _learn_timeout(self) -> None:
        """kazoo keeps the timeout that the server grants to itself; two thirds of it is what its connecting gives back.

        Connecting renews the lease: the session counts from that request, and _listen, which is called within it, has ended
        the lease where the session is another one.
        """
        connect = self.client._connection._connect

        def connected(*place: Any) -> tuple[float, float]:
            asked = time.monotonic()
            read, other = connect(*place)
            self._lease.timeout = read / 1000 * 1.5
            self._lease.renewed(asked)
            return read, other

        self.client._connection._connect = connected


def reason_of(problem: BaseException) -> str:
    """What went wrong; kazoo's errors are often a name alone."""
    return str(problem) if str(problem) else type(problem).__name__
