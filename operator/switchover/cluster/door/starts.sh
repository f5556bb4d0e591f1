# Where an image has a start script of Kafka's: as its PATH finds it, as its variables say, where images have theirs.
#
# starts KNOWN...   into $starts; KNOWN are places to look at first
starts() {
  local found text home=${KAFKA_HOME:-/kafka}
  starts=()
  for found in "$@" "$(command -v kafka-server-start.sh)" "$(command -v kafka-server-start)" \
    {"$home",/kafka,/opt/*,/usr/local/*,/usr/lib/*,/usr/share/*,/srv/*,/app}/bin/kafka-server-start{.sh,}; do
    [[ -f $found && " ${starts[*]-} " != *" $found "* ]] && text=$(<"$found") || continue
    [[ $text != *kafka-run-class* && $text != *kafka.Kafka* ]] || starts+=("$found")
  done
}
