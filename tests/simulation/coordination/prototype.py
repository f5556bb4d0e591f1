"""The holes of KIP-125's prototype (P1 to P9 of docs/facts/coordination.md#kip-125), each put back on purpose: every
one of them must be caught."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from simulation.coordination.ours import Ours
from switchover.consumer import messages as m
from switchover.consumer.member.following import Following, Rules
from switchover.consumer.member.holdings import Holding, Holdings
from switchover.consumer.member.machine import Member
from switchover.consumer.member.states import GROUP, Cause, Phase, after
from switchover.coordination.mode import Mode
from switchover.coordination.world import Owner, World
from switchover.shared.partition import TopicPartition

NOBODY = Owner("")


class KeepsWhatIsRevoked(Member):
    """P1: on a revocation nothing is stopped; the next assignment will tell."""

    def take(self, event: m.Event) -> None:
        if isinstance(event, m.GroupRevoking) and self.mode is Mode.KAFKA:
            self.group = after(GROUP, self.group, Cause.REVOKED)
        else:
            super().take(event)

    def _may_join_again(self) -> bool:
        return True


class TakesNoOwnerNode(Member):
    """P2: in kafka mode what Kafka assigns is fetched without an owner node."""

    def _work_in(self, world: World) -> None:
        super()._work_in(world)
        if self.mode is Mode.KAFKA:
            for holding in self.holdings.values():
                if holding.phase is Phase.CLAIMING and not holding.request:
                    holding.turn(Cause.CLAIMED)

    def _see(self, world: World) -> None:
        owners = {**world.owners, **{
            partition: replace(world.owners.get(partition, NOBODY), thread=holding.thread, session=self._session_number)
            for partition, holding in self.holdings.items()}} if self.mode is Mode.KAFKA else world.owners
        super()._see(replace(world, owners=owners))


class RegistersInTwoSteps(Ours):
    """P3: registered first, below migration/ids later, and nobody watches that."""

    atomic = False

    def _watched(self, what: str, partition: TopicPartition | None) -> None:
        if what != "migration":
            super()._watched(what, partition)


class Remembers(Following):
    """Judges by the registrations of the reading before."""

    _before: World | None = None
    _last: World | None = None

    def see(self, world: World) -> None:
        super().see(world)
        self._before, self._last = self._last, world

    def target(self, world: World) -> tuple[Mode, str]:
        return super().target(replace(world, registrations=(self._before or world).registrations, malformed={}))


class RemembersWhoIsEnabled(Member):
    """P4: whether all are migration-enabled is looked up at another moment than the rest."""

    def __init__(self, rules: Rules) -> None:
        super().__init__(rules)
        self.following = self.first.following = Remembers(rules)


class NeverWaits(Holdings):
    """For no commit."""

    def _is_committed(self, holding: Holding, mode: Mode | None, now: float) -> bool:
        return True


class GivesUpCommitting(Member):
    """P5: the commit of a rebalance times out, and neither store has it."""

    def __init__(self, rules: Rules) -> None:
        super().__init__(rules)
        self.holdings = self.first.holdings = NeverWaits(self.requests)


class LetsGoOfNodesFirst(Member):
    """P6: when an old member comes, owner nodes go while their partitions are still handed out."""

    def _wanted(self, world: World) -> Mapping[TopicPartition, str]:
        fetching = self.holdings.fetching()
        if fetching and world.old and self.mode is Mode.KAFKA:
            self.requests.ask(m.Release(self.requests.next_number(), fetching, guard=False))
        return super()._wanted(world)


class NeedsNoVeto(Member):
    """P7: goes back to zookeeper mode whoever is in Kafka's group."""

    def ask_who_is_there(self) -> None:
        if self.world is not None:
            target, waits = self.following.target(self.world)
            self._share_seen = True
            self.following.adopt(target, self.world, waits)


def holes() -> Mapping[str, dict[str, Any]]:
    """How a Story is made with each."""
    return {
        "P1": {"made": KeepsWhatIsRevoked}, "P2": {"made": TakesNoOwnerNode}, "P3": {"shell": RegistersInTwoSteps},
        "P4": {"made": RemembersWhoIsEnabled}, "P5": {"made": GivesUpCommitting}, "P6": {"made": LetsGoOfNodesFirst},
        "P7": {"made": NeedsNoVeto}, "P8": {"restores_mode": False}, "P9": {"admits": False},
    }
