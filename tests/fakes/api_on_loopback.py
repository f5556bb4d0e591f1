"""The API in memory behind HTTP on loopback, for what makes its own connections by a kubeconfig; read only."""

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import yaml
from aiohttp import web

from fakes.api_server import NAMESPACE, FakeApi, Problem
from switchover.api.meta import API_VERSION
from switchover.cli.objects import Found


class ApiOnLoopback:
    """`trouble` is the answer to everything while it is not None; `asked` has the method of each request."""

    def __init__(self) -> None:
        self.api = FakeApi(time.time)
        self.trouble: Problem | None = None
        self.asked: list[str] = []

    def add(self, found: Found) -> None:
        """Put a migration there, as an operator has written it."""
        parts = {key: found.resource[key] for key in ("spec", "status")}
        metadata = {"creationTimestamp": found.resource["metadata"]["creationTimestamp"]}
        self.api.add(API_VERSION, found.kind.name, found.kind.plural, found.resource["metadata"]["name"],
                     metadata=metadata, **parts)

    async def answer(self, request: web.Request) -> web.Response:
        """As the API server: of all namespaces it has the one."""
        self.asked.append(request.method)
        path = request.path
        if "/namespaces/" not in path:
            group, _, plural = path.rpartition("/")
            path = f"{group}/namespaces/{NAMESPACE}/{plural}"
        try:
            if self.trouble is not None:
                raise self.trouble
            return web.json_response(self.api.serve(request.method, path, query=request.query))
        except Problem as problem:
            return web.json_response(problem.status, status=problem.code)


@asynccontextmanager
async def on_loopback(directory: Path) -> AsyncIterator[tuple[ApiOnLoopback, Path]]:
    """One that answers, and the kubeconfig that leads to it."""
    api = ApiOnLoopback()
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", api.answer)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    kubeconfig = directory / "kubeconfig"
    kubeconfig.write_text(yaml.safe_dump({
        "apiVersion": "v1", "kind": "Config", "current-context": "here",
        "clusters": [{"name": "here", "cluster": {"server": f"http://127.0.0.1:{runner.addresses[0][1]}"}}],
        "users": [{"name": "me", "user": {"token": "none"}}],
        "contexts": [{"name": "here", "context": {"cluster": "here", "user": "me", "namespace": NAMESPACE}}]}))
    try:
        yield api, kubeconfig
    finally:
        await runner.cleanup()
