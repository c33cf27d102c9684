#!/usr/bin/env bash
# Makes the kept corpus of each target the least set of inputs that reaches everything that fuzz/corpus and fuzz/kept reach
# together: what fuzzing found comes into git, and what no longer adds anything leaves it.
#
#   fuzz/keep.sh [TARGET ...]         after fuzz/run.sh, which builds the targets
#
# Inputs that somebody gave a name stay whatever they reach; libFuzzer names its own by 40 hexadecimal digits, and
# fuzz/seeds.py by `recorded-`.
set -euo pipefail
cd "$(dirname "$0")"
host=$(rustc -vV | sed -n 's/^host: //p')
targets=("$@")
[ ${#targets[@]} -gt 0 ] || mapfile -t targets < <(sed -n '/^\[\[bin\]\]/,$ s/^name = "\(.*\)"$/\1/p' Cargo.toml)
kept=${FUZZ_KEPT:-kept}
export ASAN_OPTIONS=detect_leaks=0
for target in "${targets[@]}"; do
  program="target/$host/release/$target"
  [ -x "$program" ] || { echo "fuzz/keep.sh: $program is not built; run fuzz/run.sh 1 $target first" >&2; exit 1; }
  next=$(mktemp -d "corpus/.next.XXXXXX")
  mkdir -p "$kept/$target"
  "$program" -merge=1 -timeout=10 -max_len=8192 "$next" "corpus/$target" "$kept/$target" >"target/$target.merge.log" 2>&1
  for file in "corpus/$target"/*; do
    [[ $(basename "$file") =~ ^([0-9a-f]{40}|recorded-.*)$ ]] || cp "$file" "$next/"
  done
  if [ -z "$(ls -A "$next")" ]; then
    rmdir "$next"
    echo "fuzz/keep.sh: $target keeps nothing, which cannot be right; its corpus stays as it is" >&2
    exit 1
  fi
  echo "$target: $(find "corpus/$target" -type f | wc -l) inputs before, $(find "$next" -type f | wc -l) now"
  rm -rf "corpus/$target"
  chmod 755 "$next"
  mv "$next" "corpus/$target"
done
