#!/usr/bin/env bash
# Starts a ZooKeeper server, alone or in an ensemble, as its configuration file says.
set -euo pipefail

bin=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
[[ $# -ge 1 ]] || { echo "USAGE: $0 zookeeper.properties" >&2; exit 1; }
[[ $1 != -daemon ]] || { echo "$0: -daemon is not supported; the process stays in the foreground" >&2; exit 1; }
export KAFKA_LOG4J_OPTS=${KAFKA_LOG4J_OPTS:-"-Dlog4j.configuration=file:$(dirname "$bin")/config/log4j.properties"}
exec "$bin/kafka-run-class.sh" org.apache.zookeeper.server.quorum.QuorumPeerMain "$@"
