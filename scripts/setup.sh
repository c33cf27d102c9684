#!/usr/bin/env bash
# Installs what building and testing need on Debian: a compiler, Rust, and the real peers. Changes nothing that is there.
# With the argument `dbus-fast` only that: Python's D-Bus library, into the user's cache.
set -euo pipefail

need() { command -v "$1" >/dev/null 2>&1; }

# The version is also in tests/tests/common/foreign.rs.
dbus_fast() {
  local version=5.2.0
  local dir="${XDG_CACHE_HOME:-$HOME/.cache}/everywire/dbus-fast-$version"
  if "$dir/bin/python" -c 'import dbus_fast' 2>/dev/null; then return; fi
  rm -rf "$dir"
  { python3 -m venv "$dir" && "$dir/bin/pip" install --quiet --disable-pip-version-check "dbus-fast==$version"; } ||
    echo "setup: dbus-fast cannot be installed; what needs it is skipped, and says so" >&2
}

if [ "${1:-}" = dbus-fast ]; then
  dbus_fast
  exit
fi

missing=()
need g++ || missing+=(g++)
need make || missing+=(make)
need python3 || missing+=(python3)
need omniidl || missing+=(omniidl omniorb)
[ -d /usr/share/idl/omniORB/COS ] || missing+=(omniorb-idl)
[ -e /usr/include/omniORB4/CORBA.h ] || missing+=(libomniorb4-dev)
need omniNames || missing+=(omniorb-nameserver)
need tshark || missing+=(tshark)
need tcpdump || missing+=(tcpdump)
need valgrind || missing+=(valgrind)
need pkg-config || missing+=(pkg-config)
need dbus-daemon || missing+=(dbus)
need dbus-send || missing+=(dbus-bin)
need dbus-test-tool || missing+=(dbus-tests)
need dbus-broker || missing+=(dbus-broker)
need busctl || missing+=(systemd)
need gdbus || missing+=(libglib2.0-bin)
pkg-config --exists libsystemd 2>/dev/null || missing+=(libsystemd-dev)
pkg-config --exists dbus-1 2>/dev/null || missing+=(libdbus-1-dev)
pkg-config --exists gio-unix-2.0 2>/dev/null || missing+=(libglib2.0-dev)
python3 -c 'import venv, ensurepip' 2>/dev/null || missing+=(python3-venv)

if [ ${#missing[@]} -gt 0 ]; then
  echo "setup: installing ${missing[*]}"
  sudo=""
  [ "$(id -u)" = 0 ] || sudo="sudo"
  if need apt-get; then
    export DEBIAN_FRONTEND=noninteractive
    $sudo apt-get update -qq && $sudo apt-get install -y -qq "${missing[@]}" >/dev/null ||
      echo "setup: some packages could not be installed; what needs them is skipped, and says so" >&2
  else
    echo "setup: this is no Debian; install these by hand: ${missing[*]}" >&2
  fi
fi

if ! need cargo; then
  if [ -x "$HOME/.cargo/bin/cargo" ]; then
    echo "setup: cargo is in ~/.cargo/bin; add it to PATH" >&2
  elif need apt-get && apt-cache show rustup >/dev/null 2>&1; then
    $sudo apt-get install -y -qq rustup >/dev/null && rustup default stable
  else
    echo "setup: Rust 1.88 or newer is needed; see https://rustup.rs" >&2
    exit 1
  fi
fi

dbus_fast
