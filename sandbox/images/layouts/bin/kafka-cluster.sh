#!/bin/bash
suffix=
[[ $0 != *.sh ]] || suffix=.sh
exec "$(dirname "$0")/kafka-run-class$suffix" org.apache.kafka.tools.ClusterTool "$@"
