"""What a job says while Spark works, in a process of its own where the session must be another than the tests'."""

import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from patience import stretched
from switchover.pipeline import outcome
from switchover.pipeline.outcome import IDLE, Progress

WITHOUT_EXECUTORS = """
import os, threading, time
from switchover.pipeline import progress
from switchover.pipeline.config import Spark
from switchover.pipeline.session import session

progress.EVERY_SECONDS = 0.2
spark = session(Spark(master="local-cluster[0,1,1024]"), "idle")
told = []
shown = progress.Progress()
shown.say = told.append
with shown.of(spark, "counting"):
    threading.Thread(target=spark.range(0, 4, numPartitions=4).count, daemon=True).start()
    while "tasks" not in told[-1]:
        time.sleep(0.1)
print(told[-1], flush=True)
os._exit(0)                    # the count will never end
"""


@pytest.mark.long
def test_a_job_without_executors_says_so(tmp_path: Path) -> None:
    ran = subprocess.run(
        [sys.executable, "-c", WITHOUT_EXECUTORS], capture_output=True, text=True, check=False, timeout=stretched(120),
        cwd=tmp_path)
    assert ran.stdout.splitlines()[-1:] == [f"counting: 0 of 4 tasks{IDLE}"], ran.stderr[-2000:]


def test_spark_in_the_driver_needs_none(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(outcome, "EVERY_SECONDS", 0.05)
    with Progress().of(spark, "sleeping"):
        spark.range(2, numPartitions=2).selectExpr("java_method('java.lang.Thread', 'sleep', 2000L)").collect()
    told = capsys.readouterr().out
    assert "sleeping: 0 of" in told
    assert IDLE not in told
