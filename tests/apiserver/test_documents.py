"""The commands on the pages for users, on a real API server: in a namespace as the page has it, each block as it stands."""

import asyncio
import json
import re
from collections.abc import AsyncIterator, Callable
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
from documents import ROOT, Block, blocks, of, run
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
RELEASE = version("switchover")
LABELLED = {"name": "switchover", "labels": {"app.kubernetes.io/name": "switchover", "app.kubernetes.io/version": RELEASE}}
PLANNED = {"phase": "Planned", "progress": {"step": "Preflight", "index": 1, "total": 11, "direction": "Forward"}}
HELD = {"gate": "Approval", "verdict": "Wait", "reason": "AwaitingApproval", "subject": "Finalize", "message": "it waits"}
BY_ITSELF = {"available": True, "failure": "GroupLag", "failureStep": "Canary", "failureGate": "LagHealthy"}
PLACES: dict[str, dict[str, Any]] = {
    "MoveBrokers": {},
    "Planned": {"desiredState": "Planned", **PLANNED},
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
    settings = yaml.safe_load(kubeconfig.read_text())                                        # noqa: ASYNC240
    settings["contexts"][0]["context"]["namespace"] = namespace
    (tmp_path / "kubeconfig").write_text(yaml.safe_dump(settings))
    if place in PLACES:
        await migrations(PLACES[place], apply, change)
        others(namespace, apply)
        if "helm " not in block.script:
            operator(namespace, apply, kubectl)
    if place == "HandOver":
        finalized = Finalized(server, kubectl, namespace)
        finalized.apply(("apply",), MANIFESTS.read_text())
        await finalized.live("kafka")
        await finalized.take_over()
    if place == "Bitnami":
        apply(*bitnami())
    if place == "Demo":
        kubectl("-n", namespace, "apply", "--kustomize", str(ROOT / "sandbox" / "manifests-groups"))
    helm = "helm " in block.script or place == "Installed"
    if helm:
        await asyncio.to_thread(adopted, kubectl, namespace)
    for name in ("argocd", "shop", "bank") if not place else ():                             # which pages name
        await asyncio.to_thread(kubectl, "create", "namespace", name, check=False)
        await asyncio.to_thread(kubectl, "-n", name, "create", "configmap", "argocd-cm", check=False)
    to = ("--namespace", namespace, "--kubeconfig", str(kubeconfig))
    if place == "Installed":
        await asyncio.to_thread(charts.helm, "install", "switchover", str(charts.CHART), *INSTALL, *to)
    yield tmp_path
    if helm:
        await asyncio.to_thread(charts.helm, "uninstall", "switchover", "--ignore-not-found", *to)


async def migrations(otherwise: dict[str, Any], apply: Apply, change: Callable[..., Any]) -> None:
    """kmig/kafka and cgmig/orders, with the statuses that an operator wrote."""
    for kind, name in ((KAFKA_MIGRATION, "kafka"), (CONSUMER_GROUP_MIGRATION, "orders")):
        found = recorded(kind)
        spec, status = {**found["spec"]}, {**found["status"], **otherwise}
        spec |= {"desiredState": status.pop("desiredState", "Running")}
        spec["approvals"] = [{"name": "HandOver", "planHash": "7f3a5c21", "approver": "bob"}]
        true = dict.fromkeys(status.pop("true", ()), "True")
        status["conditions"] = [{**each, "observedGeneration": 1, "status": true.get(each["type"], each["status"])}
                                for each in status["conditions"]]
        apply({"apiVersion": "switchover.dev/v1alpha1", "kind": kind.name, "metadata": {"name": name}, "spec": spec})
        await change(kind, name, status)


def others(namespace: str, apply: Apply) -> None:
    """A group's Deployment, a Secret of ours and one of the user."""
    spec = KafkaMigrationSpec.model_validate(MIGRATION["spec"])
    (kafka,) = (each for each in yaml.safe_load_all(MANIFESTS.read_text()) if each["kind"] == "StatefulSet")
    found = brokers.find(kafka["spec"]["template"], spec.brokers[0], {"log.dirs": "/var/lib/kafka/data"})
    ours = edits.written(edits.broker(NodeMode.MIGRATION, 0, manifests.voters(spec, namespace, {}), found))
    apply(*({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "stringData": data} for name, data in (
              ("kafka-client", {"sasl.mechanism": "PLAIN"}), ("kafka-switchover", {"kafka-0": ours}))),
          deployment({"name": "orders", "annotations": {"switchover.dev/claimed-by": "uid"}}, 6))


def operator(namespace: str, apply: Apply, kubectl: Kubectl) -> None:
    """As far as it is seen here: no node runs it."""
    apply(deployment(LABELLED, 0), {"apiVersion": "v1", "kind": "Pod", "metadata": LABELLED, "spec": {
              "containers": [{"name": "operator", "image": f"localhost/operator:{RELEASE}"}]}})
    kubectl("-n", namespace, "patch", "pod", "switchover", "--subresource", "status", "--patch",
            json.dumps({"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}}))


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


@pytest.mark.parametrize(("directory", "block"), [(block, block) for block in of("api")], ids=lambda block: str(block),
                         indirect=["directory"])
async def test_it_runs_on_an_api_server(block: Block, directory: Path, namespace: str, kubectl: Kubectl) -> None:
    script = re.sub(r"(--namespace |release-namespace=)(?:kafka|switchover)\b", rf"\g<1>{namespace}", block.script)
    for placeholder, value in PLACEHOLDERS.items():
        script = re.sub(rf"\b{placeholder}\b", value, script)
    names = {namespace: "kafka", "sandbox-admin": "alice"}
    shown = await asyncio.to_thread(
        run, block, directory, script, names, KUBECONFIG=str(directory / "kubeconfig"), PATH=str(charts.program().parent))
    assert "(no change)" not in shown, shown
    if (block.marker or {}).get("place") == "Finalize":
        approved = kubectl("-n", namespace, "get", "kmig", "kafka", "--output", "jsonpath={.spec.approvals[*].name}")
        assert {*approved.stdout.split()} == {"HandOver", "Finalize"}, "what another person approved stays"
