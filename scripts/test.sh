#!/usr/bin/env bash
# Every test: gates, unit tests, real peers, a short run of each fuzz target. What is not installed is skipped and
# counted; with CI=true it fails.
set -euo pipefail
cd "$(dirname "$0")/.."

bash scripts/setup.sh
EVERYWIRE_SKIPS=$(mktemp)
export EVERYWIRE_SKIPS

bash scripts/check.sh
cargo build --locked --release -p everywire-cli
cargo test --locked --workspace --all-targets
cargo test --locked --workspace --doc
bash scripts/sanitize.sh
bash scripts/fuzz.sh "${FUZZ_SECONDS:-10}"

skipped=$(wc -l <"$EVERYWIRE_SKIPS")
if [ "$skipped" -gt 0 ]; then
  echo
  echo "SKIPPED $skipped test(s), because a peer is not installed:"
  sort -u "$EVERYWIRE_SKIPS"
  [ "${CI:-}" != true ] || exit 1
fi
echo "all tests passed, $skipped skipped"
