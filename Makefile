# Everything that is run by hand or by CI. Start with `make`.
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.PHONY: help services test test-unit test-store lint fmt bench bench-record profile build demo chaos

GO ?= go
TOOL = $(GO) tool -modfile=tools/go.mod
# What needs no server, no C compiler and no network: the rules, and the parts brought along.
SERVERLESS = $(shell scripts/serverless)

help: ## this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /\1\t/' | awk -F'\t' '{printf "  make %-12s %s\n", $$1, $$2}'

services: ## install what the tests need (Debian, Ubuntu; no daemon is left running)
	@scripts/services

test: services ## everything, with -race, on real servers; installs what is missing
	$(GO) test -race -timeout 15m ./...

test-unit: ## the packages whose tests need nothing but Go
	$(GO) test $(SERVERLESS)

test-store: ## the store suite, on the MySQL that SECKILL_TEST_MYSQL_DSN names where it is set
	$(GO) test -count=1 ./internal/sqlstore/...

lint: ## golangci-lint, go vet, gofumpt, go mod tidy and govulncheck, in pinned versions (the first run builds them: some minutes)
	$(TOOL) golangci-lint run ./...
	$(GO) vet ./...
	@unformatted=$$($(TOOL) gofumpt -l .); if [[ -n $$unformatted ]]; then printf 'gofumpt would change:\n%s\n' "$$unformatted"; exit 1; fi
	$(GO) mod tidy -diff
	scripts/vulnerabilities

fmt: ## format all Go code
	$(TOOL) gofumpt -w .

BENCH = $(GO) test -run '^$$' -bench . -benchtime 5x -timeout 10m ./test/bench/

bench: ## the benchmarks, each beside its floor: a table of ratios (some 3 minutes)
	$(BENCH)

bench-record: ## the same, appended to docs/performance.md
	SECKILL_BENCH_RECORD=$(CURDIR)/docs/performance.md $(BENCH)

SEEDS ?= 5
SEED ?= 1
HARMS ?= all
chaos: ## every harm in a rush of 6,000 buyers, SEEDS (5) seeds from SEED (1) on, HARMS one by one; hours, and a table in chaos.txt
	$(GO) test ./test/chaos -count=1 -timeout 12h -chaos.harms=$(HARMS) -chaos.seed=$(SEED) -chaos.seeds=$(SEEDS) \
		-chaos.units=2000 -chaos.buyers=6000 -chaos.out=$(CURDIR)/chaos.txt
	$(GO) run ./test/chaos/table <chaos.txt

profile: ## processor profiles of the API, sold out and selling, in profiles/ (read them with go tool pprof)
	SECKILL_BENCH_PROFILE=$(CURDIR)/profiles $(GO) test -run '^$$' -bench 'SoldOut|Accepted' -benchtime 1x ./test/bench/

build: ## static programs in bin/
	CGO_ENABLED=0 $(GO) build -trimpath -o bin/ ./cmd/...

demo: ## a whole sale in one process: 500 units, 5,000 buyers
	$(GO) run ./cmd/standalone -demo
