"""What can be wrong with a picture of a KafkaMigration: each of these changes one thing about it."""

from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import replace
from typing import Any

from fakes.views import changed
from switchover.answers.observed import Known, Unknown
from switchover.cluster.door import mount
from switchover.cluster.facts import CaughtUp, Written
from switchover.cluster.picture import Picture
from switchover.cluster.rehearsal.replica_job import MADE_OF, made_of
from switchover.cluster.rehearsal.report import as_message
from switchover.coordination.mode import Mode
from switchover.kafka.node import NOT_LISTENING, Replica
from switchover.kubernetes.ports import GroupMigration
from switchover.kubernetes.reports import DiskReport
from switchover.kubernetes.workloads import Reached, Stage
from switchover.lag.group import Membership
from switchover.metadata.cluster import Assignment, ClusterMetadata, Difference, Entity, Topic
from switchover.metadata.parity import Parity
from switchover.zookeeper.nodes import ControllerNode, ZooKeeperGroup
from unit.judged_groups import Swept, judged
from unit.kraft_gates import USERS_NEW
from unit.pictures import (
    NOW,
    OFFSET,
    ORDERS,
    REHEARSED,
    REPORT,
    answer,
    spec_of,
    spoil,
    spoil_each,
    spoil_pod,
    spoil_workload,
    value,
    with_fact,
    workload_of,
)

# --- the metadata log and its quorum ------------------------------------------------------------------------------------

LAGGING = Replica(OFFSET - 5, int(NOW * 1000))


def log(**changes: object) -> Callable[[Picture], Picture]:
    return lambda picture: spoil(picture, "log", **changes)


def with_log_unknown(picture: Picture) -> Picture:
    return with_fact(picture, "log", Unknown("no controller leads"))


def registration(broker: int, **changes: object) -> Callable[[Picture], Picture]:
    def spoiled(picture: Picture) -> Picture:
        known = value(picture.facts.log).brokers
        return spoil(picture, "log", brokers={**known, broker: replace(known[broker], **changes)})

    return spoiled


def unregistered(broker: int) -> Callable[[Picture], Picture]:
    return lambda picture: spoil(picture, "log", brokers={
        other: item for other, item in value(picture.facts.log).brokers.items() if other != broker})


def quorum(**changes: object) -> Callable[[Picture], Picture]:
    return lambda picture: spoil(picture, "quorum", **changes)


def voter(node: int, **changes: object) -> Callable[[Picture], Picture]:
    def spoiled(picture: Picture) -> Picture:
        voters = value(picture.facts.quorum).voters
        return spoil(picture, "quorum", voters={**voters, node: replace(voters[node], **changes)})

    return spoiled


def observer(node: int, replica: Replica | None) -> Callable[[Picture], Picture]:
    def spoiled(picture: Picture) -> Picture:
        others = {key: item for key, item in value(picture.facts.quorum).observers.items() if key != node}
        return spoil(picture, "quorum", observers=others if replica is None else {**others, node: replica})

    return spoiled


def controller_volumes(*replaced: str) -> Callable[[Picture], Picture]:
    """These controllers run on volumes that were made anew."""

    def change(picture: Picture) -> Picture:
        own = value(picture.facts.kubernetes).controllers
        pods = {name: replace(each, volumes=(f"data-{name}/2",)) if name in replaced else each
                for name, each in own.pods.items()}
        return spoil(picture, "kubernetes", controllers=replace(own, pods=pods))

    return change


def in_trouble(*pods: str) -> Callable[[Picture], Picture]:
    """These controllers do not come up, and nobody leads."""

    def change(picture: Picture) -> Picture:
        own = value(picture.facts.kubernetes).controllers
        changed = {name: replace(pod, ready=False, trouble="container kafka: CrashLoopBackOff") if name in pods else pod
                   for name, pod in own.pods.items()}
        return spoil(with_fact(with_log_unknown(picture), "quorum", Unknown("nobody listens")), "kubernetes",
                     controllers=replace(own, pods=changed))

    return change


def coming_up(*pods: str, since: float = NOW - 5) -> Callable[[Picture], Picture]:
    """These controllers run an init container since then, and nobody leads."""

    def change(picture: Picture) -> Picture:
        own = value(picture.facts.kubernetes).controllers
        reached = Reached(Stage.INITIALIZING, "wait", since)
        changed = {name: replace(pod, ready=False, reached=reached) if name in pods else pod
                   for name, pod in own.pods.items()}
        return spoil(with_fact(with_log_unknown(picture), "quorum", Unknown("nobody listens")), "kubernetes",
                     controllers=replace(own, pods=changed))

    return change


def dead(picture: Picture) -> Picture:
    """Every controller refuses connections."""
    return spoil_each(with_log_unknown(picture), "answers", lambda _: NOT_LISTENING, 3000, 3001, 3002)


# --- ZooKeeper, the claim and dual write --------------------------------------------------------------------------------

BY_A_BROKER = ControllerNode(1, True, -1)
OLD = ZooKeeperGroup(frozenset({"pay_a", "pay_b"}))
TOGGLED = ZooKeeperGroup(frozenset({"pay_a"}), frozenset({"pay_a", "pay_gone"}), Mode.KAFKA)
UNKNOWN_QUOTA: Mapping[Entity, Mapping[str, float]] = {
    (("user", "alice"),): {"foo_rate": 10.0, "producer_byte_rate": 1024.0}}


def zookeeper(**changes: object) -> Callable[[Picture], Picture]:
    return lambda picture: spoil(picture, "zookeeper", **changes)


def migration_node(**changes: object) -> Callable[[Picture], Picture]:
    return lambda picture: spoil(picture, "zookeeper", migration=replace(
        value(picture.facts.zookeeper).migration, **changes))


def dead_and_behind(picture: Picture) -> Picture:
    """By one record, which may be a change."""
    return migration_node(offset=OFFSET - 1)(dead(picture))


def written(since: float, seen_to_change: bool = True, offset_since: float | None = None) -> Callable[[Picture], Picture]:
    seen = Written(since, seen_to_change, since if offset_since is None else offset_since)
    return lambda picture: with_fact(picture, "migration_written", Known(seen, NOW))


def standing(seconds: float, quotas: Mapping[Entity, Mapping[str, float]] | None = None) -> Callable[[Picture], Picture]:
    """KRaft goes on, with these quotas, and `/migration` is touched without its offset."""
    def spoiled(picture: Picture) -> Picture:
        behind = quorum(high_watermark=OFFSET + 60)(written(NOW - 1, offset_since=NOW - seconds)(picture))
        return log(metadata=ClusterMetadata(quotas=quotas or {}))(behind)

    return spoiled


def without_state(*partitions: tuple[str, int]) -> Callable[[Picture], Picture]:
    """KRaft goes on and dual write does not, with these partitions of `orders` in ZooKeeper's topics alone."""
    def spoiled(picture: Picture) -> Picture:
        topics = {"orders": Topic("id", {index: Assignment((101, 102)) for index in range(3)})}
        known = log(metadata=ClusterMetadata(topics=topics))(standing(6)(picture))
        return with_fact(known, "stateless", Known(dict.fromkeys(partitions, (101, 102)), NOW))

    return spoiled


def parity(*, difference: bool = False, proven: bool = False, at: float = NOW) -> Callable[[Picture], Picture]:
    found = (Difference("topic", "orders", "nothing", "id x"),) if difference else ()
    return lambda picture: with_fact(picture, "parity", Known(Parity(found, 1, proven), at))


def versions(behind: int | None) -> Callable[[Picture], Picture]:
    overdue = {("orders", 0): 7} if behind else {}
    return lambda picture: with_fact(picture, "parity", Known(Parity((), 0, True, behind, overdue), NOW))


def one_server_runs(picture: Picture) -> Picture:
    return with_fact(picture, "zookeeper_connections", {"zk-0:2181": Known(None, NOW), "zk-1:2181": Known(0, NOW),
                                                        "zk-2:2181": Unknown("no answer")})


def old_groups(**groups: ZooKeeperGroup) -> Callable[[Picture], Picture]:
    return lambda picture: with_fact(picture, "zookeeper_groups", Known(groups, NOW))


def moving(**migrations: tuple[GroupMigration, ...]) -> Callable[[Picture], Picture]:
    """The ConsumerGroupMigrations with coordination in the namespace, by group."""
    return lambda picture: with_fact(picture, "group_migrations", Known(migrations, NOW))


# --- what brokers and their groups answer -------------------------------------------------------------------------------


def answers(node: int, mode: str) -> Callable[[Picture], Picture]:
    return lambda picture: spoil_each(picture, "answers", lambda _: answer(mode), node)


def silent(fact: str, *who: object) -> Callable[[Picture], Picture]:
    return lambda picture: with_fact(picture, fact, {
        **getattr(picture.facts, fact), **dict.fromkeys(who, Unknown("no answer within 3 s"))})


def untold(broker_id: int) -> Callable[[Picture], Picture]:
    """This broker answers, and knows of nobody."""
    return lambda picture: with_fact(picture, "views", {
        **picture.facts.views, broker_id: Unknown("has just started, and has no metadata yet", no_metadata=True)})


def not_listed(witness: int, broker: int) -> Callable[[Picture], Picture]:
    def change(view):
        return replace(view, brokers={other: where for other, where in view.brokers.items() if other != broker})

    return lambda picture: spoil_each(picture, "views", change, witness)


def caught_up(picture: Picture) -> Picture:
    """Broker 1 does not take broker 2 back, which has all its records."""
    return with_fact(picture, "caught_up", Known((CaughtUp("orders", 0, 1, 2, NOW - 20),), NOW))


def partition(*witnesses: int, **changes: object) -> Callable[[Picture], Picture]:
    """The first partition is different, as these brokers see it."""
    def change(view):
        first = view.partitions[0]
        return changed(view, lambda each: replace(each, **changes) if each is first else each)

    return lambda picture: spoil_each(picture, "views", change, *witnesses)


def shown(marker: str) -> Callable[[Picture], Picture]:
    """What the process of the first broker tells of the edits that started it."""
    return lambda picture: with_fact(picture, "markers", {**picture.facts.markers, 0: Known(marker, NOW)})


def samples(*sweeps: Swept) -> Callable[[Picture], Picture]:
    """The group orders after these sweeps, judged by what its spec allows."""
    def spoiled(picture: Picture) -> Picture:
        (group,) = (each for each in picture.spec.gates.groups if each.name == "orders")
        return with_fact(picture, "groups", {"orders": Known(judged(group, sweeps, NOW), NOW)})

    return spoiled


def without_members(picture: Picture) -> Picture:
    """Nobody is in the group orders."""
    return with_fact(picture, "members", {"orders": Known(Membership("Empty", {}), NOW)})


def sweep(ago: float, committed: int | None, end: int, start: int = 0) -> Swept:
    return Swept(ago, {ORDERS: (committed, end, start)})


# --- pods and their templates -------------------------------------------------------------------------------------------

FORMATTED = DiskReport(2, 5, 1, 0, ("/var/lib/kafka/data-2",))
NAMELESS = DiskReport(2, 5, 0, 1, (), ("/var/lib/kafka/data/orders-0",))


def pod(name: str, **changes: object) -> Callable[[Picture], Picture]:
    return lambda picture: spoil_pod(picture, name, **changes)


def without_workload(picture: Picture) -> Picture:
    return spoil(picture, "kubernetes", brokers={"kafka": None})


def without_original(picture: Picture) -> Picture:
    return spoil(picture, "kubernetes", originals={"kafka": None})


def rolling_update(picture: Picture) -> Picture:
    return spoil_workload(picture, update_strategy={"type": "RollingUpdate"})


def pod_spec(**changes: object) -> Callable[[Picture], Picture]:
    def change(picture: Picture) -> Picture:
        template = workload_of(picture).template
        return spoil_workload(picture, template={**template, "spec": {**template["spec"], **changes}})

    return change


def container(**changes: object) -> Callable[[Picture], Picture]:
    """The container that runs Kafka is another; None takes a field away."""

    def change(picture: Picture) -> Picture:
        first, *others = workload_of(picture).template["spec"]["containers"]
        changed = {key: each for key, each in {**first, **changes}.items() if each is not None}
        return pod_spec(containers=[changed, *others])(picture)

    return change


def hybrid(picture: Picture) -> Picture:
    """What an apply of a manifest with a start script of its own leaves: the user's volume where the door stood."""
    mounts = workload_of(picture).template["spec"]["containers"][0]["volumeMounts"]
    return container(volumeMounts=[
        {**each, "name": "scripts"} if each.get("subPath") == mount.SCRIPT_KEY else each for each in mounts])(picture)


def without_edits(picture: Picture) -> Picture:
    mounts = workload_of(picture).template["spec"]["containers"][0]["volumeMounts"]
    return container(volumeMounts=[each for each in mounts if each["mountPath"] != mount.EDITS])(picture)


def container_renamed(picture: Picture) -> Picture:
    named = replace(picture, spec=spec_of(brokers=[{"name": "kafka", "container": "kafka"}]))
    return container(name="broker")(named)


def probing(command: str) -> Callable[[Picture], Picture]:
    """The brokers' pods have such a probe."""

    def change(picture: Picture) -> Picture:
        template = workload_of(picture).template
        containers = [{**each, "livenessProbe": {"exec": {"command": ["sh", "-c", command]}}}
                      for each in template["spec"]["containers"]]
        return spoil_workload(picture, template={**template, "spec": {**template["spec"], "containers": containers}})

    return change


def with_controllers_that_wait(picture: Picture) -> Picture:
    """A copy of a pod of Confluent's image, made by a release that did not know of it."""
    state = value(picture.facts.kubernetes)
    container = {"name": "kafka", "image": "confluentinc/cp-kafka:7.9.0", "env": [
        {"name": "KAFKA_ZOOKEEPER_CONNECT", "value": "zookeeper:2181"}]}
    controllers = replace(state.controllers, template={"spec": {"containers": [container]}})
    return spoil(picture, "kubernetes", controllers=controllers)


def without_listener_credentials(picture: Picture) -> Picture:
    spec = spec_of(controllers={"storage": {"size": "1Gi"}, "listener": {
        "securityProtocol": "SSL", "credentialsRef": {"name": "keys"}}})
    return spoil(replace(picture, spec=spec), "kubernetes", listener_credentials="Secret keys does not exist")


# --- the rehearsal, the spec and the record -----------------------------------------------------------------------------


def rehearsed(picture: Picture, **changes: object) -> Picture:
    """The rehearsal's Job, changed."""
    given = {**REHEARSED.given, MADE_OF: made_of(picture) or ""}
    return with_fact(picture, "rehearsal", Known(replace(REHEARSED, given=given, **changes), NOW))


def reported(picture: Picture, **changes: object) -> Picture:
    """What the rehearsal found, changed."""
    return rehearsed(picture, message=as_message(replace(REPORT, **changes)))


def trial(picture: Picture, **changes: object) -> Picture:
    """The Job of the trial, changed."""
    job = value(picture.facts.trials["kafka"])
    return with_fact(picture, "trials", {"kafka": Known(replace(job, **changes), NOW)})


def mounted_at(path: str) -> Mapping[str, Any]:
    """The user's new template with the brokers' data mounted there."""
    found = deepcopy(USERS_NEW)
    for mounted in found["spec"]["containers"][0]["volumeMounts"]:
        mounted["mountPath"] = path if mounted["name"] == "data" else mounted["mountPath"]
    return found


def backups(given: object) -> Callable[[Picture], Picture]:
    return lambda picture: replace(picture, spec=spec_of(backups=given))


def opened_at(when: float) -> Callable[[Picture], Picture]:
    return lambda picture: picture.at(replace(picture.position, opened=when))
