#!/usr/bin/env bash
# Instructions executed for one in_out_int_call, client and server each, ours and omniORB's, counted by callgrind.
#
#   rivals/instructions.sh [tcp|unix] [EVERYWIRE-PROGRAM]
#
# Each side runs twice, with two numbers of calls; the difference is what the calls cost, without start and end. Only the
# side that is counted runs under callgrind. Prints one line for each: CONTESTANT SIDE INSTRUCTIONS, and exits with 1 if ours
# executes more than omniORB on either side.
set -euo pipefail

transport=${1:-tcp}
root=$(cd "$(dirname "$0")/../.." && pwd)
everywire=${2:-$root/target/release/everywire}
few=2000
more=12000
dir=$(mktemp -d)
servers=()
finish() {
  for pid in "${servers[@]}"; do kill "$pid" 2>/dev/null || true; done
  wait 2>/dev/null || true
  rm -rf "$dir"
}
trap finish EXIT

command -v valgrind >/dev/null || { echo "valgrind is missing: $(bash "$root/scripts/peers.sh" hint valgrind)" >&2; exit 2; }
[ -x "$everywire" ] || { echo "$everywire is missing: cargo build --release -p everywire-cli" >&2; exit 2; }
omniorb=$("$everywire" derby-child omniorb-programs) || exit 2

# The server of a contestant: prefix (valgrind or nothing), file of references.
serve() { # CONTESTANT REFS [PREFIX...]
  local who=$1 refs=$2
  shift 2
  local socket=$dir/$who.$RANDOM.sock
  case "$who-$transport" in
    omniorb-tcp) set -- "$@" "$omniorb/server" --ref-file "$refs" -ORBendPoint giop:tcp:127.0.0.1: ;;
    omniorb-unix) set -- "$@" "$omniorb/server" --ref-file "$refs" -ORBendPoint "giop:unix:$socket" ;;
    everywire-tcp) set -- "$@" "$everywire" derby-child serve default "$refs" giop iiop://127.0.0.1:0 ;;
    everywire-unix) set -- "$@" "$everywire" derby-child serve default "$refs" giop "iiop+unix://$socket" ;;
  esac
  "$@" >"$dir/out" 2>&1 &
  servers+=($!)
  for _ in $(seq 600); do
    [ -e "$refs" ] && return 0
    sleep 0.1
  done
  echo "the server of $who is not ready:" >&2
  cat "$dir/out" >&2
  exit 1
}

# Warm-up calls are counted as well: they are the same in both runs.
call() { # CONTESTANT REFS CALLS [PREFIX...]
  local who=$1 refs=$2 calls=$3
  shift 3
  local plan=(--calls "$calls" --warmup 100 --operation in_out_int_call)
  case $who in
    omniorb) "$@" "$omniorb/client" "$refs" race calls "${plan[@]}" ;;
    everywire) "$@" "$everywire" derby-child race default "$refs" giop - calls "${plan[@]}" ;;
  esac >/dev/null 2>>"$dir/client.log"
}

# Instructions in a callgrind file.
total() { awk '/^(summary|totals):/ { print $2; exit }' "$1"; }

profile() { echo valgrind --tool=callgrind --callgrind-out-file="$1" --error-limit=no -q; }

# Both leave their count in `result`: a subshell would lose the list of servers to be stopped.
result=0
client_side() { # CONTESTANT
  local refs=$dir/$1.client.refs
  serve "$1" "$refs"
  for calls in $few $more; do
    # shellcheck disable=SC2046 # the words of the prefix
    call "$1" "$refs" "$calls" $(profile "$dir/$1.client.$calls")
  done
  kill "${servers[-1]}"
  result=$((($(total "$dir/$1.client.$more") - $(total "$dir/$1.client.$few")) / (more - few)))
}

server_side() { # CONTESTANT
  local pid calls
  for calls in $few $more; do
    # shellcheck disable=SC2046
    serve "$1" "$dir/$1.server.$calls.refs" $(profile "$dir/$1.server.$calls")
    pid=${servers[-1]}
    call "$1" "$dir/$1.server.$calls.refs" "$calls"
    # On SIGTERM callgrind writes what it has counted.
    kill -TERM "$pid"
    wait "$pid" 2>/dev/null || true
  done
  result=$((($(total "$dir/$1.server.$more") - $(total "$dir/$1.server.$few")) / (more - few)))
}

status=0
declare -A count
for who in omniorb everywire; do
  for side in client server; do
    "${side}_side" "$who"
    count[$who.$side]=$result
    printf '%-10s %-7s %s\n' "$who" "$side" "${count[$who.$side]}"
  done
done
for side in client server; do
  if [ "${count[everywire.$side]}" -gt "${count[omniorb.$side]}" ]; then
    echo "the $side of everywire executes more instructions than that of omniorb" >&2
    status=1
  fi
done
exit $status
