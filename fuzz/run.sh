#!/usr/bin/env bash
# Builds the fuzz targets with libFuzzer and the address sanitizer, and runs each for some seconds from its kept corpus:
#
#   fuzz/run.sh [SECONDS [TARGET ...]]
#
# The seed is fixed unless FUZZ_SEED is set, so that a short run finds the same things everywhere. New inputs go to fuzz/target/corpus; a crash is left in fuzz/artifacts and fails the run.
set -euo pipefail
cd "$(dirname "$0")"
seconds=${1:-10}
shift || true
host=$(rustc -vV | sed -n 's/^host: //p')
targets=("$@")
[ ${#targets[@]} -gt 0 ] || mapfile -t targets < <(sed -n 's/^name = "\(.*\)"$/\1/p' Cargo.toml | tail -n +2)

# Coverage instrumentation is not stable yet; the compiler is.
export RUSTC_BOOTSTRAP=1
export RUSTFLAGS="-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
  -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
  -Cllvm-args=-sanitizer-coverage-trace-compares -Zsanitizer=address -Ccodegen-units=1 --cfg fuzzing"
cargo build --release --locked --quiet --target "$host" --target-dir target "${targets[@]/#/--bin=}"

# Recursive types of a contract are kept for the life of the process, on purpose.
export ASAN_OPTIONS=detect_leaks=0
mkdir -p artifacts
for target in "${targets[@]}"; do
  mkdir -p "target/corpus/$target" "corpus/$target"
  log="target/$target.log"
  if "target/$host/release/$target" "target/corpus/$target" "corpus/$target" -max_total_time="$seconds" -timeout=10 \
    -rss_limit_mb=2048 -max_len=8192 -seed="${FUZZ_SEED:-1}" -artifact_prefix="artifacts/$target-" -print_final_stats=1 >"$log" 2>&1; then
    runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
    edges=$(grep -oE 'cov: [0-9]+' "$log" | tail -n 1)
    echo "fuzz $target: $runs runs, ${edges:-cov: ?}"
  else
    tail -n 40 "$log"
    echo "fuzz $target: FAILED, see fuzz/artifacts" >&2
    exit 1
  fi
done
