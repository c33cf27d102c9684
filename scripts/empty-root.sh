#!/usr/bin/env bash
# Shows that the list of peers is complete: runs a command where only Debian's base and that list are.
#
#   scripts/empty-root.sh FOLDER [COMMAND [ARGUMENT...]]
#
#   scripts/empty-root.sh /tmp/empty                      installs the list, and checks that all of it is found
#   scripts/empty-root.sh /tmp/empty make test            and then runs every test; CI is true
#
#   EVERYWIRE_SETUP=derby scripts/empty-root.sh /tmp/empty make derby
#                                                         installs what `make derby` needs, and nothing else
#
# FOLDER becomes the root of an empty Debian, if it is none yet, with a home of its own; later runs use it again. It takes some 6 GB,
# and as much again for what is built. The tracked files, as they are now, are copied to /everywire in it.
#
# Brought from this machine: Rust (read only), the kernel and its devices, the network, and where the clients of the registries
# find them and whom they trust. Processes, mounts and /dev/shm are those of the command alone, and end with it.
#
# For root. Needs debootstrap, which is Debian's.
set -euo pipefail
suite=${EVERYWIRE_SUITE:-bookworm}

say() { echo "empty-root: $*" >&2; }

# The second half: in namespaces of its own, whose mounts nobody else sees.
if [ "${1:-}" = --inside ]; then
  root=$2 rust=$3
  shift 3
  mount --bind "$root" "$root"
  mount -t proc proc "$root/proc"
  mount --rbind /sys "$root/sys"
  mount --rbind /dev "$root/dev"
  mount -t tmpfs -o mode=1777 tmpfs "$root/dev/shm"
  mount --bind "$rust" "$root/opt/rust"
  mount -o remount,bind,ro "$root/opt/rust"
  # A root that was only changed to may have no namespaces of users.
  mkdir -p "$root/.outside"
  cd "$root"
  pivot_root . .outside
  umount -l /.outside
  cd /everywire
  exec "$@"
fi

[ $# -gt 0 ] || {
  sed -n '2,/^set/s/^# \{0,1\}//p' "$0" >&2
  exit 2
}
[ "$(id -u)" = 0 ] || {
  say "this is for root: it makes a root of its own"
  exit 2
}
mkdir -p "$1"
root=$(realpath "$1")
shift
here=$(realpath "$(dirname "$0")/..")
rust=$(cd "$here" && rustc --print sysroot)

# Held until the command ends: each run replaces the files of the one before.
exec 8>"$root.lock"
flock -n 8 || {
  say "another run is using $root"
  exit 2
}

if [ ! -e "$root/etc/debian_version" ]; then
  command -v debootstrap >/dev/null || {
    say "debootstrap is missing: Debian has it under that name"
    exit 2
  }
  # From where this machine has its own packages.
  mirror=$(apt-get indextargets --format '$(SITE)' 'Created-By: Packages' | grep -v security | head -n 1 || true)
  say "an empty Debian $suite in $root"
  debootstrap --variant=minbase "$suite" "$root" ${mirror:+"$mirror"} >"$root.log" 2>&1 || {
    tail -n 20 "$root.log" >&2
    exit 1
  }
fi

# A list of sources that this machine keeps in a folder would be there twice.
[ -e /etc/apt/sources.list ] || rm -f "$root/etc/apt/sources.list"
# Whatever happens to a root that is made for a test, it is made anew: nobody waits for the disk.
echo force-unsafe-io >"$root/etc/dpkg/dpkg.cfg.d/empty-root"

# Where registries are, and whom to trust: as on this machine.
bring() { # FILE-OR-FOLDER [UNDER]
  [ -e "$1" ] || return 0
  mkdir -p "$(dirname "$root${2:-$1}")"
  rm -rf "$root${2:-$1}"
  cp -r "$1" "$root${2:-$1}"
}
for part in sources.list sources.list.d auth.conf.d keyrings trusted.gpg.d; do
  bring "/etc/apt/$part"
done
for file in /etc/apt/apt.conf /etc/apt/apt.conf.d/*; do
  if grep -qsE '^ *Acquire::(http|ftp|Check|Retries|Force|Proxy)' "$file"; then bring "$file"; fi
done
for file in /etc/pip.conf /etc/npmrc /etc/resolv.conf /etc/hosts /usr/local/share/ca-certificates; do
  bring "$file"
done
for file in .npmrc .config/pip/pip.conf .m2/settings.xml .cargo/config.toml .cargo/config; do
  bring "$HOME/$file" "/root/$file"
done
environment=(HOME=/root EVERYWIRE_SETUP= LANG=C.UTF-8 "TERM=${TERM:-dumb}" CI=true)
environment+=("PATH=/opt/rust/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin")
while IFS= read -r variable; do
  environment+=("$variable=${!variable}")
done < <(compgen -e | grep -E '^(.*_proxy|.*_PROXY|PIP_.*|NPM_CONFIG_.*|npm_config_.*|CARGO_(HTTP|NET|REGISTR).*|SSL_CERT_.*|NODE_EXTRA_CA_CERTS|REQUESTS_CA_BUNDLE|MAVEN_OPTS|EVERYWIRE_.*|CARGO_BUILD_JOBS)$')

# Nothing that is installed starts a service.
printf '#!/bin/sh\nexit 101\n' >"$root/usr/sbin/policy-rc.d"
chmod +x "$root/usr/sbin/policy-rc.d"

# The files as they are, with their times; what was built before stays.
mkdir -p "$root/everywire" "$root/opt/rust"
find "$root/everywire" -mindepth 1 -maxdepth 1 ! -name target ! -name build -exec rm -rf {} +
(cd "$here" && git ls-files -z --cached --others --exclude-standard | while IFS= read -r -d '' file; do
  [ ! -e "$file" ] || printf '%s\0' "$file"
done | tar --null -T - -cf -) | tar -xf - -C "$root/everywire"

[ $# -gt 0 ] || set -- true
say "setup, check, and then: $*"
exec unshare --mount --pid --fork --kill-child --propagation private env -i "${environment[@]}" \
  bash "$here/scripts/empty-root.sh" --inside "$root" "$rust" \
  bash -c 'bash scripts/setup.sh $EVERYWIRE_SETUP && bash scripts/setup.sh --check $EVERYWIRE_SETUP && exec "$@"' bash "$@"
