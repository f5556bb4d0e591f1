"""`switchover events`, `logs` and `story`: what was said of one object, in Events and in the operator's log."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from switchover.answers.errors import Refused
from switchover.cli.kube import connected
from switchover.cli.objects import Found, find
from switchover.cli.operators import operator_pods
from switchover.cli.place import Place
from switchover.engine.story import laid_out
from switchover.kubernetes.client.api_server import ApiServer, Forbidden
from switchover.shared import foreign_json


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
    """When, of which weight, why, and the words."""
    return f"{_time(event) or '-'} {event.get('type', '')} {event.get('reason', '')}: {event.get('message', '')}"


async def logs(place: Place, name: str, since: float, lines: int) -> list[str]:
    """What the operator logged of the object in the last `since` seconds, of at most `lines` lines of each pod's log."""
    return [line for found, text in await _logged(place, name, since, lines) for line in about(text, found)]


async def story(place: Place, name: str, since: float, lines: int) -> list[str]:
    """What the operator saw, judged and did in the same time, as it told it, laid out to read."""
    told = [line for found, text in await _logged(place, name, since, lines) for line in story_of(text, found)]
    return list(laid_out(told))


async def _logged(place: Place, name: str, since: float, lines: int) -> list[tuple[Found, list[str]]]:
    """The object that the NAME means, with the lines of each operator's log. Refused where no operator is seen."""
    async with connected(place) as server:
        found = await find(server, name)
        none = f"no operator runs in namespace {server.namespace}"
        try:
            pods = await operator_pods(server)
        except Forbidden as error:
            raise Refused(f"{none}, and one that serves it from another namespace cannot be seen: {error.told}") from None
        if not pods:
            raise Refused(f"{none}, and none elsewhere serves it: no pod has the label app.kubernetes.io/name=switchover; "
                          "switchover doctor says more")
        told: list[tuple[Found, list[str]]] = []
        for pod in pods:
            where = server.within(pod["metadata"]["namespace"]).path("v1", "Pod", pod["metadata"]["name"], "log")
            text = await server.text(where, {"sinceSeconds": str(int(since)), "tailLines": str(lines)})
            told.append((found, text.splitlines()))
        return told


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
