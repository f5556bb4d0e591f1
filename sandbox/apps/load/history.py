"""The history of one application, kept in memory and written to a file once a second, whole and atomically.

The file outlives the process (the volume outlives the container): a start adds a run to what earlier runs left.
"""

import json
import os
import threading
import time
from pathlib import Path
from typing import Any

from history.ranges import Ranges
from load.accounting import Activity


class History:
    """Activity of each partition, acknowledged numbers of each run, and errors."""

    def __init__(self, name: str, path: Path) -> None:
        self.name = name
        self.path = path
        self.run = f"{int(time.time() * 1000):x}"
        self.partitions: dict[int, Activity] = {}
        self.acknowledged: dict[str, dict[int, Ranges]] = {}
        self.errors: dict[str, int] = {}
        self._lock = threading.Lock()
        if path.exists():
            self._load(json.loads(path.read_text()))

    def _load(self, former: dict[str, Any]) -> None:
        for partition, activity in former["partitions"].items():
            self.partitions[int(partition)] = Activity(activity["spans"], activity["records"])
        for run, numbers in former["acknowledged"].items():
            self.acknowledged[run] = {int(p): Ranges(ranges) for p, ranges in numbers.items()}
        self.errors = former["errors"]

    def expect(self, partitions: list[int]) -> None:
        """Name partitions before their first record, so that silence in them counts."""
        with self._lock:
            for partition in partitions:
                self.partitions.setdefault(partition, Activity())

    def note(self, partition: int, number: int | None = None) -> None:
        """A record came; with a number where it was acknowledged to the producer of it."""
        with self._lock:
            self.partitions.setdefault(partition, Activity()).note(time.time())
            if number is not None:
                self.acknowledged.setdefault(self.run, {}).setdefault(partition, Ranges()).add(number, number)

    def error(self, words: str) -> None:
        with self._lock:
            self.errors[words] = self.errors.get(words, 0) + 1

    def write(self) -> None:
        with self._lock:
            now = time.time()
            content = {
                "name": self.name,
                "written": now,
                "records": sum(a.records for a in self.partitions.values()),
                "partitions": {p: {"spans": a.spans, "records": a.records} for p, a in sorted(self.partitions.items())},
                "acknowledged": {
                    run: {p: list(numbers) for p, numbers in sorted(of_run.items())}
                    for run, of_run in self.acknowledged.items()
                },
                "errors": self.errors,
            }
            fresh = self.path.with_suffix(".new")
            fresh.write_text(json.dumps(content))
            os.replace(fresh, self.path)

    def keep_writing(self) -> None:
        """Write once a second from a thread of its own, for as long as the process lives."""

        def loop() -> None:
            while True:
                self.write()
                time.sleep(1)

        threading.Thread(target=loop, name="history", daemon=True).start()
