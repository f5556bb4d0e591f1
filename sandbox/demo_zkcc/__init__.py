"""The demo of old consumers, which ZooKeeper coordinates: python -m demo_zkcc."""
