#!/bin/bash
# Changes what Kafka is started with. The image's own kafka-server-start(.sh) has a line in front (keep.sh) that calls this with
# its own name and arguments; it is called again when they are changed. Whatever the image did before (init containers,
# templates, its entrypoint), FILE is the one that Kafka would get.
#
#   door.sh --start SCRIPT [-daemon] FILE [--override KEY=VALUE]...
#
# $SWITCHOVER_EDITS, a file, has what this pod's mode changes, one directive a line:
#
#   mode A|U|R|B|C|P|F|Stopped|Trial
#                                A changes nothing; Stopped waits instead of starting Kafka; Trial reports instead what Kafka
#                                would be started with, as the termination message, and ends
#   marker WORD                  Kafka is given a key switchover.WORD: by it the process itself tells what started it; in a trial
#                                the report repeats it
#   format CLUSTER RELEASE DIR   a controller's log directory is formatted first, unless it is
#   names HOST...                wait until these resolve, 30 s at most
#   drop KEY | drop PREFIX.
#   set KEY=VALUE                VALUE as a properties file writes it
#   join KEY ITEM [DEFAULT]      a list of NAME:REST gets ITEM, in place of one of that name; DEFAULT where KEY is absent
#   swap KEY OLD NEW             where the value is OLD
#   copy KEY FROM [DEFAULT]      where KEY is absent, the value of FROM, or DEFAULT; neither: it stays absent
#   tell KEY                     it is reported, where it is set; nothing else is
#
# A controller in mode P logs in, before it first runs, to a broker of those that $SWITCHOVER_RUN/reached names (reach.sh), as
# brokers do to one another: Kafka's controllers do that only when they have claimed the cluster. It is not started before a
# broker has let it in: no answer is not a good one.
#
# The file and its overrides become one file, which is read and written as java.util.Properties does it; lines that no
# directive touches stay as they are. Bash 4.2 and its builtins do it: an image with Kafka's own scripts has as much.
[ -n "${BASH_VERSION-}" ] || exec bash "$0" "$@" # in a pod of the release before, called as sh SCRIPT
set -u
run=${SWITCHOVER_RUN:-/run/switchover}
door=$0 original=$run/original # in a pod of the release before this lies over the script, and the script in $original
if [[ ${1-} == --start ]]; then
  door=$2 original=''
  shift 2
fi
[[ $door == */* ]] || door=./$door
edits=${SWITCHOVER_EDITS:-/etc/switchover/edits}
[[ -z ${SWITCHOVER_HEAP_OPTS-} ]] || export KAFKA_HEAP_OPTS=$SWITCHOVER_HEAP_OPTS # for Kafka's tools as well

say() { printf 'switchover: %s\n' "$*" >&2; }

refuse() { # Kafka is not started; the kubelet hands the words to whoever asks for the pod
  say "$*"
  { printf 'switchover: %s\n' "$*" >"${SWITCHOVER_TERMINATION_LOG:-/dev/termination-log}"; } 2>/dev/null
  exit 78
}

start() { # the image's own script with these arguments, under its own name
  [[ -n $original ]] || SWITCHOVER_PASSED=1 exec "$door" "$@"
  [[ -r $original ]] || refuse "$original is missing: the init container has not kept the image's own start script"
  exec "${BASH:-bash}" -c ". '$original'" "$door" "$@"
}

# --- what to do ---------------------------------------------------------------------------------------------------------

[[ -r $edits ]] || refuse "$edits is missing: this pod has no mode"
mapfile -t directives <"$edits"
mode='' marker='' format='' names='' tells=()
for line in "${directives[@]+"${directives[@]}"}"; do
  case $line in
    'mode '*) mode=${line#* } ;;
    'marker '*) marker=${line#* } ;;
    'format '*) format=${line#* } ;;
    'names '*) names=${line#* } ;;
    'tell '?*) tells+=("${line#* }") ;;
    'drop '?* | 'set '?*=* | 'join '?*' '?*:* | 'swap '?*' '?*' '?* | 'copy '?*' '?*) ;;
    *) refuse "$edits has a line that nobody understands: $line" ;;
  esac
done
rm -f "$run/stopped"
case $mode in
  A | U | R | B | C | P | F | Trial) ;;
  Stopped)
    trap 'exit 0' TERM INT
    : >"$run/stopped"
    say 'stopped: Kafka is not started'
    while :; do sleep 3600 & wait "$!"; done ;;
  *) refuse "$edits names no mode" ;;
esac

daemon=()
if [[ ${1-} == -daemon ]]; then daemon=(-daemon); shift; fi
file=${1-}
[[ -f $file && -r $file ]] || refuse "the first argument is no file that can be read: '$file'"
shift
told=()
[[ -z $marker ]] || told=(--override "switchover.$marker=1")
[[ $mode != A ]] || start ${daemon[@]+"${daemon[@]}"} "$file" "$@" ${told[@]+"${told[@]}"}

overrides=() others=()
while (($#)); do
  case $1 in
    --override=*) overrides+=("${1#*=}") ;;
    --override)
      (($# > 1)) || refuse 'the last --override has no KEY=VALUE'
      shift
      overrides+=("$1") ;;
    *) others+=("$1") ;;
  esac
  shift
done

# --- the file -----------------------------------------------------------------------------------------------------------
# All of it runs in a subshell, in the C locale: bytes are Latin-1, as Java has it, and Kafka's own locale stays as it is.
# In what is unescaped, $wide comes before the number of a character that is written by its number.

shopt -u patsub_replacement 2>/dev/null # Bash 5.2: & in a replacement would be what was found
slash='\' wide=$'\x01' feed=$'\f' tab=$'\t'
space="[ $tab$feed]"

unescape() { # into $plain
  local rest=$1 part char
  plain=''
  while [[ $rest == *"$slash"* ]]; do
    part=${rest%%"$slash"*} rest=${rest#*"$slash"}
    plain+=${part//"$wide"/${wide}0001}
    case $rest in
      u00[2-7][0-9a-fA-F]*) printf -v char "${slash}x${rest:3:2}"; plain+=$char rest=${rest:5} ;;
      u[0-9a-fA-F][0-9a-fA-F][0-9a-fA-F][0-9a-fA-F]*) plain+=$wide${rest:1:4} rest=${rest:5} ;;
      u*) refuse "$file has a malformed ${slash}uXXXX, with which Kafka does not start either" ;;
      t*) plain+=$tab rest=${rest:1} ;;
      n*) plain+=$'\n' rest=${rest:1} ;;
      r*) plain+=$'\r' rest=${rest:1} ;;
      f*) plain+=$feed rest=${rest:1} ;;
      "$wide"*) plain+=${wide}0001 rest=${rest:1} ;;
      *) plain+=${rest:0:1} rest=${rest:1} ;;
    esac
  done
  plain+=${rest//"$wide"/${wide}0001}
}

plain_escaped() { # into $escaped, but for what depends on the place
  escaped=${1//"$slash"/$slash$slash}
  escaped=${escaped//$'\n'/${slash}n} escaped=${escaped//$'\r'/${slash}r} escaped=${escaped//"$feed"/${slash}f}
  escaped=${escaped//"$wide"/${slash}u}
}

escape_value() {
  plain_escaped "$1"
  [[ $escaped != $space* ]] || escaped=$slash$escaped
}

escape_key() {
  local char
  plain_escaped "$1"
  for char in = : '#' '!' ' ' "$tab"; do escaped=${escaped//"$char"/$slash$char}; done
}

keep() { # a logical line $1, and the natural lines $2 that it was written in
  local line=$1 head='' taken key
  while :; do # the key ends at the first separator that no backslash precedes
    taken=${line%%[=:"$slash $tab$feed"]*}
    head+=$taken line=${line#"$taken"}
    [[ $line == "$slash"* ]] || break
    head+=${line:0:2} line=${line:2}
  done
  while [[ $line == $space* ]]; do line=${line:1}; done
  if [[ $line == [=:]* ]]; then
    line=${line:1}
    while [[ $line == $space* ]]; do line=${line:1}; done
  fi
  unescape "$head"
  key=.$plain
  unescape "$line"
  keys+=("$key") lines+=("$2")
  values["$key"]=$plain states["$key"]=filed
}

scan() { # comments and blank lines are kept without a key; a logical line goes on after an odd number of backslashes
  local line piece pieces bare backslashes text='' raw='' begun=''
  ! IFS= read -r -d '' line <"$file" || refuse "$file has a byte of zero"
  while IFS= read -r line || [[ -n $line ]]; do
    pieces=()
    while [[ $line == *$'\r'* ]]; do pieces+=("${line%%$'\r'*}") line=${line#*$'\r'}; done
    [[ -z $line && ${#pieces[@]} -gt 0 ]] || pieces+=("$line")
    for piece in "${pieces[@]}"; do
      bare=$piece
      while [[ $bare == $space* ]]; do bare=${bare:1}; done
      raw+=$piece$'\n'
      if [[ -z $text && ( -z $bare || $bare == [#!]* ) ]]; then
        keys+=('') lines+=("$raw")
        raw='' begun=''
        continue
      fi
      backslashes=${bare##*[!"$slash"]}
      if ((${#backslashes} % 2)); then
        text+=${bare%"$slash"} begun=1
        continue
      fi
      keep "$text$bare" "$raw"
      text='' raw='' begun=''
    done
  done <"$file"
  [[ -z $begun ]] || keep "$text" "${raw%"$slash"$'\n'}"$'\n' # a backslash at the very end belongs to nothing
}

has() { [[ ${states[".$1"]-gone} != gone ]]; }
drop() { states[".$1"]=gone; }
put() { states[".$1"]=ours values[".$1"]=$2; }

join() { # KEY ITEM [DEFAULT]
  local list=${3-} name item kept=''
  if has "$1" && [[ -n ${values[".$1"]} ]]; then list=${values[".$1"]}; fi
  while [[ -n $list ]]; do
    item=${list%%,*}
    if [[ $list == *,* ]]; then list=${list#*,}; else list=''; fi
    name=${item%%:*} name=${name//[ $tab]/}
    [[ $name == "${2%%:*}" ]] || kept+=$item,
  done
  put "$1" "$kept$2"
}

swap() { # KEY OLD NEW
  local value
  has "$1" || return
  value=${values[".$1"]}
  [[ ${value//[ $tab]/} != "$2" ]] || put "$1" "$3"
}

copy() { # KEY FROM [DEFAULT]
  if has "$1"; then return; fi
  if has "$2"; then put "$1" "${values[".$2"]}"; elif [[ -n ${3-} ]]; then put "$1" "$3"; fi
}

apply() { # a directive
  local key words
  case $1 in
    'drop '*.)
      for key in "${!states[@]}"; do [[ $key != ".${1#* }"* ]] || states["$key"]=gone; done ;;
    'drop '*) drop "${1#* }" ;;
    'set '*)
      key=${1#* }
      unescape "${key#*=}"
      put "${key%%=*}" "$plain" ;;
    'join '* | 'swap '* | 'copy '*)
      set -f
      # shellcheck disable=SC2206 # the words of a directive have no blanks
      words=($1)
      "${words[@]}" ;;
  esac
}

gather() { # the file and its overrides, into $values and $states
  local override key
  scan
  for override in ${overrides[@]+"${overrides[@]}"}; do # in which encoding one came that is not ASCII only the JVM knows
    key=${override%%=*}
    [[ $override == ?*=* ]] || refuse "--override $override is not of the form KEY=VALUE"
    [[ $override != *[$'\x80'-$'\xff']* ]] || refuse "--override $key has a value that is not ASCII: put it into the file"
    put "$key" "${override#*=}"
  done
}

effective() { # the file that Kafka gets
  local directive key i LC_ALL=C
  declare -A values states
  keys=() lines=()
  gather
  for directive in "${directives[@]}"; do apply "$directive"; done
  [[ -z $reached ]] || (umask 077; login >"$run/login.properties") || exit
  for ((i = 0; i < ${#keys[@]}; i++)); do
    [[ -n ${keys[i]} && ${states["${keys[i]}"]} != filed ]] || printf %s "${lines[i]}"
  done
  printf '# set by Switchover for mode %s\n' "$mode"
  for key in "${!states[@]}"; do
    [[ ${states["$key"]} == ours ]] || continue
    escape_key "${key#.}"
    printf '%s=' "$escaped"
    escape_value "${values["$key"]}"
    printf '%s\n' "$escaped"
  done
}

reported() { # of the file that Kafka would get, what is asked for
  local key told=() LC_ALL=C
  declare -A values states
  keys=() lines=()
  gather
  for key in ${tells[@]+"${tells[@]}"}; do
    has "$key" || continue
    escape_value "${values[".$key"]}"
    told+=("$key=$escaped")
  done
  printf 'trial 2 %d %s\n' "${#told[@]}" "$marker"
  printf '%s\n' ${told[@]+"${told[@]}"}
}

# --- the brokers' login -------------------------------------------------------------------------------------------------

login() { # how brokers log in to one another, as a client's properties; nothing where they do not
  local listener=${values[.inter.broker.listener.name]-} map=${values[.listener.security.protocol.map]-},
  local mechanism=${values[.sasl.mechanism.inter.broker.protocol]-GSSAPI} protocol='' item from key
  local -A client=()
  while [[ $map == *,* ]]; do
    item=${map%%,*} map=${map#*,} item=${item//[ $tab]/} item=${item^^}
    [[ ${item%%:*} != "${listener^^}" ]] || protocol=${item#*:}
  done
  [[ $protocol == *SSL* || $protocol == SASL_* ]] || return 0
  for from in . ".listener.name.${listener,,}." ".listener.name.${listener,,}.${mechanism,,}."; do
    for key in "${!states[@]}"; do
      [[ ${states["$key"]} != gone && $key == "$from"* ]] || continue
      item=${key#"$from"}
      case $item in
        sasl.jaas.config | sasl.login.class | sasl.login.callback.handler.class) # Kafka reads a mechanism's own alone
          [[ $from != *".${mechanism,,}." ]] || client["$item"]=${values["$key"]} ;;
        ssl.* | sasl.* | security.providers | config.providers*) client["$item"]=${values["$key"]} ;;
      esac
    done
  done
  client[security.protocol]=$protocol client[sasl.mechanism]=$mechanism
  client[request.timeout.ms]=20000 client[default.api.timeout.ms]=20000
  for key in "${!client[@]}"; do
    escape_key "$key"
    printf '%s=' "$escaped"
    escape_value "${client["$key"]}"
    printf '%s\n' "$escaped"
  done
  # What the file does not say is in a login file, in which a client's entry has another name.
  [[ $protocol != SASL_* || -n ${client[sasl.jaas.config]-} ]] || login_file "${listener,,}" >"$run/login.jaas"
}

login_file() { # the login file that Java is told of, in which a broker's entry is a client's; $1 is the listener's name
  local named='.*-Djava\.security\.auth\.login\.config==?(file:)?([^[:space:]]+)' before='(^|[[:space:];])'
  local text file entry found
  [[ ${KAFKA_OPTS-} =~ $named ]] || return 0
  file=${BASH_REMATCH[2]}
  [[ -r $file ]] || refuse "$file, which java.security.auth.login.config names, cannot be read: no login to the brokers"
  text=$(<"$file")
  [[ $text == *KafkaServer* ]] || refuse "$file has no entry KafkaServer: no login to the brokers"
  for entry in "$1.KafkaServer" KafkaServer; do
    [[ $text =~ $before"$entry"[[:space:]]*[{] ]] || continue
    found=${BASH_REMATCH[0]} before=${BASH_REMATCH[1]} text=${text//KafkaClient/AnotherClient}
    text=${text/"$found"/"${before}KafkaClient {"}
    printf '%s\n' "$text"
    return
  done
}

log_in() { # at the brokers $1; one that restarts just now is waited for
  local tool=${door%/*}/kafka-cluster.sh words sign before status try options=${KAFKA_OPTS-}
  [[ -x $tool ]] || tool=${tool%.sh}
  [[ ! -s $run/login.jaas ]] || options+=" -Djava.security.auth.login.config=$run/login.jaas"
  for try in 1 2 3; do
    if words=$(KAFKA_JMX_OPTS=' ' JMX_PORT='' KAFKA_OPTS=$options "$tool" cluster-id \
      --bootstrap-server "$1" --config "$run/login.properties" 2>&1); then
      say "a broker of $1 lets this controller in"
      return
    else
      status=$?
    fi
    say "$words"
    for sign in SaslAuthenticationException SslAuthenticationException LoginException \
      'Failed to load SSL' 'Failed to load PEM'; do
      [[ $words == *"$sign"* ]] || continue
      words=$sign${words#*"$sign"}
      refuse "this controller cannot log in to the brokers ($1) as they do to one another: ${words%%$'\n'*}"
    done
    ((try == 3)) || sleep 5
  done
  before=${words%Exception*} words=${words#"$before"} # the line of the last exception, or the last one
  refuse "it is not known whether the brokers ($1) let this controller in: ${tool##*/} ended with $status:\
 ${before##*$'\n'}${words%%$'\n'*}"
}

if [[ $mode == Trial ]]; then
  report=$(reported) || exit
  ((${#report} < 4096)) || refuse "what Kafka would be started with is longer than a report may be: ${#report} characters"
  { printf '%s\n' "$report" >"${SWITCHOVER_TERMINATION_LOG:-/dev/termination-log}"; } 2>/dev/null ||
    refuse 'the report cannot be written'
  say 'a trial: it is reported what Kafka would be started with, and Kafka is not started'
  exit 0
fi

changed=$run/server.properties
{ (umask 077; : >"$changed"); } 2>/dev/null || refuse "$changed cannot be written"
cluster=${format%% *} release=${format#* } # no here-string: older bash writes it into a file
directory=${release#* } release=${release%% *} reached=''
let_in=$directory/switchover-login # lies with the log: what has run once is needed, and not kept down any more
if [[ $mode == P && -n $format && ! -e $let_in && -r $run/reached ]]; then reached=$(<"$run/reached"); fi
rm -f "$run/login.properties" "$run/login.jaas"
(effective) >"$changed" || exit

# --- Kafka --------------------------------------------------------------------------------------------------------------

[[ ! -s $run/login.properties ]] || log_in "$reached"

tries=0
command -v getent >/dev/null || names=''
for name in $names; do
  until getent hosts "$name" >/dev/null || ((tries++ >= 30)); do sleep 1; done
done
if [[ -n $format && ! -f $directory/meta.properties ]]; then # a log that is there is never formatted again
  tool=${door%/*}/kafka-storage.sh
  [[ -x $tool ]] || tool=${tool%.sh}
  KAFKA_JMX_OPTS=' ' JMX_PORT='' "$tool" format \
    --cluster-id="$cluster" --release-version="$release" --config="$changed" >&2 ||
    refuse 'the log directory cannot be formatted; its own words are above'
fi
[[ -z $reached ]] || : >"$let_in"
rm -f "$run/login.properties" "$run/login.jaas"
start ${daemon[@]+"${daemon[@]}"} "$changed" ${others[@]+"${others[@]}"} ${told[@]+"${told[@]}"}
