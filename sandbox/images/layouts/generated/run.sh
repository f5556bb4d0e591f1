#!/bin/bash
set -o errexit -o nounset -o pipefail
exec /opt/bitnami/kafka/bin/kafka-server-start.sh /opt/bitnami/kafka/config/server.properties
