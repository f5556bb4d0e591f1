# What the last init container of a controller's pod runs, with bash: no broker ever starts there.
#
#   guard.sh DIRECTORY
#
# The pod is a copy of a broker's, and DIRECTORY is where a broker would have its data. Were Kafka started past the door, it
# would be a broker of the cluster with an empty disk. With another cluster's id in its log directory it ends before it
# registers (docs/facts/last-door.md).
set -u
if ! mkdir -p "$1" || ! { [[ -e $1/meta.properties ]] ||
  printf 'version=0\nbroker.id=2147483646\ncluster.id=switchover-no-broker-here\n' >"$1/meta.properties"; }; then
  printf 'switchover: %s cannot be written\n' "$1" | tee "${SWITCHOVER_TERMINATION_LOG:-/dev/termination-log}" >&2
  exit 78
fi
