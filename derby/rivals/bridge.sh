#!/usr/bin/env bash
# What a bridge costs: instructions of a call that crosses our broker from one wire to another, of client, broker and server together, beside
# those of two direct calls, one on each wire, of client and server. All are counted by callgrind, outside the kernel. A call is `GetOrders` of
# the derby's fifth race with its answer; the broker has its contract, and reads and writes all values anew.
#
#   rivals/bridge.sh [LANE] [LANE] [SIZE] [EVERYWIRE-PROGRAM]
#
# The first LANE is the callers' (iiop), the second one the server's (nettcp); each is iiop, nettcp, basic or dbus. SIZE is "100 B", "1 kB",
# "10 kB" (the default) or "50 kB". Calls come over 32 connections, so that nobody waits in vain; ONE=1 takes one connection.
#
# Each program runs twice, with two numbers of calls; the difference is what the calls cost, without start and end. Prints for each direct
# call and for the bridge the instructions of each program, and at last what the bridge costs of the two direct calls. With PROFILES=FOLDER the
# profiles of the longer runs are kept there.
set -euo pipefail

near=${1:-iiop}
far=${2:-nettcp}
size=${3:-10 kB}
root=$(cd "$(dirname "$0")/../.." && pwd)
everywire=${4:-$root/target/release/everywire}
few=1600
more=4800
dir=$(mktemp -d)
started=()
finish() {
  for pid in "${started[@]}"; do kill "$pid" 2>/dev/null || true; done
  wait 2>/dev/null || true
  rm -rf "$dir"
}
trap finish EXIT

command -v valgrind >/dev/null || { echo "valgrind is missing: $(bash "$root/scripts/peers.sh" hint valgrind)" >&2; exit 2; }
[ -x "$everywire" ] || { echo "$everywire is missing: cargo build --release -p everywire-cli" >&2; exit 2; }
operation="$size x 32"
[ -z "${ONE:-}" ] || operation=$size

listens() { # LANE
  local quotas="security=none&MaxReceivedMessageSize=2000000&MaxArrayLength=2000000"
  case $1 in
    iiop) echo "iiop://127.0.0.1:0" ;;
    nettcp) echo "net.tcp://127.0.0.1:0?$quotas" ;;
    basic) echo "basic://127.0.0.1:0?$quotas" ;;
    dbus) echo "dbus://127.0.0.1:0" ;;
    *) echo "unknown lane: $1; see the head of $0" >&2; exit 2 ;;
  esac
}

await() { # FILE WHO
  for _ in $(seq 600); do
    [ -e "$1" ] && return 0
    sleep 0.1
  done
  echo "$2 is not ready:" >&2
  cat "$dir/out" >&2
  exit 1
}

count() { # NAME PROGRAM ARGUMENTS...: under callgrind, in place of the shell that asks
  exec valgrind --tool=callgrind --callgrind-out-file="$dir/$1" --error-limit=no -q "${@:2}"
}

# On SIGTERM callgrind writes what it has counted.
end() { # PID
  kill -TERM "$1"
  wait "$1" 2>/dev/null || true
}

# Calls over one wire, or over the bridge of two: each program's instructions for a call, in `result`; a subshell would lose the list of what was
# started.
declare -A result
run() { # NAME NEAR FAR
  local calls program
  for calls in $few $more; do
    rm -f "$dir"/*.refs
    count "$1.$calls.server" "$everywire" derby-child orders-backend "$dir/server.refs" "$(listens "$3")" >"$dir/out" 2>&1 &
    started+=($!)
    await "$dir/server.refs" "the server"
    local server=${started[-1]} refs=$dir/server.refs
    if [ "$2" != "$3" ]; then
      refs=$dir/bridge.refs
      count "$1.$calls.broker" "$everywire" broker --from "$(listens "$2")" --to "$(cut -f2 "$dir/server.refs" | head -1)" \
        --contract "$root/derby/contracts/orders.idl" --interface OrderService --ref-file "$refs" >"$dir/out" 2>&1 &
      started+=($!)
      await "$refs" "the broker"
    fi
    (count "$1.$calls.client" "$everywire" derby-child orders-client "$refs" broker --calls "$calls" --warmup 10 \
      --operation "$operation") >"$dir/client" 2>>"$dir/client.log" || { cat "$dir/client.log" >&2; exit 1; }
    [ "$2" = "$3" ] || end "${started[-1]}"
    end "$server"
  done
  result[$1]=0
  for program in client broker server; do
    [ -e "$dir/$1.$more.$program" ] || continue
    local one=$((($(total "$dir/$1.$more.$program") - $(total "$dir/$1.$few.$program")) / (more - few)))
    result[$1]=$((result[$1] + one))
    printf '%s, %s, %-6s %s\n' "$1" "$size" "$program" "$one"
    [ -z "${PROFILES:-}" ] || cp "$dir/$1.$more.$program" "$PROFILES/${1// /}.${size// /}.$program"
  done
}

# Instructions in a callgrind file.
total() { awk '/^(summary|totals):/ { print $2; exit }' "$1"; }

run "$near" "$near" "$near"
run "$far" "$far" "$far"
run "$near to $far" "$near" "$far"
awk -v bridge="${result[$near to $far]}" -v direct=$((result[$near] + result[$far])) -v what="$near to $far, $size" \
  'BEGIN { printf "%s: %d, of two direct calls %.2f\n", what, bridge, bridge / direct }'
