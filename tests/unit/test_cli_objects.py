"""Which object a NAME means, and where Kubernetes is."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from switchover.answers.errors import Refused
from switchover.cli.command import Place
from switchover.cli.kube import kubeconfig_of
from switchover.cli.objects import CONSUMER_GROUP_MIGRATION, KAFKA_MIGRATION, Found, bare, chosen, every, in_file, kinds_of
from switchover.kubernetes.client.api_server import NotFound


def found(kind: Any, name: str) -> Found:
    return Found(kind, {"metadata": {"name": name, "namespace": "demo"}})


EVERY = [found(KAFKA_MIGRATION, "kafka"), found(KAFKA_MIGRATION, "orders"), found(CONSUMER_GROUP_MIGRATION, "orders")]


@pytest.mark.parametrize(("text", "name"), [
    ("kafka", "kmig/kafka"), ("kmig/orders", "kmig/orders"), ("cgmig/orders", "cgmig/orders"),
    ("ConsumerGroupMigration/orders", "cgmig/orders"), ("kafkamigrations/kafka", "kmig/kafka")])
def test_a_name_means_one(text: str, name: str) -> None:
    assert chosen(text, EVERY, "demo").name == name


@pytest.mark.parametrize(("text", "words"), [
    ("orders", "orders may be kmig/orders or cgmig/orders: say which"),
    ("cgmig/kafka", "there is no migration cgmig/kafka in namespace demo; there is kmig/kafka, kmig/orders, cgmig/orders"),
    ("cgmig/nothing", "there is no migration cgmig/nothing in namespace demo; there is kmig/kafka"),
    ("nothing", "there is no migration nothing in namespace demo; there is kmig/kafka")])
def test_one_that_means_none_or_two_is_refused_with_the_names_that_there_are(text: str, words: str) -> None:
    with pytest.raises(Refused, match=words):
        chosen(text, EVERY, "demo")


def test_where_there_is_none_of_a_kind_that_says_nothing_of_the_other() -> None:
    for text, words in (("cgmig/kafka", "there is none of this kind"), ("kafka", "there is none$")):
        with pytest.raises(Refused, match=words):
            chosen(text, [], "demo")


@pytest.mark.parametrize("text", ["pod/kafka", "kmig/", "/kafka", "a/kmig/kafka"])
def test_a_kind_that_there_is_not_is_refused(text: str) -> None:
    with pytest.raises(Refused, match=r"neither kmig/NAME nor cgmig/NAME"):
        kinds_of(text)


def test_a_command_for_one_kind_refuses_the_other() -> None:
    assert bare("kmig/kafka", KAFKA_MIGRATION) == bare("kafka", KAFKA_MIGRATION) == "kafka"
    with pytest.raises(Refused, match="cgmig/orders is no KafkaMigration"):
        bare("cgmig/orders", KAFKA_MIGRATION)


def test_the_kubeconfig_is_the_options_then_the_variables_then_the_usual_one(tmp_path: Path) -> None:
    usual, named, other = tmp_path / ".kube/config", tmp_path / "named", tmp_path / "other"
    usual.parent.mkdir()
    for file in (usual, named, other):
        file.touch()
    home = {"HOME": str(tmp_path)}
    assert kubeconfig_of(Place(kubeconfig=str(named)), home | {"KUBECONFIG": str(other)}) == str(named)
    assert kubeconfig_of(Place(), home | {"KUBECONFIG": f"{tmp_path}/none:{other}"}) == f"{tmp_path}/none:{other}"
    assert kubeconfig_of(Place(), home) == str(usual)
    usual.unlink()
    assert kubeconfig_of(Place(), home | {"KUBERNETES_SERVICE_HOST": "10.0.0.1"}) == "", "in a pod its service account"


@pytest.mark.parametrize(("place", "words"), [
    (Place(), "there is no kubeconfig: neither .*/.kube/config nor KUBECONFIG; name one with --kubeconfig"),
    (Place(kubeconfig="/nowhere/at/all"), "the kubeconfig /nowhere/at/all does not exist")])
def test_without_a_kubeconfig_it_is_refused(place: Place, words: str, tmp_path: Path) -> None:
    with pytest.raises(Refused, match=words):
        kubeconfig_of(place, {"HOME": str(tmp_path)})


class Serving:
    """An API server that serves our group in these versions, or not at all."""

    address, namespace = "https://kubernetes", "demo"

    def __init__(self, versions: Sequence[str]) -> None:
        self._versions = versions

    def resource_path(self, api_version: str, plural: str) -> str:
        return f"/apis/{api_version}/{plural}"

    async def items(self, _: str) -> list[dict[str, Any]]:
        raise NotFound

    async def get(self, _: str) -> dict[str, Any]:
        if not self._versions:
            raise NotFound
        return {"versions": [{"version": each} for each in self._versions]}


@pytest.mark.parametrize(("versions", "words"), [
    ((), "Switchover's CRDs are not installed on https://kubernetes: install this release's chart, or kubectl apply "),
    (("v1", "v1beta1"), "the CRDs on https://kubernetes are of another release: they serve v1, v1beta1, this program needs "
                        "v1alpha1; install this release's chart, or kubectl apply ")])
async def test_crds_that_are_missing_or_of_another_release_are_told_with_what_brings_them(
        versions: Sequence[str], words: str) -> None:
    with pytest.raises(Refused, match=words):
        await every(Serving(versions))  # type: ignore[arg-type]


# --- manifests ----------------------------------------------------------------------------------------------------------

KAFKA = "apiVersion: switchover.dev/v1alpha1\nkind: KafkaMigration\nmetadata: {name: kafka}\nspec: {}\n"
SECRET = "kind: Secret\nmetadata: {name: login}\n"


def test_the_migration_of_a_manifest_is_found_among_other_objects() -> None:
    found = in_file(f"{SECRET}---\n{KAFKA}---\n", "demo")
    assert (found.name, found.resource["metadata"]["namespace"], found.resource["status"]) == ("kmig/kafka", "demo", {})
    elsewhere = in_file(KAFKA.replace("{name: kafka}", "{name: kafka, namespace: own}"), "demo")
    assert elsewhere.resource["metadata"]["namespace"] == "own"


@pytest.mark.parametrize(("text", "words"), [
    ("", "the file must hold one KafkaMigration or ConsumerGroupMigration, and holds none"), (SECRET, "must hold one"),
    (f"{KAFKA}---\n{KAFKA}", "and holds 2"), ("kind: KafkaMigration\nmetadata: [a]\n", "the file's metadata is no object"),
    ("a: [", r"the file is no YAML: expected the node content, but found '<stream end>' \(line 1, column 5\)"),
    ("\x00", "the file is no YAML")])
def test_what_holds_none_or_two_is_refused(text: str, words: str) -> None:
    with pytest.raises(Refused, match=words):
        in_file(text, "demo")
