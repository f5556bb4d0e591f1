"""A watch that is kept up, against an API server on loopback that does to it what real ones do."""

import asyncio
import json
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
import pytest_asyncio
from aiohttp import web
from kubernetes.aio.client import ApiClient, Configuration

from patience import Patience, stretched
from switchover.answers import memory
from switchover.answers.errors import Refused
from switchover.kubernetes.client import api_server, reflector
from switchover.kubernetes.client.api_server import ApiServer, NotFound
from switchover.kubernetes.client.reflector import WatchedServer
from switchover.kubernetes.members import COST

PODS = "/api/v1/namespaces/shop/pods"


def pod(name: str, **labels: str) -> dict[str, Any]:
    return {"metadata": {"name": name, "labels": labels, "managedFields": [{"manager": "kubelet"}]}, "spec": {}}


class Server:
    """`listed` is answered to lists, `lines` go to the watch that is open; `refusals` are answered first, in their turn."""

    def __init__(self) -> None:
        self.listed = [pod("a", app="orders"), pod("b")]
        self.version = 10
        self.lines: asyncio.Queue[bytes | None] = asyncio.Queue()
        self.refusals: list[tuple[str, int]] = []
        self.asked: list[tuple[str, str]] = []
        self.pages: list[int] = []

    async def answer(self, request: web.Request) -> web.StreamResponse:
        is_watch = request.query.get("watch") == "true"
        self.asked.append(("watch" if is_watch else "list", request.query.get("resourceVersion", "")))
        if self.refusals and self.refusals[0][0] == self.asked[-1][0]:
            code = self.refusals.pop(0)[1]
            return web.json_response({"kind": "Status", "code": code, "message": "no"}, status=code)
        if not is_watch:
            first, page = int(request.query.get("continue", "0")), int(request.query.get("limit", "500"))
            self.pages.append(first)
            more = {"continue": str(first + page)} if len(self.listed) > first + page else {}
            return web.json_response({"items": self.listed[first:first + page],
                                      "metadata": {"resourceVersion": str(self.version), **more}})
        assert request.query["allowWatchBookmarks"] == "true"
        response = web.StreamResponse()
        await response.prepare(request)
        while (line := await self.lines.get()) is not None:
            await response.write(line)
        return response

    def tell(self, kind: str, found: dict[str, Any]) -> None:
        self.version += 1
        found["metadata"]["resourceVersion"] = str(self.version)
        self.lines.put_nowait(json.dumps({"type": kind, "object": found}).encode() + b"\n")

    def end_watch(self) -> None:
        self.lines.put_nowait(None)

    def times(self, what: str) -> int:
        return sum(each == what for each, _ in self.asked)


@asynccontextmanager
async def serving(server: Server) -> AsyncIterator[WatchedServer]:
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", server.answer)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    configuration = Configuration(host=f"http://127.0.0.1:{runner.addresses[0][1]}")
    there = ApiServer(ApiClient(configuration), "shop")
    watched = WatchedServer(there)
    try:
        yield watched
    finally:
        await watched.close()
        await there.close()
        await runner.cleanup()


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reflector, "PAUSES", (0.01,))
    monkeypatch.setattr(reflector, "REFUSED_SECONDS", 0.2)


@pytest_asyncio.fixture
async def server() -> Server:
    return Server()


async def names(watched: WatchedServer, **labels: str) -> list[str]:
    return sorted(each["metadata"]["name"] for each in await watched.items(PODS, labels))


async def until(watched: WatchedServer, wanted: list[str]) -> None:
    for _ in Patience(20).looks():
        if await names(watched) == wanted:
            return
        await asyncio.sleep(0.01)
    raise AssertionError(f"{await names(watched)} instead of {wanted}")


async def test_of_what_stands_beside_workloads_each_is_found_by_what_it_is_about(server: Server) -> None:
    """A thousand budgets, one of each workload: none of the others is unpacked for it."""
    def budget(name: str) -> dict[str, Any]:
        return {"metadata": {"name": name}, "spec": {"selector": {"matchLabels": {"app": name}}}}

    budgets = "/apis/policy/v1/namespaces/shop/poddisruptionbudgets"
    server.listed = [budget("orders"), budget("payments")]
    async with serving(server) as watched:
        assert await watched.about(budgets, [("label", "app", "orders")]) == [budget("orders")]
        assert await watched.about(budgets, [("label", "app", "nobody")]) == []
        assert len(await watched.items(budgets)) == 2


async def test_a_long_list_is_read_page_by_page(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """All of an answer is in memory at once: 10,000 pods would be more than the operator may use."""
    monkeypatch.setattr(api_server, "FIRST_PAGE", 3)
    monkeypatch.setattr(api_server, "PAGE", 3)
    server.listed = [pod(str(number)) for number in range(7)]
    async with serving(server) as watched:
        assert await names(watched) == list("0123456")
        assert server.pages == [0, 3, 6]


CLAIMS, REVISIONS = (f"/{path}" for path in (
    "api/v1/namespaces/shop/persistentvolumeclaims", "apis/apps/v1/namespaces/shop/controllerrevisions"))


async def test_a_page_that_is_too_large_is_asked_for_again_in_parts_and_one_object_that_is_is_named(
        server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(api_server, "LARGEST_ANSWER", 100_000)
    monkeypatch.setattr(api_server, "FIRST_PAGE", 40)
    server.listed = [pod(str(number)) | {"spec": {"x": "a" * 15_000}} for number in range(10, 50)]
    async with serving(server) as watched:
        assert await names(watched) == [str(number) for number in range(10, 50)]
    assert server.pages[:2] == [0, 0]
    assert len(server.pages) < 15, server.pages
    server.listed = [pod("a"), pod("b") | {"spec": {"x": "a" * 100_000}}]
    async with serving(server) as watched:
        with pytest.raises(Refused, match=r"^one object of pods in namespace shop is more than 0 MiB, the next after a$"):
            await watched.items(PODS)


async def test_annotations_that_nobody_reads_are_not_kept_and_that_there_are_some_is(server: Server) -> None:
    """A patch that adds the first annotation would take all the others away."""
    annotations = {"a": "x" * 250_000, "b": "y" * 250_000}
    server.listed = [{"metadata": {"name": "a", "annotations": annotations, "managedFields": [{}]}},
                     {"metadata": {"name": "b", "annotations": {}}}]
    async with serving(server) as watched:
        assert [each["metadata"] for each in await watched.items(CLAIMS)] == [
            {"name": "a", "annotations": {"a": ""}}, {"name": "b", "annotations": {}}]
        assert memory.ANSWERS.held < 2_000
    server.listed = [{"metadata": {"name": "a", "annotations": annotations | {COST: "-1"}}}]
    async with serving(server) as watched:
        assert (await watched.items(PODS))[0]["metadata"]["annotations"] == {COST: "-1"}
    async with serving(server) as watched:
        sets = PODS.replace("/api/v1/", "/apis/apps/v1/").replace("pods", "statefulsets")
        assert (await watched.items(sets))[0]["metadata"]["annotations"] == annotations | {COST: "-1"}


async def test_what_is_watched_has_its_part_of_the_memory_and_gives_it_back(
        server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """The object that is too much is named, in a list and in an event."""
    monkeypatch.setattr(memory, "room", lambda: 100_000)
    monkeypatch.setattr(memory, "FOR_SMALL", memory.MIB)

    def revision(number: int) -> dict[str, Any]:
        return {"metadata": {"name": f"r-{number}"}, "data": secrets.token_urlsafe(6_000)}

    why = r"^r-{} among the controllerrevisions of namespace shop is more than there is memory for: .* of namespace shop"
    server.listed = [revision(number) for number in range(5)]
    async with serving(server) as watched:
        with pytest.raises(Refused, match=why.format(4)):
            await watched.items(REVISIONS)
    server.listed = server.listed[:4]
    async with serving(server) as watched:
        assert len(await watched.items(REVISIONS)) == 4
        assert 24_000 < memory.ANSWERS.held < 25_000
        server.tell("ADDED", revision(7))
        async with asyncio.timeout(stretched(10)):
            with pytest.raises(Refused, match=why.format(7)):
                await looked_at(watched)
    assert memory.ANSWERS.held == 0


async def looked_at(watched: WatchedServer) -> None:
    while True:
        await watched.items(REVISIONS)
        await asyncio.sleep(0.01)


async def test_an_event_of_an_object_that_is_too_long_for_a_line_is_listed(server: Server) -> None:
    async with serving(server) as watched:
        await until(watched, ["a", "b"])
        server.listed.append(pod("c") | {"spec": {"x": "a" * 5_000_000}})
        server.tell("ADDED", server.listed[-1])
        await until(watched, ["a", "b", "c"])


async def test_a_list_whose_next_page_has_expired_begins_anew(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(api_server, "FIRST_PAGE", 1)
    answer, expired = server.answer, [True]

    async def expires_once(request: web.Request) -> web.StreamResponse:
        if request.query.get("continue") and expired:
            expired.clear()
            return web.json_response({"kind": "Status", "code": 410, "message": "too old"}, status=410)
        return await answer(request)

    monkeypatch.setattr(server, "answer", expires_once)
    async with serving(server) as watched:
        await until(watched, ["a", "b"])
        assert server.pages == [0, 0, 1]


async def test_it_is_listed_once_and_told_of_each_change(server: Server) -> None:
    async with serving(server) as watched:
        assert await asyncio.gather(*(names(watched) for _ in range(50))) == [["a", "b"]] * 50
        assert await names(watched, app="orders") == ["a"]
        assert "managedFields" not in (await watched.get(f"{PODS}/a"))["metadata"]
        server.tell("ADDED", pod("c"))
        server.tell("DELETED", pod("a"))
        await until(watched, ["b", "c"])
        with pytest.raises(NotFound):
            await watched.get(f"{PODS}/a")
        server.tell("MODIFIED", pod("b", app="orders"))
        for _ in Patience(20).looks():
            if await names(watched, app="orders") == ["b"]:
                break
            await asyncio.sleep(0.01)
        assert await names(watched, app="orders") == ["b"]
        assert (server.times("list"), server.times("watch")) == (1, 1)


async def test_a_watch_that_ends_goes_on_from_where_it_was(server: Server) -> None:
    async with serving(server) as watched:
        await names(watched)
        server.tell("BOOKMARK", {"metadata": {}})
        server.end_watch()
        server.tell("ADDED", pod("c"))
        await until(watched, ["a", "b", "c"])
        assert [each for each in server.asked if each[0] == "watch"] == [("watch", "10"), ("watch", "11")]
        assert server.times("list") == 1


@pytest.mark.parametrize("how", ["answer", "event"])
async def test_it_is_listed_again_where_the_place_is_lost(server: Server, how: str) -> None:
    async with serving(server) as watched:
        await names(watched)
        server.listed = [pod("z")]
        if how == "event":
            server.lines.put_nowait(json.dumps(
                {"type": "ERROR", "object": {"kind": "Status", "code": 410, "message": "too old"}}).encode() + b"\n")
        else:
            server.refusals = [("watch", 410)]
            server.end_watch()
        await until(watched, ["z"])
        assert server.times("list") == 2


async def test_what_is_no_event_is_no_end(server: Server) -> None:
    async with serving(server) as watched:
        await names(watched)
        server.listed = [pod("z")]
        server.lines.put_nowait(b"<html>\n")
        await until(watched, ["z"])


async def test_a_silent_watch_is_taken_for_dead(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(api_server, "SILENT_SECONDS", 0.1)
    async with serving(server) as watched:
        await names(watched)
        for _ in Patience(20).looks():
            if server.times("watch") > 3:
                break
            await asyncio.sleep(0.01)
        assert server.times("watch") > 3
        assert server.times("list") == 1, "its place is not lost"


async def test_what_nobody_has_told_for_long_is_asked_for(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    async with serving(server) as watched:
        await names(watched)
        server.listed = [pod("z")]
        assert await names(watched) == ["a", "b"]
        monkeypatch.setattr(reflector, "STALE_SECONDS", 0.0)
        await asyncio.sleep(0.01)
        assert await names(watched) == ["z"]


async def test_a_kind_that_is_not_served_is_remembered(server: Server) -> None:
    async with serving(server) as watched:
        server.refusals = [("list", 404)]
        for _ in range(20):
            with pytest.raises(NotFound):
                await watched.items(PODS)
        assert server.times("list") == 1
        await asyncio.sleep(0.3)
        await until(watched, ["a", "b"])


async def test_what_may_be_listed_and_not_watched_is_listed(server: Server) -> None:
    async with serving(server) as watched:
        server.refusals = [("watch", 403)]
        await names(watched)
        for _ in Patience(20).looks():
            if server.times("watch") == 1:
                break
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.05)
        server.listed = [pod("z")]
        assert await names(watched) == ["z"]
