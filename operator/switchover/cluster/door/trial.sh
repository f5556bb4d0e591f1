# What the first init container of a trial's pod runs, with bash: it lays out the door with what the door is to report, and a
# broker's log directories as a script of the image may look for them.
#
#   trial.sh DOOR EDITS META DIRECTORY...
#
# DOOR and EDITS are their text, META is that of meta.properties. Were Kafka started past the door, it would be a second broker
# of that id with an empty disk. A file in the place of the metadata log keeps it from starting (docs/facts/hand-over.md).
set -u
run=${SWITCHOVER_RUN:-/run/switchover}
door=$1 edits=$2 meta=$3
shift 3

written() { # TEXT FILE
  { printf '%s' "$1" >"$2"; } 2>/dev/null && return
  printf 'switchover: %s cannot be written\n' "$2" | tee "${SWITCHOVER_TERMINATION_LOG:-/dev/termination-log}" >&2
  exit 78
}

written "$door" "$run/door.sh"
written "$edits" "$run/edits"
for directory; do
  mkdir -p "$directory" 2>/dev/null
  written "$meta" "$directory/meta.properties"
  written '' "$directory/__cluster_metadata-0"
done
