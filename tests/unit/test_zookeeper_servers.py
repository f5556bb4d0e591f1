"""The commands that stop ZooKeeper and start it again, by what zookeeper.connect tells and what is behind its Services."""

from collections.abc import Mapping

import pytest

from switchover.answers.observed import Known, Unknown
from switchover.cluster.ending import zookeeper_users
from switchover.cluster.picture import Picture
from switchover.kubernetes.selectors import POD_NAME, leads_to
from unit.pictures import NOW, moment, with_fact

SCALE = "kubectl --namespace {} scale statefulset/{} --replicas={}"


def releasing(connect: str, behind: Mapping[str, tuple[str, ...]] | None = None) -> Picture:
    told = Unknown("forbidden") if behind is None else Known(behind, NOW)
    return with_fact(moment("ReleaseZooKeeper", zookeeper={"connect": connect}), "zookeeper_sets", told)


@pytest.mark.parametrize(("connect", "sets"), [
    ("zk-0.zk-headless:2181,zk-1.zk-headless:2181,zk-2.zk-headless:2181/kafka", [("kafka", "zk", 3)]),
    ("zk-0.zk.tools.svc.cluster.local:2181", [("tools", "zk", 1)]),
    ("zk-0.zk.tools:2181,zk-1.zk.tools.svc:2181", [("tools", "zk", 2)]),
    ("a-zk-0.a-zk:2181,b-zk-0.b-zk:2181", [("kafka", "a-zk", 1), ("kafka", "b-zk", 1)]),
])
@pytest.mark.parametrize("behind", [None, {}])
def test_the_stateful_sets_are_told_by_the_names_of_their_pods(
        connect: str, sets: list[tuple[str, str, int]], behind: Mapping[str, tuple[str, ...]] | None) -> None:
    picture = releasing(connect, behind)
    assert zookeeper_users.stop(picture) == " && ".join(SCALE.format(where, name, 0) for where, name, _ in sets)
    assert zookeeper_users.start(picture) == " && ".join(SCALE.format(*each) for each in sets)


@pytest.mark.parametrize(("connect", "behind", "sets"), [
    ("zookeeper:2181/kafka", {"zookeeper": ("zookeeper",)}, ["zookeeper"]),
    ("zookeeper:2181", {"zookeeper": ("pzoo", "zoo")}, ["pzoo", "zoo"]),
    ("ZooKeeper.kafka.svc.cluster.local:2181", {"zookeeper": ("zoo",)}, ["zoo"]),
    ("zoo1:2181,zoo2.kafka:2181", {"zoo1": ("zoo1",), "zoo2": ("zoo2",)}, ["zoo1", "zoo2"]),
    ("zoo-client:2181,zoo-headless:2181", {"zoo-client": ("zoo",), "zoo-headless": ("zoo",)}, ["zoo"]),
])
def test_the_stateful_sets_behind_a_service_are_named(
        connect: str, behind: Mapping[str, tuple[str, ...]], sets: list[str]) -> None:
    picture = releasing(connect, behind)
    assert zookeeper_users.stop(picture) == " && ".join(SCALE.format("kafka", name, 0) for name in sets)
    start = " && ".join(SCALE.format("kafka", name, "N") for name in sets)
    assert zookeeper_users.start(picture) == f"{start}, where N is the number of servers of each"


def test_servers_that_are_named_are_counted_and_those_behind_a_service_are_not() -> None:
    picture = releasing("zk-0.zk.tools:2181,zookeeper:2181", {"zookeeper": ("zoo",)})
    assert zookeeper_users.start(picture) == (
        f"{SCALE.format('tools', 'zk', 1)} && {SCALE.format('kafka', 'zoo', 'N')}, where N is the number of servers of each")


@pytest.mark.parametrize(("connect", "behind"), [
    *((connect, behind) for behind in (None, {}) for connect in (
        "zookeeper:2181", "zk.example.org:2181", "10.0.0.7:2181", "[fd00::7]:2181", "zoo1:2181",
        "zk-0.zk:2181,zookeeper:2181/kafka")),
    ("zookeeper.other:2181", {"zookeeper": ("zoo",)}),        # in another namespace, where nothing is asked
    ("zk-0.kafka:2181", {"zk-0": ()}),                        # a Service of that name, with no StatefulSet behind it
    ("zookeeper:2181,zoo:2181", {"zookeeper": ("zoo",), "zoo": ()}),
    ("zookeeper:2181", {"zookeeper": ("kafka", "zoo")}),      # the brokers' own is never scaled away
    ("zookeeper:2181", {"zookeeper": ("kafka-controller",)}),
    ("kafka-0.kafka-headless:2181", {}),
])
def test_where_they_are_not_told_it_is_said_in_words(connect: str, behind: Mapping[str, tuple[str, ...]] | None) -> None:
    picture = releasing(connect, behind)
    assert zookeeper_users.stop(picture).startswith(
        f"{SCALE.format('kafka', 'NAME', 0)}, where NAME is the StatefulSet behind {connect.partition(':2181')[0]}")
    assert zookeeper_users.start(picture).endswith("and N the number of its servers")


def test_what_may_be_a_service_here_is_asked_for() -> None:
    connect = "zookeeper:2181,zoo.kafka:2181,zoo.kafka.svc.cluster.local:2181,zk-0.zk:2181,10.0.0.7:2181,[::7]:2181/kafka"
    assert zookeeper_users.services(connect, "kafka") == ("zookeeper", "zoo")


@pytest.mark.parametrize(("selector", "leads"), [
    ({"app": "zk"}, True), ({"app": "zk", "storage": "persistent"}, True), ({"app": "kafka"}, False),
    ({}, False), (None, False),                               # ExternalName, or endpoints by hand
    ({POD_NAME: "zoo-2"}, True), ({POD_NAME: "zoo-2", "app": "zk"}, True), ({POD_NAME: "zoo-2", "app": "kafka"}, False),
    ({POD_NAME: "pzoo-2"}, False), ({POD_NAME: "zoo-2-0"}, False),
])
def test_a_service_leads_to_a_stateful_set_by_its_pods_labels(selector: Mapping[str, str] | None, leads: bool) -> None:
    labels = {"app": "zk", "storage": "persistent"}
    stateful_set = {"metadata": {"name": "zoo"}, "spec": {"replicas": 0, "template": {"metadata": {"labels": labels}}}}
    assert leads_to({"spec": {"selector": selector} if selector is not None else {}}, stateful_set) is leads
