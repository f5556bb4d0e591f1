"""Strategic merge patches of pod templates. A real API server proves the same in apiserver/test_template_patches.py."""

import json
import time
from collections.abc import Sequence
from contextlib import suppress
from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from switchover.api.consumer_group_migration import ContainerChange
from switchover.api.template_patch import LONGEST, parsed
from switchover.groups.preview import difference
from switchover.groups.workloads import bounds, change
from switchover.kubernetes.strategic_merge import BadPatch, merged
from unit.consumers import after, manifest, workload

TEMPLATE: dict[str, Any] = {
    "metadata": {"labels": {"app": "orders"}},
    "spec": {
        "initContainers": [{"name": "first", "image": "init:1"}, {"name": "second", "image": "init:1"}],
        "containers": [{"name": "app", "image": "orders:1", "args": ["--a", "--b"],
                        "env": [{"name": "A", "value": "a"}, {"name": "B", "value": "b"}],
                        "ports": [{"containerPort": 53, "protocol": "TCP"}, {"containerPort": 53, "protocol": "UDP"}]}],
        "volumes": [{"name": "config", "configMap": {"name": "orders-1", "defaultMode": 420}},
                    {"name": "tmp", "emptyDir": {}}],
        "tolerations": [{"key": "spot", "operator": "Exists"}],
    },
}


def made(text: str) -> Any:
    return merged(TEMPLATE, parsed(text))["spec"]


@pytest.mark.parametrize(("text", "field", "expected"), [
    ("volumes: [{name: config, configMap: {name: orders-2}}]", "volumes",
     [{"name": "config", "configMap": {"name": "orders-2", "defaultMode": 420}}, {"name": "tmp", "emptyDir": {}}]),
    ("volumes: [{name: config, configMap: null, secret: {secretName: s}}, {name: tmp, $patch: delete}]", "volumes",
     [{"name": "config", "secret": {"secretName": "s"}}]),
    ("volumes: [{name: config, $retainKeys: [name, emptyDir], emptyDir: {}}]", "volumes",
     [{"name": "config", "emptyDir": {}}, {"name": "tmp", "emptyDir": {}}]),
    ("volumes: [{$patch: replace}, {name: only, emptyDir: {}, $retainKeys: [name, emptyDir]}]", "volumes",
     [{"name": "only", "emptyDir": {}}]),
    ("volumes: [{name: config, configMap: {$patch: replace, name: orders-2, optional: null}}]", "volumes",
     [{"name": "config", "configMap": {"name": "orders-2"}}, {"name": "tmp", "emptyDir": {}}]),
    ("initContainers: [{name: new, image: 'i:1', env: null}]", "initContainers",
     [{"name": "new", "image": "i:1"}, *TEMPLATE["spec"]["initContainers"]]),
    ("$setElementOrder/initContainers: [{name: first}, {name: new}, {name: second}]\n"
     "  initContainers: [{name: new, image: 'i:1'}]", "initContainers",
     [TEMPLATE["spec"]["initContainers"][0], {"name": "new", "image": "i:1"}, TEMPLATE["spec"]["initContainers"][1]]),
    ("initContainers: [{name: first, $patch: delete}, {name: second, $patch: delete}]", "initContainers", None),
    ("tolerations: [{key: other, effect: null}]", "tolerations", [{"key": "other"}]),
    ("affinity: {$patch: delete}", "affinity", None),
    ("volumes: [{name: tmp, emptyDir: {$patch: delete}}]", "volumes", TEMPLATE["spec"]["volumes"]),
])
def test_what_a_patch_makes(text, field, expected):
    before = deepcopy(TEMPLATE)
    assert made(f"spec:\n  {text}").get(field) == expected
    assert before == TEMPLATE, "nothing is changed in place"


@pytest.mark.parametrize(("text", "field", "expected"), [
    ("env: [{name: B, value: c}, {name: NEW, value: n}]", "env",
     [{"name": "A", "value": "a"}, {"name": "B", "value": "c"}, {"name": "NEW", "value": "n"}]),
    ("env: [{name: NEW, value: n}, {name: A, $patch: delete}]", "env",
     [{"name": "NEW", "value": "n"}, {"name": "B", "value": "b"}]),
    ("$deleteFromPrimitiveList/args: [--a]", "args", ["--b"]),
    ("args: []", "args", None),
    ("ports: [{containerPort: 53, name: dns}]", "ports",
     [{"containerPort": 53, "protocol": "TCP", "name": "dns"}, {"containerPort": 53, "protocol": "UDP"}]),
])
def test_what_a_patch_makes_of_a_container(text, field, expected):
    assert made(f"spec: {{containers: [{{name: app, {text}}}]}}")["containers"][0].get(field) == expected


@pytest.mark.parametrize(("text", "told"), [
    ("spec: null", "spec must be an object"),
    ("spec: {volumes: [{name: config, $patch: mystery}]}", r"spec\.volumes: \$patch is replace or delete, and not mystery"),
    ("spec: {affinity: {nodeAffinity: {}}, tolerations: [{$patch: delete}]}", r"spec\.tolerations: \$patch has nothing"),
    ("spec: {volumes: [{emptyDir: {}}]}", r"an item of spec\.volumes has no name"),
    ("spec: {volumes: [{name: config, $order: [a]}]}", r"spec\.volumes\.\$order is no directive"),
    ("spec: {volumes: config}", r"spec\.volumes must be a list"),
    ("spec: {volumes: [{name: config, $retainKeys: [name], emptyDir: {}}]}", r"volumes\[config\]\.emptyDir is not among"),
    ("spec: {volumes: [{name: new, emptyDir: {$patch: replace}}]}", r"spec\.volumes\[new\]\.emptyDir: \$patch has nothing"),
    ("spec: {$setElementOrder/tolerations: [a]}", "tolerations is no list that is merged"),
    ("spec: {containers: [{name: app, env: {A: a}}]}", r"spec\.containers\[app\]\.env must be a list of objects"),
    ("spec: {containers: [{name: app, image: 5}]}", r"spec\.containers\[app\]\.image must be a text"),
    ("metadata: 5", "metadata must be an object"),
])
def test_what_means_nothing_is_told_by_its_place(text, told):
    with pytest.raises(BadPatch, match=told):
        made(text)


@pytest.mark.parametrize(("text", "told"), [
    ("{}", "an object with metadata or spec"), ("[]", "an object"), ("a", "an object"), ("template: {}", "and not template"),
    ("spec: {a: &x 1, b: *x}", r"anchors and aliases are not read \(line 1\)"), ("spec: {a: 1, a: 2}", "a is there twice"),
    ("spec: {on: 1}", "the key True is no text"), ("spec: {a: 2026-01-01}", "date is not JSON serializable"),
    ("spec: {a: .nan}", "not JSON compliant"), ("spec: [", "must be a patch"), ("spec: !!python/object:os.x y", "must be"),
    ("spec: " + "[" * 2_000 + "]" * 2_000, "nests"), ("\0", "must be"), ("spec: {<<: {a: 1}}", "must be"),
    ("spec: {a: " + "9" * 5_000 + "}", "must be"),
])
def test_what_is_no_patch_is_refused_in_words(text, told):
    with pytest.raises(ValueError, match=told):
        ContainerChange(patch=text)


@pytest.mark.parametrize("text", [
    "spec: " + "[" * 16_000, "spec: " + "{a: " * 4_000, "spec:\n" + "".join(f"{' ' * each}-\n" for each in range(170)),
    "spec: {" + ",".join(f"a{each}: 1" for each in range(1_800)) + "}", "spec: [" + "a," * 8_000 + "]", "? " * 8_000,
    "spec: '" + "a\n" * 8_000 + "'", "- " * 8_000, "spec: " + "!a " * 5_000,
])
def test_no_patch_holds_the_operator_up(text):
    """It is read in every pass once, by the one loop that serves all migrations."""
    began = time.process_time()
    with suppress(ValueError):
        parsed(text[:LONGEST])
    assert time.process_time() - began < 2.0


def test_a_patch_may_be_json_and_is_bounded():
    assert ContainerChange(patch='{"spec": {"volumes": null}}').patch
    with pytest.raises(ValueError, match="at most"):
        ContainerChange(patch="spec: {a: " + "a" * LONGEST + "}")


def test_what_a_patch_brings_in():
    after_it = merged(TEMPLATE, parsed("""
        spec:
          initContainers: [{name: own, image: 'orders:9'}, {name: first, image: 'init:2'}, {name: new, image: 'evil:1'}]
          volumes: [{name: a, secret: {secretName: s}}, {name: b, persistentVolumeClaim: {claimName: c}}]"""))
    assert list(bounds.images(TEMPLATE, after_it)) == [
        ("initContainers[own]", "orders:9", "orders:1"), ("initContainers[first]", "init:2", "init:1"),
        ("initContainers[new]", "evil:1", "")]
    assert (bounds.secrets(TEMPLATE, after_it), bounds.claims(TEMPLATE, after_it)) == (("s",), ("c",))
    assert (bounds.secrets(after_it, after_it), bounds.claims(after_it, after_it)) == ((), ())


def test_what_is_new_may_have_fewer_rights():
    restricted = merged(TEMPLATE, parsed("""
        spec: {initContainers: [{name: new, image: 'init:1', securityContext: {
          allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}, runAsNonRoot: true,
          seccompProfile: {type: RuntimeDefault}}}]}"""))
    assert list(bounds.beyond(TEMPLATE, restricted)) == []
    [told] = bounds.beyond(restricted, TEMPLATE | {"spec": {**restricted["spec"], "initContainers": [
        {"name": "new", "image": "init:1", "securityContext": {
            **restricted["spec"]["initContainers"][0]["securityContext"], "capabilities": {"drop": []}}}]}})
    assert told.startswith("spec.initContainers[new].securityContext.capabilities may give")


def test_it_is_shown_place_by_place_and_without_secrets():
    after_it = merged(TEMPLATE, parsed("""
        metadata: {annotations: {checksum: a, api-token: b}}
        spec:
          volumes: [{name: config, configMap: {name: orders-2}}, {name: s, secret: {secretName: not-secret-itself}}]
          initContainers: [{name: first, env: [{name: DB_PASSWORD, value: hidden-from-all}, {name: X, value: y}]}]
          containers: [{name: app, image: 'orders:2', tty: true}]
          tolerations: null"""))
    assert list(difference(TEMPLATE, after_it, "app")) == [
        "- image=orders:1", "+ image=orders:2",
        "+ metadata.annotations.checksum=a", "+ metadata.annotations.api-token=<hidden>",
        "+ spec.initContainers[first].env[DB_PASSWORD].value=<hidden>", "+ spec.initContainers[first].env[X].value=y",
        "+ spec.containers[app].tty=true",
        "- spec.volumes[config].configMap.name=orders-1", "+ spec.volumes[config].configMap.name=orders-2",
        "+ spec.volumes[s].secret.secretName=not-secret-itself",
        '- spec.tolerations=[{"key": "spot", "operator": "Exists"}]']


# --- whatever is written ------------------------------------------------------------------------------------------------

NAMES = st.sampled_from([
    "metadata", "spec", "labels", "annotations", "containers", "initContainers", "volumes", "env", "args", "image", "name",
    "ports", "containerPort", "valueFrom", "secretKeyRef", "configMap", "projected", "sources", "securityContext",
    "capabilities", "add", "drop", "tolerations", "imagePullSecrets", "persistentVolumeClaim", "$patch", "$retainKeys",
    "$setElementOrder/containers", "$setElementOrder/env", "$deleteFromPrimitiveList/args", "emptyDir", "nodeSelector"])
LEAVES = st.sampled_from(["app", "first", "config", "A", "B", "delete", "replace", "merge", "x", 53, 0, True, None, 1.5, ""])
VALUES = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=4), max_leaves=12)
ITEMS = st.lists(st.dictionaries(NAMES, VALUES, max_size=4).flatmap(
    lambda item: st.sampled_from(["app", "first", "config", "new"]).map(lambda name: {**item, "name": name})), max_size=3)
PATCHES = st.fixed_dictionaries({}, optional={
    "metadata": VALUES, "spec": VALUES | st.dictionaries(NAMES, ITEMS, max_size=3)}).filter(bool)


@given(PATCHES)
def test_whatever_is_written_is_a_template_or_a_refusal_in_words(patch):
    try:
        template = change.changed(TEMPLATE, "app", ContainerChange(patch=json.dumps(patch)))
    except change.Unsupported:
        return
    list(bounds.beyond(TEMPLATE, template))
    list(bounds.reordered(TEMPLATE, template, "app"))
    list(bounds.images(TEMPLATE, template))
    bounds.secrets(TEMPLATE, template)
    bounds.claims(TEMPLATE, template)
    list(difference(TEMPLATE, template, "app"))


def items(names: Sequence[str], *values: dict[str, Any]) -> st.SearchStrategy[list[dict[str, Any]]]:
    """Items of a merged list, each by one of these names."""
    chosen = st.sampled_from([*values, {"$patch": "delete"}])
    return st.dictionaries(st.sampled_from(names), chosen, min_size=1).map(
        lambda wanted: [{"name": name, **value} for name, value in wanted.items()])


ENV = items(["A", "B", "C"], {"value": "x"}, {"value": None, "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}})
CONTAINER = st.fixed_dictionaries({}, optional={
    "env": ENV, "args": st.lists(st.sampled_from(["--a", "--c"]), max_size=2), "image": st.just("orders:2"),
    "ports": st.just([{"containerPort": 80}])})
PLAUSIBLE = st.fixed_dictionaries({}, optional={
    "metadata": st.dictionaries(st.just("annotations"), st.dictionaries(st.sampled_from("ab"), st.just("x"), min_size=1)),
    "spec": st.fixed_dictionaries({}, optional={
        "volumes": items(["config", "tmp", "new"], {"emptyDir": {}, "configMap": None}, {"configMap": {"name": "orders-2"}}),
        "initContainers": items(["first", "second", "new"], {"image": "init:2"}, {"image": "init:1", "args": ["x"]}),
        "containers": CONTAINER.map(lambda container: [{"name": "app", **container}]),
        "tolerations": st.just([{"key": "other"}]) | st.none(), "nodeSelector": st.just({"disk": "ssd"})})}).filter(bool)


@given(PLAUSIBLE, PLAUSIBLE)
def test_whatever_is_written_is_seen_and_taken_back_exactly(bridge, final):
    made_of = manifest(replicas=0)
    made_of["spec"]["template"] = deepcopy(TEMPLATE)
    try:
        modes = (TEMPLATE, *(change.changed(TEMPLATE, "app", ContainerChange(patch=json.dumps(patch)))
                             for patch in (bridge, final)))
    except change.Unsupported:
        return
    if any([*bounds.beyond(TEMPLATE, mode), *bounds.reordered(other, mode, "app")] for mode in modes for other in modes):
        return
    for mode in (modes[1], modes[2], modes[1], modes[0]):
        wanted = change.Wanted(mode, modes)
        made_of = after(made_of, change.write(workload(made_of), "app", wanted, "the change"))
        assert change.differing(workload(made_of), "app", wanted) == ()
        assert made_of["spec"]["template"] == mode
        for other in modes:
            assert (change.differing(workload(made_of), "app", change.Wanted(other, modes)) == ()) == (other == mode)
