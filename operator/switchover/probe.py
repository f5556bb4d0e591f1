"""What the kubelet asks the operator's pod: whether it lives."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from aiohttp import web

PATH = "/healthz"


@asynccontextmanager
async def answering(port: int, why_dead: Callable[[], str]) -> AsyncIterator[None]:
    """Answer on PATH at this port, on the loop that does the work: 200, or 503 with the reason. OSError: it is taken."""
    async def answer(_: web.Request) -> web.Response:
        why = why_dead()
        return web.Response(status=503 if why else 200, text=f"{why or 'alive'}\n")

    app = web.Application()
    app.router.add_get(PATH, answer)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    try:
        await web.TCPSite(runner, "0.0.0.0", port).start()
        yield
    finally:
        await runner.cleanup()
