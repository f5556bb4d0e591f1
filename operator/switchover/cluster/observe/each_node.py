"""Ask every node the same: its answer, or why there is none, with the node's name and address."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import TypeVar

from switchover.answers.ask import READ_SECONDS, known
from switchover.answers.clock import Clock
from switchover.answers.observed import Known, Observed, Unknown
from switchover.network.addresses import Address

T = TypeVar("T")


async def ask_each(nodes: Mapping[int, Address | None], ask: Callable[[Address, int], Awaitable[T]],
                   clock: Clock) -> dict[int, Observed[T]]:
    """By node.id, concurrently; None is an address that nobody told. Never raises."""
    async def one(node_id: int, address: Address | None) -> Observed[T]:
        if address is None:
            return Unknown(f"no broker tells the address of broker {node_id}")
        answer = await known(ask(address, node_id), READ_SECONDS, clock)
        if isinstance(answer, Known):
            return answer
        at = "" if str(address) in answer.why else f" at {address}"
        return replace(answer, why=f"node {node_id}{at}: {answer.why}")

    found = await asyncio.gather(*(one(node_id, address) for node_id, address in nodes.items()))
    return dict(zip(nodes, found, strict=True))
