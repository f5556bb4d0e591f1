# What an init container of a controller's pod runs, with bash: whether brokers answer from here.
#
#   reach.sh [tls://]HOST:PORT…
#
# A connection proves nothing: what stands before a broker, such as a mesh's sidecar, may take it and close it again. So Kafka
# is asked for its versions (ApiVersions v0), which it tells before any login. Where its listener encrypts (tls://), only a
# record of TLS is to be had without a key: the door's login proves the rest (door.sh).
#
# It asks all at once, again and again for twenty seconds, and reports through its termination message how many it asked, and
# those that gave no answer, with the word `silent` where they took the connection. Those that did are in
# $SWITCHOVER_RUN/reached, where the door logs in. It ends with 0 whatever happens: a controller that is needed is not kept
# down by a report.
LC_ALL=C
id=SwOv
# Record, ClientHello of TLS 1.2 with a random of 32 bytes, no session, ten suites; groups, point formats, signatures, versions
# 1.3 and 1.2, and no key for 1.3, which a server of it asks for by a record of its own.
hello='\x16\x03\x01\0\x7a\x01\0\0\x76\x03\x03'"Switchover looks for the brokers"'\0'
hello+='\0\x14\x13\x01\x13\x02\x13\x03\xc0\x2b\xc0\x2c\xc0\x2f\xc0\x30\0\x9e\0\x9c\0\x2f\x01\0\0\x39'
hello+='\0\x0a\0\x08\0\x06\0\x1d\0\x17\0\x18''\0\x0b\0\x02\x01\0'
hello+='\0\x0d\0\x14\0\x12\x04\x03\x05\x03\x06\x03\x08\x04\x08\x05\x08\x06\x04\x01\x05\x01\x06\x01'
hello+='\0\x2b\0\x05\x04\x03\x04\x03\x03''\0\x33\0\x02\0\0'

receive() { # $1 bytes into $got, one an element; one of zero is empty
  local byte
  got=()
  while ((${#got[@]} < $1)); do IFS= read -r -d '' -n 1 -t 4 -u 3 byte || return; got+=("$byte"); done
}

answers() { # whether what 3 is connected to speaks $1
  if [[ $1 == tls ]]; then
    printf "$hello" >&3 && receive 2 && [[ ${got[0]}${got[1]} == [$'\x15\x16']$'\x03' ]]
  else # and its answer: length, our id, and no error
    printf '\0\0\0\x14\0\x12\0\0%s\0\x0aswitchover' "$id" >&3 && receive 10 &&
      [[ -z ${got[0]}${got[1]} && ${got[4]}${got[5]}${got[6]}${got[7]} == "$id" && -z ${got[8]}${got[9]} ]]
  fi
}

tries() { # the addresses that give no answer into $left, and into $silent those of them that take connections
  local address pid host speaks
  local -A tried=()
  left=() silent=' '
  for address; do
    speaks=${address%%://*} host=${address#*://}
    host=${host%:*} host=${host#[} host=${host%]}
    (trap "" PIPE; exec 3<>"/dev/tcp/$host/${address##*:}" || exit 1; answers "$speaks" || exit 2) 2>/dev/null &
    tried[$!]=$address
  done
  (sleep 5; kill "${!tried[@]}") 2>/dev/null &
  for pid in "${!tried[@]}"; do
    wait "$pid" 2>/dev/null && continue
    (($? != 2)) || silent+="${tried[$pid]} "
    left+=("${tried[$pid]}")
  done
  kill "$!" 2>/dev/null
}

all=$# left=("$@")
while tries "${left[@]}" && ((${#left[@]} && SECONDS < ${SWITCHOVER_REACH_SECONDS:-20})); do sleep 1; done
reached=''
for address; do [[ " ${left[*]-} " == *" $address "* ]] || reached+=,${address#*://}; done
printf %s "${reached#,}" 2>/dev/null >"${SWITCHOVER_RUN:-/run/switchover}/reached"
{
  printf 'reach 2 %d\n' "$all"
  for address in ${left[@]+"${left[@]}"}; do
    word=''
    [[ $silent != *" $address "* ]] || word=' silent'
    printf '%s%s\n' "${address#*://}" "$word"
  done
} 2>/dev/null >"${SWITCHOVER_TERMINATION_LOG:-/dev/termination-log}"
exit 0
