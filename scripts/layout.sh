#!/usr/bin/env bash
# Which functions run for each call, and so are to stand together in the program: writes cli/hot.ld, which the linker gets.
#
#   scripts/layout.sh [EVERYWIRE-PROGRAM]
#
# Calls go over a Unix socket on each wire, once with the client and once with the server under callgrind; then messages pass the broker on
# each wire that `everywire derby broker` knows. A call touches some 70 pages of code on each side, spread over all of the program; so they
# are 50, and a call of WCF takes 1.5 % less time.
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

await() { # FILE WHO
  for _ in $(seq 600); do
    [ -e "$1" ] && return 0
    sleep 0.1
  done
  echo "$2 is not ready:" >&2
  cat "$dir/out" >&2
  exit 1
}

serve() { # COURSE SCHEME REFS [PREFIX...]
  local course=$1 scheme=$2 refs=$3
  shift 3
  "$@" "$everywire" derby-child serve default "$refs" "$course" "$scheme+unix://$dir/$RANDOM.sock" >"$dir/out" 2>&1 &
  servers+=($!)
  await "$refs" "the server of $scheme"
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

# A broker between a client and a service, 32 connections: a message of 1 kB as it is, and one that is copied and has a header changed.
hop() { # COURSE LANE ADDRESS OPTIONS HEADER
  local course=$1 lane=$2 address=$3 options=$4 header=$5 back=$dir/$2.back to form name
  "$everywire" derby-child orders-backend "$back" "$address:0$options" >"$dir/out" 2>&1 &
  servers+=($!)
  await "$back" "the service of $lane"
  to=$(cut -f2 "$back" | head -1)
  for form in pass edit; do
    name=$course:$lane-hop:$form
    {
      printf '[listen.front]\naddress = "%s:0%s"\n\n[[route]]\nname = "orders"\nto = ["%s"]\n' "$address" "$options" "$to"
      [ $form = pass ] || printf 'copy = { count = true, answers = true }\nedits = [{ put = "%s", value = "by a broker" }]\n' "$header"
    } >"$dir/broker.toml"
    # shellcheck disable=SC2046
    $(profile "$name.hop") "$everywire" broker "$dir/broker.toml" --ref-file "$dir/$lane.$form" >"$dir/out" 2>&1 &
    servers+=($!)
    await "$dir/$lane.$form" "the broker of $lane"
    "$everywire" derby-child orders-client "$dir/$lane.$form" broker --calls $calls --warmup 10 --operation "1 kB x 32" \
      >/dev/null 2>>"$dir/client.log" || { cat "$dir/client.log" >&2; exit 1; }
    kill -TERM "${servers[-1]}"
    wait "${servers[-1]}" 2>/dev/null || true
    echo "$dir/$name.hop.callgrind" >>"$dir/profiles"
    echo "layout: $name"
  done
}

quotas="?security=none&MaxReceivedMessageSize=2000000&MaxArrayLength=2000000"
hop giop iiop iiop://127.0.0.1 "" 0x45570001
hop dbus dbus dbus://127.0.0.1 "" 200
hop wcf net.tcp net.tcp://127.0.0.1 "$quotas" "{urn:layout}Passed"
hop wcf wshttp wshttp://127.0.0.1 "$quotas" "{urn:layout}Passed"
hop wcf basic basic://127.0.0.1 "$quotas" "{urn:layout}Passed"
# shellcheck disable=SC2046 # one name a line, without blanks
python3 "$root/scripts/layout.py" "$everywire" $calls $(cat "$dir/profiles") >"$dir/hot.ld"
cp "$dir/hot.ld" "$root/cli/hot.ld"
echo "layout: $(grep -c '(.text' "$root/cli/hot.ld") functions in cli/hot.ld"
