"""Observe: fill the facts of one KafkaMigration for one pass, concurrently, every failure becoming Unknown."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Set
from dataclasses import dataclass, field, replace
from typing import Protocol, TypeVar

from switchover.answers.ask import LOOKING_SECONDS, READ_SECONDS, Answers, Background, known
from switchover.answers.clock import Clock
from switchover.answers.errors import NotListening, Refused, Unreachable
from switchover.answers.observed import NOT_ASKED, Known, Observed, Unknown
from switchover.api.kafka_migration import KafkaMigration, KafkaMigrationSpec, KafkaMigrationStep
from switchover.api.status import Direction
from switchover.cluster import identity, modes, names, needs
from switchover.cluster.effects import CreateStates, DeleteZNode, RaiseEpoch, RaiseVersions, SetQuota
from switchover.cluster.ending import zookeeper_users
from switchover.cluster.facts import Examination, Facts, KubernetesState, Need, Written, whole_of
from switchover.cluster.observe.brokers import CaughtUpWatch, ForwardingWatch, Views, ask_each
from switchover.cluster.observe.groups import WatchedGroups, members_of
from switchover.cluster.observe.parity import ParityWatch
from switchover.cluster.observe.preflight import Examiner, identities, leftovers
from switchover.cluster.observe.rehearsal import Rehearsals
from switchover.cluster.picture import Picture, observed_mode
from switchover.cluster.plan import PLAN
from switchover.engine.effects import Elsewhere
from switchover.kafka.node import NOT_LISTENING, NodeAnswer, WholeView
from switchover.kafka.ports import GroupMemberships, KafkaNodes
from switchover.kubernetes.ports import GroupMigration, Survey, Workloads
from switchover.kubernetes.workloads import JobRun, Workload
from switchover.lag.window import GroupOffsets
from switchover.metadata.parity import TreeReading
from switchover.network.addresses import Address, is_an_ip
from switchover.network.credentials import Access
from switchover.zookeeper.nodes import MigrationNode, ZooKeeperState, ZooKeeperTopics
from switchover.zookeeper.ports import ZooKeeper, ZooKeeperTree

T = TypeVar("T")
Stateless = Mapping[tuple[str, int], tuple[int, ...]]

MINIMA_SECONDS = 15.0
"""How old min.insync.replicas may be while no topic came or went."""
GROUPS_SECONDS = 60.0
"""How old the list of groups' migrations may be where nothing is done upon it."""
STATES_SECONDS = 5.0
"""How old a reading of the states of all partitions may be before the next one begins."""
GONE_SECONDS = 20.0
"""How long it holds that nobody is at a server's address. The network says so only as often as its rate limit allows."""


@dataclass(frozen=True, slots=True)
class Clients:
    """What is asked, with the credentials of this moment."""

    brokers: KafkaNodes
    controllers: KafkaNodes
    zookeeper: ZooKeeper
    offsets: GroupOffsets
    memberships: GroupMemberships
    tree: ZooKeeperTree
    encoder_secret: str | None = field(default=None, repr=False)
    """The brokers' `password.encoder.secret`, without which passwords in ZooKeeper cannot be compared."""
    unchecked: tuple[str, ...] = ()
    """The Secrets among their credentials with which servers may have certificates for any name."""


class Connected(Protocol):
    """Gives the clients for a pass; they are others once credentials have changed."""

    async def clients(self, *, controllers: bool) -> Clients:
        """Without `controllers` nobody asks these. Raises Refused and Unreachable: then nothing can be asked."""
        ...

    async def close(self) -> None: ...


class Observer:
    """Everything of one migration that is looked at. Addresses of brokers and samples of groups stay in memory."""

    _brokers_client: KafkaNodes
    _controllers_client: KafkaNodes
    zookeeper: ZooKeeper
    """The client of the last pass, for what is done in it."""
    _examiner: Examiner

    def __init__(self, namespace: str, workloads: Workloads, survey: Survey, connected: Connected,
                 clock: Clock, watched: Workloads | None = None) -> None:
        self._namespace = namespace
        self._workloads = workloads
        self._watched = workloads if watched is None else watched
        self._survey = survey
        self._connected = connected
        self._clients: Clients | None = None
        self._clock = clock
        self._addresses: dict[int, Address] = {}
        self._at_pods: frozenset[str] = frozenset()         # StatefulSets whose brokers advertise their pods' addresses
        self._migration: MigrationNode | None = None
        self._written: Observed[Written] = NOT_ASKED
        self._gone: dict[Address, float] = {}
        self._parity = ParityWatch(self._metadata, clock)
        self._views = Views(clock)
        self._caught_up = CaughtUpWatch(clock)
        self._forwarding = ForwardingWatch(clock)
        self._groups = WatchedGroups(clock)
        self._rehearsals = Rehearsals(workloads, clock)
        self._topics: Background[ZooKeeperTopics] = Background("topics in ZooKeeper are", 0.0, clock)
        self._epoch: Background[int] = Background(
            "the states of the partitions are", STATES_SECONDS, clock, rests=1)
        self._stateless: Background[Stateless] = Background(
            "the states of the partitions are", STATES_SECONDS, clock, rests=1)
        self._answers = Answers(clock)

    async def close(self) -> None:
        """Close every connection."""
        self._forget_trees()
        await self._connected.close()

    async def see(self, picture: Picture, lease_holder: str, *, fresh: bool = True) -> Picture:
        """The picture with the facts of this pass. Never raises."""
        return replace(picture, facts=await self._facts(picture, lease_holder, fresh))

    async def perform(self, effect: Elsewhere) -> None:
        """An effect on ZooKeeper or Kafka, through the clients that this pass has looked with."""
        match effect:
            case RaiseEpoch(epoch, expected):
                await self.zookeeper.raise_epoch(epoch, expected)
            case RaiseVersions(epochs, controller_epoch):
                await self.zookeeper.raise_versions(epochs, controller_epoch)
            case CreateStates(replicas, controller_epoch):
                await self.zookeeper.create_states(replicas, controller_epoch)
            case DeleteZNode(path, version, controller_epoch):
                await self.zookeeper.delete(path, version, controller_epoch)
            case SetQuota(controller, entity, key, value):
                await self._controllers_client.set_quota(controller, entity, key, value)
            case _:
                raise AssertionError(f"not an effect on ZooKeeper or Kafka: {effect}")

    async def leftovers(self, migration: KafkaMigration) -> list[str]:
        """All that the migration made or changed and that is still there. Raises Unreachable."""
        return await leftovers(self._workloads, migration)

    async def _facts(self, picture: Picture, lease_holder: str, fresh: bool) -> Facts:
        """The facts of this pass: what is read in every one, and what the leg on record names. Never raises."""
        spec, named = picture.spec, PLAN.needs(picture.position)
        clients = await self._known(self._connected.clients(controllers=bool(picture.position.nodes)), READ_SECONDS)
        if not isinstance(clients, Known):
            return await self._blind(picture, lease_holder, clients, fresh)
        self._take(clients.value)
        async with asyncio.TaskGroup() as first:
            kubernetes = first.create_task(self._known(self._kubernetes(picture, lease_holder, fresh), READ_SECONDS))
            zookeeper = first.create_task(self._if(Need.CLIENTS_OF_ZOOKEEPER not in named, self.zookeeper.state))
            first.create_task(self._find_brokers(picture))
        brokers = self._where(picture, kubernetes.result(), self._brokers(picture, zookeeper.result()))
        voters = picture.voter_addresses if needs.controllers_are_asked(picture, kubernetes.result()) else {}
        parity, written = needs.parity_is_read(picture, named), self._watch_migration(zookeeper.result())
        if parity:
            self._parity.begin(clients.value.encoder_secret, picture.position.direction is Direction.BACKWARD)
        async with asyncio.TaskGroup() as then:
            answers = then.create_task(self._each(brokers, lambda address, _: self._brokers_client.api_versions(address)))
            controllers = then.create_task(self._each(voters, lambda address, _: self._controller(address)))
            views = then.create_task(self._views.look(self._brokers_client, brokers, picture.moving))
            quorum = then.create_task(self._if(bool(voters), lambda: self._controllers_client.quorum(voters.values())))
            log = then.create_task(self._if(bool(voters), lambda: self._controllers_client.log(
                voters, picture.recorded_cluster or None)))
            topic_tree = then.create_task(
                _behind(self._topics, Need.TOPICS_IN_ZOOKEEPER in named, self.zookeeper.topics, fresh=fresh))
            partition_epoch = then.create_task(_behind(
                self._epoch, needs.epoch_is_read(named, zookeeper.result()), self.zookeeper.partition_epoch))
            stateless = then.create_task(self._without_state(picture, written if Need.STATELESS in named else NOT_ASKED))
            connections = then.create_task(self._connections(Need.CLIENTS_OF_ZOOKEEPER in named))
            zookeeper_sets = then.create_task(self._zookeeper_sets(picture, Need.ZOOKEEPER_SETS in named))
            asked = brokers if needs.settings_are_read(picture, named, kubernetes.result()) else {}
            settings = then.create_task(self._each(asked, self._brokers_client.settings))
            groups = then.create_task(self._groups.seen(spec.gates.groups, clients.value.offsets))
            members = then.create_task(members_of(
                spec.gates.groups if Need.MEMBERS in named else (), clients.value.memberships, self._answers))
            zookeeper_groups = then.create_task(self._if(Need.GROUPS_IN_ZOOKEEPER in named, self.zookeeper.groups))
            group_migrations = then.create_task(self._moving_groups(Need.GROUPS_IN_ZOOKEEPER in named, fresh))
            examination = then.create_task(
                self._examination(named, picture, kubernetes.result(), brokers, clients.value.encoder_secret, fresh))
            markers = then.create_task(self._markers(picture, brokers))
            rehearsal = then.create_task(self._rehearsals.seen(named, picture, clients.value.tree))
            trials = then.create_task(self._trials(picture, needs.trials_are_read(picture, named)))
        seen = views.result()
        identified = await identities(
            self._brokers_client, self._clock, kubernetes.result(), zookeeper.result(), self._addresses, settings.result(),
        ) if needs.identities_are_asked(picture, named) else {}
        caught_up = await self._caught_up.look(
            self._brokers_client, brokers, seen) if Need.CAUGHT_UP in named else self._caught_up.forget()
        forwarding = await self._forwarding.look(
            self._brokers_client, brokers, answers.result()) if Need.FORWARDING in named else self._forwarding.forget()
        return Facts(
            kubernetes=kubernetes.result(),
            zookeeper=zookeeper.result(),
            unchecked=Known(clients.value.unchecked, clients.at),
            migration_written=written,
            zookeeper_topics=topic_tree.result(),
            partition_epoch=partition_epoch.result(),
            stateless=stateless.result(),
            zookeeper_connections=connections.result(),
            zookeeper_sets=zookeeper_sets.result(),
            answers=answers.result() | controllers.result(),
            views=seen,
            caught_up=caught_up,
            forwarding=forwarding,
            quorum=quorum.result(),
            log=log.result(),
            parity=self._parity.end(log.result()) if parity else self._parity.forget(),
            min_insync=await self._min_insync(
                brokers, whole_of(seen), _without_zookeeper(answers.result(), zookeeper.result())),
            broker_settings=settings.result(),
            identities=identified,
            markers=markers.result(),
            groups=groups.result(),
            members=members.result(),
            zookeeper_groups=zookeeper_groups.result(),
            group_migrations=group_migrations.result(),
            rehearsal=rehearsal.result()[0],
            exported=rehearsal.result()[1],
            trials=trials.result(),
            examination=examination.result(),
        )

    async def _moving_groups(self, wanted: bool, fresh: bool) -> Observed[Mapping[str, tuple[GroupMigration, ...]]]:
        if not wanted:
            return NOT_ASKED
        return await self._answers.observed(
            "group migrations", self._survey.group_migrations, 0.0 if fresh else GROUPS_SECONDS)

    async def _examination(self, named: Set[str], picture: Picture, kubernetes: Observed[KubernetesState],
                           brokers: Mapping[int, Address | None], encoder_secret: str | None, fresh: bool) -> Examination:
        if Need.EXAMINATION not in named:
            self._examiner.forget()
            return Examination()
        return await self._examiner.examine(picture, kubernetes, brokers, encoder_secret, fresh=fresh)

    def _take(self, clients: Clients) -> None:
        if clients == self._clients:
            return
        self._forget_trees()
        self._clients = clients
        self._brokers_client, self._controllers_client = clients.brokers, clients.controllers
        self.zookeeper = clients.zookeeper
        self._examiner = Examiner(self._survey, clients.brokers, clients.zookeeper, self._clock)

    def _forget_trees(self) -> None:
        """End what is under way: it may be read through a client that is closed soon."""
        if self._clients is not None:
            self._examiner.forget()
        self._parity.forget()
        self._rehearsals.forget()
        self._topics.forget()
        self._epoch.forget()
        self._stateless.forget()

    async def _metadata(self, secret: str | None, states: bool) -> TreeReading:
        return await self.zookeeper.metadata(secret, states=states)

    async def _blind(self, picture: Picture, lease_holder: str, why: Unknown, fresh: bool) -> Facts:
        """Without credentials only Kubernetes can be asked."""
        kubernetes = self._kubernetes(picture, lease_holder, fresh)
        nodes = [record.node_id for record in picture.position.nodes.values()]
        return Facts(
            kubernetes=await self._known(kubernetes, READ_SECONDS), zookeeper=why, zookeeper_topics=why, quorum=why, log=why,
            min_insync=why, zookeeper_groups=why,
            answers=dict.fromkeys(nodes, why), views=dict.fromkeys(picture.brokers.values(), why),
            groups={group.name: why for group in picture.spec.gates.groups})

    # --- one reading --------------------------------------------------------------------------------------------------

    async def _known(self, reading: Awaitable[T], seconds: float) -> Observed[T]:
        return await known(reading, seconds, self._clock)

    async def _if(self, wanted: bool, read: Callable[[], Awaitable[T]]) -> Observed[T]:
        return await self._known(read(), READ_SECONDS) if wanted else NOT_ASKED

    async def _each(self, nodes: Mapping[int, Address | None],
                    ask: Callable[[Address, int], Awaitable[T]]) -> dict[int, Observed[T]]:
        return await ask_each(nodes, ask, self._clock)

    # --- Kubernetes ---------------------------------------------------------------------------------------------------

    async def _kubernetes(self, picture: Picture, lease_holder: str, fresh: bool) -> KubernetesState:
        spec, workloads = picture.spec, self._workloads if fresh else self._watched
        sets = [brokers.name for brokers in spec.brokers]
        controllers = spec.controllers.name
        age = 0.0 if fresh or picture.position.nodes else LOOKING_SECONDS       # before there are nodes nothing is written

        async def node_files(name: str) -> Mapping[str, str]:
            found: Known[Mapping[str, str]] = await self._answers.get(
                ("node files", name), lambda: workloads.node_files(names.node_files(name)), age)
            return found.value

        observed, files, originals, claims = await asyncio.gather(
            workloads.stateful_sets((*sets, controllers)),
            asyncio.gather(*map(node_files, (*sets, controllers))),
            asyncio.gather(*(workloads.original(names.original(name, picture.position.attempt)) for name in sets)),
            workloads.volume_claims({names.CONTROLLERS_LABEL: controllers}),
        )
        own = tuple(f"-{pod}" for pod in names.controller_pods(spec))        # a label alone makes no claim theirs
        return KubernetesState(
            brokers={name: observed[name] for name in sets},
            node_files=dict(zip((*sets, controllers), files, strict=True)),
            originals=dict(zip(sets, originals, strict=True)),
            controllers=_provided(picture, observed[controllers]),
            controller_claims=tuple(claim for claim in claims if claim.endswith(own)),
            lease_holder=lease_holder,
            listener_credentials=await self._listener_credentials(spec),
        )

    async def _trials(self, picture: Picture, wanted: bool) -> dict[str, Observed[JobRun | None]]:
        sets = tuple(picture.broker_sets) if wanted else ()
        found = await asyncio.gather(*(
            self._known(self._workloads.job(job, picture.made.get(f"Job {job}", "")), READ_SECONDS)
            for job in (names.trial(name, picture.uid) for name in sets)))
        return dict(zip(sets, found, strict=True))

    async def _listener_credentials(self, spec: KafkaMigrationSpec) -> Mapping[str, str] | str:
        reference = spec.controllers.listener.credentials_ref
        try:
            return await self._workloads.client_properties(reference.name) if reference is not None else {}
        except Refused as error:
            return str(error)

    # --- Kafka --------------------------------------------------------------------------------------------------------

    async def _find_brokers(self, picture: Picture) -> None:
        """Learn the brokers' addresses on the bootstrap listener; one that is down keeps the address it had.

        Host names are learned once. Addresses go from pod to pod, and are asked for in every pass.
        """
        own = set(picture.brokers.values())
        complete = bool(picture.position.nodes) and own <= self._addresses.keys()
        if complete and not any(is_an_ip(self._addresses[broker].host) for broker in own):
            return
        servers = Access(picture.spec.kafka.bootstrap_servers).addresses
        by_name = (address for address in tuple(self._addresses.values()) if not is_an_ip(address.host))
        for server in (*servers, *by_name):
            view = await self._known(self._brokers_client.known_brokers(server), READ_SECONDS)
            if isinstance(view, Known):
                self._addresses.update(view.value.brokers)
                return

    def _where(self, picture: Picture, kubernetes: Observed[KubernetesState],
               brokers: Iterable[int]) -> Mapping[int, Address | None]:
        """The addresses of these brokers."""
        advertised = {broker: self._addresses.get(broker) for broker in brokers}
        if not isinstance(kubernetes, Known):
            return advertised
        workloads = [workload for workload in kubernetes.value.brokers.values() if workload is not None]
        before = self._at_pods if picture.brokers else frozenset()          # another attempt may begin with other listeners
        self._at_pods = before | identity.at_their_pods(self._addresses, picture.brokers, workloads)
        return identity.followed(advertised, picture.brokers, workloads, self._at_pods)

    def _brokers(self, picture: Picture, zookeeper: Observed[ZooKeeperState]) -> tuple[int, ...]:
        if picture.position.nodes:
            return tuple(picture.brokers.values())
        registered = zookeeper.value.brokers if isinstance(zookeeper, Known) else {}
        return tuple(sorted({*registered, *self._addresses}))

    async def _markers(self, picture: Picture, brokers: Mapping[int, Address | None]) -> dict[int, Observed[str]]:
        """Of the brokers that are being moved, what each says of the edits that started it."""
        asked = {broker_id: address for broker_id, address in brokers.items() if broker_id in picture.moving}
        return await self._each(asked, self._brokers_client.marker)

    async def _min_insync(self, brokers: Mapping[int, Address | None], views: Mapping[int, WholeView],
                          without_zookeeper: Set[int]) -> Observed[Mapping[str, int]]:
        """Asked of a broker that has just listed the most topics: one that has just started knows none for a moment.

        One that has lost ZooKeeper is not asked (docs/facts/kraft.md#settings-of-topics-without-zookeeper).
        """
        listed = {(broker, address): {name for name, topic in views[broker].topics.items() if topic.partitions}
                  for broker, address in brokers.items() if address is not None and broker in views}
        if not listed:
            return Unknown("no broker has answered which topics there are")
        if not (topics := set().union(*listed.values())):
            return Known({}, self._clock.now())
        asked = {each: known for each, known in listed.items() if each[0] not in without_zookeeper}
        if not asked:
            lost = ", ".join(str(broker) for broker, _ in sorted(listed))
            return Unknown(f"brokers {lost} have no session with ZooKeeper (/brokers/ids), or ZooKeeper does not answer:"
                           " min.insync.replicas is not asked of them")
        broker, address = max(asked, key=lambda each: len(asked[each]))
        return await self._answers.sparing(("minima", broker), lambda: self._brokers_client.min_insync_replicas(
            address, topics), MINIMA_SECONDS, made_of=topics)

    async def _controller(self, address: Address) -> NodeAnswer:
        try:
            return await self._controllers_client.api_versions(address)
        except NotListening:
            return NOT_LISTENING

    # --- ZooKeeper ----------------------------------------------------------------------------------------------------

    def _watch_migration(self, state: Observed[ZooKeeperState]) -> Observed[Written]:
        """When `/migration` was seen to change last."""
        if not isinstance(state, Known):
            return state
        if (node := state.value.migration) is None:
            self._migration, self._written = None, Unknown("there is no /migration")
        elif (old := self._migration) is None or (node.version, node.mtime) != (old.version, old.mtime):
            before = self._written if old is not None and node.offset == old.offset else None
            since = before.value.offset_since if isinstance(before, Known) else state.at
            self._migration, self._written = node, Known(Written(state.at, old is not None, since), state.at)
        return self._written

    async def _connections(self, wanted: bool) -> dict[str, Observed[int | None]]:
        servers = self.zookeeper.servers() if wanted else ()
        found = await asyncio.gather(*(self._known(self._clients_of(server), READ_SECONDS) for server in servers))
        return {str(server): connections for server, connections in zip(servers, found, strict=True)}

    async def _zookeeper_sets(self, picture: Picture, wanted: bool) -> Observed[Mapping[str, tuple[str, ...]]]:
        if not wanted:
            return NOT_ASKED
        services = zookeeper_users.services(picture.spec.zookeeper.connect, picture.namespace)
        return await self._answers.observed(
            "ZooKeeper's sets", lambda: self._survey.stateful_sets_behind(services), LOOKING_SECONDS, made_of=services)

    async def _clients_of(self, server: Address) -> int | None:
        """None where nothing listens: the network said so in this pass or moments ago, and nothing has answered since."""
        now = self._clock.now()
        try:
            clients = await self.zookeeper.connections(server)
        except NotListening:
            self._gone[server] = now
            return None
        except Unreachable:
            if now - self._gone.get(server, -GONE_SECONDS) < GONE_SECONDS:
                return None
            raise
        self._gone.pop(server, None)
        return clients

    async def _without_state(self, picture: Picture, written: Observed[Written]) -> Observed[Stateless]:
        """Read while dual write stands still: they are many nodes. Where it goes on, no partition stops it."""
        if isinstance(written, Known) and (self._clock.now() - written.value.offset_since
                                           > picture.spec.gates.dual_write_max_age_seconds):
            return await self._stateless.newest(self.zookeeper.stateless)
        self._stateless.forget()
        return Known({}, self._clock.now()) if isinstance(written, Known) else written


async def _behind(background: Background[T], wanted: bool, read: Callable[[], Awaitable[T]], *,
                  fresh: bool = False) -> Observed[T]:
    """What is read in the background, while it is `wanted`."""
    if wanted:
        return await background.newest(read, fresh=fresh)
    background.forget()
    return NOT_ASKED


def _without_zookeeper(answers: Mapping[int, Observed[NodeAnswer]], zookeeper: Observed[ZooKeeperState]) -> set[int]:
    """The brokers that need ZooKeeper and have no session there, as far as can be seen."""
    registered = zookeeper.value.brokers if isinstance(zookeeper, Known) else {}
    return {broker for broker, answer in answers.items() if broker not in registered
            and not (isinstance(answer, Known) and observed_mode(answer.value) in modes.ON_KRAFT)}


def _provided(picture: Picture, found: Workload | None) -> Workload | None:
    """The controllers. What has their name before they are provided, or once they are removed, may be anybody's."""
    at, provided = (PLAN.index(step) or 0 for step in (picture.position.step, KafkaMigrationStep.PROVISION_CONTROLLERS))
    return found if at > provided or (found is not None and found.made_for == picture.name) else None
