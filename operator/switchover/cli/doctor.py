"""`switchover doctor`: whether all is there that a migration rests on, one line for each thing that was looked at."""

import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from math import isfinite
from typing import Any

from switchover.answers.errors import Refused, Unreachable
from switchover.api.meta import API_VERSION, GROUP
from switchover.cli.acts_written import who_am_i
from switchover.cli.command import Place
from switchover.cli.display import clock, is_current
from switchover.cli.explain import paths, schemas
from switchover.cli.kube import connected
from switchover.cli.objects import APPLY_CRDS, KINDS, every
from switchover.cli.operators import age, is_renewed, leases, operator_deployments, operator_pods, release, runs, state
from switchover.kubernetes.client.api_server import ApiServer, Forbidden, NotFound
from switchover.kubernetes.client.survey import KubernetesSurvey
from switchover.kubernetes.lease import holder_of

PEOPLES_RIGHTS: Mapping[tuple[str, str], tuple[str, ...]] = {
    (GROUP, kind.plural): ("get", "list", "create", "patch", "delete", "approve") for kind in KINDS} | {
    ("", "events"): ("list",), ("", "pods"): ("list",), ("", "pods/log"): ("get",)}
"""What the commands need, of whoever calls them."""


@dataclass(frozen=True, slots=True)
class Line:
    """One thing that was looked at. `good` is None where it could not be seen."""

    what: str
    good: bool | None
    text: str

    def __str__(self) -> str:
        return f"{ {True: 'ok', False: 'BAD', None: '?'}[self.good]:<4}{self.what}: {self.text}"


async def examine(place: Place) -> list[Line]:
    """Everything, whatever fails of it. Raises Refused and Unreachable where the API server does not answer at all."""
    async with connected(place) as server:
        kubernetes = await server.get("/version")
        lines = [Line("API server", True, f"{server.address}, Kubernetes {kubernetes.get('gitVersion', '?')}")]
        looks: Sequence[tuple[str, Callable[[ApiServer], Awaitable[list[Line]]]]] = (
            ("you", _you), ("CRDs", _crds), ("operator", _releases), ("operator", _pods), ("rights", _rights),
            ("leases", _leases), ("migrations", _migrations))
        for what, look in looks:
            try:
                lines += await look(server)
            except Forbidden as error:
                lines.append(Line(what, None, error.message))
            except Unreachable as error:
                lines.append(Line(what, None, str(error)))
            except (Refused, NotFound) as error:
                lines.append(Line(what, False, str(error)))
        return lines


def code(lines: Sequence[Line]) -> int:
    """0 where nothing is wrong, 1 where something is; what could not be seen is neither."""
    return 1 if any(line.good is False for line in lines) else 0


async def _you(server: ApiServer) -> list[Line]:
    return [Line("you", True, f"{await who_am_i(server)}, in namespace {server.namespace}")]


async def _crds(server: ApiServer) -> list[Line]:
    """By the schema that everybody may read, not by the objects, which need a right beyond the namespace."""
    try:
        served = await server.get(f"/openapi/v3/apis/{API_VERSION}")
    except NotFound:
        await every(server)                            # raises what says which CRDs there are
        raise
    found = {each["x-kubernetes-group-version-kind"][0]["kind"]: each
             for each in served.get("components", {}).get("schemas", {}).values()
             if each.get("x-kubernetes-group-version-kind")}
    return [_crd(kind, ours, found) for kind, ours in schemas().items()]


def _crd(kind: str, ours: Mapping[str, Any], found: Mapping[str, Any]) -> Line:
    if kind not in found:
        return Line(f"CRD {kind}", False, f"is not there: {APPLY_CRDS}")
    wanted, there = ({*paths(schema)} for schema in (ours, found[kind]))
    missing = sorted(each for each in wanted - there if not each.startswith(("metadata", "apiVersion", "kind")))
    if missing:
        few = f"{', '.join(missing[:3])}{f' and {len(missing) - 3} more' if len(missing) > 3 else ''}"
        return Line(f"CRD {kind}", False, f"is older than this program: it lacks {few}; {APPLY_CRDS}")
    return Line(f"CRD {kind}", True, "has every field that this program knows")


async def _releases(server: ApiServer) -> list[Line]:
    own = version("switchover")
    return [_release(each, own) for each in await operator_deployments(server)]


async def _pods(server: ApiServer) -> list[Line]:
    none = f"none in namespace {server.namespace}"
    try:
        pods = await operator_pods(server)
    except Forbidden as error:
        looked_at = any(is_current(each.resource) for each in await every(server))
        return [_elsewhere(none, error.message, await leases(server), time.time(), looked_at=looked_at)]
    return [_pod(each) for each in pods] or [
        Line("operator", False, f"{none}, nor one elsewhere that serves it: nothing moves until the chart is installed "
                                "here, or names this namespace in watch.namespaces")]


def _elsewhere(none: str, unseen: str, held: Sequence[Mapping[str, Any]], now: float, *, looked_at: bool) -> Line:
    """One that runs in another namespace, which may not be listed, is seen by the Leases that it renews here."""
    if any(is_renewed(each, now) for each in held):
        return Line("operator", True, f"{none}, and one elsewhere renews Leases in it")
    text = f"{none}, and one that serves it from another namespace cannot be seen: {unseen}"
    return Line("operator", None if looked_at else False, text)


def _release(deployment: Mapping[str, Any], own: str) -> Line:
    metadata, wanted = deployment["metadata"], deployment["spec"].get("replicas", 1)
    ready = deployment.get("status", {}).get("readyReplicas", 0)
    text = f"Deployment {metadata['name']}, release {release(deployment)}, {ready} of {wanted} pods ready"
    if release(deployment) != own:
        return Line("operator", None, f"{text}; this program is release {own}: take the same")
    return Line("operator", ready == wanted >= 1, text)


def _pod(pod: Mapping[str, Any]) -> Line:
    statuses = pod.get("status", {}).get("containerStatuses", ())
    restarts = sum(each.get("restartCount", 0) for each in statuses)
    text = f"pod {pod['metadata']['name']} {state(pod)}, {restarts} restarts, image {pod['spec']['containers'][0]['image']}"
    return Line("operator", runs(pod), text)


async def _rights(server: ApiServer) -> list[Line]:
    missing = await KubernetesSurvey(server, PEOPLES_RIGHTS).missing_rights(())
    if not missing:
        return [Line("rights", True, "all that the commands need")]
    return [Line("rights", None, f"you may not {', '.join(missing)}")]


async def _leases(server: ApiServer) -> list[Line]:
    return [_lease(each, time.time()) for each in await leases(server)] or [
        Line("leases", True, "none is held: nothing is under way")]


def _lease(lease: Mapping[str, Any], now: float) -> Line:
    since = age(lease, now)
    text = f"{lease['metadata']['name']} of {holder_of(lease) or 'nobody'}"
    if not is_renewed(lease, now):
        lately = f"not been renewed for {clock(since)}" if isfinite(since) else "never been renewed"
        return Line("lease", False, f"{text} has {lately}: its operator does not run, or cannot write")
    return Line("lease", True, f"{text}, renewed {clock(max(0.0, since))} ago")


async def _migrations(server: ApiServer) -> list[Line]:
    found = await every(server)
    if not found:
        return [Line("migrations", True, "none in this namespace")]
    unseen = [each.name for each in found if not is_current(each.resource)]
    if unseen:
        return [Line("migrations", False, f"no operator has looked at the present spec of {', '.join(unseen)}")]
    return [Line("migrations", True, f"{len(found)}, each with a status of its present spec")]
