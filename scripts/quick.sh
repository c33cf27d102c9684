#!/usr/bin/env bash
# The check while you work: format, lints, the tests of each crate that has changed and of what stands on it, and the attacks.
# No foreign program is needed. What has changed is told by the test programs: one that passed as it is now does not run again.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/stages.sh

tools
stage "format" cargo fmt --all --check
stage "lints" lints
stage "build tests" build_tests
stage "tests" run_tests --without-peers
finish
