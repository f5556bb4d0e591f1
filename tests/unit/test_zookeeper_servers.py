"""The commands that stop ZooKeeper and start it again, by what zookeeper.connect tells."""

import pytest

from switchover.cluster.ending import zookeeper_servers
from unit.pictures import moment

SCALE = "kubectl --namespace {} scale statefulset/{} --replicas={}"


@pytest.mark.parametrize(("connect", "sets"), [
    ("zk-0.zk-headless:2181,zk-1.zk-headless:2181,zk-2.zk-headless:2181/kafka", [("kafka", "zk", 3)]),
    ("zk-0.zk.tools.svc.cluster.local:2181", [("tools", "zk", 1)]),
    ("zk-0.zk.tools:2181,zk-1.zk.tools.svc:2181", [("tools", "zk", 2)]),
    ("a-zk-0.a-zk:2181,b-zk-0.b-zk:2181", [("kafka", "a-zk", 1), ("kafka", "b-zk", 1)]),
])
def test_the_stateful_sets_are_told_by_the_names_of_their_pods(connect: str, sets: list[tuple[str, str, int]]) -> None:
    picture = moment("ReleaseZooKeeper", zookeeper={"connect": connect})
    assert zookeeper_servers.stop(picture) == " && ".join(SCALE.format(where, name, 0) for where, name, _ in sets)
    assert zookeeper_servers.start(picture) == " && ".join(SCALE.format(*each) for each in sets)


@pytest.mark.parametrize("connect", ["zookeeper:2181", "zk.example.org:2181", "10.0.0.7:2181", "[fd00::7]:2181", "zoo1:2181",
                                     "zk-0.zk:2181,zookeeper:2181/kafka"])
def test_where_they_are_not_told_it_is_said_in_words(connect: str) -> None:
    picture = moment("ReleaseZooKeeper", zookeeper={"connect": connect})
    assert zookeeper_servers.stop(picture).startswith(
        f"{SCALE.format('kafka', 'NAME', 0)}, where NAME is the StatefulSet behind {connect.partition(':2181')[0]}")
    assert zookeeper_servers.start(picture).endswith("and N the number of its servers")
