"""What the migration-enabled consumer costs, on a real ZooKeeper and one broker of 3.9.

    python -m measure_migration toggle handover throughput

toggle      4 members and 48 partitions; the mode goes there and back five times: from the write of the mode znode until
            every member acknowledges it, until the owner nodes are as the mode has them, and the longest time in that in
            which a partition had a record and nobody delivered. Once with one stream each, where both modes give
            everybody the same share, and once with 1, 2, 3 and 4 streams, where they do not.
handover    12 partitions; an old member in Java and migration-enabled ones come and leave in order, five rounds: the same
            gap of each partition that changed its owner.
throughput  records of 1 KB from 6 partitions, one consumer alone in its group, against confluent-kafka's Consumer: in
            batches and one by one, alternating, five runs of each; from the first record to the last.
"""

import os
import statistics
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from adapters.clusters import KafkaCluster, kafka_cluster
from adapters.members import Process
from adapters.trial import Trial, trial
from history.events import Event, Kind, Partition
from history.gaps import Waiting
from history.reader import Reading
from patience import until
from switchover.consumer.migration_consumer import MigrationConsumer
from switchover.coordination.mode import Mode

RATE = "960"                # records a second of the producer: 20 of each of 48 partitions, 80 of each of 12
TIMES = 5
FETCHING = {"auto.offset.reset": "earliest", "fetch.queue.backoff.ms": 5}
"""Of both consumers. By default librdkafka rests for a second when it has 64 MB, which is longer than they last here."""
RECORDS, WARM, SIZE, BATCH = 400_000, 100_000, 1000, 500


def load() -> str:
    return f"load {os.getloadavg()[0]:.0f}"


def figures(values: list[float]) -> str:
    return f"median {statistics.median(values):.2f} s, longest {max(values):.2f} s"


# --- gaps -------------------------------------------------------------------------------------------------------------


def gaps(here: Trial, since: float, until_: float) -> dict[Partition, float]:
    """The longest gap of each partition between two moments, 0 for none that the histories can show (SPAN)."""
    waiting = {partition: Waiting(since) for partition in here.members.partitions}
    for event in events(here):
        if event.mono > until_:
            break
        note(waiting, event)
    found = {partition: each.longest(partition, until_) for partition, each in waiting.items()}
    return {partition: 0.0 if gap is None else gap.seconds for partition, gap in found.items()}


def events(here: Trial) -> Iterator[Event]:
    return Reading(each.history for each in here.members.processes).events()


def note(waiting: Mapping[Partition, Waiting], event: Event) -> None:
    match event.kind:
        case Kind.CLAIM:
            waiting[event.partition].claim(event)
        case Kind.ACKNOWLEDGED:
            waiting[event.partition].acknowledge(event)
        case Kind.DELIVERED:
            waiting[event.partition].deliver(event)


# --- the mode ---------------------------------------------------------------------------------------------------------


def measure_toggles(cluster: KafkaCluster, directory: Path, streams: list[int]) -> None:
    with trial(cluster, directory, partitions=48, RATE=RATE) as here:
        members = [here.member(f"m{number}", session=10, STREAMS=str(each)) for number, each in enumerate(streams)]
        total = sum(streams)
        by_mode = {Mode.KAFKA: [12] * 4, Mode.ZOOKEEPER: shares(48, total, streams)}
        settle(here, members, by_mode[Mode.ZOOKEEPER])
        measured: dict[Mode, list[tuple[float, float, float, float]]] = {Mode.KAFKA: [], Mode.ZOOKEEPER: []}
        for _ in range(TIMES):
            for mode in (Mode.KAFKA, Mode.ZOOKEEPER):
                written = time.monotonic()
                here.toggle(mode)
                acknowledged = time.monotonic()
                settle(here, members, by_mode[mode])
                settled = time.monotonic()
                time.sleep(3)
                measured[mode].append((written, acknowledged - written, settled - written, time.monotonic()))
        here.ends(*members)
        report = here.judged()
        for mode, each in measured.items():
            longest = [max(gaps(here, written, end).values()) for written, _, _, end in each]
            print(f"toggle to {mode}, streams {streams}: acknowledged {figures([took for _, took, _, _ in each])}; owned so "
                  f"{figures([took for _, _, took, _ in each])}; longest gap of a partition {figures(longest)}; {load()}")
        print(*list(report.lines())[-1:], sep="\n", flush=True)


def shares(partitions: int, threads: int, streams: list[int]) -> list[int]:
    """How many partitions ZooKeeper's range gives to each member."""
    counts = [partitions // threads + (number < partitions % threads) for number in range(threads)]
    return [sum(counts.pop(0) for _ in range(each)) for each in streams]


def settle(here: Trial, members: list[Process], owned: list[int]) -> None:
    expected = {process.name: count for process, count in zip(members, owned, strict=True)}
    until(lambda: here.owned() == expected, lambda: f"{expected} instead of {here.owned()}", 120)


# --- hand-over --------------------------------------------------------------------------------------------------------


def measure_handovers(cluster: KafkaCluster, directory: Path) -> None:
    measured: dict[str, list[float]] = {}
    with trial(cluster, directory, partitions=12, RATE=RATE) as here:
        def moved(what: str, change: Callable[[], Any], owned: dict[str, int]) -> Any:
            """Make the change, wait for it, and note the gap of what has another owner then."""
            before, begun = here.world().owners, time.monotonic()
            result = change()
            here.settles(owned, 120)
            time.sleep(2)
            after, found = here.world().owners, gaps(here, begun, time.monotonic())
            measured.setdefault(what, []).extend(
                found[Partition(*each)] for each in before if before[each] != after.get(each))
            return result

        old = here.old("a0")
        here.settles({"a0": 12}, 120)
        for number in range(1, TIMES + 1):
            b, c, d = f"b{number}", f"c{number}", f"a{number}"
            one = moved("Java to Python, Python joins", lambda b=b: here.member(b), {old.name: 6, b: 6})
            moved("Java to Python, Java leaves", old.stop, {b: 12})
            two = moved("Python to Python, one joins", lambda c=c: here.member(c), {b: 6, c: 6})
            moved("Python to Python, one leaves", one.stop, {c: 12})
            old = moved("Python to Java, Java joins", lambda d=d: here.old(d), {c: 6, d: 6})
            moved("Python to Java, Python leaves", two.stop, {d: 12})
        here.ends(old)
        report = here.judged()
    for what, found in measured.items():
        print(f"{what}: {len(found)} partitions, gap {figures(found)}")
    print(*list(report.lines())[-1:], load(), sep="\n", flush=True)


# --- throughput -------------------------------------------------------------------------------------------------------


def fill(cluster: KafkaCluster) -> str:
    """A topic with RECORDS records."""
    topic = uuid.uuid4().hex
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    admin.create_topics([NewTopic(topic, 6, 1)])[topic].result(60)
    producer = Producer({"bootstrap.servers": cluster.bootstrap, "linger.ms": 50, "queue.buffering.max.messages": RECORDS})
    for number in range(RECORDS):
        producer.produce(topic, os.urandom(8) * (SIZE // 8), partition=number % 6)
        producer.poll(0)
    assert producer.flush(60) == 0
    return topic


def plain(cluster: KafkaCluster, topic: str) -> Consumer:
    consumer = Consumer({"bootstrap.servers": cluster.bootstrap, "group.id": uuid.uuid4().hex, **FETCHING})
    consumer.subscribe([topic])
    return consumer


def migrating(cluster: KafkaCluster, topic: str) -> MigrationConsumer:
    consumer = MigrationConsumer({"group.id": uuid.uuid4().hex, "zookeeper.connect": cluster.zookeeper_connect,
                                  **FETCHING})
    consumer.subscribe([topic])
    return consumer


def by_batches(consumer: Any) -> int:
    return sum(message.error() is None for message in consumer.consume(BATCH, 1.0))


def one_by_one(consumer: Any) -> int:
    message = consumer.poll(1.0)
    return int(message is not None and message.error() is None)


def rate(consumer: Any, take: Callable[[Any], int]) -> tuple[float, float]:
    """Records a second, and microseconds of this process's CPU for each, once it is warm."""
    deadline, taken = time.monotonic() + 60, 0
    begun = cpu = 0.0
    while taken < RECORDS:
        if taken < WARM:
            warm, begun, cpu = taken, time.monotonic(), time.process_time()
        taken += take(consumer)
        assert time.monotonic() < deadline, f"{taken} of {RECORDS} records after a minute"
    seconds, cpu = time.monotonic() - begun, time.process_time() - cpu
    consumer.close()
    return (taken - warm) / seconds, cpu / (taken - warm) * 1e6


def measure_throughput(cluster: KafkaCluster) -> None:
    topic = fill(cluster)
    for how, take in (("batches", by_batches), ("one by one", one_by_one)):
        rates: dict[str, list[tuple[float, float]]] = {"plain": [], "migrating": []}
        for _ in range(TIMES):
            rates["plain"].append(rate(plain(cluster, topic), take))
            rates["migrating"].append(rate(migrating(cluster, topic), take))
        medians = {name: [statistics.median(column) for column in zip(*each, strict=True)] for name, each in rates.items()}
        for name, (records, cpu) in medians.items():
            print(f"{how}, {name}: {records:,.0f} records a second, {cpu:.1f} us of CPU each; all runs "
                  f"{', '.join(f'{each:,.0f}' for each, _ in rates[name])}")
        print(f"{how}: {medians['migrating'][0] / medians['plain'][0]:.2f} of plain; {load()}", flush=True)


def main(*what: str) -> None:
    with tempfile.TemporaryDirectory() as name, kafka_cluster(Path(name) / "cluster") as cluster:
        cluster.start_zookeeper_mode()
        if "toggle" in what:
            for streams in ([1, 1, 1, 1], [1, 2, 3, 4]):
                directory = Path(name) / str(sum(streams))
                directory.mkdir()
                measure_toggles(cluster, directory, streams)
        if "handover" in what:
            measure_handovers(cluster, Path(name))
        if "throughput" in what:
            measure_throughput(cluster)


if __name__ == "__main__":
    main(*sys.argv[1:])
