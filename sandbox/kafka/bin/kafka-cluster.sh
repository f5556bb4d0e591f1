#!/usr/bin/env bash
# The cluster's id, asked by a client.
exec "$(dirname "${BASH_SOURCE[0]}")/kafka-run-class.sh" org.apache.kafka.tools.ClusterTool "$@"
