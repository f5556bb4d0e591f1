"""The commands of the runbooks that ask Kubernetes, as they stand there, on a real API server.

There are no nodes. What goes into a pod comes as far as the API server's word that the pod is on no host, which is after
flags, names of objects and containers were read.
"""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
import yaml

from apiserver.charts import CHART, NO_CRDS, program
from apiserver.finalized import MIGRATION, Finalized, Kubectl
from apiserver.test_cli import recorded
from apiserver.test_member_workloads import SCALED_OBJECTS
from patience import stretched
from runbook_commands import Command, commands
from switchover.cli.objects import CONSUMER_GROUP_MIGRATION, KAFKA_MIGRATION
from switchover.kubernetes.client.api_server import ApiServer

MANIFESTS = Path(__file__).parents[2] / "sandbox" / "manifests" / "kafka.yaml"

NAMES = {
    **{f"{of} NAME": f"{of} to-kraft" for of in ("kmig", "kafkamigration", "export", "status", "plan")},
    **{f"{of} NAME": f"{of} orders" for of in ("cgmig", "deployment")},
    "kmig/NAME": "kmig/to-kraft", "cgmig/NAME": "cgmig/orders", "controllers=NAME": "controllers=kafka-controller",
    "NAME": "kafka", "NAME:": "NAME:", "GROUP": "orders", "GROUP:": "GROUP:", "WORKLOAD": "orders", "BROKERS": "kafka",
    "deployment-WORKLOAD-before-UID8-ATTEMPT": "deployment-orders-before-12345678-1", "STATEFULSET": "kafka",
    "POD": "kafka-0", "kafka-N": "kafka-1", "CONTAINER": "kafka", "NODE": "runbooks", "SECRET": "tls", "STEP": "HandOver",
    "WHY": "CHG-1", "ADDRESS": "10.98.76.54", "UID-OF-THIS-OBJECT": "by-hand", "LABELS": "app=kafka",
    "FILE": "baseline.yaml", "DIRECTORY": "/var/lib/kafka/data", "TOPIC": "orders", "SCRIPT": "/bin/start.sh",
}
"""What a person puts in."""
OF_SECTIONS = {"BrokerDeaf": {"POD": "kafka-controller-0"}}

LOOKS = re.compile(r"kubectl (get|describe|auth can-i|rollout (history|status)) |switchover (status|export) ")
JUDGES = re.compile(r"switchover (plan|preflight) ")
"""Their exit status is what they found: that nothing answers."""
ENTERS = re.compile(r"(kubectl (logs|exec)|switchover logs) ")
NO_HOST = re.compile(r"does not have a host assigned")
FOR_EVER = re.compile(r" (--watch|-f)$")

SHOWN = {"claimed-by'": "the-uid", "jsonpath='{.data.POD}'": "node.id", "openssl": "DNS:kafka-0.kafka",
         "--show-managed": "manager: ", "ownerReferences": "owner", "DualWriteRepaired": "a quota",
         "grep switchover": "switchover-original"}
"""What a command shows that has this."""
HANDS: dict[str, tuple[str, str, str]] = {
    "switchover approve kmig/NAME": ("kmig/to-kraft", "{.spec.approvals[*].name}", "HandOver"),
    "switchover pause kmig/NAME": ("kmig/to-kraft", "{.spec.desiredState}", "Paused"),
    "switchover resume kmig/NAME": ("kmig/to-kraft", "{.spec.desiredState}", "Running"),
    "switchover rollback kmig/NAME": ("kmig/to-kraft", "{.spec.desiredState}", "RolledBack"),
    "switchover rollback cgmig/NAME": ("cgmig/orders", "{.spec.desiredState}", "RolledBack"),
    "switchover retry kmig/NAME": ("kmig/to-kraft", "{.metadata.annotations}", "/1"),
    "switchover retry cgmig/NAME": ("cgmig/orders", "{.metadata.annotations}", "/1"),
    "switchover abandon kmig/NAME": ("kmig/to-kraft", "{.metadata.uid}", ""),
    "switchover abandon cgmig/NAME": ("cgmig/orders", "{.metadata.uid}", ""),
    "kubectl delete cgmig NAME": ("cgmig/orders", "{.metadata.uid}", ""),
    "kubectl delete job": ("job/kafka", "{.metadata.uid}", ""),
    "kubectl delete pod POD": ("pod/kafka-0", "{.metadata.uid}", ""),
    "kubectl edit kmig NAME": ("kmig/to-kraft", "{.spec.gates.stepPatienceSeconds}", "902"),
    "kubectl edit kmig/NAME": ("kmig/to-kraft", "{.spec.gates.stepPatienceSeconds}", "902"),
    "kubectl edit deployment NAME": ("deployment/orders", "{.spec.template.spec.containers[0].image}", "after"),
    "kubectl edit kmig NAME --subresource=status": ("kmig/to-kraft", "{.status.clusterId}", "after"),
    "kubectl annotate statefulset BROKERS": ("statefulset/kafka", "{.metadata.annotations}", "by-hand"),
    "kubectl annotate deployment WORKLOAD": ("deployment/orders", "{.metadata.annotations}", "claimed-by"),
    "kubectl annotate kmig NAME": ("kmig/to-kraft", "{.metadata.annotations}", '"switchover.dev/abandon":"true"'),
    "kubectl annotate scaledobject NAME": ("scaledobject/kafka", "{.metadata.annotations}", ""),
    "kubectl rollout undo statefulset NAME": (
        "statefulset/kafka", "{.spec.template.spec.initContainers}", "switchover-original"),
    "kubectl rollout undo deployment NAME": ("deployment/orders", "{.spec.template.spec.containers[0].image}", ":1"),
    "kubectl scale statefulset kafka-controller": ("statefulset/kafka-controller", "{.spec.replicas}", "0"),
    "kubectl uncordon NODE": ("node/runbooks", "{.spec}", ""),
    "kubectl apply -f FILE": ("configmap/of-a-file", "{.metadata.name}", "of-a-file"),
    "kubectl patch cgmig NAME": ("cgmig/orders", "{.spec.holds}", "HandOver"),
    "kubectl patch kmig NAME --subresource status": ("kmig/to-kraft", "{.status.made}", ""),
    "kubectl patch kmig NAME --type merge --patch \\\n": ("kmig/to-kraft", "{.spec.backups.takenTime}", "20"),
    "kubectl patch kmig NAME --type merge --patch '": ("kmig/to-kraft", "{.spec.backups.skipReason}", "a test cluster"),
    "kubectl get controllerrevision REVISION --output json | jq": (
        "controllerrevision/kafka-before-switchover-1", "{.data.brokers.script}", "/opt/kafka/bin/kafka-server-start.sh"),
}
"""What changes something, by how it begins: the object, what of it is another afterwards, and what that then has."""
BEFORE = {
    "switchover resume": "kubectl patch kmig to-kraft --type merge --patch '{\"spec\":{\"desiredState\":\"Paused\"}}'",
    "switchover retry kmig": "{} kmig to-kraft".format(ENDED := "kubectl patch --subresource status --type merge --patch "
        '\'{"status":{"phase":"RolledBack","progress":{"direction":"Backward","completeTime":"2026-11-29T10:00:00Z"}}}\''),
    "switchover retry cgmig": f"{ENDED} cgmig orders",
    "kubectl rollout undo statefulset": "kubectl rollout undo statefulset kafka",
    "kubectl rollout undo deployment": "kubectl set image deployment orders app=orders:2",
    "kubectl get controllerrevision REVISION": "kubectl delete controllerrevision kafka-before-switchover-1",
}
"""What went before it."""


class Person:
    """At a shell, with kubectl, helm and switchover, in the namespace of the migrations."""

    def __init__(self, namespace: str, kubeconfig: Path, directory: Path) -> None:
        config = yaml.safe_load(kubeconfig.read_text())
        for context in config["contexts"]:
            context["context"]["namespace"] = namespace
        (directory / "kubeconfig").write_text(yaml.safe_dump(config))
        (directory / "helm").symlink_to(CHART.parent)
        self.directory, self.names = directory, {**NAMES, "NAMESPACE": namespace}
        self._environment = os.environ | {
            "PATH": f"{program().parent}:{Path(sys.executable).parent}:{os.environ['PATH']}", "COLUMNS": "200",
            "KUBECONFIG": str(directory / "kubeconfig"), "KUBE_EDITOR": "sed -i -e s/before/after/ -e s/901/902/"}

    def paste(self, text: str, seconds: float = 60) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(["timeout", str(stretched(seconds)), "bash", "-o", "pipefail", "-c", text], cwd=self.directory,
                              env=self._environment, capture_output=True, text=True, stdin=subprocess.DEVNULL)

    def does(self, text: str) -> str:
        done = self.paste(text)
        assert done.returncode == 0, f"{text}: {done.stdout}{done.stderr}"
        return done.stdout

    def puts_in(self, command: Command) -> str:
        return command.filled({**self.names, **OF_SECTIONS.get(command.section, {})})

    def applies(self, *objects: dict[str, Any]) -> None:
        (self.directory / "objects.yaml").write_text(yaml.safe_dump_all(objects))
        self.does("kubectl apply --filename objects.yaml")

    def brings_back(self, step: str = "MoveBrokers") -> None:
        """The migrations and the Job, and what is on record of them."""
        (self.directory / "migrations.yaml").write_text(yaml.safe_dump_all(MIGRATIONS))
        self.does("kubectl replace --force --filename migrations.yaml")
        for kind, name in ((KAFKA_MIGRATION, "to-kraft"), (CONSUMER_GROUP_MIGRATION, "orders")):
            status = recorded(kind)["status"]
            status["history"].append({**status["history"][-1], "reason": "DualWriteRepaired", "message": "a quota"})
            status["progress"]["step"] = step if kind is KAFKA_MIGRATION else status["progress"]["step"]
            told = {**status, "clusterId": "before", "made": [{"name": "x", "proof": "y"}],
                    "uid": self.does(f"kubectl get {kind.short} {name} --output jsonpath={{.metadata.uid}}")}
            (self.directory / "status.json").write_text(json.dumps({"status": told}))
            self.does(f"kubectl patch {kind.short} {name} --subresource status --type merge --patch-file status.json")

    def prepares(self) -> None:
        (self.directory / "migration.yaml").write_text(yaml.safe_dump(MIGRATIONS[0]))
        (self.directory / "baseline.yaml").write_text(yaml.safe_dump(of("ConfigMap", "of-a-file")))
        self.applies(*OF_A_NAMESPACE, of("Event", "left", reason="LeftBehind", message="a claim", type="Warning",
                                         involvedObject={"kind": "ConfigMap", "name": "owner",
                                                         "namespace": self.names["NAMESPACE"]}))
        self.brings_back("HandOver")
        self.does("openssl req -x509 -newkey rsa:2048 -nodes -keyout key -out certificate -subj /CN=kafka"
                  " -addext subjectAltName=DNS:kafka-0.kafka")
        self.does("kubectl create secret generic tls --from-file ssl.keystore.certificate.chain=certificate")
        owner = self.does("kubectl get configmap owner --output jsonpath={.metadata.uid}")
        owned = json.dumps({"metadata": {"ownerReferences": [
            {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner}]}})
        self.does(f"kubectl patch statefulset kafka --patch '{owned}'; kubectl patch deployment orders --patch '{owned}'")
        claimed = '{"metadata":{"annotations":{"switchover.dev/claimed-by":"the-uid"}}}'
        self.does(f"kubectl patch deployment orders --patch '{claimed}'; kubectl set image deployment orders app=before:1")
        self.does("kubectl wait --for=create pod/kafka-0 pod/kafka-1 pod/kafka-controller-0")
        self.does("kubectl patch pod kafka-0 --subresource status --patch"
                  f" '{{\"status\":{{\"podIP\":\"{NAMES['ADDRESS']}\",\"podIPs\":[{{\"ip\":\"{NAMES['ADDRESS']}\"}}]}}}}'")
        self.names["REVISION"] = self.does(
            "kubectl get controllerrevision --selector app=kafka --output jsonpath={.items[0].metadata.name}")


def of(kind: str, name: str, version: str = "v1", **fields: Any) -> dict[str, Any]:
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name, **fields.pop("metadata", {})}, **fields}


def pods(image: str, name: str = "app", **spec: Any) -> dict[str, Any]:
    labels = {"app": image, "app.kubernetes.io/name": image}
    return {"metadata": {"labels": labels}, "spec": {"containers": [{"name": name, "image": image}], **spec}}


def workload(kind: str, name: str, image: str, replicas: int, **spec: Any) -> dict[str, Any]:
    return of(kind, name, "apps/v1", spec={
        "selector": {"matchLabels": {"app": image}}, "template": pods(image), "replicas": replicas, **spec})


MIGRATIONS = (
    {**MIGRATION, "spec": {**MIGRATION["spec"], "desiredState": "Running", "gates": {"stepPatienceSeconds": 901}}},
    of("ConsumerGroupMigration", "orders", "switchover.dev/v1alpha1", spec={
        key: value for key, value in recorded(CONSUMER_GROUP_MIGRATION)["spec"].items() if key != "approvals"}),
    of("Job", "kafka", "batch/v1", spec={"template": pods("job", "rehearsal", restartPolicy="Never")}))
"""What some commands take away, with the Job; its statuses are recorded ones."""
OF_A_NAMESPACE = (
    workload("Deployment", "switchover", "switchover", 1), workload("Deployment", "orders", "shop", 0),
    workload("StatefulSet", "orders", "orders", 0, serviceName="orders"),
    of("HorizontalPodAutoscaler", "kafka", "autoscaling/v2", spec={
        "maxReplicas": 3, "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "orders"}}),
    of("ScaledObject", "kafka", "keda.sh/v1alpha1", metadata={"annotations": {"autoscaling.keda.sh/paused-replicas": "3"}}),
    of("ControllerRevision", NAMES["deployment-WORKLOAD-before-UID8-ATTEMPT"], "apps/v1", revision=1, data={}),
    of("Lease", "kafka", "coordination.k8s.io/v1", spec={"holderIdentity": "somebody"}),
    of("ConfigMap", "owner"))
OF_THE_CLUSTER = (
    SCALED_OBJECTS, of("Node", "runbooks", spec={"unschedulable": True}),
    of("StorageClass", "runbooks", "storage.k8s.io/v1", provisioner="nobody"),
    of("PersistentVolume", "runbooks", spec={"capacity": {"storage": "1Mi"}, "accessModes": ["ReadWriteOnce"],
                                             "storageClassName": "nothing", "hostPath": {"path": "/nowhere"}}),
    of("ValidatingWebhookConfiguration", "runbooks", "admissionregistration.k8s.io/v1"),
    of("MutatingWebhookConfiguration", "runbooks", "admissionregistration.k8s.io/v1"))


@pytest_asyncio.fixture
async def person(server: ApiServer, kubectl: Kubectl, namespace: str, crds: object, kubeconfig: Path, tmp_path: Path) -> Any:
    """Whose namespace has all that the runbooks speak of."""
    found = Person(namespace, kubeconfig, tmp_path)
    found.applies(*yaml.safe_load_all(MANIFESTS.read_text()), *MIGRATIONS)
    cluster = Finalized(server, kubectl, namespace)
    await cluster.live("kafka")
    await cluster.take_over()
    try:
        found.applies(*OF_THE_CLUSTER)
        found.does("kubectl wait --for=condition=Established crd/scaledobjects.keda.sh")
        found.prepares()
        yield found
    finally:
        (tmp_path / "cluster.yaml").write_text(yaml.safe_dump_all(OF_THE_CLUSTER))
        found.paste("kubectl delete --filename cluster.yaml --ignore-not-found --wait=false")
        await cluster.live("kafka")


def of_kubernetes(which: "re.Pattern[str]") -> Iterator[Command]:
    """Each text once."""
    found = {each.text: each for each in reversed(commands()) if not each.asks_kafka}
    return (each for each in found.values() if which.match(each.text))


def test_each_command_is_tried_here() -> None:
    known = re.compile("|".join((LOOKS.pattern, JUDGES.pattern, ENTERS.pattern, "switchover explain ", "helm ",
                                 *map(re.escape, HANDS))))
    assert [str(each) for each in of_kubernetes(re.compile("")) if not known.match(each.text)] == []


@pytest.mark.long
def test_what_looks_finds_something(person: Person) -> None:
    wrong = []
    for command in of_kubernetes(LOOKS):
        if hand(command) is None:
            text = person.puts_in(command)
            done = person.paste(text, 2 if FOR_EVER.search(text) else 60)
            if done.returncode not in ((0, 124) if FOR_EVER.search(text) else (0,)) or not done.stdout.strip() \
                    or any(what in command.text and shown not in done.stdout for what, shown in SHOWN.items()):
                wrong.append(f"{command}\n  {done.returncode} {done.stdout[-300:]}{done.stderr[-300:]}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.long
def test_what_goes_into_a_pod_is_understood(person: Person) -> None:
    """No node runs the pods: a log is empty, and all else is refused for want of a host."""
    wrong = []
    for command in of_kubernetes(ENTERS):
        done = person.paste(person.puts_in(command))
        if done.returncode and done.stderr.strip() and not NO_HOST.search(done.stderr):
            wrong.append(f"{command}\n  {done.returncode} {done.stdout[-300:]}{done.stderr[-300:]}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.long
def test_what_judges_says_what_it_could_not_see(person: Person) -> None:
    wrong = []
    for command in of_kubernetes(JUDGES):
        done = person.paste(person.puts_in(command))
        if done.returncode not in (1, 2, 3) or "Usage" in done.stderr or not done.stdout + done.stderr:
            wrong.append(f"{command}\n  {done.returncode} {done.stdout[-300:]}{done.stderr[-300:]}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.long
def test_what_changes_something_has_changed_it(person: Person) -> None:
    wrong = []
    for command in of_kubernetes(re.compile("")):
        if (found := hand(command)) is None:
            continue
        resource, path, wanted = found
        if re.search(r"mig|job", command.text):
            person.brings_back()
        for begin, first in BEFORE.items():
            if command.text.startswith(begin):
                person.does(first)
        look = f"kubectl get {resource} --output jsonpath='{path}' --ignore-not-found"
        before = person.does(look)
        done = person.paste(person.puts_in(command) + (" --yes" if command.text.startswith("switchover ") else ""))
        after = person.does(look)
        if done.returncode or after == before or wanted not in after:
            wrong.append(f"{command}\n  {done.returncode} {done.stdout[-300:]}{done.stderr[-300:]}\n  {before} -> {after}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.long
def test_what_the_chart_is_to_allow_comes_to_what_it_had(person: Person) -> None:
    person.does("kubectl delete deployment switchover")
    person.does(f"helm install switchover helm/switchover {' '.join(NO_CRDS)} --set image.repository=registry.example/its")
    try:
        wanted = json.loads(person.does("helm get values switchover --output json"))
        for command in of_kubernetes(re.compile("helm ")):
            person.does(command.text.replace("--namespace kafka ", f"--namespace {person.names['NAMESPACE']} "))
            key, values = re.findall(r"'allow\.(\w+)=(.*)'$", command.text)[0]
            wanted.setdefault("allow", {})[key] = json.loads(values)
            assert json.loads(person.does("helm get values switchover --output json")) == wanted
        assert len(wanted["allow"]) == 3
    finally:
        person.does("helm uninstall switchover")


def hand(command: Command) -> tuple[str, str, str] | None:
    """What it changes: by its longest beginning."""
    return HANDS[max(begins, key=len)] if (begins := [each for each in HANDS if command.text.startswith(each)]) else None
