"""Spark as tests have it: for few rows, to compile code and to plan again takes longer than to go without. The jobs in pods
run as a user's do."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pyspark.sql import SparkSession

from switchover.pipeline.config import Spark
from switchover.pipeline.session import session

FEW_ROWS = {
    "spark.sql.shuffle.partitions": "1", "spark.sql.adaptive.enabled": "false", "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"}


@contextmanager
def small_session(directory: Path) -> Iterator[SparkSession]:
    """`local[2]` for few rows, without a UI; its own files in `directory`."""
    started = session(Spark(memory="700m", options={**FEW_ROWS, "spark.local.dir": str(directory)}), "tests")
    yield started
    started.stop()
