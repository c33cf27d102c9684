# Everywire: the two commands of the README, and what they are made of.
#
#   make derby   the main job: build, and race Everywire beside raw sockets and omniORB on this machine
#   make test    every test, with real peers; installs what it needs
#   make quick   the check while you work: what has changed, without foreign programs
#   make dist    what users install: crates, a Debian package, a program without shared libraries
#   make docs    the documents as a book: build/book/index.html
#   make soak    fuzzing, faults, endurance, models, sanitizers: hours, apart from the tests

CARGO ?= cargo
RACE  ?= callbacks calls opc bytes broker
# All races together end within so many seconds after the build, the building of rivals included.
DERBY_SECONDS ?= 570

.PHONY: derby test quick dist docs soak setup build check fuzz instructions layout clean

# The rivals come while the program is built, which needs none of them. The first of several races gives its verdict within two minutes.
derby:
	bash scripts/setup.sh ca-certificates g++
	bash scripts/setup.sh derby & rivals=$$!; \
	  $(CARGO) build --release --locked -p everywire-cli; built=$$?; wait $$rivals && exit $$built
	@mkdir -p build
	@end=$$(($$(date +%s) + $(DERBY_SECONDS))); races=$(words $(RACE)); \
	for race in $(RACE); do \
	  time=$$(((end - $$(date +%s)) / races)); races=$$((races - 1)); [ $$time -ge 20 ] || time=20; report=build/derby-$$race; \
	  [ "$$race" != "$(firstword $(RACE))" ] || [ $$races -eq 0 ] || [ $$time -le 95 ] || time=95; \
	  ./target/release/everywire derby $$race --time $${time}s --json $$report.json --html $$report.html --text $$report.txt || exit $$?; \
	done
	@echo; grep -h '^verdict: ' $(RACE:%=build/derby-%.txt) || true
	@echo "reports: $(RACE:%=build/derby-%.html)"

test:
	bash scripts/test.sh

# What takes hours: HOURS=2 PARTS="fuzz loom" for less.
soak:
	bash scripts/soak.sh $(or $(HOURS),24) $(PARTS)

# PARTS="deb" for some of it; PROFILE=dev without optimisation.
dist:
	bash scripts/dist.sh $(PARTS)

docs:
	bash scripts/setup.sh python3 mdbook
	PATH="$$(bash scripts/peers.sh path):$$PATH" mdbook build

quick:
	bash scripts/quick.sh

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
