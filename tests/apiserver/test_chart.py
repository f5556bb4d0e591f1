"""The chart on a real API server: its CRDs, its rights, and its pod under the restricted Pod Security Standard."""

import asyncio
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml
from kubernetes import client

from adapters.eventually import eventually
from apiserver import charts
from apiserver.charts import CHART, NO_CRDS
from apiserver.conftest import May
from apiserver.processes import running
from patience import Patience, stretched, until
from switchover.answers.clock import WallClock
from switchover.answers.errors import Fenced, Refused
from switchover.api.meta import API_VERSION
from switchover.cli.operators import OPERATOR
from switchover.cluster.rehearsal import replica_job
from switchover.kubernetes import launch
from switchover.kubernetes.client.api_server import ApiServer, connect
from switchover.kubernetes.client.migrations import KubernetesMigrations
from switchover.kubernetes.client.reflector import WATCHED
from switchover.kubernetes.client.survey import KubernetesSurvey
from switchover.kubernetes.client.workloads import KubernetesWorkloads
from switchover.kubernetes.workloads import JobState

Kubectl = Callable[..., subprocess.CompletedProcess[str]]
Helm = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def helm(kubeconfig: Path) -> Helm:
    """Runs the sandbox's helm; the test fails when helm does, unless check=False."""
    return partial(charts.helm, "--kubeconfig", str(kubeconfig))


@dataclass(frozen=True)
class Release:
    """The chart installed in a namespace of its own."""

    namespace: str
    account: str


def with_values(*values: str) -> pytest.MarkDecorator:
    """The release has these values set."""
    return pytest.mark.parametrize("release", [values], indirect=True, ids=" ".join)


@pytest.fixture
def release(request: pytest.FixtureRequest, helm: Helm, kubectl: Kubectl, crds: object, namespace: str) -> Iterator[Release]:
    kubectl("label", "namespace", namespace, "pod-security.kubernetes.io/enforce=restricted")
    settings = [word for value in getattr(request, "param", ()) for word in ("--set", value)]
    helm("install", "switchover", str(CHART), "--namespace", namespace, *NO_CRDS, *settings)
    yield Release(namespace, f"system:serviceaccount:{namespace}:switchover")
    helm("uninstall", "switchover", "--namespace", namespace)


def test_the_restricted_standard_admits_the_pod(release: Release, api_client: client.ApiClient) -> None:
    core = client.CoreV1Api(api_client)
    until(lambda: core.list_namespaced_pod(release.namespace).items, "a pod of the Deployment: the admission refused it", 30)
    pods = core.list_namespaced_pod(release.namespace).items
    container = pods[0].spec.containers[0]
    assert container.security_context.read_only_root_filesystem
    assert container.security_context.capabilities.drop == ["ALL"]
    assert container.resources.limits["memory"] == "256Mi"
    assert pods[0].spec.security_context.run_as_non_root


def test_it_may_no_more_and_nothing_in_another_namespace(release: Release, may: May) -> None:
    assert may(release.account, "get", "secrets", release.namespace)
    for verb, resource in [
        ("list", "secrets"),
        ("watch", "secrets"),
        ("update", "configmaps"),
        ("patch", "configmaps"),
        ("create", "pods"),
        ("create", "pods/exec"),
        ("delete", "kafkamigrations.switchover.dev"),
        ("create", "roles.rbac.authorization.k8s.io"),
        ("create", "serviceaccounts/token"),
    ]:
        assert not may(release.account, verb, resource, release.namespace), (verb, resource)
    for elsewhere in ("default", "kube-system"):
        for verb, resource in [("get", "secrets"), ("list", "pods"), ("get", "configmaps"), ("patch", "statefulsets.apps")]:
            assert not may(release.account, verb, resource, elsewhere), (verb, resource, elsewhere)


# --- the Role is exactly what the adapters use ------------------------------------------------------------------------

UNLOGGED = {("leases", verb) for verb in ("get", "create", "update", "delete")} | {
    ("events", verb) for verb in ("create", "list")}
"""Used below and refused without the right, but not in the sandbox's audit log."""
KOPF = {(plural, verb) for plural in ("kafkamigrations", "consumergroupmigrations") for verb in ("list", "watch")}
"""Kopf's watch-stream, which is not part of the adapters."""
WATCHES = {(plural, verb) for plural in WATCHED for verb in ("list", "watch")}
"""What the operator's passes look at; test_reflector.py proves that it is watched with the Role."""

GROUP: dict[str, Any] = {
    "apiVersion": API_VERSION,
    "kind": "ConsumerGroupMigration",
    "metadata": {"name": "orders"},
    "spec": {
        "group": "orders",
        "kafka": {"bootstrapServers": "kafka:9092"},
        "workloads": [{"name": "orders", "container": "app", "template": {"image": "orders:2"}}],
        "protocol": {"to": "Consumer"},
    },
}
MIGRATION: dict[str, Any] = {
    "apiVersion": API_VERSION,
    "kind": "KafkaMigration",
    "metadata": {"name": "kafka"},
    "spec": {
        "zookeeper": {"connect": "zookeeper:2181"},
        "kafka": {"bootstrapServers": "kafka:9092"},
        "brokers": [{"name": "kafka"}],
        "controllers": {"name": "kafka-controller", "storage": {"size": "1Gi"}},
    },
}


def workload(name: str) -> dict[str, Any]:
    labels = {"app": name}
    container = {
        "name": "kafka",
        "image": "localhost/switchover/kafka:3.9.2",
        "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
    }
    pod = {"securityContext": {"runAsNonRoot": True, "runAsUser": 1000, "seccompProfile": {"type": "RuntimeDefault"}}}
    return {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": name},
        "spec": {
            "serviceName": name,
            "replicas": 2,
            "podManagementPolicy": "Parallel",
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {**pod, "containers": [container]}},
        },
    }


OTHERS: tuple[dict[str, Any], ...] = (
    {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "kafka"}, "spec": {"ports": [{"port": 9093}]}},
    {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "kafka"},
        "spec": {"maxUnavailable": 1, "selector": {"matchLabels": {"app": "nothing"}}},
    },
    {
        "apiVersion": "apps/v1",
        "kind": "ControllerRevision",
        "metadata": {"name": "kafka-original"},
        "revision": 1,
        "data": {"template": {}},
    },
)


@pytest.fixture
def operators_kubeconfig(release: Release, kubectl: Kubectl, kubeconfig: Path, tmp_path: Path) -> Path:
    return with_own_token(release, kubectl, kubeconfig, tmp_path)


def with_own_token(release: Release, kubectl: Kubectl, kubeconfig: Path, tmp_path: Path) -> Path:
    """A kubeconfig with the operator's own token."""
    token = kubectl("create", "token", "switchover", "--namespace", release.namespace).stdout.strip()
    content = yaml.safe_load(kubeconfig.read_text())
    content["users"] = [{"name": content["users"][0]["name"], "user": {"token": token}}]
    mine = tmp_path / "kubeconfig"
    mine.write_text(yaml.safe_dump(content))
    return mine


async def everything(server: ApiServer) -> None:
    """Every call that the operator can make to the API server, each with effect."""
    workloads = KubernetesWorkloads(server, WallClock())
    *named, revision = OTHERS
    await workloads.provide((*named, workload("kafka")))
    await workloads.apply(revision)
    await workloads.write_node_files("kafka-nodes", {"kafka-0": "mode A"}, {})
    await workloads.node_files("kafka-nodes")
    await workloads.write_node_files("kafka-nodes", {"kafka-0": "mode B"}, {})
    await workloads.original("kafka-original")
    for other in OTHERS[:2]:
        assert await workloads.manifest(other["apiVersion"], other["kind"], other["metadata"]["name"]) is not None
    assert await KubernetesSurvey(server).stateful_sets_behind(["kafka", "nobody"]) == {"kafka": ()}
    replicas = [{"op": "replace", "path": "/spec/updateStrategy", "value": {"type": "OnDelete"}}]
    await workloads.patch("apps/v1", "StatefulSet", "kafka", replicas)
    for _ in Patience(30).looks():
        found = await workloads.stateful_set("kafka")
        if found is not None and len(found.pods) == 2:
            break
        await asyncio.sleep(0.2)
    assert found is not None
    assert await server.events("nobody", 1) == []
    first, second = (found.pods[name] for name in sorted(found.pods))
    await workloads.patch("v1", "Pod", first.name, [{"op": "test", "path": "/metadata/uid", "value": first.uid}])
    await workloads.evict(first.name, first.uid)
    await workloads.delete_pod(second.name, second.uid)
    await workloads.volume_claims({"app": "kafka"})
    assert await workloads.hold_lease("cluster", "us", 15) == "us"
    assert await workloads.hold_lease("cluster", "us", 15) == "us"
    await workloads.release_lease("cluster", "us")
    for api_version, kind, name in [
        *((other["apiVersion"], other["kind"], other["metadata"]["name"]) for other in OTHERS),
        ("apps/v1", "StatefulSet", "kafka"),
        ("v1", "PersistentVolumeClaim", "data-kafka-0"),
        ("v1", "Secret", "kafka-nodes"),
    ]:
        await workloads.delete_object(api_version, kind, name)

    await consumers(workloads)

    for kind, plural, name in (("KafkaMigration", "kafkamigrations", "kafka"),
                               ("ConsumerGroupMigration", "consumergroupmigrations", "orders")):
        migrations = KubernetesMigrations(server, WallClock(), kind, plural)
        assert await migrations.set_finalizer(name, "switchover.dev/finalizer", True)
        resource = await migrations.get(name)
        assert resource is not None
        metadata = resource["metadata"]
        await migrations.record(name, metadata["uid"], metadata["resourceVersion"], {"phase": "Running"})
        await migrations.announce(name, metadata["uid"], "Tested", "all of it", warning=False)
        await migrations.set_finalizer(name, "switchover.dev/finalizer", False)
        assert not await migrations.is_ending()


CONSUMERS = workload("orders") | {"kind": "Deployment"}
CONSUMERS["spec"] = {key: CONSUMERS["spec"][key] for key in ("replicas", "selector", "template")}


async def consumers(workloads: KubernetesWorkloads) -> None:
    """What is done to the workloads of a group; KEDA, the VPA, Argo Rollouts, OpenKruise and Strimzi are not installed."""
    await workloads.apply(workload("payments"))
    annotated = [{"op": "add", "path": "/metadata/labels", "value": {"seen": "yes"}}]
    await workloads.patch("apps/v1", "Deployment", "orders", annotated)
    for kind, name in (("Deployment", "orders"), ("StatefulSet", "payments")):
        await workloads.patch("apps/v1", kind, name, [{"op": "replace", "path": "/spec/replicas", "value": 0}], "scale")
    assert await workloads.config_map("orders-baseline") == {"baseline.json": "{}"}
    found = await workloads.member_workloads([("Deployment", "orders"), ("StatefulSet", "payments")])
    assert [each.replicas for each in found.values() if each] == [0, 0]
    assert [str(autoscaler) for each in found.values() if each for autoscaler in each.autoscalers] == [
        "HorizontalPodAutoscaler orders"]
    await workloads.patch("autoscaling/v2", "HorizontalPodAutoscaler", "orders", annotated)
    with pytest.raises(Fenced, match="is gone"):
        await workloads.patch("keda.sh/v1alpha1", "ScaledObject", "orders", annotated)
    assert await workloads.others_called(["nobody"]) == {}
    await workloads.delete_object("apps/v1", "StatefulSet", "payments")
    assert await workloads.job("orders-audit", "of none") is None
    uid = await workloads.create(launch.manifest(launch.Run("orders-audit", "audit", "pipeline:1", "{}", "pipeline")))
    audit = await workloads.job("orders-audit", uid)
    assert audit is not None
    assert (audit.name, audit.state) == ("orders-audit", JobState.RUNNING)
    (tree,) = replica_job.config_maps(audit, ["the tree"])
    await workloads.create(tree)
    await workloads.patch("batch/v1", "Job", audit.name, annotated)
    await workloads.delete_object("batch/v1", "Job", audit.name, audit.uid)


async def test_the_role_holds_what_the_adapters_use_and_no_more(
    release: Release, kubectl: Kubectl, kubeconfig: Path, operators_kubeconfig: Path
) -> None:
    for resource in (MIGRATION, GROUP):
        kubectl("apply", "--namespace", release.namespace, "--filename", "-", stdin=yaml.safe_dump(resource))
    baseline = ("orders-baseline", "--from-literal", "baseline.json={}")
    kubectl("create", "configmap", *baseline, "--namespace", release.namespace)
    claim = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "data-kafka-0"}, "spec": {
        "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}
    for made in (claim, CONSUMERS):
        kubectl("apply", "--namespace", release.namespace, "--filename", "-", stdin=yaml.safe_dump(made))
    scaler = {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": {"name": "orders"}, "spec": {
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "orders"}, "maxReplicas": 3}}
    kubectl("apply", "--namespace", release.namespace, "--filename", "-", stdin=yaml.safe_dump(scaler))
    server = await connect(release.namespace, str(operators_kubeconfig))
    try:
        await everything(server)
    finally:
        await server.close()
    rules = charts.of(charts.rendered(), "Role")["rules"]
    granted = {(resource, verb) for rule in rules for resource in rule["resources"] for verb in rule["verbs"]}
    assert granted >= WATCHES
    assert granted - KOPF - UNLOGGED - WATCHES == used(kubeconfig.with_name("audit.log"), release.account) - WATCHES


def used(log: Path, account: str) -> set[tuple[str, str]]:
    """(resource, verb) of every request of the account that was served, by the audit log.

    An apply that creates is a patch, for which the API server asks for the right to create as well. Reading nodes is
    tried and done without (they belong to no namespace).
    """
    found = set()
    for line in log.read_text().splitlines():
        event = json.loads(line)
        target = event.get("objectRef", {})
        if event["user"]["username"] != account or target.get("resource") in (None, "nodes"):
            continue
        resource = "/".join(filter(None, (target["resource"], target.get("subresource"))))
        if event["responseStatus"]["code"] < 400 or event["responseStatus"]["code"] == 404:
            found.add((resource, event["verb"]))
        if event["responseStatus"]["code"] == 201 and event["verb"] == "patch":
            found.add((resource, "create"))
    return found


async def test_preflight_sees_whether_every_right_is_there(
    release: Release, kubectl: Kubectl, operators_kubeconfig: Path
) -> None:
    server = await connect(release.namespace, str(operators_kubeconfig))
    survey = KubernetesSurvey(server)
    try:
        assert await survey.missing_rights(["kafka-switchover"]) == ()
        with pytest.raises(Refused, match=r"forbids get or list on .*storageclasses"):
            await survey.storage_classes()
        smaller = [{"op": "test", "path": "/rules/0/resources", "value": ["kafkamigrations", "consumergroupmigrations"]},
                   {"op": "remove", "path": "/rules/2"}, {"op": "remove", "path": "/rules/2"}]
        kubectl("patch", "role", "switchover", "--namespace", release.namespace, "--type", "json",
                "--patch", json.dumps(smaller))
        missing = await KubernetesSurvey(server).missing_rights(["kafka-switchover"])
        while not missing:                             # the authorizer learns of it after a moment
            await asyncio.sleep(0.1)
            missing = await KubernetesSurvey(server).missing_rights(["kafka-switchover"])
        assert missing == tuple(f"{verb} leases.coordination.k8s.io" for verb in ("get", "create", "update", "delete"))
    finally:
        await server.close()


@with_values("rbac.secrets.read={kafka-client}", "rbac.secrets.write={kafka-switchover}")
async def test_secrets_that_the_values_do_not_name_stay_closed(
    release: Release, kubectl: Kubectl, operators_kubeconfig: Path
) -> None:
    for name in ("kafka-client", "payments"):
        kubectl("create", "secret", "generic", name, "--namespace", release.namespace, "--from-literal", "user=alice")
    server = await connect(release.namespace, str(operators_kubeconfig))
    workloads, survey = KubernetesWorkloads(server, WallClock()), KubernetesSurvey(server)
    try:
        assert await workloads.client_properties("kafka-client") == {"user": "alice"}
        with pytest.raises(Refused, match=r"forbids get or list on secrets payments"):
            await workloads.client_properties("payments")
        for files in ({"kafka-0": "mode A"}, {"kafka-0": "mode B"}):
            await workloads.write_node_files("kafka-switchover", files, {})
            assert await workloads.node_files("kafka-switchover") == files
        await workloads.delete_object("v1", "Secret", "kafka-switchover")
        assert await survey.missing_rights(["kafka-switchover"]) == ()
        assert await survey.missing_rights(["other-switchover"]) == tuple(
            f"{verb} secrets other-switchover" for verb in ("get", "patch", "delete"))
    finally:
        await server.close()


@with_values("kinds={KafkaMigration}")
def test_a_kind_that_is_not_served_is_not_asked_for(
    release: Release, kubectl: Kubectl, kubeconfig: Path, operators_kubeconfig: Path, tmp_path: Path
) -> None:
    """A watch without the right would be refused, and tried again for ever."""
    kubectl("apply", "--namespace", release.namespace, "--filename", "-", stdin=yaml.safe_dump(MIGRATION))
    log = tmp_path / "log"

    def seen() -> bool:
        phase = ("kafkamigration", "kafka", "--output", "jsonpath={.status.phase}")
        return bool(kubectl("get", "--namespace", release.namespace, *phase).stdout.strip())

    with running(operators_kubeconfig, release.namespace, log, KINDS="KafkaMigration"):
        until(seen, lambda: f"the migration is seen: {log.read_text()[-2000:]}")
    events = [json.loads(line) for line in kubeconfig.with_name("audit.log").read_text().splitlines()]
    refused = {event["objectRef"]["resource"] for event in events
               if event["user"]["username"] == release.account and event["responseStatus"]["code"] == 403}
    assert refused <= {"nodes", "storageclasses"}


VERBS = ("list", "create", "patch", "delete", "approve")


def granted_to(user: str, namespace: str, may: May) -> list[str]:
    """What somebody may do with migrations, and with their status."""
    return [*(verb for verb in VERBS if may(user, verb, "kafkamigrations.switchover.dev", namespace)),
            *(["write a status"] if may(user, "patch", "kafkamigrations/status.switchover.dev", namespace) else [])]


@with_values("networkPolicy.egress=true,podDisruptionBudget.enabled=true")
def test_people_may_what_their_role_says(release: Release, kubectl: Kubectl, may: May) -> None:
    """The API server takes the network policies and the budget, too."""
    for role, granted in {"viewer": ["list"], "migrator": ["list", "create", "patch", "delete"],
                          "approver": ["list", "patch", "approve"]}.items():
        kubectl("create", "rolebinding", role, "--namespace", release.namespace, "--role", f"switchover-{role}",
                "--user", role)
        until(lambda role=role: granted_to(role, release.namespace, may), f"the authorizer knows of the {role}", 30)
        assert granted_to(role, release.namespace, may) == granted
    for kind, names in {"networkpolicies": {"switchover", "switchover-controllers"},
                        "poddisruptionbudgets": {"switchover"}}.items():
        found = kubectl("get", kind, "--namespace", release.namespace, "--output", "name").stdout.split()
        assert {each.rpartition("/")[2] for each in found} == names


@with_values("rbac.aggregate=true")
def test_kubernetes_own_roles_migrate_and_none_approves(release: Release, kubectl: Kubectl, may: May) -> None:
    for role, granted in (("view", ["list"]), ("edit", ["list", "create", "patch", "delete"]),
                          ("admin", ["list", "create", "patch", "delete"])):
        kubectl("create", "rolebinding", role, "--namespace", release.namespace, "--clusterrole", role, "--user", role)
        until(lambda role=role, last=granted[-1]: last in granted_to(role, release.namespace, may),
              f"the role {role} holds the chart's rules", 30)
        assert granted_to(role, release.namespace, may) == granted


async def test_helm_test_asks_with_the_operators_own_rights(
    release: Release, kubectl: Kubectl, helm: Helm, operators_kubeconfig: Path
) -> None:
    """The pod of `helm test` passes the restricted standard; what it runs is BAD until the operator's pod runs."""
    hooks = helm("get", "hooks", "switchover", "--namespace", release.namespace).stdout
    kubectl("apply", "--dry-run=server", "--namespace", release.namespace, "--filename", "-", stdin=hooks)
    (doctor,) = (each for each in yaml.safe_load_all(hooks) if each)
    command = [Path(sys.executable).parent / "switchover", *doctor["spec"]["containers"][0]["args"], "--namespace",
               release.namespace, "--kubeconfig", str(operators_kubeconfig)]

    async def asked() -> tuple[int, str]:
        done = await asyncio.to_thread(subprocess.run, command, capture_output=True, text=True, timeout=stretched(60))
        return done.returncode, done.stdout + done.stderr

    server = await connect(release.namespace, str(operators_kubeconfig))
    try:
        path = server.path("v1", "Pod")
        for _ in Patience(30).looks():
            pods = await server.items(path, OPERATOR)
            if pods:
                break
            await asyncio.sleep(0.2)
        code, words = await asked()
        assert code == 1, words
        assert "Pending, 0 restarts" in words
        name = pods[0]["metadata"]["name"]
        ready = {"type": "Ready", "status": "True"}
        running_now = {"status": {"phase": "Running", "conditions": [ready], "containerStatuses": [{
            "name": "operator", "image": "x", "imageID": "", "ready": True, "restartCount": 0,
            "state": {"running": {"startedAt": "2026-11-21T20:00:00Z"}}}]}}
        kubectl("patch", "pod", name, "--namespace", release.namespace, "--subresource", "status", "--type", "merge",
                "--patch", json.dumps(running_now))
        code, words = await eventually(asked, lambda answer: answer[0] == 0, 30)  # once its controller sees it, too
        assert code == 0, words
        assert f"ok  operator: pod {name} Running" in words
    finally:
        await server.close()


async def test_a_right_that_is_taken_away_is_missed_in_words(
    release: Release, kubectl: Kubectl, operators_kubeconfig: Path
) -> None:
    kubectl("delete", "rolebinding", "switchover", "--namespace", release.namespace)
    server = await connect(release.namespace, str(operators_kubeconfig))
    try:
        with pytest.raises(Refused, match=r"forbids create on .*pods x.*Allow it in the Role"):
            await KubernetesWorkloads(server, WallClock()).evict("x", "uid")
    finally:
        await server.close()
