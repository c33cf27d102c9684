#!/usr/bin/env bash
# Installs what scripts/dist.sh made where only Debian's base is, and tries it as somebody would who just did that.
#
#   scripts/dist-try.sh FOLDER
#
# FOLDER becomes the root of an empty Debian, if it is none yet. For root; needs debootstrap. Nothing of the network is used but Debian's
# packages, for that root, and crates of others, for `cargo install`.
#
#   PROFILE=dev scripts/dist-try.sh FOLDER     `cargo install` without optimisation
set -euo pipefail
suite=${EVERYWIRE_SUITE:-bookworm}
say() { echo "dist-try: $*" >&2; }
[ $# = 1 ] && [ "$(id -u)" = 0 ] || {
  sed -n '2,/^set/s/^# \{0,1\}//p' "$0" >&2
  exit 2
}
mkdir -p "$1"
root=$(realpath "$1")
cd "$(dirname "$0")/.."
if [ ! -e "$root/etc/debian_version" ]; then
  mirror=$(apt-get indextargets --format '$(SITE)' 'Created-By: Packages' | grep -v security | head -n 1 || true)
  say "an empty Debian $suite in $root"
  debootstrap --variant=minbase "$suite" "$root" ${mirror:+"$mirror"} >"$root.log" 2>&1 || {
    tail -n 20 "$root.log" >&2
    exit 1
  }
fi
mkdir -p "$root/dist"
cp build/dist/everywire_*.deb build/dist/everywire-*-linux.tar.gz "$root/dist/" 2>/dev/null || true

# In a root, and in namespaces of processes, mounts and the network of its own: only the loopback device is there.
within() { unshare --pid --fork --mount --net --mount-proc="$root/proc" chroot "$root" /bin/sh -ec "PATH=/usr/sbin:/usr/bin:/sbin:/bin; export PATH; $1"; }

# The commands of the demo, each as it is printed, by the program that is found first.
demo='
  ip link set lo up 2>/dev/null || true
  HOME=$(mktemp -d); export HOME
  everywire demo >"$HOME/commands.sh" 2>"$HOME/told" & demo=$!
  n=0; while ! grep -qs Counters.Seconds "$HOME/commands.sh"; do sleep 0.1; n=$((n+1)); [ $n -lt 300 ] || { cat "$HOME/told"; exit 1; }; done
  grep "^everywire" "$HOME/commands.sh" >"$HOME/list"
  ok=0; while read -r command; do
    sh -c "$command" >"$HOME/said" 2>&1 </dev/null || { echo "FAILED: $command"; cat "$HOME/said"; exit 1; }
    ok=$((ok+1))
  done <"$HOME/list"
  kill $demo; wait $demo
  echo "$ok commands of the demo work"
'
raise='perl -e "socket(S,2,2,0);\$r=pack(q(a16s),q(lo),0x49);ioctl(S,0x8914,\$r) or die" 2>/dev/null || true;'

if ls "$root"/dist/*.deb >/dev/null 2>&1; then
  say "the package"
  within "dpkg --install /dist/everywire_*.deb >/dev/null; dpkg --audit; dpkg -s everywire | grep -E '^(Status|Version|Depends)'"
  within "$raise everywire --version; zcat /usr/share/man/man1/everywire-call.1.gz | head -n 3; everywire explain E_NOINTERFACE; $demo"
  within "bash -c 'source /usr/share/bash-completion/completions/everywire; COMP_LINE=\"everywire exp\"; COMP_POINT=13; COMP_WORDS=(everywire exp); COMP_CWORD=1; _everywire; echo \"completion: \${COMPREPLY[*]}\"'"
  within "dpkg --remove everywire >/dev/null; ! command -v everywire; test ! -e /usr/share/man/man1/everywire.1.gz; echo removed"
fi
# The program without shared libraries needs nothing of Debian: its root has a shell for the demo's commands and nothing else of ours.
if ls "$root"/dist/*-linux.tar.gz >/dev/null 2>&1; then
  say "the program without shared libraries"
  within "mkdir -p /opt/static && tar -xzf /dist/everywire-*-linux.tar.gz --strip-components=1 -C /opt/static
    PATH=/opt/static:\$PATH; $raise everywire --version; everywire explain E_NOINTERFACE >/dev/null; $demo
    rm -r /opt/static"
fi
# The program out of the crates as they would be published. It is built here, since the root has no compiler, and tried there. Crates of ours,
# which no registry has yet, are the packed ones.
if ls build/dist/crates/*.crate >/dev/null 2>&1; then
  say "cargo install from the packed crates"
  rm -rf "$root/packed" "$root/opt/cargo"
  mkdir -p "$root/packed" "$root/opt/cargo"
  for crate in build/dist/crates/*.crate; do tar -xzf "$crate" -C "$root/packed"; done
  ours=()
  for folder in "$root"/packed/*; do
    name=$(basename "$folder")
    ours+=(--config "patch.crates-io.${name%-*}.path='$folder'")
  done
  CARGO_TARGET_DIR="$root.target" cargo install --quiet --profile "${PROFILE:-release}" --path "$root"/packed/everywire-cli-* \
    --root "$root/opt/cargo" "${ours[@]}"
  within "PATH=/opt/cargo/bin:\$PATH; $raise everywire --version; $demo"
  rm -r "$root/packed" "$root/opt/cargo"
fi
say "all of it works"
