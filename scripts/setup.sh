#!/usr/bin/env bash
# Installs what building and testing need on Debian: a compiler, Rust, and the real peers. Changes nothing that is there.
# With the name of a library or of a program below, only that: they go to the user's cache and need no installation.
set -euo pipefail

need() { command -v "$1" >/dev/null 2>&1; }

# The versions are also in tests/tests/common/foreign.rs and tests/tests/common/dcom.rs.
cache="${XDG_CACHE_HOME:-$HOME/.cache}/everywire"

# A library of Python's in an environment of its own: its name, its version, what to import.
python_library() {
  local dir="$cache/$1-$2"
  if "$dir/bin/python" -c "import $3" 2>/dev/null; then return; fi
  rm -rf "$dir"
  { python3 -m venv "$dir" && "$dir/bin/pip" install --quiet --disable-pip-version-check "$1==$2"; } ||
    echo "setup: $1 cannot be installed; what needs it is skipped, and says so" >&2
}

dbus_fast() { python_library dbus-fast 5.2.0 dbus_fast; }

impacket() { python_library impacket 0.13.1 impacket; }

pynettcp() { python_library pynettcp 0.1.0 pynettcp; }

pyspnego() { python_library pyspnego 0.12.4 spnego; }

zeep() { python_library zeep 4.3.3 zeep; }

# A copy of Mono's WCF without the sleeps that its dispatchers make before each call.
mono_without_sleeps() {
  local version
  version=$(mono --version | sed -n '1s/.*version \([0-9.]*\).*/\1/p')
  local dir="$cache/mono-without-sleeps-$version"
  if [ -e "$dir/System.ServiceModel.dll" ]; then return; fi
  rm -rf "$dir"
  mkdir -p "$dir"
  {
    local cecil
    cecil=$(find /usr/lib/mono/gac/Mono.Cecil -name Mono.Cecil.dll | sort -V | tail -1) && [ -n "$cecil" ] &&
      mcs "-r:$cecil" "-out:$dir/unsleep.exe" "$(dirname "$0")/../derby/rivals/mono/unsleep.cs" &&
      MONO_PATH=$(dirname "$cecil") mono "$dir/unsleep.exe" /usr/lib/mono/4.5/System.ServiceModel.dll "$dir/fresh.dll" &&
      mv "$dir/fresh.dll" "$dir/System.ServiceModel.dll"
  } || echo "setup: Mono's WCF cannot be had without its sleeps; what needs it is skipped, and says so" >&2
}

# j-Interop, DCOM for Java. The library it names for its ciphers does not exist in that version.
j_interop() {
  local version=2.1.8
  local dir="$cache/j-interop-$version"
  if [ -e "$dir/done" ]; then return; fi
  rm -rf "$dir"
  mkdir -p "$dir"
  cat >"$dir/pom.xml" <<EOF
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>everywire</groupId><artifactId>peers</artifactId><version>1</version>
  <dependencies>
    <dependency>
      <groupId>org.openscada.jinterop</groupId><artifactId>org.openscada.jinterop.core</artifactId><version>$version</version>
      <exclusions><exclusion><groupId>org.bouncycastle</groupId><artifactId>bcprov-jdk15on</artifactId></exclusion></exclusions>
    </dependency>
    <dependency><groupId>org.bouncycastle</groupId><artifactId>bcprov-jdk15on</artifactId><version>1.50</version></dependency>
  </dependencies>
</project>
EOF
  { (cd "$dir" && mvn -q -B dependency:copy-dependencies -DoutputDirectory=lib) >"$dir/log" 2>&1 </dev/null && touch "$dir/done"; } ||
    echo "setup: j-Interop cannot be had from Maven; what needs it is skipped, and says so" >&2
}

# DCOM for Node.
node_dcom() {
  local version=1.0.9
  local dir="$cache/node-dcom-$version"
  if [ -e "$dir/done" ]; then return; fi
  rm -rf "$dir"
  mkdir -p "$dir"
  { npm install --prefix "$dir" --silent --no-audit --no-fund "node-dcom@$version" </dev/null >"$dir/log" 2>&1 && touch "$dir/done"; } ||
    echo "setup: node-dcom cannot be had from npm; what needs it is skipped, and says so" >&2
}

# Samba's RPC server and its tests, unpacked: installed, they would bring up file servers.
samba() {
  local dir="$cache/samba"
  if [ -e "$dir/done" ]; then return; fi
  rm -rf "$dir"
  mkdir -p "$dir"
  {
    (cd "$dir" && apt-get download -qq samba samba-testsuite samba-common-bin winbind) >"$dir/log" 2>&1 </dev/null &&
      for package in "$dir"/*.deb; do dpkg-deb -x "$package" "$dir"; done && rm "$dir"/*.deb && touch "$dir/done"
  } || echo "setup: Samba's programs cannot be had; what needs them is skipped, and says so" >&2
}

case "${1:-}" in
  dbus-fast) dbus_fast && exit ;;
  impacket) impacket && exit ;;
  j-interop) j_interop && exit ;;
  node-dcom) node_dcom && exit ;;
  samba) samba && exit ;;
  pynettcp) pynettcp && exit ;;
  pyspnego) pyspnego && exit ;;
  zeep) zeep && exit ;;
  mono-without-sleeps) mono_without_sleeps && exit ;;
esac

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
need ip || missing+=(iproute2)
need unshare || missing+=(util-linux)
need javac || missing+=(default-jdk-headless)
need mvn || missing+=(maven)
need node || missing+=(nodejs)
need npm || missing+=(npm)
# Mono: the runtime, the compiler, WCF, and what rewrites assemblies.
need mono && need mcs && [ -e /usr/lib/mono/4.5/System.ServiceModel.dll ] && [ -d /usr/lib/mono/gac/Mono.Cecil ] ||
  missing+=(mono-runtime mono-mcs libmono-system-servicemodel4.0a-cil libmono-system-runtime-serialization4.0-cil libmono-cecil-private-cil)
# A key distribution centre of Kerberos; its programs for administrators are not on everybody's search path.
for centre in krb5kdc kadmin.local; do
  need "$centre" || [ -x "/usr/sbin/$centre" ] || missing+=(krb5-kdc krb5-admin-server)
done
need kinit || missing+=(krb5-user)
[ -n "$(find /usr/lib /lib -name 'libgssapi_krb5.so.2' -print -quit 2>/dev/null)" ] || missing+=(libgssapi-krb5-2)
# What Samba's programs are linked with.
/usr/bin/python3 -c 'import samba' 2>/dev/null || missing+=(python3-samba)
[ -n "$(find /usr/lib -name 'libsmbclient.so.0' -print -quit 2>/dev/null)" ] || missing+=(libsmbclient)
[ -n "$(find /usr/lib -name 'libcups.so.2' -print -quit 2>/dev/null)" ] || missing+=(libcups2)

# Wine's COM, and what builds a server for it: without what it recommends, which is as much again, and by itself, since not every
# machine has it.
wine=()
{ need wine && need wineserver; } || wine+=(wine wine64)
[ -e /usr/include/wine/wine/windows/oaidl.idl ] || wine+=(libwine-dev)
need x86_64-w64-mingw32-widl || wine+=(mingw-w64-tools)
need x86_64-w64-mingw32-g++-posix || wine+=(g++-mingw-w64-x86-64-posix)

sudo=""
[ "$(id -u)" = 0 ] || sudo="sudo"

# Packages, or options before them.
install() {
  echo "setup: installing $*"
  if need apt-get; then
    # A source that cannot be reached does not keep the others from being used.
    $sudo apt-get update -qq || true
    $sudo env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq "$@" >/dev/null ||
      echo "setup: some packages could not be installed; what needs them is skipped, and says so" >&2
  else
    echo "setup: this is no Debian; install these by hand: $*" >&2
  fi
}
[ ${#missing[@]} -eq 0 ] || install "${missing[@]}"
[ ${#wine[@]} -eq 0 ] || install --no-install-recommends "${wine[@]}"

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
impacket
pynettcp
zeep
pyspnego
need mono && need mcs && mono_without_sleeps
need mvn && j_interop
need npm && node_dcom
need apt-get && samba
true
