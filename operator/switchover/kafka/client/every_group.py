"""Every group of a Kafka cluster as its coordinators tell it: of whatever type, asked in batches (Kafka 3.0 or newer)."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from kio.schema.list_groups.v5.response import ListedGroup as ListedV5

from switchover.answers.ask import known
from switchover.answers.clock import Clock
from switchover.answers.errors import Refused, Unreachable
from switchover.answers.observed import Known, Observed, Unknown
from switchover.kafka.client.brokers import Brokers
from switchover.kafka.client.connection import Connection
from switchover.kafka.client.coordinator import Coordinator, Coordinators, Described, ListedGroup, find_coordinators
from switchover.kafka.client.examination import cluster_operations
from switchover.kafka.client.group_answers import described_group, group_type, other_group
from switchover.kafka.client.metadata import addresses, metadata
from switchover.kafka.client.offsets import NOT_ANSWERED
from switchover.kafka.group import Group, GroupState, GroupType
from switchover.kafka.limits import EVERY_GROUP_SECONDS
from switchover.network.access import Access
from switchover.network.addresses import Address

FOR_ALL = "grant it Describe on the Cluster resource, or name the groups (--group)"


@dataclass(frozen=True, slots=True)
class SeenGroup:
    """What is known of one group. `type` and `state` are Kafka's words as far as anybody tells them, "" else: those which
    are OTHER are told apart, and a group that nobody can describe still is on a list."""

    name: str
    group: Observed[Group]
    type: str = ""
    state: str = ""


@dataclass(slots=True)
class SeenGroups:
    """By name, and in words which brokers did not tell their groups: these are missing here."""

    groups: dict[str, SeenGroup] = field(default_factory=dict)
    silent: list[str] = field(default_factory=list)


class EveryGroup:
    """The brokers of one Kafka cluster. A question is two rounds, each of which may take `seconds`: which brokers, and what
    each of them says; all are asked at the same time. Raises Refused for an access that cannot be used, Unreachable where
    no bootstrap server answers.
    """

    def __init__(self, access: Access, clock: Clock, *, seconds: float = EVERY_GROUP_SECONDS) -> None:
        self._brokers = Brokers(access, seconds)
        self._clock = clock

    async def every(self) -> SeenGroups:
        """All that there are. Refused where our user is shown only those that it has rights on."""
        async def brokers(node: Address, connection: Connection) -> Mapping[Address, int]:
            if "DESCRIBE" not in await cluster_operations(connection):
                raise Refused(f"{node}: shows our user only groups that it has rights on; {FOR_ALL}")
            return await _ids(node, connection)

        found, ids = SeenGroups(), await self._brokers.any(brokers)

        async def ask(node: Address, connection: Connection, _: Sequence[None]) -> None:
            found.groups.update(await self._look(await Coordinator.at(node, connection), ids[node], None))

        await self._brokers.each(
            dict.fromkeys(ids, (None,)), ask, lambda _, error: found.silent.append(str(error)))
        return found

    async def named(self, names: Sequence[str]) -> SeenGroups:
        """These alone. One that does not exist is Dead."""
        found = SeenGroups()

        def failed(part: Iterable[str], error: Exception) -> None:
            why = Unknown(str(error), refused=isinstance(error, Refused))
            found.groups.update({name: SeenGroup(name, why) for name in part})

        async def coordinators(node: Address, connection: Connection) -> Coordinators:
            told = await find_coordinators(node, connection, sorted(set(names)))
            for name, error in told.failed.items():
                failed((name,), error)
            return told

        told = await self._brokers.any(coordinators)

        async def ask(node: Address, connection: Connection, part: Sequence[str]) -> None:
            found.groups.update(await self._look(await Coordinator.at(node, connection), told.ids[node], part))

        await self._brokers.each(told.groups, ask, failed)
        return found

    async def _look(self, coordinator: Coordinator, node_id: int, asked: Sequence[str] | None) -> dict[str, SeenGroup]:
        """Those that are asked for, or all that it lists."""
        listed = await coordinator.listed()
        names = [*listed] if asked is None else asked
        ours = [name for name in names if name not in listed or group_type(listed[name]) is not GroupType.OTHER]
        told = await coordinator.descriptions(ours)
        left_out = {*ours} - told.keys()

        async def facts(name: str) -> Group:
            if name in left_out:
                raise Unreachable(NOT_ANSWERED)
            return _group(coordinator, node_id, name, told.get(name), listed.get(name))

        return {name: _seen(name, await known(facts(name), self._brokers.seconds, self._clock), listed.get(name))
                for name in names}


async def _ids(node: Address, connection: Connection) -> Mapping[Address, int]:
    return {address: node_id for node_id, address in addresses(await metadata(node, connection, ())).items()}


def _seen(name: str, group: Observed[Group], listed: ListedGroup | None) -> SeenGroup:
    kind, state = (group.value.type, group.value.state) if isinstance(group, Known) else ("", "")
    if listed is not None:
        kind = listed.group_type.capitalize() if isinstance(listed, ListedV5) else kind     # brokers write it in lower case
        state = state or listed.group_state
    return SeenGroup(name, group, kind, state)


def _group(coordinator: Coordinator, node_id: int, name: str, told: Described | None, listed: ListedGroup | None) -> Group:
    if told is not None:
        found = described_group(coordinator.node, name, told, node_id)
        if found.state is not GroupState.DEAD:
            return found
    return other_group(name, listed, node_id)
