"""The clone of a Deployment: what it takes of its source, what not, and what cannot be cloned."""

from typing import Any

import pytest

from switchover.api.consumer_group_migration import ContainerChange
from switchover.core import names
from switchover.core.groups import clone
from switchover.core.groups.change import Unsupported
from unit.consumers import LABELS, manifest, workload

BRIDGE = ContainerChange.model_validate({"image": "bridge:1"})


def cloned(made: dict[str, Any], **facts: Any) -> dict[str, Any]:
    source = workload(made, **facts)
    return clone.manifest(source, source.template, "app", BRIDGE, "to-consumer", "uid-of-the-migration")


def test_the_clone_is_ours_selects_its_own_pods_alone_and_begins_with_none():
    made = cloned(manifest())
    own = {"switchover.dev/clone-of": "orders"}
    assert made["metadata"] == {"name": "orders-switchover", "labels": {**names.labels("to-consumer"), **own},
                                "annotations": {names.CLAIM: "uid-of-the-migration"}}
    assert made["spec"]["selector"] == {"matchLabels": own}
    assert made["spec"]["replicas"] == 0
    assert made["spec"]["template"]["metadata"]["labels"] == {**LABELS, **own}


def test_its_pods_are_those_of_the_source_with_the_intermediate():
    source, made = manifest(serviceAccountName="orders"), cloned(manifest(serviceAccountName="orders"))
    pod, expected = made["spec"]["template"]["spec"], source["spec"]["template"]["spec"]
    assert pod["containers"][1].pop("image") == "bridge:1"
    assert expected["containers"][1].pop("image") == "orders:1"
    assert pod == expected


def test_it_is_made_of_the_original_template_whatever_is_live():
    source = workload(manifest())
    live = manifest()
    live["spec"]["template"]["spec"]["containers"][1]["args"] = ["--final"]
    made = clone.manifest(workload(live), source.template, "app", BRIDGE, "to-consumer", "uid")
    assert made["spec"]["template"]["spec"]["containers"][1]["args"] == ["--group", "orders"]


@pytest.mark.parametrize("mark", [
    "argocd.argoproj.io/tracking-id", "kustomize.toolkit.fluxcd.io/name", "helm.toolkit.fluxcd.io/name",
    "meta.helm.sh/release-name"])
def test_marks_of_tools_stay_behind_and_other_annotations_of_pods_come_along(mark):
    made = manifest()
    made["spec"]["template"]["metadata"]["annotations"] = {mark: "shop", "prometheus.io/scrape": "true"}
    assert cloned(made)["spec"]["template"]["metadata"]["annotations"] == {"prometheus.io/scrape": "true"}
    made["spec"]["template"]["metadata"]["annotations"] = {mark: "shop"}
    assert "annotations" not in cloned(made)["spec"]["template"]["metadata"]


def test_a_label_that_services_select_by_comes_along_even_if_a_tool_tracks_by_it():
    made = manifest()
    made["spec"]["template"]["metadata"]["labels"]["app.kubernetes.io/instance"] = "shop"
    made = cloned(made)
    assert made["spec"]["template"]["metadata"]["labels"]["app.kubernetes.io/instance"] == "shop"
    assert "app.kubernetes.io/instance" not in made["metadata"]["labels"]


def test_nobody_owns_it():
    assert "ownerReferences" not in cloned(manifest())["metadata"]


@pytest.mark.parametrize("modes", [("ReadWriteMany",), ("ReadWriteOnce", "ReadOnlyMany")])
def test_a_claim_that_can_be_shared_is_cloned(modes):
    volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}, {"name": "tmp", "emptyDir": {}}]
    assert cloned(manifest(volumes=volumes), claims={"data": modes})["spec"]["template"]["spec"]["volumes"] == volumes


CLAIM = {"volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]}
PORT = {"initContainers": [{"name": "proxy", "ports": [{"containerPort": 80, "hostPort": 8080}]}]}


@pytest.mark.parametrize(("pod", "facts", "words"), [
    (CLAIM, {"claims": {"data": ("ReadWriteOnce",)}}, "PersistentVolumeClaim data is ReadWriteOnce"),
    (CLAIM, {"claims": {"data": ("ReadWriteOncePod",)}}, "use a claim with ReadWriteMany, or a StatefulSet"),
    (CLAIM, {}, "names PersistentVolumeClaim data, which does not exist"),
    (PORT, {}, "container proxy takes port 8080 of its node"),
    ({}, {"paused": True}, "kubectl rollout resume deployment orders"),
    ({"containers": [{"name": "main"}]}, {}, "no container app; the pod has: main"),
])
def test_what_cannot_be_cloned_is_refused_in_words(pod, facts, words):
    with pytest.raises(Unsupported, match=words):
        cloned(manifest(**pod), **facts)


def test_a_stateful_set_is_not_cloned():
    with pytest.raises(Unsupported, match="StatefulSet orders is no Deployment"):
        cloned(manifest("StatefulSet"))


def test_the_name_fits_a_label():
    assert len(clone.clone_name("o" * 52)) <= 63
