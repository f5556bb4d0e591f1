"""What the first of the migration-enabled members, by name, does for all of them: guards, and old members that gave up."""

from switchover.consumer.member.following import Following
from switchover.consumer.member.holdings import Holdings
from switchover.consumer.member.questions import Requests
from switchover.consumer.member.rules import Rules
from switchover.consumer.member.share import Share
from switchover.consumer.messages import Guard, Partitions, Wake
from switchover.coordination.assignment import Ambiguous, thread_id
from switchover.coordination.mode import Mode
from switchover.coordination.registration import Malformed
from switchover.coordination.world import World
from switchover.shared.partition import TopicPartition

PARKED = 10.0
"""Seconds without an owner after which an old member has given up: four attempts, two seconds apart
(docs/facts/coordination.md#the-old-consumers-rebalance)."""


class FirstMember:
    """Every member has one; it does nothing in those that are not the first."""

    def __init__(self, rules: Rules, following: Following, share: Share, holdings: Holdings, requests: Requests) -> None:
        self._rules, self.following, self._share, self.holdings = rules, following, share, holdings
        self._requests = requests
        self._fresh = False                                 # a reading that was not looked at
        self._orphans: dict[TopicPartition, float] = {}     # since when an old member's partition has no owner

    def see(self) -> None:
        """The group was read."""
        self._fresh = True

    def look(self, world: World, now: float) -> None:
        """Once for each reading."""
        first = min(world.acknowledgements, default="")
        if not self._fresh or self.following.mode is None or self._rules.consumer_id != first:
            return
        self._fresh = False
        try:
            intended = self._share.intended(world)
        except (Malformed, Ambiguous):
            return
        if self.following.mode is Mode.KAFKA:
            bare = frozenset(intended.keys() - world.owners.keys() - self.holdings.keys())
            if bare:
                self._requests.ask(Guard(bare))
        elif self.following.target(world)[0] is Mode.ZOOKEEPER:
            self._take_guards(world)
            enabled = tuple(f"{each}-" for each in world.acknowledgements)
            self._wake(frozenset(partition for partition, thread in intended.items()
                                 if partition not in world.owners and not thread.startswith(enabled)), now)

    def _take_guards(self, world: World) -> None:
        """In front of an old member a guard hides offsets that only Kafka has: who takes it writes both stores first."""
        for partition, owner in world.owners.items():
            if not owner.session and partition not in self.holdings and partition not in self.holdings.wanted:
                self.holdings.take(partition, thread_id(self._rules.consumer_id, 0))

    def _wake(self, orphans: Partitions, now: float) -> None:
        """Defect D5: an old member that lost its claim four times sleeps until something changes below `ids`."""
        self._orphans = {partition: self._orphans.get(partition, now) for partition in orphans}
        if any(since <= now - PARKED for since in self._orphans.values()):
            self._orphans = {}
            self._requests.ask(Wake())
