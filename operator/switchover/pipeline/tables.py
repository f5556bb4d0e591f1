"""The bronze tables that `capture` fills: their columns, and nothing else.

Times are int64 milliseconds since the epoch, offsets int64. Every file lies below `cluster=…/date=…` (UTC day of its
capture) and holds these columns alone.
"""

from typing import Final

import pyarrow as pa

_PARTITION: Final = pa.struct([("topic", pa.string()), ("topic_id", pa.string()), ("partition", pa.int32())])
"""`topic` or, in records of the consumer protocol, `topic_id` (32 hex digits); the other is null."""

COMMITS: Final = pa.schema([
    ("group", pa.string()), ("topic", pa.string()), ("partition", pa.int32()),
    ("offset", pa.int64()),              # null: a tombstone, the offset was deleted or has expired
    ("leader_epoch", pa.int32()),        # -1 or null: not known
    ("commit_time", pa.int64()),         # as the broker wrote it into the value; null for a tombstone
    ("record_time", pa.int64()),         # of the record in the log
    ("version", pa.int16()),             # of the value; null for a tombstone
    ("topic_id", pa.string()),           # 32 hex digits; null: the value has none (before 4.1, tombstones)
    ("log_partition", pa.int32()), ("log_offset", pa.int64()),   # where it lies in __consumer_offsets: the causal order
])
"""Offset commits of `__consumer_offsets` (types 0 and 1)."""

OWNERSHIP: Final = pa.schema([
    ("group", pa.string()),
    ("record", pa.string()),             # ClassicGroup, Epoch, Member, TargetEpoch, Target, Current
    ("member", pa.string()),             # null: of the group itself
    ("epoch", pa.int32()),               # generation of a classic group, (assignment or member) epoch of a consumer group
    ("previous_epoch", pa.int32()), ("state", pa.int8()),        # of Current: 0 stable, 1 unrevoked, 2 unreleased
    ("time", pa.int64()),                # of the record; of ClassicGroup the group's own state time where it has one
    ("tombstone", pa.bool_()),
    ("protocol_type", pa.string()), ("protocol", pa.string()),   # classic: "consumer" and the strategy; Member: its assignor
    ("leader", pa.string()), ("instance", pa.string()), ("client_id", pa.string()), ("client_host", pa.string()),
    ("topics", pa.list_(pa.string())), ("regex", pa.string()),   # what the member subscribes to
    ("assigned", pa.list_(_PARTITION)), ("pending", pa.list_(_PARTITION)),   # pending revocation
    ("log_partition", pa.int32()), ("log_offset", pa.int64()),
])
"""Group and member records (types 2, 3, 5 to 8). A classic group's record is a row of its own and one for each member."""

ENDS: Final = pa.schema([
    ("topic", pa.string()), ("partition", pa.int32()),
    ("start", pa.int64()), ("end", pa.int64()),                  # log start and high watermark
    ("time", pa.int64()),                                        # when they were asked
])
"""Log start and end of every partition of every topic that is not internal, once per capture."""

TOPICS: Final = pa.schema([
    ("topic", pa.string()), ("topic_id", pa.string()),           # null id: brokers before 2.8
    ("partitions", pa.int32()), ("internal", pa.bool_()),
    ("retention_ms", pa.int64()), ("cleanup_policy", pa.string()),
    ("time", pa.int64()),
])
"""Every topic, once per capture."""

GROUPS: Final = pa.schema([
    ("group", pa.string()), ("type", pa.string()),               # Classic | Consumer | … as the broker names it
    ("state", pa.string()), ("assignor", pa.string()), ("coordinator", pa.int32()),
    ("members", pa.list_(pa.struct([
        ("member", pa.string()), ("instance", pa.string()), ("client_id", pa.string()), ("host", pa.string()),
        ("assigned", pa.list_(_PARTITION))]))),
    ("time", pa.int64()),
])
"""Every group of consumers as the Admin API describes it, once per capture; its protocol type is in `ownership` alone."""

ZNODES: Final = pa.schema([
    ("path", pa.string()),               # with the chroot taken off: /consumers/…
    ("data", pa.binary()),               # null: no data
    ("version", pa.int32()), ("czxid", pa.int64()), ("mzxid", pa.int64()),
    ("ctime", pa.int64()), ("mtime", pa.int64()),
    ("session", pa.int64()),             # ephemeral owner, 0 for none
    ("time", pa.int64()),                # when it was read
])
"""Every node below `/consumers`, once per capture. A path that is not in a later capture was deleted in between."""

TRANSACTIONS: Final = pa.schema([
    ("zxid", pa.int64()), ("index", pa.int32()),                 # of an operation within a multi; 0 for others
    ("time", pa.int64()), ("session", pa.int64()),
    ("op", pa.string()),                 # create | delete | setData | createSession | closeSession
    ("path", pa.string()),               # null for createSession; one row for each path that a closeSession removed
    ("data", pa.binary()), ("version", pa.int32()), ("ephemeral", pa.bool_()),
])
"""What ZooKeeper's transaction logs hold of `/consumers`, and every session's begin and end; each zxid once."""

SCHEMAS: Final = {"commits": COMMITS, "ownership": OWNERSHIP, "ends": ENDS, "topics": TOPICS, "groups": GROUPS,
                  "znodes": ZNODES, "transactions": TRANSACTIONS}
"""By the table's name."""
