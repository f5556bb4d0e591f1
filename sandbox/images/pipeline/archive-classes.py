"""Makes the archive of Java classes (AppCDS) that sessions start from: those that a small job of every kind loads.

It fits this java and these jars at this path only, so it is made in the image itself, where they are what they will be.
"""

import os
import tempfile
from pathlib import Path

import pandas as pd
import pyarrow as pa
from pyspark import SparkContext

from switchover.pipeline.config import Spark
from switchover.pipeline.session import ARCHIVE, class_path, session

archive = Path(os.environ.pop(ARCHIVE))
spark = session(Spark(options={"spark.driver.extraClassPath": class_path(),
                               "spark.driver.extraJavaOptions": f"-XX:ArchiveClassesAtExit={archive}"}), "archive")
with tempfile.TemporaryDirectory() as directory:
    rows = pd.DataFrame({"group": ["a", "b"] * 500, "partition": range(1000), "time": range(1000)})
    spark.createDataFrame(rows).write.partitionBy("group").parquet(f"{directory}/rows")
    read = spark.read.parquet(f"{directory}/rows").where("partition > 3")
    read.createOrReplaceTempView("read")
    windowed = spark.sql("SELECT *, max(time) OVER (PARTITION BY group ORDER BY partition"
                         " ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS before FROM read")
    counted = read.groupBy("group").count()
    joined = windowed.join(counted, "group").mapInArrow(lambda batches: batches, windowed.join(counted, "group").schema)
    joined.repartition("group").sortWithinPartitions("time").write.json(f"{directory}/joined")
    assert joined.toArrow().num_rows == 996
    grouped = read.groupBy("group").applyInArrow(lambda rows: rows, read.schema)
    assert isinstance(grouped.toArrow(), pa.Table)
java = SparkContext._gateway.proc
spark.stop()
java.stdin.close()               # its end: the archive is written then
assert java.wait(300) == 0
archive.chmod(0o644)
print(f"{archive}: {archive.stat().st_size >> 20} MiB")
