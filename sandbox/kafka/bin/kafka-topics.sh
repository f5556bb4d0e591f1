#!/usr/bin/env bash
# Creates, lists, changes and deletes topics.
exec "$(dirname "${BASH_SOURCE[0]}")/kafka-run-class.sh" org.apache.kafka.tools.TopicCommand "$@"
