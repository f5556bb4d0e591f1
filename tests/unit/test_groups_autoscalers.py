"""Autoscalers: paused, given back exactly, or named."""

from dataclasses import replace
from typing import Any

import jsonpatch
import pytest

from switchover.groups.workloads.autoscalers import in_the_way, is_paused, pause, resume
from switchover.kubernetes.members import HPA, PAUSED, PAUSED_REPLICAS, Autoscaler

BEHAVIOR = {"scaleDown": {"selectPolicy": "Max", "policies": [{"type": "Pods", "value": 1, "periodSeconds": 60}]}}
DISABLED = {"scaleUp": {"selectPolicy": "Disabled"}, "scaleDown": {"selectPolicy": "Disabled"}}


def hpa(**settings: Any) -> dict[str, Any]:
    return {"kind": HPA, "metadata": {"name": "orders", "uid": "uid", "resourceVersion": "7"},
            "spec": {"maxReplicas": 9, **settings}}


def scaled_object(**annotations: str) -> dict[str, Any]:
    metadata: dict[str, Any] = {"name": "orders", "uid": "uid", "resourceVersion": "7"}
    if annotations:
        metadata["annotations"] = annotations
    return {"kind": "ScaledObject", "metadata": metadata, "spec": {}}


def read(made: dict[str, Any], **changes: Any) -> Autoscaler:
    annotations = made["metadata"].get("annotations") or {}
    settings = {key: value for key, value in {**made["spec"], **annotations}.items()
                if key in ("minReplicas", "behavior", PAUSED, PAUSED_REPLICAS)}
    found = Autoscaler("v1", made["kind"], "orders", "uid", "7", settings, annotated=bool(annotations))
    return replace(found, **changes)


def after(made: dict[str, Any], effect: Any) -> dict[str, Any]:
    result: dict[str, Any] = jsonpatch.apply_patch(made, [dict(operation) for operation in effect.operations])
    return result


@pytest.mark.parametrize("made", [
    hpa(minReplicas=3, behavior=BEHAVIOR), hpa(minReplicas=3), hpa(minReplicas=0), hpa(),
    hpa(minReplicas=3, behavior=DISABLED), hpa(minReplicas=1, behavior={**DISABLED, "scaleUp": {"selectPolicy": "Max"}}),
    scaled_object(), scaled_object(team="shop"), scaled_object(**{PAUSED: "false"})])
def test_paused_and_given_back_exactly(made):
    original = read(made)
    assert not is_paused(original)
    paused = after(made, pause(original))
    assert pause(read(paused)) is None
    assert is_paused(read(paused, confirmed=True))
    if made["kind"] == HPA:
        assert paused["spec"] == {"maxReplicas": 9, "minReplicas": 1, "behavior": DISABLED}
    restored = after(paused, resume(read(paused), original.settings))
    assert read(restored).settings == original.settings
    assert resume(read(restored), original.settings) is None
    restored["metadata"]["annotations"] = restored["metadata"].get("annotations") or None      # the API server drops {}
    made["metadata"].setdefault("annotations", None)
    assert restored == made


def test_as_the_api_server_fills_a_disabled_behavior_in():
    filled = {way: {"selectPolicy": "Disabled", "policies": [{"type": "Pods", "value": 4, "periodSeconds": 15}]}
              for way in ("scaleUp", "scaleDown")}
    assert is_paused(read(hpa(minReplicas=1, behavior=filled)))


def test_what_its_user_paused_stays_so():
    made = scaled_object(**{PAUSED: "true"})
    assert pause(read(made)) is None
    assert resume(read(made), read(made).settings) is None


def test_a_scaled_object_is_paused_when_keda_says_so():
    made = scaled_object(**{PAUSED: "true"})
    assert not is_paused(read(made))
    assert is_paused(read(made, confirmed=True))
    assert not is_paused(read(scaled_object(), confirmed=True)), "what was of before does not count"


@pytest.mark.parametrize("made", [hpa(minReplicas=3), scaled_object(team="shop")])
@pytest.mark.parametrize("field", ["uid", "resourceVersion"])
def test_fenced_by_what_was_read(made, field):
    other = {**made, "metadata": {**made["metadata"], field: "another"}}
    with pytest.raises(jsonpatch.JsonPatchTestFailed):
        after(other, pause(read(made)))


@pytest.mark.parametrize(("found", "words", "cure"), [
    (read(hpa(), kind="VerticalPodAutoscaler"), "VerticalPodAutoscaler orders may restart pods by itself",
     "delete it until the migration has ended"),
    (read(hpa(), owner="WatermarkPodAutoscaler orders"), "belongs to WatermarkPodAutoscaler orders",
     "pause WatermarkPodAutoscaler orders"),
    (read(scaled_object(**{PAUSED_REPLICAS: "4"})), "ScaledObject orders holds the replicas at 4",
     f"remove its annotation {PAUSED_REPLICAS}"),
])
def test_what_cannot_be_paused_is_named_and_not_touched(found, words, cure):
    why, unblocks = in_the_way(found) or ("", "")
    assert (words in why, unblocks) == (True, cure)
    assert not is_paused(found)
    with pytest.raises(AssertionError):
        pause(found)


def test_what_can_be_paused_is_not_in_the_way():
    assert [in_the_way(read(made)) for made in (hpa(), scaled_object())] == [None, None]
