"""How fast one core decodes offset commits: ours, and record loops in Python.

    python -m measure_decode [MILLIONS]

Synthetic records as 50 log partitions hold them, 1,000 keys in each, 60 % value version 3, 35 % version 4 with a topic id,
2 % version 1, 3 % tombstones. Each way runs in a process of its own; making the records and the first batch are not timed.
The loops are given bytes that Python already holds, and leave tuples, which favours them: ours leaves Arrow columns, what
Parquet is written from. kio and kafka-python have no decoder of these records; the loops use their readers of primitive
values. kafka-python is measured where it can be imported (3.x), and is not one of our dependencies.
"""

import importlib
import io
import json
import os
import resource
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from switchover.pipeline.records.commits import split
from unit.pipeline.record_bytes import commit_key, commit_value

LOGS, KEYS = 50, 1000
ID = (0, bytes(range(16)))
Batch = tuple[list[bytes], list[bytes | None]]
Commit = tuple[str, str, int, int | None, int | None, int | None]
"""Group, topic, partition, offset, leader epoch, time."""
Totals = tuple[int, int, int, int]


def batches(records: int) -> Iterator[Batch]:
    each = records // LOGS
    for log in range(LOGS):
        keys = [commit_key(f"group-{log}-{i // 50}", f"topic-{i // 500}", i % 50) for i in range(KEYS)]
        yield [keys[i % KEYS] for i in range(each)], [value(log * each + i) for i in range(each)]


def value(number: int) -> bytes | None:
    kind = number * 7 % 100
    if kind >= 97:
        return None
    version = 1 if kind >= 95 else 4 if kind >= 60 else 3
    return commit_value(version, number, 1_700_000_000_000 + number, epoch=number % 9, tagged=[ID] if version == 4 else [])


# --- The ways: a batch's commits, and their totals for comparison -----------------------------------------------------


def ours(batch: Batch) -> pa.Table:
    return ours_of_arrow((pa.array(batch[0], pa.binary()), pa.array(batch[1], pa.binary())))


def ours_of_arrow(batch: tuple[pa.Array, pa.Array]) -> pa.Table:
    places = np.arange(len(batch[0]))
    return split(batch[0], batch[1], places, places, 0).commits


def by_struct(batch: Batch) -> list[Commit]:
    read, int16, key_end = [], struct.Struct(">h").unpack_from, struct.Struct(">i").unpack_from
    old, new, time_of = struct.Struct(">q").unpack_from, struct.Struct(">qi").unpack_from, struct.Struct(">q").unpack_from
    for key, value in zip(*batch, strict=True):
        if int16(key)[0] > 1:
            continue
        at = 4 + int16(key, 2)[0]
        group = key[4:at].decode()
        end = at + 2 + int16(key, at)[0]
        topic, partition = key[at + 2:end].decode(), key_end(key, end)[0]
        if value is None:
            read.append((group, topic, partition, None, None, None))
            continue
        version = int16(value)[0]
        if version < 3:
            offset, epoch, at = old(value, 2)[0], -1, 10
        else:
            (offset, epoch), at = new(value, 2), 14
        if version < 4:
            at += 2 + int16(value, at)[0]
        else:
            length = shift = 0
            while True:
                byte = value[at]
                at += 1
                length |= (byte & 0x7F) << shift
                shift += 7
                if byte < 0x80:
                    break
            at += length - 1
        read.append((group, topic, partition, offset, epoch, time_of(value, at)[0]))
    return read


def by_kio() -> Callable[[Batch], list[Commit]]:
    of = importlib.import_module("kio.serial.readers")
    int16, int32, int64, text, compact = (
        of.read_int16, of.read_int32, of.read_int64, of.read_legacy_string, of.read_compact_string)

    def loop(batch: Batch) -> list[Commit]:
        read = []
        for key, value in zip(*batch, strict=True):
            if int16(key, 0)[0] > 1:
                continue
            group, size = text(key, 2)
            topic, more = text(key, 2 + size)
            partition = int32(key, 2 + size + more)[0]
            if value is None:
                read.append((group, topic, partition, None, None, None))
                continue
            version, at = int16(value, 0)[0], 10
            offset, epoch = int64(value, 2)[0], -1
            if version >= 3:
                epoch, at = int32(value, 10)[0], 14
            at += (compact if version >= 4 else text)(value, at)[1]
            read.append((group, topic, partition, offset, epoch, int64(value, at)[0]))
        return read
    return loop


def by_kafka_python() -> Callable[[Batch], list[Commit]]:
    of = importlib.import_module("kafka.protocol.schemas.fields.codecs.types")
    int16, int32, int64, text = of.Int16.decode, of.Int32.decode, of.Int64.decode, of.String().decode

    def loop(batch: Batch) -> list[Commit]:
        read = []
        for key, value in zip(*batch, strict=True):
            data = io.BytesIO(key)
            if int16(data) > 1:
                continue
            group, topic, partition = text(data), text(data), int32(data)
            if value is None:
                read.append((group, topic, partition, None, None, None))
                continue
            data = io.BytesIO(value)
            version, offset = int16(data), int64(data)
            epoch = int32(data) if version >= 3 else -1
            text(data, compact=version >= 4)
            read.append((group, topic, partition, offset, epoch, int64(data)))
        return read
    return loop


def totals(read: Any) -> Totals:
    """Sums of offsets, times and epochs, and of the lengths of names."""
    if isinstance(read, pa.Table):
        columns = [read["offset"], read["commit_time"], read["leader_epoch"],
                   pc.add(pc.utf8_length(read["group"]), pc.utf8_length(read["topic"]))]
        offset, times, epoch, names = (int(pc.sum(column).as_py()) for column in columns)
        return offset, times, epoch, names
    offset, times, epoch = (sum(row[column] or 0 for row in read) for column in (3, 5, 4))
    return offset, times, epoch, sum(len(row[0]) + len(row[1]) for row in read)


WAYS: dict[str, Callable[[], Callable[[Any], Any]]] = {
    "ours, of Arrow arrays": lambda: ours_of_arrow,
    "ours, of lists of bytes": lambda: ours,
    "loop with struct": lambda: by_struct,
    "loop with kio's readers": by_kio,
    "loop with kafka-python's": by_kafka_python,
}


def measure(way: str, records: int) -> None:
    """In a process of its own; prints JSON."""
    try:
        decode = WAYS[way]()
    except ImportError as error:
        print(json.dumps({"missing": str(error)}))
        return
    wall = cpu = 0.0
    found = np.zeros(4, np.int64)
    for number, batch in enumerate(batches(records)):
        given: Any = batch if decode is not ours_of_arrow else tuple(pa.array(column, pa.binary()) for column in batch)
        before = time.perf_counter(), time.process_time()
        read = decode(given)
        if number:                              # the first one imports and allocates
            wall, cpu = wall + time.perf_counter() - before[0], cpu + time.process_time() - before[1]
        found += totals(read)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    print(json.dumps({"wall": wall, "cpu": cpu, "peak": peak, "totals": found.tolist()}))


def main(records: int) -> None:
    print(f"{records:,} records in batches of {records // LOGS:,}, load average {os.getloadavg()[0]:.1f}")
    print(f"{'':26}{'wall s':>8}{'CPU s':>8}{'records/CPU-s':>16}{'peak RSS MiB':>14}")
    seen, timed = set(), records // LOGS * (LOGS - 1)
    for way in WAYS:
        done = subprocess.run([sys.executable, "-m", "measure_decode", str(records), way],
                              capture_output=True, text=True, check=True)
        told = json.loads(done.stdout)
        if "missing" in told:
            print(f"{way:26}not measured: {told['missing']}")
            continue
        print(f"{way:26}{told['wall']:8.2f}{told['cpu']:8.2f}{timed / told['cpu']:16,.0f}{told['peak']:14}", flush=True)
        seen.add(tuple(told["totals"]))
    assert len(seen) == 1, f"the ways do not agree: {seen}"


if __name__ == "__main__":
    if len(sys.argv) > 2:
        measure(sys.argv[2], int(sys.argv[1]))
    else:
        main(int(float(sys.argv[1]) * 1_000_000) if len(sys.argv) > 1 else 2_000_000)
