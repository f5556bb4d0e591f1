"""Observe: fill the facts of one ConsumerGroupMigration for one pass, concurrently, every failure becoming Unknown."""

import asyncio
from collections.abc import Awaitable, Mapping, Set
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol, TypeVar

from switchover.answers.ask import LOOKING_SECONDS, READ_SECONDS, Answers, known
from switchover.answers.clock import Clock
from switchover.answers.observed import NOT_ASKED, Known, Observed, Unknown
from switchover.api.consumer_group_migration import ConsumerGroupMigration, ConsumerGroupMigrationSpec
from switchover.coordination.layout import Layout
from switchover.engine.effects import Elsewhere
from switchover.groups import goals
from switchover.groups.coordination.mode import RemoveGuards, SetMode
from switchover.groups.facts import Need
from switchover.groups.gates.protocol import to_consumer
from switchover.groups.observe.samples import GroupSamples
from switchover.groups.picture import Facts, Fleet, Picture
from switchover.groups.plan import plan_of
from switchover.groups.workloads import kinds
from switchover.groups.workloads.bounds import Trial, trials
from switchover.groups.workloads.change import original_name
from switchover.kafka.group import BrokerGroups, Group, GroupState, Readiness
from switchover.kafka.ports import Groups
from switchover.kubernetes import names
from switchover.kubernetes.members import KINDS
from switchover.kubernetes.ports import Survey, Workloads
from switchover.lag.baseline import KEY, WeeklyBaseline, parse
from switchover.lag.window import GroupOffsets
from switchover.network.addresses import Address
from switchover.zookeeper.ports import ZooKeeperGroups

T = TypeVar("T")

SETTINGS_SECONDS = 15.0
"""How old what brokers say of themselves may be."""
COORDINATORS_SECONDS = 5.0
"""How old the answer may be who coordinates the group: every broker is asked."""
LOAD_SECONDS = 30.0
"""How old the count of all groups' members may be: it describes every group of the cluster."""
TRIALS_SECONDS = 10.0
"""How old a dry run may be: it asks every webhook of the workloads."""
RIGHTS_SECONDS = 30.0
"""How old the list of rights that are missing in ZooKeeper may be: it takes a question for each."""
BASELINE_SECONDS = 30.0
"""How old a baseline may be: it changes once a day."""
COORDINATORS_LOOKING_SECONDS = 60.0
"""How old may be who coordinates the group, where nothing is done upon it."""
PROBE_SECONDS = 15.0
"""How old a probe may be. The one for strategies leaves a pending member behind, for 6 s
(docs/facts/groups.md#do-all-members-offer-a-strategy)."""


@dataclass(frozen=True, slots=True)
class GroupClients:
    """What is asked, with the credentials of this moment."""

    groups: Groups
    offsets: GroupOffsets
    zookeeper: ZooKeeperGroups | None = None         # with coordination only
    unchecked: tuple[str, ...] = ()                  # Secrets with which servers may have certificates for any name


class GroupConnected(Protocol):
    """Gives the clients for a pass; they are others once credentials have changed."""

    async def clients(self) -> GroupClients:
        """Raises Refused and Unreachable: then nothing can be asked."""
        ...

    async def close(self) -> None: ...


class GroupObserver:
    """Everything of one migration of a group that is looked at. Samples and what seldom changes stay in memory."""

    def __init__(self, workloads: Workloads, survey: Survey, connected: GroupConnected, clock: Clock,
                 watched: Workloads | None = None) -> None:
        self._workloads = workloads
        self._watched = workloads if watched is None else watched
        self._survey = survey
        self._connected = connected
        self._clock = clock
        self._samples = GroupSamples(clock)
        self._quiet_since: float | None = None
        self._answers = Answers(clock)

    async def close(self) -> None:
        """Close every connection."""
        await self._connected.close()

    async def perform(self, effect: Elsewhere) -> None:
        """A group is changed through its pods; with coordination through ZooKeeper as well."""
        zookeeper = (await self._connected.clients()).zookeeper
        if zookeeper is None:
            raise AssertionError(f"not an effect of this kind of migration: {effect}")
        match effect:
            case SetMode(group, mode, version):
                await zookeeper.set_mode(group, mode, version)
            case RemoveGuards(group, partitions):
                await zookeeper.remove_guards(group, partitions)
            case _:
                raise AssertionError(f"not an effect of this kind of migration: {effect}")

    async def leftovers(self, migration: ConsumerGroupMigration) -> list[str]:
        """All that the migration made or changed and that is still there. Raises Unreachable."""
        uid, attempt = migration.metadata.uid, migration.status.attempt
        fleet = await self._fleet(self._workloads, migration.spec, uid, attempt)
        found: list[str] = []
        for workload in migration.spec.workloads:
            source = fleet.sources.get(workload.name)
            if source is not None and (held := kinds.of(source).left_held(source)):
                found.append(held)
            if source is not None and source.claimed_by == uid:
                found.append(f"annotation {names.CLAIM} of {source}: take it off before another migration")
                found += [f"{each}, which may still be paused" for each in source.autoscalers]
            if fleet.originals.get(workload.name) is not None:
                found.append(f"ControllerRevision {original_name(workload.kind, workload.name, uid, attempt)}"
                             " with the template as it was")
        return found + await self._left_in_zookeeper(migration.spec.group)

    async def _left_in_zookeeper(self, group: str) -> list[str]:
        if (zookeeper := (await self._connected.clients()).zookeeper) is None:
            return []
        world = await zookeeper.world(group)
        guards = sum(not owner.session for owner in world.owners.values())
        return [*([f"znode {Layout(group).mode}, which says {world.mode_data.decode(errors='backslashreplace')}"]
                  if world.mode_version >= 0 else []),
                *([f"{guards} guard nodes below {Layout(group).owners}, which keep old consumers away"] if guards else [])]

    async def see(self, picture: Picture, lease_holder: str, *, fresh: bool = True) -> Picture:
        """The picture with the facts of this pass. Never raises."""
        return replace(picture, facts=await self._facts(picture, lease_holder, fresh))

    async def _facts(self, picture: Picture, lease_holder: str, fresh: bool) -> Facts:
        named = plan_of(picture.spec).needs(picture.position)
        fleet = await self._known(
            self._fleet(self._workloads if fresh else self._watched, picture.spec, picture.uid, picture.position.attempt))
        async with asyncio.TaskGroup() as tasks:
            kubernetes = tasks.create_task(
                self._kubernetes(named, replace(picture, facts=Facts(fleet=fleet, lease_holder=lease_holder)), fresh))
            return await self._group(named, picture, kubernetes, fresh)

    async def _group(self, named: Set[str], picture: Picture, kubernetes: Awaitable[Facts], fresh: bool) -> Facts:
        """The facts that Kubernetes tells, with those of the group."""
        clients = await self._known(self._connected.clients())
        if not isinstance(clients, Known):
            return replace(await kubernetes, group=clients, cluster_id=clients, samples=clients, lag=clients,
                           partitions=clients, coordinators=clients, coordinated=clients, offsets_topic=clients,
                           readiness=clients, offered=clients, zookeeper=clients, stores=clients, quiet_since=clients,
                           missing_zookeeper_rights=clients, baseline=clients)
        spec, groups, zookeeper = picture.spec, clients.value.groups, clients.value.zookeeper
        group = await self._known(groups.describe(spec.group))
        baseline = await self._usual(spec)
        picture = await self._see_zookeeper(
            named, replace(picture, facts=Facts(group=group, baseline=baseline)), zookeeper)
        async with asyncio.TaskGroup() as then:
            then.create_task(self._samples.take(picture, clients.value.offsets, zookeeper))
            brokers = then.create_task(self._brokers(groups))
            coordinators = then.create_task(self._answers.observed(
                "coordinators", lambda: groups.coordinators(spec.group),
                COORDINATORS_SECONDS if fresh else COORDINATORS_LOOKING_SECONDS))
            topic = then.create_task(self._answers.sparing("topic", groups.offsets_topic, SETTINGS_SECONDS))
            load = then.create_task(self._load(named, group, groups))
            readiness = then.create_task(self._readiness(named, picture, groups))
            offered = then.create_task(self._offered(named, picture, groups))
        cluster_id, settings = brokers.result()
        return self._samples.laid_into(replace(
            await kubernetes, unchecked=Known(clients.value.unchecked, clients.at), group=group, baseline=baseline,
            zookeeper=picture.facts.zookeeper, quiet_since=picture.facts.quiet_since,
            missing_zookeeper_rights=picture.facts.missing_zookeeper_rights, cluster_id=cluster_id, brokers=settings,
            coordinators=coordinators.result(), offsets_topic=topic.result(), coordinated=load.result(),
            readiness=readiness.result(), offered=offered.result()))

    async def _known(self, reading: Awaitable[T]) -> Observed[T]:
        return await known(reading, READ_SECONDS, self._clock)

    # --- Kubernetes ---------------------------------------------------------------------------------------------------

    async def _fleet(self, workloads: Workloads, spec: ConsumerGroupMigrationSpec, uid: str, attempt: int) -> Fleet:
        wanted = [(workload.kind.value, workload.name) for workload in spec.workloads]
        found = await workloads.member_workloads(wanted)
        originals: dict[str, Mapping[str, Any] | None] = {
            workload.name: await workloads.original(original_name(workload.kind, workload.name, uid, attempt))
            for workload in spec.workloads}
        return Fleet(sources={workload.name: found.get(workload.name) for workload in spec.workloads}, originals=originals)

    async def _kubernetes(self, named: Set[str], picture: Picture, fresh: bool) -> Facts:
        """The picture's, with what is asked besides the workloads."""
        facts = picture.facts
        if Need.RIGHTS in named:
            rights = await self._known(self._survey.missing_rights(_credentials(picture.spec)))
            facts = replace(facts, missing_rights=rights)
        if Need.OTHERS in named:
            seconds = 0.0 if fresh else LOOKING_SECONDS
            facts = replace(facts, others=await self._others_called(facts.fleet, seconds),
                            neighbours=await self._neighbours(facts.fleet, seconds))
        if Need.TRIALS in named:
            tried = await self._known(self._try(picture, TRIALS_SECONDS if fresh else LOOKING_SECONDS))
            facts = replace(facts, trials=tried)
        if Need.AUDIT in named:
            job = goals.job_name(picture)
            facts = replace(facts, audit=await self._known(self._workloads.job(job, picture.made.get(f"Job {job}", ""))))
        return facts

    async def _others_called(self, fleet: Observed[Fleet], seconds: float) -> Observed[Mapping[str, str]]:
        """Of those that do not exist, or have no pod: something else may run it."""
        sources = fleet.value.sources if isinstance(fleet, Known) else {}
        idle = [name for name, found in sources.items() if found is None or found.replicas < 1]
        if not idle:
            return NOT_ASKED
        return await self._answers.observed("others", lambda: self._workloads.others_called(idle), seconds, idle)

    async def _neighbours(self, fleet: Observed[Fleet], seconds: float) -> Observed[Mapping[str, str]]:
        """One that does not exist may be one of them, misspelled."""
        if not isinstance(fleet, Known) or None not in fleet.value.sources.values():
            return NOT_ASKED
        return await self._answers.observed("neighbours", lambda: self._survey.called(KINDS), seconds)

    async def _try(self, picture: Picture, seconds: float) -> Mapping[str, Observed[Mapping[str, Any]]]:
        """The template that the API server would make of each change. One that it refuses is tried in every pass: whoever
        cures it sees it soon."""
        async def one(trial: Trial) -> Mapping[str, Any]:
            return (await self._survey.try_patch(trial.source.kind, trial.source.name, trial.operations)).template

        every = tuple(trials(picture))
        found = await asyncio.gather(*(self._answers.observed(
            ("trial", trial.name), partial(one, trial), seconds,
            made_of=(trial.source.uid, trial.source.generation, trial.operations)) for trial in every))
        return dict(zip((trial.name for trial in every), found, strict=True))

    async def _usual(self, spec: ConsumerGroupMigrationSpec) -> Observed[WeeklyBaseline | str]:
        """What the group is used to, or why its ConfigMap does not say."""
        if (wanted := spec.gates.baseline_ref) is None:
            return NOT_ASKED

        async def read() -> WeeklyBaseline | str:
            found = await self._workloads.config_map(wanted.name)
            if found is None:
                return "it does not exist"
            if KEY not in found:
                return f"it has no key {KEY}"
            try:
                return parse(found[KEY], spec.group)
            except ValueError as error:
                return str(error)

        return await self._answers.observed("baseline", read, BASELINE_SECONDS, wanted.name)

    # --- Kafka --------------------------------------------------------------------------------------------------------

    async def _brokers(self, groups: Groups) -> tuple[Observed[str], dict[int, Observed[BrokerGroups]]]:
        """The cluster's id, and what each of its brokers says of groups."""
        cluster = await self._answers.observed("cluster", groups.cluster, SETTINGS_SECONDS)
        if not isinstance(cluster, Known):
            return cluster, {}

        async def one(broker_id: int, address: Address) -> Observed[BrokerGroups]:
            return await self._answers.observed(
                ("broker", broker_id), lambda: groups.broker(address, broker_id), SETTINGS_SECONDS)

        brokers = cluster.value.brokers
        found = await asyncio.gather(*(one(*each) for each in brokers.items()))
        return Known(cluster.value.cluster_id, cluster.at), dict(zip(brokers, found, strict=True))

    async def _load(self, named: Set[str], group: Observed[Group], groups: Groups) -> Observed[Mapping[int, int]]:
        if Need.LOAD not in named or not isinstance(group, Known):
            return NOT_ASKED
        return await self._answers.observed("load", groups.coordinated, LOAD_SECONDS)

    async def _readiness(self, named: Set[str], picture: Picture, groups: Groups) -> Observed[Readiness]:
        group = picture.facts.group
        if Need.READINESS not in named or not isinstance(group, Known) or not to_consumer(picture):
            return NOT_ASKED
        topics = sorted({topic for member in group.value.members for topic in member.topics})
        return await self._answers.observed(
            "readiness", lambda: groups.readiness(picture.spec.group, topics), PROBE_SECONDS)

    async def _offered(self, named: Set[str], picture: Picture, groups: Groups) -> Observed[Mapping[str, bool]]:
        group, wanted = picture.facts.group, picture.spec.assignment_strategy
        if Need.OFFERED not in named or not isinstance(group, Known) or wanted is None:
            return NOT_ASKED
        name, strategy = group.value.name, wanted.to
        if group.value.state is not GroupState.STABLE or not group.value.members:
            return Unknown(f"group {name} is asked only while it is stable and has members")

        async def ask() -> Mapping[str, bool]:
            return {strategy: await groups.all_support(name, strategy)}

        return await self._answers.observed("offered", ask, PROBE_SECONDS)

    async def _see_zookeeper(self, named: Set[str], picture: Picture, zookeeper: ZooKeeperGroups | None) -> Picture:
        """Read after Kafka: a migration-enabled member is in ZooKeeper before it is in Kafka's group."""
        if zookeeper is None:
            return picture
        group = picture.spec.group
        world = await self._known(zookeeper.world(group))
        if self._quiet_since is None or not isinstance(world, Known) or world.value.old:
            self._quiet_since = self._clock.now()
        rights = (await self._answers.observed("rights", lambda: zookeeper.missing_rights(group), RIGHTS_SECONDS)
                  if Need.RIGHTS_IN_ZOOKEEPER in named else NOT_ASKED)
        return replace(picture, facts=replace(
            picture.facts, zookeeper=world, quiet_since=Known(self._quiet_since, self._clock.now()),
            missing_zookeeper_rights=rights))


def _credentials(spec: ConsumerGroupMigrationSpec) -> tuple[str, ...]:
    """The Secrets that it reads."""
    references = (spec.kafka.credentials_ref, spec.zookeeper.credentials_ref if spec.zookeeper is not None else None)
    return tuple(reference.name for reference in references if reference is not None)
