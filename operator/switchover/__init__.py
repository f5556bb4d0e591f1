"""Switchover carries Apache Kafka from ZooKeeper to KRaft, and consumer groups to their new protocol."""

__version__ = "0.1.0"
