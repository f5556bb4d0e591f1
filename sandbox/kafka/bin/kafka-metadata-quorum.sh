#!/usr/bin/env bash
# Shows the state of the KRaft quorum.
exec "$(dirname "${BASH_SOURCE[0]}")/kafka-run-class.sh" org.apache.kafka.tools.MetadataQuorumCommand "$@"
