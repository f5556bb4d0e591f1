"""Whose manifest has our template: what counts as evidence, and what anybody may write without it counting."""

import json
from typing import Any

import pytest

from switchover.cluster.door.mount import VOLUME
from switchover.kubernetes.client.ownership import applied_by
from switchover.kubernetes.gitops import LAST_APPLIED

OUR_VOLUME = {f'k:{{"name":"{VOLUME}"}}': {".": {}, "f:name": {}}}
OTHER_VOLUME = {'k:{"name":"config"}': {"f:name": {}}}


def entry(manager: str, operation: str = "Apply", volumes: Any = OUR_VOLUME) -> dict[str, Any]:
    fields = {"f:spec": {"f:template": {"f:spec": {"f:volumes": volumes}}}}
    return {"manager": manager, "operation": operation, "fieldsV1": fields}


def seen(*entries: dict[str, Any], annotation: str = "") -> tuple[str, ...]:
    annotations = {LAST_APPLIED: annotation} if annotation else {}
    return applied_by({"metadata": {"managedFields": list(entries), "annotations": annotations}})


def manifest(*volumes: str) -> str:
    return json.dumps({"spec": {"template": {"spec": {"volumes": [{"name": name} for name in volumes]}}}})


def test_managers_that_apply_our_volume():
    assert seen(entry("flux"), entry("argocd-controller"), annotation=manifest("config", VOLUME)) == (
        "argocd-controller", "client-side apply", "flux")


@pytest.mark.parametrize("nobody", [
    entry("switchover"), entry("switchover", "Update"), entry("kubectl-edit", "Update"), entry("flux", volumes=OTHER_VOLUME),
    {"manager": "flux", "operation": "Apply"}, {"manager": "flux", "operation": "Apply", "fieldsV1": {"f:spec": {}}},
], ids=["we by apply", "we by patch", "an edit", "another volume", "no fields", "no template"])
def test_what_is_no_evidence(nobody):
    assert seen(nobody) == ()


@pytest.mark.parametrize("annotation", [
    manifest("config"), manifest(), "{}", "[]", "no JSON", '{"spec": null}',
    '{"spec": {"template": {"spec": {"volumes": 1}}}}',
    '{"spec": {"template": {"spec": {"volumes": ["switchover-node-files"]}}}}'])
def test_an_annotation_that_says_nothing_of_our_volume(annotation):
    assert seen(annotation=annotation) == ()


def test_an_object_without_any_of_it():
    assert applied_by({"metadata": {"name": "kafka"}}) == ()
