#!/usr/bin/env bash
# Instructions executed for one in_out_int_call, client and server each, ours and a rival's, counted by callgrind.
#
#   rivals/instructions.sh [WAY] [EVERYWIRE-PROGRAM]
#
# WAY is one of
#   tcp, unix       GIOP, beside omniORB
#   dbus            D-Bus between two peers over a Unix socket
#   nettcp          WCF's net.tcp
#   dcom            DCOM over a Unix socket, level none
#   dcop            DCOP through our dcopserver, over its Unix socket
#   all             each of them
#
# Each side runs twice, with two numbers of calls; the difference is what the calls cost, without start and end. Only the
# side that is counted runs under callgrind, and of a client only what the call itself executes: what it measures and prints is no part of
# the contestant. All runs on one CPU: on two, ours looks in vain for what comes a few times more, by how far the other side has come, and
# no two runs agree (ONE_CPU=no counts that, too). Prints one line for each: WAY CONTESTANT SIDE INSTRUCTIONS, and exits with 1 if ours
# executes more than omniORB on either side. With PROFILES=FOLDER the profiles of the longer runs are kept there.
set -euo pipefail

way=${1:-tcp}
root=$(cd "$(dirname "$0")/../.." && pwd)
everywire=${2:-$root/target/release/everywire}
few=2000
more=12000
if [ "${ONE_CPU:-yes}" = yes ]; then
  cpus=$(taskset -pc $$)
  taskset -pc "${cpus##*[ ,-]}" $$ >/dev/null
fi
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

if [ "$way" = all ]; then
  status=0
  for way in tcp unix dbus nettcp dcom dcop; do
    bash "$0" "$way" "$everywire" || status=$?
  done
  exit $status
fi
case $way in
  tcp) course=giop address=iiop://127.0.0.1:0 ;;
  unix) course=giop address=iiop+unix://SOCKET ;;
  dbus) course=dbus address=dbus+unix://SOCKET ;;
  nettcp) course=wcf address="net.tcp://127.0.0.1:0?security=none" ;;
  dcom) course=dcom address="dcom+unix://SOCKET?level=none" ;;
  dcop) course=dcop address= ;;
  *) echo "unknown way: $way; see the head of $0" >&2; exit 2 ;;
esac
contestants=(everywire)
if [ $course = giop ]; then
  omniorb=$("$everywire" derby-child omniorb-programs) || exit 2
  contestants=(omniorb everywire)
fi

await() { # FILE WHO
  for _ in $(seq 600); do
    [ -e "$1" ] && return 0
    sleep 0.1
  done
  echo "$2 is not ready:" >&2
  cat "$dir/out" >&2
  exit 1
}

if [ $course = dcop ]; then
  # Clients and servers find the router and its secret in this folder.
  export HOME=$dir ICEAUTHORITY=$dir/cookies DCOPAUTHORITY=$dir/authority
  "$everywire" derby-child hub "$dir/hub.sock" >"$dir/out" 2>&1 &
  servers+=($!)
  await "$dir/authority" "our dcopserver"
  address="dcop+unix://$dir/hub.sock#benchmarking"
fi

# The server of a contestant: prefix (valgrind or nothing), file of references.
serve() { # CONTESTANT REFS [PREFIX...]
  local who=$1 refs=$2
  shift 2
  local socket=$dir/$who.$RANDOM.sock
  case "$who-$way" in
    omniorb-tcp) set -- "$@" "$omniorb/server" --ref-file "$refs" -ORBendPoint giop:tcp:127.0.0.1: ;;
    omniorb-unix) set -- "$@" "$omniorb/server" --ref-file "$refs" -ORBendPoint "giop:unix:$socket" ;;
    *) set -- "$@" "$everywire" derby-child serve default "$refs" $course "${address/SOCKET/$socket}" ;;
  esac
  "$@" >"$dir/out" 2>&1 &
  servers+=($!)
  await "$refs" "the server of $who"
}

# Warm-up calls are counted as well: they are the same in both runs.
call() { # CONTESTANT REFS CALLS [PREFIX...]
  local who=$1 refs=$2 calls=$3
  shift 3
  local plan=(--calls "$calls" --warmup 100 --operation in_out_int_call)
  case $who in
    omniorb) "$@" "$omniorb/client" "$refs" race calls "${plan[@]}" ;;
    everywire) "$@" "$everywire" derby-child race default "$refs" $course - calls "${plan[@]}" ;;
  esac >/dev/null 2>>"$dir/client.log"
}

# Instructions in a callgrind file.
total() { awk '/^(summary|totals):/ { print $2; exit }' "$1"; }

profile() { echo valgrind --tool=callgrind --callgrind-out-file="$1" --error-limit=no -q "${@:2}"; }

# What the stub executes, with all that it calls.
stub() { # CONTESTANT
  case $1 in
    omniorb) echo '--toggle-collect=_objref_benchmarking::in_out_int_call*' ;;
    everywire) echo '--toggle-collect=*generated::Stub*::in_out_int*' ;;
  esac
}

# Both leave their count in `result`: a subshell would lose the list of servers to be stopped.
result=0
client_side() { # CONTESTANT
  local refs=$dir/$1.client.refs
  serve "$1" "$refs"
  for calls in $few $more; do
    # shellcheck disable=SC2046 # the words of the prefix
    call "$1" "$refs" "$calls" $(profile "$dir/$1.client.$calls" "$(stub "$1")")
  done
  end "${servers[-1]}"
  result=$((($(total "$dir/$1.client.$more") - $(total "$dir/$1.client.$few")) / (more - few)))
}

server_side() { # CONTESTANT
  local calls
  for calls in $few $more; do
    # shellcheck disable=SC2046
    serve "$1" "$dir/$1.server.$calls.refs" $(profile "$dir/$1.server.$calls")
    call "$1" "$dir/$1.server.$calls.refs" "$calls"
    end "${servers[-1]}"
  done
  result=$((($(total "$dir/$1.server.$more") - $(total "$dir/$1.server.$few")) / (more - few)))
}

# On SIGTERM callgrind writes what it has counted.
end() { # PID
  kill -TERM "$1"
  wait "$1" 2>/dev/null || true
}

status=0
declare -A count
for who in "${contestants[@]}"; do
  for side in client server; do
    "${side}_side" "$who"
    count[$who.$side]=$result
    printf '%-7s %-10s %-7s %s\n' "$way" "$who" "$side" "$result"
    [ -z "${PROFILES:-}" ] || cp "$dir/$who.$side.$more" "$PROFILES/$way.$who.$side"
  done
done
[ $course = giop ] || exit 0
for side in client server; do
  if [ "${count[everywire.$side]}" -gt "${count[omniorb.$side]}" ]; then
    echo "the $side of everywire executes more instructions than that of omniorb" >&2
    status=1
  fi
done
exit $status
