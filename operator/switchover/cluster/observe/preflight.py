"""Examine: fill the facts that Preflight alone asks for."""

import asyncio
from collections.abc import Awaitable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import TypeVar

from switchover.answers.ask import LOOKING_SECONDS, READ_SECONDS, Answers, Background, known
from switchover.answers.clock import Clock
from switchover.answers.errors import Refused
from switchover.answers.observed import NOT_ASKED, Known, Observed, Unknown
from switchover.api.kafka_migration import KafkaMigration
from switchover.api.status import Direction
from switchover.cluster import identity, names, template
from switchover.cluster.door.brokers import ContainerMissing
from switchover.cluster.facts import Examination, KubernetesState
from switchover.cluster.kind import UNCLAIMED
from switchover.cluster.observe.brokers import ask_each
from switchover.cluster.picture import Picture
from switchover.kafka.node import TopicIds
from switchover.kafka.ports import KafkaNodes
from switchover.kubernetes.ports import Survey, TemplateChange, Workloads
from switchover.network.addresses import Address
from switchover.zookeeper.nodes import IdleGroups, ZooKeeperState
from switchover.zookeeper.ports import ZooKeeper

# --- identity -------------------------------------------------------------------------------------------------------------
# Pods are asked which brokers they are, where host names do not show it of all of them.

async def identities(nodes: KafkaNodes, clock: Clock, kubernetes: Observed[KubernetesState],
                     zookeeper: Observed[ZooKeeperState], bootstrap: Mapping[int, Address],
                     settings: Mapping[int, Observed[Mapping[str, str]]]) -> dict[str, Observed[frozenset[int]]]:
    """Pod -> the registered brokers that it says it is. Never raises."""
    if not isinstance(kubernetes, Known) or not isinstance(zookeeper, Known):
        return {}
    state = zookeeper.value
    workloads = [workload for workload in kubernetes.value.brokers.values() if workload is not None]

    async def at(place: Address) -> Observed[frozenset[int]]:
        return await known(nodes.identity(place, state.cluster_id, state.brokers), READ_SECONDS, clock)

    async def one(places: tuple[Address, ...] | str) -> Observed[frozenset[int]]:
        if isinstance(places, str):
            return Unknown(places)
        answers = dict(zip(places, await asyncio.gather(*map(at, places)), strict=True))
        known_ = [answer for answer in answers.values() if isinstance(answer, Known)]
        if known_:
            return Known(frozenset[int]().union(*(answer.value for answer in known_)), known_[0].at)
        place, why = next((place, answer) for place, answer in answers.items() if isinstance(answer, Unknown))
        return why if str(place) in why.why else replace(why, why=f"{place}: {why.why}")

    asked = identity.places(workloads, state.brokers, bootstrap, settings)
    return dict(zip(asked, await asyncio.gather(*map(one, asked.values())), strict=True))


# --- leftovers ------------------------------------------------------------------------------------------------------------
# What a migration leaves behind when its resource goes, looked up at that moment.

async def leftovers(workloads: Workloads, migration: KafkaMigration) -> list[str]:
    """Everything that the migration made or changed and that still exists, for a message each. Raises Unreachable."""
    found: list[str] = []
    try:
        await _look(workloads, migration, found)
    except Refused as error:
        found.append(f"whatever cannot be read: {error}")
    return [*found, *_in_zookeeper(migration)]


async def _look(workloads: Workloads, migration: KafkaMigration, found: list[str]) -> None:
    controllers = migration.spec.controllers.name
    if await workloads.stateful_set(controllers) is not None:
        found.append(f"StatefulSet, Service and PodDisruptionBudget {controllers}")
    claims = await workloads.volume_claims({names.CONTROLLERS_LABEL: controllers})
    found += [f"PersistentVolumeClaim {claim}" for claim in claims]
    if await workloads.node_files(names.node_files(controllers)):
        found.append(f"Secret {names.node_files(controllers)}")
    for brokers in migration.spec.brokers:
        workload = await workloads.stateful_set(brokers.name)
        files = await workloads.node_files(names.node_files(brokers.name))
        if files:
            found.append(f"Secret {names.node_files(brokers.name)}, which the pods of StatefulSet {brokers.name} mount")
        if workload is not None and files and workload.update_strategy.get("type") == "OnDelete":
            found.append(f"update strategy OnDelete of StatefulSet {brokers.name}: it replaces no pod by itself")
        if workload is not None and workload.claimed_by == migration.metadata.uid:
            found.append(f"annotation {names.CLAIM} of StatefulSet {brokers.name}: remove it before another migration")
        original = names.original(brokers.name, migration.status.attempt)
        if await workloads.original(original) is not None:
            found.append(f"ControllerRevision {original} with the template as it was")


def _in_zookeeper(migration: KafkaMigration) -> list[str]:
    """By the record: nobody is asked any more."""
    progress = migration.status.progress
    if progress.direction is Direction.BACKWARD and progress.complete_time is not None:
        return []
    return ["/migration in ZooKeeper" if progress.step in UNCLAIMED else "/controller and /migration in ZooKeeper"]


T = TypeVar("T")

CLOCKS_SECONDS = 60.0
"""How old the comparison of clocks may be: each is a dry run in the API server's audit log."""
TREE_SECONDS = 20.0
"""How old the reading of the whole tree, or of a broker's topic ids, may be before the next one begins."""
IDLE_GROUPS_SECONDS = 60.0
"""The same of the sweep over groups without members."""

TOGETHER = 4
"""Brokers that are asked at a time for the ids of all topics."""


class Examiner:
    """Looks at what Preflight wants to know."""

    def __init__(self, survey: Survey, nodes: KafkaNodes, zookeeper: ZooKeeper, clock: Clock) -> None:
        self._survey = survey
        self._nodes = nodes
        self._zookeeper = zookeeper
        self._clock = clock
        self._answers = Answers(clock)
        self._ids: Background[dict[int, Observed[TopicIds]]] = Background("topics' ids are", TREE_SECONDS, clock)
        self._malformed: Background[Mapping[str, str]] = Background("ZooKeeper's metadata is", TREE_SECONDS, clock)
        self._idle: Background[IdleGroups] = Background("groups in ZooKeeper are", IDLE_GROUPS_SECONDS, clock)

    def forget(self) -> None:
        """End what is read in the background: nobody asks any more."""
        self._ids.forget()
        self._malformed.forget()
        self._idle.forget()

    async def examine(self, picture: Picture, kubernetes: Observed[KubernetesState],
                      brokers: Mapping[int, Address | None], secret: str | None, *, fresh: bool = True) -> Examination:
        """All of it, concurrently. `secret` is the brokers' `password.encoder.secret`. Never raises.

        What takes requests of its own, or long, is asked for now and then, unless it must be `fresh`.
        """
        age = 0.0 if fresh else LOOKING_SECONDS
        async with asyncio.TaskGroup() as group:
            each = group.create_task(ask_each(brokers, self._nodes.examine, self._clock))
            ids = group.create_task(self._ids.newest(lambda: self._all_topic_ids(brokers), fresh=fresh))
            modes = group.create_task(self._zookeeper_modes())
            changes = group.create_task(self._template_changes(picture, kubernetes))
            zookeeper_rights = group.create_task(self._ask(self._zookeeper.rights()))
            objects = group.create_task(self._answers.observed(
                "objects", lambda: self._survey.managers_of(_reserved(picture)), age))
            classes = group.create_task(self._answers.observed("classes", self._survey.storage_classes, age))
            sets = group.create_task(self._stateful_sets(kubernetes, age))
            in_use = group.create_task(self._answers.observed("in use", self._survey.classes_in_use, age))
            rights = group.create_task(self._ask(self._survey.missing_rights(_own_secrets(picture))))
            ahead = group.create_task(self._answers.observed("ahead", self._ahead, CLOCKS_SECONDS))
            malformed = group.create_task(self._malformed.newest(lambda: self._malformed_nodes(secret), fresh=fresh))
            idle = group.create_task(self._idle.newest(self._zookeeper.idle_groups, fresh=fresh))
        return Examination(
            brokers=each.result(), topic_ids=_of_each(brokers, ids.result()), zookeeper_rights=zookeeper_rights.result(),
            zookeeper_modes=modes.result(), objects=objects.result(), missing_rights=rights.result(),
            storage_classes=classes.result(), stateful_sets=sets.result(), classes_in_use=in_use.result(),
            template_changes=changes.result(),
            malformed=malformed.result(), ahead=ahead.result(), idle_groups=idle.result())

    async def _all_topic_ids(self, brokers: Mapping[int, Address | None]) -> dict[int, Observed[TopicIds]]:
        """A few brokers at a time: of a large cluster each answer is large."""
        found: dict[int, Observed[TopicIds]] = {}
        for begin in range(0, len(brokers), TOGETHER):
            found |= await ask_each(dict([*brokers.items()][begin:begin + TOGETHER]), self._nodes.topic_ids, self._clock)
        return found

    async def _stateful_sets(self, kubernetes: Observed[KubernetesState], age: float) -> Observed[Mapping[str, str]]:
        if not isinstance(kubernetes, Known) or None not in kubernetes.value.brokers.values():
            return NOT_ASKED
        return await self._answers.observed("StatefulSets", lambda: self._survey.called(("StatefulSet",)), age)

    async def _malformed_nodes(self, secret: str | None) -> Mapping[str, str]:
        return (await self._zookeeper.metadata(secret)).metadata.malformed

    async def _ahead(self) -> float:
        """Somewhere between question and answer the API server looked at its clock, which shows whole seconds."""
        asked = self._clock.now()
        theirs = await self._survey.time()
        if theirs > (now := self._clock.now()):
            return theirs - now
        return min(0.0, theirs + 1.0 - asked)

    async def _ask(self, reading: Awaitable[T]) -> Observed[T]:
        return await known(reading, READ_SECONDS, self._clock)

    async def _zookeeper_modes(self) -> dict[str, Observed[str]]:
        servers = self._zookeeper.servers()
        found = await asyncio.gather(*(self._ask(self._zookeeper.server_mode(server)) for server in servers))
        return {str(server): mode for server, mode in zip(servers, found, strict=True)}

    async def _template_changes(self, picture: Picture,
                                kubernetes: Observed[KubernetesState]) -> dict[str, Observed[TemplateChange]]:
        """The one change of each template, as the API server with its admission would make it."""
        if not isinstance(kubernetes, Known):
            return {}
        found: dict[str, Observed[TemplateChange]] = {}
        for name, brokers in picture.broker_sets.items():
            workload = kubernetes.value.brokers.get(name)
            if workload is None:
                continue
            try:
                operations = template.patch(workload, brokers, picture.new_image)
            except ContainerMissing:
                continue                                             # a finding of its own
            found[name] = await self._answers.observed(
                ("change", name), partial(self._survey.try_patch, "StatefulSet", name, operations), LOOKING_SECONDS,
                made_of=(workload.uid, workload.generation, operations))
        return found


def _of_each(brokers: Iterable[int], found: Observed[dict[int, Observed[T]]]) -> Mapping[int, Observed[T]]:
    """Of each of them why it is not known while they are being asked."""
    return dict.fromkeys(brokers, found) if isinstance(found, Unknown) else found.value


def _own_secrets(picture: Picture) -> tuple[str, ...]:
    return tuple(names.node_files(name) for name in (picture.spec.controllers.name, *picture.broker_sets))


def _reserved(picture: Picture) -> tuple[tuple[str, str, str], ...]:
    """API version, kind and name of what Switchover will create."""
    controllers = picture.spec.controllers.name
    return (
        ("apps/v1", "StatefulSet", controllers),
        ("v1", "Service", controllers),
        ("policy/v1", "PodDisruptionBudget", controllers),
        *(("v1", "Secret", name) for name in _own_secrets(picture)),
    )
