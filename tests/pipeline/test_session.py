"""The session that the jobs run in."""

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from switchover.pipeline.outcome import cause, from_below


def test_python_workers_run_this_interpreter(spark: SparkSession) -> None:
    found = spark.sparkContext.parallelize([0], 1).map(lambda _: __import__("sys").executable).collect()
    assert found == [sys.executable]


def test_it_listens_on_loopback_alone_and_has_no_page(spark: SparkSession) -> None:
    assert spark.conf.get("spark.driver.host") == "127.0.0.1"
    assert spark.sparkContext.uiWebUrl is None


def read_damaged(spark: SparkSession, file: Path) -> None:
    file.write_bytes(b"no Parquet at all")
    spark.read.schema("group string").parquet(str(file)).groupBy("group").count().toArrow()


def fail_in_a_worker(spark: SparkSession, file: Path) -> None:
    def full(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from ()
        raise OSError(28, "No space left on device", str(file))

    spark.range(1).mapInArrow(full, "id long").collect()


def write_where_nothing_can_be(spark: SparkSession, file: Path) -> None:
    spark.range(1).write.parquet("/proc/nowhere")


@pytest.mark.parametrize(("fail", "words"), [
    (read_damaged, "{file} is not a Parquet file"),
    (fail_in_a_worker, "OSError: [Errno 28] No space left on device: '{file}'"),
    (write_where_nothing_can_be, "Mkdirs failed to create file:/proc/nowhere"),
])
def test_what_fails_below_a_job_is_named_in_one_line(
        spark: SparkSession, tmp_path: Path, fail: Callable[[SparkSession, Path], None], words: str) -> None:
    file = tmp_path / "here.parquet"
    with pytest.raises(from_below()) as raised:
        fail(spark, file)
    told = cause(raised.value)
    assert words.format(file=file) in told
    assert "\n" not in told
