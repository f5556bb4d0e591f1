"""The Spark session of a job."""

import os
import sys
import tempfile
from typing import TYPE_CHECKING

from switchover.pipeline.job import BadConfig

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from switchover.pipeline.config import Spark


def session(settings: "Spark", name: str) -> "SparkSession":
    """A session as the jobs need it; `settings.options` win over what is set here.

    Loopback alone, no UI, UTC, Arrow batches of 100,000 (feasibility-spark.md 5). Workers run this interpreter: they would
    take `python3` from PATH. Raises BadConfig when Spark does not start with these settings.
    """
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    local = settings.master.startswith("local")
    options = {
        "spark.driver.memory": settings.memory,
        "spark.ui.enabled": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        "spark.sql.execution.arrow.maxRecordsPerBatch": "100000",
        "spark.sql.shuffle.partitions": "8",
        "spark.sql.parquet.compression.codec": "zstd",
        "spark.sql.sources.partitionColumnTypeInference.enabled": "false",
        "spark.local.dir": tempfile.gettempdir(),
        "spark.sql.warehouse.dir": os.path.join(tempfile.gettempdir(), "spark-warehouse"),
        "spark.log.level": "ERROR",
        **({"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"} if local else {}),
        **settings.options,
    }
    builder = SparkSession.builder.master(settings.master).appName(name)
    for key, value in options.items():
        builder = builder.config(key, value)
    try:
        return builder.getOrCreate()
    except (PySparkException, Py4JError) as error:
        why = getattr(error, "java_exception", None) or error
        raise BadConfig(f"Spark does not start: {str(why).splitlines()[0]:.500}") from error
