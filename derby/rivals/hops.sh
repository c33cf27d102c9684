#!/usr/bin/env bash
# What a message costs a hop: instructions of our broker outside the kernel, counted by callgrind, and system calls of our broker and of the
# forwarder of raw bytes, counted by strace. A message is a call with its answer, `GetOrders` of the derby's fifth race.
#
#   rivals/hops.sh [LANE] [SIZE] [EVERYWIRE-PROGRAM]
#
# LANE is iiop, nettcp, basic, ws or dbus; SIZE "100 B", "1 kB", "10 kB" or "50 kB". Messages come over 32 connections, so that nobody waits
# for the hop in vain; ONE=1 takes one connection. FORMS chooses among pass, copy, change-copy and copy-change, and
# CALLS=0 leaves the system calls out.
#
# Each hop runs twice, with two numbers of messages; the difference is what the messages cost, without start and end. Prints
# LANE SIZE FORM INSTRUCTIONS and, beside forms that change or copy, how much more than pass-through that is; then the calls a message by
# name. With PROFILES=FOLDER the profiles of the longer runs are kept there.
set -euo pipefail

lane=${1:-iiop}
size=${2:-10 kB}
root=$(cd "$(dirname "$0")/../.." && pwd)
everywire=${3:-$root/target/release/everywire}
few=3200
more=9600
dir=$(mktemp -d)
started=()
finish() {
  for pid in "${started[@]}"; do kill "$pid" 2>/dev/null || true; done
  wait 2>/dev/null || true
  rm -rf "$dir"
}
trap finish EXIT

for program in valgrind strace g++; do
  command -v $program >/dev/null || { echo "$program is missing: $(bash "$root/scripts/peers.sh" hint $program)" >&2; exit 2; }
done
[ -x "$everywire" ] || { echo "$everywire is missing: cargo build --release -p everywire-cli" >&2; exit 2; }

quotas="security=none&MaxReceivedMessageSize=2000000&MaxArrayLength=2000000"
case $lane in
  iiop) address=iiop://127.0.0.1 options= header=0x45570001 ;;
  nettcp) address=net.tcp://127.0.0.1 options="?$quotas" header="{urn:derby}Passed" ;;
  basic) address=basic://127.0.0.1 options="?$quotas" header="{urn:derby}Passed" ;;
  ws) address=wshttp://127.0.0.1 options="?$quotas" header="{urn:derby}Passed" ;;
  dbus) address=dbus://127.0.0.1 options= header=200 ;;
  *) echo "unknown lane: $lane; see the head of $0" >&2; exit 2 ;;
esac
operation="$size x 32"
[ -z "${ONE:-}" ] || operation=$size

await() { # FILE WHO
  for _ in $(seq 600); do
    [ -e "$1" ] && return 0
    sleep 0.1
  done
  echo "$2 is not ready:" >&2
  cat "$dir/out" >&2
  exit 1
}

backend() {
  "$everywire" derby-child orders-backend "$dir/backend.refs" "$address:0$options" >"$dir/out" 2>&1 &
  started+=($!)
  await "$dir/backend.refs" "the backend"
}

call() { # REFS CALLS
  "$everywire" derby-child orders-client "$1" broker --calls "$2" --warmup 10 --operation "$operation" >"$dir/client" 2>>"$dir/client.log" \
    || { cat "$dir/client.log" >&2; exit 1; }
}

# The reference of the backend, with the quotas that its largest answer needs.
target() {
  local to
  to=$(cut -f2 "$dir/backend.refs" | head -1)
  case $lane in
    nettcp | basic | ws) case $to in *\?*) echo "$to&${options#*&}" ;; *) echo "$to?${options#*&}" ;; esac ;;
    *) echo "$to" ;;
  esac
}

port() { python3 -c 'import sys, urllib.parse; print(urllib.parse.urlsplit(sys.argv[1].strip()).port)' "$1"; }

free_port() { python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }

# Starts a hop behind the prefix; its references are in $dir/hop.refs.
hop() { # FORM [PREFIX...]
  local form=$1 edits=() before to
  shift
  rm -f "$dir/hop.refs"
  to=$(target)
  case $form in
    forwarder)
      local back front
      back=$(port "$to") front=$(free_port)
      [ -e "$dir/forwarder" ] || cc -std=gnu11 -O2 -o "$dir/forwarder" "$root/derby/rivals/forwarder/forwarder.c"
      sed "s/127.0.0.1:$back/127.0.0.1:$front/" "$dir/backend.refs" >"$dir/called.refs"
      "$@" "$dir/forwarder" "$front" "$back" >"$dir/out" 2>&1 &
      started+=($!)
      for _ in $(seq 100); do
        (exec 3<>"/dev/tcp/127.0.0.1/$front") 2>/dev/null && return 0
        sleep 0.1
      done
      exit 1
      ;;
    pass) set -- "$@" "$everywire" broker --from "$address:0$options" --to "$to" --ref-file "$dir/hop.refs" ;;
    *)
      case $form in
        change-copy) before=true ;;
        copy-change) before=false ;;
        copy) before= ;;
        *) echo "unknown form: $form" >&2; exit 2 ;;
      esac
      {
        printf '[listen.front]\naddress = "%s:0%s"\n\n[[route]]\nname = "orders"\nto = ["%s"]\n' "$address" "$options" "$to"
        printf 'copy = { count = true, answers = true }\n'
        if [ -n "$before" ]; then
          printf 'edits = [\n'
          printf '  { put = "%s", value = "by a broker", before-copy = %s, answers = %s },\n' "$header" $before false "$header" $before true
          printf ']\n'
        fi
      } >"$dir/broker.toml"
      set -- "$@" "$everywire" broker "$dir/broker.toml" --ref-file "$dir/hop.refs"
      ;;
  esac
  "$@" >"$dir/out" 2>&1 &
  started+=($!)
  await "$dir/hop.refs" "the hop"
  # A reference that says `http:` takes no quotas.
  sed "s#\thttp:#\t${address%%:*}:#" "$dir/hop.refs" >"$dir/called.refs"
}

end() { # PID
  kill -TERM "$1"
  wait "$1" 2>/dev/null || true
}

# Instructions of a form for one message, in `result`: a subshell would lose the list of what has been started.
result=0
instructions() { # FORM
  local counts=()
  for calls in $few $more; do
    local profile=$dir/$1.$calls
    hop "$1" valgrind --tool=callgrind --callgrind-out-file="$profile" --error-limit=no -q
    call "$dir/called.refs" "$calls"
    end "${started[-1]}"
    counts+=("$(awk '/^(summary|totals):/ { print $2; exit }' "$profile")")
  done
  [ -z "${PROFILES:-}" ] || cp "$dir/$1.$more" "$PROFILES/$lane.${size// /}.$1"
  result=$(((counts[1] - counts[0]) / (more - few)))
}

# Prints how many system calls of each name a message takes.
system_calls() { # FORM
  for calls in $few $more; do
    hop "$1" strace -f -c -U name,calls -o "$dir/$1.calls.$calls"
    call "$dir/called.refs" "$calls"
    # strace passes nothing on: the hop itself is ended.
    end "$(cat "/proc/${started[-1]}/task/${started[-1]}/children")"
    wait "${started[-1]}" 2>/dev/null || true
  done
  awk -v who="$1" -v messages=$((more - few)) -v head="$lane, $size, $1: system calls a message:" '
    FNR == 1 { file++ }
    $2 + 0 > 0 && $1 != "total" { if (file == 1) few[$1] = $2; else all[$1] = $2 }
    END {
      printf "%s", head
      for (name in all) { n = (all[name] - few[name]) / messages; if (n > 0.005) printf " %s %.2f", name, n }
      print ""
    }' "$dir/$1.calls.$few" "$dir/$1.calls.$more"
}

backend
pass=
for form in ${FORMS:-pass copy change-copy copy-change}; do
  instructions "$form"
  [ "$form" != pass ] || pass=$result
  beside=
  [ -z "$pass" ] || [ "$form" = pass ] || beside=$(awk -v now="$result" -v pass="$pass" 'BEGIN { printf "%+.1f %%", (now / pass - 1) * 100 }')
  printf '%s, %s, %-12s %s %s\n' "$lane" "$size" "$form" "$result" "$beside"
done
[ "${CALLS:-1}" = 1 ] || exit 0
for form in forwarder pass; do
  system_calls "$form"
done
