"""What Preflight asks of a real API server: who wrote what, budgets, rights, classes, a dry run; and our cures cure."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import yaml

from apiserver.kubelet import run_as_kubelet
from patience import Patience
from switchover.answers.errors import Fenced, Refused
from switchover.api.kafka_migration import NodeMode as Mode
from switchover.api.status import Verdict as Outcome
from switchover.cluster import names, template
from switchover.cluster.gates.ending import check_zookeeper_unused
from switchover.cluster.gates.workloads import check_no_pod_would_restart, check_replicas_unchanged, check_template_is_ours
from switchover.cluster.picture import Picture
from switchover.cluster.preflight.brokers import find_wrong_versions
from switchover.cluster.preflight.configuration import find_budgets
from switchover.cluster.preflight.objects import find_budgets_in_the_way, find_missing_objects
from switchover.cluster.preflight.ownership import find_other_owners
from switchover.engine.gate import Verdict
from switchover.kubernetes import gitops
from switchover.kubernetes.client.api_server import ApiServer
from switchover.kubernetes.client.survey import KubernetesSurvey
from switchover.kubernetes.client.workloads import KubernetesWorkloads
from switchover.kubernetes.ports import GroupMigration
from switchover.kubernetes.workloads import Workload
from unit.pictures import moment, spec_of, spoil, spoil_each, spoil_workload

Kubectl = Callable[..., Any]
LABELS = {"app": "kafka"}
BROKERS = spec_of().brokers[0]


def stateful_set(**annotations: str) -> dict[str, Any]:
    """The user's manifest, as it lies in Git."""
    container = {"name": "kafka", "image": "localhost/kafka:1",
                 "volumeMounts": [{"name": "config", "mountPath": "/etc/kafka"}]}
    volumes = [{"name": "config", "configMap": {"name": "kafka-config"}}]
    return {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": "kafka", "labels": {"kustomize.toolkit.fluxcd.io/name": "kafka"}, "annotations": annotations},
        "spec": {
            "serviceName": "kafka", "replicas": 2, "podManagementPolicy": "Parallel", "selector": {"matchLabels": LABELS},
            "updateStrategy": {"type": "RollingUpdate"},
            "template": {"metadata": {"labels": LABELS}, "spec": {"containers": [container], "volumes": volumes}},
        },
    }


@pytest.fixture
def survey(server: ApiServer) -> KubernetesSurvey:
    return KubernetesSurvey(server)


@pytest.fixture
def run(kubectl: Kubectl, namespace: str) -> Callable[..., Any]:
    """kubectl in the test's namespace; a manifest goes to its standard input."""

    def run(*arguments: str, manifest: Any = None, check: bool = True) -> Any:
        text = yaml.safe_dump(manifest) if manifest is not None else None
        return kubectl("--namespace", namespace, *arguments, stdin=text, check=check)

    return run


async def read(workloads: KubernetesWorkloads) -> Workload:
    found = await workloads.stateful_set("kafka")
    assert found is not None
    return found


async def take_over(workloads: KubernetesWorkloads) -> None:
    operations = template.patch(await read(workloads), BROKERS)
    await workloads.patch("apps/v1", "StatefulSet", "kafka", operations)
    assert template.is_ours(await read(workloads), BROKERS)


def judged(workload: Workload, namespace: str) -> Verdict:
    return check_template_is_ours(in_the_middle(workload, namespace))


def in_the_middle(workload: Workload, namespace: str) -> Picture:
    picture = spoil(moment("MoveBrokers", (Mode.KRAFT, Mode.MIGRATION), Mode.MIGRATION_CONTROLLER), "kubernetes",
                    brokers={"kafka": workload})
    return replace(picture, namespace=namespace)


async def test_marks_and_writers_of_a_fresh_object(workloads: KubernetesWorkloads, run: Callable[..., Any]) -> None:
    run("apply", "-f", "-", manifest=stateful_set(secret="kept here"))
    found = await read(workloads)
    assert found.marks == {"kustomize.toolkit.fluxcd.io/name": "kafka"}, "no other annotation leaves the adapter"
    writer = gitops.last_writer(found, ("mounts",))
    assert writer is not None
    assert (writer.name, writer.operation) == ("kubectl-client-side-apply", "Update")
    assert writer.parts == {"volumes", "mounts", "strategy", "replicas", "image of kafka"}
    assert (found.owner, found.claim_templates) == ("", ())


@pytest.mark.parametrize("who", ["git", "a person"])
async def test_flux_leaves_alone_what_git_says_to_make_once(
    workloads: KubernetesWorkloads, run: Callable[..., Any], namespace: str, who: str
) -> None:
    """What somebody annotates by hand is not in Git, and Flux looks there alone."""
    once = {gitops.FLUX_SSA: "IfNotPresent"}
    run("apply", "--server-side", "--field-manager", "kustomize-controller", "-f", "-",
        manifest=stateful_set(**(once if who == "git" else {})))
    if who != "git":
        run("annotate", "statefulset", "kafka", f"{gitops.FLUX_SSA}=IfNotPresent")
    tool = gitops.tool_of(await read(workloads), namespace)
    assert tool is not None
    assert tool.quiet is (who == "git")


async def test_an_autoscaler_is_seen_by_the_scale_subresource(
    workloads: KubernetesWorkloads, run: Callable[..., Any]
) -> None:
    run("apply", "-f", "-", manifest=stateful_set())
    run("scale", "statefulset", "kafka", "--replicas", "3")
    scaled = [manager for manager in (await read(workloads)).managers if manager.subresource == "scale"]
    assert [manager.parts for manager in scaled] == [{"replicas"}]


@pytest.mark.case("RevertedByGitOps")
@pytest.mark.parametrize("how", ["client-side", "server-side"])
async def test_a_revert_is_named_and_the_printed_commands_undo_it(
    workloads: KubernetesWorkloads, run: Callable[..., Any], paste: Callable[..., None], namespace: str, how: str
) -> None:
    flux = ("--server-side", "--force-conflicts", "--field-manager", "kustomize-controller")
    manager = "kubectl-client-side-apply" if how == "client-side" else "kustomize-controller"
    options = () if how == "client-side" else flux
    run("apply", *options, "-f", "-", manifest=stateful_set())
    await take_over(workloads)
    run("apply", *options, "-f", "-", manifest=stateful_set(again="yes"))
    changed = await read(workloads)
    verdict = judged(changed, namespace)
    assert verdict.reason == "RevertedByGitOps"
    assert verdict.message.startswith(f"{manager} ("), verdict.message
    paste(verdict.unblocks)
    healed = await read(workloads)
    assert template.changed_back(healed, BROKERS) == ()
    assert gitops.tool_of(healed, namespace) is not None
    assert gitops.tool_of(healed, namespace).quiet


# --- what is asked in Preflight alone -----------------------------------------------------------------------------------


async def test_a_dry_run_changes_nothing_and_tells_what_would_be(
    workloads: KubernetesWorkloads, survey: KubernetesSurvey, run: Callable[..., Any]
) -> None:
    run("apply", "-f", "-", manifest=stateful_set())
    before = await read(workloads)
    operations = template.patch(before, BROKERS)
    change = await survey.try_patch("StatefulSet", "kafka", operations)
    after = replace(before, template=change.template, update_strategy=change.update_strategy)
    assert template.changed_back(after, BROKERS) == ()
    assert (await read(workloads)).template == before.template
    await workloads.patch("apps/v1", "StatefulSet", "kafka", operations)
    with pytest.raises(Fenced):
        await survey.try_patch("StatefulSet", "kafka", operations)


async def test_a_policy_refuses_in_its_own_words(
    workloads: KubernetesWorkloads, survey: KubernetesSurvey, run: Callable[..., Any], kubectl: Kubectl, namespace: str
) -> None:
    run("apply", "-f", "-", manifest=stateful_set())
    policy, binding = refuse_on_delete(namespace)
    kubectl("apply", "-f", "-", stdin=yaml.safe_dump_all([policy, binding]))
    operations = template.patch(await read(workloads), BROKERS)
    try:
        assert "brokers are rolled by Kubernetes here" in await refusal(survey, operations)
    finally:
        kubectl("delete", "-f", "-", stdin=yaml.safe_dump_all([policy, binding]))


async def refusal(survey: KubernetesSurvey, operations: Any) -> str:
    """The words of a refusal; the API server learns of a policy after a moment."""
    for _ in Patience(30).looks():
        try:
            await survey.try_patch("StatefulSet", "kafka", operations)
        except Refused as refused:
            return str(refused)
        await asyncio.sleep(0.1)
    return ""


def refuse_on_delete(namespace: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """A policy of the platform team, and its binding to one namespace."""
    version, name = "admissionregistration.k8s.io/v1", f"no-on-delete-{namespace}"
    rule = {"apiGroups": ["apps"], "apiVersions": ["v1"], "operations": ["UPDATE"], "resources": ["statefulsets"]}
    return (
        {"apiVersion": version, "kind": "ValidatingAdmissionPolicy", "metadata": {"name": name}, "spec": {
            "matchConstraints": {"resourceRules": [rule]},
            "validations": [{"expression": "object.spec.updateStrategy.type != 'OnDelete'",
                             "message": "brokers are rolled by Kubernetes here"}]}},
        {"apiVersion": version, "kind": "ValidatingAdmissionPolicyBinding", "metadata": {"name": name}, "spec": {
            "policyName": name, "validationActions": ["Deny"], "matchResources": {
                "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}}}}},
    )


async def test_objects_in_the_way_are_told_with_whose_they_are(survey: KubernetesSurvey, run: Callable[..., Any]) -> None:
    run("create", "service", "clusterip", "kafka-controller", "--tcp", "9093")
    labels = {"app.kubernetes.io/managed-by": "switchover"}
    run("apply", "-f", "-", manifest={"apiVersion": "v1", "kind": "Secret", "metadata": {
        "name": "kafka-switchover", "labels": labels}})
    found = await survey.managers_of([
        ("v1", "Service", "kafka-controller"), ("v1", "Secret", "kafka-switchover"),
        ("policy/v1", "PodDisruptionBudget", "kafka-controller")])
    assert found == {"Service kafka-controller": "", "Secret kafka-switchover": "switchover"}


async def test_the_stateful_sets_behind_a_service(survey: KubernetesSurvey, run: Callable[..., Any]) -> None:
    for name, storage in (("pzoo", "persistent"), ("zoo", "regional"), ("kafka", "")):
        labels = {"app": "kafka"} if name == "kafka" else {"app": "zookeeper", "storage": storage}
        manifest = stateful_set()
        manifest["metadata"] = {"name": name}
        manifest["spec"] |= {"replicas": 0, "selector": {"matchLabels": labels}, "template": {
            "metadata": {"labels": labels}, "spec": {"containers": [{"name": name, "image": "localhost/zookeeper:1"}]}}}
        run("apply", "-f", "-", manifest=manifest)
    for name, selector in (("zookeeper", {"app": "zookeeper"}), ("pzoo", {"app": "zookeeper", "storage": "persistent"}),
                           ("pinned", {"statefulset.kubernetes.io/pod-name": "zoo-1"}), ("outside", {})):
        run("apply", "-f", "-", manifest={"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": {
            "ports": [{"port": 2181}], **({"selector": selector} if selector else {})}})
    assert await survey.stateful_sets_behind(["zookeeper", "pzoo", "pinned", "outside", "nobody"]) == {
        "zookeeper": ("pzoo", "zoo"), "pzoo": ("pzoo",), "pinned": ("zoo",), "outside": ()}


async def test_migrations_that_take_groups_from_zookeeper_to_kafka(
    survey: KubernetesSurvey, run: Callable[..., Any], crds: list[dict[str, Any]]
) -> None:
    for name, group, change in (
        ("a", "orders", {"coordination": {"to": "Kafka"}}), ("b", "orders", {"coordination": {"to": "Kafka"}}),
        ("back", "orders", {"coordination": {"to": "ZooKeeper"}}), ("pay", "pay", {"protocol": {"to": "Consumer"}}),
    ):
        zookeeper = {"zookeeper": {"connect": "zookeeper:2181"}} if "coordination" in change else {}
        run("apply", "-f", "-", manifest={
            "apiVersion": "switchover.dev/v1alpha1", "kind": "ConsumerGroupMigration", "metadata": {"name": name}, "spec": {
                "group": group, "kafka": {"bootstrapServers": "kafka:9092"}, **zookeeper, **change,
                "workloads": [{"name": "orders", "container": "app", "template": {"image": "orders:2"}}]}})
    run("patch", "cgmig", "a", "--subresource", "status", "--type", "merge", "--patch", '{"status":{"phase":"Running"}}')
    assert await survey.group_migrations() == {"orders": (GroupMigration("a", "Running"), GroupMigration("b", "Pending"))}


async def test_storage_classes_and_those_that_bound_claims_use(
    survey: KubernetesSurvey, server: ApiServer, run: Callable[..., Any], kubectl: Kubectl, namespace: str
) -> None:
    name = f"fast-{namespace}"
    kubectl("apply", "-f", "-", stdin=yaml.safe_dump({
        "apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "provisioner": "example.org/none",
        "metadata": {"name": name, "annotations": {"storageclass.kubernetes.io/is-default-class": "true"}}}))
    try:
        classes = await survey.storage_classes()
        assert name in classes.existing
        assert classes.default == name
        claim = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "data-kafka-0"}, "spec": {
            "accessModes": ["ReadWriteOnce"], "storageClassName": name, "resources": {"requests": {"storage": "1Gi"}}}}
        run("apply", "-f", "-", manifest=claim)
        assert await survey.classes_in_use() == frozenset(), "a claim that is not bound proves nothing"
        path = server.path("v1", "PersistentVolumeClaim", "data-kafka-0", "status")
        await server.json_patch(path, [{"op": "add", "path": "/status", "value": {"phase": "Bound"}}])
        assert await survey.classes_in_use() == {name}
    finally:
        kubectl("delete", "storageclass", name)


@pytest.mark.case("SeveralBudgets")
async def test_a_budget_of_the_whole_namespace_lets_the_controllers_go_by_the_command_that_is_printed(
        workloads: KubernetesWorkloads, run: Callable[..., Any], paste: Callable[..., None], namespace: str) -> None:
    run("apply", "-f", "-", manifest=stateful_set())
    run("apply", "-f", "-", manifest={
        "apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "all"},
        "spec": {"maxUnavailable": 1, "selector": {}}})

    async def found() -> list[Verdict]:
        selectors = (await read(workloads)).selectors
        picture = replace(moment("Preflight"), namespace=namespace)
        return list(find_budgets(spoil_workload(picture, selectors=selectors)))

    [told] = await found()
    assert told.subject == "PodDisruptionBudget all"
    paste(told.unblocks)
    assert await found() == []
    assert (await read(workloads)).budgets == ("all",), "it goes on guarding the brokers"


@pytest.mark.case("SeveralBudgets")
async def test_a_pod_with_two_budgets_can_be_evicted_after_the_command_that_is_printed(
        server: ApiServer, workloads: KubernetesWorkloads, run: Callable[..., Any], paste: Callable[..., None],
        namespace: str) -> None:
    """One of them goes by a label that pods of a StatefulSet get, and that no template has."""
    run("apply", "-f", "-", manifest=stateful_set())
    for name, labels in (("kafka", LABELS), ("kafka-0", {"statefulset.kubernetes.io/pod-name": "kafka-0"})):
        run("apply", "-f", "-", manifest={
            "apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": name},
            "spec": {"maxUnavailable": 1, "selector": {"matchLabels": labels}}})
    for _ in Patience(30).looks():
        pods = (await read(workloads)).pods
        if len(pods) == 2:
            break
        await asyncio.sleep(0.1)
    for pod in pods.values():                            # one that is Pending is evicted whatever budgets say
        await run_as_kubelet(server, pod)

    async def found() -> list[Verdict]:
        picture = spoil_workload(replace(moment("Preflight"), namespace=namespace), pods=(await read(workloads)).pods)
        return [each for each in find_budgets_in_the_way(picture) if each.reason == "SeveralBudgets"]

    with pytest.raises(Refused, match="more than one PodDisruptionBudget"):
        await workloads.evict("kafka-0", pods["kafka-0"].uid)
    [told] = await found()
    assert "pod kafka-0 has more than one PodDisruptionBudget (kafka, kafka-0)" in told.message
    paste(told.unblocks)
    assert await found() == []
    for _ in Patience(30).looks():
        try:
            await workloads.evict("kafka-0", pods["kafka-0"].uid)
        except Refused:
            await asyncio.sleep(0.1)                     # the disruption controller counts
        else:
            return
    raise AssertionError("kafka-0 is not evicted")


@pytest.mark.case("ReplicasChanged")
async def test_the_ordinals_of_brokers_are_put_back_by_the_command_that_is_printed(
        workloads: KubernetesWorkloads, run: Callable[..., Any], paste: Callable[..., None], namespace: str) -> None:
    run("apply", "-f", "-", manifest=stateful_set())
    run("patch", "statefulset", "kafka", "--type", "merge", "--patch", '{"spec":{"replicas":3,"ordinals":{"start":2}}}')
    changed = await read(workloads)
    assert changed.wanted == ("kafka-2", "kafka-3", "kafka-4")
    paste(check_replicas_unchanged(in_the_middle(changed, namespace)).unblocks)
    assert (await read(workloads)).wanted == ("kafka-0", "kafka-1", "kafka-2")


async def with_pods(workloads: KubernetesWorkloads, image: str = "localhost/kafka:1") -> Workload:
    """Its two pods are of its template, which has that image."""
    for _ in Patience(60).looks():
        found = await read(workloads)
        [container] = found.template["spec"]["containers"]
        if container["image"] == image and [pod.revision for pod in found.pods.values()] == 2 * [found.update_revision]:
            return found
        await asyncio.sleep(0.1)
    raise AssertionError(f"its pods are {found.pods}, its revision {found.update_revision}")


@pytest.mark.case("BudgetAllowsNothing")
async def test_a_budget_that_allows_nothing_lets_one_broker_go_after_the_command_that_is_printed(
        server: ApiServer, workloads: KubernetesWorkloads, run: Callable[..., Any], paste: Callable[..., None],
        namespace: str) -> None:
    run("apply", "-f", "-", manifest=stateful_set())
    run("apply", "-f", "-", manifest={
        "apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "strict"},
        "spec": {"minAvailable": 2, "selector": {"matchLabels": LABELS}}})
    for pod in (await with_pods(workloads)).pods.values():
        await run_as_kubelet(server, pod)

    async def found() -> list[Verdict]:
        for _ in Patience(30).looks():
            workload = await read(workloads)
            if all(pod.ready for pod in workload.pods.values()) and workload.budgets == ("strict",):
                break
            await asyncio.sleep(0.1)
        picture = replace(moment("Preflight"), namespace=namespace)
        picture = spoil_workload(picture, pods=workload.pods, strict_budgets=workload.strict_budgets)
        return [each for each in find_budgets_in_the_way(picture) if each.reason == "BudgetAllowsNothing"]

    for _ in Patience(30).looks():                       # the disruption controller counts
        if told := await found():
            break
        await asyncio.sleep(0.1)
    assert [each.subject for each in told] == ["PodDisruptionBudget strict"]
    paste(told[0].unblocks)
    for _ in Patience(30).looks():
        if not await found():
            break
        await asyncio.sleep(0.1)
    assert await found() == []
    assert (await read(workloads)).budgets == ("strict",), "it goes on guarding the brokers"


@pytest.mark.case("ClaimedByAnother")
async def test_the_claim_of_a_migration_that_is_gone_is_taken_off_by_the_command_that_is_printed(
        workloads: KubernetesWorkloads, run: Callable[..., Any], paste: Callable[..., None], namespace: str) -> None:
    run("apply", "-f", "-", manifest=stateful_set())
    run("annotate", "statefulset", "kafka", f"{names.CLAIM}=uid-of-another", "switchover.test/theirs=stays")

    async def found() -> list[Verdict]:
        picture = spoil_workload(replace(moment("Preflight"), namespace=namespace),
                                 claimed_by=(await read(workloads)).claimed_by)
        return [each for each in find_missing_objects(picture) if each.reason == "ClaimedByAnother"]

    [told] = await found()
    assert "uid-of-another" in told.message
    paste(told.unblocks)
    assert await found() == []
    assert "stays" in run("get", "statefulset", "kafka", "--output", "jsonpath={.metadata.annotations}").stdout


@pytest.mark.case("WouldRestart")
async def test_a_template_that_somebody_wrote_is_what_the_pods_run_again(
        workloads: KubernetesWorkloads, run: Callable[..., Any], paste: Callable[..., None],
        namespace: str) -> None:
    """Before HandOver gives the update strategy back: under it Kubernetes would replace both pods."""
    run("apply", "-f", "-", manifest=stateful_set())
    first = await with_pods(workloads)
    await take_over(workloads)
    for _ in Patience(30).looks():
        if (await read(workloads)).update_revision != first.update_revision:
            break
        await asyncio.sleep(0.1)
    run("delete", "pod", "--all")
    before = await with_pods(workloads)
    assert check_no_pod_would_restart(in_the_middle(before, namespace)).outcome == "Pass"
    run("set", "env", "statefulset", "kafka", "HEAP=1g")
    run("set", "env", "statefulset", "kafka", "HEAP=2g")
    for _ in Patience(30).looks():
        told = check_no_pod_would_restart(in_the_middle(await read(workloads), namespace))
        if told.outcome != "Pass":
            break
        await asyncio.sleep(0.1)                         # its controller makes the revision
    assert told.reason == "WouldRestart"
    paste(told.unblocks)
    for _ in Patience(30).looks():
        after = await read(workloads)
        if check_no_pod_would_restart(in_the_middle(after, namespace)).outcome == "Pass":
            break
        await asyncio.sleep(0.1)
    assert {pod.uid for pod in after.pods.values()} == {pod.uid for pod in before.pods.values()}, "no pod was replaced"
    assert after.template == before.template
    assert template.is_ours(after, BROKERS)
    run("patch", "statefulset", "kafka", "--patch", '{"spec":{"updateStrategy":{"type":"RollingUpdate"}}}')
    await asyncio.sleep(1)
    assert {pod.uid for pod in (await read(workloads)).pods.values()} == {pod.uid for pod in before.pods.values()}


@pytest.mark.case("GitOpsConflict")
async def test_flux_leaves_the_stateful_set_alone_after_the_command_that_is_printed(
        workloads: KubernetesWorkloads, run: Callable[..., Any], paste: Callable[..., None], namespace: str) -> None:
    run("apply", "-f", "-", manifest=stateful_set())

    async def found() -> list[Verdict]:
        picture = in_the_middle(await read(workloads), namespace)
        return [each for each in find_other_owners(picture) if each.reason == "GitOpsConflict"]

    [told] = await found()
    paste(told.unblocks)
    assert await found() == []


@pytest.mark.case("WrongKafkaVersion")
async def test_brokers_of_an_older_kafka_get_an_image_of_their_own_repository(
        workloads: KubernetesWorkloads, run: Callable[..., Any], paste: Callable[..., None],
        namespace: str) -> None:
    run("apply", "-f", "-", manifest=stateful_set())
    before = await with_pods(workloads)
    picture = replace(spoil_workload(moment("Preflight"), template=before.template), namespace=namespace)
    older = spoil_each(picture, "answers", lambda answer: replace(answer, api_keys={**answer.api_keys, 1: 16}), 1)
    [told] = [each for each in find_wrong_versions(older) if each.reason == "WrongKafkaVersion"]
    paste(told.unblocks)
    after = await read(workloads)
    [own], [container] = before.template["spec"]["containers"], after.template["spec"]["containers"]
    assert container == {**own, "image": "localhost/kafka:3.9.2"}
    assert {**after.template, "spec": {**after.template["spec"], "containers": [own]}} == before.template


@pytest.mark.case("PodsNeedZooKeeper")
async def test_controllers_whose_entrypoint_waits_for_zookeeper_are_edited(
        workloads: KubernetesWorkloads, run: Callable[..., Any], paste: Callable[..., None], namespace: str) -> None:
    """Their pods have not restarted yet: no node runs them here."""
    made = stateful_set()
    made["metadata"]["name"] = "kafka-controller"
    made["spec"]["template"]["spec"]["containers"][0] |= {
        "image": "confluentinc/cp-kafka:7.9.0", "env": [{"name": "KAFKA_ZOOKEEPER_CONNECT", "value": "zookeeper:2181"}]}
    run("create", "-f", "-", manifest=made)

    async def found() -> Verdict:
        controllers = await workloads.stateful_set("kafka-controller")
        assert controllers is not None
        released = moment("ReleaseZooKeeper", Mode.KRAFT, Mode.KRAFT_CONTROLLER)
        return check_zookeeper_unused(replace(spoil(released, "kubernetes", controllers=controllers), namespace=namespace))

    told = await found()
    assert (told.reason, told.subject) == ("PodsNeedZooKeeper", "StatefulSet kafka-controller")
    paste(told.unblocks, KUBE_EDITOR="sed -i /KAFKA_ZOOKEEPER_CONNECT/,+1d")
    assert (await found()).outcome is Outcome.PASS


async def test_budgets_that_never_allow_a_disruption(workloads: KubernetesWorkloads, run: Callable[..., Any]) -> None:
    run("apply", "-f", "-", manifest=stateful_set())
    for name, rule in (("strict", {"minAvailable": 2}), ("one-each", {"maxUnavailable": 1})):
        run("apply", "-f", "-", manifest={
            "apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": name},
            "spec": {**rule, "selector": {"matchLabels": LABELS}}})
    for _ in Patience(30).looks():
        found = await read(workloads)
        if found.strict_budgets:
            break
        await asyncio.sleep(0.1)                         # the disruption controller counts
    assert sorted(found.budgets) == ["one-each", "strict"]
    assert found.strict_budgets == ("strict",)


async def test_an_administrator_misses_no_right(survey: KubernetesSurvey) -> None:
    assert await survey.missing_rights(["kafka-switchover"]) == ()
