"""Which of several operators of one release acts: whoever holds the release's Lease. The others stand by.

It guards what it can: one that stood still meanwhile may act on for a moment. Nothing rests on it that does not rest on the
Leases of what migrations change, and on the record that was read (docs/architecture.md#promises).
"""

import asyncio
import logging
import signal
from collections.abc import Awaitable, Callable, Set

from switchover.answers.errors import Fenced, Refused, Unreachable
from switchover.kubernetes.ports import Workloads

LASTS_SECONDS = 15
"""How long the Lease lasts once it was renewed: so late another one begins where the first one ended without a word."""
RENEWED_SECONDS, GIVEN_UP_SECONDS = 5.5, 12.0
"""After how long it is renewed; and after how long without that its holder ends, before another one can begin."""
ASKED_SECONDS, AGAIN_SECONDS = 2.0, 1.0
"""How often who stands by asks; and how soon it is tried again to renew it."""

logger = logging.getLogger(__name__)


class Deposed(Exception):
    """Another operator may act by now, so this one must not; the message says why."""


class Leadership:
    """The Lease `name`, as `identity` holds it; without a name nobody else is there and nothing is asked."""

    def __init__(self, workloads: Workloads, name: str, identity: str) -> None:
        self._workloads = workloads
        self._name = name
        self._identity = identity
        self._held_at = -float("inf")
        self._before: set[str] = set()
        self.leads = not name
        self.silence = ""                # why it is unknown who leads

    @property
    def before(self) -> Set[str]:
        """Who led until its time was over: it acts no more, and its Leases are its successor's."""
        return self._before

    async def lead(self, work: Callable[[], Awaitable[None]]) -> None:
        """Do the work once the Lease is ours, and for as long as it is. SIGTERM ends the waiting.

        Raises Deposed when it cannot be renewed, and what the work raises.
        """
        if not self._name:
            await work()
        elif await self._won():
            await self._while_leading(work)

    async def _won(self) -> bool:
        """Wait until the Lease is ours; False: SIGTERM came before."""
        loop, waiting = asyncio.get_running_loop(), asyncio.create_task(self._win(), name=f"Lease {self._name}")
        loop.add_signal_handler(signal.SIGTERM, waiting.cancel)
        await asyncio.wait({waiting})
        if waiting.cancelled():
            return False
        waiting.result()
        return True

    async def _win(self) -> None:
        last = ""
        while (found := await self._ask()) != self._identity:
            if found and found != last:
                logger.info("standing by: %s leads", found)
            last = found or last
            await asyncio.sleep(ASKED_SECONDS)
        self._before.update({last} - {""})
        self.leads = True
        logger.info("leading%s", f" after {last}" if last else "")

    async def _ask(self) -> str:
        """Who holds it; "" where that is unknown."""
        at = asyncio.get_running_loop().time()
        try:
            found = await self._workloads.hold_lease(self._name, self._identity, LASTS_SECONDS)
        except (Unreachable, Refused, Fenced) as error:
            self.silence = f"Lease {self._name}: {error}"
            logger.warning("%s", self.silence)
            return ""
        self.silence = ""
        if found == self._identity:
            self._held_at = at
        return found

    async def _while_leading(self, work: Callable[[], Awaitable[None]]) -> None:
        working, keeping = asyncio.ensure_future(work()), asyncio.create_task(self._keep(), name=f"Lease {self._name}")
        try:
            await asyncio.wait({working, keeping}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self.leads = False
            for task in (working, keeping):
                task.cancel()
            await asyncio.wait({working, keeping}, timeout=ASKED_SECONDS)
        if keeping.done() and not keeping.cancelled():
            keeping.result()                                 # which raises
        await self._resign()
        await working

    async def _keep(self) -> None:
        while True:
            await asyncio.sleep(RENEWED_SECONDS)
            try:
                async with asyncio.timeout_at(self._held_at + GIVEN_UP_SECONDS):
                    while (found := await self._ask()) != self._identity:
                        if found:
                            raise Deposed(f"{found} leads by now")
                        await asyncio.sleep(AGAIN_SECONDS)
            except TimeoutError:
                raise Deposed(f"Lease {self._name} could not be renewed for {GIVEN_UP_SECONDS:.0f} s: another operator may "
                              "lead by now") from None

    async def _resign(self) -> None:
        """Whoever stands by begins at once."""
        try:
            await self._workloads.release_lease(self._name, self._identity)
        except (Unreachable, Refused, Fenced) as error:
            logger.warning("Lease %s is not released: %s", self._name, error)
