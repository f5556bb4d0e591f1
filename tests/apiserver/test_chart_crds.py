"""The CRDs are templates of the chart: an upgrade brings them, and no uninstallation takes them away."""

import json
import re
import shlex
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from apiserver import charts
from apiserver.charts import CHART, ROOT
from apiserver.test_chart import MIGRATION
from patience import stretched

Kubectl = Callable[..., subprocess.CompletedProcess[str]]
CRDS = sorted(yaml.safe_load(path.read_text())["metadata"]["name"] for path in (ROOT / "crds").glob("*.yaml"))
KMIG = "kafkamigrations.switchover.dev"
LATER = "soakSeconds"
"""A field of the spec that the release of before does not have."""


def shown(*values: str) -> dict[str, dict[str, Any]]:
    """The CRDs among what the chart makes."""
    settings = [word for value in values for word in ("--set", value)]
    text = charts.helm("template", "switchover", str(CHART), *settings).stdout
    return {each["metadata"]["name"]: each for each in yaml.safe_load_all(text)
            if each and each["kind"] == "CustomResourceDefinition"}


def test_the_charts_crds_are_those_of_the_models() -> None:
    found = shown()
    models = [yaml.safe_load(path.read_text()) for path in (ROOT / "crds").glob("*.yaml")]
    assert {name: each["spec"] for name, each in found.items()} == {crd["metadata"]["name"]: crd["spec"] for crd in models}
    assert all(each["metadata"]["annotations"] == {"helm.sh/resource-policy": "keep"} for each in found.values())


def test_they_are_left_out_or_go_with_the_release_where_the_values_say_so() -> None:
    assert shown("crds.install=false") == {}
    assert not [each for each in shown("crds.keep=false").values() if "annotations" in each["metadata"]]


class Cluster:
    """An API server without CRDs of ours, but for what a test lets Helm bring."""

    def __init__(self, kubectl: Kubectl, kubeconfig: Path, namespace: str, tmp_path: Path) -> None:
        self.kubectl, self.namespace = kubectl, namespace
        self._to = ("--kubeconfig", str(kubeconfig), "--namespace", namespace)
        self.before = tmp_path / "before"
        shutil.copytree(CHART, self.before, symlinks=False)
        shutil.move(self.before / "files" / "crds", self.before / "crds")
        (self.before / "templates" / "crds.yaml").unlink()
        for path in (self.before / "crds").glob("*.yaml"):
            path.write_text(re.sub(rf"\b{LATER}\b", "earlier", path.read_text()))

    def helm(self, verb: str, *arguments: str, check: bool = True) -> "subprocess.CompletedProcess[str]":
        return charts.helm(verb, "switchover", *arguments, *self._to, check=check)

    def refused(self, verb: str, *arguments: str) -> str:
        answer = self.helm(verb, *arguments, check=False)
        assert answer.returncode != 0
        return answer.stderr

    def has_later_field(self) -> bool:
        crd = json.loads(self.kubectl("get", "crd", KMIG, "--output", "json").stdout)
        (version,) = crd["spec"]["versions"]
        return LATER in version["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]

    def is_established(self) -> None:
        for name in CRDS:
            self.kubectl("wait", "--for=condition=Established", f"--timeout={stretched(30):.0f}s", f"crd/{name}")

    def migrations(self) -> list[str]:
        return self.kubectl("get", "kmig", "--namespace", self.namespace, "--output", "name").stdout.split()


@pytest.fixture
def cluster(kubectl: Kubectl, kubeconfig: Path, crds: object, namespace: str, tmp_path: Path) -> Iterator[Cluster]:
    for plural in CRDS:                                 # of other tests, whose operator is gone
        for each in json.loads(kubectl("get", plural, "--all-namespaces", "--output", "json").stdout)["items"]:
            kubectl("patch", plural, each["metadata"]["name"], "--namespace", each["metadata"]["namespace"],
                    "--type", "merge", "--patch", '{"metadata": {"finalizers": null}}')
    kubectl("delete", "--ignore-not-found", "--filename", str(ROOT / "crds"))
    made = Cluster(kubectl, kubeconfig, namespace, tmp_path)
    yield made
    made.helm("uninstall", "--ignore-not-found")
    kubectl("apply", "--server-side", "--force-conflicts", "--filename", str(ROOT / "crds"))
    made.is_established()


@pytest.mark.parametrize("by_hand", [pytest.param(False, id="by Helm", marks=pytest.mark.long),
                                     pytest.param(True, id="by hand")])
def test_crds_of_the_layout_before_are_handed_over_and_upgraded(cluster: Cluster, kubectl: Kubectl, by_hand: bool) -> None:
    """In a chart's crds/ Helm left them as they were; whoever upgraded them by hand owns their fields."""
    cluster.helm("install", str(cluster.before))
    if by_hand:
        kubectl("apply", "--server-side", "--force-conflicts", "--filename", str(cluster.before / "crds"))
    cluster.is_established()
    assert not cluster.has_later_field()
    kubectl("apply", "--namespace", cluster.namespace, "--filename", "-", stdin=yaml.safe_dump(MIGRATION))
    words = cluster.refused("upgrade", str(CHART))
    assert f"CRD {CRDS[0]} is there already and belongs to no release. Hand it to this one: " in words
    commands = words.partition("Hand it to this one: ")[2].partition(" - or ")[0]
    for command in commands.split(" && "):
        program, *arguments = shlex.split(command)
        assert program == "kubectl"
        kubectl(*arguments)
    cluster.helm("upgrade", str(CHART), *(("--force-conflicts",) if by_hand else ()))
    assert cluster.has_later_field()
    assert cluster.migrations() == ["kafkamigration.switchover.dev/kafka"]


def test_a_release_installs_upgrades_and_leaves_them(cluster: Cluster, kubectl: Kubectl) -> None:
    cluster.helm("install", str(CHART))
    cluster.is_established()
    kubectl("apply", "--namespace", cluster.namespace, "--filename", "-", stdin=yaml.safe_dump(MIGRATION))
    cluster.helm("upgrade", str(CHART), "--set", "logLevel=debug")
    other = ("install", "other", str(CHART), "--namespace", "default", "--dry-run=server", *cluster._to[:2])
    words = charts.helm(*other, check=False).stderr
    assert f"belongs to the release switchover in namespace {cluster.namespace}, which upgrades it" in words
    assert "CustomResourceDefinition" not in charts.helm(*other, *charts.NO_CRDS).stdout
    cluster.helm("uninstall")
    assert cluster.migrations() == ["kafkamigration.switchover.dev/kafka"]
    cluster.helm("install", str(CHART))
    assert cluster.migrations() == ["kafkamigration.switchover.dev/kafka"], "the same release takes them up again"
