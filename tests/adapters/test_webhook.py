"""The webhook, at a real HTTP server that takes, refuses, is slow, breaks off and is gone: nobody waits for it."""

import asyncio
import json
import logging
import socket
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from patience import stretched
from switchover.engine.calls import Call, News
from switchover.engine.message import SLACK
from switchover.process import webhook as module
from switchover.process.webhook import WAITING, Webhook, retry

SECRET = "T0SECRET"
HASTY = retry(3, 0.01)
HELD = Call("AwaitingApproval", "Finalize", "Finalize waits for an approval of plan 0123", warning=False, news=News.HELD)

Answer = Callable[[web.Request], Awaitable[web.StreamResponse]]


def status(code: int, **headers: str) -> Answer:
    async def answer(_: web.Request) -> web.StreamResponse:
        return web.Response(status=code, headers=headers)

    return answer


async def never(_: web.Request) -> web.StreamResponse:
    await asyncio.sleep(60)
    raise AssertionError("nobody waits so long")


async def breaks_off(request: web.Request) -> web.StreamResponse:
    assert request.transport is not None
    request.transport.abort()
    await asyncio.sleep(0)
    return web.Response()


class Receiver:
    """An HTTP server on loopback. It answers as told, with the last of `answers` for ever."""

    def __init__(self) -> None:
        self.answers: list[Answer] = [status(200)]
        self.bodies: list[Any] = []
        self.types: list[str] = []
        self.address = ""

    async def answer(self, request: web.Request) -> web.StreamResponse:
        self.bodies.append(json.loads(await request.read()))
        self.types.append(request.content_type)
        return await (self.answers.pop(0) if len(self.answers) > 1 else self.answers[0])(request)


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    told = Receiver()
    app = web.Application()
    app.router.add_route("*", f"/hooks/{SECRET}", told.answer)
    runner = web.AppRunner(app, access_log=None, handler_cancellation=True)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    told.address = f"http://127.0.0.1:{runner.addresses[0][1]}/hooks/{SECRET}"
    yield told
    await runner.cleanup()


class Sender:
    """The webhook as the operator has it, and what it says of itself."""

    def __init__(self, file: Path) -> None:
        self.outcomes: list[bool] = []
        self.told: list[str] = []
        self.seconds = round(stretched(0.2), 1)             # in which whoever is well must have answered
        self._counted = asyncio.Event()
        self.webhook = Webhook(file, SLACK, "", self._count, attempt_seconds=self.seconds, retry=HASTY)
        self._notify = self.webhook.of("KafkaMigration", "shop")

    def call(self, call: Call = HELD) -> None:
        self._notify("kafka", "uid-1", call, self._undelivered)

    async def outcome(self, *expected: bool) -> None:
        """Wait for so many, and see them."""
        async with asyncio.timeout(stretched(20)):
            while len(self.outcomes) < len(expected):
                await self._counted.wait()
                self._counted.clear()
        assert self.outcomes == list(expected)

    def _count(self, taken: bool) -> None:
        self.outcomes.append(taken)
        self._counted.set()

    async def _undelivered(self, why: str) -> None:
        self.told.append(why)


@pytest.fixture
async def sender(receiver: Receiver, tmp_path: Path) -> AsyncIterator[Sender]:
    (tmp_path / "url").write_text(f"{receiver.address}\n")
    sender = Sender(tmp_path / "url")
    yield sender
    await sender.webhook.close()


async def test_news_arrive_as_json_and_other_calls_do_not(receiver: Receiver, sender: Sender) -> None:
    sender.call(Call("ApprovalVoid", "Finalize", "void", warning=True))
    sender.call()
    await sender.outcome(True)
    assert receiver.bodies == [
        {"text": "KafkaMigration shop/kafka waits for a person: Finalize waits for an approval of plan 0123"}]
    assert receiver.types == ["application/json"]
    assert sender.told == []


@pytest.mark.parametrize("trouble", [status(503), status(500), status(429), breaks_off, never],
                         ids=["unavailable", "broken", "too many", "breaks off", "slow"])
async def test_what_passes_is_tried_again(receiver: Receiver, sender: Sender, trouble: Answer) -> None:
    receiver.answers = [trouble, status(204)]
    sender.call()
    await sender.outcome(True)
    assert len(receiver.bodies) == 2
    assert sender.told == []


@pytest.mark.parametrize(("answer", "tries", "words"), [
    (never, 3, "no answer within {seconds:g} s, 3 times"),
    (breaks_off, 3, "no whole answer (ServerDisconnectedError), 3 times"),
    (status(503), 3, "HTTP 503"),
    (status(404), 1, "HTTP 404"),
    (status(302, Location="/elsewhere"), 1, "HTTP 302"),
], ids=["slow", "breaks off", "unavailable", "refuses", "sends elsewhere"])
async def test_what_does_not_is_told_once_and_never_waited_for(
    receiver: Receiver, sender: Sender, answer: Answer, tries: int, words: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    words = words.format(seconds=sender.seconds)
    receiver.answers = [answer]
    begun = time.monotonic()
    sender.call()
    sender.call()
    assert time.monotonic() - begun < stretched(0.1)
    await sender.outcome(False, False)
    assert len(receiver.bodies) == 2 * tries
    assert sender.told == [f"the webhook did not accept a message: {words}; further failures are counted, not reported"]
    assert [each.message for each in caplog.records if each.levelno >= logging.WARNING] == [f"webhook: {words}"]
    receiver.answers = [status(200), answer]
    sender.call()
    sender.call()
    await sender.outcome(False, False, True, False)
    assert len(sender.told) == 2, "it was well in between"
    assert SECRET not in caplog.text
    assert SECRET not in "".join(sender.told)


async def test_one_that_is_gone(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    (tmp_path / "url").write_text(f"http://127.0.0.1:{port}/hooks/{SECRET}")
    sender = Sender(tmp_path / "url")
    sender.call()
    await sender.outcome(False)
    (tmp_path / "url").write_text(f"http://name.invalid/hooks/{SECRET}")
    sender.call()
    await sender.outcome(False, False)
    assert sender.told == [
        "the webhook did not accept a message: no connection, 3 times; further failures are counted, not reported"]
    assert SECRET not in caplog.text
    await sender.webhook.close()


@pytest.mark.parametrize("held", [
    None, b"", b"hooks/T0SECRET", b"ftp://host/T0SECRET", b"http:///T0SECRET", b"http://host:port/T0SECRET",
    b"http://host/T0SECRET\nhttp://other/", b"\xff\xfeT0SECRET", b"http://host/" + b"x" * 5000])
async def test_an_address_that_is_none_is_told_and_one_that_comes_is_used(
    receiver: Receiver, tmp_path: Path, held: bytes | None, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    file = tmp_path / "url"
    if held is not None:
        file.write_bytes(held)
    sender = Sender(file)
    sender.call()
    await sender.outcome(False)
    (why,) = sender.told
    assert "the Secret of notifications.webhook" in why
    assert SECRET not in f"{why}{caplog.text}"
    file.write_text(receiver.address)
    sender.call()
    await sender.outcome(False, True)
    await sender.webhook.close()


async def test_more_than_can_wait_is_lost_and_counted(receiver: Receiver, sender: Sender,
                                                       monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LAST_SECONDS", 0.1)
    receiver.answers = [never]
    for _ in range(WAITING + 5):
        sender.call()
    assert sender.outcomes == [False] * 5
    begun = time.monotonic()
    await sender.webhook.close()
    assert time.monotonic() - begun < 5


async def test_at_its_end_the_operator_sends_what_is_left(receiver: Receiver, sender: Sender) -> None:
    for _ in range(20):
        sender.call()
    await sender.webhook.close()
    assert len(receiver.bodies) == 20
