"""The manifests of the worlds with the history oracle: their images exist, and no history goes with its pod."""

import re

import pytest
import yaml

from unit.kustomized import SANDBOX, world

GROUPS, OLD_CONSUMERS = world("manifests-groups"), world("manifests-zkcc")
WORLDS = pytest.mark.parametrize("here", [GROUPS, OLD_CONSUMERS], ids=["groups", "zkcc"])
WRITERS = [*((GROUPS, name) for name in ("orders", "payments", "orders-producer", "payments-producer")),
           *((OLD_CONSUMERS, name) for name in ("orders", "orders-producer"))]


@WORLDS
def test_every_image_is_one_that_build_makes(here) -> None:
    text = (SANDBOX / "images" / "build").read_text()
    made = {f"localhost/switchover/{name}:{tag}" for name, tag in re.findall(r"\[([\w-]+)\]=([\w.]+)", text)}
    assert set(here.images.values()) <= made
    assert {container["image"] for name in here.pods for container in here.containers(name)} == here.images.keys()


@pytest.mark.parametrize(("here", "workload"), WRITERS, ids=lambda each: each if isinstance(each, str) else "")
def test_a_pod_writes_a_history_of_its_own_into_the_directory_of_its_node(here, workload: str) -> None:
    [container] = here.containers(workload)
    named = "ACKNOWLEDGED" if "producer" in workload else "HISTORY"
    file = next(each["value"] for each in container["env"] if each["name"] == named)
    fields = {each["name"]: each["valueFrom"]["fieldRef"]["fieldPath"] for each in container["env"] if "valueFrom" in each}
    assert fields == {"POD_NAME": "metadata.name", "POD_UID": "metadata.uid"}
    assert file == "/histories/$(POD_NAME).$(POD_UID).jsonl"
    assert {"name": "histories", "mountPath": "/histories"} in container["volumeMounts"]
    [volume] = (each for each in here.pods[workload]["template"]["spec"]["volumes"] if each["name"] == "histories")
    collector = here.pods["histories"]["template"]["spec"]
    [node] = collector["volumes"]
    assert volume["hostPath"] == {"path": node["hostPath"]["path"] + "/histories", "type": "Directory"}
    [maker] = collector["initContainers"]
    assert f"mkdir -p {maker['volumeMounts'][0]['mountPath']}/histories\n" in maker["command"][-1]


@WORLDS
def test_all_of_it_fits_beside_a_cluster_on_two_cores(here) -> None:
    copies = {name: spec.get("replicas", 3 if name == "histories" else 1) for name, spec in here.pods.items()}
    asked = sum(copies[name] * max(int(each["resources"]["requests"]["cpu"].removesuffix("m"))
                                   for each in here.containers(name)) for name in here.pods)
    expected = {"kafka": 3} | ({"orders": 6, "payments": 6} if here is GROUPS else {"orders": 4, "zookeeper": 3})
    assert {name: copies[name] for name in expected} == expected
    assert asked < 800, "docs/sandbox.md says so"


def test_the_static_members_are_those_of_orders_with_an_instance_id_each() -> None:
    static = yaml.safe_load((SANDBOX / "manifests-groups-troubles" / "payments.yaml").read_text())
    orders = yaml.safe_load((SANDBOX / "manifests-groups" / "orders.yaml").read_text().replace("orders", "payments"))
    [container] = static["spec"]["template"]["spec"]["containers"]
    instance = {"name": "INSTANCE_ID", "value": "$(POD_NAME)"}
    assert container["env"].index(instance) > [each["name"] for each in container["env"]].index("POD_NAME")
    container["env"].remove(instance)
    assert static["spec"]["template"] == orders["spec"]["template"]


@pytest.mark.parametrize(("name", "members", "partitions"), [("manifests-zkcc", 4, "24"), ("manifests-zkcc-small", 3, "8")])
def test_the_old_consumers_are_alone_with_one_topic_of_theirs(name: str, members: int, partitions: str) -> None:
    here = world(name)
    assert {"consumer", "producer"} & here.pods.keys() == set(), "the other world's load reads the same group"
    assert here.pods["orders"]["replicas"] == members
    [topics], [member] = here.containers("topics"), here.containers("orders")
    assert topics["env"] == [{"name": "PARTITIONS", "value": partitions}]
    assert "--topic orders --partitions $PARTITIONS\n" in topics["command"][-1]
    assert {"command", "args"} & member.keys() == set(), "a migration changes the image, not the command"


def test_brokers_start_as_in_the_world_without_groups_but_for_one_setting() -> None:
    [plain], [patched] = world("manifests").containers("kafka"), OLD_CONSUMERS.containers("kafka")
    setting = " \\\n  --override group.initial.rebalance.delay.ms=1000\n"
    assert patched["command"][-1] == plain["command"][-1].rstrip("\n") + setting
    assert "group.initial.rebalance.delay.ms=1000\n" in (SANDBOX / "manifests-groups" / "kafka.yaml").read_text()
    assert {**patched, "command": plain["command"]} == plain
