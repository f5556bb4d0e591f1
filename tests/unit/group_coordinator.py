"""The coordinator of one group on paper, by the rules of docs/facts/groups.md#online-conversion in their simple form.

The first member of the consumer protocol converts a classic group, the last one that leaves turns it back, as far as the
brokers' policy allows. Under `upgrade` from Kafka 4.3 on nobody assigns again when the last one leaves, until a
member joins. A rebalance takes as long as it was seen to take.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from switchover.kafka.group import Group, GroupState, GroupType, Member, MemberProtocol
from switchover.lag.group import TopicPartition

CLASSIC, CONSUMER = MemberProtocol.CLASSIC, MemberProtocol.CONSUMER
REBALANCE_SECONDS = {GroupType.CLASSIC: 2.0, GroupType.CONSUMER: 5.0}


@dataclass
class Client:
    """One member; `strategies` are those that a classic one offers, its favourite first."""

    member_id: str
    host: str
    protocol: MemberProtocol
    strategies: tuple[str, ...]
    epoch: int = 0
    assigned: frozenset[TopicPartition] = frozenset()
    target: frozenset[TopicPartition] = frozenset()


@dataclass
class Coordinator:
    """`policy` is group.consumer.migration.policy; `since_4_3` brings the defect of 4.3."""

    name: str
    partitions: tuple[TopicPartition, ...]
    policy: str = "bidirectional"
    since_4_3: bool = True
    type: GroupType = GroupType.CLASSIC
    state: GroupState = GroupState.EMPTY
    epoch: int = 0
    strategy: str = ""
    clients: dict[str, Client] = field(default_factory=dict)
    settles: float | None = None

    # --- what members do ----------------------------------------------------------------------------------------------

    def join(self, client: Client, now: float) -> bool:
        """Whether it is let in."""
        if not self.clients:
            self.type, self.epoch = GroupType(client.protocol), 0
        elif client.protocol is CONSUMER and self.type is GroupType.CLASSIC:
            if self.policy not in ("upgrade", "bidirectional"):
                return False
            self.type = GroupType.CONSUMER
        elif client.protocol is CLASSIC and not self._accepts(client):
            return False
        self.clients[client.member_id] = client
        self._rebalance(now)
        return True

    def _accepts(self, client: Client) -> bool:
        """A classic member: not by any policy, and not without a strategy that all have."""
        forbidden = self.type is GroupType.CONSUMER and self.policy == "disabled"
        return not forbidden and bool(self._common([*self._of(CLASSIC), client]))

    def leave(self, member_id: str, now: float) -> None:
        gone = self.clients.pop(member_id)
        if not self.clients:
            self.state, self.settles = GroupState.EMPTY, None
        elif self.type is GroupType.CONSUMER and gone.protocol is CONSUMER and not self._of(CONSUMER):
            if self.policy in ("downgrade", "bidirectional"):
                self.type = GroupType.CLASSIC
                self._rebalance(now)
            elif self.since_4_3:
                self.epoch, self.state, self.settles = self.epoch + 1, GroupState.ASSIGNING, None
            else:
                self._rebalance(now)
        else:
            self._rebalance(now)

    def pass_time(self, now: float) -> None:
        if self.settles is not None and now >= self.settles:
            self.state, self.settles = GroupState.STABLE, None
            for client in self.clients.values():
                client.assigned, client.epoch = client.target, self.epoch

    def _of(self, protocol: MemberProtocol) -> list[Client]:
        return [client for client in self.clients.values() if client.protocol is protocol]

    @staticmethod
    def _common(clients: Iterable[Client]) -> list[str]:
        first, *others = clients
        return [name for name in first.strategies if all(name in other.strategies for other in others)]

    def _rebalance(self, now: float) -> None:
        """Sticky and even. Classic members own nothing meanwhile (eager), others keep what they are to keep."""
        self.epoch += 1
        self.settles = now + REBALANCE_SECONDS[self.type]
        classic = self._of(CLASSIC)
        self.strategy = self._common(classic)[0] if classic else ""
        for client, target in zip(self.clients.values(), self._shares(), strict=True):
            client.target = target
            client.assigned = frozenset() if self.type is GroupType.CLASSIC else client.assigned & target
        self.state = GroupState.PREPARING_REBALANCE if self.type is GroupType.CLASSIC else GroupState.RECONCILING

    def _shares(self) -> list[frozenset[TopicPartition]]:
        count = len(self.clients)
        sizes = [len(self.partitions) // count + (index < len(self.partitions) % count) for index in range(count)]
        kept = [sorted(client.target)[:size] for client, size in zip(self.clients.values(), sizes, strict=True)]
        free = [each for each in self.partitions if not any(each in own for own in kept)]
        return [frozenset([*own, *(free.pop() for _ in range(size - len(own)))])
                for own, size in zip(kept, sizes, strict=True)]

    def strategies_of_all(self) -> list[str]:
        """What every classic member offers; the probe is asked only while the group is stable."""
        classic = self._of(CLASSIC)
        return self._common(classic) if classic and self.state is GroupState.STABLE else []

    # --- what it tells ------------------------------------------------------------------------------------------------

    def owner(self, partition: TopicPartition) -> Client | None:
        return next((client for client in self.clients.values() if partition in client.assigned), None)

    def group(self) -> Group:
        """As the coordinator tells it; a classic group's members tell nothing while it rebalances."""
        classic = self.type is GroupType.CLASSIC
        told = not classic or self.state is GroupState.STABLE
        topics = frozenset(each.topic for each in self.partitions) if told else frozenset()
        members = tuple(
            Member(member_id=each.member_id, client_id=each.member_id, host=each.host, instance_id="",
                   protocol=each.protocol, epoch=self.epoch if classic else each.epoch, topics=topics, regex="",
                   assigned=each.assigned, target=each.assigned if classic else each.target)
            for each in self.clients.values())
        assignor = (self.strategy if told else "") if classic else "uniform"
        return Group(name=self.name, coordinator=1, type=self.type, state=self.state, protocol_type="consumer",
                     epoch=self.epoch, assignment_epoch=self.epoch, assignor=assignor, members=members)
