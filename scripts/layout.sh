#!/usr/bin/env bash
# Which functions run for each call, and so are to stand together in the program: writes cli/hot.ld, which the linker gets.
#
#   scripts/layout.sh [EVERYWIRE-PROGRAM]
#
# Calls go over a Unix socket on each wire, once with the client and once with the server under callgrind. A call touches some
# 70 pages of code on each side, spread over all of the program; so they are 50, and a call of WCF takes 1.5 % less time.
# To be run again when functions of the hot path have other names; what is not found is left where it is.
set -euo pipefail

root=$(cd "$(dirname "$0")/.." && pwd)
everywire=${1:-$root/target/release/everywire}
calls=2000
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

serve() { # COURSE SCHEME REFS [PREFIX...]
  local course=$1 scheme=$2 refs=$3
  shift 3
  "$@" "$everywire" derby-child serve default "$refs" "$course" "$scheme+unix://$dir/$RANDOM.sock" >"$dir/out" 2>&1 &
  servers+=($!)
  for _ in $(seq 600); do
    [ -e "$refs" ] && return 0
    sleep 0.1
  done
  echo "the server of $scheme is not ready:" >&2
  cat "$dir/out" >&2
  exit 1
}

race() { # COURSE REFS RACE OPERATION [PREFIX...]
  local course=$1 refs=$2 race=$3 operation=$4
  shift 4
  "$@" "$everywire" derby-child race default "$refs" "$course" - "$race" --calls $calls --warmup 100 --operation "$operation" \
    >/dev/null 2>>"$dir/client.log" || { cat "$dir/client.log" >&2; exit 1; }
}

profile() { echo valgrind --tool=callgrind --demangle=no --callgrind-out-file="$dir/$1.callgrind" --error-limit=no -q; }

# The most urgent wires first: what they share with others stands with them.
for way in giop:iiop dbus:dbus wcf:net.tcp wcf:wshttp wcf:basic wcf:binhttp dcom:dcom; do
  course=${way%%:*} scheme=${way#*:}
  for what in calls:in_out_int_call calls:in_out_string_call "bytes:GetBytes 100 B"; do
    name=$course:$scheme:${what##*:}
    name=${name// /-}
    refs=$dir/$name.refs
    serve "$course" "$scheme" "$refs"
    # shellcheck disable=SC2046 # the words of the prefix
    race "$course" "$refs" "${what%%:*}" "${what#*:}" $(profile "$name.client")
    kill "${servers[-1]}"
    refs=$dir/$name.other-refs
    # shellcheck disable=SC2046
    serve "$course" "$scheme" "$refs" $(profile "$name.server")
    race "$course" "$refs" "${what%%:*}" "${what#*:}"
    # On SIGTERM callgrind writes what it has counted.
    kill -TERM "${servers[-1]}"
    wait "${servers[-1]}" 2>/dev/null || true
    echo "$dir/$name.client.callgrind" >>"$dir/profiles"
    echo "$dir/$name.server.callgrind" >>"$dir/profiles"
    echo "layout: $name"
  done
done
# shellcheck disable=SC2046 # one name a line, without blanks
python3 "$root/scripts/layout.py" "$everywire" $calls $(cat "$dir/profiles") >"$dir/hot.ld"
cp "$dir/hot.ld" "$root/cli/hot.ld"
echo "layout: $(grep -c '(.text' "$root/cli/hot.ld") functions in cli/hot.ld"
