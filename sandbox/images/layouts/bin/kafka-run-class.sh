#!/bin/bash
# Runs a class of Kafka: -name, -loggc, LOG_DIR, JMX_PORT and KAFKA_*_OPTS are what they are in Kafka's own script of this
# name. Confluent's layout has jars, settings and logs apart.
if (($# < 1)); then
  echo "USAGE: $0 [-name servicename] [-loggc] classname [opts]"
  exit 1
fi
base_dir=$(dirname "$0")/..
libs=$base_dir/libs config=$base_dir/config logs=$base_dir/logs
[ -d "$libs" ] || libs=/usr/share/java/kafka config=/etc/kafka logs=/var/log/kafka
LOG_DIR=${LOG_DIR:-$logs}
if [ -z "$KAFKA_LOG4J_OPTS" ]; then
  KAFKA_LOG4J_OPTS="-Dlog4j.configuration=file:$config/tools-log4j.properties"
elif [ ! -d "$LOG_DIR" ]; then
  mkdir -p "$LOG_DIR"
fi
KAFKA_LOG4J_OPTS="-Dkafka.logs.dir=$LOG_DIR $KAFKA_LOG4J_OPTS"
jmx=com.sun.management.jmxremote
if [ -z "$KAFKA_JMX_OPTS" ]; then
  KAFKA_JMX_OPTS="-D$jmx=true -D$jmx.authenticate=false -D$jmx.ssl=false"
fi
if [ -n "$JMX_PORT" ]; then
  KAFKA_JMX_OPTS="$KAFKA_JMX_OPTS -D$jmx.port=$JMX_PORT -D$jmx.rmi.port=$JMX_PORT"
fi
while (($#)); do
  case $1 in
    -name) DAEMON_NAME=$2; shift 2 ;;
    -loggc) [ -n "$KAFKA_GC_LOG_OPTS" ] || GC_LOG_ENABLED=true; shift ;;
    *) break ;;
  esac
done
if [ "$GC_LOG_ENABLED" = true ]; then
  KAFKA_GC_LOG_OPTS="-Xlog:gc*:file=$LOG_DIR/$DAEMON_NAME-gc.log:time,tags:filecount=10,filesize=100M"
fi
: "${KAFKA_HEAP_OPTS:=-Xmx256M}"
: "${KAFKA_JVM_PERFORMANCE_OPTS:=-server -XX:+UseG1GC -Djava.awt.headless=true}"
# The archive of classes knows the jars by their real place.
for jar in "$(readlink -f "$libs")"/*.jar; do CLASSPATH=${CLASSPATH:+$CLASSPATH:}$jar; done
# shellcheck disable=SC2086 # several words each
exec java $KAFKA_HEAP_OPTS $KAFKA_JVM_PERFORMANCE_OPTS $KAFKA_GC_LOG_OPTS $KAFKA_JMX_OPTS $KAFKA_LOG4J_OPTS \
  -cp "$CLASSPATH" $KAFKA_OPTS "$@"
