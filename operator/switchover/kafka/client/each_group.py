"""What one coordinator tells of each of its groups; what is wrong with one is wrong with no other."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial

from kio.schema.describe_groups.v5.response import DescribedGroup as DescribedClassic
from kio.schema.list_groups.v5.response import ListedGroup as ListedV5

from switchover.answers.ask import known
from switchover.answers.clock import Clock
from switchover.answers.errors import Refused, Unreachable
from switchover.answers.observed import Known, Observed
from switchover.kafka.client import consumer_protocol
from switchover.kafka.client.coordinator import Coordinator, Described, DescribedConsumer, ListedGroup, answered, failure
from switchover.kafka.client.group_answers import changing, consumer_assigned, described_group, group_type, other_group
from switchover.kafka.client.offsets import NOT_ANSWERED
from switchover.kafka.group import Group, GroupState, GroupType, SeenGroup
from switchover.lag.group import Membership


async def described(coordinator: Coordinator, node_id: int, groups: Sequence[str]) -> dict[str, Group | Exception]:
    """Each of them, or what is wrong with it alone; the list of groups tells of what is neither classic nor consumer."""
    told = await coordinator.descriptions(groups)

    def found(name: str) -> Group:
        if name not in told:
            raise Unreachable(f"{coordinator.node}: left group {name} out of its answer")
        return described_group(coordinator.node, name, told[name], node_id)

    seen = {name: _or_error(partial(found, name)) for name in groups}
    dead = [name for name, group in seen.items() if isinstance(group, Group) and group.state is GroupState.DEAD]
    if dead:
        try:
            listed = await coordinator.listed()
        except (Unreachable, Refused) as error:
            return seen | dict.fromkeys(dead, error)
        seen |= {name: _or_error(partial(other_group, name, listed.get(name), node_id)) for name in dead}
    return seen


def _or_error(read: Callable[[], Group]) -> Group | Exception:
    try:
        return read()
    except Exception as error:  # noqa: BLE001 - an odd answer about one group is that of no other
        return error


async def member_count(coordinator: Coordinator) -> int:
    """Of all classic and consumer groups of that broker."""
    names = [name for name, group in (await coordinator.listed()).items()
             if group_type(group) is not GroupType.OTHER and group.group_state != GroupState.EMPTY]
    count = 0
    for name, group in (await coordinator.descriptions(names)).items():
        answered(coordinator.node, group.error_code, name, f"describe group {name}")
        if group.group_state == GroupState.DEAD:
            raise changing(name)
        count += len(group.members)
    return count


# --- of whatever type ---------------------------------------------------------------------------------------------------


async def seen(coordinator: Coordinator, node_id: int, asked: Sequence[str] | None, seconds: float,
               clock: Clock) -> dict[str, SeenGroup]:
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

    return {name: _seen(name, await known(facts(name), seconds, clock), listed.get(name)) for name in names}


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


# --- their members ------------------------------------------------------------------------------------------------------


async def memberships(coordinator: Coordinator, names: Sequence[str]) -> dict[str, Membership | str]:
    """Of each that it answers for its members, or why it does not tell them."""
    found: dict[str, Membership | str] = {}
    for name, group in (await coordinator.descriptions(names)).items():
        error = failure(coordinator.node, group.error_code, name, f"describe group {name}")
        found[name] = _membership(name, group) if error is None else str(error)
    return found


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
