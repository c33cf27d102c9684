#!/usr/bin/env bash
# Format, lints, documentation, dependencies (advisories, licences): the gates that need no peer.
set -euo pipefail
cd "$(dirname "$0")/.."

cargo fmt --all --check
cargo clippy --locked --workspace --all-targets -- -D warnings
RUSTDOCFLAGS="-D warnings" cargo doc --locked --workspace --no-deps --quiet
scripts/deny.sh
scripts/deny.sh --self-test
