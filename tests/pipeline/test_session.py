"""The session that the jobs run in."""

import sys

from pyspark.sql import SparkSession


def test_python_workers_run_this_interpreter(spark: SparkSession) -> None:
    found = spark.sparkContext.parallelize([0], 1).map(lambda _: __import__("sys").executable).collect()
    assert found == [sys.executable]


def test_it_listens_on_loopback_alone_and_has_no_page(spark: SparkSession) -> None:
    assert spark.conf.get("spark.driver.host") == "127.0.0.1"
    assert spark.sparkContext.uiWebUrl is None
