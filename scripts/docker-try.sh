#!/usr/bin/env bash
# Builds the image of packaging/Dockerfile from what `scripts/dist.sh deb` made, and tries it as somebody would who just did that.
#
#   scripts/docker-try.sh [ROOT]
#
# Needs a daemon of docker (DOCKER_HOST, if it is not the usual one). With ROOT, the root of an empty Debian as scripts/dist-try.sh makes one,
# the image that the Dockerfile begins with is made of it where no registry is reached. Calls come from this machine, by the program of the package.
set -euo pipefail
cd "$(dirname "$0")/.."
say() { echo "docker-try: $*" >&2; }
base=$(sed -n 's/^FROM //p' packaging/Dockerfile)
image=everywire-try
scratch=$(mktemp -d)
started=()
end() {
  [ ${#started[@]} = 0 ] || docker rm --force "${started[@]}" >/dev/null
  docker rmi --force "$image" >/dev/null 2>&1 || true
  rm -rf "$scratch"
}
trap end EXIT
if [ $# = 1 ]; then
  # /dev, /proc and /sys are the container's own.
  tar -C "$1" --exclude=./dev --exclude=./proc --exclude=./sys -cf - . | docker import - "$base" >/dev/null
  say "$base is made of $1"
fi
docker build --quiet --tag "$image" build/dist >/dev/null
dpkg-deb --extract build/dist/everywire_*.deb "$scratch/outside"
everywire() { HOME=$scratch "$scratch/outside/usr/bin/everywire" "$@"; }

docker run --rm "$image" --version
docker run --rm "$image" explain E_NOINTERFACE >/dev/null

# A container that runs on, and what it has printed once that is there.
start() { # NAME MARK ARGUMENT...
  local id told
  id=$(docker run --detach "${@:3}")
  started+=("$id")
  for _ in $(seq 300); do
    told=$(docker logs "$id" 2>"$scratch/err")
    [[ $told != *$2* ]] || break
    sleep 0.1
  done
  [[ $told == *$2* ]] || { cat "$scratch/err" >&2; return 1; }
  printf -v "$1" %s "$id"
  printf '%s\n' "$told" >"$scratch/$1"
}
stopped() { # ID
  docker stop --time 60 "$1" >/dev/null
  [ "$(docker inspect --format '{{.State.ExitCode}}' "$1")" = 0 ] || { say "it ended with an error"; return 1; }
}

# The demo: each of its commands inside, and those over TCP from outside, too, where the container has this machine's network.
start demo Counters.Seconds --network host "$image" demo
grep '^everywire' "$scratch/demo" >"$scratch/commands"
inside=0 outside=0
while read -r command; do
  docker exec "$demo" sh -c "$command" </dev/null >"$scratch/said" 2>&1 || { say "inside: $command"; cat "$scratch/said"; exit 1; }
  inside=$((inside + 1))
  case $command in *+unix* | *dcop* | *dbus.sock*) continue ;; esac
  (eval "$command") </dev/null >"$scratch/said" 2>&1 || { say "outside: $command"; cat "$scratch/said"; exit 1; }
  outside=$((outside + 1))
done <"$scratch/commands"
stopped "$demo"
say "$inside commands of the demo work inside, $outside of them from outside as well"

# A broker at a published port, in front of a demo that only the container reaches.
port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
start demo Counters.Seconds --publish "127.0.0.1:$port:2809" "$image" demo
at=$(grep -o 'iiop://127.0.0.1:[0-9]*' "$scratch/demo" | head -n 1)
docker exec "$demo" everywire describe "$at/tank" --as omg >"$scratch/tank.idl"
printf '[listen.outside]\naddress = "iiop://0.0.0.0:2809?publish=127.0.0.1:%s"\n[[route]]\nname = "tank"\nto = "%s/"\n' "$port" "$at" >"$scratch/broker.toml"
chmod 755 "$scratch"
start broker tank --network "container:$demo" --volume "$scratch/broker.toml:/broker.toml:ro" "$image" broker /broker.toml
[ "$(everywire call "iiop://127.0.0.1:$port/tank" Fill 5 -c "$scratch/tank.idl")" = 105.0 ]
stopped "$broker"
stopped "$demo"
say "a call from outside goes through a broker in a container"
say "all of it works"
