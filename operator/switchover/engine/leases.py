"""The Leases of what migrations change, renewed behind their passes: a pass that is late or slow loses none.

A migration that only looks has a Lease that lasts long and is written seldom. It keeps other migrations away; to another
operator of the same migration it is no obstacle, which takes it over once it begins to act.
"""

import asyncio
import logging
from dataclasses import dataclass

from switchover.answers.clock import Clock
from switchover.answers.errors import Fenced, Refused, Unreachable
from switchover.kubernetes.lease import ACTING_SECONDS, LEFT_SECONDS, LOOKING_SECONDS
from switchover.kubernetes.ports import Workloads

LEAVING_SECONDS = 5.0
"""How long an operator that ends tries to leave a Lease to the next one."""

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class _Held:
    """A Lease that is ours since `at`, the time before it was asked for, and whoever renews it."""

    holder: str
    seconds: int
    at: float
    keeper: asyncio.Task[None] | None = None


class Leases:
    """Those of the migrations of one kind in one namespace. What is `watched` tells who only looks that it goes on holding
    its own; whatever else is to be known is asked."""

    def __init__(self, workloads: Workloads, watched: Workloads, clock: Clock) -> None:
        self._workloads = workloads
        self._watched = watched
        self._clock = clock
        self._held: dict[str, _Held] = {}

    async def hold(self, name: str, holder: str, *, acting: bool) -> str:
        """Take the Lease or go on holding it; who holds it. One that is ours is asked for only when it is due."""
        seconds = ACTING_SECONDS if acting else LOOKING_SECONDS
        held, at = self._held.get(name), self._clock.now()
        if held is not None and (held.holder, held.seconds) == (holder, seconds) and at - held.at < seconds / 2:
            return holder
        if not acting and await self._watched.holds_lease(name, holder, seconds):
            found = holder
        else:
            found = await self._workloads.hold_lease(name, holder, seconds)
        if held is not None and (held.holder == holder or found == holder):
            self.drop(name, held.holder)
        if found == holder:
            held = self._held[name] = _Held(holder, seconds, at)
            held.keeper = asyncio.create_task(self._keep(name, held), name=f"Lease {name}") if acting else None
        return found

    async def release(self, name: str, holder: str) -> None:
        """Give it back, if it is ours."""
        self.drop(name, holder)
        await self._workloads.release_lease(name, holder)

    async def leave(self, holder: str = "") -> None:
        """Leave those of migrations that act to whichever operator comes next, which need not wait until they expire: those
        of one holder, or all."""
        held = {name: each for name, each in self._held.items() if holder in ("", each.holder)}
        self._held = {name: each for name, each in self._held.items() if name not in held}
        await asyncio.gather(*(self._leave(name, each, each.keeper) for name, each in held.items()
                               if each.keeper is not None))

    async def _leave(self, name: str, held: _Held, keeper: asyncio.Task[None]) -> None:
        keeper.cancel()
        await asyncio.wait({keeper})                          # it may be about to renew
        try:
            async with asyncio.timeout(LEAVING_SECONDS):
                await self._workloads.hold_lease(name, held.holder, LEFT_SECONDS)
        except (Unreachable, Refused, Fenced, TimeoutError) as error:
            logger.warning("Lease %s still lasts for %d s: %s", name, held.seconds, error or "no answer")

    def drop(self, name: str, holder: str) -> None:
        """Renew it no more, if this holder does."""
        if (held := self._held.get(name)) is not None and held.holder == holder:
            del self._held[name]
            if held.keeper is not None:
                held.keeper.cancel()

    def drop_all(self, holder: str) -> None:
        """Renew nothing more of this holder's."""
        for name in tuple(self._held):
            self.drop(name, holder)

    async def _keep(self, name: str, held: _Held) -> None:
        while True:
            await asyncio.sleep(held.seconds / 3)
            at = self._clock.now()
            try:
                found = await self._workloads.hold_lease(name, held.holder, held.seconds)
            except (Unreachable, Refused, Fenced) as error:
                logger.warning("Lease %s is not renewed: %s", name, error)      # the next pass asks, once it is overdue
                continue
            if found != held.holder:
                if self._held.get(name) is held:
                    del self._held[name]
                return
            held.at = at
