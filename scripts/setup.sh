#!/usr/bin/env bash
# Installs what building and testing need on Debian: a compiler, Rust, and the real peers. Changes nothing that is there.
set -euo pipefail

need() { command -v "$1" >/dev/null 2>&1; }

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
