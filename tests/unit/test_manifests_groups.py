"""The manifests of the consumer groups' world: their images exist, and no history goes with its pod."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

SANDBOX = Path(__file__).parents[2] / "sandbox"
MANIFESTS = SANDBOX / "manifests-groups"
KUSTOMIZATION = yaml.safe_load((MANIFESTS / "kustomization.yaml").read_text())
OBJECTS = [each for name in KUSTOMIZATION["resources"] for each in yaml.safe_load_all((MANIFESTS / name).read_text())]
PODS = {each["metadata"]["name"]: each["spec"] for each in OBJECTS if "template" in each.get("spec", {})}
WRITERS = ["orders", "payments", "orders-producer", "payments-producer"]


def containers(workload: str) -> list[dict[str, Any]]:
    pod = PODS[workload]["template"]["spec"]
    return [*pod.get("initContainers", []), *pod["containers"]]


def test_every_image_is_one_that_build_makes() -> None:
    text = (SANDBOX / "images" / "build").read_text()
    made = {f"localhost/switchover/{name}:{tag}" for name, tag in re.findall(r"\[([\w-]+)\]=([\w.]+)", text)}
    images = {each["name"]: f"{each['newName']}:{each['newTag']}" for each in KUSTOMIZATION["images"]}
    assert set(images.values()) <= made
    assert {container["image"] for name in PODS for container in containers(name)} == images.keys()


@pytest.mark.parametrize("workload", WRITERS)
def test_a_pod_writes_a_history_of_its_own_into_the_directory_of_its_node(workload: str) -> None:
    [container] = containers(workload)
    named = "ACKNOWLEDGED" if "producer" in workload else "HISTORY"
    file = next(each["value"] for each in container["env"] if each["name"] == named)
    fields = {each["name"]: each["valueFrom"]["fieldRef"]["fieldPath"] for each in container["env"] if "valueFrom" in each}
    assert fields == {"POD_NAME": "metadata.name", "POD_UID": "metadata.uid"}
    assert file == "/histories/$(POD_NAME).$(POD_UID).jsonl"
    assert container["volumeMounts"] == [{"name": "histories", "mountPath": "/histories"}]
    [volume] = PODS[workload]["template"]["spec"]["volumes"]
    collector = PODS["histories"]["template"]["spec"]
    [node] = collector["volumes"]
    assert volume["hostPath"] == {"path": node["hostPath"]["path"] + "/histories", "type": "Directory"}
    [maker] = collector["initContainers"]
    assert f"mkdir -p {maker['volumeMounts'][0]['mountPath']}/histories\n" in maker["command"][-1]


def test_all_of_it_fits_beside_a_cluster_on_two_cores() -> None:
    copies = {name: spec.get("replicas", 3 if name == "histories" else 1) for name, spec in PODS.items()}
    asked = sum(copies[name] * max(int(each["resources"]["requests"]["cpu"].removesuffix("m")) for each in containers(name))
                for name in PODS)
    assert (copies["orders"], copies["payments"], copies["kafka"]) == (6, 6, 3)
    assert asked < 800, "docs/sandbox.md says so"


def test_the_static_members_are_those_of_orders_with_an_instance_id_each() -> None:
    static = yaml.safe_load((SANDBOX / "manifests-groups-troubles" / "payments.yaml").read_text())
    orders = yaml.safe_load((MANIFESTS / "orders.yaml").read_text().replace("orders", "payments"))
    [container] = static["spec"]["template"]["spec"]["containers"]
    instance = {"name": "INSTANCE_ID", "value": "$(POD_NAME)"}
    assert container["env"].index(instance) > [each["name"] for each in container["env"]].index("POD_NAME")
    container["env"].remove(instance)
    assert static["spec"]["template"] == orders["spec"]["template"]
