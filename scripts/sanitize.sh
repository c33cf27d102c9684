#!/usr/bin/env bash
# Runs the tests of the one room with `unsafe` (runtime/src/transport) under the address sanitizer.
set -euo pipefail
cd "$(dirname "$0")/.."
host=$(rustc -vV | sed -n 's/^host: //p')
# The sanitizer's flag is not stable yet; the compiler is.
export RUSTC_BOOTSTRAP=1
export RUSTFLAGS="-Zsanitizer=address"
exec cargo test --locked -p everywire-runtime --target "$host" --target-dir "${CARGO_TARGET_DIR:-target}/sanitize" --tests
