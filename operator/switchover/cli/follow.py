"""`switchover status`, `wait`, `events`, `logs` and `story`: an object as it changes, and what was said of it."""

import asyncio
import re
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from enum import IntEnum, StrEnum
from typing import Any

from rich.console import Console
from rich.live import Live

from switchover.answers.errors import Refused, Unreachable
from switchover.api.lenient import given
from switchover.api.status import NEVER_LOOKED_AT
from switchover.cli.command import Place
from switchover.cli.display import changes, condition, is_current, tree
from switchover.cli.kube import connected
from switchover.cli.objects import Found, again, find, phase_of
from switchover.cli.operators import operator_pods
from switchover.engine.story import laid_out
from switchover.kubernetes.client.api_server import ApiServer, Forbidden
from switchover.shared import foreign_json
from switchover.text.visible import printable

EVERY_SECONDS = 2.0

Say = Callable[[str], None]


class Goal(StrEnum):
    """What is waited for."""

    SUCCEEDED = "Succeeded"
    HOLD = "Hold"
    ROLLED_BACK = "RolledBack"


class End(IntEnum):
    """How waiting ended, by the exit code; 2 is a refusal's."""

    REACHED = 0
    MISSED = 1
    TIMED_OUT = 3


async def read(place: Place, name: str) -> Found:
    """The object once."""
    async with connected(place) as server:
        return await find(server, name)


async def watch(place: Place, name: str, console: Console) -> None:
    """Show it until interrupted or gone: the tree that refreshes on a terminal, else one line for each change."""
    async with connected(place) as server:
        found = await find(server, name)
        if not console.is_terminal:
            async for _ in _changes(server, found, say_on(console)):
                pass
            return
        with Live(console=console, auto_refresh=False) as live:
            async for now in _readings(server, found, say_on(console)):
                live.update(tree(now.resource, time.time()), refresh=True)


async def wait(place: Place, name: str, goal: Goal, timeout: str, say: Say) -> tuple[End, str]:
    """Follow it in lines until it is there, cannot come there any more, or the time is over: which, and why."""
    seconds = duration(timeout)
    async with connected(place) as server:
        now = found = await find(server, name)
        try:
            async with asyncio.timeout(seconds):
                async for now in _changes(server, found, say):
                    if (end := end_of(now, goal)) is not None:
                        return end, f"{now.name} has ended as {phase_of(now.status)} and not as {goal}"
        except TimeoutError:
            stands = now.status.summary or given(now.status, "phase") or NEVER_LOOKED_AT
            return End.TIMED_OUT, f"{now.name} has not come to {goal} within {timeout}: {stands}"
        return End.MISSED, f"{now.name} is gone, and {goal} was never seen"


def end_of(found: Found, goal: Goal) -> End | None:
    """Whether it is where it is to be, or has ended elsewhere; None while it may still come there."""
    if not is_current(found.resource) or found.is_retried:
        return None
    at_hold = condition(found.resource, "AwaitingApproval") == "True"
    phase = phase_of(found.status)
    if at_hold if goal is Goal.HOLD else phase == goal:
        return End.REACHED
    return End.MISSED if phase in (Goal.SUCCEEDED, Goal.ROLLED_BACK) else None


def duration(text: str) -> float:
    """Seconds of 90, 90s, 15m, 2h or 1d. Refused for anything else."""
    number, unit = (text[:-1], text[-1:]) if text[-1:] in tuple("smhd") else (text, "s")
    if not number.isascii() or not number.isdigit() or not 0 < int(number) <= 10_000_000:
        raise Refused(f"{text} is no duration: 90s, 15m, 2h or 1d")
    return float(int(number) * {"s": 1, "m": 60, "h": 3600, "d": 86_400}[unit])


def say_on(console: Console) -> Say:
    """Lines with the time of day."""
    def say(line: str) -> None:
        console.print(f"{time.strftime('%H:%M:%S')} {printable(line)}", markup=False, highlight=False, soft_wrap=True)

    return say


async def _changes(server: ApiServer, found: Found, say: Say) -> AsyncIterator[Found]:
    """Its readings, each once what has changed by it is said."""
    before: Found | None = None
    async for now in _readings(server, found, say):
        for line in changes(before.resource if before is not None else None, now.resource):
            say(line)
        before = now
        yield now


async def _readings(server: ApiServer, found: Found, say: Say) -> AsyncIterator[Found]:
    """The object every EVERY_SECONDS until it is gone; an API server that does not answer is asked again."""
    silent = False
    now: Found | None = found
    while now is not None:
        yield now
        while True:
            await asyncio.sleep(EVERY_SECONDS)
            try:
                now, silent = await again(server, found), False
                break
            except Unreachable as error:
                if not silent:
                    say(f"{error}; asking again")
                silent = True
    say(f"{found.name} is gone")


async def events(place: Place, name: str) -> list[str]:
    """The object's Events, the oldest first, one line each."""
    async with connected(place) as server:
        return [event_line(each) for each in sorted(await events_of(server, await find(server, name)), key=_time)]


async def events_of(server: ApiServer, found: Found) -> Sequence[Mapping[str, Any]]:
    """The Events of that object and of no earlier one with its name."""
    answer = await server.request("GET", server.path("v1", "Event"),
                                  field_selector=f"involvedObject.uid={found.resource['metadata']['uid']}")
    events: Sequence[Mapping[str, Any]] = answer["items"]
    return events


def event_line(event: Mapping[str, Any]) -> str:
    """When, of which weight, why, and the message."""
    return f"{_time(event) or '-'} {event.get('type', '')} {event.get('reason', '')}: {event.get('message', '')}"


async def logs(place: Place, name: str, since: float, lines: int) -> list[str]:
    """What the operator logged of the object in the last `since` seconds, of at most `lines` lines of each pod's log."""
    return [line for found, text in await _logged(place, name, since, lines) for line in about(text, found)]


async def story(place: Place, name: str, since: float, lines: int) -> list[str]:
    """What the operator saw, judged and did in the same time, as it logged it, laid out to read."""
    entries = [line for found, text in await _logged(place, name, since, lines) for line in story_of(text, found)]
    return list(laid_out(entries))


async def _logged(place: Place, name: str, since: float, lines: int) -> list[tuple[Found, list[str]]]:
    """The object that the NAME means, with the lines of each operator's log. Refused where no operator is seen."""
    async with connected(place) as server:
        found = await find(server, name)
        none = f"no operator runs in namespace {server.namespace}"
        try:
            pods = await operator_pods(server)
        except Forbidden as error:
            raise Refused(f"{none}, and one that serves it from another namespace cannot be seen: {error.message}") from None
        if not pods:
            raise Refused(f"{none}, and none elsewhere serves it: no pod has the label app.kubernetes.io/name=switchover; "
                          "switchover doctor says more")
        logged: list[tuple[Found, list[str]]] = []
        for pod in pods:
            where = server.within(pod["metadata"]["namespace"]).path("v1", "Pod", pod["metadata"]["name"], "log")
            text = await server.text(where, {"sinceSeconds": str(int(since)), "tailLines": str(lines)})
            logged.append((found, text.splitlines()))
        return logged


def about(lines: list[str], found: Found) -> Iterator[str]:
    """The lines of a log, JSON or text, that speak of the object."""
    name, namespace = found.resource["metadata"]["name"], found.resource["metadata"]["namespace"]
    for line in lines:
        entry = _entry(line)
        message = str(entry.get("message", line)) if entry else line
        if entry.get("namespace", namespace) != namespace:
            continue
        if entry.get("migration") == name or re.search(rf"(^|\s){re.escape(name)}: ", message):
            yield f"{entry.get('timestamp', '')} {entry.get('severity', '')} {message}".strip() if entry else line


def story_of(lines: list[str], found: Found) -> Iterator[tuple[str, str]]:
    """The lines of the object's story in a log, each with its time. A log that is text has none."""
    namespace = found.resource["metadata"]["namespace"]
    for entry in map(_entry, lines):
        if entry.get("story") == found.name and entry.get("namespace") == namespace:
            yield f"{str(entry.get('timestamp', ''))[:19]}Z", str(entry.get("message", ""))


def _entry(line: str) -> Mapping[str, Any]:
    try:
        found = foreign_json.parsed(line)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _time(event: Mapping[str, Any]) -> str:
    return str(event.get("lastTimestamp") or event.get("eventTime") or "")
