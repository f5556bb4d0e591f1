# Where a sandbox lives and which processes are its own; read by the commands
# beside it (`. sandbox/lib.sh`), never run.

checkout=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
nodes=${SANDBOX_NODES:-3}
cache=${SWITCHOVER_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/switchover}

# stretched SECONDS: of a quiet machine, as seconds of this one.
stretched() { python3 "$checkout/sandbox/patience.py" "$1"; }

say() { printf 'sandbox: %s\n' "$*" >&2; }
refuse() { say "$*"; exit 2; }

[[ $nodes =~ ^[0-9]$ ]] || refuse "SANDBOX_NODES is '$nodes'; it must be 0 (control plane alone) to 9"

if [[ $nodes == 0 ]]; then
  state=${SANDBOX_STATE:-$checkout/build/control-plane}
else
  state=${SANDBOX_STATE:-$checkout/build/sandbox}
fi
state=$(realpath -m "$state")
logs=$state/logs

# One name for everything of this sandbox that the kernel or Docker knows.
id=switchover-$(printf %s "$state" | sha256sum | cut -c1-8)

# A sandbox owns exactly the processes below its cgroup: whatever starts in a
# node stays there, whichever way the command that started it ended. With
# cgroup v1 the tree of `pids` is the one that counts; v2 has one tree only.
if [[ -d /sys/fs/cgroup/pids ]]; then
  cgroups=/sys/fs/cgroup/pids
else
  cgroups=/sys/fs/cgroup
fi

mapfile -t hierarchies < <(awk '$3 ~ /^cgroup2?$/ {print $2}' /proc/self/mounts)

sandbox_processes() {
  [[ -d $cgroups/$id ]] || return 0
  find "$cgroups/$id" -name cgroup.procs -exec cat {} + 2>/dev/null || true
}

# node_pid N: a process of the machine that stands in all namespaces of node N
# (but for the process namespace).
node_pid() {
  local pid
  pid=$(cat "$state/node-$1/pid" 2>/dev/null) && grep -qs "/$id/" "/proc/$pid/cgroup" && echo "$pid" && return
  say "node-$1 is not running"
  return 1
}

# One limit of the machine is too low for clusters: 128 inotify instances for all
# of root's programs, of which three nodes with their pods take some 60; without
# one, containerd comes up unable to run pods. The first sandbox raises it (after
# making its cgroup), and the last to end puts it back.
inotify_limit=/proc/sys/fs/inotify/max_user_instances
inotify_before=/run/switchover-inotify-limit

raise_inotify_limit() {
  (
    flock 8
    (($(<"$inotify_limit") >= 1024)) && exit
    cat "$inotify_limit" >"$inotify_before"
    echo 1024 >"$inotify_limit"
  ) 8</run
}

restore_inotify_limit() {
  (
    flock 8
    if [[ -e $inotify_before ]] && ! compgen -G "$cgroups/switchover-*" >/dev/null; then
      cat "$inotify_before" >"$inotify_limit"
      rm "$inotify_before"
    fi
  ) 8</run
}

uses_kind() { [[ -e $state/kind ]]; }
