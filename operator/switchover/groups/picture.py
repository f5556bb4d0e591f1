"""The picture of one pass over a ConsumerGroupMigration: what is wanted, what is on record and what was observed.

Every pod of a managed workload has a slot, named "workload/index", which is on record with the mode assigned to it:

* Original: the workload as it was;
* Intermediate: the workload with the bridge of the spec, where that has one;
* Target: the workload with the template of the spec.

Which pod fills which slot is Kubernetes' choice; how many are of each mode is ours.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from switchover.answers.observed import NOT_ASKED, Known, Observed, Unknown, asked_for
from switchover.api.consumer_group_migration import ConsumerGroupMigrationSpec, Workload
from switchover.api.consumer_group_migration import ConsumerGroupMigrationStep as Name
from switchover.coordination.world import World
from switchover.engine.policy import NOTHING_MORE, Policy
from switchover.engine.position import Position
from switchover.groups.coordination.members import Consumer, Members, consumers
from switchover.groups.facts import GroupSample, Need, StoreSample
from switchover.groups.workloads.change import Unsupported, Wanted, changed, differing
from switchover.kafka.group import LEFT, BrokerGroups, Group, Member, MemberProtocol, OffsetsTopic, Readiness
from switchover.kubernetes.members import MemberPod, MemberWorkload
from switchover.kubernetes.workloads import JobRun
from switchover.lag.baseline import WeeklyBaseline
from switchover.lag.group import TopicPartition
from switchover.lag.watch import Assessment
from switchover.shared.grouped import grouped

ORIGINAL, INTERMEDIATE, TARGET = "Original", "Intermediate", "Target"
TO_THE_BRIDGE = frozenset({
    Name.BRIDGE_CANARY, Name.BRIDGE, Name.BOUNCE_ONE_CANARY, Name.BOUNCE_ONE, Name.REPLACE_WITH_MIGRATION_ENABLED})
"""The steps in which a bridge is what slots go to; in those that follow it is what they come from."""


@dataclass(frozen=True, slots=True)
class Fleet:
    """The managed workloads and what is stored of them, by the workload's name; None: it does not exist."""

    sources: Mapping[str, MemberWorkload | None]
    originals: Mapping[str, Mapping[str, Any] | None]


@dataclass(frozen=True, slots=True)
class Facts:
    """All that was observed in one pass, each item known or unknown; `asked_for` what is read only where it is named.
    `samples` are oldest first."""

    fleet: Observed[Fleet] = NOT_ASKED
    others: Observed[Mapping[str, str]] = asked_for(Need.OTHERS)         # name -> kind of what is not moved
    neighbours: Observed[Mapping[str, str]] = asked_for(Need.OTHERS)     # of what could be, where one is not there
    cluster_id: Observed[str] = NOT_ASKED
    group: Observed[Group] = NOT_ASKED
    partitions: Observed[Mapping[str, int]] = NOT_ASKED          # topic -> how many
    samples: Observed[tuple[GroupSample, ...]] = NOT_ASKED
    lag: Observed[Assessment] = NOT_ASKED
    brokers: Mapping[int, Observed[BrokerGroups]] = field(default_factory=dict)
    coordinators: Observed[frozenset[int]] = NOT_ASKED           # node ids of the brokers that answer for the group
    coordinated: Observed[Mapping[int, int]] = asked_for(Need.LOAD)      # node id -> members of all groups on it
    offsets_topic: Observed[OffsetsTopic] = NOT_ASKED
    readiness: Observed[Readiness] = asked_for(Need.READINESS)
    offered: Observed[Mapping[str, bool]] = asked_for(Need.OFFERED)      # strategy -> whether every member offers it
    unchecked: Observed[tuple[str, ...]] = NOT_ASKED             # Secrets with which servers may show any name
    missing_rights: Observed[tuple[str, ...]] = asked_for(Need.RIGHTS)      # "patch deployments.apps"
    trials: Observed[Mapping[str, Observed[Mapping[str, Any]]]] = asked_for(Need.TRIALS)    # by name: the template
    zookeeper: Observed[World] = NOT_ASKED                       # with coordination only, as all that follows
    stores: Observed[tuple[StoreSample, ...]] = NOT_ASKED        # oldest first
    quiet_since: Observed[float] = NOT_ASKED                     # when an old one was there, or nobody could tell
    missing_zookeeper_rights: Observed[tuple[str, ...]] = asked_for(Need.RIGHTS_IN_ZOOKEEPER)
    audit: Observed[JobRun | None] = asked_for(Need.AUDIT)
    baseline: Observed[WeeklyBaseline | str] = NOT_ASKED         # with gates.baselineRef; why it is of no use
    lease_holder: str = ""


@dataclass(frozen=True)
class Picture:
    """Everything that a decision about a ConsumerGroupMigration may rest on. Times are seconds since the epoch.

    What every gate asks of all pods is found once a picture: a group may have a thousand.
    """

    name: str
    namespace: str
    uid: str
    spec: ConsumerGroupMigrationSpec
    position: Position
    facts: Facts
    now: float
    entered: Mapping[str, float] = field(default_factory=dict)
    """When each step of the plan was entered last, as far as it was."""
    policy: Policy = NOTHING_MORE
    made: Mapping[str, str] = field(default_factory=dict)
    """How each object that was made is known (`status.made`)."""

    @property
    def named(self) -> tuple[str, str]:
        """As commands name it, and the namespace."""
        return f"cgmig/{self.name}", self.namespace

    def at(self, position: Position) -> "Picture":
        """The same picture with another position, to ask what would hold there."""
        return replace(self, position=position)

    def held_by(self, holder: str, now: float) -> "Picture":
        """The picture of now with the Lease's holder in it."""
        return replace(self, facts=replace(self.facts, lease_holder=holder), now=now)

    # --- slots --------------------------------------------------------------------------------------------------------

    def slots(self, workload: str) -> tuple[str, ...]:
        """The slots of a workload on record, by index."""
        return self._slots.get(workload, ())

    @cached_property
    def _slots(self) -> Mapping[str, tuple[str, ...]]:
        own = grouped((name.rpartition("/")[0], name) for name in self.position.nodes)
        return {workload: tuple(sorted(names, key=lambda name: int(name.rpartition("/")[2])))
                for workload, names in own.items()}

    def alike(self, workload: str, mode: str) -> Mapping[str, int]:
        """The slots of a workload that are assigned to a mode, by index, each with its place among them."""
        return self._alike.get((workload, mode), {})

    @cached_property
    def _alike(self) -> Mapping[tuple[str, str], Mapping[str, int]]:
        own = grouped(((workload, self.position.nodes[slot].assigned), slot)
                      for workload, slots in self._slots.items() for slot in slots)
        return {key: {slot: place for place, slot in enumerate(slots)} for key, slots in own.items()}

    def assigned(self, workload: str, mode: str) -> int:
        """How many slots of a workload are assigned to `mode`."""
        return len(self.alike(workload, mode))

    def workload(self, name: str) -> Workload:
        """The workload of the spec."""
        return next(workload for workload in self.spec.workloads if workload.name == name)

    # --- workloads ----------------------------------------------------------------------------------------------------

    def source(self, name: str) -> Observed[MemberWorkload]:
        """A managed workload as it is now; Unknown where it does not exist."""
        if not isinstance(self.facts.fleet, Known):
            return self.facts.fleet
        found = self.facts.fleet.value.sources.get(name)
        if found is None:
            return Unknown(f"{self.workload(name).kind} {name} does not exist")
        return Known(found, self.facts.fleet.at)

    def template(self, name: str, mode: str) -> Mapping[str, Any] | None:
        """The template of a workload in `mode`, made of the original that is stored; None before it is."""
        stored = self.facts.fleet.value.originals.get(name) if isinstance(self.facts.fleet, Known) else None
        if stored is None:
            return None
        if name not in self._templates:
            workload, original = self.workload(name), stored["template"]
            modes = {ORIGINAL: original, TARGET: changed(original, workload.container, workload.template),
                     INTERMEDIATE: changed(original, workload.container, workload.bridge or workload.template)}
            self._templates[name] = {each: Wanted(made, modes.values()) for each, made in modes.items()}
        return self._templates[name][mode]

    @cached_property
    def _templates(self) -> dict[str, Mapping[str, Wanted]]:
        """By workload and mode, as far as they were asked for: a patch is parsed and merged once a picture."""
        return {}

    def live_mode(self, name: str) -> str:
        """The mode whose template a workload has now; "" for none of them, or where it cannot be seen.

        Before the original is stored, nothing has changed it.
        """
        return self._live_modes[name]

    @cached_property
    def _live_modes(self) -> Mapping[str, str]:
        return {workload.name: self._find_live_mode(workload.name) for workload in self.spec.workloads}

    def _find_live_mode(self, name: str) -> str:
        source = self.source(name)
        return self._mode_of(source.value) if isinstance(source, Known) else ""

    def _mode_of(self, source: MemberWorkload) -> str:
        if self.template(source.name, ORIGINAL) is None:
            return ORIGINAL
        for mode in (ORIGINAL, TARGET, INTERMEDIATE):
            wanted = self.template(source.name, mode)
            try:
                if wanted is not None and not differing(source, self.workload(source.name).container, wanted):
                    return mode
            except Unsupported:
                return ""
        return ""

    # --- pods and members ---------------------------------------------------------------------------------------------

    def pods(self) -> Sequence[tuple[str, str, MemberPod]]:
        """Every pod of the managed workloads: workload, mode ("" while nobody can tell), pod."""
        return self._pods

    @cached_property
    def _pods(self) -> tuple[tuple[str, str, MemberPod], ...]:
        return tuple(self._find_pods())

    def _find_pods(self) -> Iterator[tuple[str, str, MemberPod]]:
        for workload in self.spec.workloads:
            source = self.source(workload.name)
            if isinstance(source, Known):
                live = self.live_mode(workload.name)
                modes = {revision: self._mode_of(replace(source.value, template=template))
                         for revision, template in source.value.templates.items()}
                modes[source.value.update_revision] = live
                for pod in source.value.pods.values():
                    yield workload.name, modes.get(pod.revision, self._earlier(workload, live)), pod

    def _earlier(self, workload: Workload, live: str) -> str:
        """The mode of a StatefulSet's pod that the template has left behind: the neighbour of `live` on the way."""
        if workload.bridge is not None:
            if live != INTERMEDIATE:
                return INTERMEDIATE
            return ORIGINAL if self.position.step in TO_THE_BRIDGE else TARGET
        return TARGET if live == ORIGINAL else ORIGINAL

    def members_of(self, pod: MemberPod) -> Sequence[Member]:
        """The members that run in a pod: by its address and, where several pods share that, by the client id."""
        here = [member for address in sorted(pod.ips) for member in self._members_by_host.get(address, ())]
        shared = any(self._pods_by_host[address] > 1 for address in pod.ips)
        return [member for member in here if pod.name in member.client_id] if shared else here

    @cached_property
    def _members_by_host(self) -> Mapping[str, Sequence[Member]]:
        members = self.facts.group.value.members if isinstance(self.facts.group, Known) else ()
        return grouped((member.host, member) for member in members)

    @cached_property
    def _pods_by_host(self) -> Counter[str]:
        return Counter(address for _, _, pod in self.pods() for address in pod.ips)

    @property
    def members(self) -> Observed[Members]:
        """With coordination: who is in the group, by both of its coordinators."""
        return self._members

    @cached_property
    def _members(self) -> Observed[Members]:
        group, world = self.facts.group, self.facts.zookeeper
        if not isinstance(world, Known):
            return world
        return Known(Members(world.value, group.value), world.at) if isinstance(group, Known) else group

    def takes_part(self, pod: MemberPod, mode: str) -> bool:
        """Whether the member is there that a pod of this mode is to be."""
        consumer = self.consumer(mode)
        if consumer is None:
            return any(member.protocol is self.protocol(mode) for member in self.members_of(pod))
        if not isinstance(self.members, Known):
            return False
        if consumer is Consumer.KAFKA:
            return bool(self.kafka_consumers_of(pod))
        return self.members.value.is_registered(pod.name, consumer)

    def kafka_consumers_of(self, pod: MemberPod) -> Sequence[Member]:
        """With coordination: the members of Kafka's group in a pod that ZooKeeper does not know."""
        found = self.members.value.kafka_consumers if isinstance(self.members, Known) else ()
        return [member for member in self.members_of(pod) if member in found]

    def owned_by(self, pod: MemberPod) -> frozenset[TopicPartition]:
        """The partitions of whatever consumes in a pod; none while nobody tells whose they are."""
        if self.spec.coordination is None:
            return frozenset().union(*(member.assigned for member in self.members_of(pod)))
        if not isinstance(self.members, Known):
            return frozenset()
        names = {*self.members.value.by_pod.get(pod.name, ()), *(each.member_id for each in self.kafka_consumers_of(pod))}
        return frozenset(each for each, owners in self.members.value.owners.items() if names & {*owners})

    def foreign_members(self) -> tuple[Member, ...]:
        """Members that run in no pod of the managed workloads. A static one that has left runs nowhere."""
        if not isinstance(self.facts.group, Known):
            return ()
        known = {member.member_id for _, _, pod in self.pods() for member in self.members_of(pod)}
        return tuple(member for member in self.facts.group.value.members
                     if member.member_id not in known and member.epoch != LEFT)

    # --- what is expected ---------------------------------------------------------------------------------------------

    @property
    def bridged(self) -> bool:
        """Whether some workload has a change in between."""
        return any(workload.bridge is not None for workload in self.spec.workloads)

    @property
    def replaces(self) -> bool:
        """Whether pods are replaced at all."""
        return self.spec.coordination is None or self.spec.coordination.replace == "All"

    @property
    def in_place(self) -> bool:
        """Whether pods of a Deployment leave before their successors start."""
        return self.spec.rollout.surge == 0

    @property
    def offline(self) -> bool:
        """Whether all pods are stopped before any is started with another template."""
        return self.spec.protocol is not None and self.spec.protocol.strategy == "Offline"

    @property
    def rolls(self) -> bool:
        """Whether pods are replaced batch by batch."""
        return self.replaces and not self.offline

    def consumer(self, mode: str) -> Consumer | None:
        """With coordination: what pods of a mode run."""
        if self.spec.coordination is None:
            return None
        return dict(zip((ORIGINAL, INTERMEDIATE, TARGET), consumers(self.spec.coordination), strict=True))[mode]

    def protocol(self, mode: str) -> MemberProtocol:
        """The protocol by which members of a mode take part."""
        if self.spec.protocol is None:
            return MemberProtocol.CLASSIC
        new = MemberProtocol(self.spec.protocol.to)
        old = MemberProtocol.CLASSIC if new is MemberProtocol.CONSUMER else MemberProtocol.CONSUMER
        return old if mode == ORIGINAL or (mode == INTERMEDIATE and self.bridged) else new

    @property
    def moved_to(self) -> str:
        """The mode that the batch on record, or else the step, takes slots to; "" where none is taken."""
        batch = self.position.batch
        return self.position.nodes[batch.nodes[0]].assigned if batch is not None else ""
