"""What captures have filed, as Spark reads it."""

from typing import TYPE_CHECKING

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from switchover.pipeline.tables import SCHEMAS

if TYPE_CHECKING:
    from switchover.pipeline.store import Store


def read(spark: SparkSession, store: "Store", table: str) -> DataFrame:
    """A table in full: what was before the range is needed too, to know where a group stood. Raises JobFailed."""
    return rows(spark, table, store.files(table))


def newest(spark: SparkSession, store: "Store", table: str) -> DataFrame:
    """What the last capture found, where each captures all there is: what is gone is not in it. Raises JobFailed."""
    return rows(spark, table, store.newest(table))


def rows(spark: SparkSession, table: str, files: list[str]) -> DataFrame:
    """What these files hold of a table; empty without any."""
    schema = from_arrow_schema(SCHEMAS[table])
    assert isinstance(schema, StructType)
    return spark.read.schema(schema).parquet(*files) if files else spark.createDataFrame([], schema)
