#!/usr/bin/env bash
# Runs a Kafka or ZooKeeper class with the names and meanings of the environment of Kafka's own script of this name.
# Beyond it: the defaults suit a small machine, a class archive made at image build time (archive-classes.sh) is used
# when there is one, and java replaces the shell, so that signals reach it.
set -euo pipefail

home=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
libs=${KAFKA_LIBS:-$home/libs}
archive=$(dirname "$libs")/classes.jsa

# CDS wants the same class path, in the same order, as when the archive was made.
classpath=$(printf '%s:' "$libs"/*.jar)
classpath=${classpath%:}${CLASSPATH:+:$CLASSPATH}

options=()
[[ -f $archive ]] && options+=("-XX:SharedArchiveFile=$archive" -Xshare:auto)

java=${JAVA_HOME:+$JAVA_HOME/bin/}java
# The variables hold several words each, as in the original.
# shellcheck disable=SC2086
exec "$java" ${KAFKA_HEAP_OPTS:--Xmx256m} \
  ${KAFKA_JVM_PERFORMANCE_OPTS:--XX:+UseSerialGC -XX:TieredStopAtLevel=1 -XX:+ExitOnOutOfMemoryError} \
  "${options[@]}" \
  ${KAFKA_LOG4J_OPTS:--Dlog4j.configuration=file:$home/config/tools-log4j.properties} \
  ${KAFKA_JMX_OPTS:-} ${KAFKA_OPTS:-} -Djava.awt.headless=true -cp "$classpath" "$@"
