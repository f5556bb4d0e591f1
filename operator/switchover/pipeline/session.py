"""The Spark session of a job."""

import os
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from switchover.pipeline.outcome import BadConfig, cause

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from switchover.pipeline.config import Spark


ARCHIVE = "SWITCHOVER_CLASS_ARCHIVE"
"""The variable that names an archive of Java classes, which the image has: a start then takes half the CPU time."""


def session(settings: "Spark", name: str) -> "SparkSession":
    """A session as the jobs need it; `settings.options` win over what is set here.

    Loopback alone, no UI, UTC, Arrow batches of 100,000 (docs/facts/spark.md#session). Workers run this interpreter:
    they would take `python3` from PATH. In a driver that `spark-submit` started, the master, the memory and the
    addresses are what it was given. Raises BadConfig when Spark does not start with these settings.
    """
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    submitted = "PYSPARK_GATEWAY_PORT" in os.environ
    local = settings.master.startswith("local") and not submitted
    if local:
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")        # else it must be able to resolve the host's own name
    options = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        "spark.sql.execution.arrow.maxRecordsPerBatch": "100000",
        "spark.sql.shuffle.partitions": "8",
        "spark.sql.parquet.compression.codec": "zstd",
        "spark.sql.sources.partitionColumnTypeInference.enabled": "false",
        # Every path that we give is one file: a job that lists them as directories takes longer than all the rest.
        "spark.sql.sources.parallelPartitionDiscovery.threshold": "1000000",
        "spark.local.dir": tempfile.gettempdir(),
        "spark.sql.warehouse.dir": os.path.join(tempfile.gettempdir(), "spark-warehouse"),
        "spark.log.level": "ERROR",
        **({"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"} if local else {}),
        **({} if submitted else {"spark.driver.memory": settings.memory, **_archived()}),
        **settings.options,
    }
    builder = SparkSession.builder.appName(name)
    if not submitted:
        builder = builder.master(settings.master)
    for key, value in options.items():
        builder = builder.config(key, value)
    try:
        return builder.getOrCreate()
    except (PySparkException, Py4JError) as error:
        raise BadConfig(f"Spark does not start: {cause(error)}") from error


def class_path() -> str:
    """All of Spark's jars, by name: an archive is of use with the jars in its own order alone, and the launcher takes them
    in that of the directory."""
    import pyspark

    return os.pathsep.join(str(jar) for jar in sorted((Path(pyspark.__file__).parent / "jars").glob("*.jar")))


def _archived() -> dict[str, str]:
    archive = os.environ.get(ARCHIVE)
    if archive is None:
        return {}
    return {"spark.driver.extraClassPath": class_path(),
            "spark.driver.extraJavaOptions": f"-XX:SharedArchiveFile={archive} -Xshare:auto"}
