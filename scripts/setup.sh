#!/usr/bin/env bash
# Installs on Debian what building, racing and testing need: everything of the list of peers, peers/peers.tsv. What is there is not
# touched.
#
#   scripts/setup.sh                    everything
#   scripts/setup.sh derby              what `make derby` needs
#   scripts/setup.sh PEER...            these; those of the user's cache need no rights
#   scripts/setup.sh --check [derby | PEER...]
#                                       installs nothing: says what is here, and fails if something is not
#
# What cannot be installed is named at the end; tests that need it are skipped, and say so. With CI=true it is an error.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/peers.sh

check=no
if [ "${1:-}" = --check ]; then
  check=yes
  shift
fi
[ "$*" = derby ] || peers_known "$@"
if [ $check = yes ]; then
  peers_check "$@"
  exit
fi

# A library or program of Python's, in an environment of its own. Debian's Python: others come and go.
from_pypi() { # FOLDER PEER VERSION PACKAGE
  local python=python3
  [ ! -x /usr/bin/python3 ] || python=/usr/bin/python3
  # An environment that works is kept: somebody may be using it.
  "$1/bin/python" -m pip --version >/dev/null 2>&1 || { rm -rf "$1" && "$python" -m venv "$1"; } || return
  "$1/bin/python" -m pip install --quiet --disable-pip-version-check "$4==$3"
}

# A program of Rust's, built.
from_cargo() { # FOLDER PEER VERSION
  cargo install --quiet --locked --root "$1" "$2@$3"
}

from_npm() { # FOLDER PEER VERSION PACKAGE
  npm install --prefix "$1" --silent --no-audit --no-fund "$4@$3"
}

# The first package has the peer's version; each other one has its own, and replaces what the first one names.
from_maven() { # FOLDER PEER VERSION PACKAGE PACKAGE:VERSION...
  local folder=$1 first="$4:$3" coordinates parts others='' exclusions=''
  shift 4
  for coordinates in "$@"; do
    IFS=: read -r -a parts <<<"$coordinates"
    exclusions+="<exclusion><groupId>${parts[0]}</groupId><artifactId>${parts[1]}</artifactId></exclusion>"
    others+="<dependency><groupId>${parts[0]}</groupId><artifactId>${parts[1]}</artifactId><version>${parts[2]}</version></dependency>"
  done
  IFS=: read -r -a parts <<<"$first"
  cat >"$folder/pom.xml" <<POM
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>everywire</groupId><artifactId>peers</artifactId><version>1</version>
  <dependencies>
    <dependency>
      <groupId>${parts[0]}</groupId><artifactId>${parts[1]}</artifactId><version>${parts[2]}</version>
      <exclusions>$exclusions</exclusions>
    </dependency>
    $others
  </dependencies>
</project>
POM
  (cd "$folder" && mvn -q -B dependency:copy-dependencies -DoutputDirectory=lib)
}

unpacked() { # FOLDER PEER VERSION PACKAGE...
  local folder=$1 package
  shift 3
  (cd "$folder" && apt-get download -qq "$@") &&
    for package in "$folder"/*.deb; do dpkg-deb -x "$package" "$folder"; done && rm "$folder"/*.deb
}

# A copy of Mono's WCF without the sleeps that its dispatchers make before each call.
made_mono_without_sleeps() { # FOLDER
  local cecil
  cecil=$(find /usr/lib/mono/gac/Mono.Cecil -name Mono.Cecil.dll | sort -V | tail -1) && [ -n "$cecil" ] &&
    mcs "-r:$cecil" "-out:$1/unsleep.exe" derby/rivals/mono/unsleep.cs &&
    MONO_PATH=$(dirname "$cecil") mono "$1/unsleep.exe" /usr/lib/mono/4.5/System.ServiceModel.dll "$1/fresh.dll" &&
    mv "$1/fresh.dll" "$1/System.ServiceModel.dll"
}

# Puts a peer into the user's cache. Two who want the same come one after the other, and the second finds it there.
into_cache() { # the columns
  local folder packages
  folder=$(peers_folder "$1" "$4")
  mkdir -p "$peers_cache"
  exec 9>"$peers_cache/.$1.lock"
  flock 9
  if peers_here "$@"; then return; fi
  rm -f "$folder/done"
  mkdir -p "$folder"
  IFS=' ' read -r -a packages <<<"$5"
  {
    case "$3" in
      pypi) from_pypi "$folder" "$1" "$4" "${packages[@]}" ;;
      pypi,cargo) from_pypi "$folder" "$1" "$4" "${packages[@]}" || from_cargo "$folder" "$1" "$4" ;;
      npm) from_npm "$folder" "$1" "$4" "${packages[@]}" ;;
      maven) from_maven "$folder" "$1" "$4" "${packages[@]}" ;;
      unpacked) unpacked "$folder" "$1" "$4" "${packages[@]}" ;;
      made) "made_${1//-/_}" "$folder" ;;
    esac
  } </dev/null >"$peers_cache/.$1.log" 2>&1 && touch "$folder/done" ||
    echo "setup: $1 cannot be had from $3: see $peers_cache/.$1.log" >&2
}

debian=() pending=()
note() {
  if peers_here "$@"; then return; fi
  local columns
  if [ "$3" = debian ]; then
    debian+=("$5")
  else
    printf -v columns '%q ' "$@"
    pending+=("$columns")
  fi
}
peers_each note "$@"

sudo=""
[ "$(id -u)" = 0 ] || sudo="sudo"
apt_install() { # PACKAGE...
  $sudo env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends -o DPkg::Lock::Timeout=600 "$@" >/dev/null
}

if [ ${#debian[@]} -gt 0 ]; then
  echo "setup: installing ${debian[*]}"
  if peers_program apt-get; then
    # A source that cannot be reached does not keep the others from being used.
    $sudo apt-get update -qq || true
    # All at once is quickest; where one is not to be had, each line of the list by itself.
    # shellcheck disable=SC2068,SC2086 # several packages in one word
    apt_install ${debian[@]} || for packages in "${debian[@]}"; do
      apt_install $packages || echo "setup: $packages: cannot be installed" >&2
    done
  else
    echo "setup: this is no Debian; install these by hand: ${debian[*]}" >&2
  fi
fi

if ! peers_program cargo; then
  if [ -x "$HOME/.cargo/bin/cargo" ]; then
    echo "setup: cargo is in ~/.cargo/bin; add it to PATH" >&2
    PATH="$HOME/.cargo/bin:$PATH"
  elif peers_program apt-get && apt-cache show rustup >/dev/null 2>&1; then
    $sudo apt-get install -y -qq rustup >/dev/null && rustup default stable
  else
    echo "setup: Rust 1.88 or newer is needed; see https://rustup.rs" >&2
    exit 1
  fi
fi

# Side by side: they wait for the network.
if [ ${#pending[@]} -gt 0 ]; then
  for columns in "${pending[@]}"; do
    eval "set_of=($columns)"
    echo "setup: ${set_of[0]} from ${set_of[2]}"
    into_cache "${set_of[@]}" &
  done
  wait
fi

if [ ${#debian[@]} -gt 0 ] || [ ${#pending[@]} -gt 0 ]; then
  said=$(peers_check "$@") || {
    grep ^MISSING <<<"$said" >&2
    echo "setup: what needs these is skipped, and says so" >&2
    [ "${CI:-}" != true ]
  }
fi
