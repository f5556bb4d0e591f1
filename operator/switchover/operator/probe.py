"""What the kubelet asks the operator's pod: whether it lives, and whether it has begun."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from aiohttp import web

LIVE, READY = "/healthz", "/readyz"


@asynccontextmanager
async def answering(port: int, why_dead: Callable[[], str], why_not_ready: Callable[[], str]) -> AsyncIterator[None]:
    """Answer on LIVE and READY at this port, on the loop that does the work: 200, or 503 with the reason. OSError: it is
    taken."""
    def asked(why_not: Callable[[], str], well: str) -> Callable[[web.Request], Awaitable[web.Response]]:
        async def answer(_: web.Request) -> web.Response:
            why = why_not()
            return web.Response(status=503 if why else 200, text=f"{why or well}\n")

        return answer

    app = web.Application()
    app.router.add_get(LIVE, asked(why_dead, "alive"))
    app.router.add_get(READY, asked(why_not_ready, "ready"))
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    try:
        await web.TCPSite(runner, "0.0.0.0", port).start()
        yield
    finally:
        await runner.cleanup()
