"""`switchover dashboard`: the migrations and their reports for the browser on this machine, read again for each look.

It answers GET on 127.0.0.1 alone, and only who knows the token in the address that it prints: other users of this machine
reach that port, too. It must be asked for by a name of this machine: a page of somebody else's whose name was made to lead
here (DNS rebinding) gets nothing. No cookie holds the token: a browser would send it to every other port of 127.0.0.1.
"""

import asyncio
import hmac
import re
import secrets
from base64 import b64encode
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from datetime import datetime
from functools import cache
from hashlib import sha256
from importlib.resources import files

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware

from switchover.answers.errors import Refused, Unreachable
from switchover.api.schema import DNS_LABEL
from switchover.cli.command import Place, as_text, clean
from switchover.cli.display import COLUMNS, cells
from switchover.cli.kube import connected
from switchover.cli.objects import KINDS, Found, every
from switchover.cli.report_page import Live, html, moment, template
from switchover.cli.reporting import now, report

EVERY_SECONDS = 5


@cache
def live(home: str) -> Live:
    """What makes a page read itself again, and where all migrations are shown; "" for who may not see them."""
    return Live(EVERY_SECONDS, (files(__package__) / "live.js").read_text(encoding="utf-8"), home)


@cache
def policy() -> str:
    """The Content-Security-Policy: our one script, and it asks nobody but us."""
    script = b64encode(sha256(live("").script.encode()).digest()).decode()
    return (f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{script}'; connect-src 'self'; "
            "base-uri 'none'; form-action 'none'; frame-ancestors 'none'")


def index(found: Sequence[Found], namespace: str, written: datetime, home: str) -> str:
    """The migrations of a namespace, or of all ("") with a column that says which."""
    rows = []
    for each in found:
        of, name = (each.resource["metadata"][key] for key in ("namespace", "name"))
        own = clean((*cells(each, written.timestamp()), *(() if namespace else (of,))))
        rows.append((f"{home}{of}/{each.kind.short}/{name}", own))
    return _rendered(home, f"Migrations in {f'namespace {namespace}' if namespace else 'all namespaces'}", rows=rows,
                 names=COLUMNS if namespace else (*COLUMNS, "NAMESPACE"), written=written)


def trouble(why: str, answered: datetime | None = None, home: str = "") -> str:
    """Why nothing can be shown, and when the page was last read well, if ever."""
    last = f"The last good answer was of {moment(answered)}." if answered else "There was no good answer yet."
    return _rendered(home, "Nothing can be shown", trouble=(clean(why), last))


def _rendered(home: str, title: str, **given: object) -> str:
    return template("dashboard.html.j2").render(live=live(home), title=clean(title), **{"trouble": (), **given})


HOST = "127.0.0.1"
_OURS = re.compile(r"(127\.0\.0\.1|localhost)(:\d+)?", re.IGNORECASE)
"""What a Host header may say; another port is that of a tunnel."""
_ADDRESS = (f"{{namespace:{DNS_LABEL}}}/{{kind:{'|'.join(kind.short for kind in KINDS)}}}/"
            f"{{name:{DNS_LABEL}([.]{DNS_LABEL})*}}")
HEADERS = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff", "X-Frame-Options": "DENY",
           "Referrer-Policy": "no-referrer", "Cross-Origin-Resource-Policy": "same-origin"}
SECONDS_TO_END = 1.0
"""For answers that are under way when it is interrupted."""


async def serve(place: Place, port: int, *, everywhere: bool, say: Callable[[str], None]) -> None:
    """Serve until cancelled; `say` gets the address. Refused where there are no credentials, or the port is taken."""
    async with connected(place) as server:
        here = replace(place, namespace=server.namespace)
    home = f"/{secrets.token_urlsafe()}/"
    runner = web.AppRunner(application(here, home, everywhere=everywhere), access_log=None, shutdown_timeout=SECONDS_TO_END)
    await runner.setup()
    try:
        try:
            await web.TCPSite(runner, HOST, port).start()
        except OSError as error:
            raise Refused(f"cannot listen on {HOST}:{port}: {error.strerror}; --port 0 takes one that is free") from None
        say(f"http://{HOST}:{runner.addresses[0][1]}{home}")
        await asyncio.Event().wait()
    finally:
        await runner.cleanup()


def application(place: Place, home: str, *, everywhere: bool) -> web.Application:
    """The pages of the place's namespace, or of all of them, below `/TOKEN/`."""
    pages = _Pages(place, home, everywhere)
    app = web.Application(middlewares=[_guard(home)])
    app.router.add_get(home, pages.index, allow_head=False)
    app.router.add_get(f"{home}{_ADDRESS}", pages.migration, allow_head=False)
    return app


class _Pages:
    def __init__(self, place: Place, home: str, everywhere: bool) -> None:
        self._place = place
        self._home = home
        self._everywhere = everywhere
        self._answered: dict[str, datetime] = {}
        """When each page was last read well."""

    async def index(self, request: web.Request) -> web.Response:
        async def read() -> str:
            async with connected(self._place) as server:
                found = await every(server, everywhere=self._everywhere)
            return index(found, "" if self._everywhere else self._place.namespace, now(), self._home)

        return await self._answer(request.path, read())

    async def migration(self, request: web.Request) -> web.Response:
        namespace, kind, name = (request.match_info[key] for key in ("namespace", "kind", "name"))
        if not self._everywhere and namespace != self._place.namespace:
            raise web.HTTPNotFound

        async def read() -> str:
            return html(await report(replace(self._place, namespace=namespace), f"{kind}/{name}"), live(self._home))

        return await self._answer(request.path, read())

    async def _answer(self, path: str, reading: Awaitable[str]) -> web.Response:
        try:
            text = await reading
        except (Refused, Unreachable) as error:
            return _page(trouble(as_text(error), self._answered.get(path), self._home), 503)
        self._answered[path] = now()
        return _page(text)


def _guard(home: str) -> Middleware:
    @web.middleware
    async def guard(request: web.Request, handler: Handler) -> web.StreamResponse:
        if not _OURS.fullmatch(request.headers.get("Host", "")):
            return _page(trouble(f"This is asked for as http://{HOST}:PORT/ or http://localhost:PORT/ alone."), 403)
        if not hmac.compare_digest(request.rel_url.raw_path[:len(home)].encode(), home.encode()):
            why = "Open the whole address that `switchover dashboard` has printed; each start has another one."
            return _page(trouble(why), 403)
        try:
            return await handler(request)
        except web.HTTPException as error:
            why = f"{request.method} /{request.path.removeprefix(home)}: {error.reason}"
            return _page(trouble(why, home=home), error.status)

    return guard


def _page(text: str, status: int = 200) -> web.Response:
    headers = {**HEADERS, "Content-Security-Policy": policy()}
    return web.Response(text=text, status=status, content_type="text/html", headers=headers)
