"""What the operator's pod is asked over HTTP: by the kubelet whether it lives and has begun, by Prometheus for its metrics.

Whoever reaches the port may ask, so that there is a limit to all that a connection takes. No server at hand has one for the
time of a request's headers.
"""

import asyncio
import contextlib
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from http import HTTPStatus
from typing import NamedTuple

from prometheus_client import CollectorRegistry
from prometheus_client.exposition import choose_encoder

from switchover.answers import memory
from switchover.answers.errors import Refused, Unreachable

LIVE, READY, METRICS = "/healthz", "/readyz", "/metrics"
HEADERS, SECONDS, CONNECTIONS = 8 * 1024, 10.0, 16
"""Bytes of a request; how long it and its answer may take; and how many there are at once on a port: one more ends the
oldest, first of those that have not asked yet. Who asks and reads is done within milliseconds."""
PIECE = 64 * 1024           # bytes that are handed to the network at once

_ACCEPT = re.compile(rb"\r\naccept:([^\r]*)", re.IGNORECASE)


class Page(NamedTuple):
    """An answer."""

    status: HTTPStatus
    body: bytes
    kind: str = "text/plain; charset=utf-8"


Pages = Mapping[str, Callable[[str], Awaitable[Page]]]
"""By their paths; each gets what the asker accepts."""


def health(why_dead: Callable[[], str], why_not_ready: Callable[[], str]) -> Pages:
    """LIVE and READY, for the kubelet: 200, or 503 with the reason."""
    def asked(why_not: Callable[[], str], well: str) -> Callable[[str], Awaitable[Page]]:
        async def answer(_: str) -> Page:
            why = why_not()
            return Page(HTTPStatus.SERVICE_UNAVAILABLE if why else HTTPStatus.OK, f"{why or well}\n".encode())

        return answer

    return {LIVE: asked(why_dead, "alive"), READY: asked(why_not_ready, "ready")}


def metrics(registry: CollectorRegistry) -> Pages:
    """METRICS, for Prometheus; they are put together in another thread."""
    async def answer(accept: str) -> Page:
        encoder, kind = choose_encoder(accept)
        return Page(HTTPStatus.OK, await asyncio.to_thread(encoder, registry), kind)

    return {METRICS: answer}


@asynccontextmanager
async def answering(port: int, pages: Pages) -> AsyncIterator[None]:
    """Answer at this port, on the loop that does the work. OSError: it is taken."""
    connected: dict[asyncio.StreamWriter, bool] = {}             # the oldest first: whether it has asked

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if len(connected) >= CONNECTIONS:
            oldest = next((each for each, asked in connected.items() if not asked), next(iter(connected)))
            del connected[oldest]
            oldest.transport.abort()
        connected[writer] = False
        try:
            async with asyncio.timeout(SECONDS):
                page = await _asked(reader, pages, lambda: connected.update({writer: True}))
                await _answer(writer, page)
        except (TimeoutError, OSError, asyncio.IncompleteReadError):
            pass
        finally:
            connected.pop(writer, None)
            writer.transport.abort()

    server = await asyncio.start_server(serve, "0.0.0.0", port, limit=HEADERS)
    try:
        yield
    finally:
        server.close()
        for each in tuple(connected):
            each.transport.abort()


async def _asked(reader: asyncio.StreamReader, pages: Pages, has_asked: Callable[[], object]) -> Page:
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.LimitOverrunError:
        return _none(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE)
    has_asked()
    method, _, rest = head.partition(b"\r\n")[0].partition(b" ")
    page = pages.get(rest.partition(b" ")[0].partition(b"?")[0].decode(errors="replace"))
    if method != b"GET" or page is None:
        return _none(HTTPStatus.METHOD_NOT_ALLOWED if page is not None else HTTPStatus.NOT_FOUND)
    accept = _ACCEPT.search(head)
    return await page(accept[1].decode(errors="replace") if accept else "")


def _none(status: HTTPStatus) -> Page:
    return Page(status, f"{status.phrase}\n".encode())


async def _answer(writer: asyncio.StreamWriter, page: Page) -> None:
    """The page, which has its memory until whoever asked has read it."""
    with contextlib.ExitStack() as held:
        try:
            held.enter_context(await memory.ANSWERS.turn("the page", len(page.body)))
        except (Refused, Unreachable) as error:
            page = Page(HTTPStatus.SERVICE_UNAVAILABLE, f"{error}\n".encode())
        writer.write(f"HTTP/1.1 {page.status.value} {page.status.phrase}\r\nContent-Type: {page.kind}\r\n"
                     f"Content-Length: {len(page.body)}\r\nConnection: close\r\n\r\n".encode())
        for begin in range(0, len(page.body), PIECE):
            writer.write(page.body[begin:begin + PIECE])
            await writer.drain()
        writer.close()
        await writer.wait_closed()
