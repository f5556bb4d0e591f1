"""The chart's optional policies and its right to read nodes, on a real API server: who may do what, in words."""

import asyncio
import json
import subprocess
from collections.abc import Awaitable, Callable, Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
import yaml
from kubernetes import client

from apiserver.charts import NO_CRDS, rendered
from apiserver.conftest import May
from apiserver.kubelet import run_as_kubelet
from apiserver.processes import running
from apiserver.test_chart import CHART, MIGRATION, Helm, Kubectl, Release, with_own_token, workload
from apiserver.test_chart import helm as helm  # the fixture
from apiserver.test_workloads import pods_of
from patience import Patience, until
from switchover.answers.clock import WallClock
from switchover.cluster.names import CLAIM
from switchover.cluster.plan import PLAN
from switchover.engine.approvals import REQUESTER
from switchover.kubernetes.client import api_server
from switchover.kubernetes.client.api_server import connect
from switchover.kubernetes.client.workloads import KubernetesWorkloads

Completed = subprocess.CompletedProcess[str]
ALL = ("admissionPolicies.guardWorkloads=true", "admissionPolicies.bindApprovers=true", "rbac.readNodes=true")
MOVING = {"planHash": "0123456789abcdef", "progress": {"step": "MoveBrokers"}}
BOT = "system:serviceaccount:ci:bot"
NAMED = "system:serviceaccount:ci:releases"
"""Named by the chart with four eyes."""
HPA = "system:serviceaccount:kube-system:horizontal-pod-autoscaler"
COLLECTOR = "system:serviceaccount:kube-system:generic-garbage-collector"


class World:
    """A namespace with a claimed StatefulSet of brokers, one of controllers, one of somebody else, and migrations, of which
    one is looked at: `migration`."""

    def __init__(self, kubectl: Kubectl, api: client.ApiClient, release: Release, *migrations: str) -> None:
        self._kubectl, self._api = kubectl, api
        self.release, self.unused = release, [*migrations]
        for name in ("kafka", "kafka-controller", "other"):
            manifest = workload(name)
            manifest["metadata"]["annotations"] = {CLAIM: "uid"} if name == "kafka" else {}
            self.run("apply", "--filename", "-", stdin=yaml.safe_dump(manifest))
        for self.migration in migrations:
            named = {**MIGRATION, "metadata": {**MIGRATION["metadata"], "name": self.migration}}
            self.run("apply", "--filename", "-", stdin=yaml.safe_dump(named))
            self.record(MOVING)

    def run(self, *arguments: str, by: str = "", stdin: str | None = None, check: bool = True,
            rights: bool = True) -> Completed:
        """kubectl in this namespace; `by` is a user with every right, whom only a policy can stop, or only with his own."""
        identity = ("--as", by, *(("--as-group", "system:masters") if rights else ()), *(
            ("--as-group", "system:serviceaccounts:kube-system") if ":kube-system:" in by else ())) if by else ()
        return self._kubectl("--namespace", self.release.namespace, *identity, *arguments, stdin=stdin, check=check)

    def _path(self, group: str, resource: str) -> str:
        return f"{self._api.configuration.host}/apis/{group}/namespaces/{self.release.namespace}/{resource}"

    def _ask(self, method: str, url: str, body: Any = None, kind: str = "merge-patch+json", by: str = "",
             rights: bool = True) -> Any:
        """What the API server answers: kubectl costs thirty times as much, and does the same."""
        headers = {"Accept": "application/json", "Content-Type": f"application/{kind}"}
        if by:
            headers |= {"Impersonate-User": by, **({"Impersonate-Group": "system:masters"} if rights else {})}
        sent = None if body is None else json.dumps(body)
        found = self._api.rest_client.pool_manager.request(method, url, headers=headers, body=sent)
        return json.loads(found.data)

    def _refused(self, url: str, body: Any, by: str, rights: bool, kind: str = "merge-patch+json") -> str:
        """The refusal of a patch; "" when it is not."""
        answer = self._ask("PATCH", url, body, kind, by, rights)
        return str(answer["message"]) if answer["kind"] == "Status" else ""

    @property
    def _migration(self) -> str:
        return self._path("switchover.dev/v1alpha1", f"kafkamigrations/{self.migration}")

    def record(self, status: dict[str, Any]) -> None:
        patch = [{"op": "add", "path": "/status", "value": status}]
        refused = self._refused(f"{self._migration}/status", patch, "", True, "json-patch+json")
        assert refused == ""

    def note(self, *names: str) -> None:
        """As the operator does."""
        self.record({**MOVING, "requesters": [*names]})

    def requesters(self) -> list[str]:
        return list(self._ask("GET", self._migration)["status"].get("requesters", []))

    def refused(self, *arguments: str, by: str = "alice", stdin: str | None = None, rights: bool = True) -> str:
        """The refusal of something that is forbidden; "" when it is not."""
        answer = self.run(*arguments, by=by, stdin=stdin, check=False, rights=rights)
        return answer.stderr if answer.returncode else ""

    def change(self, name: str, by: str = "alice") -> str:
        """Change the image of a StatefulSet, without effect."""
        patch = {"spec": {"template": {"spec": {"containers": [{"name": "kafka", "image": "x"}]}}}}
        url = self._path("apps/v1", f"statefulsets/{name}?dryRun=All")
        return self._refused(url, patch, by, True, "strategic-merge-patch+json")

    def approve(self, *approvals: dict[str, Any], by: str, rights: bool = True) -> str:
        return self.patch({"approvals": list(approvals)}, by=by, rights=rights)

    def patch(self, spec: dict[str, Any], by: str, requester: str | None = None, rights: bool = True) -> str:
        """Change the migration's spec, and name who asks for it."""
        change: dict[str, Any] = {"spec": spec}
        if requester is not None:
            change["metadata"] = {"annotations": {REQUESTER: requester}}
        return self._refused(self._migration, change, by, rights)


@pytest.fixture(scope="module")
def world(helm: Helm, kubectl: Kubectl, api_client: client.ApiClient, crds: object) -> Iterator[World]:
    namespace = "test-admission"
    kubectl("create", "namespace", namespace)
    settings = [argument for setting in ALL for argument in ("--set", setting)]
    helm("install", "switchover", str(CHART), "--namespace", namespace, *NO_CRDS, *settings)
    found = World(kubectl, api_client, Release(namespace, f"system:serviceaccount:{namespace}:switchover"), "kafka")
    within(lambda: bool(found.change("kafka")))                   # policies take effect a moment after they are there
    within(lambda: bool(found.approve({"name": "Soak", "planHash": "0123abcd", "approver": "bob"}, by="alice")))
    yield found
    helm("uninstall", "switchover", "--namespace", namespace)


def within(true: Callable[[], bool]) -> None:
    until(true, "the policy takes effect", 30, pause=1)           # which takes it seconds


# --- claimed workloads ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["kafka", "kafka-controller"])
def test_nobody_else_changes_what_is_being_moved(world: World, name: str) -> None:
    assert f"KafkaMigration kafka is moving StatefulSet {name}: only Switchover may change it now" in world.change(name)


def test_nobody_else_takes_the_claim_away(world: World) -> None:
    assert "only Switchover may change it" in world.refused("annotate", "statefulset", "kafka", f"{CLAIM}-")
    assert "only Switchover may change it" in world.refused("annotate", "statefulset", "kafka", f"{CLAIM}=me", "--overwrite")


@pytest.mark.parametrize("by", ["alice", HPA])
def test_nobody_scales_it_not_even_an_autoscaler(world: World, by: str) -> None:
    told = world.refused("scale", "statefulset", "kafka", "--replicas", "3", by=by)
    assert "only Switchover may scale it now" in told


def test_nobody_else_deletes_it(world: World) -> None:
    assert "only Switchover may delete it now" in world.refused("delete", "statefulset", "kafka", "--cascade=orphan")


def test_what_changes_no_spec_is_free(world: World) -> None:
    assert world.refused("label", "statefulset", "kafka", "tracked=yes", "--overwrite") == ""


def test_the_operator_and_kubernetes_itself_do_their_work(world: World) -> None:
    assert world.change("kafka", by=world.release.account) == ""
    delete = ("delete", "statefulset", "kafka", "--dry-run=server")
    assert world.refused(*delete, by=COLLECTOR) == ""
    assert world.refused(*delete) != ""
    found = json.loads(world.run("get", "statefulset", "kafka", "--output", "json").stdout)
    assert found["status"]["updateRevision"], "the StatefulSet controller writes the status"


def test_a_workload_of_somebody_else_is_free(world: World) -> None:
    assert world.change("other") == ""


@pytest.mark.parametrize("status", [
    {}, {"planHash": "0123456789abcdef", "progress": {"step": "HandOver"}},
    {"planHash": "0123456789abcdef", "progress": {"step": "Preflight", "completeTime": "2026-11-21T20:00:00Z"}},
], ids=["no plan on record", "handed over", "rolled back"])
def test_a_migration_that_does_not_move_it_guards_nothing(world: World, status: dict[str, Any]) -> None:
    try:
        world.record(status)
        within(lambda: world.change("kafka") == "")
    finally:
        world.record(MOVING)
        within(lambda: world.change("kafka") != "")


# --- approvals ------------------------------------------------------------------------------------------------------------


def approval(approver: str, step: str = "Finalize") -> dict[str, Any]:
    return {"name": step, "planHash": "0123456789abcdef", "approver": approver}


def test_an_approval_is_given_by_its_approver(world: World) -> None:
    told = world.approve(approval("alice"), by="mallory")
    assert "the approval of Finalize names alice as approver, but it is given by mallory" in told
    assert world.approve(approval("alice"), by="alice") == ""
    assert world.approve(approval("alice"), approval("bob", "HandOver"), by="bob") == ""      # alice's stays as it was
    assert "names alice" in world.approve({**approval("alice"), "planHash": "fedcba98"}, by="bob")
    assert "names alice" in world.approve({**approval("alice"), "reason": "CHG-2"}, by="bob")
    assert world.approve(approval("bob", "HandOver"), by="mallory") == ""                     # taking away is free
    assert world.patch({"soakSeconds": 86400}, by="alice") == ""


def test_a_resource_that_comes_with_an_approval_is_given_by_its_approver_as_well(world: World) -> None:
    manifest = deepcopy(MIGRATION)
    manifest["metadata"]["name"] = "fresh"
    manifest["spec"]["approvals"] = [approval("alice")]
    create = ("create", "--dry-run=server", "--filename", "-")
    assert "it is given by mallory" in world.refused(*create, by="mallory", stdin=yaml.safe_dump(manifest))
    assert world.refused(*create, by="alice", stdin=yaml.safe_dump(manifest)) == ""


def patience(seconds: int) -> dict[str, Any]:
    """A change that the CRD allows while a plan is on record."""
    return {"gates": {"stepPatienceSeconds": seconds}}


def test_approving_takes_a_right_of_its_own(world: World) -> None:
    """Whoever may change a migration gave the approval himself, in his own name."""
    for role in ("migrator", "approver"):
        world.run("create", "rolebinding", role, "--role", f"switchover-{role}", "--user", role)
    world.approve(by="alice")
    within(lambda: world.patch(patience(700), by="migrator", rights=False) == "")
    told = world.approve(approval("migrator"), by="migrator", rights=False)
    assert "migrator has no right to approve Finalize: the verb approve on kafkamigrations (role switchover-appro" in told
    within(lambda: world.approve(approval("approver"), by="approver", rights=False) == "")
    assert world.patch(patience(600), by="migrator", rights=False) == "", "approvals that stand are left alone"


def test_taking_a_hold_away_takes_the_same_right(world: World) -> None:
    """It lets the step begin, like an approval."""
    world.run("create", "rolebinding", "holder", "--role", "switchover-migrator", "--user", "holder")
    world.run("create", "rolebinding", "releaser", "--role", "switchover-approver", "--user", "releaser")
    within(lambda: world.patch({"holds": ["Finalize", "Soak"]}, by="holder", rights=False) == "")
    told = world.patch({"holds": ["Finalize"]}, by="holder", rights=False)
    assert "holder has no right to approve Soak, whose hold is taken away" in told
    assert world.patch({"holds": ["Soak"]}, by="holder", rights=False) == "", "Finalize is held all the same"
    assert world.patch({"holds": ["Soak", "HandOver"]}, by="holder", rights=False) == "", "adding one is free"
    within(lambda: world.patch({"holds": ["HandOver"]}, by="releaser", rights=False) == "")
    assert world.patch({"holds": ["Finalize"]}, by="alice") == ""


def test_no_service_account_lets_begin_what_cannot_be_taken_back(world: World) -> None:
    """Whoever may run a pipeline, or press a button of Argo CD, approved Finalize; and was nobody with a name."""
    for step in sorted(PLAN.final):
        told = world.approve(approval(BOT, step), by=BOT)
        assert f"{BOT} is a service account, and {step} cannot be taken back: a person approves it" in told
        assert "admissionPolicies.approvers.serviceAccounts" in told
        assert world.approve(approval("alice", step), by="alice") == ""
    assert world.approve(approval(BOT, "Soak"), by=BOT) == "", "what can be taken back it may"
    assert world.approve(approval(NAMED), by=NAMED) != "", "the chart of this release names nobody"
    assert world.patch({"holds": ["Finalize", "HandOver", "Soak"]}, by=BOT) == ""
    assert "HandOver cannot be taken back" in world.patch({"holds": ["Finalize", "Soak"]}, by=BOT)
    assert world.patch({"holds": ["Finalize", "HandOver"]}, by=BOT) == ""
    assert world.patch({"holds": ["Finalize"]}, by="alice") == ""
    world.approve(by="alice")


def test_before_there_is_a_plan_holds_may_change(world: World) -> None:
    assert world.patch({"holds": ["Finalize", "Soak"]}, by="alice") == ""
    world.run("create", "rolebinding", "planner", "--role", "switchover-migrator", "--user", "planner")
    try:
        world.record({"observedGeneration": 1})
        within(lambda: world.patch({"holds": ["Finalize"]}, by="planner", rights=False) == "")
    finally:
        world.record(MOVING)


def test_who_may_create_a_migration_may_not_bring_an_approval_with_it(world: World) -> None:
    world.run("create", "rolebinding", "creator", "--role", "switchover-migrator", "--user", "creator")
    manifest = deepcopy(MIGRATION)
    manifest["metadata"]["name"] = "fresh"
    create = ("create", "--dry-run=server", "--filename", "-")

    def refused(*approvals: dict[str, Any]) -> str:
        manifest["spec"]["approvals"] = list(approvals)
        return world.refused(*create, by="creator", stdin=yaml.safe_dump(manifest), rights=False)

    within(lambda: refused() == "")
    assert "creator has no right to approve Finalize" in refused(approval("creator"))


def test_approvals_are_bound_without_being_asked_for(helm: Helm, world: World) -> None:
    install = ("install", "other", str(CHART), *NO_CRDS, "--namespace", world.release.namespace, "--dry-run=server")
    assert f"name: {world.release.namespace}-other-switchover-approvers" in helm(*install).stdout
    assert "ValidatingAdmissionPolicy" not in helm(*install, "--set", "admissionPolicies.bindApprovers=false").stdout


# --- four eyes ------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def four_eyes(helm: Helm, kubectl: Kubectl, api_client: client.ApiClient, crds: object) -> Iterator[World]:
    namespace = "test-four-eyes"
    kubectl("create", "namespace", namespace)
    account = f"system:serviceaccount:{namespace}:switchover"
    found = World(kubectl, api_client, Release(namespace, account), *(f"before-the-policy-{number}" for number in range(5)))
    helm("install", "switchover", str(CHART), *NO_CRDS, "--namespace", namespace, "--set", "admissionPolicies.fourEyes=true",
         "--set", f"admissionPolicies.approvers.serviceAccounts={{{NAMED}}}")
    within(lambda: bool(found.refused("annotate", "kmig", found.migration, f"{REQUESTER}=nobody", "--dry-run=server")))
    yield found
    helm("uninstall", "switchover", "--namespace", namespace)


@pytest.fixture
def four(four_eyes: World) -> World:
    """A migration of before the policy, which no other test has changed: nobody is named in it."""
    four_eyes.migration = four_eyes.unused.pop()
    four_eyes.record(MOVING)
    return four_eyes


def test_nobody_approves_what_he_changed_himself(four: World) -> None:
    assert "nobody is named as who asks for this migration" in four.approve(approval("bob"), by="bob")
    told = four.patch(patience(700), by="alice")
    assert f"whoever changes the spec is named in the annotation {REQUESTER}: it must be alice" in told
    assert "it must be alice, and is bob" in four.patch(patience(700), by="alice", requester="bob")
    assert four.patch(patience(700), by="alice", requester="alice") == ""
    assert "alice has changed the spec" in four.approve(approval("alice"), by="alice")
    assert "with it alone: it stays alice" in four.patch({}, by="alice", requester="bob"), "the name cannot be handed on"
    four.note("alice")
    assert four.approve(approval("bob"), by="bob") == ""
    assert four.patch({"desiredState": "Paused"}, by="bob") == "", "whoever sees a need stops it"
    assert "alice has changed the spec" in four.approve(approval("alice"), by="alice")
    told = four.patch(patience(800), by="bob", requester="bob")
    assert "bob has changed the spec" in told, "his approval of an earlier spec would count again if he put that back"
    assert four.patch({**patience(800), "approvals": []}, by="bob", requester="bob") == ""
    assert four.patch({"holds": ["Finalize", "Soak"]}, by="bob", requester="bob") == ""
    assert "the hold on Soak stays" in four.patch({"holds": ["Finalize"]}, by="bob", requester="bob")
    four.run("annotate", "kmig", four.migration, "note=x", by=four.release.account)


def test_a_migration_is_created_in_the_name_of_who_asks_for_it(four: World) -> None:
    manifest = deepcopy(MIGRATION)
    manifest["metadata"]["name"] = "fresh"
    create = ("create", "--dry-run=server", "--filename", "-")
    assert "it must be alice" in four.refused(*create, stdin=yaml.safe_dump(manifest))
    manifest["metadata"]["annotations"] = {REQUESTER: "alice"}
    assert four.refused(*create, stdin=yaml.safe_dump(manifest)) == ""
    manifest["spec"]["approvals"] = [approval("alice")]
    assert "alice has changed the spec" in four.refused(*create, stdin=yaml.safe_dump(manifest))


def test_a_name_is_noted_before_another_takes_its_place(four: World) -> None:
    """Between two looks of the operator one could have changed the spec, and another account the name."""
    assert four.patch(patience(700), by="mallory", requester="mallory") == ""
    told = four.patch(patience(800), by=BOT, requester=BOT)
    assert "the operator has not noted yet that mallory has changed the spec (status.requesters)" in told
    assert four.patch(patience(800), by="mallory", requester="mallory") == ""
    assert four.patch({"desiredState": "Paused"}, by="bob") == "", "whoever sees a need stops it"
    four.note("mallory")
    assert four.patch(patience(900), by=BOT, requester=BOT) == ""
    assert "mallory has changed the spec" in four.approve(approval("mallory"), by="mallory")


def test_of_service_accounts_those_approve_that_the_chart_names(four: World) -> None:
    assert four.patch(patience(700), by="alice", requester="alice") == ""
    assert "is a service account" in four.approve(approval(BOT), by=BOT)
    assert four.approve(approval(NAMED), by=NAMED) == ""


def test_four_eyes_see_everybody_who_has_changed_it(four: World, kubeconfig: Path, tmp_path: Path) -> None:
    """The last one alone was seen: another account of the same person put its name there, and the way was free."""
    with running(kubeconfig, four.release.namespace, tmp_path / "log"):
        assert four.patch(patience(700), by="mallory", requester="mallory") == ""
        assert "mallory has changed the spec" in four.approve(approval("mallory"), by="mallory")
        assert "with it alone: it stays mallory" in four.patch({}, by=BOT, requester=BOT)
        within(lambda: four.requesters() == ["mallory"])
        assert four.patch(patience(800), by=BOT, requester=BOT) == ""
        assert "mallory has changed the spec" in four.approve(approval("mallory"), by="mallory")
        within(lambda: four.requesters() == ["mallory", BOT])
    assert four.approve(approval("bob"), by="bob") == ""


# --- the chart ------------------------------------------------------------------------------------------------------------


def test_reading_nodes_is_all_that_the_cluster_role_gives(world: World, may: May) -> None:
    assert may(world.release.account, "get", "nodes")
    assert not may(world.release.account, "list", "nodes")
    assert not may(world.release.account, "patch", "nodes")
    assert not may(world.release.account, "list", "pods")
    (role,) = (document for document in rendered("rbac.readNodes=true") if document["kind"] == "ClusterRole")
    assert role["rules"] == [{"apiGroups": [""], "resources": ["nodes"], "verbs": ["get"]}]


async def test_nodes_are_seen_with_the_right_and_said_to_be_unseen_without(
    world: World, kubectl: Kubectl, kubeconfig: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    operators = await connect(world.release.namespace, str(with_own_token(world.release, kubectl, kubeconfig, tmp_path)))
    admins = await connect(world.release.namespace, str(kubeconfig))
    workloads = KubernetesWorkloads(operators, WallClock())

    async def cordoned() -> bool | None:
        return (await pods_of(workloads))["kafka-0"].cordoned

    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "node-0"}, "spec": {"unschedulable": True}}
    kubectl("apply", "--filename", "-", stdin=yaml.safe_dump(node))
    try:
        await run_as_kubelet(admins, (await pods_of(workloads))["kafka-0"])
        assert await cordoned() is True
        binding = f"{world.release.namespace}-switchover-nodes"
        given = kubectl("get", "clusterrolebinding", binding, "--output", "yaml").stdout
        kubectl("delete", "clusterrolebinding", binding)
        await comes_to(cordoned, None)
        kubectl("create", "--filename", "-", stdin=given)
        assert await cordoned() is None                            # it does not ask in every pass
        monkeypatch.setattr(api_server, "ASK_AGAIN_SECONDS", 0.0)
        operators._forbidden.clear()                               # an hour later
        await comes_to(cordoned, True)
    finally:
        kubectl("delete", "node", "node-0")
        await operators.close()
        await admins.close()


async def comes_to(read: Callable[[], Awaitable[bool | None]], wanted: bool | None) -> None:
    """The API server takes a moment to learn of a right that was given or taken."""
    patience = Patience(10)
    while await read() is not wanted:
        assert not patience.over, f"after {patience} still not {wanted}"
        await asyncio.sleep(0.1)


def test_an_old_kubernetes_is_told_in_words(helm: Helm) -> None:
    answer = helm("template", "switchover", str(CHART), "--kube-version", "1.29.0", "--set", ALL[0], check=False)
    assert "admissionPolicies need Kubernetes 1.30 or newer" in answer.stderr
