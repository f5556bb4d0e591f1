# What the init container runs, with bash: it keeps the image's own start script, for the door to go on by.
#
#   keep.sh START KNOWN...
#
# START is where the door stands in Kafka's own container; KNOWN are other places where images have theirs.
set -u
start=$1
shift
run=${SWITCHOVER_RUN:-/run/switchover}

refuse() { # Kafka is not started; the kubelet hands the words to whoever asks for the pod
  printf 'switchover: %s\n' "$*" >&2
  { printf 'switchover: %s\n' "$*" >"${SWITCHOVER_TERMINATION_LOG:-/dev/termination-log}"; } 2>/dev/null
  exit 78
}

if [[ ! -f $start ]]; then
  there=''
  for known in "$@"; do [[ ! -f $known ]] || there+=" $known"; done
  refuse "the image has no $start; of the start scripts that are known it has:${there:- none}." \
    "Roll back, set spec.brokers[].start, and try again"
fi
text=$(<"$start") || refuse "$start cannot be read"
[[ $text == *kafka-run-class* || $text == *kafka.Kafka* ]] ||
  refuse "$start does not start Kafka: it names neither kafka-run-class nor kafka.Kafka." \
    "Roll back, set spec.brokers[].start, and try again"

# Sourced from another place it goes on by its own name: where it looks for itself, that is $0 then.
for itself in '${BASH_SOURCE[0]' '${BASH_SOURCE'; do text=${text//"$itself"/'${0'}; done
for end in '"' ')' ' ' ';' $'\n'; do text=${text//"\$BASH_SOURCE$end"/"\$0$end"}; done
printf '%s\n' "$text" >"$run/original" || refuse "$run/original cannot be written"
