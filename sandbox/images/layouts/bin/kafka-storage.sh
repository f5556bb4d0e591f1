#!/bin/bash
suffix=
[[ $0 != *.sh ]] || suffix=.sh
exec "$(dirname "$0")/kafka-run-class$suffix" kafka.tools.StorageTool "$@"
