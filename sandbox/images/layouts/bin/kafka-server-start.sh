#!/bin/bash
# Starts a broker or a controller: what Kafka's own script of this name makes of its environment, in our own words.
if (($# < 1)); then
  echo "USAGE: $0 [-daemon] server.properties [--override property=value]*"
  exit 1
fi
bin=$(dirname "$0")
config=$bin/../config
[ -d "$config" ] || config=/etc/kafka
if [ -z "$KAFKA_LOG4J_OPTS" ]; then
  export KAFKA_LOG4J_OPTS="-Dlog4j.configuration=file:$config/log4j.properties"
fi
if [ -z "$KAFKA_HEAP_OPTS" ]; then
  export KAFKA_HEAP_OPTS="-Xmx1G -Xms1G"
fi
EXTRA_ARGS=${EXTRA_ARGS-'-name kafkaServer -loggc'}
suffix=
[[ $0 != *.sh ]] || suffix=.sh
# shellcheck disable=SC2086 # several words
exec "$bin/kafka-run-class$suffix" $EXTRA_ARGS kafka.Kafka "$@"
