"""One Spark session for all tests of this directory: a start costs as much as a hundred small jobs."""

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from pipeline.few_rows import FEW_ROWS
from switchover.pipeline.config import Spark
from switchover.pipeline.session import session


@pytest.fixture(scope="package")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """`local[2]` for few rows, without a UI."""
    options = {**FEW_ROWS, "spark.local.dir": str(tmp_path_factory.mktemp("spark"))}
    started = session(Spark(memory="700m", options=options), "tests")
    yield started
    started.stop()
