"""`switchover events` and `switchover logs`: what was said of one object, in Events and in the log."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from switchover import documents
from switchover.adapters.api_server import ApiServer, Forbidden
from switchover.cli.kube import connected
from switchover.cli.objects import Found, find
from switchover.cli.place import Place
from switchover.ports import Refused

OPERATOR = {"app.kubernetes.io/name": "switchover"}
"""The label that the chart gives everything of the operator's."""


async def events(place: Place, name: str) -> list[str]:
    """The object's Events, the oldest first, one line each."""
    async with connected(place) as server:
        found = await find(server, name)
        metadata = found.resource["metadata"]
        answer = await server.request("GET", server.path("v1", "Event"),
                                      field_selector=f"involvedObject.uid={metadata['uid']}")
        return [event_line(each) for each in sorted(answer["items"], key=_time)]


def event_line(event: Mapping[str, Any]) -> str:
    """When, of which weight, why, and the words."""
    return f"{_time(event) or '-'} {event.get('type', '')} {event.get('reason', '')}: {event.get('message', '')}"


async def logs(place: Place, name: str, since: float, lines: int) -> list[str]:
    """What the operator logged of the object in the last `since` seconds, of at most `lines` lines of each pod's log."""
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
        told: list[str] = []
        for pod in pods:
            where = server.within(pod["metadata"]["namespace"]).path("v1", "Pod", pod["metadata"]["name"], "log")
            text = await server.text(where, {"sinceSeconds": str(int(since)), "tailLines": str(lines)})
            told += about(text.splitlines(), found)
        return told


async def operator_pods(server: ApiServer) -> list[dict[str, Any]]:
    """Pods of operators in the namespace, by the chart's label, or of those that serve it from another one.

    Raises Forbidden where there is none in the namespace and those of others may not be read.
    """
    here = await server.items(server.path("v1", "Pod"), OPERATOR)
    if found := [pod for pod in here if _is_operator(pod)]:
        return found
    everywhere = await server.items("/api/v1/pods", OPERATOR)
    return [pod for pod in everywhere if _is_operator(pod) and serves(pod, server.namespace)]


def _is_operator(pod: Mapping[str, Any]) -> bool:
    """Not of a Job, which carries the label as well."""
    return not any(owner.get("kind") == "Job" for owner in pod["metadata"].get("ownerReferences", ()))


def serves(pod: Mapping[str, Any], namespace: str) -> bool:
    """Whether its variable WATCH names the namespace, or all of them."""
    told = (variable.get("value", "") for container in pod["spec"]["containers"] for variable in container.get("env", ())
            if variable["name"] == "WATCH")
    return any(name.strip() in (namespace, "*") for watched in told for name in watched.split(","))


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


def _entry(line: str) -> Mapping[str, Any]:
    try:
        found = documents.parsed(line)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _time(event: Mapping[str, Any]) -> str:
    return str(event.get("lastTimestamp") or event.get("eventTime") or "")
