#!/usr/bin/env bash
# ZooKeeper's command line client.
exec "$(dirname "${BASH_SOURCE[0]}")/kafka-run-class.sh" org.apache.zookeeper.ZooKeeperMain -server "$@"
