"""The jury bites: for each rule a history that breaks it, next to one that does not."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from invariants.any_migration import differences
from invariants.events import Asked, Cluster, Effect, Event, Leased, Recorded, RolledByKubernetes, Started, Told, Wanted
from invariants.jury import Jury, judged
from invariants.memory import Limits
from switchover.api.kafka_migration import NodeMode as Mode
from unit.pictures import Modes, three

UID = "u-1"
SPEC: dict[str, Any] = {
    "brokers": [{"name": "kafka"}], "controllers": {"name": "kafka-controller"},
    "rollout": {"steps": [{"pods": 1, "bakeSeconds": 10}]}, "desiredState": "Running",
}
BROKERS, CONTROLLERS = [f"kafka-{n}" for n in range(3)], [f"kafka-controller-{n}" for n in range(3)]
TOPIC = ("orders", 0)
LIMITS = Limits(namespace="demo", secrets=("s3cret",))


def stamp(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat()


def at_step(at: float, place: str, *, batch: tuple[str, ...] = (), number: int = 0, bake: float | None = None,
            opened: bool = True, done: bool = False, attempt: int = 1, uid: str = UID, actor: str = "one#1",
            nodes: Mapping[str, tuple[str, str]] | None = None, **more: Any) -> Recorded:
    """A status on record. `nodes` gives (assigned, evicting) where it is not ZooKeeper or MigrationController and none."""
    records = {**dict.fromkeys(BROKERS, (Mode.ZOOKEEPER, "")), **dict.fromkeys(CONTROLLERS, (Mode.MIGRATION_CONTROLLER, "")),
               **(nodes or {})}
    progress = {"step": place[:-1], "direction": "Forward" if place.endswith(">") else "Backward", "batch": number,
                "batchNodes": list(batch), "openTime": stamp(1) if opened else None,
                "bakeStartTime": stamp(bake) if bake is not None else None,
                "completeTime": stamp(at) if done else None}
    status = {"attempt": attempt, "progress": progress, "observedGeneration": 1, "planHash": "h", "clusterId": "c",
              "nodes": [{"name": name, "assigned": assigned, "evicting": evicting}
                        for name, (assigned, evicting) in records.items()]} | more
    return Recorded(at, uid, status, actor)


def wanted(at: float = 0, **change: Any) -> Wanted:
    return Wanted(at, UID, 1, SPEC | change)


def evict(at: float, pod: str, uid: str = "p-1", **more: Any) -> Effect:
    return Effect(at, "evict", "pods", pod, "one#1", "demo", uid, **({"read_at": at, "wish_read_at": at} | more))


def znode(at: float, path: str, verb: str = "delete", **content: Any) -> Effect:
    return Effect(at, verb, "znodes", path, "one#1", content={"epoch": 5, "partition_epoch": 3} | content)


def cluster(at: float, brokers: Modes = Mode.ZOOKEEPER, controllers: Modes = Mode.MIGRATION_CONTROLLER,
            **more: Any) -> Cluster:
    """A cluster that is well; a node without a mode is down."""
    up = {name: mode for name, mode in zip(BROKERS, three(brokers), strict=True) if mode}
    sync = frozenset(up)
    known = {"cluster_id": "c", "quorum": True, "rules": "ZooKeeper", "claimed": False, "in_sync": {TOPIC: sync},
             "replicas": {TOPIC: frozenset(BROKERS)}, "leaderless": frozenset(), "leader": CONTROLLERS[0]}
    modes = {name: mode for name, mode in zip(CONTROLLERS, three(controllers), strict=True) if mode}
    return Cluster(at, up, modes, **(known | more))


def moving(at: float, pod: str = "kafka-0", mode: str = Mode.MIGRATION, place: str = "EnableMigration>", uid: str = "p-1",
           **more: Any) -> Recorded:
    """A batch of one pod that is on record to be replaced."""
    return at_step(at, place, batch=(pod,), number=1, nodes={pod: (mode, uid)}, **more)


KRAFT = {"rules": "KRaft", "claimed": True, "state": "MIGRATION", "dual_write_age": 0.5}
NOBODY = {"rules": "", "claimed": True, "quorum": False, "leader": "", "state": "MIGRATION"}
APPROVED = wanted(approvals=[{"name": "Finalize", "planHash": "h"}])
FINALIZING = moving(10, "kafka-controller-0", Mode.KRAFT_CONTROLLER, "Finalize>")
BACK = at_step(10, "EnableMigration<", nodes=dict.fromkeys(BROKERS, (Mode.MIGRATION, "")))
STOPPED = cluster(11, Mode.MIGRATION, Mode.STOPPED, **NOBODY)

LAWFUL: dict[str, tuple[Event, ...]] = {
    "a broker goes to Migration": (
        wanted(), cluster(1), moving(10), evict(11, "kafka-0"), cluster(12, (Mode.NONE, Mode.ZOOKEEPER)),
        cluster(20, (Mode.MIGRATION, Mode.ZOOKEEPER))),
    "a broker goes to KRaft": (
        wanted(), cluster(1, Mode.MIGRATION, **KRAFT), moving(10, mode=Mode.KRAFT, place="MoveBrokers>"),
        evict(11, "kafka-0"), cluster(12, (Mode.NONE, Mode.MIGRATION), **KRAFT),
        cluster(20, (Mode.KRAFT, Mode.MIGRATION), **KRAFT)),
    "the way back": (wanted(), cluster(1, Mode.MIGRATION, **KRAFT), BACK, STOPPED, znode(12, "/migration"),
                     znode(13, "/controller"), cluster(14, Mode.MIGRATION, Mode.STOPPED, quorum=False, leader="")),
    "the end": (APPROVED, cluster(1, Mode.KRAFT, leader=CONTROLLERS[1], **KRAFT), FINALIZING,
                evict(11, "kafka-controller-0"),
                cluster(20, Mode.KRAFT, (Mode.KRAFT_CONTROLLER, Mode.MIGRATION_CONTROLLER), leader=CONTROLLERS[1], **KRAFT)),
    "turned and finished": (wanted(), at_step(1, "Preflight>"), at_step(2, "Rehearse>", opened=False),
                            at_step(3, "Rehearse<", opened=False), at_step(4, "Rehearse<"),
                            at_step(5, "Preflight<", opened=False), at_step(6, "Preflight<"),
                            at_step(7, "Preflight<", done=True), at_step(8, "Preflight>", opened=False, attempt=2)),
}

BROKEN: dict[str, tuple[str, tuple[Event, ...]]] = {
    # O1
    "a step is jumped over": ("O1", (at_step(1, "Preflight>"), at_step(2, "EnableMigration>", opened=False))),
    "a step is left before it began": ("O1", (
        at_step(1, "Preflight>", opened=False), at_step(2, "Rehearse>", opened=False))),
    "turned after the point of no return": ("O1", (at_step(1, "Finalize>"), at_step(2, "Finalize<", opened=False))),
    "a new attempt in the middle": ("O1", (at_step(1, "Soak>"), at_step(2, "Soak>", attempt=2, opened=False))),
    "observedGeneration goes back": ("O1", (at_step(1, "Soak>", observedGeneration=3), at_step(40, "Soak>"))),
    "finished and begun again": ("O1", (at_step(1, "Preflight<", done=True), at_step(2, "Preflight<"))),
    "a new object in the middle": ("O1", (at_step(1, "Preflight>"), at_step(2, "Soak>", uid="u-2"))),
    # O2 to O5
    "an effect of another step": ("O2", (
        wanted(), at_step(1, "Soak>"), Effect(2, "create", "services", "kafka-controller"))),
    "a step that is not open": ("O2", (
        wanted(), at_step(1, "ProvisionControllers>", opened=False), Effect(2, "create", "services", "kafka-controller"))),
    "a pod outside of the batch": ("O2", (wanted(), moving(1), evict(2, "kafka-1"))),
    "a file of another mode": ("O2", (
        wanted(), moving(1), Effect(2, "change", "secrets", "kafka-switchover", assigns={"kafka-1": Mode.MIGRATION}))),
    "an unfenced effect without the Lease": ("O3", (
        wanted(), Leased(1, "u-1/two"), at_step(2, "ProvisionControllers>", actor="two#1"),
        Effect(3, "change", "services", "kafka-controller", "one#1", fenced=False))),
    "another pod than the one on record": ("O4", (wanted(), moving(1), evict(2, "kafka-0", uid="p-2"))),
    "a deletion that insists on nothing": ("O5", (
        wanted(), at_step(1, "ProvisionControllers<"), Effect(2, "delete", "services", "kafka-controller", fenced=False))),
    "a reading older than the intent": ("O5", (wanted(), moving(10), evict(11, "kafka-0", read_at=9.0))),
    # O6, O7, O9 to O11, L1
    "opened on Unknown": ("O6", (at_step(1, "Soak>"), at_step(2, "Finalize>", opened=False, waitingFor=[
        {"gate": "AllKraft", "verdict": "Unknown", "reason": "NoWitness"}]))),
    "opened after two passes": ("O6", (at_step(1, "Soak>"), at_step(2, "Finalize>", opened=False, gates=[
        {"name": "DualWrite", "passes": 2}]))),
    "moved on while paused": ("O7", (wanted(), moving(1), wanted(2, desiredState="Paused"), evict(3, "kafka-0"))),
    "moved on while back is wanted": ("O7", (
        wanted(), moving(1), wanted(2, desiredState="RolledBack"), evict(3, "kafka-0"))),
    "a pause not heard for long": ("O7", (
        wanted(), moving(1), wanted(2, desiredState="Paused"), evict(40, "kafka-0", wish_read_at=None))),
    "a status that says nothing new": ("O9", (at_step(1, "Soak>"), at_step(3, "Soak>"))),
    "records for ever": ("O9", tuple(at_step(40.0 * n, "Soak>", phase=str(n)) for n in range(500))),
    "another namespace": ("O10", (Asked(1, "GET", "/api/v1/namespaces/other/pods"),)),
    "the whole cluster": ("O10", (Asked(1, "GET", "/api/v1/secrets"),)),
    "an effect elsewhere": ("O10", (wanted(), moving(1), replace(evict(2, "kafka-0"), namespace="other"))),
    "a secret in the log": ("O11", (Told(1, "log", "password=s3cret"),)),
    "a secret in the status": ("O11", (at_step(1, "Preflight>", waitingForSummary="s3cret"),)),
    "silence": ("L1", (at_step(1, "Soak>"), at_step(40, "Soak>"), at_step(80, "Soak>"))),
    # K1
    "ZooKeeper and KRaft together": ("K1", (cluster(1, (Mode.ZOOKEEPER, Mode.MIGRATION, Mode.KRAFT)),)),
    "Migration without a quorum": ("K1", (cluster(1, (Mode.MIGRATION, Mode.ZOOKEEPER), Mode.NONE, quorum=False),)),
    "to Migration without a quorum": ("K1", (wanted(), cluster(1, quorum=False), moving(10), evict(11, "kafka-0"))),
    "to KRaft without dual write": ("K1", (
        wanted(), cluster(1, Mode.MIGRATION, **KRAFT | {"dual_write_age": 60.0}),
        moving(10, mode=Mode.KRAFT, place="MoveBrokers>"),
        evict(11, "kafka-0"))),
    "to KRaft before the copy": ("K1", (
        wanted(), cluster(1, Mode.MIGRATION, **KRAFT | {"state": "PRE_MIGRATION"}),
        moving(10, mode=Mode.KRAFT, place="MoveBrokers>"),
        evict(11, "kafka-0"))),
    "to A while KRaft rules": ("K1", (
        wanted(), cluster(1, Mode.MIGRATION, **KRAFT), moving(10, mode=Mode.ZOOKEEPER, place="EnableMigration<"),
        evict(11, "kafka-0"))),
    "starts in ZooKeeper while KRaft rules": ("K1", (
        cluster(1, Mode.MIGRATION, **KRAFT), Started(2, "kafka-0", Mode.ZOOKEEPER, False))),
    "starts in KRaft before the copy": ("K1", (
        cluster(1, Mode.MIGRATION, state="PRE_MIGRATION"), Started(2, "kafka-0", Mode.KRAFT, False))),
    "starts without a file": ("K1", (Started(1, "kafka-0", "", False),)),
    # K2, K3
    "a restart that is not safe": ("K2", (
        wanted(), cluster(1, (Mode.ZOOKEEPER, Mode.NONE, Mode.ZOOKEEPER)), moving(10), evict(11, "kafka-0"))),
    "a second batch too early": ("K2", (
        wanted(), cluster(1), moving(10), evict(11, "kafka-0"), cluster(12, (Mode.NONE, Mode.ZOOKEEPER)),
        moving(13, "kafka-1"),
        evict(14, "kafka-1"))),
    "replicas are lost": ("K2", (cluster(1), cluster(2, (Mode.ZOOKEEPER, Mode.NONE)))),
    "Kubernetes rolls": ("K2", (RolledByKubernetes(1, "kafka-0"),)),
    "a batch without its bake": ("K3", (
        wanted(), moving(10, bake=20.0),
        at_step(22, "EnableMigration>", number=1, nodes={"kafka-0": (Mode.MIGRATION, "p-1")}))),
    # K4 to K6
    "finalized without an approval": ("K4", (wanted(), cluster(1, Mode.KRAFT, **KRAFT), FINALIZING,
                                             evict(11, "kafka-controller-0"))),
    "finalized by an old approval": ("K4", (wanted(approvals=[{"name": "Finalize", "planHash": "old"}]), FINALIZING,
                                            evict(11, "kafka-controller-0"))),
    "finalized with a straggler": ("K4", (
        APPROVED, cluster(1, (Mode.KRAFT, Mode.KRAFT, Mode.MIGRATION), **KRAFT), FINALIZING,
        evict(11, "kafka-controller-0"))),
    "finalized with a registration": ("K4", (
        APPROVED, cluster(1, Mode.KRAFT, **KRAFT, registered=frozenset({"kafka-2"})), FINALIZING,
        evict(11, "kafka-controller-0"))),
    "finalized in another step": ("K4", (
        APPROVED, at_step(1, "Soak>"), Effect(2, "change", "secrets", "kafka-controller-switchover",
                                              assigns={"kafka-controller-0": Mode.KRAFT_CONTROLLER}))),
    "finalized by accident": ("K4", (wanted(), at_step(1, "MoveBrokers>"),
                                     cluster(2, (Mode.KRAFT, Mode.KRAFT, Mode.MIGRATION), state="POST_MIGRATION"))),
    "back after the end": ("K5", (wanted(), cluster(1, Mode.KRAFT, Mode.KRAFT_CONTROLLER, state="POST_MIGRATION"), BACK,
                                  znode(11, "/migration"))),
    "a broker is restarted while ZooKeeper runs": ("K1", (
        wanted(), at_step(1, "ReleaseZooKeeper>"),
        cluster(2, Mode.KRAFT, Mode.KRAFT_CONTROLLER, state="POST_MIGRATION", zookeeper_stopped=False),
        moving(10, mode=Mode.KRAFT, place="ReleaseZooKeeper>"), evict(11, "kafka-0"))),
    "ZooKeeper is removed": ("K6", (wanted(), at_step(1, "ReleaseZooKeeper>"),
                                    Effect(2, "delete", "statefulsets", "zookeeper", uid="z"))),
    "a topic is removed": ("K6", (wanted(), BACK, STOPPED, znode(12, "/brokers/topics/orders"))),
    # K7
    "the epoch is deleted": ("K7", (wanted(), BACK, STOPPED, znode(12, "/controller_epoch"))),
    "the epoch goes down": ("K7", (wanted(), BACK, STOPPED, znode(12, "/controller_epoch", "change", epoch=4, expected=7))),
    "znodes on the way forward": ("K7", (wanted(), at_step(1, "EnableMigration>"), STOPPED, znode(12, "/migration"))),
    "a controller still runs": ("K7", (
        wanted(), BACK, cluster(11, Mode.MIGRATION, (Mode.STOPPED, Mode.STOPPED, Mode.MIGRATION_CONTROLLER), **NOBODY),
        znode(12, "/migration"))),
    "a broker is on KRaft": ("K7", (
        wanted(), BACK, cluster(11, (Mode.MIGRATION, Mode.MIGRATION, Mode.KRAFT), Mode.STOPPED, **NOBODY),
        znode(12, "/migration"))),
    "the controller first": ("K7", (wanted(), BACK, STOPPED, znode(12, "/controller", migration=True))),
    "the epoch too low": ("K7", (wanted(), BACK, STOPPED, znode(12, "/migration"),
                                 znode(13, "/controller", epoch=3, partition_epoch=7))),
    "ZooKeeper's own controller": ("K7", (wanted(), BACK, STOPPED, znode(12, "/controller", ephemeral=True))),
    # K8 to K11
    "no flag on an empty log": ("K8", (Started(1, "kafka-controller-0", Mode.KRAFT_CONTROLLER, True),)),
    "an empty log and a leftover": ("K8", (cluster(1, controllers=Mode.NONE, quorum=False, migration_offset=900),
                                           Started(2, "kafka-controller-0", Mode.MIGRATION_CONTROLLER, True))),
    "nobody acts": ("K9", tuple(cluster(float(n), Mode.MIGRATION, Mode.STOPPED, **NOBODY) for n in (1, 60, 200))),
    "no leader": ("K9", (cluster(1, Mode.MIGRATION),
                         *(cluster(float(n), Mode.MIGRATION, leaderless=frozenset({TOPIC})) for n in (2, 5, 20)))),
    "five minutes": ("K9", (wanted(), cluster(1, Mode.MIGRATION, names_kraft=frozenset({"kafka-0"})),
                            moving(10, mode=Mode.ZOOKEEPER, place="EnableMigration<"), evict(11, "kafka-0"))),
    "a broker while nobody acts": ("K9", (wanted(), cluster(1, Mode.MIGRATION, **NOBODY), moving(10), evict(11, "kafka-0"))),
    "the leader first": ("K9", (wanted(), cluster(1, Mode.MIGRATION, **KRAFT),
                                moving(10, "kafka-controller-0", Mode.STOPPED, "EnableMigration<"),
                                evict(11, "kafka-controller-0"))),
    "a change is lost": ("K10", (cluster(1, metadata={"config orders": "a"}, metadata_wanted={"config orders": "b"}),)),
    "a topic is gone": ("K10", (cluster(1, metadata={}, metadata_wanted={"topic orders": "x"}),)),
    "records are lost": ("K11", (cluster(1, lost_records=3),)),
    "another cluster": ("K11", (cluster(1), cluster(2, cluster_id="d"))),
    "another cluster on record": ("K11", (at_step(1, "Soak>"), at_step(40, "Soak>", clusterId="d"))),
}


@pytest.mark.parametrize("history", LAWFUL.values(), ids=LAWFUL.keys())
def test_a_lawful_history_breaks_nothing(history: tuple[Event, ...]) -> None:
    assert judged(history, LIMITS) == []


@pytest.mark.parametrize(("code", "history"), BROKEN.values(), ids=BROKEN.keys())
def test_a_broken_rule_is_told(code: str, history: tuple[Event, ...]) -> None:
    assert [words for words in judged(history, LIMITS) if words.startswith(f"{code}: ")], judged(history, LIMITS)


def test_every_rule_is_broken_once() -> None:
    codes = {code for rules in Jury()._rules.values() for code, _ in rules}
    assert codes == {code for code, _ in BROKEN.values()}


def test_every_function_is_what_finds_it() -> None:
    """Without its function each rule would be silent: no function is a decoration of another."""
    found = {rule.__name__ for rules in Jury()._rules.values() for _, rule in rules}
    spoke = set()
    for _, history in BROKEN.values():
        jury = Jury(LIMITS)
        for event in history:
            for _, rule in jury._rules[type(event)]:
                if list(rule(jury.memory, event)):
                    spoke.add(rule.__name__)
            jury.memory.take(event)
    assert found == spoke


def test_an_excused_rule_is_silent() -> None:
    jury = Jury(excused=["K1"])
    jury.see(cluster(1, (Mode.ZOOKEEPER, Mode.MIGRATION, Mode.KRAFT)))
    assert jury.violations == []


def test_another_end_is_named() -> None:
    """O8."""
    assert differences({"phase": "Succeeded"}, {"phase": "Succeeded"}) == []
    assert differences({"phase": "Succeeded"}, {"phase": "RolledBack"}) == ["phase: 'Succeeded' instead of 'RolledBack'"]
