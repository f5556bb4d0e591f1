"""The pure half of a rehearsal: what is copied, what is masked, what a log may tell, and what a course means."""

import os
import subprocess
import tracemalloc
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fakes.planted_trees import FAULTS, METADATA, clean, planted, state
from patience import stretched
from switchover.api.job_message import LARGEST
from switchover.api.status import Severity
from switchover.cluster.rehearsal import culprits, pack, report
from switchover.cluster.rehearsal.course import LOG4J, Canary, Course, Process, Reached, Trouble, troubles
from switchover.cluster.rehearsal.judge import End, Seen
from switchover.cluster.rehearsal.judge import report as judged
from switchover.cluster.rehearsal.replica_job import RUN
from switchover.cluster.rehearsal.report import Finding, Report, Stage
from switchover.cluster.rehearsal.settings import Attempt, Command, Ids, Place, zookeeper
from switchover.metadata.cluster import Difference
from switchover.zookeeper.tree import Tree, below, to_create

TREE = Tree(clean())

# --- the tree -----------------------------------------------------------------------------------------------------------


def test_a_tree_tells_its_brokers_topics_and_metadata() -> None:
    assert TREE.registered == (1, 2)
    assert TREE.assigned == {1, 2}
    assert TREE.topics == METADATA.topics.keys()
    assert TREE.metadata() == METADATA


def test_what_follows_from_the_nodes_is_worked_out_once() -> None:
    """A judge that asked for the topics again for each of 10,000 had not ended after four minutes."""
    tree = Tree(clean())
    for name, known in vars(Tree).items():
        assert not isinstance(known, property), f"{name} looks at every node each time"
    assert tree.topics is tree.topics


def test_the_digest_changes_with_what_somebody_changes_and_not_with_what_brokers_write_by_themselves() -> None:
    moved = clean() | {"/controller_epoch": b"8", "/latest_producer_id_block": b"{}", "/brokers/ids/1": b"{}",
                       "/brokers/topics/topic-3/partitions/1/state": b"{}"}
    assert Tree(moved).digest == TREE.digest
    changes = {"/config/topics/topic-3": b"{}", "/feature": None, "/brokers/ids/3": b"", "/kafka-acl/Topic/x": b""}
    for path, data in changes.items():
        assert Tree(clean() | {path: data}).digest != TREE.digest, path


def test_a_node_without_data_is_not_one_with_none_in_it() -> None:
    assert Tree({"/feature": None}).digest != Tree({"/feature": b""}).digest
    assert pack.unpacked(pack.packed(Tree({"/feature": None, "/a": b""}))).nodes == {"/feature": None, "/a": b""}


@pytest.mark.parametrize(("path", "data", "children"), [
    ("/brokers/topics/t", b'{"partitions":{"0":[1],"3":[1]}}',
     ["/brokers/topics/t/partitions/0/state", "/brokers/topics/t/partitions/3/state"]),
    ("/brokers/topics/t", b"{", None), ("/brokers/topics/t", b'{"partitions":{}}', None),
    ("/brokers/topics/t/partitions/0/state", b"", ()), ("/config/topics/t", b"", ()), ("/config/users/u", b"", None),
    ("/config/users/u/clients", None, None), ("/config/users/u/clients/c", b"", ()), ("/kafka-acl/Topic", None, None),
    ("/kafka-acl-extended/prefixed/Topic/t", b"", ()), ("/delegation_token/tokens/t", b"", ()), ("/feature", b"", ()),
])
def test_what_is_below_a_node(path: str, data: bytes | None, children: list[str] | None) -> None:
    assert below(path, data) == children


def test_every_node_is_created_after_the_one_above_it() -> None:
    made: list[str] = []
    for path, data in to_create(TREE.nodes):
        assert path.rpartition("/")[0] in ("", *made)
        assert data == TREE.nodes.get(path)
        made.append(path)
    assert len(made) == len(set(made)) >= len(TREE.nodes)


def test_a_large_tree_is_packed_node_by_node() -> None:
    """Its document at once is several times the tree, and made without a break."""
    tree = Tree({f"/brokers/topics/t/partitions/{number}/state": state(1, [1, 2, 3]) for number in range(20_000)})
    tracemalloc.start()
    try:
        assert pack.packed(tree)
        assert tracemalloc.get_traced_memory()[1] < 2_000_000
    finally:
        tracemalloc.stop()


@given(st.dictionaries(st.text("/ab", min_size=1, max_size=5), st.none() | st.binary(max_size=8)))
def test_what_is_packed_is_unpacked(nodes: dict[str, bytes | None]) -> None:
    tree = Tree(nodes, ("/denied",), 3)
    assert pack.unpacked(pack.packed(tree)) == tree


def test_a_large_tree_comes_in_parts_and_none_may_be_missing_or_of_another(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pack, "LARGEST", 100)
    parts = pack.packed(TREE)
    assert len(parts) > 3
    assert max(map(len, parts[1:])) == 100
    assert pack.unpacked(parts) == TREE
    other = pack.packed(Tree(clean() | {"/feature": None}))
    for broken in (parts[:-1], parts[1:], (parts[0], *other[1:]), (), ("x",), ("1 2",), ("one two three",)):
        with pytest.raises(ValueError, match="packed tree"):
            pack.unpacked(broken)


# --- logs ---------------------------------------------------------------------------------------------------------------


def test_a_log_tells_classes_and_known_names_and_none_of_its_words() -> None:
    found = troubles([
        "@INFO kafka.a.B @java.lang.IllegalStateException: not an error",
        "@ERROR org.apache.kafka.KRaftMigrationDriver @Aborting producer_byte_rate -> hunter2",
        "java.lang.IllegalStateException: Unexpected value: foo_rate -> hunter2",
        "\tat kafka.server.X",
        "Caused by: java.lang.NumberFormatException: evil.",
        "@WARN kafka.a.C @nothing",
        "org.x.YException: of a warning",
        "@FATAL kafka.Kafka @ended",
    ], {"foo_rate", "evil", "producer_byte_rate", "unseen"})
    assert found == (
        Trouble("KRaftMigrationDriver", "NumberFormatException", frozenset({"foo_rate", "evil", "producer_byte_rate"})),
        Trouble("Kafka", "", frozenset()))
    assert "hunter2" not in f"{found} {found[0]}"


def test_java_without_the_class_is_told() -> None:
    (found,) = troubles(["Error: Could not find or load main class org.apache.zookeeper.server.quorum.QuorumPeerMain",
                         "Caused by: java.lang.ClassNotFoundException: org.apache"], set())
    assert str(found) == "ClassNotFound in QuorumPeerMain"


def test_the_error_that_tells_most_is_the_last_one_with_an_exception() -> None:
    first, last = Trouble("A", "XException", frozenset()), Trouble("B", "", frozenset())
    assert Process(1, (first, last)).cause == first
    assert Process(1, (last,)).cause == last
    assert Process().cause is None
    assert "@%p %c @%m%n" in LOG4J


# --- culprits -----------------------------------------------------------------------------------------------------------


def test_suspects_are_what_kafka_could_not_have_written_else_the_one_node_that_is_named() -> None:
    def named(*names: str) -> Process:
        return Process(1, (Trouble("Driver", "XException", frozenset(names)),))

    two = Tree(planted("producer ids empty", "topic without an id", "unknown quota"))
    assert culprits.suspects(two, named(), Reached.NOTHING) == ("/brokers/topics/topic-3",)
    assert culprits.suspects(two, named(), Reached.CLAIMED) == ("/config/clients/evil", "/latest_producer_id_block")
    assert culprits.suspects(two, named("foo_rate"), Reached.COPIED) == ("/config/clients/evil",)
    assert culprits.suspects(Tree(planted("topic without an id")), named(), Reached.COPIED) == ("/brokers/topics/topic-3",)
    assert culprits.suspects(TREE, named("retention.ms"), Reached.CLAIMED) == ("/config/topics/topic-2",)
    assert culprits.suspects(TREE, named("producer_byte_rate")) == (), "several have it"
    assert culprits.suspects(TREE, Process(1)) == ()


def test_units_are_left_out_and_in_together() -> None:
    found = culprits.units(TREE)
    topic = next(unit for unit in found if "/brokers/topics/topic-3" in unit)
    assert culprits.named(topic) == "/brokers/topics/topic-3"
    assert "/config/topics/topic-3" in topic
    assert culprits.only(TREE, found).nodes == TREE.nodes
    alone = culprits.only(TREE, [topic])
    assert alone.topics == {"topic-3"}
    assert alone.registered == (1, 2)
    assert culprits.without(TREE, ["/brokers/topics/topic-3"]).topics == METADATA.topics.keys() - {"topic-3"}


# --- what it means ------------------------------------------------------------------------------------------------------

PASSED = Course(Reached.DUAL_WRITE, differences=(), after=clean(), canary=Canary(Process(), frozenset(METADATA.topics)),
                back="", finalized=True, after_finalize=())
CAUSE = Process(1, (Trouble("KRaftMigrationDriver", "NumberFormatException", frozenset({"evil"})),))


def findings(course: Course = PASSED, tree: Tree = TREE, *ends: End) -> list[tuple[str, str, str]]:
    found = judged(Seen(tree, ends, course), {})
    return [(each.severity.value, each.reason, each.subject) for each in found.findings]


def test_a_clean_course_has_nothing_to_say() -> None:
    found = judged(Seen(TREE, (), PASSED), {"all": 9.0})
    assert found == Report(TREE.digest, (), len(TREE.nodes), 8, {"all": 9.0})
    assert found.passed


EVIL = "/config/users/evil"
ENDS = [
    (Reached.NOTHING, "ClaimWouldNotCome"), (Reached.CLAIMED, "CopyWouldFail"), (Reached.COPIED, "DualWriteWouldNotBegin")]


def planted_end(reached: Reached) -> Seen:
    """A node ends the controller there."""
    return Seen(Tree(planted("quota is no number")), (End(Course(reached, CAUSE), (EVIL,)),), PASSED)


def unfound_end(reached: Reached) -> Seen:
    """The controller ends there, and no node is found that does it."""
    return Seen(TREE, (End(Course(reached, CAUSE), ()),), Course(reached, CAUSE))


@pytest.mark.parametrize(("reached", "reason"), ENDS)
def test_an_end_of_the_controller_is_told_by_how_far_it_got(reached: Reached, reason: str) -> None:
    seen = planted_end(reached)
    assert findings(PASSED, seen.tree, *seen.ends) == [("Blocker", reason, EVIL)]
    (found,) = judged(unfound_end(reached), {}).findings
    assert (found.reason, found.subject) == (reason, "")
    assert "NumberFormatException in KRaftMigrationDriver" in found.message


@pytest.mark.parametrize(("path", "cure"), [
    ("/latest_producer_id_block", "repair the node, or delete it: zookeeper-shell.sh zk:1 delete /latest_producer_id_block"),
    ("/config/clients/50%", "repair the node, or delete it: zookeeper-shell.sh zk:1 delete /config/clients/50%"),
    (EVIL, "correct the faulty value in the node, and leave the others: zookeeper-shell.sh zk:1 get /config/users/evil"),
    ("/brokers/topics/t", "restore the node, or delete the topic with Kafka's tools, as the runbook says")])
def test_only_what_holds_nothing_but_the_fault_is_deleted(path: str, cure: str) -> None:
    tree = Tree(clean() | {path: b"x"})
    found = judged(Seen(tree, (End(Course(Reached.CLAIMED, CAUSE), (path,)),), PASSED), {}).at("zk:1").findings
    assert {each.cure for each in found if each.subject == path} == {cure}


CHANGES: list[tuple[dict[str, object], tuple[str, str, str] | None]] = [
    ({"waited_for": frozenset({9})}, ("Blocker", "DeadBrokerInAssignment", "/brokers/ids")),
    ({"refused": {2: "INVALID_REGISTRATION"}}, ("Blocker", "RegistrationWouldBeRefused", "/brokers/ids/2")),
    ({"unread": "only logs of 3.9"}, ("Blocker", "RehearsalIncomplete", "")),
    ({"differences": (Difference("topic", "topic-1", "a", "b"),)}, ("Blocker", "MetadataWouldDiffer", "topic-1")),
    ({"canary": Canary(CAUSE)}, ("Blocker", "BrokersWouldEnd", "")),
    ({"canary": Canary(Process())}, ("Blocker", "RehearsalIncomplete", "")),
    ({"canary": Canary(Process(), frozenset(METADATA.topics) - {"topic-3"})},
     ("Blocker", "TopicWouldVanish", "/brokers/topics/topic-3")),
    ({"canary": Canary(replace(CAUSE, exit_code=None), frozenset(METADATA.topics))},
     ("Warning", "BrokersWouldComplain", "")),
    ({"back": "written in between"}, ("Blocker", "RollbackWouldFail", "")),
    ({"finalized": False}, ("Blocker", "FinalizeWouldFail", "")),
    ({"after_finalize": (Difference("ACL", "x", "present", "nothing"),)}, ("Blocker", "MetadataWouldDiffer", "x")),
    ({"ended_by": {"authorizer.class.name": CAUSE}}, ("Warning", "ClassDidNotStart", "")),
    ({"after": clean() | {"/config/users/new": b'{"config":{"producer_byte_rate":"1"}}'}},
     ("Info", "NodeWouldBeCreated", "/config/users/new")),
    ({"after": clean() | {"/config/topics/topic-2": b"{}"}}, ("Warning", "NodeWouldBeRewritten", "/config/topics/topic-2")),
    ({"after": {path: data for path, data in clean().items() if path != "/brokers/topics/topic-2"}},
     ("Blocker", "TopicWouldGo", "/brokers/topics/topic-2")),
    ({"after": clean() | {"/latest_producer_id_block": b'{"version":1,"broker":-1,"block_start":"5000"}'}}, None),
    ({"after": clean() | {"/brokers/topics/topic-3/partitions/1/state": b"{}", "/controller_epoch": b"9"}}, None),
]


@pytest.mark.parametrize(("changes", "expected"), CHANGES)
def test_what_was_seen_is_told_for_what_it_means(
        changes: dict[str, object], expected: tuple[str, str, str] | None) -> None:
    assert findings(replace(PASSED, **changes)) == ([expected] if expected else [])  # type: ignore[arg-type]


GOING = [
    ("ACLs not JSON", "/kafka-acl/Topic/evil", ("Blocker", "MetadataWouldBeLost")),
    ("ACLs without entries", "/kafka-acl/Topic/evil", ("Info", "NodeWouldBeDeleted")),
    ("settings of a topic that is gone", "/config/topics/gone", ("Info", "NodeWouldBeDeleted")),
    ("topic marked for deletion", "/brokers/topics/topic-7", ("Warning", "TopicWouldGo")),
]


def going(fault: str, path: str) -> Seen:
    """Dual write deletes the node of this fault."""
    nodes = planted(fault)
    after = {each: data for each, data in nodes.items() if each != path}
    return Seen(Tree(nodes), (), replace(PASSED, after=after, canary=Canary(Process(), Tree(nodes).topics)))


@pytest.mark.parametrize(("fault", "path", "expected"), GOING)
def test_a_node_that_would_go_is_weighed_by_what_is_lost(fault: str, path: str, expected: tuple[str, str]) -> None:
    seen = going(fault, path)
    assert findings(seen.course, seen.tree) == [(*expected, path)]


def test_what_may_not_be_read_makes_it_incomplete_however_well_the_rest_went() -> None:
    assert findings(PASSED, replace(TREE, denied=("/config/users",))) == [
        ("Blocker", "RehearsalIncomplete", "/config/users")]


def test_a_broker_that_ends_is_told_with_the_node_that_kafka_could_not_have_written() -> None:
    tree = Tree(planted("setting no broker starts with"))
    course = replace(PASSED, after=tree.nodes, canary=Canary(Process(1)),
                     differences=(Difference("topic configuration", "topic-2 retention.ms", "nothing", "'abc'"),))
    assert findings(course, tree) == [("Blocker", "BrokersWouldEnd", "/config/topics/topic-2")]


def test_stages_are_told_in_their_order() -> None:
    course = replace(PASSED, finalized=False, refused={1: "X"}, back="no")
    assert [each.stage for each in judged(Seen(TREE, (), course), {}).findings] == [
        Stage.BROKERS, Stage.ROLLBACK, Stage.FINALIZE]


# --- the report ---------------------------------------------------------------------------------------------------------

FOUND = Finding(Stage.COPY, "CopyWouldFail", Severity.BLOCKER, "words | with a bar", EVIL, "delete it")


def test_a_report_is_read_as_it_was_written() -> None:
    written = Report("d", (FOUND,), 70, 8, {"all": 9.0})
    assert report.read(report.as_json(written)) == written
    assert report.read(report.as_message(written)) == written
    assert not written.passed


def test_a_report_that_is_too_long_says_how_much_is_left_out_and_never_that_all_is_well() -> None:
    short = report.read(report.as_message(Report("d", (replace(FOUND, severity=Severity.INFO),) * 100)))
    assert len(report.as_message(short).encode()) <= LARGEST
    assert 5 < len(short.findings) == 100 - short.more
    assert not short.passed


@pytest.mark.parametrize("text", ["", "Traceback", "[]", "{}", '{"version":2}', '{"version":1}',
                                  '{"version":1,"digest":"d","findings":[{"stage":"Copy"}]}', '{"version":1,"findings":1}'])
def test_what_is_no_report_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not a report"):
        report.read(text)


def test_a_command_is_for_the_ensemble_of_the_cluster_and_for_a_shell() -> None:
    found = Report("d", (replace(FOUND, cure=f"mend it: {report.delete('/config/users/<default>')}"),)).at("zk:2181/kafka")
    assert found.findings[0].cure == "mend it: zookeeper-shell.sh zk:2181/kafka delete '/config/users/<default>'"


def test_a_report_for_a_ticket_and_for_a_terminal() -> None:
    text = report.as_markdown(Report("d", (FOUND,), 70, 8, {"all": 9.0}), "kafka.yaml")
    assert "**Not passed.** 8 topics, 70 znodes" in text
    assert r"words \| with a bar" in text
    told = report.lines(Report("d", (FOUND,), 70, 8, {"all": 9.0}, more=2))
    assert told[0].startswith("NOT PASSED")
    assert told[-1] == "and 2 more"
    assert any(line.strip() == f"node: {EVIL}" for line in told)


# --- the replica --------------------------------------------------------------------------------------------------------


def test_a_replica_knows_nothing_but_itself() -> None:
    place = Place("/rehearsal")
    attempt = Attempt(2, place, Ids.beside({3000, 3002, 1}))
    assert attempt.ids == Ids(3001, 3003)
    for text in (zookeeper(place), attempt.migrating(), attempt.finalized(), attempt.canary()):
        told = {key: value for key, _, value in (line.partition("=") for line in text.splitlines())}
        places = [told[key].rpartition("@")[2].rpartition("//")[2] for key in told
                  if key in ("listeners", "zookeeper.connect", "controller.quorum.voters")]
        assert all(where.startswith("127.0.0.1:") for where in places), text
        assert told.get("clientPortAddress", "127.0.0.1") == "127.0.0.1"
    assert "zookeeper" not in attempt.finalized()
    own = {"authorizer.class.name": "com.example.Own"}
    for text in (attempt.finalized(own), attempt.canary(own)):
        authorizers = [line for line in text.splitlines() if line.startswith("authorizer")]
        assert authorizers == ["authorizer.class.name=com.example.Own"]
    assert "zookeeper.connect=127.0.0.1:2181/2\n" in attempt.migrating()
    assert list(Command("a.B", ("x", "y"), "-Xmx1m").lines()) == ["-Xmx1m", "a.B", "x", "y"]


@pytest.mark.parametrize(("limit", "heap"), [({}, "-Xmx1m"), ({"MEMORY_LIMIT": "1000"}, "-Xmx1m -Xmx600")])
def test_a_heap_follows_the_containers_memory(tmp_path: Path, limit: Mapping[str, str], heap: str) -> None:
    commands = tmp_path / "commands"
    commands.mkdir()
    (commands / "broker.1").write_text("\n".join(Command("a.B", ("x",), "-Xmx1m").lines()) + "\n")
    run_class = tmp_path / "kafka-run-class.sh"
    run_class.write_text(f'#!/bin/sh\necho "$KAFKA_HEAP_OPTS for $*"; touch {commands}/end\n')
    run_class.chmod(0o755)
    subprocess.run(["bash", "-c", RUN, "run", "broker", tmp_path, tmp_path / "kafka-server-start.sh"],
                   env={"PATH": os.environ["PATH"], **limit}, check=True, timeout=stretched(20))
    assert (tmp_path / "broker.1.log").read_text() == f"{heap} for a.B x\n"


def test_every_fault_that_is_planted_changes_the_tree() -> None:
    assert [name for name in FAULTS if name != "nothing" and Tree(planted(name)).nodes == TREE.nodes] == []
