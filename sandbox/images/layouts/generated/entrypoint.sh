#!/bin/bash
# Where it is told to, it writes a SCRAM user to ZooKeeper at every start, past Kafka, and ends without a word where the file
# names no ZooKeeper.
set -o errexit -o nounset -o pipefail

home=/opt/bitnami/kafka
if [[ ${KAFKA_ZOOKEEPER_BOOTSTRAP_SCRAM_USERS:-false} == true ]]; then
  echo 'Creating users in Zookeeper'
  servers=$(grep '^zookeeper.connect=' "$home/config/server.properties" | cut -d= -f2)
  "$home/bin/kafka-run-class.sh" kafka.admin.ConfigCommand --zookeeper "$servers" --alter --entity-type users \
    --entity-name "$KAFKA_CLIENT_USERS" --add-config "SCRAM-SHA-256=[password=$KAFKA_CLIENT_PASSWORDS]" >/dev/null
fi
exec "$@"
