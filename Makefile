# Everywire: the two commands of the README, and what they are made of.
#
#   make derby   the main job: build, and race Everywire beside raw sockets and omniORB on this machine
#   make test    every test, with real peers; installs what it needs

CARGO ?= cargo
RACE  ?= callbacks calls bytes

.PHONY: derby test setup build check fuzz instructions layout clean

derby: setup
	$(CARGO) build --release --locked -p everywire-cli
	@mkdir -p build
	@for race in $(RACE); do \
	  ./target/release/everywire derby $$race --json build/derby-$$race.json --html build/derby-$$race.html || exit $$?; \
	done
	@echo "report: build/derby-callbacks.html, build/derby-calls.html, build/derby-bytes.html"

test:
	bash scripts/test.sh

setup:
	bash scripts/setup.sh

build:
	$(CARGO) build --release --locked

check:
	bash scripts/check.sh

fuzz:
	bash scripts/fuzz.sh

instructions:
	bash derby/rivals/instructions.sh

# Profiles calls on every wire, and says which functions the linker is to put together.
layout:
	bash scripts/layout.sh

clean:
	$(CARGO) clean
	rm -rf build
