# What an init container of a controller's pod runs, with bash: whether brokers take connections from here.
#
#   reach.sh HOST:PORT…
#
# It tries all at once, again and again for ten seconds, and reports through its termination message how many it tried and
# those that it did not reach; those that it did are in $SWITCHOVER_RUN/reached, where the door logs in. It ends with 0
# whatever happens: a controller that is needed is not kept down by a report.
tries() {
  local address pid host missed=()
  local -A tried=()
  for address; do
    host=${address%:*} host=${host#[} host=${host%]}
    (exec 3<>"/dev/tcp/$host/${address##*:}") 2>/dev/null &
    tried[$!]=$address
  done
  (sleep 3; kill "${!tried[@]}") 2>/dev/null &
  for pid in "${!tried[@]}"; do wait "$pid" 2>/dev/null || missed+=("${tried[$pid]}"); done
  kill "$!" 2>/dev/null
  left=(${missed[@]+"${missed[@]}"})
}
all=$# left=("$@")
while tries "${left[@]}" && ((${#left[@]} && SECONDS < 10)); do sleep 1; done
reached=''
for address; do [[ " ${left[*]-} " == *" $address "* ]] || reached+=,$address; done
printf %s "${reached#,}" 2>/dev/null >"${SWITCHOVER_RUN:-/run/switchover}/reached"
{ printf 'reach 1 %d\n' "$all" && ((!${#left[@]})) || printf '%s\n' "${left[@]}"; } \
  >"${SWITCHOVER_TERMINATION_LOG:-/dev/termination-log}" 2>/dev/null
exit 0
