#!/usr/bin/env bash
# Starts a broker or a controller, ZooKeeper or KRaft, as its configuration file says.
set -euo pipefail

bin=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
[[ $# -ge 1 ]] || { echo "USAGE: $0 server.properties [--override property=value]*" >&2; exit 1; }
[[ $1 != -daemon ]] || { echo "$0: -daemon is not supported; the process stays in the foreground" >&2; exit 1; }
export KAFKA_LOG4J_OPTS=${KAFKA_LOG4J_OPTS:-"-Dlog4j.configuration=file:$(dirname "$bin")/config/log4j.properties"}
exec "$bin/kafka-run-class.sh" kafka.Kafka "$@"
