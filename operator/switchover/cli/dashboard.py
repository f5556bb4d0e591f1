"""`switchover dashboard`: the migrations and their reports for the browser on this machine, read anew for each look.

It answers GET on 127.0.0.1 alone, and only who asks for it by a name of this machine: a page of somebody else's whose name
was made to lead here (DNS rebinding) gets nothing.
"""

import asyncio
import re
from collections.abc import Awaitable, Callable
from dataclasses import replace

from aiohttp import web

from switchover.api.schema import DNS_LABEL
from switchover.cli.command import in_words
from switchover.cli.dashboard_page import index, live, policy, trouble
from switchover.cli.kube import connected
from switchover.cli.objects import KINDS, every
from switchover.cli.place import Place
from switchover.cli.report_page import html
from switchover.cli.reporting import now, report
from switchover.outside.errors import Refused, Unreachable

HOST = "127.0.0.1"
_OURS = re.compile(r"(127\.0\.0\.1|localhost)(:\d+)?", re.IGNORECASE)
"""What a Host header may say; another port is that of a tunnel."""
_ADDRESS = (f"/{{namespace:{DNS_LABEL}}}/{{kind:{'|'.join(kind.short for kind in KINDS)}}}/"
            f"{{name:{DNS_LABEL}([.]{DNS_LABEL})*}}")
HEADERS = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff", "X-Frame-Options": "DENY",
           "Referrer-Policy": "no-referrer", "Cross-Origin-Resource-Policy": "same-origin"}
SECONDS_TO_END = 1.0
"""For answers that are under way when it is interrupted."""


async def serve(place: Place, port: int, *, everywhere: bool, say: Callable[[str], None]) -> None:
    """Serve until cancelled; `say` is told the address. Refused where there are no credentials, or the port is taken."""
    async with connected(place) as server:
        here = replace(place, namespace=server.namespace)
    runner = web.AppRunner(application(here, everywhere=everywhere), access_log=None, shutdown_timeout=SECONDS_TO_END)
    await runner.setup()
    try:
        try:
            await web.TCPSite(runner, HOST, port).start()
        except OSError as error:
            raise Refused(f"cannot listen on {HOST}:{port}: {error.strerror}; --port 0 takes one that is free") from None
        say(f"http://{HOST}:{runner.addresses[0][1]}/")
        await asyncio.Event().wait()
    finally:
        await runner.cleanup()


def application(place: Place, *, everywhere: bool) -> web.Application:
    """The pages of the place's namespace, or of all of them."""
    pages = _Pages(place, everywhere)
    app = web.Application(middlewares=[_guard])
    app.router.add_get("/", pages.index, allow_head=False)
    app.router.add_get(_ADDRESS, pages.migration, allow_head=False)
    return app


class _Pages:
    def __init__(self, place: Place, everywhere: bool) -> None:
        self._place = place
        self._everywhere = everywhere
        self._answered: dict[str, str] = {}
        """When each page was last read well."""

    async def index(self, request: web.Request) -> web.Response:
        async def read() -> str:
            async with connected(self._place) as server:
                found = await every(server, everywhere=self._everywhere)
            return index(found, "" if self._everywhere else self._place.namespace, now())

        return await self._answer(request.path, read())

    async def migration(self, request: web.Request) -> web.Response:
        namespace, kind, name = (request.match_info[key] for key in ("namespace", "kind", "name"))
        if not self._everywhere and namespace != self._place.namespace:
            raise web.HTTPNotFound

        async def read() -> str:
            return html(await report(replace(self._place, namespace=namespace), f"{kind}/{name}"), live())

        return await self._answer(request.path, read())

    async def _answer(self, path: str, reading: Awaitable[str]) -> web.Response:
        try:
            text = await reading
        except (Refused, Unreachable) as error:
            return _page(trouble(in_words(error), self._answered.get(path, "")), 503)
        self._answered[path] = now()
        return _page(text)


@web.middleware
async def _guard(request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]],
                 ) -> web.StreamResponse:
    if not _OURS.fullmatch(request.headers.get("Host", "")):
        return _page(trouble(f"This is asked for as http://{HOST}:PORT/ or http://localhost:PORT/ alone.", ""), 403)
    try:
        return await handler(request)
    except web.HTTPException as error:
        return _page(trouble(f"{request.method} {request.path}: {error.reason}", ""), error.status)


def _page(text: str, status: int = 200) -> web.Response:
    headers = {**HEADERS, "Content-Security-Policy": policy()}
    return web.Response(text=text, status=status, content_type="text/html", headers=headers)
