"""Questions that many ask at about the same time take one request."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Generic, TypeVar

from switchover.answers.errors import Unreachable

Q = TypeVar("Q")
T = TypeVar("T")

EVERY_SECONDS = 0.1
"""How often it is asked at most. Who comes alone does not wait."""


class Question(Generic[Q, T]):
    """What somebody wants to know. Whoever asked may have given up."""

    def __init__(self, asked: Q, future: "asyncio.Future[T]") -> None:
        self.asked = asked
        self._future = future

    def tell(self, answer: T | Exception) -> None:
        """The answer, or why there is none; what comes later is not heard."""
        if self._future.done():
            return
        if isinstance(answer, Exception):
            self._future.set_exception(answer)
        else:
            self._future.set_result(answer)


class Together(Generic[Q, T]):
    """`ask` answers each question of a batch as soon as it can; the others get what it raises. An
    answer is never older than its question."""

    def __init__(self, ask: Callable[[Sequence[Question[Q, T]]], Awaitable[None]]) -> None:
        self._ask = ask
        self._next: list[Question[Q, T]] = []
        self._due_at = -float("inf")
        self._asking: set[asyncio.Task[None]] = set()

    async def get(self, asked: Q) -> T:
        """The answer. Raises what `ask` raises, and Unreachable where it gives none."""
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[T] = loop.create_future()
        self._next.append(Question(asked, answer))
        if len(self._next) == 1:
            loop.call_at(max(loop.time(), self._due_at), self._begin, loop)
        return await answer

    def _begin(self, loop: asyncio.AbstractEventLoop) -> None:
        batch, self._next = self._next, []
        self._due_at = loop.time() + EVERY_SECONDS
        task = loop.create_task(self._all(batch))
        self._asking.add(task)
        task.add_done_callback(self._asking.discard)

    async def _all(self, batch: Sequence[Question[Q, T]]) -> None:
        error: Exception = Unreachable("whoever asked first gave up")       # Kopf ends every task
        try:
            await self._ask(batch)
            error = Unreachable("the answer left it out")
        except Exception as met:  # noqa: BLE001 - whatever it is, whoever asked gets it
            error = met
        finally:
            for question in batch:
                question.tell(error)
