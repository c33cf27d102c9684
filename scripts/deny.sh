#!/usr/bin/env bash
# Advisories, licences, bans and sources of all that is in our lock files, by cargo-deny with the stored list of advisories.
# With --self-test: shows that what must be refused is refused, each for its own reason.
set -euo pipefail
cd "$(dirname "$0")/.."

if ! cargo deny --version >/dev/null 2>&1; then
  echo "deny: cargo-deny is missing; scripts/setup.sh installs it, or: cargo install --locked cargo-deny" >&2
  exit 1
fi
export EVERYWIRE_ADVISORIES="$PWD/target/deny"

# Looks at the workspace in a folder. Crates come from the registry if they are not there yet; the rest asks no network.
look_at() {
  local folder=$1
  shift
  cargo fetch --quiet --locked --manifest-path "$folder/Cargo.toml"
  cargo deny --offline --locked --workspace --manifest-path "$folder/Cargo.toml" --config deny.toml \
    check -A license-exception-not-encountered "$@"
}

# A crate to try deny.toml on, with a lock file of its own: its name, its licence, the lines of its dependencies.
trial() {
  local dir="$EVERYWIRE_ADVISORIES/trials/$1"
  rm -rf "$dir"
  mkdir -p "$dir/src"
  touch "$dir/src/lib.rs"
  printf '[package]\nname = "%s"\nversion = "0.1.0"\nedition = "2024"\nlicense = "%s"\npublish = false\n[workspace]\n[dependencies]\n%s\n' \
    "$1" "$2" "$3" >"$dir/Cargo.toml"
  cargo generate-lockfile --quiet --manifest-path "$dir/Cargo.toml"
  echo "$dir"
}

# Runs a command that must end as said (`passes` or `fails`), and say each of some words.
must() {
  local name=$1 how=$2 words=$3 end=passes output
  shift 3
  output=$("$@" 2>&1) || end=fails
  for word in $words; do
    if [ "$end" != "$how" ] || ! grep -qF -- "$word" <<<"$output"; then
      printf 'deny: self-test: %s: %s, and not: %s, saying: %s\n%s\n' "$name" "$end" "$how" "$words" "$output" >&2
      exit 1
    fi
  done
  echo "deny: self-test: $name: $how as it must"
}

self_test() {
  local ours git day
  ours=$(sed -n '/^name = "quick-xml"$/{n;s/version = //p}' Cargo.lock | tr -d '"')
  must "a version without advisories" passes "advisories ok" \
    look_at "$(trial sound MIT "quick-xml = \"=$ours\"")" -A unmatched-skip
  must "a version with two advisories" fails "RUSTSEC-2026-0194 RUSTSEC-2026-0195" \
    look_at "$(trial unsound MIT 'quick-xml = "=0.38.4"')"
  must "two versions of a crate" fails "error[duplicate]" \
    look_at "$(trial twice MIT "old = { package = \"quick-xml\", version = \"=0.38.4\" }
quick-xml = \"=$ours\"")"
  must "a version that is not said" fails "error[wildcard]" look_at "$(trial wildcard MIT 'quick-xml = "*"')"
  must "a licence that is not allowed" fails "error[rejected] GPL-3.0-only" look_at "$(trial copyleft GPL-3.0-only '')"
  git=$(trial elsewhere MIT '')
  git -C "$git" init -q
  git -C "$git" add -A
  git -C "$git" -c user.name=trial -c user.email=trial@localhost -c commit.gpgsign=false commit -q --no-verify -m trial
  must "a source that is no registry" fails "error[source-not-allowed]" \
    look_at "$(trial source MIT "elsewhere = { git = \"file://$git\" }")"

  printf '[[package]]\nname = "never-heard-of"\nversion = "1.0.0"\nsource = "registry"\n' >"$EVERYWIRE_ADVISORIES/unknown.lock"
  must "a crate that was not looked up" fails "never-heard-of renew" \
    python3 scripts/advisories.py check --lock "$EVERYWIRE_ADVISORIES/unknown.lock"
  day=$(sed -n 's/^database = "\(.*\)"$/\1/p' deny/advisories.toml)
  aged() { python3 scripts/advisories.py check --today "$(date -u -d "$day + $1 days" +%F)"; }
  must "a list of 90 days" passes "90 days old" aged 90
  must "a list of 91 days" passes "91 warning" aged 91
  must "a list of 365 days" passes "365 warning" aged 365
  must "a list of 366 days" fails "366 EVERYWIRE_ADVISORIES_DAYS" aged 366
  EVERYWIRE_ADVISORIES_DAYS=400 must "a list of 366 days where 400 are allowed" passes "366 warning" aged 366
}

python3 scripts/advisories.py lay-out "$EVERYWIRE_ADVISORIES"
if [ "${1:-}" = --self-test ]; then
  self_test
  exit
fi
python3 scripts/advisories.py check
failed=
# The manifest of this rival has another name: a package within a package is left out when that is published.
rival="$EVERYWIRE_ADVISORIES/zbus"
rm -rf "$rival" && cp -r derby/rivals/zbus "$rival" && mv "$rival/manifest.toml" "$rival/Cargo.toml"
for folder in . fuzz "$rival"; do
  echo "deny: ${folder#"$EVERYWIRE_ADVISORIES/"}"
  # Reasons to skip something are those of the root; another folder need not have them all.
  look_at "$folder" $([ "$folder" = . ] || echo "-A unmatched-skip") || failed="$failed $folder"
done
if [ -n "$failed" ]; then
  echo "deny: refused in:$failed" >&2
  exit 1
fi
