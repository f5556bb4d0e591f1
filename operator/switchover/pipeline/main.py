"""The one entry point of all jobs, which `job_message.Job` lists: each is the package of that name here."""

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from importlib import import_module
from pathlib import Path

from switchover.api.job_message import NONCE, Job, JobMessage, Result
from switchover.pipeline.config import Config, load
from switchover.pipeline.outcome import JobFailed, Outcome, Progress, cause, from_below
from switchover.text.command import command
from switchover.text.visible import printable

Run = Callable[[Config, Progress], Outcome]


def run(job: str, file: Path) -> int:
    """Run one job. 0: it came to its end, whatever its verdict; 2: bad configuration, or it cannot go on (and says why).

    The outcome is printed as one line of JSON in the end, and is the pod's termination message where there is one.
    """
    progress = Progress()
    try:
        config = load(file)
        work: Run = import_module(f"switchover.pipeline.{job}.job").run
        outcome = work(config, progress)
    except JobFailed as error:
        return _refuse(job, str(error))
    except from_below() as error:
        return _refuse(job, cause(error))
    print(_leave(JobMessage(job, Result.SUCCEEDED, verdict=outcome.verdict, evidence=tuple(outcome.evidence), more={
        "rows": outcome.rows, "seconds": round(progress.seconds, 1), **outcome.summary})))
    return 0


def _refuse(job: str, why: str) -> int:
    print(f"{command('switchover pipeline {}', job)}: {printable(why)}", file=sys.stderr)
    _leave(JobMessage(job, Result.FAILED, reason=why))
    return 2


def _leave(message: JobMessage) -> str:
    """The line that is printed, and is the termination message where there is one."""
    line = replace(message, nonce=os.environ.get(NONCE, "")).line()
    if (path := os.environ.get("SWITCHOVER_TERMINATION_MESSAGE")) is not None:
        Path(path).write_text(line, encoding="utf-8")
    return line


def main(arguments: Sequence[str]) -> int:
    """`JOB --config FILE`."""
    parser = argparse.ArgumentParser(prog="switchover pipeline", description="Run one job of the pipeline.")
    parser.add_argument("job", choices=tuple(Job))
    parser.add_argument("--config", type=Path, required=True, metavar="FILE")
    chosen = parser.parse_args(arguments)
    return run(chosen.job, chosen.config)
