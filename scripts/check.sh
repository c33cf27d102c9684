#!/usr/bin/env bash
# Format, lints, dependencies (advisories, licences), documents: the gates that run no test of ours.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/stages.sh

tools
stage "format" cargo fmt --all --check
stage "dependencies" dependencies
stage "lints" lints
stage "models" models
stage "documents" documents
finish
