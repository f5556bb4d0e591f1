"""Whether an operator is there to do what a person asks, as far as that person may see it."""

import time
from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import version
from typing import Any

from switchover.cli.acts import Act
from switchover.cli.display import seconds
from switchover.cli.objects import Found
from switchover.kubernetes.client.api_server import ApiServer, Forbidden
from switchover.kubernetes.lease import holder_of

Resource = Mapping[str, Any]

OPERATOR = {"app.kubernetes.io/name": "switchover"}
"""The label that the chart gives everything of the operator's."""


async def operator_pods(server: ApiServer) -> Sequence[Resource]:
    """Pods of operators in the namespace, by the chart's label, or of those that serve it from another one.

    Raises Forbidden where there is none in the namespace and those of others may not be read.
    """
    here = await server.items(server.path("v1", "Pod"), OPERATOR)
    if found := [pod for pod in here if _is_operator(pod)]:
        return found
    everywhere = await server.items("/api/v1/pods", OPERATOR)
    return [pod for pod in everywhere if _is_operator(pod) and serves(pod, server.namespace)]


async def running(server: ApiServer) -> tuple[str, str] | None:
    """Namespace and name of a pod in which an operator runs that serves our namespace; None where none is seen."""
    try:
        pods = await operator_pods(server)
    except Forbidden:
        return None
    return next(((pod["metadata"]["namespace"], pod["metadata"]["name"]) for pod in pods if runs(pod)), None)


def _is_operator(pod: Resource) -> bool:
    """Not of a Job, which carries the label as well."""
    return not any(owner.get("kind") == "Job" for owner in pod["metadata"].get("ownerReferences", ()))


def serves(pod: Resource, namespace: str) -> bool:
    """Whether its variable WATCH names the namespace, or all of them."""
    watched = (variable.get("value", "") for container in pod["spec"]["containers"] for variable in container.get("env", ())
            if variable["name"] == "WATCH")
    return any(name.strip() in (namespace, "*") for each in watched for name in each.split(","))


async def operator_deployments(server: ApiServer) -> Sequence[Resource]:
    """Deployments of operators in the namespace."""
    return await server.items(server.path("apps/v1", "Deployment"), OPERATOR)


async def leases(server: ApiServer) -> Sequence[Resource]:
    """The Leases that operators hold in the namespace, wherever they run."""
    found = await server.items(server.path("coordination.k8s.io/v1", "Lease"))
    return [each for each in found if each["metadata"]["name"].startswith("switchover-")]


async def warnings(server: ApiServer, found: Found, act: Act | None = None) -> Sequence[str]:
    """What a person should know before an act (None: an approval) that an operator must carry out. Raises Unreachable."""
    pods: Sequence[Resource] = ()
    unseen = ""
    try:
        pods = await operator_pods(server)
    except Forbidden as error:
        unseen = error.message
    try:
        held = () if any(map(runs, pods)) else await leases(server)         # which fewer people may read
        deployments = await operator_deployments(server)
    except Forbidden as error:
        return (f"whether an operator runs cannot be seen: {error.message}",)
    if unseen and not at_work(found, held, time.time()):
        return (f"whether an operator runs cannot be seen: {unseen}",)
    return [*absent(found, act, pods, held, time.time()), *other_release(deployments, version("switchover"))]


def absent(found: Found, act: Act | None, pods: Sequence[Resource], held: Sequence[Resource], now: float) -> Iterator[str]:
    """That none does it: no pod of one runs in the namespace, and nobody holds the Lease for this object."""
    if at_work(found, held, now) or any(map(runs, pods)):
        return
    seen = (f"the operator's pod {pods[0]['metadata']['name']} is {state(pods[0])}" if pods else
            f"no operator is seen in namespace {found.resource['metadata']['namespace']}")
    then = "the object stays until one runs that releases it" if act is Act.ABANDON else "nothing happens until one runs"
    yield f"{seen}: your request is recorded, and {then} (switchover doctor)"


def at_work(found: Found, held: Sequence[Resource], now: float) -> bool:
    """Whether somebody renews the Lease for this object."""
    uid = found.resource["metadata"]["uid"]
    return any(holder_of(each).partition("/")[0] == uid and is_renewed(each, now) for each in held)


def other_release(deployments: Sequence[Resource], own: str) -> Iterator[str]:
    """That the operator is not of this program's release."""
    for each in deployments:
        if release(each) != own:
            yield (f"the operator is release {release(each)} and this program {own}: your request is recorded, and what the "
                   "operator does with it may differ from what is said here; take the same release")


def release(deployment: Resource) -> str:
    """That of an operator, by the chart's label."""
    return str((deployment["metadata"].get("labels") or {}).get("app.kubernetes.io/version", "unknown"))


def state(pod: Resource) -> str:
    """What its container waits for, else its phase."""
    statuses = pod.get("status", {}).get("containerStatuses", ())
    waits = next((each["state"]["waiting"].get("reason", "") for each in statuses if "waiting" in each.get("state", {})), "")
    return str(waits or pod.get("status", {}).get("phase", "Unknown"))


def runs(pod: Resource) -> bool:
    """Whether its process does, whatever it does."""
    return state(pod) == "Running"


def age(lease: Resource, now: float) -> float:
    """Seconds since it was renewed."""
    renewed = (lease.get("spec") or {}).get("renewTime")
    return now - seconds(renewed) if renewed else float("inf")


def is_renewed(lease: Resource, now: float) -> bool:
    """Whether it is held still."""
    return age(lease, now) <= lasts(lease)


def lasts(lease: Resource) -> float:
    """Seconds for which it is held once it was renewed."""
    return float((lease.get("spec") or {}).get("leaseDurationSeconds") or 0)
