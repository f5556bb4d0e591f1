"""One operator for more than one namespace, by the chart's own rights: what it serves, and what stays closed to it."""

import json
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
import yaml
from kubernetes import client

from apiserver import charts
from apiserver.charts import CHART, NO_CRDS
from apiserver.conftest import May
from apiserver.processes import running
from patience import stretched, until
from switchover.api.meta import API_VERSION

Kubectl = Callable[..., subprocess.CompletedProcess[str]]
CREDENTIALS = "kafka-client"
BEYOND = {"nodes", "storageclasses"}
"""What belongs to no namespace, and is done without."""
REVIEWS = {"selfsubjectaccessreviews"}
"""Its questions after its own rights."""


def migration(name: str) -> dict[str, Any]:
    """It names a Secret by CREDENTIALS."""
    return {
        "apiVersion": API_VERSION, "kind": "KafkaMigration", "metadata": {"name": name},
        "spec": {
            "zookeeper": {"connect": "zookeeper:2181"},
            "kafka": {"bootstrapServers": "kafka:9092", "credentialsRef": {"name": CREDENTIALS}},
            "brokers": [{"name": "kafka"}],
            "controllers": {"name": "kafka-controller", "storage": {"size": "1Gi"}},
        },
    }


class Company:
    """Four namespaces: `ops` has the operator, `shop` and `bank` its migrations, and `other` is nobody's business."""

    def __init__(self, kubectl: Kubectl, kubeconfig: Path, api_client: client.ApiClient, may: May, tmp_path: Path) -> None:
        self.kubectl, self.kubeconfig, self._may, self._tmp_path = kubectl, kubeconfig, may, tmp_path
        self._objects = client.CustomObjectsApi(api_client)
        mark = uuid4().hex[:8]
        self.ops, self.shop, self.bank, self.other = (f"{name}-{mark}" for name in ("ops", "shop", "bank", "other"))
        for each in (self.ops, self.shop, self.bank, self.other):
            kubectl("create", "namespace", each)

    def helm(self, verb: str, *arguments: str, check: bool = True) -> "subprocess.CompletedProcess[str]":
        return charts.helm(verb, *arguments, "--kubeconfig", str(self.kubeconfig), check=check)

    @contextmanager
    def release(self, *values: str) -> Iterator[None]:
        """The chart in `ops`."""
        settings = [word for value in values for word in ("--set", value)]
        self.helm("install", "switchover", str(CHART), "--namespace", self.ops, *NO_CRDS, *settings)
        try:
            yield
        finally:
            self.helm("uninstall", "switchover", "--namespace", self.ops)

    @property
    def account(self) -> str:
        return f"system:serviceaccount:{self.ops}:switchover"

    @contextmanager
    def operator(self) -> Iterator[Path]:
        """The operator with its own token, and told what its Deployment tells it; its log."""
        token = self.kubectl("create", "token", "switchover", "--namespace", self.ops).stdout.strip()
        content = yaml.safe_load(self.kubeconfig.read_text())
        content["users"] = [{"name": content["users"][0]["name"], "user": {"token": token}}]
        mine, log = self._tmp_path / "kubeconfig", self._tmp_path / "log"
        mine.write_text(yaml.safe_dump(content))
        deployment = self.kubectl("get", "deployment", "switchover", "--namespace", self.ops, "--output", "json").stdout
        (container,) = json.loads(deployment)["spec"]["template"]["spec"]["containers"]
        told = {each["name"]: each["value"] for each in container["env"] if each["name"] in ("WATCH", "KINDS")}
        with running(mine, self.ops, log, **told) as self.process:
            yield log

    def apply(self, namespace: str, manifest: dict[str, Any]) -> None:
        self.kubectl("apply", "--namespace", namespace, "--filename", "-", stdin=yaml.safe_dump(manifest))

    def migration(self, namespace: str, name: str) -> dict[str, Any]:
        """As it is now; asked for again and again, and so by no process."""
        found: dict[str, Any] = self._objects.get_namespaced_custom_object(
            *API_VERSION.split("/"), namespace, "kafkamigrations", name)
        return found

    def status(self, namespace: str, name: str) -> str:
        """What an operator has written; "" as long as none has looked."""
        told = self.migration(namespace, name)["status"]
        return "" if told["phase"] == "Pending" else json.dumps(told)

    def may(self, verb: str, resource: str, namespace: str) -> bool:
        return self._may(self.account, verb, resource, namespace)

    def asked(self) -> list[dict[str, Any]]:
        """The operator's requests for objects, by the audit log."""
        events = map(json.loads, self.kubeconfig.with_name("audit.log").read_text().splitlines())
        return [event for event in events
                if event["user"]["username"] == self.account and event.get("objectRef", {}).get("resource")]


@pytest.fixture
def company(kubectl: Kubectl, kubeconfig: Path, api_client: client.ApiClient, may: May, crds: object,
            tmp_path: Path) -> Company:
    return Company(kubectl, kubeconfig, api_client, may, tmp_path)


def lacks_its_secret(company: Company, namespace: str, name: str = "kafka") -> bool:
    return f"Secret {CREDENTIALS} does not exist in namespace {namespace}" in company.status(namespace, name)


def test_each_migration_is_served_in_its_own_namespace_and_reaches_no_other(company: Company) -> None:
    """Its Secret is looked for beside it alone, though the operator may read the other namespace, where one is."""
    company.kubectl("create", "secret", "generic", CREDENTIALS, "--namespace", company.bank, "--from-literal", "user=alice")
    for namespace in (company.shop, company.bank, company.other):
        company.apply(namespace, migration("kafka"))
    with company.release(f"watch.namespaces={{{company.shop},{company.bank}}}"):
        for verb, resource in [("get", "secrets"), ("list", "pods"), ("patch", "statefulsets.apps"),
                               ("list", "kafkamigrations.switchover.dev")]:
            assert company.may(verb, resource, company.shop)
            assert company.may(verb, resource, company.bank)
            assert not company.may(verb, resource, company.other)
            assert company.may(verb, resource, company.ops) == ((verb, resource) == ("list", "pods"))
        with company.operator() as log:
            until(lambda: lacks_its_secret(company, company.shop), lambda: f"shop: {log.read_text()[-2000:]}")
            until(lambda: company.status(company.bank, "kafka"), lambda: f"bank: {log.read_text()[-2000:]}")
        assert not company.status(company.other, "kafka")
        assert not lacks_its_secret(company, company.bank)
        asked = company.asked()
    refused = {event["objectRef"]["resource"] for event in asked if event["responseStatus"]["code"] == 403}
    assert refused <= BEYOND
    assert {event["objectRef"].get("namespace", company.shop) for event in asked} == {company.shop, company.bank}
    assert {event["objectRef"]["resource"] for event in asked if "namespace" not in event["objectRef"]} <= BEYOND | REVIEWS


def test_a_namespace_that_is_deleted_with_the_operator_in_it_takes_its_migrations_with_it(company: Company) -> None:
    """Kubernetes deletes a namespace's pods first, and everything else when the last has ended."""
    company.apply(company.ops, migration("kafka"))
    last = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "last", "finalizers": ["example.com/ends-slowly"]},
            "spec": {"containers": [{"name": "c", "image": "x"}]}}
    company.apply(company.ops, last)

    def held() -> bool:
        return "switchover.dev/finalizer" in company.migration(company.ops, "kafka")["metadata"].get("finalizers", ())

    company.helm("install", "switchover", str(CHART), "--namespace", company.ops, *NO_CRDS,
                 "--set", "admissionPolicies.bindApprovers=false")          # nothing of it is outside the namespace
    with company.operator() as log:
        until(held, lambda: log.read_text()[-2000:])
        company.kubectl("delete", "namespace", company.ops, "--wait=false")
        until(lambda: "deletionTimestamp" in company.kubectl("get", "pod", "last", "--namespace", company.ops, "--output",
                                                             "jsonpath={.metadata}").stdout, "its pods are deleted")
        assert held()
        company.process.terminate()                             # as the kubelet does with its pod
        company.process.wait(stretched(30))
    assert not held(), log.read_text()[-2000:]
    company.kubectl("patch", "pod", "last", "--namespace", company.ops, "--type", "merge", "--patch",
                    '{"metadata": {"finalizers": null}}')
    until(lambda: company.kubectl("get", "namespace", company.ops, check=False).returncode != 0, "it is gone", 60, pause=1)


def test_a_namespace_that_is_closed_to_it_does_not_stop_the_others(company: Company) -> None:
    for namespace in (company.shop, company.bank):
        company.apply(namespace, migration("kafka"))
    with company.release(f"watch.namespaces={{{company.shop},{company.bank}}}"):
        binding = company.kubectl("get", "rolebinding", "switchover", "--namespace", company.bank, "--output", "yaml").stdout
        company.kubectl("delete", "rolebinding", "switchover", "--namespace", company.bank)
        until(lambda: not company.may("list", "kafkamigrations.switchover.dev", company.bank), "the authorizer knows", 30)
        with company.operator() as log:
            until(lambda: lacks_its_secret(company, company.shop), lambda: f"shop: {log.read_text()[-2000:]}")
            closed = f"nothing is watched in namespace {company.bank}: this account may not list kafkamigrations"
            until(lambda: closed in log.read_text(), "it is said")
            company.apply(company.shop, migration("second"))
            until(lambda: lacks_its_secret(company, company.shop, "second"), lambda: log.read_text()[-2000:])
            assert not company.status(company.bank, "kafka")
            company.apply(company.bank, yaml.safe_load(binding))
            until(lambda: lacks_its_secret(company, company.bank), lambda: f"bank: {log.read_text()[-2000:]}")
        assert f"nothing is watched in namespace {company.shop}" not in log.read_text()


def test_all_namespaces_are_served_those_that_come_later_too(company: Company) -> None:
    company.apply(company.shop, migration("kafka"))
    with company.release("watch.all=true"), company.operator() as log:
        until(lambda: lacks_its_secret(company, company.shop), lambda: f"shop: {log.read_text()[-2000:]}")
        later = f"later-{company.ops}"
        company.kubectl("create", "namespace", later)
        company.apply(later, migration("kafka"))
        until(lambda: lacks_its_secret(company, later), lambda: f"later: {log.read_text()[-2000:]}")
        refused = {event["objectRef"]["resource"] for event in company.asked() if event["responseStatus"]["code"] == 403}
    assert refused <= BEYOND
    assert not company.may("get", "secrets", company.shop), "with the release the ClusterRole is gone"


def test_a_second_release_does_not_take_a_namespace_that_one_serves(company: Company) -> None:
    """By Helm, which takes nothing over that another release has made."""
    with company.release(f"watch.namespaces={{{company.shop}}}"):
        refused = company.helm("install", "switchover", str(CHART), "--namespace", company.other, *NO_CRDS, "--set",
                               f"watch.namespaces={{{company.shop}}}", check=False)
    assert refused.returncode != 0
    assert "exists and cannot be imported into the current release" in refused.stderr
