# What is built for the tests and the demo is kept in .cache (or REDRIVE_CACHE), the crate in target (or CARGO_TARGET_DIR).
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:
export REDRIVE_CACHE ?= $(CURDIR)/.cache

cluster := $(REDRIVE_CACHE)/cluster/testcluster
rust_tools := cargo cc c++ make
environment_tools := go java javac mvn

.PHONY: help demo test test-environment kafka build crds lint clean tools rust-tools lint-tools

help:
	@echo "make demo              shows Redrive at work on a real API server and a real Kafka broker"
	@echo "make demo KEEP=1       the same, and leaves it running"
	@echo "make test              all tests"
	@echo "make test-environment  builds only what the tests and the demo run on"
	@echo "make build             the operator: target/release/redrive"
	@echo "make crds              writes crds/ anew from src/api"
	@echo "make lint              format, clippy, and whether crds/ is up to date"
	@echo "make clean             removes all that was built"

demo: tools test-environment build
	@KEEP=$(KEEP) demo/run.sh

# One summary at the end, whatever number of programs cargo runs the tests in.
test: tools test-environment
	@cargo test --release --no-fail-fast | awk ' \
	  { print; fflush() } \
	  /^test result:/ { results = results $$0 "\n"; passed += $$4; failed += $$6; ignored += $$8 } \
	  END { printf "\n%sall tests: %d passed; %d failed; %d ignored\n", results, passed, failed, ignored }'

test-environment: tools $(cluster) kafka

# Etcd, the Kubernetes API server and its controllers, kubectl and helm in one program.
$(cluster): $(wildcard tests/cluster/*.go tests/cluster/go.* tests/cluster/build.sh) | tools
	@echo "Building the test cluster from Go modules. The first time this takes about 10 minutes on two cores."
	@GOFLAGS=-v tests/cluster/build.sh $(@D) 2> >(awk ' \
	  /^go: downloading/ { if (++modules % 50 == 0) print "  " modules " modules fetched"; fflush(); next } \
	  /^[^ #]+$$/ { if (++packages % 100 == 0) print "  " packages " of about 3000 packages compiled"; fflush(); next } \
	  { print }' >&2)
	@touch $@

kafka: | tools
	@tests/kafka/build.sh $(REDRIVE_CACHE)/kafka

build: rust-tools
	@cargo build --release

crds: rust-tools
	cargo run --quiet --release -- crds --write crds

lint: lint-tools
	cargo fmt --check
	cargo clippy --release --all-targets -- -D warnings
	@generated=$$(mktemp -d); trap 'rm -rf "$$generated"' EXIT; \
	cargo run --quiet --release -- crds --write "$$generated"; \
	diff -ru --exclude=Kustomization crds "$$generated" || { echo "crds/ is not up to date: make crds" >&2; exit 1; }

clean:
	cargo clean
	rm -rf .cache

tools: ; @tests/tools.sh $(rust_tools) $(environment_tools)
rust-tools: ; @tests/tools.sh $(rust_tools)
lint-tools: ; @tests/tools.sh $(rust_tools) cargo-fmt cargo-clippy
