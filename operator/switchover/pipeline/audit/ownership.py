"""The time axis: who owned which partition, and from when to when.

Kafka's members own by records whose order is exact (the offset in the log): a classic member from its generation's record to
the group's next one, a member of the consumer protocol from one Current record of its own to the next; what it still has to
give back it owns. ZooKeeper's own by ephemeral nodes, of which there is one for a partition at a time.
"""

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as sql

from switchover.coordination.layout import CONSUMERS
from switchover.coordination.mode import Mode
from switchover.pipeline.audit.commits import NAMES, digits

EVER = 2**62
"""Place and time of what has no end yet."""


def in_kafka(ownership: DataFrame, topics: DataFrame) -> DataFrame:
    """NAMES, member, client_id, first, last (places in the log), began, ended (ms): rows of OWNERSHIP as intervals.

    Topics that records name by an id alone have it for a name where no capture saw the topic.
    """
    held = _classic(ownership).unionByName(_consumer(ownership))
    names = topics.where("topic_id is not null").groupBy("topic_id").agg(sql.max("topic").alias("name"))
    return (held.withColumn("of", sql.explode("assigned"))
            .withColumn("topic_id", sql.col("of.topic_id")).join(sql.broadcast(names), "topic_id", "left")
            .select("group", sql.coalesce("of.topic", "name", sql.concat(sql.lit("id:"), "topic_id")).alias("topic"),
                    sql.col("of.partition").alias("partition"), "member", "client_id", "first", "last", "began", "ended")
            .where("first < last"))


def _classic(ownership: DataFrame) -> DataFrame:
    """A generation is one record: a row of the group and one for each member."""
    member = sql.when(sql.col("member").isNotNull(), sql.struct("member", "client_id", "assigned"))
    generations = (ownership.where("record = 'ClassicGroup'").groupBy("group", sql.col("log_offset").alias("first"))
                   .agg(sql.max("time").alias("time"), sql.collect_list(member).alias("members")))
    return (_until_next(generations, "group").withColumn("of", sql.explode("members"))
            .select("group", "of.member", "of.client_id", "of.assigned", "first", "last", "began", "ended"))


def _consumer(ownership: DataFrame) -> DataFrame:
    nothing = sql.array().cast("array<struct<topic:string,topic_id:string,partition:int>>")
    clients = (ownership.where("record = 'Member' and not tombstone").groupBy("group", "member")
               .agg(sql.max_by("client_id", "log_offset").alias("client_id")))
    current = ownership.where("record = 'Current'").select(
        "group", "member", "time", sql.col("log_offset").alias("first"),
        sql.concat(sql.coalesce("assigned", nothing), sql.coalesce("pending", nothing)).alias("assigned"))
    return (_until_next(current, "group", "member").join(clients, ["group", "member"], "left")
            .select("group", "member", "client_id", "assigned", "first", "last", "began", "ended"))


def _until_next(records: DataFrame, *key: str) -> DataFrame:
    """Each from its place and time to those of the next; times that go back are levelled."""
    in_order = Window.partitionBy(*key).orderBy("first")
    at = sql.max("time").over(in_order.rowsBetween(Window.unboundedPreceding, Window.currentRow))
    ever = sql.lit(EVER)
    return records.withColumn("began", at).withColumns(
        {"last": sql.lead("first", 1).over(in_order), "ended": sql.lead("began", 1).over(in_order)}).withColumns(
        {"last": sql.coalesce("last", ever), "ended": sql.coalesce("ended", ever)})


def _path(part: int) -> Column:
    return sql.split("path", "/")[part]


def in_zookeeper(transactions: DataFrame, znodes: DataFrame, last_poll: int) -> DataFrame:
    """NAMES, owner (the consumer's id), began, ended (ms) of ephemeral owner nodes; guards are none.

    Exact where the transaction logs have a node's creation. Else, and where its end is missing although a later poll
    (of a capture that began at `last_poll`, ms) did not find it, it lasts as long as polls saw it.
    """
    ours = (sql.size(sql.split("path", "/")) == 6) & (_path(3) == "owners") & sql.col("path").startswith(f"{CONSUMERS}/")
    in_order = Window.partitionBy("path").orderBy("zxid", "index")
    logged = (transactions.where(ours & (sql.col("op") != "setData"))
              .withColumn("end", sql.lead(sql.struct("time")).over(in_order))
              .where("op = 'create' and ephemeral")
              .select("path", sql.col("zxid").alias("czxid"), "data", sql.col("time").alias("began"), "end.time",
                      sql.lit(None).cast("long").alias("seen")))
    polled = (znodes.where(ours & (sql.col("session") != 0))
              .select("path", "czxid", "data", sql.col("ctime").alias("began"), sql.lit(None).cast("long").alias("time"),
                      sql.col("time").alias("seen")))
    nodes = (logged.unionByName(polled).groupBy("path", "czxid")
             .agg(sql.max("data").alias("data"), sql.min("began").alias("began"), sql.max("time").alias("time"),
                  sql.max("seen").alias("seen")))
    lasting = (sql.coalesce("seen", sql.lit(0)) >= last_poll) | (sql.col("began") >= last_poll)
    ended = sql.coalesce("time", sql.when(lasting, sql.lit(EVER)), "seen", "began")
    return (nodes.select(_path(2).alias("group"), _path(4).alias("topic"), digits(_path(5), "int").alias("partition"),
                         sql.regexp_replace(sql.col("data").cast("string"), r"-[0-9]+\z", "").alias("owner"),
                         "began", ended.alias("ended"))
            .where("partition is not null and began < ended"))


def migration_enabled(transactions: DataFrame, znodes: DataFrame) -> DataFrame:
    """group, member: consumer ids that are or were below `migration/ids`; in Kafka's group they are client ids."""
    paths = transactions.where("op = 'create'").select("path").unionByName(znodes.select("path"))
    return (paths.where(sql.col("path").startswith(f"{CONSUMERS}/") & (sql.size(sql.split("path", "/")) == 6)
                        & (_path(3) == "migration") & (_path(4) == "ids"))
            .select(_path(2).alias("group"), _path(5).alias("member")).distinct())


def in_zookeeper_mode(transactions: DataFrame, znodes: DataFrame) -> DataFrame:
    """group, from, to (ms): when the mode znode did not say `kafka`; only groups that ever had one."""
    mode = ((sql.size(sql.split("path", "/")) == 5) & (_path(3) == "migration") & (_path(4) == "mode")
            & sql.col("path").startswith(f"{CONSUMERS}/"))
    kafka = sql.coalesce(sql.col("data").cast("string") == str(Mode.KAFKA), sql.lit(False))
    logged = transactions.where(mode).select(
        _path(2).alias("group"), sql.col("zxid").alias("first"), "time",
        (kafka & (sql.col("op") != "delete")).alias("kafka"))
    polled = znodes.where(mode).select(
        _path(2).alias("group"), sql.col("mzxid").alias("first"), sql.col("mtime").alias("time"), kafka.alias("kafka"))
    written = logged.unionByName(polled).dropDuplicates(["group", "first"])
    before = written.select("group").distinct().select(
        "group", sql.lit(-1).cast("long").alias("first"), sql.lit(0).cast("long").alias("time"),
        sql.lit(False).alias("kafka"))
    return (_until_next(written.unionByName(before), "group").where("not kafka")
            .select("group", sql.col("began").alias("from"), sql.col("ended").alias("to")))


def consuming(kafka: DataFrame, zookeeper: DataFrame, enabled: DataFrame, zookeeper_mode: DataFrame) -> DataFrame:
    """NAMES, store, who, began, ended: what the owners of the two systems prove about consumption against each other.

    A migration-enabled member consumes only what it has an owner node for, so its assignment by Kafka proves nothing. In
    mode kafka it may hold the node of a partition that Kafka has given away, and does not fetch it.
    """
    consumers = (kafka.join(enabled.withColumnRenamed("member", "client_id"), ["group", "client_id"], "left_anti")
                 .select(*NAMES, sql.lit("kafka").alias("store"), sql.col("member").alias("who"), "began", "ended"))
    known = enabled.select("group", sql.col("member").alias("owner"), sql.lit(True).alias("enabled"))
    nodes = zookeeper.join(known, ["group", "owner"], "left")
    old = nodes.where("enabled is null").select(*NAMES, "owner", "began", "ended")
    both = (nodes.where("enabled").join(zookeeper_mode, "group", "left")
            .select(*NAMES, "owner", sql.greatest("began", "from").alias("began"), sql.least("ended", "to").alias("ended"))
            .where("began < ended"))
    owners = old.unionByName(both).select(*NAMES, sql.lit("zookeeper").alias("store"), sql.col("owner").alias("who"),
                                          "began", "ended")
    return consumers.unionByName(owners)
