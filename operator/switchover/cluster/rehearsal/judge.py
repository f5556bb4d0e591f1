"""What a rehearsal's course means for the migration: a chain of checks over what was seen (docs/rehearsal.md)."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

from switchover.api.status import Severity
from switchover.cluster.rehearsal.course import Course, Process, Reached
from switchover.cluster.rehearsal.culprits import suspects, without
from switchover.cluster.rehearsal.report import Finding, Report, Stage, delete, get
from switchover.metadata.tree import TreeParser
from switchover.reasons.notes import (
    BROKERS_WOULD_COMPLAIN,
    CLASS_DID_NOT_START,
    NODE_WOULD_BE_CREATED,
    NODE_WOULD_BE_DELETED,
    NODE_WOULD_BE_REWRITTEN,
    Note,
)
from switchover.reasons.preflight import (
    BROKERS_WOULD_END,
    CLAIM_WOULD_NOT_COME,
    COPY_WOULD_FAIL,
    DEAD_BROKER_IN_ASSIGNMENT,
    DUAL_WRITE_WOULD_NOT_BEGIN,
    FINALIZE_WOULD_FAIL,
    METADATA_WOULD_BE_LOST,
    METADATA_WOULD_DIFFER,
    REGISTRATION_WOULD_BE_REFUSED,
    REHEARSAL_INCOMPLETE,
    ROLLBACK_WOULD_FAIL,
    TOPIC_WOULD_GO,
    TOPIC_WOULD_VANISH,
)
from switchover.reasons.reason import Reason
from switchover.zookeeper.tree import Tree, is_metadata

TOLD = 20
"""How many nodes a check names."""
WRITTEN_ANYWAY = ("/latest_producer_id_block",)
"""What dual write writes in its own way, whatever was there."""
WARNING, INFO = Severity.WARNING, Severity.INFO


@dataclass(frozen=True, slots=True)
class Seen:
    """All that is judged: the tree as it was read, the claims that failed, and the last one, without the nodes of those."""

    tree: Tree
    ends: tuple["End", ...]
    course: Course


@dataclass(frozen=True, slots=True)
class End:
    """A claim after which no controller worked: how far it got, and the nodes of which it was proven that they cause it."""

    course: Course
    nodes: tuple[str, ...]


def blocker(stage: Stage, reason: Reason, message: str, subject: str = "", *, cure: str) -> Finding:
    """What stands in the way of the migration: like any gate's reason it has a runbook."""
    return Finding(stage, reason.name, Severity.BLOCKER, message, subject, cure)


def note(stage: Stage, code: Note, severity: Severity, message: str, subject: str = "", cure: str = "") -> Finding:
    """What stops nothing."""
    return Finding(stage, code.name, severity, message, subject, cure)


def report(seen: Seen, seconds: Mapping[str, float]) -> Report:
    """Everything found, in the order of the stages."""
    found = [finding for check in CHECKS for finding in check(seen)]
    order = list(Stage)
    found.sort(key=lambda finding: order.index(finding.stage))
    return Report(seen.tree.digest, tuple(found), len(seen.tree.nodes), len(seen.tree.topics), seconds)


def find_hidden_nodes(seen: Seen) -> Iterator[Finding]:
    for path in seen.tree.denied[:TOLD]:
        yield blocker(Stage.EXPORT, REHEARSAL_INCOMPLETE, f"ZooKeeper's ACL of {path} does not let Switchover read it, so"
                      f" it was not rehearsed ({len(seen.tree.denied)} such nodes)", path,
                      cure="give the user of spec.zookeeper.credentialsRef the right READ on it")


def find_missing_brokers(seen: Seen) -> Iterator[Finding]:
    courses = (*(end.course for end in seen.ends), seen.course)
    missing = sorted({broker for course in courses for broker in course.waited_for})
    if missing:
        yield blocker(Stage.BROKERS, DEAD_BROKER_IN_ASSIGNMENT, f"brokers {missing} have replicas and are not"
                      " registered: the controllers would wait for them for ever", "/brokers/ids",
                      cure="start them, or move their partitions away (kafka-reassign-partitions.sh)")
    for broker, error in sorted(seen.course.refused.items()):
        yield blocker(Stage.BROKERS, REGISTRATION_WOULD_BE_REFUSED,
                      f"the controller would refuse the registration of broker {broker}: {error}", f"/brokers/ids/{broker}",
                      cure="compare the brokers' inter.broker.protocol.version and their ids; then rehearse again")


ENDS: Mapping[Reached, tuple[Stage, Reason, str]] = {
    Reached.NOTHING: (Stage.CLAIM, CLAIM_WOULD_NOT_COME, "the controllers would never claim the cluster"),
    Reached.CLAIMED: (Stage.COPY, COPY_WOULD_FAIL, "the controllers would claim the cluster and fail to copy: no controller"
                                                   " would work"),
    Reached.COPIED: (Stage.SYNC, DUAL_WRITE_WOULD_NOT_BEGIN, "the metadata would be copied and dual write never begin:"
                                                           " brokers that restart would get no metadata"),
}


def find_ends(seen: Seen) -> Iterator[Finding]:
    """A controller that ends or stands still, with the nodes that cause it."""
    for end in seen.ends:
        stage, reason, words = ENDS[end.course.reached]
        code = end.course.controller.exit_code
        how = "" if code is None else f"; the controller ends with code {code}"
        for path in end.nodes[:TOLD] or ("",):
            yield blocker(stage, reason, f"{words}{how} ({_why(end.course.controller)})", path,
                          cure=_mend(path) if path else
                          "the faulty node was not found: run `switchover rehearse --keep`, and read its controller's log")


def find_lost_metadata(seen: Seen) -> Iterator[Finding]:
    """What the image has otherwise than the tree."""
    if seen.course.unread:
        yield blocker(Stage.IMAGE, REHEARSAL_INCOMPLETE, f"the copied metadata could not be compared: {seen.course.unread}",
                      cure="rehearse again")
    found = seen.course.differences or ()
    unreadable = {path.rpartition("/")[2] for path in seen.tree.metadata().malformed}
    for each in found[:TOLD]:
        if each.kind == "znode" or _is_going(seen.tree, each.kind, each.key) or each.key.split(" ")[0] in unreadable:
            continue                                           # told by the checks that know what becomes of it
        yield blocker(Stage.IMAGE, METADATA_WOULD_DIFFER, f"{each} ({len(found)} differences)", each.key,
                      cure="correct it in ZooKeeper with Kafka's tools, and rehearse again")


def _is_going(tree: Tree, kind: str, key: str) -> bool:
    """Whether a difference belongs to a topic that is being deleted, or to settings of one that is gone."""
    topic = key.split(" ")[0]
    match kind:
        case "topic":
            return topic in tree.marked
        case "topic configuration":
            return topic not in tree.topics
    return False


def find_changed_nodes(seen: Seen) -> Iterator[Finding]:
    """What dual write would make of the user's tree: KRaft is the truth from then on."""
    if seen.course.after is None:
        return
    copied, after, parser = _copied(seen), seen.course.after, TreeParser(None)
    before, going = copied.nodes, {*WRITTEN_ANYWAY, *(f"/config/topics/{topic}" for topic in copied.marked)}
    told = 0
    for path in sorted({*before, *after}):
        if not is_metadata(path) or path in going or told == TOLD:
            continue
        was, is_ = (parser.entries(path, nodes[path]) if path in nodes else None for nodes in (before, after))
        if path in before and path in after and was == is_:
            continue
        told += 1
        if path not in after:
            yield _deleted(seen.tree, path, before[path], malformed=any(kind == "malformed" for kind, _, _ in was or ()))
        elif path not in before:
            yield note(Stage.SYNC, NODE_WOULD_BE_CREATED, INFO, f"dual write would create {path}: the node that says"
                          " this has a name that Kafka writes otherwise, and stays as well", path)
        else:
            yield note(Stage.SYNC, NODE_WOULD_BE_REWRITTEN, WARNING, f"dual write would rewrite {path}: KRaft does not know"
                          " all that is in it", path)


def _deleted(tree: Tree, path: str, data: bytes | None, *, malformed: bool) -> Finding:
    kind, name = path.split("/")[1:3], path.split("/")[3] if path.count("/") > 2 else ""
    if kind == ["brokers", "topics"]:
        marked = name in tree.marked
        found = blocker(Stage.SYNC, TOPIC_WOULD_GO, f"topic {name} would be deleted from ZooKeeper:"
                        f" {'it is marked for deletion' if marked else 'KRaft does not know it'}", path,
                        cure="let its deletion end" if marked else "restore its node, and rehearse again")
        return replace(found, severity=WARNING) if marked else found
    if kind == ["config", "topics"] and name not in tree.topics:
        return note(Stage.SYNC, NODE_WOULD_BE_DELETED, INFO,
                       f"{path} would be deleted: it has settings of topic {name}, which does not exist", path)
    if data and malformed:
        return blocker(Stage.SYNC, METADATA_WOULD_BE_LOST, f"{path} would be deleted with all that it holds: Kafka"
                       " cannot read it", path, cure=_mend(path))
    return note(Stage.SYNC, NODE_WOULD_BE_DELETED, INFO, f"{path} would be deleted: it holds nothing that KRaft needs", path)


def _mend(path: str) -> str:
    """What to do about a node: deleted is only what holds nothing but the fault."""
    if path.startswith("/brokers/topics/"):
        return "restore the node, or delete the topic with Kafka's tools, as the runbook says"
    if path.startswith("/config/") and not path.startswith(("/config/clients/", "/config/ips/")):
        return f"correct the faulty value in the node, and leave the others: {get(path)}"
    return f"repair the node, or delete it: {delete(path)}"


def find_ends_of_brokers(seen: Seen) -> Iterator[Finding]:
    """What the canary shows: a KRaft broker reads all that was copied when it starts."""
    canary = seen.course.canary
    if canary is None:
        return
    if canary.process.exit_code is not None:
        for path in _nodes_of(seen, canary.process) or ("",):
            yield blocker(Stage.CANARY, BROKERS_WOULD_END, "every broker would exit at its start in KRaft mode, with"
                          f" code {canary.process.exit_code} ({_why(canary.process)})", path,
                          cure="correct the setting with Kafka's tools (kafka-configs.sh --alter), and rehearse again")
        return
    if canary.topics is None:
        yield blocker(Stage.CANARY, REHEARSAL_INCOMPLETE, "a KRaft broker did not list the topics in time",
                      cure="rehearse again")
        return
    copied = _copied(seen)
    known = {name for name, topic in copied.metadata().topics.items() if topic.partitions and name in copied.topics}
    for topic in sorted(known - canary.topics)[:TOLD]:
        yield blocker(Stage.CANARY, TOPIC_WOULD_VANISH, f"topic {topic} would not exist on brokers in KRaft mode,"
                      " and its data be set aside as stray", f"/brokers/topics/{topic}",
                      cure="another topic has the same topic_id: see docs/runbooks/preflight-cluster.md#topicsshareanid")
    for trouble in canary.process.troubles:
        for path in _nodes_of(seen, Process(None, (trouble,))) or ("",):
            yield note(Stage.CANARY, BROKERS_WOULD_COMPLAIN, WARNING, f"a KRaft broker logs {trouble} at its start", path)


def find_rollback_trouble(seen: Seen) -> Iterator[Finding]:
    if seen.course.back:
        yield blocker(Stage.ROLLBACK, ROLLBACK_WOULD_FAIL, "a rollback could not give the cluster back to"
                      f" ZooKeeper's controller: {seen.course.back}",
                      cure="do not begin; report it with what `switchover rehearse --output` writes")


def find_finalize_trouble(seen: Seen) -> Iterator[Finding]:
    course = seen.course
    if course.finalized is False:
        yield blocker(Stage.FINALIZE, FINALIZE_WOULD_FAIL, "the controller did not leave the migration when it was"
                      f" started without ZooKeeper ({_why(course.controller)})",
                      cure="do not begin; look at the other findings of `switchover rehearse --output`")
    before = course.differences or ()
    for each in tuple(each for each in course.after_finalize or () if each not in before)[:TOLD]:
        yield blocker(Stage.FINALIZE, METADATA_WOULD_DIFFER, f"after the end of the migration: {each}", each.key,
                      cure="correct it in ZooKeeper with Kafka's tools, and rehearse again")


def find_ending_classes(seen: Seen) -> Iterator[Finding]:
    """The brokers' own classes: their own settings are hidden by Kafka, so what they did without those proves little."""
    for setting, process in sorted(seen.course.ended_by.items()):
        yield note(Stage.CLASSES, CLASS_DID_NOT_START, WARNING, "a KRaft node did not start with the brokers' own"
                      f" {setting} ({_why(process)}); it had neither that class's settings nor the pods' volumes", "",
                      "check that it supports KRaft, and try it on a KRaft cluster of Kafka 3.9 before the migration begins")


def _why(process: Process) -> str:
    return str(process.cause or "no error in its log")


def _nodes_of(seen: Seen, process: Process) -> tuple[str, ...]:
    """The nodes that an error is about: it names them or their only key, or Kafka could not have written them."""
    names = process.cause.names if process.cause is not None else frozenset()
    named = tuple(path for path in sorted(seen.tree.nodes) if is_metadata(path) and path.rpartition("/")[2] in names)
    return named[:TOLD] or suspects(_copied(seen), process)[:TOLD]


def _copied(seen: Seen) -> Tree:
    """What the last controller had before it."""
    return without(seen.tree, (path for end in seen.ends for path in end.nodes))


CHECKS: tuple[Callable[[Seen], Iterator[Finding]], ...] = (
    find_hidden_nodes, find_missing_brokers, find_ends, find_lost_metadata, find_changed_nodes, find_ends_of_brokers,
    find_rollback_trouble, find_finalize_trouble, find_ending_classes)
