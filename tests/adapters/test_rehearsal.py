"""Rehearsals with Kafka's own ZooKeeper, controller and broker: what they say of trees with and without faults."""

import contextlib
import json
import os
import signal
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from kazoo.client import KazooClient
from kazoo.exceptions import ConnectionLoss
from kazoo.security import make_acl, make_digest_acl

from adapters import records
from adapters.admin import create_topic
from adapters.clusters import kafka_cluster
from adapters.pasting import Tools
from adapters.rehearsals import pids, rehearsed, running, with_classes
from adapters.servers import ZooKeeperServer, srvr
from adapters.test_zookeeper import writer
from fakes.metadata_sides import config
from fakes.planted_trees import FAULTS, READ, Nodes, acls, clean, planted
from patience import stretched
from printed import changing
from switchover.answers import memory
from switchover.answers.errors import Refused, Unreachable
from switchover.api.job_message import NONCE
from switchover.api.kafka_migration import NodeMode as Mode
from switchover.api.status import Severity
from switchover.cli import rehearse_replica
from switchover.cli.rehearse_replica import conduct
from switchover.cluster.rehearsal import pack
from switchover.cluster.rehearsal import report as reports
from switchover.cluster.rehearsal.processes import SharedDirectory
from switchover.cluster.rehearsal.report import TREE_DIGEST, ZOOKEEPER, Report
from switchover.cluster.rehearsal.settings import masked
from switchover.network.credentials import Access
from switchover.zookeeper.client.copying import NODE_BYTES, KazooTree
from switchover.zookeeper.tree import Tree, to_create

pytestmark = pytest.mark.timeout(900)


def told(found: Report) -> set[tuple[str, str]]:
    print(*reports.lines(found), sep="\n")
    return {(each.reason, each.subject) for each in found.findings}


def given_of(nodes: Nodes) -> Mapping[str, str]:
    """By which a Job says of which tree it is."""
    return {TREE_DIGEST: Tree(masked(nodes)).digest, NONCE: "n0nce"}


def tree_files(directory: Path, nodes: Nodes) -> Path:
    directory.mkdir()
    for index, part in enumerate(pack.packed(Tree(masked(nodes)))):
        (directory / f"{index:04}").write_text(part)
    return directory


def test_a_clean_tree_in_the_pods_own_command_and_no_credential_comes_to_it(tmp_path: Path) -> None:
    lines: list[str] = []
    files, message, replica = tree_files(tmp_path / "tree", clean()), tmp_path / "message", tmp_path / "replica"
    replica.mkdir()
    with running(replica) as place:
        assert conduct(files, place, "3.9", message, given_of(clean()), lines.append), lines
    found = reports.read(message.read_text())
    assert (found.passed, found.findings, found.topics) == (True, (), 8), found
    assert reports.read(lines[-1]) == replace(found, nonce="")
    assert (found.digest, found.nonce) == (Tree(masked(clean())).digest, "n0nce")
    keys = json.loads(clean()["/config/users/alice"] or b"")["config"]["SCRAM-SHA-512"].split(",")
    secrets = [key.partition("=")[2].encode() for key in keys[:3]]
    everywhere = [file for file in replica.rglob("*") if file.is_file()]
    assert len(everywhere) > 10
    assert [file for file in everywhere if any(secret in file.read_bytes() for secret in secrets)] == []


def vanished(found: Report) -> set[str]:
    return {each.subject for each in found.findings if each.reason == "TopicWouldVanish"}


ENDING = ("replica on a broker that is gone", "producer ids empty", "unknown quota", "setting no broker starts with")
PASSING = ("user not sanitized", "settings of a topic that is gone", "ACLs without entries", "topic marked for deletion",
           "partition without a state")
TOLD = {
    ("NodeWouldBeCreated", "/config/users/CN%3Dx%2CO%3Dy"), ("NodeWouldBeDeleted", "/config/topics/gone"),
    ("NodeWouldBeDeleted", "/kafka-acl/Topic/evil"), ("TopicWouldGo", "/brokers/topics/topic-7")}
"""Of what passes, for what dual write would make of it."""


async def test_several_faults_that_each_end_it_are_found_in_one_rehearsal_and_so_is_what_passes(tmp_path: Path) -> None:
    """In production each of them would be met after the one before it was mended."""
    found = await rehearsed(tmp_path, planted(*ENDING, *PASSING))
    said = told(found)
    assert said > TOLD
    assert said >= {
        ("DeadBrokerInAssignment", "/brokers/ids"), ("CopyWouldFail", "/latest_producer_id_block"),
        ("BrokersWouldEnd", "/config/topics/topic-2")}
    assert {subject for _, subject in said} >= {"/config/clients/evil"}
    assert all(each.severity is Severity.BLOCKER for each in found.findings if (each.reason, each.subject) not in TOLD)


@pytest.mark.case("CopyWouldFail")
async def test_what_is_deleted_by_the_commands_of_a_report_is_the_fault_alone(tmp_path: Path) -> None:
    """On a real cluster, whose broker starts with what is left; a name is no command."""
    faults = {"/config/clients/it's $(evil)": config({"owner": "team-a"}), "/kafka-acl/Topic/evil": acls(READ, version=2)}
    with kafka_cluster(tmp_path / "cluster") as cluster:
        cluster.start_zookeeper_mode()
        create_topic(cluster.bootstrap, "orders")
        records.write(cluster.bootstrap, "orders")
        with writer(cluster.zookeeper_connect) as client:
            for path, data in faults.items():
                client.create(path, data, makepath=True)
            before = await exported(cluster.zookeeper, client)
            (first := tmp_path / "first").mkdir()
            found = await rehearsed(first, before.nodes)
            assert told(found) == {("CopyWouldFail", path) for path in faults}
            tools = Tools(tmp_path)
            for finding, made in zip(found.at(cluster.zookeeper_connect).findings, found.findings, strict=True):
                line = changing(made.cure)[0].replace(ZOOKEEPER, cluster.zookeeper_connect)
                assert finding.cure.endswith(f": {line}")
                tools.paste(line)
            after = await exported(cluster.zookeeper, client)
        assert dict(before.nodes.items() - after.nodes.items()) == faults
        assert after.nodes.items() <= before.nodes.items()
        (second := tmp_path / "second").mkdir()
        mended = await rehearsed(second, after.nodes)
        assert (mended.passed, mended.findings) == (True, ())
        cluster.brokers[1].restart(cluster.broker_properties(1, Mode.ZOOKEEPER))
        cluster.wait_for_brokers()
        records.read(cluster.bootstrap, "orders")


@pytest.mark.long
async def test_what_passes_is_told_for_what_dual_write_and_a_broker_would_make_of_it(tmp_path: Path) -> None:
    found = await rehearsed(tmp_path, planted(
        *PASSING, "two topics with one id", "quota of a host that is none", "unknown setting"))
    assert told(found) == {*TOLD, ("TopicWouldVanish", next(iter(vanished(found)))),
                           ("BrokersWouldComplain", "/config/ips/no-such-host.invalid")}
    assert vanished(found) < {"/brokers/topics/topic-3", "/brokers/topics/topic-4"}


@pytest.mark.long
async def test_a_node_that_nobody_names_is_found_by_halving(tmp_path: Path) -> None:
    found = await rehearsed(tmp_path, planted("ACL for nobody"))
    assert told(found) == {("CopyWouldFail", "/kafka-acl/Topic/evil")}


@pytest.mark.long
async def test_the_brokers_own_classes_are_tried_and_those_that_end_a_node_are_named(tmp_path: Path) -> None:
    """One that asks ZooKeeper, one that is not in the image, and one that is as good as Kafka's own."""
    libs = with_classes(tmp_path / "own", {
        "Audited": "extends kafka.security.authorizer.AclAuthorizer {}",
        "Names": """implements org.apache.kafka.server.policy.CreateTopicPolicy {
            public void configure(java.util.Map<String, ?> settings) {}
            public void validate(RequestMetadata request) {}
            public void close() {}
        }"""})
    own = {"authorizer.class.name": "com.example.Audited", "principal.builder.class": "com.example.Nowhere",
           "create.topic.policy.class.name": "com.example.Names"}
    (replica := tmp_path / "replica").mkdir()
    with running(replica, libs=libs) as place:
        found = await rehearse_replica.rehearsed(Tree(clean()), place, SharedDirectory(replica), "3.9", print, own)
    said = [(each.reason, each.message.partition(" (")[0]) for each in found.findings]
    assert said == [("ClassDidNotStart", f"a KRaft node did not start with the brokers' own {key}")
                    for key in ("authorizer.class.name", "principal.builder.class")]
    assert found.passed, "what they need beside is not known"


def test_a_replica_that_dies_is_told_within_its_limits(tmp_path: Path) -> None:
    lines: list[str] = []
    files, message, replica = tree_files(tmp_path / "tree", clean()), tmp_path / "message", tmp_path / "replica"
    replica.mkdir()

    def kill_when_claimed(line: str) -> None:
        lines.append(line)
        if line == "claimed":
            for pid in pids(replica, "zookeeper"):
                os.kill(pid, signal.SIGKILL)

    with running(replica) as place:
        assert not conduct(files, place, "3.9", message, given_of(clean()), kill_when_claimed)
    assert "did not answer" in message.read_text() or "ended" in message.read_text()


def test_an_image_without_zookeeper_is_told_as_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rehearse_replica, "ANSWER_SECONDS", 120.0)
    files, message, replica = tree_files(tmp_path / "tree", clean()), tmp_path / "message", tmp_path / "replica"
    replica.mkdir()
    with running(replica, "4.4") as place:
        began = time.monotonic()
        assert not conduct(files, place, "3.9", message, given_of(clean()), print)
        assert time.monotonic() - began < stretched(15), "a server that is not there was waited for"
    assert message.read_text() == (
        "the replica's zookeeper ended with code 1 while it started: ClassNotFound in QuorumPeerMain")


def test_a_start_script_with_no_kafka_beside_it_is_told_with_the_one_that_there_is(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = tmp_path / "home" / "bin" / "kafka-server-start.sh"
    script.parent.mkdir(parents=True)
    script.write_text("exec $(dirname $0)/kafka-run-class.sh kafka.Kafka\n")
    monkeypatch.setenv("KAFKA_HOME", str(script.parents[1]))
    files, message, replica = tree_files(tmp_path / "tree", clean()), tmp_path / "message", tmp_path / "replica"
    replica.mkdir()
    with running(replica, start=tmp_path / "kafka-server-start.sh") as place:
        assert not conduct(files, place, "3.9", message, given_of(clean()), print)
    assert message.read_text() == (
        "the image has no kafka-run-class next to the brokers' start script: set in spec.brokers: start: {script:"
        f" {script}}}")


def test_parts_of_no_tree_are_refused_in_words(tmp_path: Path) -> None:
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree" / "0000").write_text("3 digest abc")
    (tmp_path / "replica").mkdir()
    with running(tmp_path / "replica") as place:
        assert not conduct(tmp_path / "tree", place, "3.9", tmp_path / "message", {}, print)
    assert (tmp_path / "message").read_text() == "these are not the parts of one packed tree"


@pytest.mark.parametrize("name", [pytest.param(name, marks=pytest.mark.long) for name in FAULTS])
async def test_every_kind_of_fault(tmp_path: Path, name: str) -> None:
    found, fault = await rehearsed(tmp_path, planted(name)), FAULTS[name]
    said = told(found)
    if not fault.reason:
        assert [each for each in found.findings if each.severity is not Severity.INFO] == []
    elif fault.subject:
        assert (fault.reason, fault.subject) in said
    else:
        assert fault.reason in {reason for reason, _ in said}


# --- the export -----------------------------------------------------------------------------------------------------------


def plant(client: KazooClient, nodes: Nodes) -> None:
    for path, data in to_create(nodes):
        client.create(path, data)


async def exported(server: ZooKeeperServer, client: KazooClient) -> Tree:
    tree = KazooTree(Access(f"{server.address}{client.chroot}"))
    try:
        return await tree.export()
    finally:
        await tree.close()


def zxid(client: KazooClient) -> int:
    return int(srvr(client, "Zxid"), 16)


async def test_an_export_is_the_whole_tree_and_writes_nothing(server: ZooKeeperServer, client: KazooClient) -> None:
    plant(client, clean() | {"/consumers/g/offsets/t/0": b"1", "/controller": b"{}", "/migration": b"{}", "/hbase": b"x"})
    before = zxid(client)
    found = await exported(server, client)
    assert zxid(client) == before + 2, "a session that began and ended"
    assert found.nodes == {**clean(), "/kafka-acl-extended/prefixed": None, **{
        path: None for path, _ in to_create(clean()) if path in found.nodes and path not in clean()}}
    assert found.nodes["/latest_producer_id_block"] == clean()["/latest_producer_id_block"]
    assert (found.denied, found.gone) == ((), 0)


async def test_what_may_not_be_read_is_named_and_the_rest_is_read(server: ZooKeeperServer, client: KazooClient) -> None:
    plant(client, clean())
    client.set_acls("/config/users", [make_digest_acl("kafka", "secret", all=True)])
    client.set_acls("/config/users/alice", [make_digest_acl("kafka", "secret", all=True)])
    client.set_acls("/delegation_token/tokens/token-1", [make_acl("world", "anyone", create=True)])
    found = await exported(server, client)
    assert found.denied == ("/config/users", "/delegation_token/tokens/token-1")
    assert found.topics == Tree(clean()).topics


async def test_a_tree_for_which_there_is_no_room_is_refused_when_its_topics_are_listed(
    server: ZooKeeperServer, client: KazooClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(client, clean())
    before = int(srvr(client, "Received"))
    monkeypatch.setattr(memory, "room", lambda: 40 * NODE_BYTES)
    tree = KazooTree(Access(f"{server.address}{client.chroot}"))
    with pytest.raises(Refused, match=r"nodes of metadata or more, .*raise resources\.limits\.memory .* to 161Mi or more"):
        await tree.export()
    await tree.close()
    assert int(srvr(client, "Received")) - before < 60 < len(clean())


async def test_a_zookeeper_that_stops_in_the_middle_is_told_in_time(
    server: ZooKeeperServer, client: KazooClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(client, clean())
    tree = KazooTree(Access(f"{server.address}{client.chroot}"), seconds=1)
    listed = tree._listed
    with contextlib.ExitStack() as stopped:

        def of_one_that_stopped(deadline: float, chroot: str, paths: Sequence[str]) -> tuple[list[str], list[str]]:
            stopped.enter_context(server.frozen())
            return listed(deadline, chroot, paths)

        monkeypatch.setattr(tree, "_listed", of_one_that_stopped)
        began = time.monotonic()
        with pytest.raises(Unreachable, match="did not answer"):
            await tree.export()
        assert time.monotonic() - began < stretched(10)
    await tree.close()


async def test_a_tree_is_loaded_though_answers_are_lost(
        server: ZooKeeperServer, client: KazooClient, monkeypatch: pytest.MonkeyPatch) -> None:
    """A ZooKeeper with very much to write drops connections, and may have done what it was asked."""
    tree, lost = KazooTree(Access(str(server.address))), set[str]()
    create = tree._create

    def without_an_answer(deadline: float, nodes: Sequence[tuple[str, bytes | None]]) -> None:
        create(deadline, nodes)
        if nodes[0][0] not in lost:
            lost.add(nodes[0][0])
            raise ConnectionLoss

    monkeypatch.setattr(tree, "_create", without_an_answer)
    try:
        await tree.load(f"{client.chroot}/here", clean())
        assert lost
        assert (await tree.export(f"{client.chroot}/here")).nodes.items() >= clean().items()
    finally:
        await tree.close()


async def test_nothing_is_loaded_into_a_zookeeper_that_is_not_empty(server: ZooKeeperServer, client: KazooClient) -> None:
    tree = KazooTree(Access(str(server.address)))
    try:
        with pytest.raises(Refused, match="no empty replica"):
            await tree.load(client.chroot, clean())
        await tree.load(f"{client.chroot}/here", clean())
        assert (await tree.export(f"{client.chroot}/here")).nodes.items() >= clean().items()
    finally:
        await tree.close()
