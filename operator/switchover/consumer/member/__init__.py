"""One member of a group that ZooKeeper or Kafka coordinates, as a pure state machine: events in, requests out."""
