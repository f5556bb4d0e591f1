# What the init container runs, with bash: it copies the image's own start script, with a line in front that leads through the
# door, to where it is mounted in the script's place.
#
#   keep.sh START PLACE KNOWN...
#
# START is the script; PLACE is over what the copy will lie: the script itself, or its directory, which is copied as a whole.
# Then an entry script can do to it what it does to its own: `sed -i`, chmod, cp. KNOWN are other places where images have
# theirs. $SWITCHOVER_ADVICE is said in place of what a rollback would allow, where there is none any more.
set -u
start=$1 place=$2
shift 2
run=${SWITCHOVER_RUN:-/run/switchover}
copy=$run/start

refuse() { # WORDS [ADVICE]: Kafka is not started; the kubelet hands the words to whoever asks for the pod
  local advice=${SWITCHOVER_ADVICE-${2-}}
  printf 'switchover: %s\n' "$1${advice:+ $advice}" >&2
  { printf 'switchover: %s\n' "$1${advice:+ $advice}" >"${SWITCHOVER_TERMINATION_LOG:-/dev/termination-log}"; } 2>/dev/null
  exit 78
}

if [[ ! -f $start ]]; then
  starts "$@"
  ((${#starts[@]})) || refuse "the image has no $start, and no start script of Kafka's in its PATH, in \$KAFKA_HOME or where \
images have theirs." 'Roll back, name it in spec.brokers: start: {script: /PATH/kafka-server-start.sh}, and try again'
  refuse "the image has no $start; its start script is ${starts[0]}${starts[1]+, or ${starts[*]:1}}." \
    "Roll back, set in spec.brokers: start: {script: ${starts[0]}}, and try again"
fi
text=$(<"$start") || refuse "$start cannot be read"
[[ $text == *kafka-run-class* || $text == *kafka.Kafka* ]] ||
  refuse "$start does not start Kafka: it names neither kafka-run-class nor kafka.Kafka." \
    'Roll back, set spec.brokers[].start, and try again'
first='#!/bin/bash'
if [[ $text == '#!'* ]]; then
  first=${text%%$'\n'*}
  [[ $first == *sh || $first == *'sh '* ]] || refuse "$start is no script of a shell, but of ${first#'#!'}"
  text=${text#"$first"}
  text=${text#$'\n'}
fi

rm -rf "$copy"
mkdir "$copy" || refuse "$copy cannot be written"
if [[ $place != "$start" ]]; then
  cp -a "$place/." "$copy" 2>/dev/null # what cannot be read is missed below, if it can be run
  for each in "$place"/*; do
    [[ ! -x $each || -d $each || -x $copy/${each##*/} ]] || refuse "$each cannot be copied to $copy"
  done
fi
script=$copy/${start##*/}
rm -f "$script" # it may be a link
# shellcheck disable=SC2016 # the line expands where it runs
{
  printf '%s\n' "$first"
  printf 'if [ "${SWITCHOVER_PASSED-}" ]; then unset SWITCHOVER_PASSED; else exec "${BASH:-bash}" "${SWITCHOVER_DOOR:-%s}" --start "$0" "$@"; fi\n' \
    /etc/switchover/door.sh
  printf '%s\n' "$text"
} >"$script" && chmod 755 "$script" || refuse "$script cannot be written"
