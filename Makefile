# make check is the whole truth; the other targets are longer or need something more than Go.
# `make help` lists them.

SHELL         := /bin/bash
.SHELLFLAGS   := -eu -o pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS     += --no-print-directory

GO            ?= go
TEST_TIMEOUT  ?= 20m
BENCHTIME     ?= 20s
FUZZTIME      ?= 30s
FUZZFLAGS     ?= -fuzzminimizetime=1s
CRASH_ROUNDS  ?= 10000
DEATH_ROUNDS  ?= 2000
DEMO_KILLS    ?= 200
CRASH_TIMEOUT ?= 3h

# The reference folder: the contracts' own texts and traces, beside the repository or where this says.
MAHATI_REFERENCE ?= $(abspath ../shared/reference)

STATICCHECK := $(GO) tool -modfile=tools/go.mod staticcheck

# $(call sources,GREP OPTIONS AND PATTERN): directories of Go files that match, as package patterns.
sources = { grep -rlE --include='*.go' --exclude-dir=testdata --exclude-dir=.git $(1) . || true; } | xargs -r -n1 dirname | sort -u

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: check fmt vet staticcheck tidy archtest race
check: fmt vet staticcheck tidy archtest race ## format, vet, staticcheck, go.mod, import rules, race tests

fmt: ## fail on files that gofmt would change
	@found=$$(find . -name '*.go' -not -path '*/testdata/*' -not -path './.git/*' -print0 | xargs -0 -r gofmt -l); \
	if [ -n "$$found" ]; then echo "gofmt would change:"; echo "$$found"; exit 1; fi

vet: ## go vet
	$(GO) vet ./...

staticcheck: ## staticcheck, as pinned in tools/go.mod
	$(STATICCHECK) ./...

tidy: ## fail when go.mod or go.sum are not what go mod tidy writes
	$(GO) mod tidy -diff
	$(GO) -C tools mod tidy -diff

archtest: ## the rules of the architecture; prints long files and functions
	$(GO) test -count=1 ./internal/archtest
	@$(GO) test -count=1 -v -run '^TestSizes$$' ./internal/archtest | { grep ' lines' || true; }

race: ## all tests under the race detector
	$(GO) test -race -count=1 -timeout $(TEST_TIMEOUT) ./...

.PHONY: test
test: ## all tests
	$(GO) test ./...

.PHONY: bench bench-packages
bench: ## the figures of docs/performance.md, each BENCHTIME=20s (SECTIONS=history,fanout)
	$(GO) run ./test/bench -time $(BENCHTIME) -only "$(SECTIONS)"

bench-packages: ## every benchmark of every package, a second each
	@uptime
	@packages=$$($(call sources,'^func Benchmark')); \
	if [ -z "$$packages" ]; then echo "no benchmarks found"; exit 1; fi; \
	$(GO) test -run '^$$' -bench . -benchtime 1s -benchmem -p 1 -timeout 3h $$packages
	@uptime

.PHONY: fuzz
fuzz: ## every fuzz test for FUZZTIME=30s (or a count, 5000x)
	@found=0; \
	for package in $$($(call sources,'^func Fuzz[A-Z0-9_]')); do \
		for name in $$(grep -hoE '^func Fuzz[A-Za-z0-9_]+' "$$package"/*_test.go | cut -d' ' -f2); do \
			echo "$$package $$name"; \
			$(GO) test -run '^$$' -fuzz "^$$name\$$" -fuzztime $(FUZZTIME) $(FUZZFLAGS) "$$package"; \
			found=$$((found + 1)); \
		done; \
	done; \
	if [ "$$found" = 0 ]; then echo "no fuzz tests found"; exit 1; fi

# Each suite reads its number of rounds from the environment. Its packages are those whose sources name the
# variable; for a <pkg>test package that is everything below its parent, where the tests that call it are.
define suite
	@packages=$$($(call sources,'\b$(1)\b') | sed -E 's|/[^/]+test$$|/...|'); \
	if [ -z "$$packages" ]; then echo "no test reads $(1)"; exit 1; fi; \
	echo "$(1)=$(2) on" $$packages; \
	$(1)=$(2) $(GO) test -count=1 -timeout $(CRASH_TIMEOUT) $$packages
endef

.PHONY: crash crash-power crash-death crash-demo
crash: crash-power crash-death crash-demo ## the three crash suites, long

crash-power: ## power loss inside every commit, CRASH_ROUNDS=10000
	$(call suite,MAHATI_CRASH_ROUNDS,$(CRASH_ROUNDS))

crash-death: ## a real process killed, DEATH_ROUNDS=2000
	$(call suite,MAHATI_CRASH_KILLS,$(DEATH_ROUNDS))

crash-demo: ## the host of the demo killed, DEMO_KILLS=200
	$(call suite,MAHATI_DEMO_KILLS,$(DEMO_KILLS))

.PHONY: agents
agents: ## public coding agents against a scripted model endpoint (needs Node and the npm registry)
	@if [ ! -x test/agents/run ]; then echo "test/agents/run is missing"; exit 1; fi
	test/agents/run

.PHONY: reference
reference: ## every test that reads the reference folder; fails where it is missing
	@if [ ! -d "$(MAHATI_REFERENCE)" ]; then \
		echo "the reference folder is missing: $(MAHATI_REFERENCE) (set MAHATI_REFERENCE)"; exit 1; fi
	@packages=$$($(call sources,'^func TestReference')); \
	if [ -z "$$packages" ]; then echo "no test is named TestReference..."; exit 1; fi; \
	MAHATI_REFERENCE="$(MAHATI_REFERENCE)" MAHATI_REFERENCE_REQUIRED=1 \
		$(GO) test -count=1 -timeout $(TEST_TIMEOUT) -run '^TestReference' $$packages
