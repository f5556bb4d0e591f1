"""What the operator's ports do with whoever connects to them: Prometheus and the kubelet are answered meanwhile."""

import asyncio
import contextlib
from collections.abc import AsyncIterator

import aiohttp
import pytest
from prometheus_client import CollectorRegistry, Counter

from apiserver.processes import port
from patience import stretched
from switchover.answers import memory
from switchover.process import probe
from switchover.process.probe import METRICS, answering, metrics

MIB = 1024 * 1024


@contextlib.asynccontextmanager
async def scraped(text: str = "") -> AsyncIterator[int]:
    """The port of a server whose metrics have that help text."""
    registry, here = CollectorRegistry(), port()
    Counter("asked", f"How often {text}", registry=registry)
    async with answering(here, metrics(registry)):
        yield here


async def asks(here: int, request: bytes = b"GET /metrics HTTP/1.1\r\n\r\n"
               ) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    reader, writer = await asyncio.open_connection("127.0.0.1", here)
    writer.write(request)
    return reader, writer


async def test_prometheus_gets_what_it_accepts() -> None:
    async with scraped() as here, aiohttp.ClientSession(f"http://127.0.0.1:{here}") as session:
        for accept, kind, end in ((None, "text/plain; version=0.0.4", ""), (
                "application/openmetrics-text; version=1.0.0", "application/openmetrics-text; version=1.0.0", "# EOF\n")):
            async with session.get(f"{METRICS}?name=all", headers={"Accept": accept} if accept else None) as found:
                assert (found.status, found.headers["Content-Type"].startswith(kind)) == (200, True)
                assert "asked_total 0.0\n" in (text := await found.text())
                assert text.endswith(end)
        for method, path, status in (("GET", "/", 404), ("POST", METRICS, 405)):
            async with session.request(method, path) as found:
                assert found.status == status


async def test_headers_that_do_not_end_take_eight_kibibytes_and_no_place_of_those_who_ask(
        monkeypatch: pytest.MonkeyPatch) -> None:
    """32 connections of 6 MiB of headers each, which prometheus_client's own server held in memory."""
    monkeypatch.setattr(probe, "SECONDS", 3600)          # no time ends them
    async with scraped() as here, aiohttp.ClientSession() as session:
        lines = b"GET /metrics HTTP/1.1\r\n" + b"X: " + b"a" * 2_000 + b"\r\n"
        floods = [await asks(here, lines) for _ in range(32)]
        async with asyncio.timeout(stretched(5)):
            for _ in range(5):
                async with session.get(f"http://127.0.0.1:{here}{METRICS}") as found:
                    assert found.status == 200
            reader, _ = await asks(here, b"X: " + b"a" * (probe.HEADERS + 100))
            assert (await reader.read()).startswith(b"HTTP/1.1 431 ")
            ended, _ = await asyncio.wait({asyncio.ensure_future(floods[0][0].read())}, timeout=stretched(2))
            assert ended, "the oldest gives way to who came later"


async def test_it_ends_in_time_for_who_does_not_ask_and_for_who_does_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probe, "SECONDS", 0.5)
    async with scraped("a" * 16 * MIB) as here, asyncio.timeout(stretched(10)):
        before = memory.ANSWERS.held
        silent, _ = await asks(here, b"GET /metrics HTTP/1.1\r\n")
        assert not await silent.read()
        deaf, writer = await asks(here)
        writer.transport.pause_reading()                            # type: ignore[attr-defined]
        await asyncio.sleep(stretched(1))
        assert memory.ANSWERS.held == before
        writer.transport.resume_reading()                           # type: ignore[attr-defined]
        with contextlib.suppress(ConnectionError):
            assert len(await deaf.read()) < 16 * MIB


async def test_a_page_takes_its_part_of_the_memory_of_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "room", lambda: MIB)
    async with scraped("a" * 2 * MIB) as here, aiohttp.ClientSession() as session, \
            session.get(f"http://127.0.0.1:{here}{METRICS}") as found:
        assert found.status == 503
        assert "the page takes 4.0 MiB of memory, more than the operator has for one" in await found.text()
