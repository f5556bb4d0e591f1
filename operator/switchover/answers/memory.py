"""How much memory all answers of peers may take in this process, and who holds it."""

import asyncio
from collections import Counter
from collections.abc import Callable
from concurrent.futures import Future
from concurrent.futures import TimeoutError as TooLate
from functools import cache
from pathlib import Path
from threading import Lock

from switchover.answers.errors import Refused, Unreachable

MIB = 1024 * 1024
AT_REST = 160 * MIB
"""What the operator uses apart from answers, in bytes: 136 MiB at most in `make demo` (docs/measurements.md)."""
LEAST, MOST = 64 * MIB, 2048 * MIB
"""Kafka's raft layer sends up to 8 MiB of the metadata log at once, whatever the operator's limit is."""
FILES: tuple[Path, ...] = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))
"""The limit of a container as it sees it itself: of cgroups v2, and of v1."""
SMALL, FOR_SMALL = 256 * 1024, 8 * MIB
"""Bytes of a small request, which waits behind no large one; and by how much small ones may exceed the room: AT_REST
counts them already."""
LITTLE = 64
"""Who holds less than this part of the room always may."""
TURN_SECONDS = 2.0
"""How long a request waits for its turn: less than any question may take, so that the error says why."""


@cache
def room() -> int:
    """Bytes that all answers may take at once, read and unread."""
    memory = limit()
    return MOST if memory is None else max(LEAST, min(MOST, memory - AT_REST))


def limit() -> int | None:
    """The memory limit of this container, in bytes; None without one."""
    for file in FILES:
        try:
            text = file.read_text().strip()
        except OSError:
            continue
        if text.isdecimal() and int(text) < 1 << 60:    # v1 writes a very large number where there is none
            return int(text)
    return None


def limit_for(answer: int) -> str:
    """The memory limit with which there is room for an answer that takes so many bytes."""
    return f"{-(-(AT_REST + answer) // MIB)}Mi"


class Budget:
    """Bytes of memory, for threads and for the event loop. A request that finds none left waits, first come, first served.

    Of what is held for long, one owner has a quarter at most, and all together a half; little is always allowed. So there
    is room for what is read and dropped again, and for other owners.
    """

    def __init__(self, size: Callable[[], int]) -> None:
        self._size = size
        self._lock = Lock()
        self._held = 0
        self._lasting: Counter[str] = Counter()
        self._waiting: list[tuple[Future[Held], int]] = []

    @property
    def held(self) -> int:
        """Bytes."""
        return self._held

    def wait(self, what: str, size: int) -> "Held":
        """As `turn`, for a thread."""
        future = self._queue(what, size)
        if isinstance(future, Held):
            return future
        try:
            return future.result(TURN_SECONDS)
        except TooLate:
            raise self._given_up(future, what, size) from None

    async def turn(self, what: str, size: int, have: int = 0, seconds: float | None = None) -> "Held":
        """So many bytes, until they are given back. `what` takes them, in the error: Refused where there are not so many,
        Unreachable where others hold them for longer than `seconds`. Who has some already goes before all who wait."""
        future = self._queue(what, size, have)
        if isinstance(future, Held):
            return future
        try:
            async with asyncio.timeout(TURN_SECONDS if seconds is None else seconds):
                return await asyncio.wrap_future(future)
        except TimeoutError:
            raise self._given_up(future, what, size) from None
        except BaseException:
            self._given_up(future, what, size)
            raise

    def at_once(self, what: str, size: int) -> "Held":
        """So many bytes without waiting, or Refused."""
        with self._lock:
            if not self._fits(size):
                raise Refused(self._too_much(what, size))
            return self._take(size)

    def lasting(self, owner: str) -> "Held":
        """None as yet of those that `owner` holds for long; `resize` says how many."""
        return Held(self, 0, owner)

    def _queue(self, what: str, size: int, have: int = 0) -> "Held | Future[Held]":
        with self._lock:
            if (whole := size + have) > self._size():
                raise Refused(f"{what} takes {_mib(whole)} of memory, more than the operator has for one; give the operator"
                              f" a limit of {limit_for(whole)} (resources.limits.memory)")
            if self._fits(size) and (have or size <= SMALL or not self._waiting):
                return self._take(size)
            future: Future[Held] = Future()
            self._waiting.insert(0 if have else len(self._waiting), (future, size))
        return future

    def _serve(self) -> None:
        """Give those who wait what there is: the first, and small ones."""
        stuck, waiting = False, []
        for each in self._waiting:
            future, size = each
            if (stuck and size > SMALL) or not self._fits(size):
                stuck = True
                waiting.append(each)
            elif future.set_running_or_notify_cancel():
                future.set_result(self._take(size))
        self._waiting = waiting

    def _given_up(self, future: "Future[Held]", what: str, size: int) -> Unreachable:
        """The reason, for one that waits no more."""
        with self._lock:
            self._waiting = [each for each in self._waiting if each[0] is not future]
            why = self._too_much(what, size)
        if not future.cancel() and not future.cancelled():
            future.result().give_back()
        return Unreachable(why)

    def _too_much(self, what: str, size: int) -> str:
        return (f"{what} takes {_mib(size)} of memory, and {_mib(self._held)} of the {_mib(self._size())} that the operator"
                f" has for all answers are in use; give the operator a limit of {limit_for(self._held + size)} or more"
                " (resources.limits.memory)")

    def _fits(self, size: int) -> bool:
        return self._held + size <= self._size() + (FOR_SMALL if size <= SMALL else 0)

    def _take(self, size: int) -> "Held":
        self._held += size
        return Held(self, size)

    def _resize(self, held: "Held", size: int, what: str) -> None:
        with self._lock:
            more = size - held.size
            if held.owner:
                self._last(held.owner, more, what)
            elif more > 0 and self._held + more > self._size():
                raise Refused(self._too_much(what, size))
            self._held += more
            held.size = size
            if more < 0:
                self._serve()

    def _last(self, owner: str, more: int, what: str) -> None:
        """What is to last was read, and so it has its bytes already: whether they are free is not asked again."""
        size, own, together = self._size(), self._lasting[owner] + more, self._lasting.total() + more
        if more > 0 and (own > size // 4 or (together > size // 2 and own > size // LITTLE)):
            raise Refused(f"{what} is more than there is memory for: {_mib(own)} of {owner}, {_mib(together)} in all; "
                          f"give the operator a limit of {limit_for(max(4 * own, 2 * together))} or more"
                          " (resources.limits.memory)")
        self._lasting[owner] = own
        if not own:
            del self._lasting[owner]


class Held:
    """Bytes of a budget that somebody has."""

    __slots__ = ("_budget", "owner", "size")

    def __init__(self, budget: Budget, size: int, owner: str = "") -> None:
        self._budget, self.size, self.owner = budget, size, owner

    def resize(self, size: int, what: str = "") -> None:
        """Have so many instead. More is for what is held for long: Refused, about `what`, where that is too much."""
        self._budget._resize(self, size, what)

    def give_back(self) -> None:
        """Have none; once more does nothing."""
        self._budget._resize(self, 0, "")

    def __enter__(self) -> "Held":
        return self

    def __exit__(self, *_: object) -> None:
        self.give_back()


def _mib(size: int) -> str:
    return f"{size / MIB:,.1f} MiB" if size < 10 * MIB else f"{size // MIB:,} MiB"


ANSWERS = Budget(lambda: room())
"""What all peers together may have this process hold."""
