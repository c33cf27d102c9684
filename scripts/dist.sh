#!/usr/bin/env bash
# What users install, in build/dist: the crates as they would be published, a Debian package, a program for any Linux, checksums.
#
#   scripts/dist.sh [PART...]      parts are crates, deb and static; all unless named
#
#   PROFILE=dev scripts/dist.sh deb    without optimisation, to look at a package quickly
#   VERIFY=no scripts/dist.sh crates   packs the crates, and does not build each from what was packed
#
# scripts/dist-try.sh installs and tries all of it in an empty root.
set -euo pipefail
cd "$(dirname "$0")/.."
profile=${PROFILE:-release}
target=${CARGO_TARGET_DIR:-target}
out=build/dist
folder=$profile
[ "$profile" != dev ] || folder=debug
version=$(sed -n 's/^version = "\(.*\)"$/\1/p' Cargo.toml | head -n 1)
# Of one commit the same package comes twice.
export SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
mkdir -p "$out"
say() { echo "dist: $*" >&2; }

crates() {
  local dirty=() verify=()
  git diff --quiet HEAD || dirty=(--allow-dirty)
  [ "${VERIFY:-yes}" = yes ] || verify=(--no-verify)
  cargo publish --locked --workspace --dry-run "${verify[@]}" "${dirty[@]}"
  # Packed again, for a dry run keeps nothing of what it would have sent.
  cargo package --locked --workspace --no-verify "${dirty[@]}" $(sed 's/^/--exclude /' <<<"$(unpublished)")
  rm -rf "$out/crates"
  mkdir -p "$out/crates"
  cp "$target"/package/everywire*-"$version".crate "$out/crates/"
}

# Rooms that are not for users.
unpublished() { cargo metadata --no-deps --format-version 1 --offline | python3 -c '
import json, sys
print("\n".join(p["name"] for p in json.load(sys.stdin)["packages"] if p["publish"] == []))'; }

# As `make derby` and `cargo install` build it: for the whole workspace it would have the features that tests ask for.
program() {
  cargo build --locked --profile "$profile" --package everywire-cli --bin everywire
}

# The package: the program, its pages, completion for three shells, a unit for the broker.
deb() {
  program
  local root="$out/deb" bin="$target/$folder/everywire" arch needed
  arch=$(dpkg --print-architecture)
  rm -rf "$root"
  install -Dm755 "$bin" "$root/usr/bin/everywire"
  [ "$profile" = dev ] || strip "$root/usr/bin/everywire"
  "$bin" man --to "$root/usr/share/man/man1"
  gzip -9n "$root"/usr/share/man/man1/*.1
  mkdir -p "$root/usr/share/bash-completion/completions" "$root/usr/share/zsh/vendor-completions" "$root/usr/share/fish/vendor_completions.d"
  "$bin" completion bash >"$root/usr/share/bash-completion/completions/everywire"
  "$bin" completion zsh >"$root/usr/share/zsh/vendor-completions/_everywire"
  "$bin" completion fish >"$root/usr/share/fish/vendor_completions.d/everywire.fish"
  install -Dm644 -t "$root/lib/systemd/system" packaging/everywire-broker.service packaging/everywire-broker.socket
  install -Dm644 packaging/copyright "$root/usr/share/doc/everywire/copyright"
  cat LICENSE-MIT LICENSE-APACHE >"$root/usr/share/doc/everywire/LICENSES"
  # In the folders that their links name.
  find README.md SECURITY.md docs -name '*.md' -exec install -Dm644 '{}' "$root/usr/share/doc/everywire/{}" ';'
  gzip -9nc CHANGELOG.md >"$root/usr/share/doc/everywire/changelog.gz"
  # The oldest C library that has what the program asks for.
  needed=$(objdump -T "$bin" | grep -o 'GLIBC_[0-9.]*' | sort -uV | tail -n 1)
  mkdir -p "$root/DEBIAN"
  cat >"$root/DEBIAN/control" <<END
Package: everywire
Version: $version
Architecture: $arch
Maintainer: $(git log -1 --format='%an <%ae>')
Section: net
Priority: optional
Depends: libc6 (>= ${needed#GLIBC_}), libgcc-s1
Recommends: $(awk -F'\t' '$1 == "gssapi" { print $5 }' peers/peers.tsv)
Suggests: bash-completion
Installed-Size: $(du -ks "$root" | cut -f1)
Homepage: $(sed -n 's/^repository = "\(.*\)"$/\1/p' Cargo.toml)
Description: calls, serves and bridges objects of CORBA, D-Bus, DCOP, DCOM and WCF
 One program for five wires and for OPC Data Access: it calls and serves their
 objects, lists and describes them, shows what passes between two peers, and
 passes calls on from one wire to another.
 .
 Kerberos needs the recommended library, which is looked for when it is used.
END
  find "$root" -exec touch -hd "@$SOURCE_DATE_EPOCH" {} +
  dpkg-deb --root-owner-group -Zxz --build "$root" "$out/everywire_${version}_$arch.deb"
}

# A program without shared libraries, for any Linux of this architecture. Kerberos is not in it, for that is a library which is loaded.
static() {
  local triple bin name="everywire-$version-$(uname -m)-linux"
  triple=$(rustc -vV | sed -n 's/^host: //p')
  # With a target, the flags are for the program alone, and not for what runs while it is built.
  RUSTFLAGS="${RUSTFLAGS:-} -C target-feature=+crt-static" \
    cargo build --locked --profile "$profile" --target "$triple" --package everywire-cli --bin everywire
  bin="$target/$triple/$folder/everywire"
  if readelf -l -d "$bin" | grep -qE 'INTERP|NEEDED'; then
    say "$bin asks for a loader or a shared library"
    return 1
  fi
  rm -rf "$out/$name"
  install -Dm755 "$bin" "$out/$name/everywire"
  [ "$profile" = dev ] || strip "$out/$name/everywire"
  cp LICENSE-MIT LICENSE-APACHE CHANGELOG.md packaging/everywire-broker.service packaging/everywire-broker.socket "$out/$name/"
  "$bin" man --to "$out/$name/man1"
  find "$out/$name" -exec touch -hd "@$SOURCE_DATE_EPOCH" {} +
  tar --sort=name --owner=0 --group=0 --numeric-owner -C "$out" -cf - "$name" | gzip -9n >"$out/$name.tar.gz"
  rm -r "${out:?}/$name"
}

[ $# -gt 0 ] || set -- crates deb static
for part; do "$part"; done
cp packaging/Dockerfile "$out/"
(cd "$out" && find . -maxdepth 2 -type f \( -name '*.deb' -o -name '*.crate' -o -name '*.tar.gz' \) -printf '%P\0' | sort -z | xargs -0 sha256sum >SHA256SUMS)
say "in $out:"
(cd "$out" && ls -l ./*.deb ./*.tar.gz crates 2>/dev/null) || true
