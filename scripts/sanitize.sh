#!/usr/bin/env bash
# Runs the tests of the two rooms with `unsafe` (runtime/src/transport, and auth/gss by the tests of its
# contexts) under the address sanitizer.
set -euo pipefail
cd "$(dirname "$0")/.."
# Tests start the program, which is built before the flags are set: its build has macros that the compiler loads.
if [ -z "${EVERYWIRE_PROGRAM:-}" ]; then
  cargo build --locked -p everywire-cli
  EVERYWIRE_PROGRAM="$(realpath "${CARGO_TARGET_DIR:-target}")/debug/everywire"
  export EVERYWIRE_PROGRAM
fi
host=$(rustc -vV | sed -n 's/^host: //p')
# The sanitizer's flag is not stable yet; the compiler is.
export RUSTC_BOOTSTRAP=1
export RUSTFLAGS="-Zsanitizer=address"
target="${CARGO_TARGET_DIR:-target}/sanitize"
# The test that is left out weighs the whole process, and the sanitizer keeps what was freed.
cargo test --locked -p everywire-runtime --target "$host" --target-dir "$target" --tests -- --skip cost_little_more_than_the_budget
cargo test --locked -p everywire-tests --target "$host" --target-dir "$target" --test all kerberos::
