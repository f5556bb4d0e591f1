#!/usr/bin/env bash
# Shows and changes configurations of topics, brokers, users and clients.
exec "$(dirname "${BASH_SOURCE[0]}")/kafka-run-class.sh" kafka.admin.ConfigCommand "$@"
