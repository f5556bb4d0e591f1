"""A small Kubernetes API in memory, for virtual time: what the operator's adapters and Kopf's watch need, no more.

Passive: it moves when somebody asks. Behaviour was taken from the real one where tests/apiserver looks at the same
things: resourceVersion and uid, generation, `/status` apart, JSON patch with tests (422), conflicts (409), finalizers,
server-side apply reduced to "our keys replace, and those that we give up go", eviction under budgets (429), pods that take
their time to end, deletion in the foreground, in the background or leaving orphans.
"""

import json
import marshal
import random
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import jsonpatch

NAMESPACE = "sim"
FOREGROUND = "foregroundDeletion"
_WITHOUT_GENERATION = frozenset({"pods", "events", "leases", "secrets", "configmaps", "persistentvolumeclaims"})

Object = dict[str, Any]


class Problem(Exception):
    """An answer that is not 2xx: a Kubernetes Status."""

    def __init__(self, code: int, reason: str, message: str, *causes: Mapping[str, str]) -> None:
        super().__init__(message)
        self.status = {"kind": "Status", "code": code, "reason": reason, "message": message}
        self.status["details"] = {"causes": [dict(cause) for cause in causes]}
        self.code = code

    @property
    def body(self) -> str:
        return json.dumps(self.status)


@dataclass(frozen=True, slots=True)
class Change:
    """One event of a watch; `visible` is when a watcher may learn of it, seconds of the world's time."""

    version: int
    kind: str
    plural: str
    object: Object
    visible: float


@dataclass(frozen=True, slots=True)
class Write:
    """One write that took effect, on the API server or on ZooKeeper: the numbered crash points of a run."""

    number: int
    at: float
    text: str


@dataclass
class FakeApi:
    """The store. `now` tells the world's time; `lag` is the largest delay of a watch event, drawn from `seed`.

    `on_write` is told of each write of the operator right after it took effect (method, plural, name, subresource, request,
    object); `after_write` may end its process there. `actor` is whoever asks at this moment. `watch_errors` are the codes of
    the errors that the next watches end with; all of them are counted, since what begins after one remembers nothing.
    `is_ending` once somebody deletes the namespace.
    """

    now: Callable[[], float]
    seed: int = 0
    lag: float = 0.0
    objects: dict[tuple[str, str], Object] = field(default_factory=dict)
    changes: list[Change] = field(default_factory=list)
    writes: list[Write] = field(default_factory=list)
    watched: frozenset[str] = frozenset({"kafkamigrations"})
    watch_errors: list[int] = field(default_factory=list)
    is_ending: bool = False
    failed_watches: int = 0
    on_write: Callable[[str, str, str, str, Any, Object], None] = lambda *_: None
    after_write: Callable[[], None] = lambda: None
    actor: Any = None
    _applied: dict[tuple[str, str, str], Object] = field(default_factory=dict)
    _version: int = 0
    _uids: int = 0

    def __post_init__(self) -> None:
        self._random = random.Random(self.seed)

    def __deepcopy__(self, memo: dict[int, Any]) -> "FakeApi":
        """What is plain is copied as such, what is never changed is not."""
        other = memo[id(self)] = FakeApi.__new__(FakeApi)
        of_itself = {"changes": [*self.changes], "writes": [*self.writes],
                     "objects": copied(self.objects), "_applied": copied(self._applied)}
        rest = {name: deepcopy(value, memo) for name, value in self.__dict__.items() if name not in of_itself}
        other.__dict__ = of_itself | rest
        return other

    # --- what tests and the simulated controllers do ------------------------------------------------------------------

    def add(self, api_version: str, kind: str, plural: str, name: str, **parts: Any) -> Object:
        """Put an object there, as somebody else than the operator."""
        metadata = {"name": name, "namespace": NAMESPACE} | parts.pop("metadata", {})
        return self._insert(plural, {"apiVersion": api_version, "kind": kind, "metadata": metadata} | parts)

    def edit(self, plural: str, name: str, change: Callable[[Object], None]) -> None:
        """Change an object, as somebody else than the operator."""
        fresh = copied(self.objects[plural, name])
        change(fresh)
        self._store(plural, fresh)

    def remove(self, plural: str, name: str) -> None:
        """Delete an object, as somebody else than the operator; finalizers hold it, and pods end in their own time."""
        self._remove(plural, self.objects[plural, name])

    def gone(self, plural: str, name: str) -> None:
        """What held a deleted object has let go of it: a pod's containers have ended, say."""
        del self.objects[plural, name]["metadata"]["deletionTimestamp"]
        self.objects[plural, name]["metadata"].pop("finalizers", None)
        self._drop(plural, self.objects[plural, name])

    def of(self, plural: str) -> Iterator[Object]:
        """All objects of a kind, by name."""
        return (self.objects[key] for key in sorted(key for key in self.objects if key[0] == plural))

    # --- the API ------------------------------------------------------------------------------------------------------

    def serve(self, method: str, path: str, body: Any = None, query: Mapping[str, str] | None = None,
              content_type: str = "", *, ours: bool = True) -> Object:
        """Answer one request, or raise Problem. The operator's account may do everything in its namespace; what is not
        `ours` somebody else asks for."""
        if path == "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews":
            return {"status": {"allowed": True}}
        if path == f"/api/v1/namespaces/{NAMESPACE}":
            deleted = {"deletionTimestamp": "2026-01-01T00:00:00Z"} if self.is_ending else {}
            return {"metadata": {"name": NAMESPACE} | deleted}
        plural, name, subresource = self._route(path)
        if method == "GET":
            return self._read(plural, name, query or {})
        if (query or {}).get("dryRun") and method == "POST":
            made = f"{datetime.fromtimestamp(self.now(), UTC):%Y-%m-%dT%H:%M:%SZ}"
            return {**copied(body), "metadata": {**body["metadata"], "creationTimestamp": made}}
        if (query or {}).get("dryRun"):
            return copied(self._patched(plural, self._read(plural, name, {}), body, subresource, content_type))
        before, existed = self._version, (plural, name) in self.objects
        found = self._write(method, plural, name, subresource, body, content_type)
        if ours and self._version != before:           # a write that changes nothing is no crash point of its own
            verb = method if existed else "POST"       # server-side apply creates what is not there
            self.written(verb, plural, found["metadata"]["name"], subresource, body, found)
        return copied(found)

    def written(self, method: str, plural: str, name: str, subresource: str, body: Any, found: Object) -> None:
        """A write of the operator took effect. ZooKeeper's fake tells of its own here (plural `znodes`), too."""
        text = f"{method} {plural} {name} {subresource}".strip()
        self.writes.append(Write(len(self.writes) + 1, self.now(), text))
        self.on_write(method, plural, name, subresource, body, found)
        self.after_write()

    def discover(self, path: str) -> Object | None:
        """The discovery documents that Kopf asks for, None for another path."""
        kinds = [{"name": f"{kind.lower()}s", "singularName": kind.lower(), "kind": kind, "namespaced": True,
                  "verbs": ["get", "list", "watch", "patch"]} for kind in ("KafkaMigration", "ConsumerGroupMigration")]
        namespaces = {"name": "namespaces", "singularName": "namespace", "kind": "Namespace", "namespaced": False,
                      "verbs": ["get", "list", "watch"]}
        version = {"groupVersion": "switchover.dev/v1alpha1", "version": "v1alpha1"}
        return {
            "/api": {"versions": ["v1"]},
            "/apis": {"groups": [{"name": "switchover.dev", "versions": [version], "preferredVersion": version}]},
            "/api/v1": {"resources": [namespaces]},
            "/apis/switchover.dev/v1alpha1": {"resources": [
                *kinds, *({**each, "name": f"{each['name']}/status"} for each in kinds)]},
        }.get(path)

    def _write(self, method: str, plural: str, name: str, subresource: str, body: Any, content_type: str) -> Object:
        found = self.objects.get((plural, name))
        if method == "POST" and subresource != "eviction":
            return self._create(plural, body)
        if found is None and content_type.startswith("application/apply-patch"):
            created = self._create(plural, body)
            self._applied[plural, name, created["metadata"]["uid"]] = copied(body)
            return created
        if found is None:
            raise Problem(404, "NotFound", f"{plural} {name} not found")
        if subresource == "eviction":
            return self._evict(found, body)
        if method == "DELETE":
            precondition(found, (body or {}).get("preconditions") or {})
            self._remove(plural, found, (body or {}).get("propagationPolicy", "Background"))
            return found
        if method == "PUT":
            return self._update(plural, found, body)
        return self._patch(plural, found, body, subresource, content_type)

    def _route(self, path: str) -> tuple[str, str, str]:
        if ("nodes", path.removeprefix("/api/v1/nodes/")) in self.objects:
            return "nodes", path.removeprefix("/api/v1/nodes/"), ""
        _, found, rest = path.partition(f"/namespaces/{NAMESPACE}/")
        if not found:
            raise Problem(403, "Forbidden", f"{path} is not in the operator's namespace")
        plural, name, subresource, *_ = [*rest.split("/"), "", ""]
        return plural, name, subresource

    def _read(self, plural: str, name: str, query: Mapping[str, str]) -> Object:
        if name:
            if (plural, name) not in self.objects:
                raise Problem(404, "NotFound", f"{plural} {name} not found")
            return copied(self.objects[plural, name])
        wanted = dict(pair.split("=", 1) for pair in (query.get("labelSelector") or "").split(",") if pair)
        items = [found for found in self.of(plural) if wanted.items() <= labels(found).items()]
        return {"items": copied(items), "metadata": {"resourceVersion": str(self._version)}}

    def _create(self, plural: str, body: Object) -> Object:
        fresh = copied(body)
        if "name" not in fresh["metadata"]:
            fresh["metadata"]["name"] = f"{fresh['metadata']['generateName']}{self._version:x}"
        if (plural, fresh["metadata"]["name"]) in self.objects:
            raise Problem(409, "AlreadyExists", f"{plural} {fresh['metadata']['name']} already exists")
        return self._insert(plural, fresh)

    def _insert(self, plural: str, fresh: Object) -> Object:
        self._uids += 1
        fresh["metadata"] |= {"namespace": NAMESPACE, "uid": f"uid-{self._uids}"}
        fresh["metadata"].setdefault("creationTimestamp", f"{datetime.fromtimestamp(self.now(), UTC):%Y-%m-%dT%H:%M:%SZ}")
        if plural not in _WITHOUT_GENERATION:
            fresh["metadata"]["generation"] = 1
        return self._save("ADDED", plural, fresh)

    def _update(self, plural: str, found: Object, body: Object) -> Object:
        version = body["metadata"].get("resourceVersion")
        if version is not None and version != found["metadata"]["resourceVersion"]:
            raise Problem(409, "Conflict", "the object has been modified")
        return self._store(plural, copied(body))

    def _patch(self, plural: str, found: Object, body: Any, subresource: str, content_type: str) -> Object:
        fresh = self._patched(plural, found, body, subresource, content_type)
        if content_type.startswith("application/apply-patch"):
            self._applied[plural, found["metadata"]["name"], found["metadata"]["uid"]] = copied(body)
        return self._store(plural, fresh)

    def _patched(self, plural: str, found: Object, body: Any, subresource: str, content_type: str) -> Object:
        if content_type.startswith("application/json-patch"):
            fresh = patched(found, body)
        elif content_type.startswith("application/strategic-merge-patch"):
            fresh = strategic(found, body)
        elif content_type.startswith("application/merge-patch"):
            precondition(found, body.get("metadata") or {})
            fresh = merged(found, body)
        else:
            mine = (plural, found["metadata"]["name"], found["metadata"]["uid"])
            given_up = dropped(self._applied.get(mine, {}), body)
            fresh = merged(merged(found, given_up), body) | {key: body[key] for key in ("data",) if key in body}
        if plural == "secrets":
            given = {key: b64encode(value.encode()).decode() for key, value in fresh.pop("stringData", {}).items()}
            fresh["data"] = (fresh.get("data") or {}) | given
        if subresource == "status":
            fresh = copied(found) | {"status": fresh.get("status")}
        elif plural in self.watched:
            fresh = {key: value for key, value in fresh.items() if key != "status"}
            fresh |= {key: found[key] for key in ("status",) if key in found}
        return fresh

    def _store(self, plural: str, fresh: Object) -> Object:
        name = fresh["metadata"]["name"]
        old = self.objects[plural, name]
        if fresh == old:
            return old
        if plural not in _WITHOUT_GENERATION and fresh.get("spec") != old.get("spec"):
            fresh["metadata"]["generation"] = old["metadata"]["generation"] + 1
        if "deletionTimestamp" in fresh["metadata"] and not fresh["metadata"].get("finalizers") and plural != "pods":
            return self._drop(plural, fresh)
        return self._save("MODIFIED", plural, fresh)

    def _remove(self, plural: str, found: Object, propagation: str = "Background") -> None:
        fresh = copied(found)
        if propagation == "Foreground" and plural == "statefulsets":       # the others have no dependants
            fresh["metadata"].setdefault("finalizers", []).append(FOREGROUND)
        if propagation == "Orphan":
            for pod in list(self.of("pods")):
                if any(owner["uid"] == found["metadata"]["uid"] for owner in pod["metadata"].get("ownerReferences", ())):
                    self.edit("pods", pod["metadata"]["name"], lambda each: each["metadata"].pop("ownerReferences"))
        if "deletionTimestamp" in found["metadata"]:
            return
        if fresh["metadata"].get("finalizers") or plural == "pods":
            fresh["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
            self._store(plural, fresh)
        else:
            self._drop(plural, fresh)

    def _drop(self, plural: str, fresh: Object) -> Object:
        del self.objects[plural, fresh["metadata"]["name"]]
        return self._save("DELETED", plural, fresh)

    def _save(self, kind: str, plural: str, fresh: Object) -> Object:
        self._version += 1
        fresh["metadata"]["resourceVersion"] = str(self._version)
        if kind != "DELETED":
            self.objects[plural, fresh["metadata"]["name"]] = fresh
        if plural in self.watched:
            earliest = self.changes[-1].visible if self.changes else 0.0
            visible = max(self.now() + self._random.uniform(0, self.lag), earliest)
            self.changes.append(Change(self._version, kind, plural, copied(fresh), visible))
        return fresh

    def _evict(self, pod: Object, body: Object) -> Object:
        precondition(pod, (body.get("deleteOptions") or {}).get("preconditions") or {})
        for budget in self.of("poddisruptionbudgets"):
            chosen = budget["spec"]["selector"]["matchLabels"].items()
            if not chosen <= labels(pod).items():
                continue
            healthy = sum(ready(each) and "deletionTimestamp" not in each["metadata"]
                          for each in self.of("pods") if chosen <= labels(each).items())
            expected = sum(each["spec"]["replicas"] for each in self.of("statefulsets")     # a pod that is gone counts, too
                           if chosen <= each["spec"]["template"]["metadata"]["labels"].items())
            if expected - healthy >= budget["spec"]["maxUnavailable"]:
                words = f"The disruption budget {budget['metadata']['name']} needs healthy pods"
                cause = {"reason": "DisruptionBudget", "message": words}
                raise Problem(429, "TooManyRequests", "Cannot evict pod as it would violate the pod's budget.", cause)
        self._remove("pods", pod)
        return pod


def patched(found: Object, operations: Any) -> Object:
    """JSON patch; a test that fails is a 422."""
    plain = [{**each, "value": _Plain(each["value"])} if isinstance(each.get("value"), dict) else each
             for each in operations]
    try:
        fresh: Object = jsonpatch.apply_patch(copied(found), plain, in_place=True)
    except jsonpatch.JsonPatchException as error:
        raise Problem(422, "Invalid", f"the server rejected our request: {error}") from None
    return fresh


def precondition(found: Object, conditions: Mapping[str, str]) -> None:
    """409 unless uid and resourceVersion, as far as they are named, are the object's."""
    for key, words in (("uid", "UID"), ("resourceVersion", "ResourceVersion")):
        if key in conditions and found["metadata"][key] != conditions[key]:
            raise Problem(409, "Conflict", f"Precondition failed: {words} in precondition: {conditions[key]}")


def labels(found: Mapping[str, Any]) -> Mapping[str, str]:
    """An object's labels."""
    return found["metadata"].get("labels") or {}


def ready(pod: Mapping[str, Any]) -> bool:
    """Is the pod's Ready condition true?"""
    conditions = (pod.get("status") or {}).get("conditions") or ()
    return any(condition["type"] == "Ready" and condition["status"] == "True" for condition in conditions)


def copied(data: Any) -> Any:
    """A copy of plain data; the simulation spends most of its time here, and `copy.deepcopy` takes ten times as long."""
    return marshal.loads(marshal.dumps(data))


class _Plain(dict[str, Any]):
    """A value of a patch, which jsonpatch copies by `copy.deepcopy`."""

    def __deepcopy__(self, _: object) -> Object:
        found: Object = copied(dict(self))
        return found


def dropped(before: Mapping[str, Any], now: Mapping[str, Any]) -> Object:
    """A merge patch that takes away what an earlier apply had set and this one does not."""
    found: Object = {key: None for key in before if key not in now}
    for key in before.keys() & now.keys():
        if isinstance(before[key], dict) and isinstance(now[key], dict) and (inner := dropped(before[key], now[key])):
            found[key] = inner
    return found


def merged(base: Any, patch: Any) -> Any:
    """RFC 7386 merge; server-side apply of a manifest that is ours alone comes to the same."""
    if isinstance(base, dict) and isinstance(patch, dict):
        result = {key: value for key, value in base.items() if key not in patch}
        return result | {key: merged(base.get(key), value) for key, value in patch.items() if value is not None}
    return copied(patch)


def strategic(base: Any, patch: Any) -> Any:
    """A strategic merge, as far as kubectl makes one of what is here: items of a list are known by their names or paths."""
    if isinstance(patch, dict):
        known = base if isinstance(base, dict) and patch.get("$patch") != "replace" else {}
        changed = {key: strategic(known.get(key), value) for key, value in patch.items()
                   if value is not None and not key.startswith("$")}
        return copied({key: value for key, value in known.items() if key not in patch}) | changed
    if isinstance(base, list) and isinstance(patch, list):
        for key in ("mountPath", "name"):
            if all(isinstance(each, dict) and key in each for each in (*base, *patch)):
                items = {each[key]: each for each in base}
                for each in patch:
                    items[each[key]] = strategic(items.get(each[key]), each)
                gone = {each[key] for each in patch if each.get("$patch") == "delete"}
                return [each for name, each in items.items() if name not in gone]
    return copied(patch)
