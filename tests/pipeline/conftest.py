"""One Spark session for all tests of this directory: a start costs as much as a hundred small jobs."""

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from switchover.pipeline.config import Spark
from switchover.pipeline.session import session


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """`local[2]` with few shuffle partitions and without a UI."""
    options = {"spark.sql.shuffle.partitions": "2", "spark.local.dir": str(tmp_path_factory.mktemp("spark")),
               "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1"}      # few rows: C2 costs more than it saves
    started = session(Spark(memory="700m", options=options), "tests")
    yield started
    started.stop()
