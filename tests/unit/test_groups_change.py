"""The change of one container: what it writes, what it leaves alone, and that the way back is exact."""

from copy import deepcopy

import jsonpatch
import pytest
from hypothesis import given
from hypothesis import strategies as st

from switchover.api.consumer_group_migration import ContainerChange
from switchover.groups.workloads import change, stateful_set
from switchover.kubernetes import names
from switchover.kubernetes.members import Autoscaler
from unit.consumers import UID, after, manifest, workload

FINAL = ContainerChange.model_validate({
    "image": "orders:2", "args": ["--new"],
    "env": [{"name": "PROTOCOL", "value": "consumer"}, {"name": "SECRET", "value": "plain"}]})


def app(template):
    return template["spec"]["containers"][1]


def at_rest(kind):
    """A Deployment at 0, a StatefulSet held by its partition."""
    if kind == "Deployment":
        return manifest(kind, 0)
    made = manifest(kind, 3)
    return after(made, stateful_set.hold(workload(made)))


def held(found):
    """What keeps the pods of a workload that is at rest from being replaced."""
    return change.EMPTY if found.kind == "Deployment" else stateful_set.holding(found)


def test_variables_are_replaced_in_place_and_new_ones_come_last():
    changed = change.changed(manifest()["spec"]["template"], "app", FINAL)
    assert app(changed)["env"] == [
        {"name": "FIRST", "value": "1"}, {"name": "SECRET", "value": "plain"}, {"name": "LAST", "value": "$(FIRST)"},
        {"name": "PROTOCOL", "value": "consumer"}]
    assert (app(changed)["image"], app(changed)["args"]) == ("orders:2", ["--new"])


def test_what_the_change_does_not_name_stays():
    before = manifest()["spec"]["template"]
    kept = deepcopy(before)
    assert change.changed(before, "app", ContainerChange()) == before == kept
    changed = change.changed(before, "app", FINAL)
    assert before == kept, "nothing is changed in place"
    for template in (changed, before):
        for field in change.FIELDS:
            app(template).pop(field)
    assert changed == before


@pytest.mark.parametrize(("given_change", "stored"), [
    ({"args": []}, {"image": "orders:1"}),
    ({"env": [{"name": "EMPTY"}]}, {"image": "orders:1", "args": ["--x"], "env": [{"name": "EMPTY"}]}),
])
def test_what_is_empty_is_written_as_the_api_server_keeps_it(given_change, stored):
    template = {"spec": {"containers": [{"name": "app", "image": "orders:1", "args": ["--x"]}]}}
    changed = change.changed(template, "app", ContainerChange.model_validate(given_change))
    assert changed["spec"]["containers"] == [{"name": "app", **stored}]


def test_a_container_that_is_not_there_is_named_with_those_that_are():
    with pytest.raises(change.Unsupported, match="no container main; the pod has: sidecar, app"):
        change.changed(manifest()["spec"]["template"], "main", FINAL)


@pytest.mark.parametrize("kind", ["Deployment", "StatefulSet"])
def test_forward_over_the_bridge_and_back_is_exact(kind):
    made = at_rest(kind)
    original = made["spec"]["template"]
    bridge = change.changed(original, "app", ContainerChange.model_validate({"image": "bridge:1", "args": []}))
    final = change.changed(original, "app", ContainerChange.model_validate({"env": [{"name": "NEW", "value": "1"}]}))
    for wanted in (bridge, final, bridge, original):
        found = workload(made)
        assert change.differing(found, "app", wanted)
        made = after(made, change.write(found, "app", wanted, "the change", held(found)))
        assert made["spec"]["template"] == wanted, "of the bridge nothing stays but what the change names as well"
        assert change.differing(workload(made), "app", wanted) == ()


variables = st.lists(st.sampled_from(["FIRST", "SECRET", "LAST", "OTHER"]), unique=True).map(
    lambda chosen: [{"name": name, "value": name.lower()} for name in chosen])
changes = st.fixed_dictionaries({}, optional={
    "image": st.sampled_from(["orders:1", "orders:2"]), "args": st.lists(st.sampled_from(["a", "b"]), max_size=2),
    "env": variables}).map(ContainerChange.model_validate)


@given(st.lists(changes, min_size=1, max_size=4))
def test_whatever_was_written_the_original_comes_back(written):
    made = at_rest("Deployment")
    original = deepcopy(made["spec"]["template"])
    for each in written:
        wanted = change.changed(original, "app", each)
        made = after(made, change.write(workload(made), "app", wanted, "the change", held(workload(made))))
        assert made["spec"]["template"] == wanted
    back = change.write(workload(made), "app", original, "as it was", change.EMPTY)
    assert after(made, back)["spec"]["template"] == original


def test_what_others_write_meanwhile_stays():
    made = at_rest("Deployment")
    original = deepcopy(made["spec"]["template"])
    wanted = change.changed(original, "app", FINAL)
    made = after(made, change.write(workload(made), "app", wanted, "the change", change.EMPTY))
    made["spec"]["template"]["spec"]["containers"].insert(0, {"name": "mesh", "image": "mesh:1"})     # moves the indexes
    made["spec"]["template"]["metadata"]["annotations"] = {"restartedAt": "now"}
    back = after(made, change.write(workload(made), "app", original, "as it was", change.EMPTY))["spec"]["template"]
    assert back["metadata"]["annotations"] == {"restartedAt": "now"}
    assert back["spec"]["containers"] == [{"name": "mesh", "image": "mesh:1"}, *original["spec"]["containers"]]


def by_patch(template, text):
    """The original, and what a patch makes of it."""
    both = (template, change.changed(template, "app", ContainerChange(patch=text)))
    return change.Wanted(both[0], both), change.Wanted(both[1], both)


def test_of_what_a_patch_changed_goes_back_what_it_changed():
    made = at_rest("Deployment")
    original, wanted = by_patch(deepcopy(made["spec"]["template"]), """
        metadata: {annotations: {checksum: new}}
        spec:
          volumes: [{name: config, configMap: {name: new}}]
          nodeSelector: {disk: ssd}
          containers: [{name: sidecar, env: [{name: ONE, value: '1'}]}]""")
    made = after(made, change.write(workload(made), "app", wanted, "the change"))
    assert change.differing(workload(made), "app", original) == (
        "metadata.annotations.checksum", "spec.containers[sidecar].env[ONE]", "spec.volumes[config]",
        "spec.nodeSelector.disk")
    template = made["spec"]["template"]
    template["metadata"]["annotations"]["theirs"] = "a"
    template["spec"]["volumes"].insert(0, {"name": "theirs", "emptyDir": {}})
    template["spec"]["volumes"][1]["configMap"]["defaultMode"] = 420                                # the API server's own
    template["spec"]["containers"][0]["env"].insert(0, {"name": "THEIRS", "value": "1"})
    template["spec"]["nodeSelector"]["theirs"] = "a"
    assert change.differing(workload(made), "app", wanted) == ()
    back = after(made, change.write(workload(made), "app", original, "as it was"))["spec"]["template"]
    assert back["metadata"]["annotations"] == {"theirs": "a"}
    assert back["spec"]["volumes"] == [{"name": "theirs", "emptyDir": {}}]
    assert back["spec"]["containers"][0]["env"] == [{"name": "THEIRS", "value": "1"}]
    assert back["spec"]["nodeSelector"] == {"theirs": "a"}


def test_what_somebody_took_away_as_a_whole_is_written_as_a_whole():
    made = at_rest("Deployment")
    volume = {"name": "config", "configMap": {"name": "old", "defaultMode": 420}}
    made["spec"]["template"]["spec"]["volumes"] = [volume]
    _, wanted = by_patch(deepcopy(made["spec"]["template"]), "spec: {volumes: [{name: config, configMap: {name: new}}]}")
    made["spec"]["template"]["spec"]["volumes"] = []
    assert change.differing(workload(made), "app", wanted) == ("spec.volumes[config].configMap.name",)
    made = after(made, change.write(workload(made), "app", wanted, "the change"))
    assert made["spec"]["template"]["spec"]["volumes"] == [{**volume, "configMap": {"name": "new", "defaultMode": 420}}]


def test_what_a_list_that_is_replaced_leaves_out_is_seen():
    made = at_rest("Deployment")
    made["spec"]["template"]["spec"]["tolerations"] = [{"key": "a", "operator": "Exists", "effect": "NoSchedule"}]
    _, wanted = by_patch(deepcopy(made["spec"]["template"]), "spec: {tolerations: [{key: a, operator: Exists}]}")
    assert change.differing(workload(made), "app", wanted) == ("spec.tolerations",)
    assert after(made, change.write(workload(made), "app", wanted, "x"))["spec"]["template"] == wanted


def test_what_lies_in_the_containers_own_fields_is_told_and_written_once():
    made = at_rest("Deployment")
    _, wanted = by_patch(deepcopy(made["spec"]["template"]), "spec: {containers: [{name: app, env: [{name: N, value: a}]}]}")
    assert change.differing(workload(made), "app", wanted) == ("env of app",)
    assert [each["op"] for each in change.write(workload(made), "app", wanted, "x").operations] == ["test"] * 2 + ["add"]


def test_image_variables_and_arguments_are_laid_over_the_patch():
    given_change = {"image": "orders:3", "patch": "spec: {containers: [{name: app, image: 'orders:2', workingDir: /srv}]}"}
    found = app(change.changed(manifest()["spec"]["template"], "app", ContainerChange.model_validate(given_change)))
    assert (found["image"], found["workingDir"]) == ("orders:3", "/srv")


@pytest.mark.parametrize("kind", ["Deployment", "StatefulSet"])
@pytest.mark.parametrize("path", ["uid", "generation"])
def test_nothing_is_written_over_another_generation_or_object(kind, path):
    made = at_rest(kind)
    wanted, found = change.changed(made["spec"]["template"], "app", FINAL), workload(made)
    effect = change.write(found, "app", wanted, "the change", held(found))
    after(made, effect)
    made["metadata"][path] = "another"
    with pytest.raises(jsonpatch.JsonPatchTestFailed):
        after(made, effect)


@pytest.mark.parametrize("kind", ["Deployment", "StatefulSet"])
def test_nothing_is_written_while_pods_would_be_replaced_at_once(kind):
    made = manifest(kind, 3)
    wanted, found = change.changed(made["spec"]["template"], "app", FINAL), workload(made)
    effect = change.write(found, "app", wanted, "the change", held(found))
    with pytest.raises(jsonpatch.JsonPatchTestFailed):
        after(made, effect)


def test_a_container_that_somebody_removed_differs_in_everything():
    made = manifest()
    wanted = change.changed(made["spec"]["template"], "app", FINAL)
    del made["spec"]["template"]["spec"]["containers"][1]
    assert change.differing(workload(made), "app", wanted) == ("image of app", "env of app", "args of app")
    with pytest.raises(change.Unsupported):
        change.write(workload(made), "app", wanted, "the change", held(workload(made)))


def test_the_original_keeps_all_that_the_way_back_needs_and_nobody_owns_it():
    scaler = Autoscaler("autoscaling/v2", "HorizontalPodAutoscaler", "orders", "uid", "1", {"minReplicas": 2})
    found = workload(manifest("StatefulSet"), autoscalers=(scaler,))
    kept = change.original_manifest(found, "0a1b2c3d-uid", 2, names.labels("to-consumer"))
    assert kept["metadata"] == {"name": "statefulset-orders-before-0a1b2c3d-2", "labels": names.labels("to-consumer")}
    assert kept["data"] == {
        "template": found.template, "updateStrategy": found.update_strategy, "replicas": 3,
        "minReadySeconds": 0, "progressDeadlineSeconds": None,
        "autoscalers": {"HorizontalPodAutoscaler orders": {"minReplicas": 2}}}
    assert change.original_name("Deployment", found.name, "0a1b2c3d-uid", 2) != kept["metadata"]["name"]
    assert change.original_name(found.kind, found.name, "of-another", 2) != kept["metadata"]["name"]


@pytest.mark.parametrize("annotations", [None, {"team": "shop"}])
def test_claimed_and_released(annotations):
    made = manifest()
    if annotations:
        made["metadata"]["annotations"] = dict(annotations)
    claimed = after(made, change.claim(workload(made, annotated=bool(annotations)), "uid-1"))
    assert claimed["metadata"]["annotations"] == {**(annotations or {}), names.CLAIM: "uid-1"}
    release = change.release(workload(claimed, claimed_by="uid-1"))
    assert after(claimed, release)["metadata"]["annotations"] == (annotations or {})
    for another in ({"uid": "another"}, {"annotations": {names.CLAIM: "uid-2"}}):
        with pytest.raises(jsonpatch.JsonPatchTestFailed):
            after({**claimed, "metadata": {**claimed["metadata"], **another}}, release)
    moved = deepcopy(made)
    moved["metadata"]["resourceVersion"] = "71"
    with pytest.raises(jsonpatch.JsonPatchTestFailed):
        after(moved, change.claim(workload(made, annotated=bool(annotations)), "uid-1"))
    assert moved["metadata"]["uid"] == UID
