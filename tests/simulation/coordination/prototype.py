"""The holes of KIP-125's prototype (P1 to P9 of docs/facts/coordination.md#kip-125), each put back on purpose: every
one of them must be caught."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from simulation.coordination.ours import Ours
from switchover.consumer import messages as m
from switchover.consumer.member import Holding, Member, Phase
from switchover.coordination.mode import Mode
from switchover.coordination.world import Owner, World
from switchover.partition import TopicPartition

NOBODY = Owner("")


class KeepsWhatIsRevoked(Member):
    """P1: on a revocation nothing is stopped; the next assignment will tell."""

    def _take(self, event: m.Event) -> None:
        if isinstance(event, m.GroupRevoking) and self.mode is Mode.KAFKA:
            self.revoking = True
        else:
            super()._take(event)

    def _may_join_again(self) -> bool:
        return True


class TakesNoOwnerNode(Member):
    """P2: in kafka mode what Kafka assigns is fetched without an owner node."""

    def _match(self) -> None:
        super()._match()
        if self.mode is Mode.KAFKA:
            for holding in self.holdings.values():
                if holding.phase is Phase.CLAIMING and not holding.request:
                    holding.enter(Phase.READING)

    def _see(self, world: World) -> None:
        owners = {**world.owners, **{
            partition: replace(world.owners.get(partition, NOBODY), thread=holding.thread, session=self.session or 0)
            for partition, holding in self.holdings.items()}} if self.mode is Mode.KAFKA else world.owners
        super()._see(replace(world, owners=owners))


class RegistersInTwoSteps(Ours):
    """P3: registered first, below migration/ids later, and nobody watches that."""

    atomic = False

    def _watched(self, what: str, partition: TopicPartition | None) -> None:
        if what != "migration":
            super()._watched(what, partition)


class RemembersWhoIsEnabled(Member):
    """P4: whether all are migration-enabled is looked up at another moment than the rest."""

    _before: World | None = None

    def _see(self, world: World) -> None:
        super()._see(world)
        self._before, self._last = getattr(self, "_last", None), world

    def _target(self, world: World) -> tuple[Mode, str]:
        return super()._target(replace(world, registrations=(self._before or world).registrations, malformed={}))


class GivesUpCommitting(Member):
    """P5: the commit of a rebalance times out, and neither store has it."""

    def _is_committed(self, holding: Holding) -> bool:
        return True


class LetsGoOfNodesFirst(Member):
    """P6: when an old member comes, owner nodes go while their partitions are still handed out."""

    def _match(self) -> None:
        fetching = self.fetching()
        if fetching and self.world is not None and self.world.old and self.mode is Mode.KAFKA:
            self._ask(m.Release(self._next(), fetching, guard=False))
        super()._match()


class NeedsNoVeto(Member):
    """P7: goes back to zookeeper mode whoever is in Kafka's group."""

    def _describe(self) -> None:
        if self.world is not None:
            target, waits = self._target(self.world)
            self._share_seen = True
            self._adopt(target, self.world, waits)


def holes() -> Mapping[str, dict[str, Any]]:
    """How a Story is made with each."""
    return {
        "P1": {"made": KeepsWhatIsRevoked}, "P2": {"made": TakesNoOwnerNode}, "P3": {"shell": RegistersInTwoSteps},
        "P4": {"made": RemembersWhoIsEnabled}, "P5": {"made": GivesUpCommitting}, "P6": {"made": LetsGoOfNodesFirst},
        "P7": {"made": NeedsNoVeto}, "P8": {"restores_mode": False}, "P9": {"admits": False},
    }
