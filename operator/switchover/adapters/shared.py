"""One answer for all who want the same: asked once, good for some seconds."""

import asyncio
from collections.abc import Awaitable, Callable, Hashable
from typing import Generic, TypeVar

from switchover.ports import Unreachable

K = TypeVar("K", bound=Hashable)
T = TypeVar("T")


class Shared(Generic[K, T]):
    """Answers by what was asked. Who asks while somebody does already waits for that answer; an error is told to all of
    them, and is not kept."""

    def __init__(self) -> None:
        self._answers: dict[K, tuple[float, T]] = {}
        self._asking: dict[K, asyncio.Task[T]] = {}

    async def get(self, key: K, ask: Callable[[], Awaitable[T]], seconds: float) -> T:
        """The answer that was asked for at most `seconds` ago, or a new one."""
        loop = asyncio.get_running_loop()
        at, answer = self._answers.get(key, (-float("inf"), None))
        if loop.time() - at < seconds:
            return answer  # type: ignore[return-value]      # None only with -inf
        task = self._asking.get(key)
        if task is None or task.done():
            task = self._asking[key] = loop.create_task(self._ask(key, ask))
            task.add_done_callback(_seen)
        await asyncio.wait({task})
        if task.cancelled():                         # Kopf ends every task of a watch that ends
            raise Unreachable("the question was given up by whoever had asked it")
        return task.result()

    async def _ask(self, key: K, ask: Callable[[], Awaitable[T]]) -> T:
        at = asyncio.get_running_loop().time()
        try:
            answer = await ask()
            self._answers[key] = (at, answer)
            return answer
        finally:
            if self._asking.get(key) is asyncio.current_task():
                del self._asking[key]


def _seen(task: "asyncio.Task[T]") -> None:
    """Its error was told to whoever waited; nobody may be left."""
    if not task.cancelled():
        task.exception()
