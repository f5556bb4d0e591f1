"""`switchover dashboard`: what it answers, to whom, and what it says where the API server does not."""

import asyncio
import re
import signal
import socket
import subprocess
import sys
from base64 import b64encode
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

import aiohttp
import pytest
from yarl import URL

from fakes.api_on_loopback import ApiOnLoopback, on_loopback
from fakes.api_server import NAMESPACE, Problem
from switchover.answers.errors import Refused
from switchover.cli.command import Place
from switchover.cli.dashboard import HOST, serve
from switchover.cli.objects import Found
from unit.test_report import DANGEROUS, ELEMENTS, HOSTILE, Page, everywhere
from unit.told_walks import told_walk

KAFKA, GROUP = f"/{NAMESPACE}/kmig/", f"/{NAMESPACE}/cgmig/"
FORBIDDEN = Problem(403, "Forbidden", "kafkamigrations is forbidden: User cannot list")
PROGRAM = Path(sys.executable).parent / "switchover"
LIVE_ELEMENTS = ELEMENTS | {"script", "noscript"}


class Answer(NamedTuple):
    status: int
    headers: dict[str, str]
    text: str


Get = Callable[..., Awaitable[Answer]]


@asynccontextmanager
async def dashboard(kubeconfig: Path, *, everywhere: bool = False) -> AsyncIterator[str]:
    """Its address, without the slash at the end."""
    said: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    serving = asyncio.create_task(serve(Place(kubeconfig=str(kubeconfig)), 0, everywhere=everywhere, say=said.set_result))
    await asyncio.wait((serving, said), return_when=asyncio.FIRST_COMPLETED)
    try:
        yield said.result().removesuffix("/")
    finally:
        serving.cancel()
        await asyncio.wait((serving,))


@pytest.fixture
async def api(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[tuple[ApiOnLoopback, Path]]:
    monkeypatch.delenv("POD_NAMESPACE", raising=False)
    async with on_loopback(tmp_path) as found:
        for name in ("cluster held", "group done"):
            found[0].add(told_walk(name))
        yield found


@pytest.fixture
async def get(api: tuple[ApiOnLoopback, Path]) -> AsyncIterator[Get]:
    async with dashboard(api[1]) as address, aiohttp.ClientSession() as session:
        async def answer(path: str, method: str = "GET", **headers: str) -> Answer:
            async with session.request(method, address + path, headers=headers) as found:
                return Answer(found.status, dict(found.headers), await found.text())

        yield answer


def below(links: Iterable[str]) -> list[str]:
    """Those to other pages, without the token that they begin with."""
    return [f"/{each.split('/', 2)[2]}" for each in links if each.startswith("/")]


def names(api: ApiOnLoopback) -> tuple[str, str]:
    cluster, group = (next(api.api.of(plural))["metadata"]["name"]
                      for plural in ("kafkamigrations", "consumergroupmigrations"))
    return KAFKA + cluster, GROUP + group


# --- what is shown ------------------------------------------------------------------------------------------------------


async def test_the_index_leads_to_the_report_of_each_migration(api: tuple[ApiOnLoopback, Path], get: Get) -> None:
    index = await get("/")
    page = Page(index.text)
    assert index.status == 200
    assert sorted(below(page.links)) == sorted(names(api[0]))
    assert all(words in page.text for words in ("AwaitingApproval", "Finalize", "Succeeded", f"namespace {NAMESPACE}"))
    for address in below(page.links):
        found = await get(address)
        told = Page(found.text)
        assert found.status == 200
        assert "/" in below(told.links), "the way back to the index"
        assert not {each.removeprefix("#") for each in told.links if each.startswith("#")} - told.ids
        assert all(part in told.ids for part in ("timeline", "irreversible", "moves"))
    assert set(api[0].asked) == {"GET"}, "nothing is written"


async def test_each_look_is_a_new_one(api: tuple[ApiOnLoopback, Path], get: Get) -> None:
    path, _ = names(api[0])
    plural, name = "kafkamigrations", path.rpartition("/")[2]
    before = await get(path)
    api[0].api.edit(plural, name, lambda each: each["status"].update(phase="Paused"))
    assert ("Paused" in before.text, "Paused</span>" in (await get(path)).text) == (False, True)
    assert "Paused" in (await get("/")).text


async def test_of_all_namespaces_and_of_the_own_one_alone(api: tuple[ApiOnLoopback, Path], get: Get) -> None:
    path, _ = names(api[0])
    other = path.replace(NAMESPACE, "other")
    assert (await get(other)).status == 404
    asked = len(api[0].asked)
    assert (await get("/a%2Fb/kmig/kafka")).status == (await get("/sim/pods/kafka")).status == 404
    assert len(api[0].asked) == asked, "the API server is not asked for what is no migration"
    async with dashboard(api[1], everywhere=True) as address, aiohttp.ClientSession() as session:
        async with session.get(f"{address}/") as index:
            assert "Migrations in all namespaces" in await index.text()
        async with session.get(address + path) as found:
            assert found.status == 200


async def test_where_there_is_none_it_says_so(tmp_path: Path) -> None:
    async with (on_loopback(tmp_path) as (_, kubeconfig), dashboard(kubeconfig) as address,
                aiohttp.ClientSession() as session, session.get(f"{address}/") as found):
        assert "There is no migration." in await found.text()


# --- to whom, and with what ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("host", ["evil.example", "evil.example:80", "127.0.0.1.evil.example", "127.0.0.1@evil", "0.0.0.0"])
async def test_a_name_that_was_made_to_lead_here_gets_nothing(
        host: str, api: tuple[ApiOnLoopback, Path], get: Get) -> None:
    for path in ("/", names(api[0])[0]):
        found = await get(path, Host=host)
        assert (found.status, "kafka" in found.text.lower()) == (403, False)
    assert api[0].asked == []


async def test_another_user_of_this_machine_gets_nothing(api: tuple[ApiOnLoopback, Path]) -> None:
    """Who reaches the port and does not know what the program has printed, the token of an earlier start included."""
    async with dashboard(api[1]) as earlier:
        pass
    async with dashboard(api[1]) as address, aiohttp.ClientSession() as session:
        token, earlier = URL(address).path, URL(earlier).path
        assert token != earlier
        for wanted in ("", "/", "/index.html", names(api[0])[0], token[:-1], token, f"{earlier}/", f"{token.swapcase()}/",
                       f"{token}x/", f"{earlier}{names(api[0])[0]}", "/%00/", f"/%2e{token}/", f"/?{token}"):
            url = URL(f"http://{URL(address).authority}{wanted}", encoded=True)
            for method in ("GET", "POST"):
                async with session.request(method, url) as found:
                    text = await found.text()
                    assert (found.status, "the whole address that `switchover dashboard` has printed" in text) == (403, True)
                    assert not {token.strip("/"), "Finalize"} & {*re.findall(r"[\w-]+", text)}, "nor is the token told"
        assert api[0].asked == []
        async with session.get(f"{address}/") as found:
            assert (found.status, found.cookies) == (200, {}), "cookies go to every port of a host"


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:1", "127.0.0.1:65535"])
async def test_a_name_of_this_machine_is_answered_also_through_a_tunnel(host: str, get: Get) -> None:
    assert (await get("/", Host=host)).status == 200


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"])
async def test_it_is_read_and_nothing_else(method: str, api: tuple[ApiOnLoopback, Path], get: Get) -> None:
    for path in ("/", names(api[0])[0]):
        assert (await get(path, method)).status == 405
    assert api[0].asked == []


async def test_a_page_is_kept_nowhere_and_runs_the_one_script_that_it_has(
        api: tuple[ApiOnLoopback, Path], get: Get) -> None:
    for path in ("/", *names(api[0]), "/nothing"):
        found = await get(path)
        page, policy = Page(found.text), found.headers["Content-Security-Policy"]
        (script,) = re.findall(r"<script[^>]*>(.*?)</script>", found.text, re.DOTALL)
        hashed = b64encode(sha256(script.encode()).digest()).decode()
        assert f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{hashed}'; connect-src 'self'" in policy
        assert found.headers["Cache-Control"] == "no-store"
        assert "frame-ancestors 'none'" in policy
        assert page.tags <= LIVE_ELEMENTS
        assert not [each for each in page.attributes if each.startswith("on") or each in ("src", "style")]
        assert "Content-Security-Policy" not in found.text, "one policy: the report's own would forbid the script"


async def test_it_listens_on_loopback_alone(api: tuple[ApiOnLoopback, Path]) -> None:
    async with dashboard(api[1]) as address:
        host, port = URL(address).host, URL(address).port
        assert host == HOST
        with socket.socket() as another:
            another.bind(("127.0.0.2", port))         # taken, were it all of this machine's addresses


async def test_no_name_or_message_does_anything_to_a_page(tmp_path: Path) -> None:
    found = told_walk("cluster held")
    status = everywhere(found.resource["status"], lambda text: text + HOSTILE)
    async with (on_loopback(tmp_path) as (api, kubeconfig), dashboard(kubeconfig) as address,
                aiohttp.ClientSession() as session):
        api.add(Found(found.kind, {**found.resource, "status": status}))
        name = found.resource["metadata"]["name"]
        for path in ("/", KAFKA + name):
            async with session.get(address + path) as answer:
                text = re.sub(r"<script[^>]*>.*?</script>", "", await answer.text(), flags=re.DOTALL)
                assert answer.status == 200
            page = Page(text)
            assert r"\u202egpj\u2066\n" in page.text
            assert not DANGEROUS.search(text)
            assert page.tags <= LIVE_ELEMENTS - {"script"}
            assert all(each.startswith(("#", "/")) for each in page.links)


# --- what cannot be read ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("problem", "words"), [
    (FORBIDDEN, "the API server forbids get or list on kafkamigrations in namespace sim"),
    (Problem(404, "NotFound", "the server could not find the requested resource"), "CRDs are not installed on"),
    (Problem(500, "InternalError", "etcd leader <b>changed</b>"), "answers 500"),
    (Problem(401, "Unauthorized", "Unauthorized"), "does not accept our credentials"),
], ids=["no rights", "no CRD", "server error", "no login"])
async def test_a_refusal_is_a_page_in_words_with_the_time_of_the_last_good_answer(
        problem: Problem, words: str, api: tuple[ApiOnLoopback, Path], get: Get) -> None:
    index, (path, _) = "/", names(api[0])
    assert (await get(index)).status == 200
    api[0].trouble = problem
    for each, last in ((index, r"The last good answer was of \d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC\."),
                       (path, "There was no good answer yet.")):
        found = await get(each)
        told = Page(found.text)
        assert (found.status, words in told.text, bool(re.search(last, told.text))) == (503, True, True), told.text
        assert told.tags <= LIVE_ELEMENTS
    api[0].trouble = None
    assert [(await get(each)).status for each in (index, path)] == [200, 200], "it goes on"


async def test_an_api_server_that_is_gone_is_told(tmp_path: Path) -> None:
    async with on_loopback(tmp_path) as (_, kubeconfig):
        pass
    async with dashboard(kubeconfig) as address, aiohttp.ClientSession() as session, session.get(f"{address}/") as found:
        text = await found.text()
        assert (found.status, "cannot be reached" in text, "no good answer yet" in text) == (503, True, True)


async def test_a_migration_that_is_gone_is_told_by_its_name(get: Get) -> None:
    found = await get(KAFKA + "gone")
    assert (found.status, "there is no migration kmig/gone in namespace sim" in found.text) == (503, True)


async def test_a_port_that_is_taken_is_refused(api: tuple[ApiOnLoopback, Path]) -> None:
    with socket.socket() as taken:
        taken.bind((HOST, 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(Refused, match=rf"cannot listen on 127\.0\.0\.1:{port}: .*; --port 0 takes one that is free"):
            await serve(Place(kubeconfig=str(api[1])), port, everywhere=False, say=lambda _: None)


# --- the command --------------------------------------------------------------------------------------------------------


async def test_the_command_prints_its_address_and_ends_by_ctrl_c_without_a_word(api: tuple[ApiOnLoopback, Path]) -> None:
    process = await asyncio.create_subprocess_exec(
        PROGRAM, "dashboard", "--kubeconfig", api[1], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    line = (await process.stdout.readline()).decode()
    assert re.fullmatch(r"http://127\.0\.0\.1:\d+/[\w-]{43}/\n", line)
    async with aiohttp.ClientSession() as session, session.get(line.strip()) as found:
        assert found.status == 200
    process.send_signal(signal.SIGINT)
    assert (await process.communicate(), process.returncode) == ((b"", b""), 0)


def test_a_kubeconfig_that_is_none_is_refused(tmp_path: Path) -> None:
    command = [PROGRAM, "dashboard", "--kubeconfig", tmp_path / "none"]
    told = subprocess.run(command, text=True, capture_output=True, check=False)
    assert (told.returncode, told.stdout, told.stderr) == (
        2, "", f"switchover: the kubeconfig {tmp_path / 'none'} does not exist\n")
