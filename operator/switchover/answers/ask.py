"""Questions to the outside world: the answer, or why there is none, and for how long an answer is good."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Hashable
from typing import Any, Generic, TypeVar

from switchover.answers.clock import Clock
from switchover.answers.errors import Fenced, Malformed, NoMetadata, Refused, Unreachable
from switchover.answers.observed import Known, Observed, Unknown
from switchover.runtime.defects import place_of

T = TypeVar("T")
logger = logging.getLogger(__name__)
READ_SECONDS = 12.0
"""How long a reading may take: longer than what its client allows for it, which knows whom it asks and says so."""
LOOKING_SECONDS = 300.0
"""How old an answer may be that each migration asks for alone, where nothing is done upon it: names that are taken, storage
classes, dry runs of what has not changed."""
LARGEST_TREE_SECONDS = 900.0
"""How long the reading of a whole tree of ZooKeeper's may take; each of its parts has a limit of its own."""
FRESH_SECONDS = 20.0
"""How old a long reading may be, besides the time that it takes, where something is decided upon it."""
PATIENCE_SECONDS = 1.0
"""How long a new answer is waited for where the last one will do."""
SPARED_SECONDS = 60.0
"""How long a peer is not asked again that let a question wait, where each one holds something there."""
DEFECTS: set[str] = set()
"""Where an answer met an error that nobody expected; each place is logged once."""


async def known(reading: Awaitable[T], seconds: float, clock: Clock) -> Observed[T]:
    """The answer with the time of asking; every error becomes Unknown."""
    return await _observed(_dated(reading, seconds, clock.now()), seconds)


async def _dated(reading: Awaitable[T], seconds: float, at: float) -> Known[T]:
    async with asyncio.timeout(seconds):
        return Known(await reading, at)


async def _observed(answer: Awaitable[Known[T]], seconds: float) -> Observed[T]:
    """The answer, or why it is unknown. An unexpected error makes this answer unknown, and no other."""
    try:
        return await answer
    except Refused as error:
        return Unknown(str(error), refused=True, malformed=isinstance(error, Malformed))
    except (Unreachable, Fenced) as error:
        return Unknown(str(error), no_metadata=isinstance(error, NoMetadata))
    except TimeoutError:
        return Unknown(f"no answer within {seconds:.0f} s")
    except Exception as error:
        place = place_of(error)
        if place not in DEFECTS:
            DEFECTS.add(place)
            logger.error("a defect of this operator: %s", place, exc_info=error)
        return Unknown(f"the answer met a defect of this operator ({place}); see its log")


class Answers:
    """Answers by what was asked (`key`), each with the time of asking: asked once for all who want the same, and good for
    some seconds.

    Who asks while somebody does already waits for that answer. All of them get an error, and it is not stored. An answer
    holds only for what it is `made_of`: another spec, another list of names is asked for at once.
    """

    def __init__(self, clock: Clock | None = None) -> None:
        """Without a clock, times are the event loop's."""
        self._clock = clock
        self._unanswered: dict[Hashable, tuple[float, float, Unknown]] = {}      # since when, until when, and why
        self._answers: dict[Hashable, tuple[object, Known[Any]]] = {}
        self._asking: dict[Hashable, tuple[object, asyncio.Task[Known[Any]]]] = {}

    def newest(self, key: Hashable, seconds: float, made_of: object = None) -> Known[Any] | None:
        """The answer that was asked for less than `seconds` ago, where there is one."""
        found, last = self._answers.get(key, (None, None))
        return last if last is not None and found == made_of and self._now() - last.at < seconds else None

    async def get(self, key: Hashable, ask: Callable[[], Awaitable[T]], seconds: float, made_of: object = None, *,
                  within: float | None = None, at_most: float = 0.0) -> Known[T]:
        """The answer that was asked for less than `seconds` ago, or a new one, which may take `within` seconds.

        Where a new one is slow, the last one while it is no older than `at_most`: that holds nobody up who has an older one.
        Raises what asking raises, TimeoutError, and Unreachable where whoever had asked gave up.
        """
        if (fresh := self.newest(key, seconds, made_of)) is not None:
            return fresh
        last = self.newest(key, float("inf"), made_of)
        asked_of, task = self._asking.get(key, (None, None))
        if task is None or task.done() or asked_of != made_of:
            task = asyncio.create_task(self._ask(key, ask, made_of, within))
            task.add_done_callback(_seen)
            self._asking[key] = made_of, task
        spared = last if last is not None and self._now() - last.at < at_most else None
        done, _ = await asyncio.wait({task}, timeout=None if spared is None else PATIENCE_SECONDS)
        if not done and spared is not None:
            return spared
        if task.cancelled():                         # Kopf ends every task of a watch that ends
            raise Unreachable("the question was cancelled while it was asked")
        return task.result()

    async def observed(self, key: Hashable, ask: Callable[[], Awaitable[T]], seconds: float,
                       made_of: object = None) -> Observed[T]:
        """As `get`, and every error becomes Unknown."""
        return await _observed(self.get(key, ask, seconds, made_of, within=READ_SECONDS), READ_SECONDS)

    async def sparing(self, key: Hashable, ask: Callable[[], Awaitable[T]], seconds: float,
                      made_of: object = None) -> Observed[T]:
        """As `observed`, for a question that holds something of whoever lets it wait: that one is asked again after
        SPARED_SECONDS, and then after as long again as it has been silent."""
        now = self._now()
        since, until, why = self._unanswered.get(key, (now, 0.0, None))
        if why is not None and now < until:
            return why
        found, ended = await self.observed(key, ask, seconds, made_of), self._now()
        self._unanswered.pop(key, None)
        if isinstance(found, Unknown) and ended - now >= PATIENCE_SECONDS:
            self._unanswered[key] = since, ended + max(SPARED_SECONDS, ended - since), found
        return found

    async def _ask(self, key: Hashable, ask: Callable[[], Awaitable[T]], made_of: object,
                   within: float | None) -> Known[T]:
        at = self._now()
        try:
            async with asyncio.timeout(within):
                answer = Known(await ask(), at)
            if self._is_asked_by_this(key):
                self._answers[key] = made_of, answer
            return answer
        finally:
            if self._is_asked_by_this(key):
                del self._asking[key]

    def _is_asked_by_this(self, key: Hashable) -> bool:
        """Whether nobody has asked of something else meanwhile."""
        return key in self._asking and self._asking[key][1] is asyncio.current_task()

    def _now(self) -> float:
        return asyncio.get_running_loop().time() if self._clock is None else self._clock.now()


def _seen(task: "asyncio.Task[Any]") -> None:
    """Whoever waited has its error; nobody may be left."""
    if not task.cancelled():
        task.exception()


class Background(Generic[T]):
    """A reading that takes long where ZooKeeper has much: it goes on in the background and is good for `seconds`.

    Between two it rests five times as long as one took, at least, or `rests` times where a new answer counts for more than
    the processor (docs/measurements.md#the-largest-cluster).
    """

    def __init__(self, what: str, seconds: float, clock: Clock, *, rests: int = 5) -> None:
        self._being_read = Unknown(f"{what} being read")
        self._seconds = seconds
        self._rests = rests
        self._clock = clock
        self._read: Observed[T] = self._being_read
        self._reading: asyncio.Task[Observed[T]] | None = None
        self._due = self._took = 0.0

    def forget(self) -> None:
        """End what is under way."""
        if self._reading is not None:
            self._reading.cancel()
        self._reading, self._read, self._due = None, self._being_read, 0.0

    async def newest(self, read: Callable[[], Awaitable[T]], *, fresh: bool = False) -> Observed[T]:
        """The newest reading; one that begins is waited for a little, and so is the first one.

        With `fresh` no reading counts that began longer ago than one takes and FRESH_SECONDS: another one begins.
        """
        now = self._clock.now()
        old = fresh and isinstance(self._read, Known) and now - self._read.at > self._took + FRESH_SECONDS
        waits = old or not isinstance(self._read, Known)
        if self._reading is None and (old or now >= self._due):
            self._reading, waits = asyncio.create_task(self._ask(read)), True
        if self._reading is not None:
            await asyncio.wait({self._reading}, timeout=PATIENCE_SECONDS if waits else 0)
            if self._reading.done():
                self._read, self._reading = self._reading.result(), None
                return self._read
        return self._being_read if old else self._read

    async def _ask(self, read: Callable[[], Awaitable[T]]) -> Observed[T]:
        begun = self._clock.now()
        found = await known(read(), LARGEST_TREE_SECONDS, self._clock)
        ended = self._clock.now()
        self._took = ended - begun
        self._due = ended + self._took               # whoever did not answer is asked again sooner
        if isinstance(found, Known):
            self._due = max(begun + self._seconds, ended + self._rests * self._took)
        return found
