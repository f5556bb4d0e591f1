"""Consumer groups on paper, at any moment of their migration: the pods of workloads, the group, and its lag.

A moment is told by the modes of the slots: "OOOOTT" has four pods as they were and two of the spec's template. Nothing here
goes wrong by itself; tests spoil the facts that they want to be wrong.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, replace
from functools import cache
from typing import Any
from zlib import crc32

from switchover.answers.observed import NOT_ASKED, Known, Observed
from switchover.api.consumer_group_migration import ConsumerGroupMigrationSpec
from switchover.api.job_message import NONCE
from switchover.api.status import Direction
from switchover.engine.position import NodeRecord, Position
from switchover.groups.facts import GroupSample
from switchover.groups.gates.lag import thresholds
from switchover.groups.picture import INTERMEDIATE, ORIGINAL, TARGET, Facts, Fleet, Picture
from switchover.groups.workloads.bounds import trials
from switchover.groups.workloads.deployment import DEADLINE_SECONDS, HOLD_SECONDS
from switchover.kafka.group import (
    BrokerGroups,
    Group,
    GroupState,
    GroupType,
    Member,
    MemberProtocol,
    OffsetsTopic,
    Readiness,
)
from switchover.kubernetes.members import MemberPod, MemberWorkload
from switchover.kubernetes.workloads import JobRun, JobState
from switchover.lag.group import Group as LagGroup
from switchover.lag.group import TopicPartition
from switchover.lag.watch import Assessment, Watch
from switchover.lag.window import Offsets, Reading

NOW = 1_795_000_000.0
UID = "uid-of-the-migration"
PODS = 6
PARTITIONS = tuple(TopicPartition("orders", number) for number in range(24))
MODES = {"O": ORIGINAL, "I": INTERMEDIATE, "T": TARGET}
CLASSIC, CONSUMER = MemberProtocol.CLASSIC, MemberProtocol.CONSUMER

TO_CONSUMER = {"env": [{"name": "GROUP_PROTOCOL", "value": "consumer"}]}
TO_CLASSIC = {"env": [{"name": "GROUP_PROTOCOL", "value": "classic"}]}
NEW_CLIENT = {"image": "orders:2"}


def strategies(names_of: str) -> dict[str, Any]:
    """The change that makes a client offer these strategies."""
    return {"env": [{"name": "STRATEGIES", "value": names_of}]}


def spec_of(*workloads: Mapping[str, Any], **changes: Any) -> ConsumerGroupMigrationSpec:
    """To the consumer protocol, of one Deployment unless told."""
    return ConsumerGroupMigrationSpec.model_validate(written_spec(*workloads, **changes))


def written_spec(*workloads: Mapping[str, Any], **changes: Any) -> dict[str, Any]:
    """The same as YAML has it."""
    given = {"group": "orders", "kafka": {"bootstrapServers": "kafka:9092"},
             "workloads": list(workloads or (workload_of(),)),
             "rollout": {"steps": [{"pods": 2, "bakeSeconds": 10}, {"pods": 2, "bakeSeconds": 5}]}, **changes}
    if not {"protocol", "assignmentStrategy", "coordination"} & given.keys():
        given["protocol"] = {"to": "Consumer"}
    return given


def workload_of(kind: str = "Deployment", name: str = "orders", template: Mapping[str, Any] = TO_CONSUMER,
                **changes: Any) -> dict[str, Any]:
    return {"name": name, "kind": kind, "container": "app", "template": template, **changes}


AUDIT = {"enabled": True, "image": "pipeline:1", "claim": "pipeline"}
"""spec.audit."""


def audited(state: JobState = JobState.SUCCEEDED, message: str = '{"verdict": "Clean", "nonce": "n"}',
            words: str = "") -> JobRun:
    """The Job of an audit."""
    return JobRun("to-consumer-audit-1", state, message, words, given={NONCE: "n"})


BRIDGED = {"template": {**NEW_CLIENT, **TO_CONSUMER}, "bridge": NEW_CLIENT}
BOUNCES = {"template": strategies("cooperative-sticky"), "bridge": strategies("cooperative-sticky,range")}
STRATEGY = {"assignmentStrategy": {"to": "cooperative-sticky"}}


# --- workloads ----------------------------------------------------------------------------------------------------------


def template(protocol: str = "classic") -> dict[str, Any]:
    """What a workload has before it is migrated."""
    variables = [{"name": "GROUP_PROTOCOL", "value": protocol}, {"name": "STRATEGIES", "value": "range"}]
    return {"metadata": {"labels": {"app": "orders"}},
            "spec": {"containers": [{"name": "app", "image": "orders:1", "env": variables}]}}


def revision_of(made: Mapping[str, Any]) -> str:
    return f"{crc32(repr(made['spec']).encode()):08x}"


def pod(name: str, ip: str, revision: str, **changes: Any) -> MemberPod:
    made = MemberPod(name=name, uid=f"uid-of-{name}", ips=frozenset({ip}), node="node-0", ready=True, terminating=False,
                     revision=revision, restarts=0, trouble="", started_at=NOW - 3600)
    return replace(made, **changes)


OWN: Mapping[str, Mapping[str, Any]] = {
    "Deployment": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"}},
    "StatefulSet": {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}}}
"""How they replace their pods when nobody holds them."""


def _workload(kind: str, name: str, made: Mapping[str, Any], pods: Sequence[MemberPod], **changes: Any) -> MemberWorkload:
    revision = revision_of(made)
    found = MemberWorkload(
        kind=kind, name=name, uid=f"uid-of-{name}", resource_version="70", generation=7, caught_up=True, replicas=len(pods),
        seen=len(pods), template=made, update_revision=revision, current_revision=revision if kind == "StatefulSet" else "",
        pods={each.name: each for each in pods}, claimed_by=UID, annotated=True,
        update_strategy=OWN[kind], deadline=600 if kind == "Deployment" else None,
        sizes=Counter(each.revision for each in pods) if kind == "Deployment" else {})
    return replace(found, **changes)


# --- the group ----------------------------------------------------------------------------------------------------------


def member(of: MemberPod, protocol: MemberProtocol, owned: Sequence[TopicPartition], epoch: int) -> Member:
    return Member(
        member_id=f"member-of-{of.name}", client_id=f"client-of-{of.name}", host=min(of.ips), instance_id="",
        protocol=protocol, epoch=epoch, topics=frozenset({"orders"}), regex="", assigned=frozenset(owned),
        target=frozenset(owned), metadata=100, assignment=100)


def group_of(pods: Sequence[tuple[MemberPod, MemberProtocol]], epoch: int = 17, assignor: str = "range") -> Group:
    """Stable, every partition with one owner."""
    members = tuple(member(each, protocol, PARTITIONS[index::len(pods)], epoch)
                    for index, (each, protocol) in enumerate(pods))
    mixed = any(each.protocol is CONSUMER for each in members)
    return Group(
        name="orders", coordinator=1, type=GroupType.CONSUMER if mixed else GroupType.CLASSIC, state=GroupState.STABLE,
        protocol_type="consumer", epoch=epoch, assignment_epoch=epoch, assignor="uniform" if mixed else assignor,
        members=members)


def broker(**changes: Any) -> BrokerGroups:
    """Kafka 4.4 as it is out of the box."""
    settings = {"group.consumer.migration.policy": "bidirectional"}
    return replace(BrokerGroups(group_version=1, metadata_version=33, consumer_keys=True, settings=settings), **changes)


def samples(count: int = 40, epoch: int = 17, rate: int = 30, until: float = NOW,
            stands: frozenset[TopicPartition] = frozenset()) -> tuple[GroupSample, ...]:
    """One every three seconds up to now: everything is committed but the last sweep's, except of what `stands`."""
    return tuple(
        GroupSample(until - 3.0 * (count - 1 - index), epoch, {
            each: (1000 if each in stands else 1000 + rate * index, 1000 + rate * (index + 1)) for each in PARTITIONS},
            stood={each: 3.0 * index for each in stands if index})
        for index in range(count))


@cache
def assessment(spec: ConsumerGroupMigrationSpec, stands: frozenset[TopicPartition] = frozenset(),
               count: int = 40) -> Assessment:
    """What the lag kernel says after these samples, sweep after sweep."""
    watch = Watch(thresholds(Picture("", "", "", spec, Position(), Facts(), NOW)))
    group = LagGroup(frozenset(PARTITIONS), stable=True, generation=17, sole_owners=True)
    for sample in samples(count, stands=stands):
        at = round(sample.at * 1000)
        watch.add(Reading({each: Offsets(at, committed or 0, end, 0, end)
                           for each, (committed, end) in sample.offsets.items()}, frozenset({"orders"})))
        found = watch.assess(group, at)
    return found


# --- moments ------------------------------------------------------------------------------------------------------------


def moment(step: str, modes: str = "O" * PODS, batch: Sequence[int] = (), *, direction: Direction = Direction.FORWARD,
           opened: float | None = NOW - 60, spec: ConsumerGroupMigrationSpec | None = None, name: str = "orders") -> Picture:
    """A healthy moment: the slots of the one workload are assigned these modes, and their pods run in them.

    The slots of `batch` are on record as the batch, whose gates have passed.
    """
    spec = spec or spec_of()
    wanted = next(workload for workload in spec.workloads if workload.name == name)
    nodes = {f"{name}/{index}": NodeRecord(index, MODES[mode]) for index, mode in enumerate(modes)}
    position = Position(step=step, direction=direction, entered=NOW - 90, opened=opened, nodes=nodes)
    if batch:
        chosen = [f"{name}/{index}" for index in batch]
        position = position.with_batch(chosen, nodes[chosen[0]].assigned, NOW - 60)
    begun = step not in ("Preflight", "Baseline")
    original = template("classic" if spec.protocol is None or spec.protocol.to == "Consumer" else "consumer")
    kept = {"template": original, "updateStrategy": OWN[wanted.kind], "replicas": len(modes), "autoscalers": {},
            "minReadySeconds": 0, "progressDeadlineSeconds": 600 if wanted.kind == "Deployment" else None}
    fleet = Fleet({name: None}, {name: kept if begun else None})
    picture = Picture("to-consumer", "shop", UID, spec, position, Facts(fleet=Known(fleet, NOW)), NOW, {"Settle": NOW - 400})
    of = {mode: original if mode == ORIGINAL else picture.template(name, mode) or original for mode in MODES.values()}
    live = next((mode for letter, mode in (("T", TARGET), ("I", INTERMEDIATE)) if letter in modes), ORIGINAL)
    every = [(each, MODES[letter], pod(f"{name}-{index}", f"10.0.0.{index}", revision_of(of[MODES[letter]])))
             for index, (letter, each) in enumerate(zip(modes, nodes, strict=True))]
    source = _workload(wanted.kind, name, of[live], [each for _, _, each in every], claimed_by=UID if begun else "")
    if wanted.kind == "Deployment" and live != ORIGINAL:
        moved = sum(MODES[letter] == live for letter in modes)
        strategy = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": moved}}
        source = replace(source, min_ready=HOLD_SECONDS, deadline=DEADLINE_SECONDS, paused=True, update_strategy=strategy)
    fleet = Fleet({name: source}, fleet.originals)
    found = group_of([(each, picture.protocol(mode)) for _, mode, each in every], assignor="range")
    picture = replace(picture, facts=Facts(fleet=Known(fleet, NOW)))
    return replace(picture, facts=Facts(
        fleet=Known(fleet, NOW), trials=tried(picture) if step == "Preflight" else NOT_ASKED,
        cluster_id=Known("cluster-1", NOW), group=Known(found, NOW),
        partitions=Known({"orders": len(PARTITIONS)}, NOW), samples=Known(samples(), NOW),
        lag=Known(assessment(spec), NOW), brokers={each: Known(broker(), NOW) for each in (1, 2, 3)},
        coordinators=Known(frozenset({1}), NOW),
        coordinated=Known({1: len(modes)}, NOW), offsets_topic=Known(OffsetsTopic(1_048_588, False, 0), NOW),
        readiness=Known(Readiness("", ("uniform", "range")), NOW), offered=Known({"cooperative-sticky": True}, NOW),
        missing_rights=Known((), NOW), unchecked=Known((), NOW), audit=Known(audited(), NOW),
        lease_holder=f"{UID}/operator-1"))


def tried(picture: Picture) -> Known[Mapping[str, Observed[Mapping[str, Any]]]]:
    """A dry run of every change that makes what is wanted of it, and nothing beside."""
    return Known({trial.name: Known(dict(trial.wanted), picture.now) for trial in trials(picture)}, picture.now)


def at_start(**spec: Any) -> Picture:
    """Before anything was touched: six pods, 24 partitions, a stable classic group."""
    return moment("Preflight", spec=spec_of(**spec))


def mixed(batch: Sequence[int] = (4, 5)) -> Picture:
    """The canaries have joined."""
    return moment("Canary", "OOOOTT", batch)


def all_consumer() -> Picture:
    """Every pod is of the spec's template."""
    return moment("Settle", "TTTTTT")


def of_stateful_set(step: str = "Canary", modes: str = "OOOOTT", batch: Sequence[int] = (4, 5), **more: Any) -> Picture:
    """A StatefulSet, whose highest ordinals go first."""
    return moment(step, modes, batch, spec=spec_of(workload_of("StatefulSet")), **more)


# --- spoiling -----------------------------------------------------------------------------------------------------------


def value(observed: object) -> Any:
    assert isinstance(observed, Known)
    return observed.value


def source(picture: Picture) -> Any:
    """The (only) workload."""
    return value(picture.facts.fleet).sources["orders"]


def with_fact(picture: Picture, fact: str, observed: object) -> Picture:
    assert fact in {field.name for field in fields(Facts)}
    return replace(picture, facts=replace(picture.facts, **{fact: observed}))


def with_group(**changes: Any) -> Callable[[Picture], Picture]:
    """The group is different."""
    return lambda picture: with_fact(picture, "group", Known(replace(value(picture.facts.group), **changes), NOW))


def with_member(index: int, **changes: Any) -> Callable[[Picture], Picture]:
    """One member of the group is different."""
    def change(picture: Picture) -> Picture:
        members = list(value(picture.facts.group).members)
        members[index] = replace(members[index], **changes)
        return with_group(members=tuple(members))(picture)

    return change


def with_source(**changes: Any) -> Callable[[Picture], Picture]:
    """The (only) workload is different."""
    def change(picture: Picture) -> Picture:
        fleet = value(picture.facts.fleet)
        sources = {name: replace(source, **changes) for name, source in fleet.sources.items()}
        return with_fact(picture, "fleet", Known(replace(fleet, sources=sources), NOW))

    return change


def with_pod(name: str, **changes: Any) -> Callable[[Picture], Picture]:
    """One pod is different."""
    def changed(workload: MemberWorkload | None) -> MemberWorkload | None:
        if workload is None or name not in workload.pods:
            return workload
        return replace(workload, pods={**workload.pods, name: replace(workload.pods[name], **changes)})

    def change(picture: Picture) -> Picture:
        fleet = value(picture.facts.fleet)
        return with_fact(picture, "fleet", Known(replace(
            fleet, sources={each: changed(source) for each, source in fleet.sources.items()}), NOW))

    return change


def with_brokers(**changes: Any) -> Callable[[Picture], Picture]:
    """Every broker is different."""
    return lambda picture: with_fact(picture, "brokers", {
        each: Known(replace(value(told), **changes), NOW) for each, told in picture.facts.brokers.items()})


