"""capture: offset commits, group records, end offsets and ZooKeeper's `/consumers` into bronze Parquet, each range once."""
