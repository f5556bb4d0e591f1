"""What examples/ holds can be applied: to a real API server, and to the tools that it is for."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from apiserver.charts import CHART, ROOT, helm
from apiserver.conftest import Kubectl
from apiserver.test_gitops import FLUX, evaluate

EXAMPLES = ROOT / "examples"
WAVE = "argocd.argoproj.io/sync-wave"


def documents(path: Path) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all(path.read_text()))


def of(group: str) -> list[Path]:
    """The files with a resource of that API group."""
    found = [path for path in sorted(EXAMPLES.rglob("*.yaml"))
             if any(str(each.get("apiVersion", "")).startswith(group) for each in documents(path))]
    assert found
    return found


def name(path: Path) -> str:
    return str(path.relative_to(EXAMPLES))


@pytest.mark.parametrize("path", of("switchover.dev/"), ids=name)
@pytest.mark.usefixtures("crds")
def test_a_migration_is_accepted_with_no_field_unknown(path: Path, namespace: str, kubectl: Kubectl) -> None:
    (migration,) = documents(path)
    migration["metadata"]["namespace"] = namespace
    kubectl("create", "--validate=strict", "--filename", "-", stdin=yaml.safe_dump(migration))


def test_the_chart_takes_the_values() -> None:
    helm("template", "switchover", str(CHART), "--values", str(EXAMPLES / "helm" / "values.yaml"))
    for path in of("helm.toolkit.fluxcd.io/"):
        (release,) = documents(path)
        values = [f"--set={key}.{field}={value}" for key, fields in release["spec"]["values"].items()
                  for field, value in fields.items()]
        helm("template", "switchover", str(CHART), *values)


@pytest.mark.parametrize("path", of("kustomize.toolkit.fluxcd.io/"), ids=name)
def test_fluxs_own_types_take_the_kustomization_and_its_path_is_there(path: Path) -> None:
    evaluate([], flux=path)
    (kustomization,) = documents(path)
    spec, (shipped,) = kustomization["spec"], documents(FLUX)
    assert spec.get("healthCheckExprs", shipped["spec"]["healthCheckExprs"]) == shipped["spec"]["healthCheckExprs"]
    assert list((ROOT / spec["path"]).glob("*.yaml"))


def test_a_kustomization_depends_on_one_that_is_there() -> None:
    every = [each for path in of("kustomize.toolkit.fluxcd.io/") for each in documents(path)]
    found = {each["metadata"]["name"]: each["spec"] for each in every}
    wanted = {needed["name"] for spec in found.values() for needed in spec.get("dependsOn", ())}
    assert wanted == {"switchover-operator", "kafka-migration"}
    assert wanted < set(found)


def test_the_waves_bring_the_operator_then_the_cluster_then_the_group() -> None:
    applications = {each["metadata"]["name"]: each for path in of("argoproj.io/") for each in documents(path)}
    sources = {name: ROOT / each["spec"]["source"]["path"] for name, each in applications.items()}
    below = {each["metadata"]["name"] for path in sources.pop("switchover").glob("*.yaml") for each in documents(path)}
    assert below == set(sources)
    waves = {name: int(applications[name]["metadata"]["annotations"][WAVE]) for name in below}
    assert waves["switchover-operator"] < waves["switchover-migrations"]
    assert sources["switchover-operator"] == CHART
    (values,) = applications["switchover-operator"]["spec"]["source"]["helm"]["valueFiles"]
    assert (CHART / values).resolve() == EXAMPLES / "helm" / "values.yaml"
    migrations = [each for path in sources["switchover-migrations"].glob("*.yaml") for each in documents(path)]
    order = sorted(migrations, key=lambda each: int(each["metadata"]["annotations"][WAVE]))
    assert [each["kind"] for each in order] == ["KafkaMigration", "ConsumerGroupMigration"]
