"""Spark as tests have it: for few rows, to compile code takes longer than to go without. The jobs in pods run as
a user's do."""

FEW_ROWS = {
    "spark.sql.shuffle.partitions": "2", "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"}
