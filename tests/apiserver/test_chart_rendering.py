"""What the chart makes of its values: no API server is needed to see it."""

import re
from typing import Any

import pytest
import yaml
from prometheus_client import CollectorRegistry

from apiserver.charts import CHART, ROOT, helm, of, refusal, rendered
from switchover.adapters.survey import GROUP_RIGHTS, RIGHTS
from switchover.api.kafka_migration import KafkaMigrationSpec
from switchover.api.meta import UNBOUND
from switchover.core.kraft.names import CONTROLLERS_LABEL
from switchover.metrics import Metrics

CLUSTERS, GROUPS = "KafkaMigration", "ConsumerGroupMigration"
PLURALS = {CLUSTERS: "kafkamigrations", GROUPS: "consumergroupmigrations"}
PREFLIGHT = {CLUSTERS: RIGHTS, GROUPS: GROUP_RIGHTS}
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
    return {("", "events", "create"), *own} | {
        (*each, verb) for kind in kinds for each, verbs in PREFLIGHT[kind].items() for verb in verbs}


def test_lint_finds_nothing() -> None:
    answer = helm("lint", "--strict", str(CHART)).stdout
    assert "[WARNING]" not in answer
    assert "[ERROR]" not in answer


def test_the_charts_crds_are_those_of_the_models() -> None:
    documents = yaml.safe_load_all(helm("template", "switchover", str(CHART), "--include-crds").stdout)
    found = {document["metadata"]["name"]: document for document in documents
             if document and document["kind"] == "CustomResourceDefinition"}
    wanted = [yaml.safe_load(path.read_text()) for path in (ROOT / "crds").glob("*.yaml")]
    assert found == {document["metadata"]["name"]: document for document in wanted}


@pytest.mark.parametrize(("value", "words"), [
    ("image.repo=x", "repo"),
    ("kinds={Kafka}", "must be one of 'KafkaMigration', 'ConsumerGroupMigration'"),
    ("kinds=null", "kinds"),
    ("networkPolicy.controllers.from=null", "networkPolicy"),
    ("admissionPolicies.bindApprovers=maybe", "must be one of true, false, 'auto'"),
    ("admissionPolicies.fourEyes=true,admissionPolicies.bindApprovers=false", "fourEyes needs bindApprovers"),
    ("rbac.secrets.read={kafka-client}", "rbac.secrets.write must name STATEFULSET-switchover"),
])
def test_a_value_that_does_not_serve_is_refused_in_words(value: str, words: str) -> None:
    assert words in refusal(value)


def test_no_right_reaches_beyond_the_namespace_and_none_is_a_wildcard() -> None:
    documents = rendered()
    assert {document["kind"] for document in documents} == {"ServiceAccount", "Role", "RoleBinding", "Deployment"}
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


# --- admission ----------------------------------------------------------------------------------------------------------

ADMISSION = "ValidatingAdmissionPolicy"


def policies(*arguments: str) -> dict[str, dict[str, Any]]:
    """name -> spec"""
    text = helm("template", "switchover", str(CHART), "--namespace", "kafka", *arguments).stdout
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


def test_what_no_approval_covers_may_be_changed_by_anybody() -> None:
    (spec,) = policies("--set", "admissionPolicies.fourEyes=true").values()
    (unbound,) = (each["expression"] for each in spec["variables"] if each["name"] == "unbound")
    assert set(yaml.safe_load(unbound)) == {KafkaMigrationSpec.model_fields[each].alias for each in UNBOUND}


# --- the network --------------------------------------------------------------------------------------------------------

POLICY = "networkPolicy.enabled=true"


def test_the_operator_reaches_what_it_asks_and_nothing_else() -> None:
    documents = rendered(POLICY, "networkPolicy.apiServer.to[0].ipBlock.cidr=10.0.0.1/32")
    policy, pod = of(documents, "NetworkPolicy")["spec"], of(documents, "Deployment")["spec"]["template"]
    assert policy["podSelector"]["matchLabels"].items() <= pod["metadata"]["labels"].items()
    assert policy["policyTypes"] == ["Ingress", "Egress"]
    here, server = [{"podSelector": {}}], [{"ipBlock": {"cidr": "10.0.0.1/32"}}]

    def tcp(*ports: int | str) -> list[dict[str, Any]]:
        return [{"protocol": "TCP", "port": port} for port in ports]

    assert policy["egress"] == [
        {"ports": [{"protocol": "UDP", "port": 53}, *tcp(53)]},
        {"ports": tcp(443, 6443), "to": server},
        {"ports": tcp(9092, 9093, 2181), "to": here},
    ]
    assert policy["ingress"] == [{"ports": tcp("probe", "metrics")}]
    assert {port["name"] for port in pod["spec"]["containers"][0]["ports"]} == {"probe", "metrics"}


def test_only_the_namespace_reaches_the_controllers() -> None:
    """The policy selects the label that the operator gives to their pods, whatever the spec says of labels."""
    policy = of(rendered(POLICY), "NetworkPolicy", "switchover-controllers")["spec"]
    assert policy["podSelector"] == {"matchExpressions": [{"key": CONTROLLERS_LABEL, "operator": "Exists"}]}
    assert policy["ingress"] == [{"from": [{"podSelector": {}}]}]
    assert policy["policyTypes"] == ["Ingress"]
    groups_alone = [each["metadata"]["name"] for each in rendered(POLICY, "kinds={ConsumerGroupMigration}")
                    if each["kind"] == "NetworkPolicy"]
    assert groups_alone == ["switchover"]


# --- monitoring ---------------------------------------------------------------------------------------------------------

RULES = ("monitoring.rules.enabled=true", "docs=https://git.example.com/docs")


def test_nothing_of_the_prometheus_operator_is_there_unless_it_is_asked_for() -> None:
    assert not {"PodMonitor", "PrometheusRule"} & {each["kind"] for each in rendered()}


def test_the_pod_monitor_selects_the_operators_pod_and_its_port_by_name() -> None:
    documents = rendered("monitoring.podMonitor.enabled=true", "monitoring.podMonitor.labels.release=prometheus")
    monitor, pod = of(documents, "PodMonitor"), of(documents, "Deployment")["spec"]["template"]
    assert monitor["metadata"]["labels"]["release"] == "prometheus"
    assert monitor["spec"]["selector"]["matchLabels"].items() <= pod["metadata"]["labels"].items()
    ports = {port["name"] for container in pod["spec"]["containers"] for port in container["ports"]}
    assert {endpoint["port"] for endpoint in monitor["spec"]["podMetricsEndpoints"]} <= ports


def test_each_alert_has_a_summary_and_a_runbook_that_is_there_and_asks_for_metrics_that_are() -> None:
    rules = [rule for group in of(rendered(*RULES), "PrometheusRule")["spec"]["groups"] for rule in group["rules"]]
    registry = CollectorRegistry()
    Metrics(registry, lambda: 0.0, "kafka")
    known = {sample for family in registry.collect() for sample in (family.name, f"{family.name}_total")}
    for rule in rules:
        page, _, anchor = rule["annotations"]["runbook_url"].removeprefix("https://git.example.com/").partition("#")
        assert (ROOT / page).is_file(), rule
        assert not anchor or f"## {anchor.replace('-', ' ')}" in (ROOT / page).read_text().lower(), rule
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
