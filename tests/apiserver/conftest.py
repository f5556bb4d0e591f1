"""A real API server for the tests of this directory: the sandbox's control plane alone, without a node.

The controllers run, too: ReplicaSets, Pods and claims appear, and Pods stay Pending. `SWITCHOVER_APISERVER_KUBECONFIG`
names a kubeconfig to use instead; nothing is started then.
"""

import fcntl
import os
import re
import subprocess
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
import pytest_asyncio
import yaml
from kubernetes import client, config

import printed
from patience import Patience, stretched, until
from switchover.answers.clock import WallClock
from switchover.kubernetes.client import api_server
from switchover.kubernetes.client.api_server import ApiServer, connect
from switchover.kubernetes.client.workloads import KubernetesWorkloads

Kubectl = Callable[..., Any]
May = Callable[..., bool]

ROOT = Path(__file__).parents[2]
STATE = ROOT / "build" / "apiserver-tests"
"""Of these tests alone: a control plane that someone runs from this checkout stays untouched."""
TIMED_OUT = re.compile(r"\((Gateway )?Timeout\)|request timed out|TLS handshake timeout")
"""What kubectl prints where the API server or its store took too long."""


def sandbox(command: str, *arguments: str) -> str:
    """What one of the sandbox's commands prints; its messages go to our standard error."""
    environment = {**os.environ, "SANDBOX_NODES": "0", "SANDBOX_STATE": str(STATE)}
    return subprocess.run(
        [ROOT / "sandbox" / command, *arguments], env=environment, check=True, stdout=subprocess.PIPE, text=True
    ).stdout.strip()


@pytest.fixture(scope="package")
def kubeconfig() -> Iterator[Path]:
    """The kubeconfig of the API server's administrator."""
    given = os.environ.get("SWITCHOVER_APISERVER_KUBECONFIG")
    if given:
        yield Path(given)
        return
    STATE.mkdir(parents=True, exist_ok=True)
    with (STATE / "tests.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # a second run from this checkout waits, rather than lose its server half-way
        sandbox("up")
        try:
            yield STATE / "kubeconfig"
        finally:
            sandbox("down")


@pytest.fixture(autouse=True)
def patient_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    """That a starved API server takes longer than the product grants it is no finding of these tests."""
    monkeypatch.setattr(api_server, "SECONDS_PER_CALL", stretched(30))


@pytest.fixture(scope="package")
def kubectl(kubeconfig: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs kubectl with these arguments; the test fails when kubectl does, unless check=False.

    What a starved API server has not done in its own time is applied again.
    """
    program = Path(sandbox("build", "k8s")) / "kubectl"

    def run(*arguments: str, check: bool = True, stdin: str | None = None) -> subprocess.CompletedProcess[str]:
        patience = Patience(60)
        while True:
            completed = subprocess.run(
                [program, "--kubeconfig", kubeconfig, *arguments], input=stdin, capture_output=True, text=True,
                timeout=stretched(60))
            again = completed.returncode != 0 and "apply" in arguments and TIMED_OUT.search(completed.stderr)
            if not again or patience.over:
                break
        assert completed.returncode == 0 or not check, completed.stderr
        return completed

    return run


@pytest.fixture(scope="package")
def api_client(kubeconfig: Path) -> Iterator[client.ApiClient]:
    """A client of the official library, as administrator."""
    with config.new_client_from_config(str(kubeconfig)) as api:
        yield api


@pytest.fixture(scope="package")
def may(api_client: client.ApiClient) -> May:
    """Whether somebody has a right, such as patch on statefulsets.apps: asked as by `kubectl auth can-i --as`, whose start
    costs thirty times as much."""
    reviews = client.AuthorizationV1Api(api_client)

    def answer(user: str, verb: str, resource: str, namespace: str = "") -> bool:
        kind, _, group = resource.partition(".")
        name, _, subresource = kind.partition("/")
        groups, account = ["system:authenticated"], user.split(":")
        if account[:2] == ["system", "serviceaccount"]:
            groups += ["system:serviceaccounts", f"system:serviceaccounts:{account[2]}"]
        asked = {"verb": verb, "group": group, "resource": name, "subresource": subresource, "namespace": namespace}
        review = {"spec": {"user": user, "groups": groups, "resourceAttributes": asked}}
        return bool(reviews.create_subject_access_review(review).status.allowed)

    return answer


@pytest.fixture(scope="package")
def crds(api_client: client.ApiClient, kubectl: Callable[..., object]) -> list[dict]:
    """The CRDs of crds/, applied and Established, as the API server now has them."""
    kubectl("apply", "--server-side", "-f", str(ROOT / "crds"))
    kubectl("wait", "--for=condition=Established", f"--timeout={stretched(30):.0f}s", "-f", str(ROOT / "crds"))
    extensions = client.ApiextensionsV1Api(api_client)
    names = [yaml.safe_load(path.read_text())["metadata"]["name"] for path in sorted((ROOT / "crds").glob("*.yaml"))]
    return [api_client.sanitize_for_serialization(extensions.read_custom_resource_definition(name)) for name in names]


@pytest.fixture
def namespace(api_client: client.ApiClient) -> str:
    """A namespace of this test alone; it goes with the control plane."""
    name = f"test-{uuid4().hex[:8]}"

    def is_there() -> bool:
        try:
            client.CoreV1Api(api_client).create_namespace({"metadata": {"name": name}})
        except client.ApiException as error:
            if error.status == 409:                     # made, and the answer lost
                return True
            if error.status is None or error.status < 500:
                raise
            return False
        return True

    until(is_there, f"namespace {name} is made", 60)
    return name


@pytest_asyncio.fixture
async def server(kubeconfig: Path, namespace: str) -> AsyncIterator[ApiServer]:
    """Our own connection, as administrator, in the test's namespace."""
    connected = await connect(namespace, str(kubeconfig))
    yield connected
    await connected.close()


@pytest.fixture
def workloads(server: ApiServer) -> KubernetesWorkloads:
    """What the operator reads and writes of the test's namespace."""
    return KubernetesWorkloads(server, WallClock())


@pytest.fixture
def apply(kubectl: Kubectl, namespace: str) -> Callable[..., None]:
    """Client-side apply, as a user does it."""

    def run(*manifests: dict[str, Any]) -> None:
        kubectl("-n", namespace, "apply", "-f", "-", stdin=yaml.safe_dump_all(manifests))

    return run


@pytest.fixture
def paste(kubeconfig: Path) -> Callable[..., None]:
    """Runs what was printed as it stands, by the real kubectl and helm as administrator: of several commands those of which
    `like` is a part, which must be one at least."""
    tools = Path(sandbox("build", "k8s"))

    def run(text: str, like: str = "", **environment: str) -> None:
        lines = [line for line in printed.changing(text) if like in line]
        assert lines, text
        for line in lines:
            printed.paste(line, tools, KUBECONFIG=str(kubeconfig), **environment)

    return run
