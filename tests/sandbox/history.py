"""The sandbox's audit log in the words of the invariants (`invariants.events`)."""

import json
from bisect import bisect
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import jsonpatch

from fakes.api_server import merged
from invariants.events import Cluster, Effect, Event, Recorded, Wanted, is_brake
from switchover.cluster import modes

VERBS = {"create": "create", "update": "change", "patch": "change", "delete": "delete"}


def events(log: Path, account: str, namespace: str, migration: str, starts: Iterable[float]) -> Iterator[Event]:
    """What the audit log tells of one migration: what was wanted, what was recorded, what was done, and, from the modes
    on record, what the cluster was. ZooKeeper's nodes, Leases and the bodies of Secrets are not in it. `starts` is when the
    operator's processes started, in seconds since the epoch: each is an actor of its own."""
    processes = sorted(starts)
    spec: dict[str, Any] = {}
    uid = ""
    lines = (json.loads(line) for line in log.read_text().splitlines())
    items = sorted((item for item in lines if _counts(item, namespace)), key=lambda item: item["stageTimestamp"])
    for index, item in enumerate(items):
        if _was_refused(item, items[index + 1:]):
            continue
        at = datetime.fromisoformat(item["stageTimestamp"]).timestamp()
        target, body = item["objectRef"], item.get("requestObject")
        ours = item["user"]["username"] == account
        actor = f"{_pod(item)}#{bisect(processes, at)}"
        if target["resource"] == "kafkamigrations":
            if target.get("name", migration) != migration or item["verb"] == "delete":
                continue
            if target.get("subresource") == "status":
                for status in _statuses(body):
                    uid = _tested(item, "/metadata/uid") or uid
                    yield Recorded(at, uid, status, actor)
                    yield _cluster(at, status)
            elif not ours and (changed := _spec(spec, body)) != spec:
                spec = changed
                yield Wanted(at, uid, 0, spec)
        elif ours:
            yield _effect(at, actor, item, target, body)


def _counts(item: Mapping[str, Any], namespace: str) -> bool:
    target = item.get("objectRef") or {}
    writes = item["verb"] in VERBS and (target.get("namespace") == namespace or not target.get("namespace"))
    asked = target.get("resource") == "selfsubjectaccessreviews" or "dryRun=" in item.get("requestURI", "")
    return bool(target) and writes and not asked and not 300 <= item["responseStatus"]["code"] < 500


def _was_refused(item: Mapping[str, Any], later: Sequence[Mapping[str, Any]]) -> bool:
    """A request whose sender was killed is told as 504, whether it took effect or not. A status that did made a new
    resourceVersion, which the next one insists on; any other effect is judged as if it did."""
    if item["responseStatus"]["code"] < 500 or not (insisted := _tested(item, "/metadata/resourceVersion")):
        return False
    return any(_tested(each, "/metadata/resourceVersion") == insisted for each in later)


def _statuses(body: Any) -> Iterator[Mapping[str, Any]]:
    for operation in body if isinstance(body, list) else ():
        if operation["path"] == "/status":
            yield operation["value"]


def _tested(item: Mapping[str, Any], path: str) -> str:
    body = item.get("requestObject")
    tests = [operation for operation in body if operation["op"] == "test"] if isinstance(body, list) else []
    return next((str(operation["value"]) for operation in tests if operation["path"] == path), "")


def _spec(spec: dict[str, Any], body: Any) -> dict[str, Any]:
    """The spec after a request of a person: a whole object, a merge patch or a JSON patch."""
    if isinstance(body, list):
        fresh: dict[str, Any] = jsonpatch.apply_patch({"spec": spec, "metadata": {}}, [
            operation for operation in body if operation["path"].startswith("/spec")])["spec"]
        return fresh
    change = (body or {}).get("spec") or {}
    return dict(merged(spec, change)) if spec else dict(change)


def _pod(item: Mapping[str, Any]) -> str:
    names = (item["user"].get("extra") or {}).get("authentication.kubernetes.io/pod-name") or [""]
    return str(names[0])


def _cluster(at: float, status: Mapping[str, Any]) -> Cluster:
    """The modes that the nodes told of themselves. A controller is one that runs in a mode of controllers."""
    seen = {node["name"]: str(node.get("observed", "")) for node in status.get("nodes") or ()}
    assigned = {node["name"]: str(node["assigned"]) for node in status.get("nodes") or ()}
    controllers = {name for name, mode in assigned.items() if mode in modes.CONTROLLERS}
    state = {"MigrationActive": "MIGRATION", "MigrationFinished": "POST_MIGRATION", "KRaft": "POST_MIGRATION"}
    return Cluster(
        at, {name: mode for name, mode in seen.items() if name not in controllers},
        {name: mode for name, mode in seen.items() if name in controllers},
        cluster_id=str(status.get("clusterId", "")), quorum=any(seen[name] for name in controllers),
        state=state.get(str(status.get("metadataState"))))


def _effect(at: float, actor: str, item: Mapping[str, Any], target: Mapping[str, Any], body: Any) -> Effect:
    verb = "evict" if target.get("subresource") == "eviction" else VERBS[item["verb"]]
    if verb == "change" and item["responseStatus"]["code"] == 201:
        verb = "create"                                # server-side apply of what was not there
    options = body.get("deleteOptions", body) if isinstance(body, dict) else {}
    uid = str((options.get("preconditions") or {}).get("uid", ""))
    tested = isinstance(body, list) and any(operation["op"] == "test" for operation in body)
    told = body is not None                            # the log keeps no bodies of Secrets
    return Effect(at, verb, target["resource"], target.get("name", ""), actor, target.get("namespace", ""), uid,
                  fenced=not told or bool(uid) or tested or verb == "create", brake=is_brake(body))
