#!/usr/bin/env bash
# The list of peers (peers/peers.tsv) for scripts: what of it is here, and where.
#
#   scripts/peers.sh check [derby | PEER...]   says of each peer whether it is here; fails if one is not
#   scripts/peers.sh hint PEER...              how to install them
#   scripts/peers.sh path                      the folders of programs in the user's cache, for the search path:
#                                              PATH="$(bash scripts/peers.sh path):$PATH"
#
# Other scripts read it with `.`, and have the functions. Nothing here starts a program where it need not: it is run often.
set -euo pipefail

peers_list="$(dirname "${BASH_SOURCE[0]}")/../peers/peers.tsv"
peers_cache="${XDG_CACHE_HOME:-$HOME/.cache}/everywire"

# Programs for administrators are not on everybody's search path.
peers_path="$PATH:/usr/local/sbin:/usr/sbin:/sbin"

# Runs a command with each peer's columns, of those that are wanted: all, those `for` derby, or those of these names.
peers_each() { # COMMAND [derby | PEER...]
  local command=$1 peer for from version packages proof purpose
  shift
  while IFS=$'\t' read -r peer for from version packages proof purpose <&3; do
    case "$peer" in '#'* | peer | '') continue ;; esac
    if [ $# -gt 0 ]; then
      case " $* " in
        " derby ") [ "$for" = derby ] || continue ;;
        *" $peer "*) ;;
        *) continue ;;
      esac
    fi
    "$command" "$peer" "$for" "$from" "$version" "$packages" "$proof" "$purpose"
  done 3<"$peers_list"
}

# Fails, and says so, if one of the names is in no line of the list.
peers_known() { # PEER...
  local name
  for name in "$@"; do
    if ! grep -q "^$name	" "$peers_list" || [ "$name" = peer ]; then
      echo "\`$name\` is not in the list of peers, peers/peers.tsv" >&2
      return 2
    fi
  done
}

peers_program() { PATH=$peers_path type -P "$1" >/dev/null; }

# The version that a program tells, for what is made for it. Fails where there is no such program.
peers_told() { # PROGRAM
  peers_program "$1" && "$1" --version | sed -n '1s/.*version \([0-9.]*\).*/\1/p'
}

# Where a peer is in the cache.
peers_folder() { # PEER VERSION
  case "$2" in
    -) echo "$peers_cache/$1" ;;
    =*) echo "$peers_cache/$1-$(peers_told "${2#=}")" ;;
    *) echo "$peers_cache/$1-$2" ;;
  esac
}

# Whether something has this path, in which a star may stand for anything.
peers_file() {
  local IFS='' path
  for path in $1; do
    [ -e "$path" ] && return 0
  done
  return 1
}

# Whether a peer is here, in the version of the list.
peers_here() { # the columns
  local folder='' proof
  [ "$3" = debian ] || {
    folder=$(peers_folder "$1" "$4")
    # Whatever was interrupted has no such mark.
    [ -e "$folder/done" ] || return 1
  }
  local -a proofs
  IFS=' ' read -r -a proofs <<<"$6"
  for proof in "${proofs[@]}"; do
    proof=${proof//@/$4}
    case "$folder:$proof" in
      :/*) peers_file "$proof" || return 1 ;;
      :*) peers_program "$proof" || return 1 ;;
      *) peers_file "$folder/$proof" || return 1 ;;
    esac
  done
}

# Programs of the cache tell their version themselves; those of Debian have the one that Debian has.
peers_check_one() {
  local place='on the system'
  [ "$3" = debian ] || place=$(peers_folder "$1" "$4")
  if ! peers_here "$@"; then
    echo "MISSING $1 ($3: $5): $7"
    peers_missing=$((peers_missing + 1))
  elif [[ "$3" = *cargo* ]] && [[ "$("$place/$6" --version)" != *"$4"* ]]; then
    echo "MISSING $1 $4: $place has another version"
    peers_missing=$((peers_missing + 1))
  else
    [[ "$4" != [-=]* ]] || set -- "$1"
    echo "here    $1${4:+ $4} ($place)"
  fi
}

peers_check() { # [derby | PEER...]
  peers_missing=0
  peers_each peers_check_one "$@"
  echo "$peers_missing missing"
  [ "$peers_missing" -eq 0 ]
}

peers_bin() {
  case "$3" in *cargo*) printf '%s\n' "$(peers_folder "$1" "$4")/bin" ;; esac
}

if [ "${BASH_SOURCE[0]}" = "$0" ]; then
  case "${1:-}" in
    check)
      shift
      [ "$*" = derby ] || peers_known "$@"
      peers_check "$@"
      ;;
    hint)
      shift
      peers_known "$@"
      echo "bash scripts/setup.sh $*"
      ;;
    path) peers_each peers_bin | paste -s -d : ;;
    *)
      sed -n '2,/^set/s/^# \{0,1\}//p' "$0" >&2
      exit 2
      ;;
  esac
fi
