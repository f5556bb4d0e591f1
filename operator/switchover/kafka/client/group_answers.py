"""From what a coordinator answered to the facts of a group."""

from kio.schema.consumer_group_describe.v0.response import Assignment as AssignmentV0
from kio.schema.consumer_group_describe.v0.response import Member as MemberV0
from kio.schema.consumer_group_describe.v1.response import Assignment as AssignmentV1
from kio.schema.consumer_group_describe.v1.response import Member as MemberV1
from kio.schema.describe_groups.v5.response import DescribedGroup as DescribedClassic
from kio.schema.describe_groups.v5.response import DescribedGroupMember
from kio.schema.list_groups.v4.response import ListedGroup as ListedV4

from switchover.answers.errors import Malformed, Unreachable
from switchover.kafka.client import consumer_protocol
from switchover.kafka.client.consumer_protocol import NO_GENERATION, PROTOCOL_TYPE
from switchover.kafka.client.coordinator import Described, DescribedConsumer, ListedGroup, answered
from switchover.kafka.group import NO_EPOCH, Group, GroupState, GroupType, Member, MemberProtocol
from switchover.lag.group import TopicPartition
from switchover.network.addresses import Address, canonical

_CLASSIC_MEMBER = 0         # ConsumerGroupDescribe v1: member_type


def described_group(node: Address, name: str, told: Described, coordinator: int) -> Group:
    """A group of either type; DEAD is one of another type, too. Raises as `answered` and `classic_group` do."""
    answered(node, told.error_code, name, f"describe group {name}")
    return classic_group(told, coordinator) if isinstance(told, DescribedClassic) else consumer_group(told, coordinator)


def consumer_group(told: DescribedConsumer, coordinator: int) -> Group:
    """A group of type Consumer. Before version 1 a member's protocol is not told: then none but its own was possible."""
    return Group(
        name=told.group_id,
        coordinator=coordinator,
        type=GroupType.CONSUMER,
        state=_state(told.group_id, told.group_state),
        protocol_type=PROTOCOL_TYPE,
        epoch=told.group_epoch,
        assignment_epoch=told.assignment_epoch,
        assignor=told.assignor_name,
        members=tuple(_consumer_member(member) for member in told.members),
    )


def classic_group(told: DescribedClassic, coordinator: int) -> Group:
    """A classic group. Raises Malformed, naming the member, when what it exchanges is not the consumer protocol."""
    epoch = NO_EPOCH
    members: tuple[Member, ...] = ()
    if told.protocol_type == PROTOCOL_TYPE:
        read = [(member, *_exchanged(told.group_id, member)) for member in told.members]
        before = max((wanted.generation for _, wanted, _ in read), default=NO_GENERATION)
        epoch = NO_EPOCH if before == NO_GENERATION else before + 1
        members = tuple(_classic_member(member, wanted, given, epoch) for member, wanted, given in read)
    else:
        members = tuple(_classic_member(member, _NOTHING_WANTED, _NOTHING_GIVEN, epoch) for member in told.members)
    return Group(
        name=told.group_id,
        coordinator=coordinator,
        type=GroupType.CLASSIC,
        state=_state(told.group_id, told.group_state),
        protocol_type=told.protocol_type,
        epoch=epoch,
        assignment_epoch=epoch,
        assignor=told.protocol_data,
        members=members,
    )


def other_group(name: str, listed: ListedGroup | None, coordinator: int) -> Group:
    """What is neither a consumer group nor a classic one, by what the list of groups says of it, if it is in there."""
    if listed is None:
        return Group(name, coordinator, GroupType.CLASSIC, GroupState.DEAD, "", NO_EPOCH, NO_EPOCH, "", ())
    if group_type(listed) is not GroupType.OTHER:
        raise changing(name)
    return Group(name, coordinator, GroupType.OTHER, _state(name, listed.group_state), listed.protocol_type, NO_EPOCH,
                 NO_EPOCH, "", ())


def group_type(listed: ListedGroup) -> GroupType:
    """By its name in the list of groups, in whatever case; a list without types (before Kafka 3.8) has classic ones."""
    if isinstance(listed, ListedV4):
        return GroupType.CLASSIC
    return next((known for known in GroupType if known.lower() == listed.group_type.lower()), GroupType.OTHER)


def changing(name: str) -> Unreachable:
    """It is on the list, and yet is no group of either type: it became another between two questions."""
    return Unreachable(f"group {name} comes, goes or changes its type right now; ask again")


_NOTHING_WANTED = consumer_protocol.subscription(b"")
_NOTHING_GIVEN = consumer_protocol.assignment(b"")


def _exchanged(
    group: str, member: DescribedGroupMember
) -> tuple[consumer_protocol.Subscription, consumer_protocol.Assignment]:
    try:
        return (consumer_protocol.subscription(member.member_metadata),
                consumer_protocol.assignment(member.member_assignment))
    except consumer_protocol.Malformed as error:
        raise Malformed(f"group {group}: member {member.member_id} at {_address(member.client_host)} does not speak the "
                        f"consumer protocol, {error}; such a group cannot be migrated while it is a member") from error


def _classic_member(
    member: DescribedGroupMember, wanted: consumer_protocol.Subscription, given: consumer_protocol.Assignment, epoch: int,
) -> Member:
    return Member(
        member_id=member.member_id,
        client_id=member.client_id,
        host=_address(member.client_host),
        instance_id=member.group_instance_id or "",
        protocol=MemberProtocol.CLASSIC,
        epoch=epoch,
        topics=wanted.topics,
        regex="",
        assigned=given.partitions,
        target=given.partitions,
        user_data=given.user_data,
        metadata=len(member.member_metadata),
        assignment=len(member.member_assignment),
    )


def consumer_assigned(member: MemberV0 | MemberV1) -> frozenset[TopicPartition]:
    """What a member of a group of type Consumer has now."""
    return _partitions(member.assignment)


def _consumer_member(member: MemberV0 | MemberV1) -> Member:
    classic = isinstance(member, MemberV1) and member.member_type == _CLASSIC_MEMBER
    return Member(
        member_id=member.member_id,
        client_id=member.client_id,
        host=_address(member.client_host),
        instance_id=member.instance_id or "",
        protocol=MemberProtocol.CLASSIC if classic else MemberProtocol.CONSUMER,
        epoch=member.member_epoch,
        topics=frozenset(str(topic) for topic in member.subscribed_topic_names),
        regex=member.subscribed_topic_regex or "",
        assigned=consumer_assigned(member),
        target=_partitions(member.target_assignment),
    )


def _state(name: str, told: str) -> GroupState:
    try:
        return GroupState(told)
    except ValueError as error:
        raise Unreachable(f"group {name} is in a state that Switchover does not know: {told!r}") from error


def _partitions(assignment: AssignmentV0 | AssignmentV1) -> frozenset[TopicPartition]:
    return frozenset(
        TopicPartition(topic.topic_name, number) for topic in assignment.topic_partitions for number in topic.partitions)


def _address(host: str) -> str:
    """Java prints an address with a slash before it, and a name before that where it knows one."""
    return canonical(host.rpartition("/")[2])
