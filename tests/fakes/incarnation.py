"""One life of the operator process against a fake API: killed, it does nothing more, as after SIGKILL."""

import asyncio
import contextlib
import json
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar
from urllib.parse import parse_qsl, urlsplit

import aiohttp
import pytest
from kopf._cogs.clients import api as kopf_api
from kopf._cogs.clients import errors as kopf_errors
from kubernetes.aio.client.exceptions import ApiException

from fakes.api_server import FakeApi, Problem, copied
from switchover.answers.errors import Unreachable
from switchover.kubernetes.client.api_server import REQUESTS_AT_ONCE, ApiServer, Silent, translate

WATCH_SECONDS = 0.25                   # how often a watcher looks for news
CALL_SECONDS = (0.001, 0.02)
BEFORE, APPLIED, LATE = "before", "applied", "late"
"""Moments of a request at which it fails: not arrived; done; given up, and done LATE_SECONDS later."""
LATE_SECONDS = 15.0

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Fault:
    """How one request to the API server fails, and at which moment of it: with `code` and an answer that says so, or, with
    0, without one. Its answer takes `seconds`; where the operator still waits then, the connection is reset, or with `comes`
    it is answered after all.
    """

    moment: str = BEFORE
    code: int = 0
    seconds: float = 0.0
    comes: bool = False

    async def happen(self) -> None:
        """Answer as the fault does."""
        await asyncio.sleep(self.seconds)
        if self.code:
            status = {"kind": "Status", "code": self.code, "message": f"the server answers {self.code} in this test",
                      "details": {"retryAfterSeconds": 1}}
            raise ApiException(status=self.code, body=json.dumps(status))
        if not self.comes:
            raise aiohttp.ServerDisconnectedError


class Incarnation:
    """The connections of one process. Every answer takes a little time; `killed` ends all of them at once.

    `stopped_before` gives the seconds for which the process stands still right before it sends a request to the API
    server, or writes to ZooKeeper (method, path of the node), as after SIGSTOP: longer than its Lease lasts, if a test so
    wishes. `reads` tells when it last read each kind of thing. `fault` gives what goes wrong with a request to the API
    server (verb, path). `loses` says of which writes, by number, the answer is lost while the process lives on.
    """

    def __init__(self, api: FakeApi, seed: int, advance: Callable[[], None] = lambda: None, identity: str = "") -> None:
        self.api = api
        self.identity = identity
        self.killed = False
        self.reads: dict[str, float] = {}
        self.asked: Callable[[str, str], None] = lambda method, path: None
        self.stopped_before: Callable[[str, str], float] = lambda method, path: 0.0
        self.fault: Callable[[str, str], Fault | None] = lambda verb, path: None
        self.loses: Callable[[int], bool] = lambda number: False
        self._advance = advance
        self._random = random.Random(seed)

    async def call(self, answer: Callable[[], T]) -> T:
        """Ask the world something: half of the time on the way there, half on the way back."""
        for half in range(2):
            await asyncio.sleep(self._random.uniform(*CALL_SECONDS) / 2)
            if self.killed:
                await asyncio.Event().wait()           # the process is gone: nothing happens any more
            if half == 0:
                self._advance()
                self.api.actor = self
                try:
                    result, problem = answer(), None
                except Exception as error:  # noqa: BLE001 - an answer like another, which takes its time, too
                    problem = error
        if problem is not None:
            raise problem
        return result

    async def ask(self, answer: Callable[[], T], fault: Fault) -> T:
        """Ask the API server something that goes wrong."""
        if fault.moment == APPLIED:
            await self.call(answer)
        elif fault.moment == LATE:
            self._late(answer)
        await fault.happen()
        return await self.call(answer)

    def _late(self, answer: Callable[[], T]) -> None:
        """Have a request take effect after it was given up, whoever lives then."""
        def arrive() -> None:
            self._advance()
            self.api.actor = self
            with contextlib.suppress(ApiException):
                answer()

        asyncio.get_running_loop().call_later(LATE_SECONDS, arrive)

    async def write(self, method: str, path: str, send: Callable[[], Awaitable[T]]) -> T:
        """A write: the process can stand still right before it is sent, and its answer can be lost."""
        if (seconds := self.stopped_before(method, path)) > 0:
            await asyncio.sleep(seconds)
        written = len(self.api.writes)
        result = await send()
        if any(self.loses(number) for number in range(written + 1, len(self.api.writes) + 1)):
            of_server = Silent if path.startswith("/api") else Unreachable
            raise of_server(f"the connection broke before {method} {path} was answered")
        return result


def verb_of(method: str, path: str) -> str:
    """What is asked of the API server: get, list, create, patch, status, update, delete, evict; or lease, or event."""
    for plural, verb in (("leases", "lease"), ("events", "event")):
        if f"/{plural}" in path:
            return verb
    _, _, resource = path.partition("/namespaces/")
    if method == "GET":
        return "get" if resource.count("/") > 1 else "list"
    if method == "POST":
        return "evict" if resource.endswith("/eviction") else "create"
    if method == "PATCH":
        return "status" if resource.endswith("/status") else "patch"
    return {"PUT": "update", "DELETE": "delete"}[method]


class SimulatedApiServer(ApiServer):
    """The adapters' connection, with the fake API at its other end."""

    def __init__(self, incarnation: Incarnation, namespace: str) -> None:
        self.namespace = namespace
        self.address = "https://10.0.0.1"
        self._incarnation = incarnation
        self._forbidden = {}
        self._room = asyncio.Semaphore(REQUESTS_AT_ONCE)

    async def close(self) -> None:
        """Nothing is open."""

    async def request(self, method: str, path: str, body: Any = None, **parameters: Any) -> dict[str, Any]:
        serve = self._incarnation.api.serve
        query = {"labelSelector": parameters.get("label_selector") or "", "dryRun": parameters.get("dry_run") or ""}
        body = json.loads(json.dumps(body)) if body is not None else None      # as it would arrive
        content_type = parameters.get("content_type", "")
        self._incarnation.asked(method, path)
        if method == "GET":
            plural = path.partition(f"/namespaces/{self.namespace}/")[2].partition("/")[0]
            self._incarnation.reads[plural] = self._incarnation.api.now()

        def answer() -> dict[str, Any]:
            try:
                return serve(method, path, body, query, content_type)
            except Problem as problem:
                raise ApiException(status=problem.code, body=problem.body) from None

        fault = self._incarnation.fault(verb_of(method, path), path)

        async def send() -> dict[str, Any]:
            if fault is not None:
                return await self._answered(method, path, lambda: self._incarnation.ask(answer, fault))
            try:
                return await self._incarnation.call(answer)
            except ApiException as error:
                raise translate(method, path, error) from None

        return given(await (send() if method == "GET" else self._incarnation.write(method, path, send)), parameters)


class LateServer(SimulatedApiServer):
    """What a watch has told that is up to `seconds` behind. Its reads are none of the process's (`Incarnation.reads`)."""

    def __init__(self, incarnation: Incarnation, namespace: str, seconds: float) -> None:
        super().__init__(incarnation, namespace)
        self._seconds = seconds
        self._told: dict[str, tuple[float, Any]] = {}

    async def request(self, method: str, path: str, body: Any = None, **parameters: Any) -> dict[str, Any]:
        assert method == "GET", "passes look through it, and write nothing"
        labels, now = parameters.get("label_selector") or "", self._incarnation.api.now()
        at, told = self._told.get(path + labels, (-float("inf"), None))
        if now - at >= self._seconds:
            try:
                told = await self._incarnation.call(
                    lambda: self._incarnation.api.serve("GET", path, query={"labelSelector": labels}))
            except Problem as problem:
                told = problem
            self._told[path + labels] = now, told
        if isinstance(told, Problem):
            raise translate(method, path, ApiException(status=told.code, body=told.body))
        return given(copied(told), parameters)


def given(answer: dict[str, Any], parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Each object of a list to whom takes them."""
    if take := parameters.get("take"):
        for each in answer.pop("items"):
            take(each)
    return answer


def serve_kopf(incarnation: Incarnation, monkeypatch: pytest.MonkeyPatch) -> None:
    """Put the fake API in the place of Kopf's own HTTP calls (the names hold for Kopf 1.45.2)."""

    async def get(url: str, **_: Any) -> Any:
        path = urlsplit(url).path

        def answer() -> Any:
            return incarnation.api.discover(path) or incarnation.api.serve("GET", path)

        try:
            return await incarnation.call(answer)
        except Problem as problem:
            kind = {403: kopf_errors.APIForbiddenError, 404: kopf_errors.APINotFoundError}[problem.code]
            raise kind(problem.body, status=problem.code, headers={}) from None

    async def forbidden(url: str, **_: Any) -> Any:
        raise AssertionError(f"Kopf is not asked to write anything, but does: {url}")

    async def stream(url: str, **_: Any) -> AsyncIterator[Any]:
        seen = int(dict(parse_qsl(urlsplit(url).query))["resourceVersion"])
        while True:
            await asyncio.sleep(WATCH_SECONDS)
            if incarnation.killed:
                await asyncio.Event().wait()
            incarnation._advance()
            if incarnation.api.watch_errors:
                code = incarnation.api.watch_errors.pop(0)
                incarnation.api.failed_watches += 1
                yield {"type": "ERROR", "object": {"kind": "Status", "code": code, "message": "etcdserver: no leader"}}
            for change in incarnation.api.changes:
                if change.version > seen and change.visible <= incarnation.api.now():
                    seen = change.version
                    yield {"type": change.kind, "object": copied(change.object)}

    monkeypatch.setattr(kopf_api, "get", get)
    for name in ("patch", "post", "delete"):
        monkeypatch.setattr(kopf_api, name, forbidden)
    monkeypatch.setattr(kopf_api, "stream", stream)
