"""A group whose coordination moves: old consumers, migration-enabled ones and KafkaConsumers in pods.

What a pod runs is told by its variable CONSUMER: "old", "enabled" or "kafka"; without it, what the world began with. They
are the members of simulation/coordination, ours among them as it is shipped, with its ZooKeeper, coordinator and judge.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from simulation.coordination.coordinator import Coordinator
from simulation.coordination.loop import Loop
from simulation.coordination.oracle import Kind, Oracle
from simulation.coordination.others import KafkaConsumer, Old
from simulation.coordination.ours import Ours
from simulation.coordination.zookeeper import ZooKeeper
from switchover.coordination.world import World as ZooKeeperWorld
from switchover.engine.effects import Effect
from switchover.groups.coordination.mode import RemoveGuards, SetMode
from switchover.groups.facts import Stored
from switchover.lag.group import TopicPartition
from unit.group_world import Pod, Workload, World

TOPIC = "orders"
Consumer = Old | Ours | KafkaConsumer


def running(kind: str) -> dict[str, Any]:
    """The change that makes a pod run this kind of consumer."""
    return {"env": [{"name": "CONSUMER", "value": kind}]}


class Noting(Oracle):
    """Notes what is broken, so that a test can say what it expects."""

    def __init__(self, loop: Loop) -> None:
        super().__init__(loop)
        self.broken: list[str] = []

    def begin(self, partition: TopicPartition, member: str, kind: Kind, offset: int) -> None:
        """Whoever was there first goes on; it is not simulated how both do."""
        if (other := self.open.get(partition)) is not None:
            self._broken("Z1", f"{member} begins {partition}, which {other.member} has")
        else:
            super().begin(partition, member, kind, offset)

    def _broken(self, invariant: str, words: str) -> None:
        self.broken.append(f"{invariant} at {self.loop.now:.3f} s: {words}")


class CoordinatedWorld(World):
    """`first` is what pods run that say nothing else."""

    def __init__(self, *workloads: tuple[str, str, int], first: str = "old", partitions: int = 6, **more: Any) -> None:
        self.first = first
        self.consumers: dict[str, Consumer] = {}
        self.started = 0
        super().__init__(*workloads, partitions=partitions, **more)

    def _coordinated(self, partitions: int, policy: str) -> Coordinator:
        self.oracle = Noting(self.loop)
        self.zookeeper = ZooKeeper(self.loop, self.oracle)
        for _ in range(partitions):
            self.zookeeper.add_partition(TOPIC)
        return Coordinator(self.loop, lambda: self.zookeeper.topics, policy)

    # --- members ------------------------------------------------------------------------------------------------------

    def arrives(self, kind: str, host: str = "stranger", ip: str = "10.9.9.9") -> str:
        """A consumer starts, in a pod of ours or elsewhere; its consumer id."""
        self.started += 1
        name = f"client-{host}-{self.started}" if kind == Kind.KAFKA else f"orders_{host}-1795240855786-{self.started:08x}"
        loop, zookeeper, coordinator, oracle = self.loop, self.zookeeper, self.coordinator, self.oracle
        process: Consumer
        if kind == Kind.OLD:
            process = Old(name, loop, zookeeper, oracle, (TOPIC,), commits=True)
        elif kind == Kind.KAFKA:
            process = KafkaConsumer(name, loop, coordinator, oracle, (TOPIC,), ip)
        else:
            process = Ours(name, loop, zookeeper, coordinator, oracle, (TOPIC,), host=ip)
        self.consumers[name] = process
        return name

    def goes(self, name: str) -> None:
        """Cleanly: one that follows Kafka leaves guards."""
        self.consumers.pop(name).close()

    def of(self, kind: str) -> list[Any]:
        return [each for each in self.consumers.values() if each.kind == kind]

    def _live(self, workload: Workload, pod: Pod) -> None:
        if pod.ends is None and pod.ready and not pod.member_id and not self._is(pod, {*self.crashing, *self.silent}):
            pod.member_id = self.arrives(pod.client.get("CONSUMER", self.first), pod.name, pod.ip)
            return
        super()._live(workload, pod)

    def _leave(self, pod: Pod) -> None:
        if pod.member_id:
            self.goes(pod.member_id)
            pod.member_id = ""

    def members(self) -> int:
        return sum(bool(pod.member_id) for each in self.workloads.values() for pod in each.alive)

    # --- what there is ------------------------------------------------------------------------------------------------

    def _consume(self) -> None:
        self.offsets = {each: (max(stored.zookeeper or 0, stored.kafka or 0), stored.end or 0)
                        for each, stored in self.stored().items()}

    def stored(self) -> Mapping[TopicPartition, Stored]:
        """What both stores have of each partition."""
        return {each: Stored(self.zookeeper.offsets.get(each), self.coordinator.offsets.get(each), 0,
                             self.oracle.end_of(each)) for each in self.coordinator.partitions}

    def fetching(self, partition: TopicPartition) -> str:
        """Who fetches it now."""
        delivery = self.oracle.open.get(partition)
        return "" if delivery is None else delivery.member

    def perform(self, effect: Effect) -> None:
        match effect:
            case SetMode(_, mode, version):
                self.done.append(effect)
                assert version == self.zookeeper.mode_version, "the version that was read"
                self.zookeeper.write_mode(mode.encode())
            case RemoveGuards(_, partitions):
                self.done.append(effect)
                for partition in partitions:
                    if not self.zookeeper.owners[partition].session:
                        self.zookeeper.delete_owner(partition)
            case _:
                super().perform(effect)

    def tree(self) -> ZooKeeperWorld:
        """What a reading of ZooKeeper finds."""
        return replace(self.zookeeper.world(), brokers=frozenset({1}))
