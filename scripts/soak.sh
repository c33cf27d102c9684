#!/usr/bin/env bash
# What takes hours and finds what short tests cannot: run it apart from `make test`, overnight or before a release.
#
#   scripts/soak.sh [HOURS] [PART ...]            24 hours unless said, shared by the parts
#   scripts/soak.sh --minutes 2 fuzz              one part for a short time
#
# Parts, in this order:
#   fuzz       each fuzz target with a new seed, from the kept corpora (fuzz/run.sh); what is new is kept (fuzz/keep.sh)
#   faults     each wire through a relay that breaks connections, with servers that are killed, without descriptors, and on a
#              full disk (tests/tests/faults.rs)
#   endings    whatever ends a connection, 10,000 calls a cell; nothing lost or doubled (tests/tests/endings.rs)
#   load       clients of all wires that come, call in any order and leave; every answer is right, nothing stays (tests/tests/load.rs)
#   broker     the broker at full load while its targets are killed, among callers that do nothing, with copies that nobody reads, and while
#              its file changes (broker/tests/suite/fire.rs)
#   endurance  clients that call, listen, and are killed at random; nothing of them stays (tests/tests/endurance_dcom.rs)
#   features   each wire, language and way of authentication is built alone, without warnings
#   loom       the protocols of the shared-memory rings and of the hand-over of shards, in every order of their steps
#   address    the rooms with `unsafe` under the address sanitizer (scripts/sanitize.sh)
#   thread     the runtime's tests under the thread sanitizer
#   miri       `model` and the codecs under Miri
#
# A part that cannot run on this machine says so in the table and counts as left out; with CI=true that is a failure. The seed
# is printed; SOAK_SEED repeats a run. Logs are in build/soak. The exit code is 1 when anything was found.
set -uo pipefail
cd "$(dirname "$0")/.."

all=(fuzz faults endings load broker endurance features loom address thread miri)
minutes=$((24 * 60))
if [ "${1:-}" = --minutes ]; then
  minutes=${2:?--minutes needs a number}
  shift 2
elif [[ ${1:-} =~ ^[0-9]+$ ]]; then
  minutes=$(($1 * 60))
  shift
fi
parts=("$@")
[ ${#parts[@]} -gt 0 ] || parts=("${all[@]}")
for part in "${parts[@]}"; do
  [[ " ${all[*]} " == *" $part "* ]] || { echo "scripts/soak.sh: no part is called \`$part\`; there are: ${all[*]}" >&2; exit 2; }
done

# A number that other parts can begin at; each run takes another one.
seed=${SOAK_SEED:-$(od -An -N3 -tu4 /dev/urandom | tr -d ' ')}
logs=build/soak
mkdir -p "$logs"
host=$(rustc -vV | sed -n 's/^host: //p')
target=$(realpath -m "${CARGO_TARGET_DIR:-target}")
sources=$(rustc --print sysroot)/lib/rustlib/src/rust/library

# Parts whose length can be chosen share the time; the others take what they need.
long=0
for part in "${parts[@]}"; do
  [[ $part != fuzz && $part != faults && $part != load && $part != broker && $part != endurance ]] || long=$((long + 1))
done
seconds=$((minutes * 60 / (long > 0 ? long : 1)))
echo "soak: seed $seed (SOAK_SEED=$seed repeats it), ${seconds} s for each of the $long parts that have no end of their own"

# Runs tests of the tests' program that `make test` has built, without its limit of time; what is built alone for this package would
# have other features, and take as long as everything. Says on its standard error what is built, if something has changed.
soak_tests() { # PART FILTER ARGUMENT...
  local part=$1 filter=$2
  shift 2
  PATH="$(bash scripts/peers.sh path):$PATH" EVERYWIRE_PROGRAM="$target/debug/everywire" \
    cargo nextest run --profile soak --locked --workspace --run-ignored all --no-output-indent --success-output immediate \
    -E "package(=everywire-tests) and test($filter)" "$@" >"$logs/$part.log" 2>&1
}

# Each part prints one line for the table. It returns 0 when all is well, 1 when it found something, 77 when it cannot run here.

soak_fuzz() {
  local count each
  count=$(grep -c '^\[\[bin\]\]' fuzz/Cargo.toml)
  each=$((seconds / count > 0 ? seconds / count : 1))
  FUZZ_SEED=$seed bash fuzz/run.sh "$each" >"$logs/fuzz.log" 2>&1
  local result=$?
  local runs
  runs=$(sed -n 's/^fuzz [a-z_0-9]*: \([0-9]*\) runs.*/\1/p' "$logs/fuzz.log" | awk '{ all += $1 } END { print all + 0 }')
  echo "$count targets, $each s each, $runs runs, $(grep -c FAILED "$logs/fuzz.log") failed"
  return $((result > 0))
}

soak_faults() {
  # Ten tests that take as long as they are told to, two at a time, and the four that kill together.
  local each=$((seconds / 6 > 0 ? seconds / 6 : 1))
  EVERYWIRE_FAULTS_SEED=$seed EVERYWIRE_FAULTS_SECONDS=$each soak_tests faults '/^faults::/' --test-threads=2
  local result=$?
  local calls
  calls=$(grep -ao '"acknowledged": [0-9]*' "$logs/faults.log" | awk '{ all += $2 } END { print all + 0 }')
  echo "$calls calls acknowledged, $(grep -acE '^(faults|kills) ' "$logs/faults.log") runs"
  [ "$result" = 0 ] && [ "$calls" -gt 0 ]
}

soak_endings() {
  EVERYWIRE_ENDINGS_CALLS=10000 soak_tests endings '/^endings::/' --test-threads=4
  local result=$?
  # The table is in the log; a cell is a line.
  echo "$(grep -acE '^\| .* doubled, .* lost \|$' "$logs/endings.log") cells, $(grep -acE ' 0 doubled, 0 lost \|$' "$logs/endings.log") without fault"
  return $((result > 0))
}

soak_load() {
  EVERYWIRE_LOAD_SEED=$seed EVERYWIRE_LOAD_SECONDS=$seconds soak_tests load '/^load::/'
  local result=$?
  local calls
  calls=$(sed -n 's/^load: \([0-9]*\) calls.*/\1/p' "$logs/load.log" | head -n 1)
  echo "${calls:-0} calls on $(grep -acE ' KiB grown$' "$logs/load.log") wires"
  [ "$result" = 0 ] && [ "${calls:-0}" -gt 0 ]
}

soak_broker() {
  # Two tests take as long as they are told to, one after the other; the others count.
  PATH="$(bash scripts/peers.sh path):$PATH" EVERYWIRE_FIRE_SECONDS=$((seconds / 2 > 20 ? seconds / 2 : 20)) \
    cargo nextest run --profile soak --locked --workspace --no-output-indent --success-output immediate --test-threads=1 \
    -E 'package(=everywire-broker) and test(/fire::/)' >"$logs/broker.log" 2>&1
  local result=$?
  echo "$(grep -acE '^fire: ' "$logs/broker.log") runs, $(sed -n 's/^fire: .* \([0-9]*\) kills;.*/\1/p' "$logs/broker.log" | awk '{ all += $1 } END { print all + 0 }') kills"
  return $((result > 0))
}

soak_endurance() {
  # About 100 cycles a second: the number is what fits, and the test tells how many it made.
  EVERYWIRE_CYCLES=$((seconds * 60)) soak_tests endurance '/killed_at_random/'
  local result=$?
  grep -aoE '^[0-9]+ cycles and .*' "$logs/endurance.log" | cut -c1-110 | head -n 1
  return $((result > 0))
}

soak_features() {
  local package feature failed=0 built=0
  : >"$logs/features.log"
  for package in everywire everywire-auth everywire-codegen; do
    for feature in '' $(cargo metadata --locked --no-deps --format-version 1 |
      python3 -c 'import json, sys; print(*[f for p in json.load(sys.stdin)["packages"] if p["name"] == sys.argv[1] for f in p["features"] if f != "default"])' "$package"); do
      built=$((built + 1))
      echo "== $package: ${feature:-none}" >>"$logs/features.log"
      RUSTFLAGS="-D warnings" cargo check --quiet --locked --target-dir "$target/features" --package "$package" --no-default-features --features "$feature" >>"$logs/features.log" 2>&1 ||
        failed=$((failed + 1))
    done
  done
  echo "$built sets of features, $failed failed"
  return $((failed > 0))
}

soak_loom() {
  (cd runtime/loom && cargo test --release --locked --target-dir "$target/loom" -- --nocapture) >"$logs/loom.log" 2>&1
  local result=$?
  grep -aE '^test result' "$logs/loom.log" | sort -r | head -n 1
  return $((result > 0))
}

soak_address() {
  bash scripts/sanitize.sh >"$logs/address.log" 2>&1
  local result=$?
  echo "$(grep -acE '^test .* ok$' "$logs/address.log") tests, $(grep -ac 'ERROR: AddressSanitizer' "$logs/address.log") reports"
  return $((result > 0))
}

# The standard library of the toolchain is built without instrumentation. Then the sanitizer cannot see what its atomics order,
# and reports races that are none; so it has to be built as well, which needs its source.
soak_thread() {
  if [ ! -d "$sources" ]; then
    echo "needs the component rust-src (rustup component add rust-src), to build the standard library with it"
    return 77
  fi
  # Of the tests that are left out, the first weighs the whole process, and the sanitizer's own memory with it. The second makes the runtime
  # answer so much that a message is not read for longer than it may take.
  # The trace of a panic takes 15 s here, which is longer than a call of a test waits on a busy machine.
  RUST_BACKTRACE=0 RUSTC_BOOTSTRAP=1 RUSTFLAGS="-Zsanitizer=thread" TSAN_OPTIONS="halt_on_error=0 exitcode=66" \
    cargo test --locked -Zbuild-std -p everywire-runtime --target "$host" --target-dir "$target/thread" --tests \
    -- --skip cost_little_more_than_the_budget --skip questions_of_a_server >"$logs/thread.log" 2>&1
  local result=$?
  echo "$(grep -acE '^test .* ok$' "$logs/thread.log") tests, $(grep -ac 'WARNING: ThreadSanitizer' "$logs/thread.log") reports"
  return $((result > 0))
}

soak_miri() {
  # Only toolchains of a night have Miri.
  if ! cargo +nightly miri --version >/dev/null 2>&1; then
    echo "needs Miri (rustup toolchain install nightly --profile minimal --component miri,rust-src)"
    return 77
  fi
  # Isolation would keep tests from files and from the clock. A test that ends with a call unanswered leaks it, on purpose.
  # Each test is a process, one for each processor: alone, one after the other, they take hours.
  PATH="$(bash scripts/peers.sh path):$PATH" MIRIFLAGS="-Zmiri-disable-isolation -Zmiri-ignore-leaks" \
    cargo +nightly miri nextest run --profile soak --locked --no-fail-fast --test-threads "$(nproc)" --status-level pass \
    --target-dir "$target/miri" --lib -p everywire-model -p everywire-giop -p everywire-dbus -p everywire-dcop -p everywire-dcom \
    -p everywire-wcf >"$logs/miri.log" 2>&1
  local result=$?
  echo "$(grep -acE '^ +PASS ' "$logs/miri.log") tests, $(grep -ac 'Undefined Behavior' "$logs/miri.log") reports"
  return $((result > 0))
}

# What the parts that run tests have in common is built before their time begins.
for part in "${parts[@]}"; do
  case $part in faults | endings | load | broker | endurance)
    PATH="$(bash scripts/peers.sh path):$PATH" cargo nextest run --locked --workspace --no-run --cargo-quiet || exit 1
    break
    ;;
  esac
done

found=0
left_out=0
table=()
for part in "${parts[@]}"; do
  begun=$SECONDS
  echo "soak: $part"
  line=$("soak_$part")
  case $? in
  0) state="ok" ;;
  77) state="LEFT OUT" left_out=$((left_out + 1)) ;;
  *) state="FOUND" found=$((found + 1)) ;;
  esac
  table+=("$(printf '%-10s %-9s %6d s  %s' "$part" "$state" $((SECONDS - begun)) "$line")")
  printf '%s\n' "${table[-1]}"
done

echo
echo "soak, seed $seed; what each part said is in $logs"
printf '%s\n' "${table[@]}"
echo "$found part(s) found something, $left_out left out"
[ "$found" = 0 ] || exit 1
[ "$left_out" = 0 ] || [ "${CI:-}" != true ] || exit 1
