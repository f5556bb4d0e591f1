"""Opening what a migration is observed through, with the credentials that its spec names, and again when these change."""

import asyncio
import logging
import weakref
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Generic, Protocol, TypeVar

from switchover.answers.ask import Answers
from switchover.answers.clock import Clock
from switchover.answers.errors import Refused
from switchover.api.consumer_group_migration import ConsumerGroupMigration
from switchover.api.kafka_migration import KafkaMigration
from switchover.api.meta import SecretRef
from switchover.cluster.controllers import listener
from switchover.cluster.controllers.manifests import addresses
from switchover.cluster.observe.observer import Clients, Observer
from switchover.groups.observe.observer import GroupClients, GroupObserver
from switchover.kafka.client.brokers import KEEP_SECONDS
from switchover.kafka.client.groups import WireGroups
from switchover.kafka.client.nodes import KafkaWire
from switchover.kafka.client.offsets import WireOffsets
from switchover.kafka.client.shared_groups import SharedGroups, SharedOffsets
from switchover.kafka.ports import GroupMemberships, Groups, KafkaNodes
from switchover.kubernetes.client.survey import KubernetesSurvey
from switchover.kubernetes.client.workloads import KubernetesWorkloads
from switchover.lag.window import GroupOffsets
from switchover.metadata.passwords import ENCODER_SECRET
from switchover.network.addresses import Address, search_list
from switchover.network.credentials import (
    ANYWHERE,
    KAFKA,
    ZOOKEEPER,
    Access,
    AllowedServers,
    Unusable,
    allowed_servers,
    check_encrypted,
    checks_hosts,
)
from switchover.zookeeper.client.coordination import KazooZooKeeperGroups
from switchover.zookeeper.client.copying import KazooTree
from switchover.zookeeper.client.zookeeper import KazooZooKeeper
from switchover.zookeeper.ports import ZooKeeper, ZooKeeperGroups, ZooKeeperTree

SECRET_SECONDS = 10.0
"""How old the content of a Secret may be that many migrations name."""
RESOLV_CONF = Path("/etc/resolv.conf")
logger = logging.getLogger(__name__)


class Client(Protocol):
    async def close(self) -> None: ...


C = TypeVar("C", bound=Client)


@dataclass(frozen=True, slots=True)
class Openers:
    """What opens a client from client properties; each raises Refused for those that it cannot use."""

    nodes: Callable[[Mapping[str, str], AllowedServers, tuple[str, ...]], KafkaNodes] = KafkaWire
    zookeeper: Callable[[Access], ZooKeeper] = KazooZooKeeper
    tree: Callable[[Access], ZooKeeperTree] = KazooTree
    offsets: Callable[[Access], GroupOffsets] = WireOffsets
    memberships: Callable[[Access], GroupMemberships] = WireGroups


REAL = Openers(offsets=partial(WireOffsets, keep=KEEP_SECONDS))


class Connections:
    """`reconcile.Connect` on the real clients."""

    def __init__(self, namespace: str, workloads: KubernetesWorkloads, survey: KubernetesSurvey, clock: Clock,
                 openers: Openers = REAL, watched: KubernetesWorkloads | None = None, home: str = "") -> None:
        """`home` is the namespace that we run in, "" for the migration's own."""
        self._home = home
        self._watched = watched
        self._secrets = Answers()
        self._namespace = namespace
        self._survey = survey
        self._workloads = workloads
        self._clock = clock
        self._openers = openers

    async def __call__(self, migration: KafkaMigration) -> Observer:
        connected = Credentialed(migration, self._workloads, self._openers, self._secrets, self._home)
        return Observer(self._namespace, self._workloads, self._survey, connected, self._clock, self._watched)


@dataclass(frozen=True, slots=True)
class Credentials:
    """Client properties, and where they may go."""

    properties: Mapping[str, str] = field(default_factory=dict, repr=False)
    allowed: AllowedServers = ANYWHERE
    search: tuple[str, ...] = ()

    def to(self, servers: str) -> Access:
        return Access(servers, self.properties, self.allowed, self.search)


def _unchecked(*used: Credentials) -> tuple[str, ...]:
    """The Secrets that turn the check of servers' names off."""
    return tuple(dict.fromkeys(each.allowed.secret for each in used if not checks_hosts(each.properties)))


def _resolv_conf() -> str:
    try:
        return RESOLV_CONF.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


class OpenClients:
    """Clients that are open, each with the credentials that it was opened with.

    Every pass looks into the Secrets, as they were SECRET_SECONDS ago at most, so that a rotation needs no restart of the
    operator.
    """

    def __init__(self, migration: KafkaMigration | ConsumerGroupMigration, workloads: KubernetesWorkloads,
                 secrets: Answers, home: str = "") -> None:
        self._secrets = secrets
        self._namespace = migration.metadata.namespace
        self._search = search_list(_resolv_conf(), home, self._namespace) if home not in ("", self._namespace) else ()
        self._accepted = migration.spec.accepted_risks
        self._workloads = workloads
        self._open: dict[str, tuple[Credentials, Client]] = {}
        self._replaced: list[Client] = []           # closed in the next pass: something may still be under way

    async def close(self) -> None:
        """Close every connection."""
        self._replaced += [client for _, client in self._open.values()]
        self._open.clear()
        await self.close_replaced()

    async def close_replaced(self) -> None:
        old, self._replaced = self._replaced, []
        await asyncio.gather(*(client.close() for client in old), return_exceptions=True)

    def get(self, name: str, with_: Credentials, open_: Callable[[Credentials], C]) -> C:
        """The client of this name, a new one when its credentials are not those that it was opened with."""
        held = self._open.get(name)
        if held is not None and held[0] == with_:
            same: C = held[1]      # type: ignore[assignment]     # opened below, under the same name
            return same
        client = open_(with_)
        self._open[name] = (with_, client)
        if held is not None:
            logger.info("the credentials for %s have changed: connecting again", name)
            self._replaced.append(held[1])
        return client

    async def credentials(self, secret: SecretRef | None, key: str, servers: Iterable[Address]) -> Credentials:
        """What the Secret holds. Raises Refused unless its `key` names all of these servers."""
        if secret is None:
            return Credentials(search=self._search)
        name = secret.name
        properties = (await self._secrets.get(
            name, lambda: self._workloads.client_properties(name), SECRET_SECONDS)).value
        try:
            allowed = allowed_servers(name, self._namespace, properties, key)
            if why_not := allowed.why_not(servers):
                raise Refused(why_not)
            check_encrypted(properties, self._accepted)
        except Unusable as why:
            raise Refused(f"Secret {secret.name}: {why}") from None
        return Credentials(properties, allowed, self._search)


async def _all_of(*asked: Awaitable[Credentials]) -> list[Credentials]:
    """What all were answered. Raises what one of them raises; several refusals are one, with the text of each."""
    found = await asyncio.gather(*asked, return_exceptions=True)
    wrong = [each for each in found if isinstance(each, BaseException)]
    if len(wrong) > 1 and all(isinstance(each, Refused) for each in wrong):
        raise Refused("; ".join(dict.fromkeys(map(str, wrong))))
    if wrong:
        raise wrong[0]
    return [each for each in found if isinstance(each, Credentials)]


class Credentialed:
    """`cluster.observe.observer.Connected` for a KafkaMigration."""

    def __init__(self, migration: KafkaMigration, workloads: KubernetesWorkloads, openers: Openers,
                 secrets: Answers, home: str = "") -> None:
        self._spec = migration.spec
        self._controllers = addresses(migration.spec, migration.metadata.namespace).values()
        self._openers = openers
        self._open = OpenClients(migration, workloads, secrets, home)

    async def clients(self, *, controllers: bool) -> Clients:
        """The clients for this pass. Raises Refused and Unreachable where a Secret cannot be read or used."""
        await self._open.close_replaced()
        spec, own = self._spec, self._spec.controllers.listener
        kafka, zookeeper, secret = await _all_of(
            self._open.credentials(spec.kafka.credentials_ref, KAFKA, Access(spec.kafka.bootstrap_servers).addresses),
            self._open.credentials(spec.zookeeper.credentials_ref, ZOOKEEPER, Access(spec.zookeeper.connect).addresses),
            self._open.credentials(own.credentials_ref if controllers else None, KAFKA, self._controllers))
        to_controllers = replace(secret, properties=listener.client_properties(own, secret.properties))
        open_zookeeper, open_offsets, open_tree = self._openers.zookeeper, self._openers.offsets, self._openers.tree
        open_members = self._openers.memberships
        brokers = self._open.get("brokers", kafka, self._nodes)
        return Clients(
            brokers=brokers,
            controllers=self._open.get("controllers", to_controllers, self._nodes) if controllers else brokers,
            zookeeper=self._open.get("zookeeper", zookeeper, lambda with_: open_zookeeper(with_.to(spec.zookeeper.connect))),
            offsets=self._open.get("offsets", kafka, lambda with_: open_offsets(with_.to(spec.kafka.bootstrap_servers))),
            memberships=self._open.get("members", kafka, lambda with_: open_members(with_.to(spec.kafka.bootstrap_servers))),
            tree=self._open.get("tree", zookeeper, lambda with_: open_tree(with_.to(spec.zookeeper.connect))),
            encoder_secret=zookeeper.properties.get(ENCODER_SECRET),
            unchecked=_unchecked(kafka, zookeeper),
        )

    def _nodes(self, with_: Credentials) -> KafkaNodes:
        return self._openers.nodes(with_.properties, with_.allowed, with_.search)

    async def close(self) -> None:
        """Close every connection."""
        await self._open.close()


@dataclass(frozen=True, slots=True)
class GroupOpeners:
    """What opens a client of consumer groups; each raises Refused for an access that it cannot use."""

    groups: Callable[[Access], Groups] = WireGroups
    offsets: Callable[[Access], GroupOffsets] = WireOffsets
    zookeeper: Callable[[Access], ZooKeeperGroups] = KazooZooKeeperGroups


REAL_GROUPS = GroupOpeners(groups=partial(WireGroups, keep=KEEP_SECONDS), offsets=partial(WireOffsets, keep=KEEP_SECONDS))


class Clusters(Generic[C]):
    """What many migrations ask the same cluster with the same credentials through, as long as one of them holds it."""

    def __init__(self, open_: Callable[[Access], C]) -> None:
        self._open_one = open_
        self._open: list[tuple[Access, weakref.ref[C]]] = []

    def of(self, access: Access) -> C:
        """The one of this access. Raises Refused for an access that cannot be used."""
        self._open = [(with_, held) for with_, held in self._open if held() is not None]
        for with_, held in self._open:
            if with_ == access and (found := held()) is not None:
                return found
        opened = self._open_one(access)
        self._open.append((access, weakref.ref(opened)))
        return opened


class GroupConnections:
    """`reconcile.Connect` of ConsumerGroupMigration on the real clients."""

    def __init__(self, workloads: KubernetesWorkloads, survey: KubernetesSurvey, clock: Clock,
                 openers: GroupOpeners = REAL_GROUPS, watched: KubernetesWorkloads | None = None,
                 home: str = "") -> None:
        """`home` is the namespace that we run in, "" for the migration's own."""
        self._home = home
        self._watched = watched
        self._secrets = Answers()
        groups = Clusters(lambda access: SharedGroups(openers.groups(access)))
        offsets = Clusters(lambda access: SharedOffsets(openers.offsets(access)))
        self._shared = replace(openers, groups=groups.of, offsets=offsets.of)
        self._workloads = workloads
        self._survey = survey
        self._clock = clock

    async def __call__(self, migration: ConsumerGroupMigration) -> GroupObserver:
        connected = CredentialedGroups(migration, self._workloads, self._shared, self._secrets, self._home)
        return GroupObserver(self._workloads, self._survey, connected, self._clock, self._watched)


class CredentialedGroups:
    """`groups.observe.observer.GroupConnected`."""

    def __init__(self, migration: ConsumerGroupMigration, workloads: KubernetesWorkloads, openers: GroupOpeners,
                 secrets: Answers, home: str = "") -> None:
        self._kafka, self._zookeeper = migration.spec.kafka, migration.spec.zookeeper
        self._openers = openers
        self._open = OpenClients(migration, workloads, secrets, home)

    async def clients(self) -> GroupClients:
        """The clients for this pass. Raises Refused and Unreachable where a Secret cannot be read or used."""
        await self._open.close_replaced()
        servers, wanted = self._kafka.bootstrap_servers, self._zookeeper
        secret, connect = (wanted.credentials_ref, wanted.connect) if wanted is not None else (None, "")
        kafka, zookeeper = await _all_of(
            self._open.credentials(self._kafka.credentials_ref, KAFKA, Access(servers).addresses),
            self._open.credentials(secret, ZOOKEEPER, Access(connect).addresses if connect else ()))
        return GroupClients(
            groups=self._open.get("groups", kafka, lambda with_: self._openers.groups(with_.to(servers))),
            offsets=self._open.get("offsets", kafka, lambda with_: self._openers.offsets(with_.to(servers))),
            zookeeper=self._open.get("zookeeper", zookeeper, lambda with_: self._openers.zookeeper(with_.to(connect)))
            if connect else None,
            unchecked=_unchecked(kafka, zookeeper))

    async def close(self) -> None:
        """Close every connection."""
        await self._open.close()
