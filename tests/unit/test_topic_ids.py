"""The printed command that writes a topic's id back, in bash, on a node that a stand-in for zookeeper-shell keeps.

On Kafka's own: adapters/test_topic_ids.py.
"""

import json
import os
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from switchover.api.status import Finding
from switchover.cluster.picture import Picture
from switchover.zookeeper.nodes import ZooKeeperTopic
from unit.pictures import moment
from unit.preflight_pictures import both, check, ids, lost, topics, wanted

SERVED = "eUS7JmSgT-6_VVtz1uJFLw"
ON_DISK = "hau6AAAAAAAAAAAAAAAAAA"
SHELL = """#!/usr/bin/env bash
echo "$@" >>"$NODE.asked"
printf 'Connecting to %s\\n\\nWATCHER::\\n\\nWatchedEvent state:SyncConnected type:None path:null\\n' "$1"
case $2 in
    get) printf '%s\\ncZxid = 0x36\\ndataVersion = 7\\nnumChildren = 1\\n' "$(cat "$NODE")" ;;
    set) [ "$3 $4" = "-v ${VERSION:-7}" ] || { echo "version No is not valid : $5" >&2; exit 1; }; printf %s "$6" >"$NODE" ;;
esac
"""
KUBECTL = """#!/usr/bin/env bash
echo "$@" >>"$NODE.kubectl"
printf 'version: 0\\ntopic_id: %s\\n' "$TOPIC_ID"
"""
FIELDS = {"version": 2, "partitions": {"0": [1, 2], "1": [2, 1]}, "adding_replicas": {}, "removing_replicas": {}}
COMPACT = json.dumps(FIELDS, separators=(",", ":"))


@dataclass
class Desk:
    """Where the command is pasted."""

    directory: Path

    @property
    def node(self) -> Path:
        return self.directory / "node"

    def paste(self, picture: Picture, node: str, **variables: str) -> str:
        """What the command printed for a topic told, run against this node."""
        self.node.write_text(node)
        for name, script in (("zookeeper-shell.sh", SHELL), ("kubectl", KUBECTL)):
            (self.directory / name).write_text(script)
            (self.directory / name).chmod(0o755)
        printed = check("TopicIds", picture).unblocks
        _, begins, command = printed.partition("(z() ")
        assert begins, printed
        environment = {"PATH": f"{self.directory}:{os.environ['PATH']}", "NODE": str(self.node), **variables}
        done = subprocess.run(["bash", "-c", begins + command], env=environment, capture_output=True, text=True, check=True)
        return done.stdout

    def asked(self, of: str = "asked") -> str:
        return self.node.with_suffix(f".{of}").read_text()


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


below_a_chroot = wanted(zookeeper={"connect": "zookeeper:2181/kafka"})


def picture(name: str = "orders") -> Picture:
    return both(lost(name), ids({name: SERVED}))(below_a_chroot(moment("Preflight")))


def differing(in_zookeeper: str, others: Mapping[str, int]) -> Picture:
    tree = topics(topics={"orders": ZooKeeperTopic(in_zookeeper, {0: (0, 1, 2)})})
    return both(tree, ids({"orders": SERVED}, others=others))(below_a_chroot(moment("Preflight")))


@pytest.mark.parametrize("node", [COMPACT, json.dumps(FIELDS)], ids=["compact", "with spaces"])
def test_the_served_id_is_written_and_all_else_stays(desk: Desk, node: str) -> None:
    assert "nothing was written" not in desk.paste(picture(), node)
    assert json.loads(desk.node.read_text()) == {**FIELDS, "topic_id": SERVED}
    assert desk.asked().splitlines()[0] == "zookeeper:2181/kafka get -s /brokers/topics/orders"


@pytest.mark.parametrize("place", ["first", "last"])
def test_a_wrong_id_gives_way(desk: Desk, place: str) -> None:
    wrong = {"topic_id": ON_DISK}
    desk.paste(differing(ON_DISK, {}), json.dumps({**wrong, **FIELDS} if place == "first" else {**FIELDS, **wrong}))
    assert json.loads(desk.node.read_text()) == {**FIELDS, "topic_id": SERVED}
    assert "delete" not in desk.asked(), "the controller has the right one"


def test_the_id_is_read_from_a_disk_and_the_controller_is_to_read_it(desk: Desk) -> None:
    desk.paste(differing(SERVED, {"orders": 2}), json.dumps({**FIELDS, "topic_id": SERVED}), TOPIC_ID=ON_DISK)
    assert json.loads(desk.node.read_text()) == {**FIELDS, "topic_id": ON_DISK}
    assert desk.asked("kubectl").strip() == (
        "--namespace kafka exec kafka-0 --container kafka -- cat /var/lib/kafka/data/orders-2/partition.metadata")
    assert desk.asked().splitlines()[-1] == "zookeeper:2181/kafka delete /controller"


@pytest.mark.parametrize("node", [
    "", "null", json.dumps({**FIELDS, "topic_id": None}), json.dumps({**FIELDS, "topic_id": ON_DISK}),
    json.dumps(FIELDS, indent=2)], ids=["empty", "no JSON", "an id of null", "an id by now", "on several lines"])
def test_nothing_is_written_over_what_it_does_not_know(desk: Desk, node: str) -> None:
    assert "nothing was written" in desk.paste(picture(), node)
    assert desk.node.read_text() == node
    assert " set " not in desk.asked()


def test_nothing_is_written_over_a_node_that_was_written_meanwhile(desk: Desk) -> None:
    assert "nothing was written" in desk.paste(picture(), COMPACT, VERSION="8")
    assert desk.node.read_text() == COMPACT


@pytest.mark.parametrize("on_disk", ["", "x/e;y"])
def test_no_id_that_is_none_is_written(desk: Desk, on_disk: str) -> None:
    node = json.dumps({**FIELDS, "topic_id": SERVED})
    assert "nothing was written" in desk.paste(differing(SERVED, {"orders": 2}), node, TOPIC_ID=on_disk)
    assert desk.node.read_text() == node


def test_a_node_of_another_name_is_no_command(desk: Desk) -> None:
    name = "$(touch pwned); 'x' `y`"
    desk.paste(picture(name), COMPACT)
    assert f"get -s /brokers/topics/{name}" in desk.asked()
    assert not (Path.cwd() / "pwned").exists()


def test_the_longest_command_is_not_cut() -> None:
    servers = ",".join(f"zookeeper-{number}.zookeeper-headless.kafka.svc.cluster.local:2181" for number in range(3))
    far = wanted(zookeeper={"connect": f"{servers}/kafka"})
    for each in (differing(SERVED, {"orders": 2}), differing(ON_DISK, {}), picture("t" * 249)):
        cure = check("TopicIds", far(each)).unblocks
        assert Finding(code="x", severity="Blocker", message="x", cure=cure).cure == cure


def test_topics_without_any_id_are_sent_to_the_protocol_version() -> None:
    found = check("TopicIds", both(lost("a", "b"), ids({}))(moment("Preflight")))
    assert found.subject == "a, b"
    assert "raise inter.broker.protocol.version" in found.unblocks
    assert "zookeeper-shell" not in found.unblocks


def test_a_topic_that_is_being_deleted_is_left_alone() -> None:
    deleted = both(topics(pending_deletes=("orders",)), ids({"orders": SERVED}, others={"orders": 0}))(moment("Preflight"))
    assert not check("TopicIds", deleted).findings
