"""What the chart makes of its values: no API server is needed to see it."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from prometheus_client import CollectorRegistry

from apiserver.charts import CHART, NO_CRDS, ROOT, helm, of, refusal, rendered
from apiserver.examples import documented_of
from switchover.api.consumer_group_migration import ConsumerGroupMigrationSpec
from switchover.api.kafka_migration import KafkaMigrationSpec
from switchover.api.meta import UNBOUND
from switchover.cli.operators import OPERATOR
from switchover.cluster.names import CONTROLLERS_LABEL
from switchover.cluster.plan import PLAN
from switchover.engine.message import SLACK
from switchover.engine.policy import NOTHING_MORE, Policy
from switchover.groups.plan import plan_of
from switchover.kubernetes.brought_in import PODS
from switchover.kubernetes.client.survey import GROUP_RIGHTS, RIGHTS
from switchover.process.metrics import Metrics
from switchover.process.settings import Settings, read_settings
from switchover.reasons import REASONS, runbook_of

ACCOUNTS = "admissionPolicies.approvers.serviceAccounts"
CLUSTERS, GROUPS = "KafkaMigration", "ConsumerGroupMigration"
PLURALS = {CLUSTERS: "kafkamigrations", GROUPS: "consumergroupmigrations"}
PREFLIGHT = {CLUSTERS: RIGHTS, GROUPS: GROUP_RIGHTS}
WATCHED_BY_BOTH = {("apps", "statefulsets"), ("apps", "controllerrevisions"), ("", "pods"), ("", "persistentvolumeclaims"),
                   ("policy", "poddisruptionbudgets"), ("coordination.k8s.io", "leases")}
WATCHED = {
    CLUSTERS: WATCHED_BY_BOTH,
    GROUPS: WATCHED_BY_BOTH | {("apps", "deployments"), ("apps", "replicasets"), ("autoscaling", "horizontalpodautoscalers"),
                               ("keda.sh", "scaledobjects"), ("autoscaling.k8s.io", "verticalpodautoscalers")}}
SECRETS = ("rbac.secrets.read={kafka-client,zookeeper-client}", "rbac.secrets.write={kafka-switchover}")

Right = tuple[str, str, str]


def role(*values: str) -> list[dict[str, Any]]:
    rules: list[dict[str, Any]] = of(rendered(*values), "Role")["rules"]
    return rules


def granted(rules: list[dict[str, Any]]) -> set[Right]:
    """(group, resource, verb)"""
    return {(group, resource, verb) for rule in rules for group in rule["apiGroups"] for resource in rule["resources"]
            for verb in rule["verbs"]}


def needed(kinds: set[str]) -> set[Right]:
    """What Preflight asks for, and that without which there would be no status to tell of a missing right."""
    own = {("switchover.dev", PLURALS[kind], verb) for kind in kinds for verb in ("get", "list", "watch", "patch")}
    own |= {("switchover.dev", f"{PLURALS[kind]}/status", "patch") for kind in kinds}
    if CLUSTERS in kinds:
        own.add(("switchover.dev", PLURALS[GROUPS], "list"))
    own |= {(*each, verb) for kind in kinds for each in WATCHED[kind] for verb in ("list", "watch")}
    return {("", "events", "create"), ("", "events", "list"), ("", "namespaces", "get"), *own} | {
        (*each, verb) for kind in kinds for each, verbs in PREFLIGHT[kind].items() for verb in verbs}


def test_lint_finds_nothing() -> None:
    answer = helm("lint", "--strict", str(CHART)).stdout
    assert "[WARNING]" not in answer
    assert "[ERROR]" not in answer
    assert "icon" not in answer, "it is recommended"


@pytest.mark.parametrize(("value", "words"), [
    ("image.repo=x", "repo"),
    ("allow.pods={hostNetwork}", "must be one of 'dnsConfig', 'hostAliases', 'hostPort', 'probeHost', 'tolerateAll'"),
    ("allow.annotations={a b}", "at '/allow/annotations/0'"),
    ("kinds={Kafka}", "must be one of 'KafkaMigration', 'ConsumerGroupMigration'"),
    ("kinds=null", "kinds"),
    ("networkPolicy.controllers.from=null", "networkPolicy"),
    ("logLevel=null", "missing property 'logLevel'"),
    ("podLabels.app\\.kubernetes\\.io/instance=x", "podLabels may not set app.kubernetes.io/instance"),
    ("podLabels.a.b=x", "at '/podLabels/a'"),
    ("podAnnotations.switchover\\.dev/cluster-rights=x", "podAnnotations may not set switchover.dev/cluster-rights"),
    ("tolerations[0]=x", "at '/tolerations/0': got string, want object"),
    ("tolerations[0].operator=Is", "must be one of 'Exists', 'Equal', 'Lt', 'Gt'"),
    ("notifications.webhook.url=https://x", "additional properties 'url' not allowed"),
    ("notifications.webhook.template=text", "at '/notifications/webhook/template': got string, want object"),
    ("image.digest=sha256:12", "at '/image/digest'"),
    ("serviceAccount.create=false", "serviceAccount.name must name the account that exists already"),
    ("rbac.aggregate=true", "rbac.aggregate needs admissionPolicies.bindApprovers"),
    (f"{ACCOUNTS}={{bot}}", "at '/admissionPolicies/approvers/serviceAccounts/0'"),
    ("admissionPolicies.bindApprovers=maybe", "must be one of true, false, 'auto'"),
    ("admissionPolicies.fourEyes=true,admissionPolicies.bindApprovers=false", "fourEyes needs bindApprovers"),
    ("rbac.secrets.read={kafka-client}", "rbac.secrets.write must name STATEFULSET-switchover"),
    ("watch.namespaces={Shop}", "at '/watch/namespaces/0'"),
    ("watch.namespaces={shop,shop}", "at '/watch/namespaces'"),
    ("watch.namespaces={shop},watch.all=true", "watch.all serves every namespace: let watch.namespaces be empty"),
    ("watch.all=true,networkPolicy.egress=true", "networkPolicy.servers.to means the release's own namespace"),
    ("watch.namespaces={shop},networkPolicy.egress=true", "say where servers are"),
    ("networkPolicy.enabled=true", "additional properties 'enabled' not allowed"),
])
def test_a_value_that_does_not_serve_is_refused_in_words(value: str, words: str) -> None:
    assert words in refusal(value)


def paths(values: Mapping[str, Any], prefix: str = "") -> Iterator[str]:
    for key, value in values.items():
        yield f"{prefix}{key}"
        if isinstance(value, dict):
            yield from paths(value, f"{prefix}{key}.")


def test_a_value_that_is_taken_away_is_done_without_or_refused_in_words() -> None:
    """By the schema, or by words of the chart's own; never by a template that trips over it."""
    everything = ("--set", f"networkPolicy.egress=true,podDisruptionBudget.enabled=true,{WEBHOOK}")
    refused = {}
    for path in paths(yaml.safe_load((CHART / "values.yaml").read_text())):
        crds = () if path.startswith("crds") else NO_CRDS            # half of what helm has to do
        done = helm("template", "switchover", str(CHART), *everything, *crds, "--set", f"{path}=null", check=False)
        if done.returncode:
            refused[path] = done.stderr
    assert refused["logLevel"]
    assert not {path: why for path, why in refused.items()
                if "missing property" not in why and "serviceAccount.name must" not in why}


@pytest.mark.parametrize("name", ["extraEnv[0].name=", "extraEnv[0].value=x,extraEnv[0].name="])
def test_no_variable_of_the_charts_own_is_set_twice(name: str) -> None:
    [container] = of(rendered(), "Deployment")["spec"]["template"]["spec"]["containers"]
    for variable in container["env"]:
        assert f"extraEnv may not set {variable['name']}" in refusal(f"{name}{variable['name']}")
    documents = rendered("extraEnv[0].name=TZ", "extraEnv[0].value=UTC")
    [extended] = of(documents, "Deployment")["spec"]["template"]["spec"]["containers"]
    assert extended["env"] == [*container["env"], {"name": "TZ", "value": "UTC"}]


def test_labels_and_the_like_are_strings() -> None:
    """Written as numbers and as words that YAML takes for something else."""
    values = [f"{value}.{key}" for value in ("podLabels", "podAnnotations", "nodeSelector", "serviceAccount.annotations")
              for key in ("n=1", "large=20000000", "yes=true")]
    documents = rendered(*values)
    wanted = {"n": "1", "large": "20000000", "yes": "true"}
    template = of(documents, "Deployment")["spec"]["template"]
    assert template["spec"]["nodeSelector"] == wanted
    assert of(documents, "ServiceAccount")["metadata"]["annotations"] == wanted
    assert wanted.items() <= template["metadata"]["labels"].items()
    assert wanted.items() <= template["metadata"]["annotations"].items()
    text = helm("template", "1e3", str(CHART), *NO_CRDS, "--namespace", "007", "--set-string", "fullnameOverride=42",
                "--set", f"monitoring.podMonitor.enabled=true,{','.join(RULES)}").stdout
    named = [each for each in yaml.safe_load_all(text) if each]
    assert all(isinstance(value, str) for each in named for value in each["metadata"].get("labels", {}).values())
    assert {each["metadata"]["name"] for each in named} == {
        "42", "42-viewer", "42-migrator", "42-approver", "42-doctor", "42-controllers"}
    (subject,) = of(named, "RoleBinding", "42")["subjects"]
    assert subject == {"kind": "ServiceAccount", "name": "42", "namespace": "007"}


def test_the_account_is_whichever_the_values_name() -> None:
    documents = rendered("serviceAccount.create=false", "serviceAccount.name=kafka-operator", "rbac.readNodes=true",
                         "admissionPolicies.guardWorkloads=true")
    assert "ServiceAccount" not in {each["kind"] for each in documents}
    assert of(documents, "Deployment")["spec"]["template"]["spec"]["serviceAccountName"] == "kafka-operator"
    bound = {subject["name"] for each in documents if each["kind"].endswith("RoleBinding") for subject in each["subjects"]}
    assert bound == {"kafka-operator"}
    [stranger] = of(documents, ADMISSION, "kafka-switchover-workloads")["spec"]["matchConditions"]
    assert stranger["expression"] == "request.userInfo.username != 'system:serviceaccount:kafka:kafka-operator'"


def test_a_digest_counts_instead_of_the_tag() -> None:
    digest = f"sha256:{'5' * 64}"
    documents = rendered("image.repository=registry.example/switchover", "image.tag=0.1.0", f"image.digest={digest}")
    image = f"registry.example/switchover@{digest}"
    [container] = of(documents, "Deployment")["spec"]["template"]["spec"]["containers"]
    [doctor] = of(documents, "Pod", "switchover-doctor")["spec"]["containers"]
    assert (container["image"], doctor["image"]) == (image, image)
    assert {"name": "IMAGE", "value": image} in container["env"]


def test_where_the_operators_pod_runs_is_as_the_values_say() -> None:
    spread = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway"}
    affinity = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "node"}]}}
    toleration = {"key": "dedicated", "operator": "Exists"}
    documents = rendered(
        "priorityClassName=high", "imagePullSecrets[0].name=registry",
        *(f"tolerations[0].{key}={value}" for key, value in toleration.items()),
        *(f"topologySpreadConstraints[0].{key}={value}" for key, value in spread.items()),
        "affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].topologyKey=node")
    pod = of(documents, "Deployment")["spec"]["template"]["spec"]
    assert (pod["priorityClassName"], pod["imagePullSecrets"]) == ("high", [{"name": "registry"}])
    assert (pod["tolerations"], pod["topologySpreadConstraints"], pod["affinity"]) == ([toleration], [spread], affinity)
    without = of(rendered(), "Deployment")["spec"]["template"]["spec"]
    assert pod.keys() - without.keys() == {
        "priorityClassName", "imagePullSecrets", "tolerations", "topologySpreadConstraints", "affinity"}


def settings_of(*values: str) -> Settings:
    """What the operator reads of its variables."""
    [container] = of(rendered(*values), "Deployment")["spec"]["template"]["spec"]["containers"]
    told = {each["name"]: each["value"] for each in container["env"] if "value" in each}
    return read_settings({**told, "POD_NAMESPACE": "kafka", "POD_NAME": "switchover-1"})


@pytest.mark.parametrize(("values", "selector"), [
    ((), {}),
    (("watch.selector.matchLabels.shard=a",), {"matchLabels": {"shard": "a"}}),
    (("watch.selector.matchExpressions[0].key=shard", "watch.selector.matchExpressions[0].operator=NotIn",
      "watch.selector.matchExpressions[0].values={a,b}"),
     {"matchExpressions": [{"key": "shard", "operator": "NotIn", "values": ["a", "b"]}]})])
def test_the_operator_serves_what_the_selector_of_its_release_matches(values: tuple[str, ...], selector: object) -> None:
    assert settings_of(*values).selector == selector


def test_what_a_migration_may_name_is_told_to_the_operator() -> None:
    given = {"images": "kafka", "claims": "a", "secrets": "b-*", "annotations": "example.com/*", "labels": "team",
             "pods": ",".join(PODS)}
    told = [settings_of(*(f"allow.{value}={{{names}}}" for value, names in each.items())).allow for each in ({}, given)]
    assert told == [NOTHING_MORE, Policy(**{value: tuple(names.split(",")) for value, names in given.items()})]


def test_images_are_allowed_as_they_are_written() -> None:
    digest = f"registry.example/kafka@sha256:{'0' * 64}"
    deployment = of(rendered(f"allow.images={{{digest},orders:3.*}}"), "Deployment")
    [container] = deployment["spec"]["template"]["spec"]["containers"]
    told = {each["name"]: each["value"] for each in container["env"] if "value" in each}
    policy = read_settings({**told, "POD_NAMESPACE": "kafka", "POD_NAME": "switchover-1"}).allow
    other = f"{digest[:-1]}1"
    assert [image for image in (digest, "orders:3.9", other, "orders:4") if [*policy.find_image("image", image)]] == [
        other, "orders:4"]


def test_what_is_no_selector_is_refused() -> None:
    assert "selector" in refusal("watch.selector.shard=a")


@pytest.mark.parametrize(("replicas", "strategy", "evicted"), [(1, "Recreate", 0), (2, "RollingUpdate", 1)])
def test_of_several_operators_one_acts_by_the_lease_of_the_charts_name(replicas: int, strategy: str, evicted: int) -> None:
    documents = rendered(f"replicas={replicas}", "nameOverride=carrier", "podDisruptionBudget.enabled=true")
    operator = of(documents, "Deployment", "switchover-carrier")["spec"]
    assert operator["replicas"] == replicas
    assert operator["strategy"] == {"type": strategy, "rollingUpdate": None}
    [container] = operator["template"]["spec"]["containers"]
    told = [each["value"] for each in container["env"] if each["name"] == "LEADER_LEASE"]
    assert told == (["switchover-carrier"] if replicas > 1 else [])
    assert of(documents, "PodDisruptionBudget", "switchover-carrier")["spec"]["maxUnavailable"] == evicted
    assert "replicas" in refusal("replicas=0")


def test_what_asks_for_helm_test_is_not_taken_for_the_operator() -> None:
    """By the label that the command line, the budget and the network policy find the operator by."""
    documents = rendered("podDisruptionBudget.enabled=true", "nameOverride=carrier")
    doctor = of(documents, "Pod", "switchover-carrier-doctor")
    operator = of(documents, "Deployment", "switchover-carrier")["spec"]
    assert doctor["metadata"]["annotations"]["helm.sh/hook"] == "test"
    selector = operator["selector"]["matchLabels"]
    assert OPERATOR.items() <= selector.items()
    assert not selector.items() & doctor["metadata"]["labels"].items()
    assert of(documents, "PodDisruptionBudget", "switchover-carrier")["spec"] == {
        "maxUnavailable": 0, "selector": {"matchLabels": selector}}
    security = operator["template"]["spec"]["securityContext"]
    assert doctor["spec"]["securityContext"] == security
    [probes] = operator["template"]["spec"]["containers"]
    patience = probes["startupProbe"]["periodSeconds"] * probes["startupProbe"]["failureThreshold"]
    assert patience > probes["livenessProbe"]["periodSeconds"] * probes["livenessProbe"]["failureThreshold"]


def test_no_right_reaches_beyond_the_namespace_and_none_is_a_wildcard() -> None:
    documents = rendered()
    assert {document["kind"] for document in documents} == {
        "ServiceAccount", "Role", "RoleBinding", "Deployment", "Pod", "NetworkPolicy"}
    roles = {document["metadata"]["name"]: document["rules"] for document in documents if document["kind"] == "Role"}
    assert roles.keys() == {"switchover", "switchover-viewer", "switchover-migrator", "switchover-approver"}
    rules = [rule for each in roles.values() for rule in each]
    assert not [rule for rule in rules if "*" in rule["apiGroups"] + rule["resources"] + rule["verbs"]]


@pytest.mark.parametrize("kinds", [(CLUSTERS,), (GROUPS,), (CLUSTERS, GROUPS)], ids=" and ".join)
def test_the_role_holds_what_the_kinds_that_are_served_need(kinds: tuple[str, ...]) -> None:
    """tests/apiserver/test_chart.py proves that no more is used."""
    documents = rendered(f"kinds={{{','.join(kinds)}}}")
    assert granted(of(documents, "Role")["rules"]) == needed(set(kinds))
    [container] = of(documents, "Deployment")["spec"]["template"]["spec"]["containers"]
    assert {"name": "KINDS", "value": ",".join(kinds)} in container["env"]


def test_secrets_are_given_by_name_where_the_values_name_them() -> None:
    """All but `create`: RBAC knows no name then."""
    every = ("any",)

    def named(*values: str) -> dict[str, tuple[str, ...]]:
        rules = [rule for rule in role(*values) if rule["resources"] == ["secrets"]]
        return {verb: tuple(rule.get("resourceNames", every)) for rule in rules for verb in rule["verbs"]}

    assert named() == {"get": every, "create": every, "patch": every, "delete": every}
    own = ("kafka-switchover",)
    assert named(*SECRETS) == {
        "get": ("kafka-client", "zookeeper-client", *own), "create": every, "patch": own, "delete": own}
    assert named(SECRETS[1]) == {"get": own, "create": every, "patch": own, "delete": own}
    assert named(SECRETS[0], "kinds={ConsumerGroupMigration}") == {"get": ("kafka-client", "zookeeper-client")}
    assert granted(role(*SECRETS)) == granted(role())


def test_another_right_beyond_the_namespace_starts_the_operator_anew() -> None:
    """It would ask again in an hour."""
    def annotations(*values: str) -> dict[str, str]:
        found: dict[str, str] = of(rendered(*values), "Deployment")["spec"]["template"]["metadata"]["annotations"]
        return found

    assert annotations() != annotations("rbac.readNodes=true")
    assert annotations("podAnnotations.team=streaming") == annotations() | {"team": "streaming"}


@pytest.mark.parametrize("kinds", [(CLUSTERS,), (CLUSTERS, GROUPS)], ids=" and ".join)
def test_people_watch_migrate_or_approve(kinds: tuple[str, ...]) -> None:
    """None of them writes a status, and only one approves."""
    documents, resources = rendered(f"kinds={{{','.join(kinds)}}}"), [PLURALS[kind] for kind in kinds]
    look = ["get", "list", "watch"]
    for name, verbs in {"viewer": look, "migrator": [*look, "create", "update", "patch", "delete"],
                        "approver": [*look, "update", "patch", "approve"]}.items():
        rule = {"apiGroups": ["switchover.dev"], "resources": resources, "verbs": verbs}
        assert of(documents, "Role", f"switchover-{name}")["rules"] == [rule]
    bound = [each["roleRef"]["name"] for each in documents if each["kind"] == "RoleBinding"]
    assert bound == ["switchover"]
    assert [each["metadata"]["name"] for each in rendered("rbac.roles=false") if each["kind"] == "Role"] == ["switchover"]


def test_editors_of_the_cluster_migrate_and_do_not_approve_where_the_values_say_so() -> None:
    documents = rendered("rbac.aggregate=true", "admissionPolicies.bindApprovers=true")
    roles = {each["metadata"]["name"]: each for each in documents if each["kind"] == "ClusterRole"}
    plurals = list(PLURALS.values())
    for name, verbs in {"view": ["get", "list", "watch"], "edit": ["create", "update", "patch", "delete"]}.items():
        role = roles.pop(f"kafka-switchover-{name}")
        assert role["rules"] == [{"apiGroups": ["switchover.dev"], "resources": plurals, "verbs": verbs}]
        aggregated = {label for label in role["metadata"]["labels"] if "aggregate" in label}
        assert aggregated == {f"rbac.authorization.k8s.io/aggregate-to-{name}"}
    assert not roles


# --- more than one namespace --------------------------------------------------------------------------------------------

PEOPLE = ("viewer", "migrator", "approver")


def operators_watch(documents: list[dict[str, Any]]) -> str:
    [container] = of(documents, "Deployment")["spec"]["template"]["spec"]["containers"]
    [told] = (str(variable["value"]) for variable in container["env"] if variable["name"] == "WATCH")
    return told


def placed(documents: list[dict[str, Any]], kind: str) -> set[tuple[str, str]]:
    """(namespace, name); without a namespace it is that of the release, or none where the kind has none."""
    return {(each["metadata"].get("namespace", ""), each["metadata"]["name"]) for each in documents if each["kind"] == kind}


def test_each_namespace_that_is_named_gets_the_role_that_the_own_has_by_default() -> None:
    documents, wanted = rendered("watch.namespaces={shop,bank}"), role()
    names = ["switchover", *(f"switchover-{each}" for each in PEOPLE)]
    served = {(namespace, name) for namespace in ("shop", "bank") for name in names}
    assert placed(documents, "Role") == served | {("", "switchover-doctor")}
    for each in documents:
        if each["kind"] == "Role" and each["metadata"]["name"] == "switchover":
            assert each["rules"] == wanted
    [pods] = of(documents, "Role", "switchover-doctor")["rules"]
    assert pods == {"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]}, "helm test looks for the pod"
    several = of(rendered("watch.namespaces={shop,bank}", "replicas=2"), "Role", "switchover-doctor")["rules"]
    assert several[0] == pods
    held = [each for each in wanted if each["resources"] == ["leases"] and "update" in each["verbs"]]
    assert several[1:] == held, "of several one holds a Lease"
    assert placed(documents, "RoleBinding") == {("shop", "switchover"), ("bank", "switchover"), ("", "switchover-doctor")}
    subjects = [each["subjects"] for each in documents if each["kind"] == "RoleBinding"]
    assert subjects == [[{"kind": "ServiceAccount", "name": "switchover", "namespace": "kafka"}]] * 3
    assert not {each["kind"] for each in documents} & {"ClusterRole", "ClusterRoleBinding"}
    assert operators_watch(documents) == "shop,bank"
    assert ("", "switchover-doctor") not in placed(rendered("watch.namespaces={kafka,bank}"), "Role")


def test_all_namespaces_take_a_cluster_role_with_the_same_rules() -> None:
    documents = rendered("watch.all=true")
    assert of(documents, "ClusterRole", "kafka-switchover")["rules"] == role()
    peoples = {("", f"kafka-switchover-{each}") for each in PEOPLE}
    assert placed(documents, "ClusterRole") == {("", "kafka-switchover")} | peoples
    binding = of(documents, "ClusterRoleBinding", "kafka-switchover")
    assert binding["subjects"] == [{"kind": "ServiceAccount", "name": "switchover", "namespace": "kafka"}]
    assert binding["roleRef"]["name"] == "kafka-switchover"
    assert not {each["kind"] for each in documents} & {"Role", "RoleBinding"}
    assert operators_watch(documents) == "*"
    assert operators_watch(rendered()) == "kafka"


@pytest.mark.parametrize(("watch", "where"), [
    ("rbac.roles=true", ["kafka"]), ("watch.namespaces={shop,bank}", ["shop", "bank"]), ("watch.all=true", None)])
def test_policies_hold_where_the_operator_serves(watch: str, where: list[str] | None) -> None:
    documents = rendered(watch, "admissionPolicies.guardWorkloads=true", "admissionPolicies.bindApprovers=true")
    bindings = [each["spec"].get("matchResources") for each in documents if each["kind"] == f"{ADMISSION}Binding"]
    selector = {"namespaceSelector": {"matchExpressions": [
        {"key": "kubernetes.io/metadata.name", "operator": "In", "values": where}]}}
    assert bindings == [selector if where else None] * 2


def test_an_operator_in_another_namespace_reaches_the_controllers() -> None:
    documents = rendered(POLICY, "watch.namespaces={kafka,shop}",
                         "networkPolicy.servers.to[0].namespaceSelector.matchLabels.a=b")
    found = {each["metadata"].get("namespace"): each["spec"]["ingress"][0]["from"] for each in documents
             if each["metadata"]["name"] == "switchover-controllers"}
    here, pod = {"podSelector": {}}, of(documents, "Deployment")["spec"]["selector"]
    assert found == {"kafka": [here], "shop": [here, {
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "kafka"}}, "podSelector": pod}]}


# --- admission ----------------------------------------------------------------------------------------------------------

ADMISSION = "ValidatingAdmissionPolicy"


def policies(*arguments: str) -> dict[str, dict[str, Any]]:
    """name -> spec"""
    text = helm("template", "switchover", str(CHART), *NO_CRDS, "--namespace", "kafka", *arguments).stdout
    return {each["metadata"]["name"]: each["spec"] for each in yaml.safe_load_all(text)
            if each and each["kind"] == ADMISSION}


def test_approvals_are_bound_where_the_api_server_can() -> None:
    """`helm template` asks none: what it makes does not depend on where it runs."""
    known = ("--api-versions", f"admissionregistration.k8s.io/v1/{ADMISSION}")
    assert policies() == {}
    assert policies(*known).keys() == {"kafka-switchover-approvers"}
    assert policies(*known, "--set", "admissionPolicies.bindApprovers=false") == {}
    asked = policies("--set", "admissionPolicies.bindApprovers=true")
    assert asked == policies(*known)
    assert policies(*known, "--kube-version", "1.30.0") == asked


def test_four_eyes_add_to_what_binds_approvers() -> None:
    def rules(*values: str) -> list[str]:
        (spec,) = policies(*(word for value in values for word in ("--set", value))).values()
        return [each["expression"] for each in spec["validations"]]

    bound, four = rules("admissionPolicies.bindApprovers=true"), rules("admissionPolicies.fourEyes=true")
    assert four[:len(bound)] == bound
    assert len(four) > len(bound)


def test_what_no_service_account_approves_is_what_cannot_be_taken_back() -> None:
    (spec,) = policies("--set", "admissionPolicies.bindApprovers=true").values()
    (final,) = (each["expression"] for each in spec["variables"] if each["name"] == "final")
    (group,) = documented_of("ConsumerGroupMigration")[:1]
    of_groups = plan_of(ConsumerGroupMigrationSpec.model_validate(group["spec"])).final
    assert set(yaml.safe_load(re.findall(r"step in (\[.*?\])", final)[0])) == PLAN.final | of_groups


@pytest.mark.parametrize("values", [(), ("admissionPolicies.fourEyes=true", f"{ACCOUNTS}={{system:serviceaccount:ci:a}}")])
def test_who_may_approve_is_told_to_the_operator(values: tuple[str, ...]) -> None:
    allow = settings_of(*values).allow
    assert (allow.approvers, allow.four_eyes) == ((("system:serviceaccount:ci:a",), True) if values else ((), False))


def test_what_no_approval_covers_may_be_changed_by_anybody() -> None:
    (spec,) = policies("--set", "admissionPolicies.fourEyes=true").values()
    (unbound,) = (each["expression"] for each in spec["variables"] if each["name"] == "unbound")
    assert set(yaml.safe_load(unbound)) == {KafkaMigrationSpec.model_fields[each].alias for each in UNBOUND}


# --- the network --------------------------------------------------------------------------------------------------------

POLICY = "networkPolicy.egress=true"
HERE: list[dict[str, Any]] = [{"podSelector": {}}]


def test_the_operator_reaches_what_it_asks_and_nothing_else() -> None:
    documents = rendered(POLICY, "networkPolicy.apiServer.to[0].ipBlock.cidr=10.0.0.1/32")
    policy, pod = of(documents, "NetworkPolicy")["spec"], of(documents, "Deployment")["spec"]["template"]
    assert policy["podSelector"]["matchLabels"].items() <= pod["metadata"]["labels"].items()
    assert policy["policyTypes"] == ["Ingress", "Egress"]
    server = [{"ipBlock": {"cidr": "10.0.0.1/32"}}]
    assert policy["egress"] == [
        {"ports": [{"protocol": "UDP", "port": 53}, *tcp(53)]},
        {"ports": tcp(443, 6443), "to": server},
        {"ports": tcp(9092, 9093, 2181), "to": HERE},
    ]
    told = of(rendered(POLICY, WEBHOOK, "networkPolicy.webhook.ports={8443}"), "NetworkPolicy")["spec"]
    assert told["egress"][3:] == [{"ports": tcp(8443)}]
    assert {port["name"] for port in pod["spec"]["containers"][0]["ports"]} == {"probe", "metrics"}
    only = of(rendered(POLICY, "networkPolicy.ingress=false"), "NetworkPolicy")["spec"]
    assert (only["policyTypes"], "ingress" in only) == (["Egress"], False)


def tcp(*ports: int | str) -> list[dict[str, Any]]:
    return [{"protocol": "TCP", "port": port} for port in ports]


def test_who_reaches_the_operator_is_limited_unasked_and_the_kubelet_is_not() -> None:
    """Its metrics: this namespace, and a Prometheus of another one where it is named. No other half, which may stop it."""
    found = of(rendered(), "NetworkPolicy")["spec"]
    assert found["ingress"] == [{"ports": tcp("probe")}, {"ports": tcp("metrics"), "from": HERE}]
    assert (found["policyTypes"], "egress" in found) == (["Ingress"], False)
    anybody = of(rendered("networkPolicy.metrics.from=null"), "NetworkPolicy")["spec"]
    assert anybody["ingress"][1] == {"ports": tcp("metrics")}
    assert "NetworkPolicy" not in {each["kind"] for each in rendered("networkPolicy.ingress=false")}


def test_who_installs_is_told_who_may_scrape_and_how_to_name_another(tmp_path: Path) -> None:
    def notes(*arguments: str) -> str:
        return helm("install", "switchover", str(CHART), *NO_CRDS, "--namespace", "kafka", "--dry-run=client",
                    *arguments).stdout.partition("NOTES:")[2]

    [named] = [line.strip() for line in notes().splitlines() if line.startswith("  networkPolicy: ")]
    (tmp_path / "values.yaml").write_text(f"{named}\n")
    told = ("--values", str(tmp_path / "values.yaml"))
    documents = list(yaml.safe_load_all(helm("template", "switchover", str(CHART), *NO_CRDS, *told).stdout))
    assert of([each for each in documents if each], "NetworkPolicy")["spec"]["ingress"][1]["from"] == [
        {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "monitoring"}}}]
    assert "pods of namespace kafka alone read the operator's metrics" in notes()
    assert "read the operator's metrics" not in notes(*told)
    assert "NetworkPolicy" not in notes("--set", "networkPolicy.ingress=false")


def test_only_the_namespace_reaches_the_controllers() -> None:
    """The policy selects the label that the operator gives to their pods, whatever the spec says of labels."""
    policy = of(rendered(), "NetworkPolicy", "switchover-controllers")["spec"]
    assert policy["podSelector"] == {"matchExpressions": [{"key": CONTROLLERS_LABEL, "operator": "Exists"}]}
    assert policy["ingress"] == [{"from": [{"podSelector": {}}]}]
    assert policy["policyTypes"] == ["Ingress"]
    groups_alone = [each["metadata"]["name"] for each in rendered("kinds={ConsumerGroupMigration}")
                    if each["kind"] == "NetworkPolicy"]
    assert groups_alone == ["switchover"]


# --- the webhook --------------------------------------------------------------------------------------------------------

WEBHOOK = "notifications.webhook.secretName=chat,notifications.webhook.secretKey=address"


def test_a_webhook_is_a_file_out_of_a_secret_that_need_not_be_there() -> None:
    template = "notifications.webhook.template.blocks[0].text=$name <$$5> \"$uid\""
    pods = [of(rendered(*values), "Deployment")["spec"]["template"]["spec"]
            for values in ((), (WEBHOOK,), (WEBHOOK, template))]
    variables = [{each["name"]: each.get("value", "") for each in pod["containers"][0]["env"]} for pod in pods]
    plain, slack, own = (read_settings({**each, "POD_NAMESPACE": "kafka", "POD_NAME": "one"}) for each in variables)
    assert (plain.webhook, slack.webhook_template) == (None, SLACK)
    assert own.webhook_template == {"blocks": [{"text": '$name <$$5> "$uid"'}]}, "and no text of its own beside it"
    assert [each["name"] for each in pods[0]["volumes"]] == ["tmp"]
    mount, volume = pods[1]["containers"][0]["volumeMounts"][-1], pods[1]["volumes"][-1]
    assert volume == {"name": mount["name"], "secret": {
        "secretName": "chat", "items": [{"key": "address", "path": "url"}], "optional": True}}
    assert slack.webhook == Path(mount["mountPath"]) / "url"


# --- monitoring ---------------------------------------------------------------------------------------------------------

RULES = ("monitoring.rules.enabled=true", "docs=https://git.example.com/docs")


def test_nothing_of_the_prometheus_operator_is_there_unless_it_is_asked_for() -> None:
    kinds = {each["kind"] for each in rendered()}
    assert not {"PodMonitor", "ServiceMonitor", "Service", "PrometheusRule", "ConfigMap"} & kinds


def test_the_pod_monitor_selects_the_operators_pod_and_its_port_by_name() -> None:
    documents = rendered("monitoring.podMonitor.enabled=true", "monitoring.podMonitor.labels.release=prometheus")
    monitor, pod = of(documents, "PodMonitor"), of(documents, "Deployment")["spec"]["template"]
    assert monitor["metadata"]["labels"]["release"] == "prometheus"
    assert monitor["spec"]["selector"]["matchLabels"].items() <= pod["metadata"]["labels"].items()
    ports = {port["name"] for container in pod["spec"]["containers"] for port in container["ports"]}
    assert {endpoint["port"] for endpoint in monitor["spec"]["podMetricsEndpoints"]} <= ports


def test_a_service_monitor_selects_a_service_of_that_pod_instead() -> None:
    documents = rendered("monitoring.serviceMonitor.enabled=true", "monitoring.serviceMonitor.labels.release=prometheus")
    monitor, service = of(documents, "ServiceMonitor"), of(documents, "Service", "switchover-metrics")
    pod = of(documents, "Deployment")["spec"]["template"]
    assert monitor["metadata"]["labels"]["release"] == "prometheus"
    assert monitor["spec"]["selector"]["matchLabels"].items() <= service["metadata"]["labels"].items()
    assert service["spec"]["selector"].items() <= pod["metadata"]["labels"].items()
    (port,), (endpoint,) = service["spec"]["ports"], monitor["spec"]["endpoints"]
    assert endpoint == {"port": port["name"], "honorLabels": True}
    assert {"name": port["targetPort"], "containerPort": port["port"]} in pod["spec"]["containers"][0]["ports"]
    both = refusal("monitoring.podMonitor.enabled=true,monitoring.serviceMonitor.enabled=true")
    assert "enable one of them" in both


def test_each_alert_has_a_summary_and_a_runbook_that_is_there_and_asks_for_metrics_that_are() -> None:
    rules = [rule for group in of(rendered(*RULES), "PrometheusRule")["spec"]["groups"] for rule in group["rules"]]
    registry = CollectorRegistry()
    Metrics(registry, lambda: 0.0)
    known = {sample for family in registry.collect() for sample in (family.name, f"{family.name}_total")}
    for rule in rules:
        url = rule["annotations"]["runbook_url"].removeprefix("https://git.example.com/")
        of_reason = "{{ $labels.runbook }}"
        for place in [url.replace(of_reason, runbook_of(each)) for each in (*REASONS, "?")] if of_reason in url else [url]:
            page, _, anchor = place.partition("#")
            assert (ROOT / page).is_file(), place
            assert not anchor or f"## {anchor.replace('-', ' ')}" in (ROOT / page).read_text().lower(), place
        assert rule["annotations"]["summary"], rule
        asked = set(re.findall(r"switchover_\w+", rule["expr"]))
        assert asked, rule
        assert asked <= known, rule
    assert {"SwitchoverStalled", "SwitchoverAwaitsApproval"} <= {rule["alert"] for rule in rules}


def test_alerts_want_to_know_where_their_runbooks_are() -> None:
    assert "docs: must be the address of a copy of docs/" in refusal("monitoring.rules.enabled=true")
    for wrong in ("docs", "https://git.example.com/docs/"):
        assert "/docs" in refusal(f"docs={wrong}")
    (container,) = of(rendered(*RULES), "Deployment")["spec"]["template"]["spec"]["containers"]
    assert {"name": "DOCS", "value": "https://git.example.com/docs"} in container["env"]
