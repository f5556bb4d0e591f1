"""The time axis: who owned which partition, and from when to when.

Kafka's members own by records whose order is exact (the offset in the log): a classic member from its generation's record to
the group's next one, a member of the consumer protocol from one Current record of its own to the next; what it still has to
give back it owns. ZooKeeper's own by ephemeral nodes, of which there is one for a partition at a time. Members of the
consumer protocol own a topic by its id; the others whatever topic has the name.
"""

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as f

from switchover.coordination.layout import CONSUMERS
from switchover.coordination.mode import Mode
from switchover.pipeline.audit.commits import NAMES, WHICH, digits
from switchover.pipeline.bronze import ID

EVER = 2**62
"""Place and time of what has no end yet."""


def in_kafka(ownership: DataFrame, named: DataFrame) -> DataFrame:
    """WHICH, member, client_id, first, last (places in the log), began, ended (ms): rows of OWNERSHIP as intervals.

    `named` are topic and topic_id of whatever has both. Topics that records name by an id alone have it for a name where
    nothing has theirs; those that they name have no id.
    """
    held = _classic(ownership).unionByName(_consumer(ownership))
    names = named.where("topic_id is not null").groupBy(ID).agg(f.max("topic").alias("name"))
    return (held.withColumn("of", f.explode("assigned"))
            .withColumn(ID, f.col("of.topic_id")).join(f.broadcast(names), ID, "left")
            .select("group", f.coalesce("of.topic", "name", f.concat(f.lit("id:"), ID)).alias("topic"),
                    f.col("of.partition").alias("partition"), ID, "member", "client_id", "first", "last", "began", "ended")
            .where("first < last"))


def _classic(ownership: DataFrame) -> DataFrame:
    """A generation is one record: a row of the group and one for each member."""
    member = f.when(f.col("member").isNotNull(), f.struct("member", "client_id", "assigned"))
    generations = (ownership.where("record = 'ClassicGroup'").groupBy("group", f.col("log_offset").alias("first"))
                   .agg(f.max("time").alias("time"), f.collect_list(member).alias("members")))
    return (_until_next(generations, "group").withColumn("of", f.explode("members"))
            .select("group", "of.member", "of.client_id", "of.assigned", "first", "last", "began", "ended"))


def unread(ownership: DataFrame) -> DataFrame:
    """group, ended (ms): each classic member whose assignment could not be read, and until when that stood."""
    return _classic(ownership).where("assigned is null").select("group", "ended")


def _consumer(ownership: DataFrame) -> DataFrame:
    nothing = f.array().cast("array<struct<topic:string,topic_id:string,partition:int>>")
    clients = (ownership.where("record = 'Member' and not tombstone").groupBy("group", "member")
               .agg(f.max_by("client_id", "log_offset").alias("client_id")))
    current = ownership.where("record = 'Current'").select(
        "group", "member", "time", f.col("log_offset").alias("first"),
        f.concat(f.coalesce("assigned", nothing), f.coalesce("pending", nothing)).alias("assigned"))
    return (_until_next(current, "group", "member").join(clients, ["group", "member"], "left")
            .select("group", "member", "client_id", "assigned", "first", "last", "began", "ended"))


def _until_next(records: DataFrame, *key: str) -> DataFrame:
    """Each from its place and time to those of the next; times that go back are levelled."""
    in_order = Window.partitionBy(*key).orderBy("first")
    at = f.max("time").over(in_order.rowsBetween(Window.unboundedPreceding, Window.currentRow))
    ever = f.lit(EVER)
    return records.withColumn("began", at).withColumns(
        {"last": f.lead("first", 1).over(in_order), "ended": f.lead("began", 1).over(in_order)}).withColumns(
        {"last": f.coalesce("last", ever), "ended": f.coalesce("ended", ever)})


def _path(part: int) -> Column:
    return f.split("path", "/")[part]


def in_zookeeper(transactions: DataFrame, znodes: DataFrame, last_poll: int) -> DataFrame:
    """NAMES, owner (the consumer's id), began, ended (ms) of ephemeral owner nodes; guards are none.

    Exact where the transaction logs have a node's creation. Else, and where its end is missing although a later poll
    (of a capture that began at `last_poll`, ms) did not find it, it lasts as long as polls saw it.
    """
    ours = (f.size(f.split("path", "/")) == 6) & (_path(3) == "owners") & f.col("path").startswith(f"{CONSUMERS}/")
    in_order = Window.partitionBy("path").orderBy("zxid", "index")
    logged = (transactions.where(ours & (f.col("op") != "setData"))
              .withColumn("end", f.lead(f.struct("time")).over(in_order))
              .where("op = 'create' and ephemeral")
              .select("path", f.col("zxid").alias("czxid"), "data", f.col("time").alias("began"), "end.time",
                      f.lit(None).cast("long").alias("seen")))
    polled = (znodes.where(ours & (f.col("session") != 0))
              .select("path", "czxid", "data", f.col("ctime").alias("began"), f.lit(None).cast("long").alias("time"),
                      f.col("time").alias("seen")))
    nodes = (logged.unionByName(polled).groupBy("path", "czxid")
             .agg(f.max("data").alias("data"), f.min("began").alias("began"), f.max("time").alias("time"),
                  f.max("seen").alias("seen")))
    lasting = (f.coalesce("seen", f.lit(0)) >= last_poll) | (f.col("began") >= last_poll)
    ended = f.coalesce("time", f.when(lasting, f.lit(EVER)), "seen", "began")
    return (nodes.select(_path(2).alias("group"), _path(4).alias("topic"), digits(_path(5), "int").alias("partition"),
                         f.regexp_replace(f.col("data").cast("string"), r"-[0-9]+\z", "").alias("owner"),
                         "began", ended.alias("ended"))
            .where("partition is not null and began < ended"))


def migration_enabled(transactions: DataFrame, znodes: DataFrame) -> DataFrame:
    """group, member: consumer ids that are or were below `migration/ids`; in Kafka's group they are client ids."""
    paths = transactions.where("op = 'create'").select("path").unionByName(znodes.select("path"))
    return (paths.where(f.col("path").startswith(f"{CONSUMERS}/") & (f.size(f.split("path", "/")) == 6)
                        & (_path(3) == "migration") & (_path(4) == "ids"))
            .select(_path(2).alias("group"), _path(5).alias("member")).distinct())


def in_zookeeper_mode(transactions: DataFrame, znodes: DataFrame) -> DataFrame:
    """group, from, to (ms): when the mode znode did not say `kafka`; only groups that ever had one."""
    mode = ((f.size(f.split("path", "/")) == 5) & (_path(3) == "migration") & (_path(4) == "mode")
            & f.col("path").startswith(f"{CONSUMERS}/"))
    kafka = f.coalesce(f.col("data").cast("string") == str(Mode.KAFKA), f.lit(False))
    logged = transactions.where(mode).select(
        _path(2).alias("group"), f.col("zxid").alias("first"), "time",
        (kafka & (f.col("op") != "delete")).alias("kafka"))
    polled = znodes.where(mode).select(
        _path(2).alias("group"), f.col("mzxid").alias("first"), f.col("mtime").alias("time"), kafka.alias("kafka"))
    written = logged.unionByName(polled).dropDuplicates(["group", "first"])
    before = written.select("group").distinct().select(
        "group", f.lit(-1).cast("long").alias("first"), f.lit(0).cast("long").alias("time"),
        f.lit(False).alias("kafka"))
    return (_until_next(written.unionByName(before), "group").where("not kafka")
            .select("group", f.col("began").alias("from"), f.col("ended").alias("to")))


def consuming(kafka: DataFrame, zookeeper: DataFrame, enabled: DataFrame, zookeeper_mode: DataFrame) -> DataFrame:
    """WHICH, store, who, began, ended: what the owners of the two systems prove about consumption against each other.

    A migration-enabled member consumes only what it has an owner node for, so its assignment by Kafka proves nothing. In
    mode kafka it may hold the node of a partition that Kafka has given away, and does not fetch it.
    """
    consumers = (kafka.join(enabled.withColumnRenamed("member", "client_id"), ["group", "client_id"], "left_anti")
                 .select(*WHICH, f.lit("kafka").alias("store"), f.col("member").alias("who"), "began", "ended"))
    known = enabled.select("group", f.col("member").alias("owner"), f.lit(True).alias("enabled"))
    nodes = zookeeper.join(known, ["group", "owner"], "left")
    old = nodes.where("enabled is null").select(*NAMES, "owner", "began", "ended")
    both = (nodes.where("enabled").join(zookeeper_mode, "group", "left")
            .select(*NAMES, "owner", f.greatest("began", "from").alias("began"), f.least("ended", "to").alias("ended"))
            .where("began < ended"))
    owners = old.unionByName(both).select(*NAMES, f.lit(None).cast("string").alias(ID), f.lit("zookeeper").alias("store"),
                                          f.col("owner").alias("who"), "began", "ended")
    return consumers.unionByName(owners)
