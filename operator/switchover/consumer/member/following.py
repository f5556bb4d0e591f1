"""The mode: when a member follows the mode znode, and why it does not (R4, R5, R7 and R11 of
docs/facts/coordination.md#the-rules).
"""

from collections.abc import Iterable
from dataclasses import dataclass

from switchover.consumer.member.states import MODE, Cause, after
from switchover.coordination.assignment import Strategy, Text
from switchover.coordination.mode import Mode
from switchover.coordination.world import World


@dataclass(frozen=True, slots=True)
class Rules:
    """What a member is made by. `commit_interval` in seconds, None without automatic commits."""

    consumer_id: str
    enabled: bool = True                # coordination.migration.enabled
    strategy: Strategy = Strategy.RANGE
    text: Text = Text.SINCE_1_0
    exclude_internal: bool = True
    commit_interval: float | None = 5.0


class Following:
    """`mode` is None before a member has begun."""

    def __init__(self, rules: Rules) -> None:
        self._rules = rules
        self.mode: Mode | None = None if rules.enabled else Mode.ZOOKEEPER
        self.mode_version = -1
        self.waits = ""                                     # why the mode znode is not followed
        self._known: frozenset[str] = frozenset()           # every migration-enabled member ever seen

    def target(self, world: World) -> tuple[Mode, str]:
        """The mode to be in, and why that is not what the mode znode says."""
        if not self._rules.enabled:
            return Mode.ZOOKEEPER, ""
        if world.old:
            return Mode.ZOOKEEPER, f"{world.old[0]} is not migration-enabled" if world.mode is Mode.KAFKA else ""
        if world.mode is None and world.mode_version >= 0:
            acknowledged = {each.mode for each in world.acknowledgements.values() if each is not None}
            stays = self.mode or (Mode.KAFKA if Mode.KAFKA in acknowledged else Mode.ZOOKEEPER)
            return stays, f"the mode znode says {world.mode_data[:32]!r}, and must say kafka or zookeeper exactly"
        return world.mode or Mode.ZOOKEEPER, ""

    def see(self, world: World) -> None:
        self._known |= world.acknowledgements.keys()

    def follow(self, world: World, *, assigned: bool) -> bool:
        """Change the mode where that harms nobody. Whether Kafka is to be asked first who is in the group."""
        target, waits = self.target(world)
        if target is self.mode:
            self.adopt(target, world, waits)
        elif target is Mode.ZOOKEEPER:
            return True
        elif assigned:
            self.adopt(target, world, waits)
        else:
            self.waits = "has no assignment from Kafka's group yet"
        return False

    def adopt(self, mode: Mode, world: World, waits: str) -> None:
        self.mode = after(MODE, self.mode, Cause.TO_KAFKA if mode is Mode.KAFKA else Cause.TO_ZOOKEEPER)
        self.waits = waits
        if world.mode is mode:
            self.mode_version = world.mode_version

    def hear_of(self, members: Iterable[str], world: World) -> bool:
        """Leave kafka mode, or begin in zookeeper mode, only where no KafkaConsumer is in the group: no fence holds it.
        Whether one was found."""
        target, waits = self.target(world)
        if target is not Mode.ZOOKEEPER or target is self.mode:
            return False
        others = sorted(set(members) - self._known)
        if not others:
            self.adopt(target, world, waits)
            return False
        self.waits = f"KafkaConsumer {others[0]} is in the group"
        if self.mode is None and not world.old:
            self.mode = after(MODE, self.mode, Cause.KAFKA_CONSUMER)
        return True

    def hear_nothing(self) -> None:
        """Kafka could not be asked who is in the group."""
        self.waits = f"cannot ask Kafka who is in the group, and goes to {Mode.ZOOKEEPER} mode only with that knowledge"

    def expire(self) -> None:
        """The acknowledgement has gone with the session."""
        if self._rules.enabled:
            self.mode = after(MODE, self.mode, Cause.EXPIRED)
