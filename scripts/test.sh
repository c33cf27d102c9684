#!/usr/bin/env bash
# Every test: lints, unit tests, attacks, every real peer, documents. A peer that is not installed makes its tests skip, counted;
# with CI=true it fails them. Prints how long each stage took.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/stages.sh

stage "install peers" bash scripts/setup.sh
tools
stage "format" cargo fmt --all --check
stage "dependencies" dependencies
stage "lints" lints
stage "models" models
stage "build tests" build_tests
stage "tests" run_tests
stage "examples in documents" cargo test --locked --workspace --doc --quiet
stage "documents" documents
finish
