"""One Spark session for all tests of this directory: a start costs as much as a hundred small jobs."""

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from pipeline.few_rows import small_session


@pytest.fixture(scope="package")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    with small_session(tmp_path_factory.mktemp("spark")) as started:
        yield started
