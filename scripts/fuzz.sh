#!/usr/bin/env bash
# Runs each fuzz target for some seconds (10 unless given) from its kept corpus. Needs a nightly-free build: libFuzzer
# through stable Rust with RUSTC_BOOTSTRAP, which is what cargo-fuzz does with its own flags.
set -euo pipefail
cd "$(dirname "$0")/.."
seconds=${1:-10}
exec bash fuzz/run.sh "$seconds"
