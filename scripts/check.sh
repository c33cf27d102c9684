#!/usr/bin/env bash
# Format, lints, documentation, licences: the gates that need no peer.
set -euo pipefail
cd "$(dirname "$0")/.."

cargo fmt --all --check
cargo clippy --locked --workspace --all-targets -- -D warnings
RUSTDOCFLAGS="-D warnings" cargo doc --locked --workspace --no-deps --quiet
python3 scripts/licences.py
