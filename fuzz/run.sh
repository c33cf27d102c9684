#!/usr/bin/env bash
# Builds the fuzz targets with libFuzzer and the address sanitizer, and runs each for some seconds:
#
#   fuzz/run.sh [SECONDS [TARGET ...]]
#
# Inputs that reach new code are kept between runs in $FUZZ_KEPT (fuzz/kept/TARGET unless set), which is outside of git;
# fuzz/keep.sh takes the least part of them that reaches the same code over into fuzz/corpus, which plain tests replay.
# The seed is another one each time, and is printed; FUZZ_SEED repeats a run. A crash is left in fuzz/artifacts; the other
# targets are run all the same, and the run fails in the end.
set -euo pipefail
cd "$(dirname "$0")"
seconds=${1:-10}
shift || true
host=$(rustc -vV | sed -n 's/^host: //p')
all=$(sed -n '/^\[\[bin\]\]/,$ s/^name = "\(.*\)"$/\1/p' Cargo.toml)
targets=("$@")
[ ${#targets[@]} -gt 0 ] || mapfile -t targets <<<"$all"
seed=${FUZZ_SEED:-$(od -An -N3 -tu4 /dev/urandom | tr -d ' ')}
kept=${FUZZ_KEPT:-kept}

# Coverage instrumentation is not stable yet; the compiler is.
export RUSTC_BOOTSTRAP=1
export RUSTFLAGS="-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
  -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
  -Cllvm-args=-sanitizer-coverage-trace-compares -Zsanitizer=address -Ccodegen-units=1 --cfg fuzzing"
cargo build --release --locked --quiet --target "$host" --target-dir target "${targets[@]/#/--bin=}"

# Recursive types of a contract are kept for the life of the process, on purpose.
export ASAN_OPTIONS=detect_leaks=0
mkdir -p artifacts
echo "fuzz: seed $seed (FUZZ_SEED=$seed repeats it), inputs are kept in fuzz/$kept"
failed=0
for target in "${targets[@]}"; do
  mkdir -p "$kept/$target" "corpus/$target"
  log="target/$target.log"
  before=$(find "$kept/$target" -type f | wc -l)
  # Whole conversations are thousands of octets long: those who read them get long inputs from the start.
  case $target in
  *_session | *_server | wcf_* | soap_* | xml_text | orpc_* | runtime_*) lengths="-len_control=0" ;;
  *) lengths="" ;;
  esac
  if "target/$host/release/$target" "$kept/$target" "corpus/$target" -max_total_time="$seconds" -timeout=10 \
    -rss_limit_mb=2048 -max_len=8192 -seed="$seed" $lengths -artifact_prefix="artifacts/$target-" -print_final_stats=1 \
    >"$log" 2>&1; then
    runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
    edges=$(grep -oaE 'cov: [0-9]+' "$log" | tail -n 1)
    new=$(($(find "$kept/$target" -type f | wc -l) - before))
    echo "fuzz $target: $runs runs, ${edges:-cov: ?}, $new new inputs"
  else
    tail -n 40 "$log"
    echo "fuzz $target: FAILED with seed $seed, see fuzz/artifacts" >&2
    failed=$((failed + 1))
  fi
done
[ "$failed" = 0 ] || { echo "fuzz: $failed target(s) failed" >&2; exit 1; }
