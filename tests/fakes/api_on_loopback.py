"""The API in memory behind HTTP on loopback, for what makes its own connections by a kubeconfig: kubectl, our program."""

import json
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import yaml
from aiohttp import web

from fakes.api_server import NAMESPACE, FakeApi, Object, Problem
from switchover.api.meta import API_VERSION
from switchover.cli.objects import Found

KINDS = {
    "v1": "Pod Secret ConfigMap Service Event PersistentVolumeClaim Node",
    "apps/v1": "StatefulSet Deployment ControllerRevision", "batch/v1": "Job", "policy/v1": "PodDisruptionBudget",
    API_VERSION: "KafkaMigration ConsumerGroupMigration"}
"""What is discovered, by group and version."""
SHORT = {"KafkaMigration": "kmig", "ConsumerGroupMigration": "cgmig"}
SCALED = ("StatefulSet", "Deployment")
MOMENTS = 1000
"""For so many, each of which `before` makes, somebody waits for something to be gone."""
VERBS = ["get", "list", "watch", "create", "patch", "update", "delete"]


class ApiOnLoopback:
    """`trouble` is the answer to everything while it is not None; `asked` has the method of each request, and `before`
    is called at each."""

    def __init__(self, api: FakeApi | None = None, before: Callable[[], None] = lambda: None) -> None:
        self.api = FakeApi(time.time) if api is None else api
        self.trouble: Problem | None = None
        self.asked: list[str] = []
        self._before = before
        self._listed: dict[tuple[str, str], Object] = {}

    def add(self, found: Found) -> None:
        """Put a migration there, as an operator has written it."""
        parts = {key: found.resource[key] for key in ("spec", "status")}
        metadata = {"creationTimestamp": found.resource["metadata"]["creationTimestamp"]}
        self.api.add(API_VERSION, found.kind.name, found.kind.plural, found.resource["metadata"]["name"],
                     metadata=metadata, **parts)

    async def answer(self, request: web.Request) -> web.StreamResponse:
        """As the API server."""
        self.asked.append(request.method)
        self._before()
        try:
            if self.trouble is not None:
                raise self.trouble
            if "watch" in request.query and "fieldSelector" in request.query:
                return await self._watch(request)
            body = await request.json() if request.can_read_body else None
            found = discovered(request.path)
            if found is None:
                found = self._serve(request.method, request.path, body, request.query, request.content_type)
            return web.json_response(found)
        except Problem as problem:
            return web.json_response(problem.status, status=problem.code)

    async def _watch(self, request: web.Request) -> web.StreamResponse:
        """Until the one object that was listed is gone, or is another: kubectl waits so for what it has deleted."""
        if "sendInitialEvents" in request.query:
            raise Problem(422, "Invalid", "lists are not streamed")
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        await response.prepare(request)
        key = request.path.rpartition("/")[2], _name(request.query)
        known = self._listed[key]
        for _ in range(MOMENTS):
            if self.api.objects.get(key, {}).get("metadata", {}).get("uid") != known["metadata"]["uid"]:
                await response.write(json.dumps({"type": "DELETED", "object": known}).encode() + b"\n")
                return response
            self._before()
        raise AssertionError(f"{key} stays")

    def _serve(self, method: str, path: str, body: Any, query: Mapping[str, str], content_type: str) -> Object:
        """Of all namespaces it has the one."""
        if path == "/apis/authentication.k8s.io/v1/selfsubjectreviews":
            return {"status": {"userInfo": {"username": "alice"}}}
        group, _, plural = path.rpartition("/")
        if not path.startswith(("/api/", "/apis/")) or not group.strip("/").count("/"):
            raise Problem(404, "NotFound", f"{path} is not here")
        if "/namespaces/" not in path and "/nodes/" not in path:
            path = f"{group}/namespaces/{NAMESPACE}/{plural}"
        whole, _, subresource = path.rpartition("/")
        if subresource == "scale":
            scaled = self.api.serve(method, whole, body, query, content_type, ours=False)
            return {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": scaled["metadata"],
                    "spec": {"replicas": scaled["spec"]["replicas"]}, "status": {"replicas": scaled["spec"]["replicas"]}}
        found_objects = self.api.serve(method, path, body, query, content_type, ours=False)
        if "items" in found_objects:
            plural, name = path.rpartition("/")[2], _name(query)
            items = [each for each in found_objects["items"] if name in ("", each["metadata"]["name"])]
            version = group.partition("/namespaces")[0].removeprefix("/apis/").removeprefix("/api/")
            kind = next((kind for kind in KINDS.get(version, "").split() if plural == f"{kind.lower()}s"), "")
            found_objects |= {"apiVersion": version, "kind": f"{kind}List", "items": items}
            if name and items:
                self._listed[plural, name] = items[0]
        return found_objects


def _name(query: Mapping[str, str]) -> str:
    return query.get("fieldSelector", "").partition("metadata.name=")[2]


def discovered(path: str) -> Object | None:
    """The discovery documents that clients ask for, None for another path."""
    _, where, version = path.partition("/apis/" if path.startswith("/apis/") else "/api/")
    if path == "/api":
        return {"kind": "APIVersions", "versions": ["v1"]}
    if path == "/apis":
        versions = {each.partition("/")[0]: {"groupVersion": each, "version": each.partition("/")[2]}
                    for each in KINDS if "/" in each}
        return {"kind": "APIGroupList", "apiVersion": "v1", "groups": [
            {"name": group, "versions": [found], "preferredVersion": found} for group, found in versions.items()]}
    if not where or version not in KINDS:
        return None
    resources = []
    for kind in KINDS[version].split():
        plural = f"{kind.lower()}s"
        resource = {"name": plural, "singularName": kind.lower(), "namespaced": kind != "Node", "kind": kind, "verbs": VERBS,
                    "shortNames": [SHORT[kind]] if kind in SHORT else []}
        scale = {"name": f"{plural}/scale", "group": "autoscaling", "version": "v1", "kind": "Scale"}
        resources += [resource] + [{**resource, **scale}] * (kind in SCALED) + [{**resource, "name": f"{plural}/status"}]
    return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": version, "resources": resources}


@asynccontextmanager
async def on_loopback(directory: Path, api: FakeApi | None = None, before: Callable[[], None] = lambda: None,
                      ) -> AsyncIterator[tuple[ApiOnLoopback, Path]]:
    """One that answers, and the kubeconfig that leads to it."""
    served = ApiOnLoopback(api, before)
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", served.answer)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    kubeconfig = directory / "kubeconfig"
    kubeconfig.write_text(yaml.safe_dump({
        "apiVersion": "v1", "kind": "Config", "current-context": "here",
        "clusters": [{"name": "here", "cluster": {"server": f"http://127.0.0.1:{runner.addresses[0][1]}"}}],
        "users": [{"name": "me", "user": {"token": "none"}}],
        "contexts": [{"name": "here", "context": {"cluster": "here", "user": "me", "namespace": NAMESPACE}}]}))
    try:
        yield served, kubeconfig
    finally:
        await runner.cleanup()
