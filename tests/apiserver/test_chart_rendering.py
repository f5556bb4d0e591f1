"""What the chart makes of its values: no API server is needed to see it."""

from typing import Any

import pytest
import yaml

from apiserver.charts import CHART, ROOT, helm, of, refusal, rendered
from switchover.adapters.survey import GROUP_RIGHTS, RIGHTS

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
    ("rbac.secrets.read={kafka-client}", "rbac.secrets.write must name STATEFULSET-switchover"),
])
def test_a_value_that_does_not_serve_is_refused_in_words(value: str, words: str) -> None:
    assert words in refusal(value)


def test_no_right_reaches_beyond_the_namespace_and_none_is_a_wildcard() -> None:
    documents = rendered()
    assert {document["kind"] for document in documents} == {"ServiceAccount", "Role", "RoleBinding", "Deployment"}
    rules = [rule for document in documents if document["kind"] == "Role" for rule in document["rules"]]
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
