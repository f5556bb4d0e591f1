"""One simulated group: members come, go and fail, an operator toggles it, and in the end everything must be right."""

from collections.abc import Callable
from typing import Any

from simulation.coordination.coordinator import Coordinator
from simulation.coordination.loop import Loop
from simulation.coordination.oracle import Oracle
from simulation.coordination.others import KafkaConsumer, Old
from simulation.coordination.ours import Ours
from simulation.coordination.zookeeper import ZooKeeper
from switchover.consumer.member.machine import Member
from switchover.coordination.assignment import Strategy, Text
from switchover.coordination.mode import Mode
from switchover.coordination.world import Owner
from switchover.shared.partition import TopicPartition

CHAOS, QUIET = 60.0, 60.0
"""Seconds in which anything may happen, and in which nothing fails any more."""
TOPICS = ("orders", "pay")


class Story:
    """A run of one seed. `made`, `shell`, `restores_mode` and `admits` are for what must be caught."""

    def __init__(self, seed: int, *, made: type[Member] = Member, shell: type[Ours] = Ours, restores_mode: bool = True,
                 admits: bool = True) -> None:
        self.loop = loop = Loop(seed)
        self.oracle = Oracle(loop)
        self.zookeeper = ZooKeeper(loop, self.oracle)
        for topic in TOPICS:
            for _ in range(loop.random.randint(1, 3)):
                self.zookeeper.add_partition(topic)
        self.coordinator = Coordinator(loop, lambda: self.zookeeper.topics)
        self.made, self.shell, self.restores_mode, self.admits = made, shell, restores_mode, admits
        self.old: list[Old] = []
        self.ours: list[Ours] = []
        self.kafka: list[KafkaConsumer] = []
        self.told: list[str] = []
        self._names = 0
        self._clean_kafka = 0
        self._turned_back = False
        self._intruder = ""
        self._present: dict[str, float] = {}

    # --- what the world is ----------------------------------------------------------------------------------------------

    def _alive(self, members: list[Any]) -> list[Any]:
        return [each for each in members if each.alive]

    def name(self, kind: str) -> str:
        self._names += 1
        return f"g_{kind}{self._names:02d}"

    def run(self) -> "Story":
        """The whole story. Raises Broken."""
        random = self.loop.random
        for _ in range(random.randint(1, 3)):
            random.choice([self.start_old, self.start_old, self.start_ours])()
        self._operate()
        self._watch_kafka()
        while self.loop.now < CHAOS:
            self.loop.run(self.loop.now + self.loop.between(0.2, 6.0))
            self._act()
        self._settle()
        self.loop.run(CHAOS + QUIET)
        self._check_in_the_end()
        return self

    def _act(self) -> None:
        random = self.loop.random
        orderly: list[Callable[[], None]] = [
            self.start_ours, self.start_ours, self.stop_old, self.stop_old, self.mode_kafka, self.mode_kafka,
            self.mode_kafka, self.start_kafka, self.start_kafka, self.stop_kafka, self.mode_zookeeper, self.start_old,
            self.stop_ours,
        ]
        chaos: list[Callable[[], None]] = [
            self.crash_old, self.crash_ours, self.crash_kafka, self.freeze, self.cut_off, self.cut_off_from_kafka,
            self.outage, self.coordinator_away, self.delete_mode, self.junk_mode, self.delete_owner, self.add_partition,
            self.restart_old, self.start_kafka_unasked,
        ]
        act = random.choice(orderly if random.random() < 0.7 else chaos)
        act()

    def _tell(self, words: str) -> None:
        self.told.append(f"{self.loop.now:8.3f} {words}")

    # --- members --------------------------------------------------------------------------------------------------------

    def start_old(self) -> None:
        if len(self._alive(self.old)) < 3:
            self.old.append(Old(self.name("old"), self.loop, self.zookeeper, self.oracle, TOPICS))
            self._tell(f"start {self.old[-1].name}")

    def start_ours(self, slow: float | None = None, enabled: bool = False) -> None:
        if len(self._alive(self.ours)) < 4:
            random = self.loop.random
            delay = slow if slow is not None else 10.0 if random.random() < 0.1 else 0.0
            enabled = random.random() < 0.93 or bool(self._alive(self.kafka)) or enabled
            self.ours.append(self.shell(
                self.name("our" if enabled else "plain"), self.loop, self.zookeeper, self.coordinator, self.oracle, TOPICS,
                enabled=enabled, slow=delay, made=self.made))
            self._tell(f"start {self.ours[-1].name}{' slow' if delay else ''}")

    def start_kafka(self) -> None:
        """The operator's gates: every member has acknowledged kafka mode, and no old one is there; members hold what Kafka
        assigns them, and Kafka's offsets are not behind ZooKeeper's."""
        world = self.zookeeper.world()
        acknowledged = all(
            told is not None and told.mode is Mode.KAFKA and told.mode_version == world.mode_version and not told.waits
            for told in world.acknowledgements.values())
        shares, offsets = self.coordinator.shares(), self.coordinator.offsets
        converged = all(told is not None and told.owned == shares.get(name, frozenset())
                        for name, told in world.acknowledgements.items())
        reached = all(offsets.get(partition, -1) >= offset for partition, offset in self.zookeeper.offsets.items())
        fits = (world.mode is Mode.KAFKA and not world.old and world.acknowledgements and acknowledged and converged
                and reached and not self._turned_back)
        if len(self._alive(self.kafka)) < 2 and (fits or not self.admits):
            self._add_kafka()

    def _add_kafka(self) -> None:
        name = self.name("kc")
        self.kafka.append(KafkaConsumer(name, self.loop, self.coordinator, self.oracle, TOPICS))
        self._tell(f"start {name}")

    def start_kafka_unasked(self) -> None:
        """Scaled by somebody else, while others of them run already."""
        if self._alive(self.kafka) and len(self._alive(self.kafka)) < 3 and not self._turned_back:
            self._add_kafka()

    def _one(self, members: list[Any], act: str, seconds: float | None = None) -> None:
        alive = self._alive(members)
        if alive:
            chosen = self.loop.random.choice(alive)
            self._tell(f"{act} {chosen.name}{'' if seconds is None else f' for {seconds:.1f} s'}")
            getattr(chosen, act)(*(() if seconds is None else (seconds,)))

    def stop_old(self) -> None:
        if len(self._alive(self.old)) > 1 or self._alive(self.ours):
            self._one(self.old, "close")

    def stop_ours(self) -> None:
        if len(self._alive(self.ours)) > 1 or self._alive(self.kafka) or self._alive(self.old):
            self._one(self.ours, "close")

    def stop_kafka(self) -> None:
        if self._alive(self.ours):
            self._one(self.kafka, "close")

    def crash_old(self) -> None:
        self._one(self.old, "crash")

    def crash_ours(self) -> None:
        self._one(self.ours, "crash")

    def crash_kafka(self) -> None:
        self._one(self.kafka, "crash")

    def restart_old(self) -> None:
        """Five times, as a pod that is beside itself."""
        for turn in range(5):
            self.loop.after(turn * 3.0, lambda: self.loop.now < CHAOS and self.start_old())
            self.loop.after(turn * 3.0 + 1.5, lambda: self.loop.now < CHAOS and self._one(self.old, "close"))

    def freeze(self) -> None:
        self._one(self.ours, "freeze", self.loop.between(0.5, 15.0))

    def cut_off(self) -> None:
        self._one(self.ours, "cut_off", self.loop.between(0.5, 15.0))

    def cut_off_from_kafka(self) -> None:
        self._one(self.ours, "cut_off_from_kafka", self.loop.between(0.5, 15.0))

    def outage(self) -> None:
        seconds = self.loop.between(0.5, 12.0)
        self._tell(f"ZooKeeper away for {seconds:.1f} s")
        self.zookeeper.down_until = self.loop.now + seconds
        for each in self._alive(self.ours):
            each.outage(seconds)

    def coordinator_away(self) -> None:
        seconds = self.loop.between(0.5, 12.0)
        self._tell(f"coordinator away for {seconds:.1f} s")
        self.coordinator.down_until = self.loop.now + seconds

    def add_partition(self) -> None:
        topic = self.loop.random.choice(TOPICS)
        if len(self.zookeeper.topics[topic]) < 6:
            self._tell(f"a partition more of {topic}")
            self.zookeeper.add_partition(topic)
            self.oracle.unguarded = self.oracle.unguarded or not any(
                each.member.rules.enabled for each in self._alive(self.ours))
            self.loop.after(self.loop.between(0.1, 5.0), self.coordinator.metadata)

    def delete_owner(self) -> None:
        """By hand; of one of ours that is told of it: not of an old member, nor of one that stands still or is cut off."""
        sessions = {each._session.number for each in self._alive(self.ours)
                    if each._session is not None and each.connected and not each.frozen}
        nodes = [each for each, owner in self.zookeeper.owners.items() if owner.session in sessions]
        if nodes and self.zookeeper.is_up:
            partition = self.loop.random.choice(nodes)
            self._tell(f"delete the owner node of {partition}")
            self.oracle.by_hand[partition] = self.loop.now
            self.zookeeper.delete_owner(partition)

    # --- the mode -------------------------------------------------------------------------------------------------------

    def _write_mode(self, data: bytes | None, words: str) -> None:
        self._tell(words)
        self.zookeeper.write_mode(data)

    def mode_kafka(self) -> None:
        if self.zookeeper.world().mode is not Mode.KAFKA and not self._turned_back and (
                not self.zookeeper.world().old or self.loop.random.random() < 0.1):
            self._write_mode(b"kafka", "mode kafka")

    def mode_zookeeper(self) -> None:
        """Only when every KafkaConsumer is gone, seen twice."""
        if self.zookeeper.world().mode is Mode.KAFKA and self._clean_kafka >= 2:
            self._write_mode(b"zookeeper", "mode zookeeper")

    def delete_mode(self) -> None:
        if self.zookeeper.mode_version >= 0:
            self._restore_later(self.zookeeper.mode_data)
            self._write_mode(None, "mode deleted by hand")

    def junk_mode(self) -> None:
        if self.zookeeper.mode_version >= 0:
            self._restore_later(self.zookeeper.mode_data)
            self._write_mode(self.loop.random.choice([b"kafka\n", b"", b"zookeeper ", b"KAFKA"]), "mode made junk by hand")

    def _restore_later(self, data: bytes) -> None:
        if data not in (b"kafka", b"zookeeper"):
            return
        def restore() -> None:
            if self.zookeeper.world().mode is None:
                back = b"kafka" if self._clean_kafka < 2 else data
                self._write_mode(back, f"mode restored to {back.decode()}")
        self.loop.after(self.loop.between(1.0, 8.0), restore)

    def _operate(self) -> None:
        """Once a second: what the operator sees, and rule R7, of an old member that has gone again meanwhile as well."""
        self.loop.after(1.0, self._operate)
        names = {each.name for each in self.kafka}
        clean = not self._alive(self.kafka) and not names & self.coordinator.members.keys()
        self._clean_kafka = self._clean_kafka + 1 if clean else 0
        world = self.zookeeper.world()
        self._intruder = "" if world.mode is not Mode.KAFKA else next(iter(world.old), self._intruder)
        if self.restores_mode and self._intruder and self._clean_kafka >= 2:
            self._write_mode(b"zookeeper", f"mode zookeeper, because of {self._intruder}")

    def _watch_kafka(self) -> None:
        """Since when each KafkaConsumer has been in the group without a break, for Z7."""
        self.loop.after(0.5, self._watch_kafka)
        present = {each.name for each in self._alive(self.kafka)} & self.coordinator.members.keys()
        since = {name: self._present.get(name, self.loop.now) for name in present}
        self._present = since
        for each in self.ours:
            each.last_seen_kafka = since

    # --- the end --------------------------------------------------------------------------------------------------------

    def _settle(self) -> None:
        """Faults stop, and the operator ends strays: old members beside KafkaConsumers, a mode that says nothing."""
        self._tell("faults stop")
        self._turned_back = True
        if self._alive(self.kafka):
            self._tell("whoever knows nothing of KIP-125 is ended: KafkaConsumers run")
            for each in self._alive(self.old) + [each for each in self._alive(self.ours) if not each.member.rules.enabled]:
                each.close()
        if not self._alive(self.kafka) and all(
                each.closing or not each.member.rules.enabled for each in self._alive(self.ours)):
            self.start_ours(slow=0.0, enabled=True)         # guards go with a migration-enabled member alone
        def decide() -> None:
            world = self.zookeeper.world()
            data = b"kafka" if self._alive(self.kafka) or (world.mode is Mode.KAFKA and not world.old) else b"zookeeper"
            if world.mode_data != data:
                self._write_mode(data, f"mode {data.decode()} in the end")
        self.loop.after(15.0, decide)
        self.loop.after(20.0, decide)

    def _check_in_the_end(self) -> None:
        """Z10: one consumer each. Z11: every acknowledgement is that of the mode, and the owners are the intended ones."""
        world, oracle = self.zookeeper.world(), self.oracle
        for topic, numbers in world.topics.items():
            for number in numbers:
                partition = TopicPartition(topic, number)
                oracle.check("Z10", partition in oracle.open or bool(oracle.excused),
                             f"nobody consumes {partition}; its owner node is {world.owners.get(partition)}")
        if not world.acknowledgements:
            return
        for name, told in world.acknowledgements.items():
            oracle.check("Z11", told is not None and told.mode is world.mode and told.mode_version == world.mode_version
                         and not told.waits, f"{name} acknowledged {told}, the mode is {world.mode} {world.mode_version}")
        if world.mode is Mode.ZOOKEEPER:
            intended = world.intended(Strategy.RANGE, Text.SINCE_1_0)
            owned = {partition: owner.thread for partition, owner in world.owners.items()}
            oracle.check("Z11", owned == intended, f"owners are {owned}, intended {intended}")
        else:
            for partition, delivery in oracle.open.items():
                owner = world.owners.get(partition, Owner(""))
                right = owner.thread.startswith(f"{delivery.member}-") or not owner.session
                oracle.check("Z11", right, f"{delivery.member} consumes {partition}, whose owner node is {owner}")
