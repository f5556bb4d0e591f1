"""What the shell may complete: names that exist. Whatever goes wrong there is nothing to complete, and no word about it."""

import asyncio
import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from kubernetes.aio.config import list_kube_config_contexts

from switchover.cli.command import Place
from switchover.cli.kube import connected, kubeconfig_of
from switchover.cli.objects import KINDS, every, find
from switchover.kubernetes.client.api_server import ApiServer

SECONDS = 3.0
"""Longer nobody waits for a key."""

Given = Mapping[str, Any]


def names(given: Given, incomplete: str, kinds: Sequence[str] = ("kmig", "cgmig")) -> list[str]:
    """Objects as kmig/NAME, and by the name alone where that begins as what was typed."""
    async def ask(server: ApiServer) -> list[str]:
        found = await every(server, [kind for kind in KINDS if kind.short in kinds])
        full = [each.name for each in found]
        return full if "/" in incomplete or not incomplete else full + [each.rpartition("/")[2] for each in full]

    return _beginning(incomplete, _asked(given, ask))


def steps(given: Given, incomplete: str) -> list[str]:
    """The steps of the object that was named before."""
    async def ask(server: ApiServer) -> list[str]:
        return list((await find(server, str(given.get("name", "")))).plan().names)

    return _beginning(incomplete, _asked(given, ask))


def namespaces(given: Given, incomplete: str) -> list[str]:
    """The cluster's namespaces."""
    async def ask(server: ApiServer) -> list[str]:
        return [str(each["metadata"]["name"]) for each in await server.items("/api/v1/namespaces")]

    return _beginning(incomplete, _asked(given, ask))


def contexts(given: Given, incomplete: str) -> list[str]:
    """The kubeconfig's contexts."""
    with suppress(Exception):
        found = list_kube_config_contexts(kubeconfig_of(_place(given), os.environ))  # type: ignore[no-untyped-call]
        return _beginning(incomplete, [str(each["name"]) for each in found[0]])
    return []


def _beginning(incomplete: str, found: Sequence[str]) -> list[str]:
    return [each for each in found if each.startswith(incomplete)]


def _place(given: Given) -> Place:
    return Place(*(str(given.get(name) or "") for name in ("namespace", "context", "kubeconfig")))


def _asked(given: Given, ask: Callable[[ApiServer], Awaitable[list[str]]]) -> list[str]:
    async def answer() -> list[str]:
        async with asyncio.timeout(SECONDS), connected(_place(given)) as server:
            return await ask(server)

    with suppress(Exception):
        return asyncio.run(answer())
    return []
