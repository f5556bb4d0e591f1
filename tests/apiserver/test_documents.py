"""The commands on the pages for users, on a real API server: in a namespace as the page has it, each block as it stands."""

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
import yaml

from apiserver import charts
from apiserver.finalized import MIGRATION, Finalized
from apiserver.test_cli import change, recorded
from apiserver.test_export import MANIFESTS
from documents import ROOT, Block, blocks, run, sampled, standing_in
from switchover.api.kafka_migration import KafkaMigrationSpec, NodeMode
from switchover.cli.objects import CONSUMER_GROUP_MIGRATION, KAFKA_MIGRATION
from switchover.cluster.controllers import manifests
from switchover.cluster.door import brokers, edits
from switchover.kubernetes.client.api_server import ApiServer

__all__ = ["change"]                                    # a fixture
Kubectl = Callable[..., Any]
Apply = Callable[..., None]

INSTALL = ("--set", "image.repository=registry.example/team/switchover/operator")
PLACEHOLDERS = {"REASON": "OutOfSync", "NAME": "orders"}
NOTES = Block("helm/switchover/templates/NOTES.txt", 1, "helm get notes switchover\n", {"place": "Installed"})
RELEASE = version("switchover")
LABELLED = {"name": "switchover", "labels": {"app.kubernetes.io/name": "switchover", "app.kubernetes.io/version": RELEASE}}
HELD = {"gate": "Approval", "verdict": "Wait", "reason": "AwaitingApproval", "subject": "Finalize", "message": "it waits"}
BY_ITSELF = {"available": True, "failure": "GroupLag", "failureStep": "Canary", "failureGate": "LagHealthy"}
PLACES: dict[str, dict[str, Any]] = {
    "MoveBrokers": {},
    "Planned": {"desiredState": "Planned", "phase": "Planned", "progress": {"step": "Preflight", "direction": "Forward"}},
    "Finalize": {"phase": "AwaitingApproval", "waitingFor": [HELD]},
    "RolledBack": {"phase": "RolledBack", "rollback": BY_ITSELF, "progress": {
        "step": "Preflight", "direction": "Backward", "completeTime": "2026-11-29T10:00:00Z"}},
    "HandOver": {"progress": {"step": "HandOver"}},
    "Succeeded": {"phase": "Succeeded", "true": ("Ready", "AwaitingApproval")},
}
"""What the objects of tests/unit/last_release, recorded in the middle of a batch, have otherwise; `true`: conditions."""


def files(page: str) -> dict[str, str]:
    """What the commands of a page read: as it shows them, or else as examples/ has them."""
    found = {"migration.yaml": (ROOT / "examples/kubectl/kafka-migration.yaml").read_text(),
             "orders.yaml": (ROOT / "examples/kubectl/consumer-group-migration.yaml").read_text(),
             "FILE": "https://hooks.example/T0"}
    for language, mark, name in (("yaml", "kind: KafkaMigration", "migration.yaml"), ("yaml", "# pipeline", "pipeline.yaml"),
                                 ("properties", "", "application.properties")):
        shown = [block.text for block in blocks(language) if block.page == page and mark in block.text]
        found |= {name: shown[0]} if shown else {}
    return found


@pytest_asyncio.fixture
async def directory(request: pytest.FixtureRequest, crds: object, namespace: str, kubectl: Kubectl, kubeconfig: Path,
                    server: ApiServer, apply: Apply, change: Callable[..., Any], tmp_path: Path) -> AsyncIterator[Path]:
    """Where a person stands who reads the page; the namespace of their context is the test's."""
    block: Block = request.param
    place = (block.marker or {}).get("place", "")
    for name, text in files(block.page).items():
        (tmp_path / name).write_text(text)
    standing_in(namespace, kubeconfig, tmp_path)
    helm = "helm " in block.script or place == "Installed"
    if place in PLACES:
        made = [*migrations(PLACES[place])]
        more = [*(others(namespace) if place != "HandOver" else ()), *(() if helm else operator())]
        apply(*(each for _, each in made), *more)
        for kind, each in made:
            await change(kind, each["metadata"]["name"], each["status"])
        if not helm:
            running = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
            path = f"{server.path('v1', 'Pod', 'switchover')}/status"
            await server.json_patch(path, [{"op": "add", "path": "/status", "value": running}])
    if place == "HandOver":
        finalized = Finalized(server, kubectl, namespace)
        finalized.apply(("apply",), MANIFESTS.read_text())
        await finalized.live("kafka")
        await finalized.take_over()
    if place == "Bitnami":
        apply(*bitnami())
    if place == "Demo":
        kubectl("-n", namespace, "apply", "--kustomize", str(ROOT / "sandbox" / "manifests-groups"))
    if helm:
        await asyncio.to_thread(adopted, kubectl, namespace)
    for name in ("argocd", "shop", "bank"):
        if name in block.script:
            kubectl("create", "namespace", name, check=False)
            kubectl("-n", name, "create", "configmap", "argocd-cm", check=False)
    to = ("--namespace", namespace, "--kubeconfig", str(kubeconfig))
    if place == "Installed":
        await asyncio.to_thread(charts.helm, "install", "switchover", str(charts.CHART), *INSTALL, *to)
    yield tmp_path
    if helm:
        await asyncio.to_thread(charts.helm, "uninstall", "switchover", "--ignore-not-found", *to)


def migrations(otherwise: dict[str, Any]) -> Iterator[tuple[Any, dict[str, Any]]]:
    """Of each kind one, with the status that an operator wrote."""
    true = dict.fromkeys(otherwise.get("true", ()), "True")
    for kind, name in ((KAFKA_MIGRATION, "kafka"), (CONSUMER_GROUP_MIGRATION, "orders")):
        found = recorded(kind)
        status = {**found["status"], **{field: value for field, value in otherwise.items() if field in found["status"]}}
        status["conditions"] = [{**each, "observedGeneration": 1, "status": true.get(each["type"], each["status"])}
                                for each in status["conditions"]]
        approved = {"name": "HandOver", "planHash": "7f3a5c21", "approver": "bob"}
        yield kind, {
            "apiVersion": "switchover.dev/v1alpha1", "kind": kind.name, "status": status,
            "metadata": {"name": name, "finalizers": found["metadata"]["finalizers"]},
            "spec": {**found["spec"], "desiredState": otherwise.get("desiredState", "Running"), "approvals": [approved]}}


def others(namespace: str) -> Iterator[dict[str, Any]]:
    """A group's Deployment, a Secret of ours and one of the user."""
    spec = KafkaMigrationSpec.model_validate(MIGRATION["spec"])
    (kafka,) = (each for each in yaml.safe_load_all(MANIFESTS.read_text()) if each["kind"] == "StatefulSet")
    settings = {"log.dirs": "/var/lib/kafka/data", "inter.broker.protocol.version": "3.9"}
    found = brokers.find(kafka["spec"]["template"], spec.brokers[0], settings)
    ours = edits.written(edits.broker(NodeMode.MIGRATION, 0, manifests.voters(spec, namespace, {}), found))
    for name, data in (("kafka-client", {"sasl.mechanism": "PLAIN"}), ("kafka-switchover", {"kafka-0": ours})):
        yield {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "stringData": data}
    yield deployment({"name": "orders", "annotations": {"switchover.dev/claimed-by": "uid"}}, 6)


def operator() -> Iterator[dict[str, Any]]:
    """As far as it is seen here: no node runs it."""
    container = {"name": "operator", "image": f"localhost/operator:{RELEASE}"}
    yield deployment(LABELLED, 0)
    yield {"apiVersion": "v1", "kind": "Pod", "metadata": LABELLED, "spec": {"containers": [container]}}


def deployment(metadata: dict[str, Any], replicas: int) -> dict[str, Any]:
    name = metadata["name"]
    template = {"metadata": {"labels": {"app": name}}, "spec": {"containers": [{"name": "app", "image": "localhost/app:1"}]}}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": {
        "replicas": replicas, "selector": {"matchLabels": {"app": name}}, "template": template}}


def bitnami() -> list[dict[str, Any]]:
    """As far as the page's commands name them: the chart's ZooKeeper, and controllers made of its brokers."""
    container = {"name": "kafka-init", "image": "localhost/kafka:1"}
    return [{"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {
        "name": name, "labels": {"app.kubernetes.io/name": label}}, "spec": {
        "serviceName": name, "replicas": 1, "selector": {"matchLabels": {"app": name}}, "template": {
            "metadata": {"labels": {"app": name}}, "spec": {
                "initContainers": [container], "containers": [{**container, "name": "kafka"}]}}}}
        for name, label in (("kafka-zookeeper", "zookeeper"), ("kafka-kraft", "kafka"))]


def adopted(kubectl: Kubectl, namespace: str) -> None:
    """The CRDs of all these tests are this release's for a while."""
    names = [yaml.safe_load(path.read_text())["metadata"]["name"] for path in (ROOT / "crds").glob("*.yaml")]
    kubectl("label", "--overwrite", "crd", *names, "app.kubernetes.io/managed-by=Helm")
    kubectl("annotate", "--overwrite", "crd", *names, "meta.helm.sh/release-name=switchover",
            f"meta.helm.sh/release-namespace={namespace}")


def ran(block: Block, directory: Path, script: str, namespace: str) -> str:
    names, path = {namespace: "kafka", "sandbox-admin": "alice"}, str(charts.program().parent)
    return run(block, directory, script, names, KUBECONFIG=str(directory / "kubeconfig"), PATH=path)


@pytest.mark.parametrize("directory", [NOTES], ids=str, indirect=True)
async def test_what_the_chart_says_after_an_install_runs(directory: Path, namespace: str, kubeconfig: Path) -> None:
    to = ("--namespace", namespace, "--kubeconfig", str(kubeconfig))
    notes = (await asyncio.to_thread(charts.helm, "get", "notes", "switchover", *to)).stdout
    commands = [line.strip() for line in notes.splitlines() if line.startswith("  kubectl ")]
    assert [command.split()[3] for command in commands] == ["apply", "get", "create"]
    await asyncio.to_thread(ran, NOTES, directory, "\n".join(commands), namespace)


@pytest.mark.parametrize("directory", sampled("api"), indirect=True)
async def test_it_runs_on_an_api_server(
        request: pytest.FixtureRequest, directory: Path, namespace: str, kubectl: Kubectl) -> None:
    block: Block = request.node.callspec.params["directory"]
    script = re.sub(r"(--namespace |release-namespace=)(?:kafka|switchover|demo)\b", rf"\g<1>{namespace}", block.script)
    for placeholder, value in PLACEHOLDERS.items():
        script = re.sub(rf"\b{placeholder}\b", value, script)
    shown = await asyncio.to_thread(ran, block, directory, script, namespace)
    assert "(no change)" not in shown, shown
    if (block.marker or {}).get("place") == "Finalize":
        approved = kubectl("-n", namespace, "get", "kmig", "kafka", "--output", "jsonpath={.spec.approvals[*].name}")
        assert {*approved.stdout.split()} == {"HandOver", "Finalize"}, "what another person approved stays"


def test_the_chart_takes_the_values_on_the_pages(tmp_path: Path) -> None:
    shown = [values for block in blocks("yaml") for values in yaml.safe_load_all(block.text)
             if values.keys() <= {"watch", "notifications"}]
    assert len(shown) == 3
    for values in shown:
        (tmp_path / "values.yaml").write_text(yaml.safe_dump(values))
        charts.helm("template", "switchover", str(charts.CHART), *INSTALL, "--values", str(tmp_path / "values.yaml"))
