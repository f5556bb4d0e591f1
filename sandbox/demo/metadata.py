"""The cluster's metadata as Kafka's own tools tell it, and what a user changes of it in the middle of a migration."""

import re

from demo import tools
from demo.cluster import Cluster

BOOTSTRAP = "--bootstrap-server kafka:9092"
DOOMED, MADE, GROWN, CHANGED, USER = "doomed", "made-in-dual-write", "customers", "invoices", "alice"

PREPARE = f"""
kafka-topics.sh {BOOTSTRAP} --create --if-not-exists --topic {DOOMED} --partitions 2 --replication-factor 3
kafka-configs.sh {BOOTSTRAP} --alter --entity-type users --entity-name {USER} --add-config consumer_byte_rate=1048576
"""
CHANGE = f"""
kafka-topics.sh {BOOTSTRAP} --create --if-not-exists --topic {MADE} --partitions 3 --replication-factor 3 \\
    --config retention.ms=3600000
kafka-topics.sh {BOOTSTRAP} --delete --if-exists --topic {DOOMED}
kafka-topics.sh {BOOTSTRAP} --describe --topic {GROWN} | grep -q 'PartitionCount: 5' ||
    kafka-topics.sh {BOOTSTRAP} --alter --topic {GROWN} --partitions 5
kafka-configs.sh {BOOTSTRAP} --alter --entity-type topics --entity-name {CHANGED} --add-config max.message.bytes=131072
kafka-configs.sh {BOOTSTRAP} --alter --entity-type users --entity-name {USER} --add-config producer_byte_rate=2097152
kafka-configs.sh {BOOTSTRAP} --alter --entity-type users --entity-name {USER} \\
    --add-config 'SCRAM-SHA-256=[iterations=4096,password=of-{USER}]'
kafka-configs.sh {BOOTSTRAP} --alter --entity-type brokers --entity-default --add-config log.cleaner.threads=2
"""
TELL = f"""
kafka-topics.sh {BOOTSTRAP} --describe
for kind in topics users clients brokers; do kafka-configs.sh {BOOTSTRAP} --describe --entity-type "$kind"; done
kafka-configs.sh {BOOTSTRAP} --describe --entity-type brokers --entity-default
"""


def prepare(cluster: Cluster) -> None:
    """What is to be changed later. Raises CommandFailed."""
    tools.run(cluster, PREPARE)


def change(cluster: Cluster) -> None:
    """One change of every kind that the demo's cluster knows. Raises CommandFailed."""
    tools.run(cluster, CHANGE)


def tell(cluster: Cluster) -> frozenset[str]:
    """Topics with their ids, partitions and replicas; topic, broker, user and client configuration. One line for each."""
    return frozenset(facts(tools.run(cluster, TELL)))


def facts(told: str) -> list[str]:
    """The lines of Kafka's tools without what changes by itself: leaders, replicas in sync, where a value comes from."""
    found, heading = [], ""
    for line in told.splitlines():
        words = line.strip()
        if words.startswith("Topic:"):
            fields = dict(field.partition(": ")[::2] for field in re.split(r"\t+", words))
            kept = ("Topic", "TopicId", "PartitionCount", "Partition", "Replicas")
            found.append(" ".join(f"{key}={fields[key].strip()}" for key in kept if key in fields))
        elif words.endswith(":"):
            heading = words
        elif words:
            found.append(f"{heading if line.startswith(' ') else ''} {words.partition(' sensitive=')[0]}".strip())
    return found
