"""The sandbox's audit log: what the operator asked of the API server, in order."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class Request:
    """One request that was served. `at` is RFC 3339 with microseconds: it compares as text."""

    at: str
    verb: str
    resource: str
    name: str
    body: Any


def requests(log: Path, account: str) -> list[Request]:
    """Every request of the account that the API server granted, by the time of its answer."""
    found = []
    for line in log.read_text().splitlines():
        event = json.loads(line)
        target = event.get("objectRef")
        if event["user"]["username"] == account and target and event["responseStatus"]["code"] < 300:
            resource = "/".join(filter(None, (target["resource"], target.get("subresource"))))
            found.append(
                Request(event["stageTimestamp"], event["verb"], resource, target.get("name", ""), event.get("requestObject"))
            )
    return sorted(found, key=lambda request: request.at)


def evictions(log: Sequence[Request]) -> list[Request]:
    """Evictions and, for pods that were not Ready, deletions."""
    return [item for item in log if item.resource == "pods/eviction" or (item.resource, item.verb) == ("pods", "delete")]


def uid_of(eviction: Request) -> str:
    """The pod's uid that the eviction insists on."""
    options = eviction.body.get("deleteOptions", eviction.body)
    return str(options["preconditions"]["uid"])


def replaced(log: Sequence[Request]) -> list[str]:
    """The pod of every eviction, once for each uid: an operator that ends after it evicts asks for the same pod again."""
    return [name for name, _ in dict.fromkeys((item.name, uid_of(item)) for item in evictions(log))]


def records(log: Sequence[Request]) -> Iterator[tuple[str, dict[str, Any]]]:
    """(time, status) of every status that was recorded."""
    for item in log:
        if item.resource == "kafkamigrations/status":
            for operation in item.body:
                if operation["path"] == "/status":
                    yield item.at, operation["value"]


def acts_before_record(log: Sequence[Request]) -> list[str]:
    """Evictions of a pod whose uid no earlier status names as the one to evict. Empty is the promise kept."""
    named: list[tuple[str, str, str]] = [
        (at, node["name"], node["evicting"])
        for at, status in records(log)
        for node in status.get("nodes", [])
        if node.get("evicting")
    ]
    return [
        f"{item.at}: {item.name} ({uid_of(item)})"
        for item in evictions(log)
        if not any(at < item.at and pod == item.name and uid == uid_of(item) for at, pod, uid in named)
    ]
