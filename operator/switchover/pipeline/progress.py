"""What a job says while it runs: plain lines with the seconds since its start, on standard output."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from switchover.text.visible import printable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EVERY_SECONDS = 10.0
"""Between two lines on the tasks of one Spark job."""
IDLE = "; no executor is running: kubectl get events tells what its pod waits for"


class Progress:
    """Says lines, and while Spark works how far it has got."""

    def __init__(self) -> None:
        self._began = time.monotonic()

    @property
    def seconds(self) -> float:
        """Since the start."""
        return time.monotonic() - self._began

    def say(self, words: str) -> None:
        """One line."""
        print(f"{self.seconds:7.1f} s  {printable(words)}", flush=True)

    @contextmanager
    def of(self, spark: "SparkSession", what: str) -> Iterator[None]:
        """While the block runs, tells every ten seconds how many tasks are done."""
        self.say(what)
        ended = threading.Event()
        teller = threading.Thread(target=self._tell, args=(spark, what, ended), daemon=True)
        teller.start()
        try:
            yield
        finally:
            ended.set()
            teller.join()

    def _tell(self, spark: "SparkSession", what: str, ended: threading.Event) -> None:
        tracker = spark.sparkContext.statusTracker()
        context = spark.sparkContext._jsc.sc()
        while not ended.wait(EVERY_SECONDS):
            stages = [info for stage in tracker.getActiveStageIds() if (info := tracker.getStageInfo(stage)) is not None]
            done, total = sum(info.numCompletedTasks for info in stages), sum(info.numTasks for info in stages)
            # A driver that runs no task itself is the one entry while it has no executor.
            idle = not context.isLocal() and context.getExecutorMemoryStatus().size() < 2
            self.say((f"{what}: {done} of {total} tasks" if total else f"{what}: under way") + (IDLE if idle else ""))
