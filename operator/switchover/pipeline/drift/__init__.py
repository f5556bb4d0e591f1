"""drift: what ZooKeeper's and KRaft's metadata disagree on, persistently."""
