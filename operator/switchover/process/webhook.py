"""The webhook that news are sent to. Nobody waits for it, and nothing of its address, which is a secret, is ever shown."""

import asyncio
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
from aiohttp_retry import ExponentialRetry, RetryClient
from yarl import URL

from switchover.engine.calls import Call, Notify, Undelivered
from switchover.engine.message import message_of

ATTEMPT_SECONDS = 10.0
WAITING = 100
"""Messages that wait for those before them; more are lost."""
LAST_SECONDS = 5.0
"""What is left at the operator's end has so long."""
LARGEST_ADDRESS = 4096

logger = logging.getLogger(__name__)
silent = logging.getLogger(f"{__name__}.attempts")     # the library's lines would hold the address
silent.disabled = True


def retry(attempts: int, seconds: float) -> ExponentialRetry:
    """So many attempts, 2, 4, 8 … times the seconds apart, while there is no answer, a 5xx or 429."""
    return ExponentialRetry(attempts, start_timeout=seconds, statuses={429}, exceptions={aiohttp.ClientError, TimeoutError})


RETRY = retry(5, 1.0)


class Undeliverable(Exception):
    """The message was not taken; the text holds nothing of the address."""


@dataclass(frozen=True, slots=True)
class _Message:
    body: bytes
    undelivered: Undelivered


class Webhook:
    """Sends news to the address in a file, which is read for each message, so that a Secret may come and change.

    `template` is as `engine.message` reads it, `docs` the address of a copy of docs/ or "", `sent` counts a message by
    whether it was taken.
    """

    def __init__(self, address: Path, template: Mapping[str, Any], docs: str, sent: Callable[[bool], None], *,
                 attempt_seconds: float = ATTEMPT_SECONDS, retry: ExponentialRetry = RETRY) -> None:
        self._address = address
        self._template = template
        self._docs = docs
        self._sent = sent
        self._attempt = aiohttp.ClientTimeout(total=attempt_seconds)
        self._retry = retry
        self._messages: asyncio.Queue[_Message] = asyncio.Queue(WAITING)
        self._sender: asyncio.Task[None] | None = None
        self._failing = False

    def of(self, kind: str, namespace: str) -> Notify:
        """What migrations of that kind in that namespace call with."""
        def notify(name: str, uid: str, call: Call, undelivered: Undelivered) -> None:
            if call.news is None:
                return
            body = message_of(call, call.news, kind, namespace, name, uid, self._docs, self._template)
            if self._sender is None:
                self._sender = asyncio.create_task(self._send_all(), name="webhook")
            try:
                self._messages.put_nowait(_Message(body, undelivered))
            except asyncio.QueueFull:              # the sender reports what is wrong with those before it
                self._sent(False)

        return notify

    async def close(self) -> None:
        """Send what is left, for LAST_SECONDS at most."""
        if self._sender is None:
            return
        try:
            async with asyncio.timeout(LAST_SECONDS):
                await self._messages.join()
        except TimeoutError:
            logger.warning("webhook: the operator ends before %d messages are sent", self._messages.qsize() + 1)
        self._sender.cancel()
        await asyncio.gather(self._sender, return_exceptions=True)
        self._sender = None

    async def _send_all(self) -> None:
        while True:
            message = await self._messages.get()
            try:
                await self._post(message.body)
            except Undeliverable as error:
                self._sent(False)
                await self._report(str(error), message.undelivered)
            else:
                self._sent(True)
                if self._failing:
                    logger.info("webhook: messages are accepted again")
                self._failing = False
            finally:
                self._messages.task_done()

    async def _report(self, why: str, undelivered: Undelivered) -> None:
        """Once, until a message is taken again."""
        if not self._failing:
            self._failing = True
            logger.warning("webhook: %s", why)
            await undelivered(f"the webhook did not accept a message: {why}; further failures are counted, not reported")

    async def _post(self, body: bytes) -> None:
        address = await asyncio.to_thread(self._read_address)
        try:
            async with RetryClient(logger=silent, retry_options=self._retry, timeout=self._attempt) as client, client.post(
                    address, data=body, headers={"Content-Type": "application/json"}, allow_redirects=False) as answer:
                status = answer.status
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise Undeliverable(f"{self._why(error)}, {self._retry.attempts} times") from None
        if not 200 <= status < 300:
            raise Undeliverable(f"HTTP {status}")

    def _why(self, error: Exception) -> str:
        """An error in a text of ours: its own has the address."""
        match error:
            case TimeoutError():
                return f"no answer within {self._attempt.total:g} s"
            case aiohttp.ClientConnectorDNSError():
                return "its host's name is not known"
            case aiohttp.ClientSSLError():
                return "its certificate is not accepted"
            case aiohttp.ClientConnectorError():
                return "no connection"
            case _:
                return f"no whole answer ({type(error).__name__})"

    def _read_address(self) -> URL:
        try:
            with self._address.open(encoding="ascii") as file:
                text = file.read(LARGEST_ADDRESS + 1).strip()
            address = URL(text if text.isprintable() and len(text) <= LARGEST_ADDRESS else "")
        except FileNotFoundError:
            raise Undeliverable("the Secret of notifications.webhook, or its key, does not exist") from None
        except (OSError, ValueError):
            raise Undeliverable("what the Secret of notifications.webhook holds cannot be read as an address") from None
        if address.scheme not in ("http", "https") or not address.host:
            raise Undeliverable("what the Secret of notifications.webhook holds is no address such as https://HOST/PATH")
        return address
