"""Judges histories: python -m history report FILE... [--expect TOPIC=PARTITIONS]"""

import argparse
import sys
from collections.abc import Iterable
from pathlib import Path

from history.checker import check
from history.events import Partition
from history.reader import Reading


def partitions(words: str) -> list[Partition]:
    """The partitions of `orders=12`."""
    topic, equals, count = words.rpartition("=")
    if not (topic and equals and count.isdigit()):
        raise argparse.ArgumentTypeError(f"not TOPIC=PARTITIONS: {words}")
    return [Partition(topic, number) for number in range(int(count))]


def report(paths: Iterable[Path], expected: Iterable[Partition]) -> int:
    """Print the report: 0 without an overlap, a rewind or a loss, 1 with one, 2 where nothing could be judged."""
    reading = Reading(paths)
    try:
        judged = check(reading.events(), expected)
    except (OSError, ValueError) as problem:
        print(f"history: not judged: {problem}", file=sys.stderr)
        return 2
    judged.notes += reading.notes()
    for line in judged.lines():
        print(line)
    return 1 if judged.faults else 0


def main() -> int:
    parser = argparse.ArgumentParser(prog="history", description=__doc__)
    parser.add_argument("command", choices=["report"])
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--expect", type=partitions, action="append", default=[], help="partitions that must have an owner")
    given = parser.parse_args()
    return report(given.files, [each for topic in given.expect for each in topic])


if __name__ == "__main__":
    sys.exit(main())
