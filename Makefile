# The commands of the project, the same for people and for CI (`.ci/run` calls `make test`). `make help` lists them.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

export CARGO_TARGET_DIR ?= $(CURDIR)/target
export WEIR_PYTHON ?= $(CARGO_TARGET_DIR)/venv/bin/python
# Of the program, beyond what it always has, such as `make build FEATURES="--features weir/nats,weir/otlp"`. `make test` takes all.
export FEATURES ?=
WEIR = "$(CARGO_TARGET_DIR)/release/weir"

# In the order in which they run: what fails soonest comes first. All choose packages so that dependencies have the same
# features: then nothing is compiled twice in a profile.
CHECKS = fmt tidy clippy doc programs unit instructions demo

# Seeds per level of faults and time per target of `make soak`.
SEEDS ?= 25000
FUZZ_SECONDS ?= 600
# Every commit draws seeds of its own, so many per level of faults; a failing one is printed, and fails again.
FRESH_SEEDS ?= 2000
FIRST_SEED ?= $(shell printf %d 0x$$(git rev-parse HEAD 2>/dev/null | cut -c 1-8))000
# Tests of whole runs wait, for processes and for time, more than they compute.
TEST_THREADS ?= $(shell echo $$((3 * $$(nproc))))
# Runs of `make kills`, and mutants of each crate of `make mutants`; the seed that they are drawn from.
KILLS ?= 300
MUTANTS ?= 100
MUTATED ?= control dataflow eformat storage trigger
SEED ?= 1

# Where `make install` puts things; DESTDIR stands before it, for those who make packages.
PREFIX ?= /usr/local

.PHONY: help test $(CHECKS) purity advisories limits tools python build install uninstall soak kills mutants miri bench reference clean

help: ## list these commands
	@sed -n 's/^\([a-z]*\):.*## /  make \1\t/p' Makefile | expand -t 16

demo: ## build Weir, take data with the quickstart, check the files
	@scripts/demo

test: export FEATURES = --features weir/nats,weir/otlp
test: tools python ## install what the tests need and run all checks
	@MAKE="$(MAKE)" scripts/checks $(CHECKS)

fmt: ## sources are formatted
	@if cargo fmt --version >/dev/null 2>&1; then cargo fmt --all --check -- -l; else scripts/skip fmt "rustfmt is not installed"; fi

clippy: ## lints, as errors
	@if cargo clippy --version >/dev/null 2>&1; then cargo clippy --locked --workspace --all-targets $(FEATURES) -- -D warnings && \
	cargo clippy --locked -p service -p weir --all-targets -- -D warnings; \
	else scripts/skip clippy "clippy is not installed"; fi

doc: ## the documentation of the sources builds without warnings
	RUSTDOCFLAGS="-D warnings" cargo doc --locked --workspace --no-deps $(FEATURES)

advisories: ## known vulnerabilities of dependencies (needs cargo-deny and the network)
	cargo deny --locked check

tidy: ## the tree keeps to the rules of CONTRIBUTING.md
	cargo test --locked --workspace $(FEATURES) --test tidy

purity: ## the protocol logic has no I/O, clock, thread or entropy (part of tidy)
	cargo test --locked --workspace $(FEATURES) --test tidy purity

unit: programs ## all other tests; those of whole runs drive the program as users have it, in the release build
	RUST_TEST_THREADS=$(TEST_THREADS) WEIR_SEEDS=$(FRESH_SEEDS) WEIR_FIRST_SEED=$(FIRST_SEED) WEIR_PROGRAM=$(WEIR) \
	cargo test --locked --workspace $(FEATURES) --exclude tidy

instructions: ## an event costs on each hot path what crates/tools/instructions/limits.txt says
	@scripts/instructions check

limits: ## measure what an event costs on hot paths and write that file
	@scripts/instructions update

# The whole of each program is optimised by one thread, so two of them are built in the time of one.
programs: ## build the program, and what counts the instructions of its hot paths
	cargo build --locked --release $(FEATURES) -p weir --bin weir -p instructions --bin instructions

build: ## build the program: target/release/weir
	cargo build --locked --release $(FEATURES) -p weir --bin weir

install: ## PREFIX=/usr/local: the program, and what sources in C, C++ and Python need; DESTDIR stands before it
	cargo build --locked --release $(FEATURES) -p weir --bin weir -p weir-c --lib
	@scripts/install $(WEIR) "$(CARGO_TARGET_DIR)/release" "$(PREFIX)"

uninstall: ## take away what `make install` has put below PREFIX
	@scripts/install --uninstall "$(PREFIX)"

tools: ## install cargo components and tools that the checks need, where possible
	@scripts/tools

python: ## prepare a Python with the packages of tests/requirements.txt, where possible
	@scripts/python

soak: ## long campaigns: SEEDS=n seeded runs for each level of faults, then FUZZ_SECONDS=s for each fuzz target
	WEIR_SEEDS=$(SEEDS) WEIR_FIRST_SEED=$(FIRST_SEED) cargo test --locked --release -p swarm --test seeds
	@scripts/fuzz $(FUZZ_SECONDS)

kills: build ## KILLS=n runs whose applications are killed at random, from SEED=s on; what failed is kept
	@scripts/kills --weir "$(CARGO_TARGET_DIR)/release/weir" --kills $(KILLS) --seed $(SEED)

mutants: ## MUTANTS=n changes of the sources of each crate of MUTATED="…", drawn from SEED=s: which do no tests notice
	@scripts/mutants $(MUTANTS) $(SEED) $(MUTATED)

miri: ## the crate that counts holders of pages has no undefined behaviour that its tests reach (needs a nightly with Miri)
	MIRIFLAGS="-Zmiri-many-seeds=0..8 -Zmiri-preemption-rate=0.04" cargo +nightly miri test --locked -p pages

bench: build ## benchmarks: of parts by criterion, then of the system
	cargo bench --locked --workspace --bench '*'
	for size in 1000 9000 37500; do $(WEIR) bench event-builder --sources 4 --fragment $$size --transport tcp --json; done
	$(WEIR) bench event-builder --sources 40 --fragment 37500 --transport tcp --json
	for payload in handles touched; do for size in 9000 37500; do \
	$(WEIR) bench event-builder --sources 4 --fragment $$size --transport shm --payload $$payload --json; done; done
	$(WEIR) bench event-builder --sources 4 --fragment 9000 --transport udp --json
	$(WEIR) bench window --json
	$(WEIR) bench transport --json
	$(WEIR) bench sfi --json
	$(WEIR) bench ros --json
	$(WEIR) bench ros --transport udp --json
	@if [ "$$(id -u)" = 0 ]; then $(WEIR) bench losses --json; else scripts/skip "bench losses" "needs root"; fi
	$(WEIR) bench start --json
	$(WEIR) bench push-pull --json
	$(WEIR) bench grouping --json
	$(WEIR) bench accretion --json
	$(WEIR) bench sources --json
	$(WEIR) bench memory --json
	$(WEIR) bench level2 --json
	$(WEIR) bench simulation --json
	$(WEIR) bench crate --json
	$(WEIR) bench prediction --json
	$(WEIR) bench filter --python "$(WEIR_PYTHON)" --json
	$(WEIR) bench shaping --json

reference: build ## the bare machine of event building beside another: EVB=f.c, a program of the same arguments
	@test -n "$(EVB)" || { echo "make reference: expected EVB=FILE.c" >&2; exit 1; }
	$(CC) -O2 -o "$(CARGO_TARGET_DIR)/evb" "$(EVB)"
	$(WEIR) bench reference --against "$(CARGO_TARGET_DIR)/evb"

clean: ## remove everything that was built or recorded by these commands
	cargo clean
	rm -rf out
