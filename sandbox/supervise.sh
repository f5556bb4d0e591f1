# How the scripts inside a sandbox keep its programs alive (`. supervise.sh`).

# supervise NAME COMMAND...: runs COMMAND for ever, its output in NAME's log.
supervise() {
  local name=$1
  shift
  while true; do
    "$@" && true
    echo "--- $name ended with status $?; started again in a second"
    sleep 1
  done >>"$logs/$name.log" 2>&1 </dev/null &
}

# wait_until ADDRESS: returns once the API server there is ready.
wait_until() {
  until curl --silent --fail --insecure --max-time 2 --output /dev/null "https://$1:6443/readyz"; do sleep 0.1; done
}
