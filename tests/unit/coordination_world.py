"""A group whose coordination moves, on paper: old consumers, migration-enabled ones and KafkaConsumers in pods.

What a pod runs is told by its variable CONSUMER: "old", "enabled" or "kafka"; without it, what the world began with. Each
kind does what it was seen to do (docs/facts/coordination.md). The old one computes its share and claims it, and knows
ZooKeeper's offsets alone; the KafkaConsumer fetches what Kafka assigns it. The migration-enabled one is a member of both,
follows the mode where nothing forbids it, fetches only what it owns in ZooKeeper, and commits to both stores.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from switchover.coordination.acknowledgement import Acknowledgement
from switchover.coordination.assignment import Strategy, Text, assigned
from switchover.coordination.mode import Mode, parsed
from switchover.coordination.registration import Registration
from switchover.coordination.world import Owner
from switchover.coordination.world import World as ZooKeeperWorld
from switchover.engine.effects import Effect
from switchover.groups.coordination.effects import RemoveGuards, SetMode
from switchover.groups.facts import Stored
from switchover.kafka.group import MemberProtocol
from switchover.lag.group import TopicPartition
from unit.group_coordinator import Client
from unit.group_world import RATE, Pod, Workload, World

CLASSIC = MemberProtocol.CLASSIC


def running(kind: str) -> dict[str, Any]:
    """The change that makes a pod run this kind of consumer."""
    return {"env": [{"name": "CONSUMER", "value": kind}]}


@dataclass
class Consumer:
    """One consumer; `session` is its own in ZooKeeper. `lags` seconds pass before it follows a change of mode."""

    name: str
    kind: str
    session: int
    mode: Mode = Mode.ZOOKEEPER
    mode_version: int = -1
    waits: str = ""
    lags: float = 1.0
    sees: float = 0.0
    starts: bool = True


class CoordinatedWorld(World):
    """`first` is what pods run that say nothing else; `half` are migration-enabled consumers that commit to Kafka alone."""

    def __init__(self, *workloads: tuple[str, str, int], first: str = "old", partitions: int = 6, **more: Any) -> None:
        self.first = first
        self.consumers: dict[str, Consumer] = {}
        self.owners: dict[TopicPartition, Owner] = {}
        self.mode: tuple[bytes, int] | None = None
        self.stored: dict[TopicPartition, Stored] = {}
        self.doubles: list[str] = []
        self.half: set[str] = set()
        self.sessions = 0
        super().__init__(*workloads, partitions=partitions, **more)

    # --- members ------------------------------------------------------------------------------------------------------

    def arrives(self, kind: str, host: str = "stranger", ip: str = "10.9.9.9") -> str:
        """A consumer starts, in a pod of ours or elsewhere; its consumer id."""
        self.sessions += 1
        name = f"client-{host}-{self.sessions}" if kind == "kafka" else f"orders_{host}-1795240855786-{self.sessions:08x}"
        self.consumers[name] = Consumer(name, kind, self.sessions)
        if kind != "old":
            assert self.coordinator.join(Client(name, ip, CLASSIC, ("range",)), self.now)
        return name

    def goes(self, name: str) -> None:
        """Cleanly: one that follows Kafka leaves guards."""
        consumer = self.consumers.pop(name)
        guard = Owner(f"guard of {name}", 0) if consumer.mode is Mode.KAFKA else None
        self.owners = {each: left for each, owner in self.owners.items()
                       if (left := owner if owner.session != consumer.session else guard) is not None}
        if consumer.kind != "old":
            self.coordinator.leave(name, self.now)

    def of(self, *kinds: str) -> list[Consumer]:
        return [each for each in self.consumers.values() if each.kind in kinds]

    def _live(self, workload: Workload, pod: Pod) -> None:
        if pod.ends is None and pod.ready and not pod.member_id and not self._is(pod, {*self.crashing, *self.silent}):
            pod.member_id = self.arrives(pod.client.get("CONSUMER", self.first), pod.name, pod.ip)
            return
        super()._live(workload, pod)

    def _leave(self, pod: Pod) -> None:
        if pod.member_id:
            self.goes(pod.member_id)
            pod.member_id = ""

    # --- a second -----------------------------------------------------------------------------------------------------

    def _consume(self) -> None:
        for each in self.of("enabled"):
            self._follow(each)
        self._own()
        self._commit()

    def _follow(self, each: Consumer) -> None:
        """Kafka's mode only while everybody is migration-enabled; ZooKeeper's, to begin with too, only without a
        KafkaConsumer (rule R5).
        """
        data, version = self.mode if self.mode is not None else (None, -1)
        told = parsed(data)
        wanted = Mode.KAFKA if told is Mode.KAFKA and not self.of("old") else Mode.ZOOKEEPER
        each.waits = ""
        if told is Mode.KAFKA and self.of("old"):
            each.waits = f"{self.of('old')[0].name} is not migration-enabled"
        if (each.mode is Mode.KAFKA or each.starts) and wanted is Mode.ZOOKEEPER and self.of("kafka"):
            each.waits = f"{self.of('kafka')[0].name} is a KafkaConsumer"
            return
        follows = version if told is wanted else each.mode_version
        if (wanted, follows) == (each.mode, each.mode_version):
            each.sees = self.now
        elif self.now - each.sees > each.lags:
            each.mode, each.mode_version, each.sees = wanted, follows, self.now
        each.starts = False

    def _own(self) -> None:
        """Everybody lets go of what is not theirs; what is free goes to whom it belongs. Guards stay for Kafka's sake."""
        claims = {each.name: set(self._share(each)) for each in self.of("old", "enabled")}
        for partition, owner in list(self.owners.items()):
            holder = next((each for each in self.consumers.values() if each.session == owner.session), None)
            if holder is not None and partition not in claims[holder.name]:
                del self.owners[partition]
                if holder.mode is Mode.KAFKA:
                    self.owners[partition] = Owner(f"guard of {holder.name}", 0)
                claims = {name: share - {partition} for name, share in claims.items()}
        for each in self.of("old", "enabled"):
            for partition in claims[each.name]:
                there = self.owners.get(partition)
                if there is None or (there.session == 0 and each.kind == "enabled"):
                    self.owners[partition] = Owner(f"{each.name}-0", each.session)

    def _share(self, each: Consumer) -> Iterator[TopicPartition]:
        if each.kind == "enabled" and each.starts:
            return
        if each.mode is Mode.KAFKA:
            yield from self.coordinator.clients[each.name].assigned
            return
        streams: Mapping[str, Mapping[str, int]] = {other.name: {"orders": 1} for other in self.of("old", "enabled")}
        partitions = {"orders": [number for _, number in self.coordinator.partitions]}
        for partition, thread in assigned(Strategy.RANGE, Text.SINCE_1_0, streams, partitions).items():
            if thread == f"{each.name}-0":
                yield partition

    def fetching(self, partition: TopicPartition) -> list[Consumer]:
        """Who fetches it now: whoever owns it in ZooKeeper, and the KafkaConsumer that is assigned it."""
        owner = self.owners.get(partition)
        found = [each for each in self.consumers.values() if owner is not None and each.session == owner.session]
        return found + [each for each in self.of("kafka") if partition in self.coordinator.clients[each.name].assigned]

    def _commit(self) -> None:
        for partition in self.coordinator.partitions:
            found = self.stored.get(partition, Stored(1000, None, 0, 1000) if self.first == "old" else Stored(
                None, 1000, 0, 1000))
            fetching = self.fetching(partition)
            if len(fetching) > 1:
                self.doubles.append(f"{partition}: {' and '.join(each.name for each in fetching)}")
            kinds = {each.kind for each in fetching if each.name not in self.half} | {
                "kafka" for each in fetching if each.name in self.half}
            zookeeper = found.end if kinds & {"old", "enabled"} else found.zookeeper
            kafka = found.end if kinds & {"kafka", "enabled"} else found.kafka
            self.stored[partition] = Stored(zookeeper, kafka, 0, found.end + RATE)
            self.offsets[partition] = (max(zookeeper or 0, kafka or 0), found.end + RATE)

    # --- ZooKeeper ----------------------------------------------------------------------------------------------------

    def perform(self, effect: Effect) -> None:
        match effect:
            case SetMode(_, mode, version):
                self.done.append(effect)
                assert version == (-1 if self.mode is None else self.mode[1]), "the version that was read"
                self.mode = (mode.encode(), version + 1)
            case RemoveGuards(_, partitions):
                self.done.append(effect)
                self.owners = {each: owner for each, owner in self.owners.items()
                               if owner.session or each not in partitions}
            case _:
                super().perform(effect)

    def tree(self) -> ZooKeeperWorld:
        """What a reading of ZooKeeper finds."""
        owned = {each.name: frozenset(partition for partition, owner in self.owners.items() if owner.session == each.session)
                 for each in self.consumers.values()}
        registered = self.of("old", "enabled")
        return ZooKeeperWorld(
            registrations={each.name: Registration({"orders": 1}) for each in registered},
            acknowledgements={each.name: Acknowledgement(each.mode, each.mode_version, 1, owned[each.name], each.waits)
                              for each in self.of("enabled")},
            mode=parsed(self.mode[0]) if self.mode is not None else None,
            mode_data=self.mode[0] if self.mode is not None else b"", mode_version=self.mode[1] if self.mode else -1,
            topics={"orders": [number for _, number in self.coordinator.partitions]} if registered else {},
            owners=dict(self.owners), brokers=frozenset({1}))
