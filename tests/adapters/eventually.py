"""Waiting for what a real server does in its own time."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from patience import Patience
from switchover.answers.errors import Unreachable

Answer = TypeVar("Answer")


async def eventually(
    ask: Callable[[], Awaitable[Answer]], right: Callable[[Answer], bool], seconds: float = 120
) -> Answer:
    patience, last = Patience(seconds), "nothing"
    while not patience.over:
        try:
            answer = await ask()
            if right(answer):
                return answer
            last = str(answer)
        except Unreachable as error:
            last = str(error)
        await asyncio.sleep(0.2)
    raise AssertionError(f"after {patience} still {last}")
