# The stages that `make test` and `make quick` are made of. Sourced by scripts/test.sh and scripts/quick.sh.
#
# Everything is compiled twice at the most: once by Clippy, whose results rustdoc uses too, and once for the tests.

# Tests that are ended early, and programs of others, leave files behind: all of them go with this folder.
TMPDIR=$(mktemp -d "${TMPDIR:-/tmp}/ew.XXXX")
EVERYWIRE_SKIPS=$TMPDIR/skips
export TMPDIR EVERYWIRE_SKIPS
trap 'rm -rf "$TMPDIR"' EXIT
: >"$EVERYWIRE_SKIPS"
target="${CARGO_TARGET_DIR:-target}"
report=()
begun=$SECONDS

# Puts cargo's own tools on the search path, and says how to get them where they are missing.
tools() {
  PATH="$(bash scripts/peers.sh path):$PATH"
  export PATH
  local tool
  for tool in nextest deny; do
    cargo $tool --version >/dev/null 2>&1 || { echo "cargo-$tool is missing: bash scripts/setup.sh" >&2; exit 2; }
  done
}

# Runs a command and notes its seconds.
stage() {
  local name=$1 start=$SECONDS
  shift
  echo "== $name"
  if ! "$@"; then
    echo "FAILED: $name, after $((SECONDS - start)) s" >&2
    exit 1
  fi
  report+=("$(printf '%5d s  %s' $((SECONDS - start)) "$name")")
}

# Advisories, licences, bans; and that the check for them refuses what it should.
dependencies() { bash scripts/deny.sh && bash scripts/deny.sh --self-test; }

lints() { cargo clippy --locked --workspace --all-targets --quiet -- -D warnings; }

# The models for loom include sources of the runtime, and are run by `make soak` only: here it shows that they still build.
models() { cargo check --manifest-path runtime/loom/Cargo.toml --locked --tests --quiet --target-dir "$target/loom"; }

# rustdoc needs what the compiler knows of each crate. Clippy has made that already: rustdoc uses it if it is called the same way.
documents() {
  RUSTC_WORKSPACE_WRAPPER="$(rustc --print sysroot)/bin/clippy-driver" \
    CLIPPY_ARGS="-D__CLIPPY_HACKERY__warnings__CLIPPY_HACKERY__" RUSTDOCFLAGS="-D warnings" \
    cargo doc --locked --workspace --no-deps --quiet
}

# All packages at once: for some of them alone, the features of their dependencies differ, and all would be compiled anew.
build_tests() {
  cargo nextest run --locked --workspace --no-run --cargo-quiet
  EVERYWIRE_PROGRAM="$(cd "$target/debug" && pwd)/everywire"
  export EVERYWIRE_PROGRAM
}

# The tests of each program that has not passed as it is now.
run_tests() {
  local chosen failed=0
  chosen=$(python3 scripts/changed.py choose "$@") || return
  cargo nextest run --locked --workspace --cargo-quiet --no-tests=pass -E "$chosen" || failed=$?
  python3 scripts/changed.py passed
  return "$failed"
}

# Says what was skipped and how long each stage took.
finish() {
  local skipped
  skipped=$(wc -l <"$EVERYWIRE_SKIPS")
  echo
  printf '%s\n' "${report[@]}"
  printf '%5d s  in all\n' $((SECONDS - begun))
  if [ "$skipped" -gt 0 ]; then
    echo
    echo "SKIPPED $skipped test(s), because a peer is not installed:"
    sort -u "$EVERYWIRE_SKIPS"
    [ "${CI:-}" != true ] || exit 1
  fi
  echo "all passed, $skipped skipped"
}
