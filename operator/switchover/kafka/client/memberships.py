"""Who is in the consumer groups (`ports.GroupMemberships`), asked in batches over Kafka's protocol (3.0 or newer)."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress

from kio.schema.describe_groups.v5.response import DescribedGroup as DescribedClassic
from kio.schema.list_groups.v4 import ListGroupsRequest, ListGroupsResponse

from switchover.kafka.client import consumer_protocol
from switchover.kafka.client.brokers import Brokers
from switchover.kafka.client.connection import Connection, succeeded
from switchover.kafka.client.consumer_protocol import PROTOCOL_TYPE
from switchover.kafka.client.coordinator import Coordinator, DescribedConsumer, failure, find_coordinators
from switchover.kafka.client.group_answers import consumer_assigned
from switchover.kafka.client.metadata import addresses, metadata
from switchover.kafka.client.offsets import NOT_ANSWERED
from switchover.kafka.group import GroupState
from switchover.kafka.limits import ANSWER_SECONDS
from switchover.lag.membership import Membership
from switchover.network.access import Access
from switchover.network.addresses import Address


class WireMemberships:
    """The brokers of one Kafka cluster. A question is two rounds, each of which may take `seconds`: which brokers, and what
    each of them says; all are asked at the same time. Raises Refused for an access that cannot be used.
    """

    def __init__(self, access: Access, *, seconds: float = ANSWER_SECONDS) -> None:
        self._brokers = Brokers(access, seconds)

    async def groups(self) -> Sequence[str]:
        """ListGroups of every broker: those of consumers that our user may see, and those that were only committed to.

        Raises what one broker raises: its groups would be missing.
        """
        found: list[str] = []
        errors: list[Exception] = []

        async def brokers(node: Address, connection: Connection) -> list[Address]:
            return [*addresses(await metadata(node, connection, ())).values()]

        async def listed(node: Address, connection: Connection, _: Sequence[Address]) -> None:
            answer = await connection.ask(ListGroupsRequest(states_filter=()), ListGroupsResponse)
            succeeded(node, answer.error_code, "list groups", "Describe")
            found.extend(str(group.group_id) for group in answer.groups if group.protocol_type in (PROTOCOL_TYPE, ""))

        work = {broker: (broker,) for broker in await self._brokers.any(brokers)}
        await self._brokers.each(work, listed, lambda _, error: errors.append(error))
        if errors:
            raise errors[0]
        return sorted(found)

    async def memberships(self, groups: Iterable[str]) -> Mapping[str, Membership | str]:
        """Of each group its members, or why its coordinator does not tell them."""
        names = sorted(set(groups))
        found: dict[str, Membership | str] = {}

        async def coordinators(node: Address, connection: Connection) -> dict[Address, list[str]]:
            told = await find_coordinators(node, connection, names)
            found.update({name: str(error) for name, error in told.failed.items()})
            return told.groups

        async def described(node: Address, connection: Connection, part: Sequence[str]) -> None:
            coordinator = await Coordinator.at(node, connection)
            for name, group in (await coordinator.descriptions(part)).items():
                error = failure(node, group.error_code, name, f"describe group {name}")
                found[name] = _membership(name, group) if error is None else str(error)

        def failed(part: Iterable[str], error: Exception) -> None:
            found.update({name: str(error) for name in part if name not in found})

        await self._brokers.each(await self._brokers.any(coordinators), described, failed)
        return {name: found.get(name, NOT_ANSWERED) for name in names}

    async def close(self) -> None:
        """Each question has connections of its own."""


def _membership(name: str, group: DescribedClassic | DescribedConsumer) -> Membership | str:
    """Its members, or which of them does not speak the consumer protocol. A state that nobody knows is Unknown."""
    state = "Unknown"
    with suppress(ValueError):
        state = GroupState(group.group_state)
    if not isinstance(group, DescribedClassic):
        return Membership(state, {member.member_id: consumer_assigned(member) for member in group.members})
    assigned = {}
    for member in group.members:
        try:
            assigned[str(member.member_id)] = consumer_protocol.assignment(member.member_assignment).partitions
        except consumer_protocol.Malformed as error:
            return f"group {name}: member {member.member_id} does not speak the consumer protocol, {error}"
    return Membership(state, assigned)
