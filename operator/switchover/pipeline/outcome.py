"""What a job is given, what it says while it runs, and what it ends with, also where it fails from below."""

import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import takewhile
from typing import TYPE_CHECKING, Any

from switchover.text.visible import printable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class JobFailed(Exception):
    """A job cannot go on; says what is wrong and what helps."""


class BadConfig(JobFailed):
    """The configuration cannot be used."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a job found, in short: `summary` fits a termination message, everything else is in the files of its run.

    `rows` counts what it read. `verdict` and `evidence`, in sentences, are for jobs that judge (audit, drift).
    """

    rows: int
    summary: Mapping[str, Any] = field(default_factory=dict)
    verdict: str = ""
    evidence: Sequence[str] = ()


EVERY_SECONDS = 10.0
"""Between two lines on the tasks of one Spark job."""
IDLE = "; no executor is running: kubectl get events shows what its pod waits for"


class Progress:
    """Says lines, and while Spark works how far it has got."""

    def __init__(self) -> None:
        self._began = time.monotonic()

    @property
    def seconds(self) -> float:
        """Since the start."""
        return time.monotonic() - self._began

    def say(self, line: str) -> None:
        """One line."""
        print(f"{self.seconds:7.1f} s  {printable(line)}", flush=True)

    @contextmanager
    def of(self, spark: "SparkSession", what: str) -> Iterator[None]:
        """While the block runs, says every ten seconds how many tasks are done."""
        self.say(what)
        ended = threading.Event()
        reporter = threading.Thread(target=self._report, args=(spark, what, ended), daemon=True)
        reporter.start()
        try:
            yield
        finally:
            ended.set()
            reporter.join()

    def _report(self, spark: "SparkSession", what: str, ended: threading.Event) -> None:
        tracker = spark.sparkContext.statusTracker()
        context = spark.sparkContext._jsc.sc()
        while not ended.wait(EVERY_SECONDS):
            stages = [info for stage in tracker.getActiveStageIds() if (info := tracker.getStageInfo(stage)) is not None]
            done, total = sum(info.numCompletedTasks for info in stages), sum(info.numTasks for info in stages)
            # A driver that runs no task itself is the one entry while it has no executor.
            idle = not context.isLocal() and context.getExecutorMemoryStatus().size() < 2
            self.say((f"{what}: {done} of {total} tasks" if total else f"{what}: under way") + (IDLE if idle else ""))


LONGEST = 1000
"""Characters of a line."""


def from_below() -> tuple[type[Exception], ...]:
    """The exceptions of the libraries that jobs stand on. Spark is imported here, once something was raised."""
    from py4j.protocol import Py4JError
    from pyarrow import ArrowException
    from pyspark.errors import PySparkException

    return OSError, Py4JError, ArrowException, PySparkException


def cause(error: Exception) -> str:
    """The innermost Java exception, which names the file or the host; of a Python worker the last line of its traceback."""
    from pyspark.errors import PythonException

    innermost: Any = getattr(error, "java_exception", None)
    while innermost is not None and (deeper := innermost.getCause()) is not None:
        innermost = deeper
    if innermost is not None:
        lines = innermost.toString().splitlines()
    elif isinstance(error, PythonException):
        lines = str(error).splitlines()[-1:]
    else:
        lines = f"{type(error).__name__}: {error}".splitlines()
    return " ".join(takewhile(lambda line: not line.startswith("\tat "), lines))[:LONGEST]
