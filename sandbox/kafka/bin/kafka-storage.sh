#!/usr/bin/env bash
# Formats a node's storage, or says how it is formatted.
exec "$(dirname "${BASH_SOURCE[0]}")/kafka-run-class.sh" kafka.tools.StorageTool "$@"
