# The commands for developers and CI. `make` lists them.
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.PHONY: help generate services test test-browser shots test-unit test-store lint fmt bench bench-ratelimit bench-record calibrate profile build demo faults soak model history loadtest fuzz release release-check compose-test

GO ?= go
TOOL = $(GO) tool -modfile=tools/go.mod
# The packages whose tests need no server, no C compiler and no network.
SERVERLESS = $(shell scripts/serverless)

help: ## this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /\1\t/' | awk -F'\t' '{printf "  make %-12s %s\n", $$1, $$2}'

bench-ratelimit: ## compare the rate limiter with others; print a table
	cd test/bench-ratelimit && $(GO) test -count=1 -run TestTable -v .

services: ## install what the tests need on Debian or Ubuntu; starts no daemon
	@scripts/services

test: ## run all tests on real servers, with -race but for the model; installs what is missing
	@GO=$(GO) scripts/test

ORDERS ?=
# ORDERS=100000 measures the lists with 500 sales alone: run it on a machine that does nothing else.
test-browser: services ## test the pages in a real browser, with standalone and with real servers
	$(GO) test -race -count=1 -timeout 15m $(if $(ORDERS),-v -run ListsManySales) ./test/browser $(if $(ORDERS),-browser.orders=$(ORDERS))

# The packages fonts-inter and fonts-noto-cjk give the fonts of the pictures in the repository.
shots: services ## test-browser, and write new screenshots to docs/img
	$(GO) test -count=1 -timeout 15m ./test/browser -browser.shots=$(CURDIR)/docs/img

test-unit: ## test the packages that need only Go
	$(GO) test $(SERVERLESS)

# Without SECKILL_TEST_MYSQL_DSN (such as root@tcp(host:3306)/) the tests start private servers.
test-store: ## test sqlstore on the server of SECKILL_TEST_MYSQL_DSN, or on private ones
	$(GO) test -count=1 ./internal/sqlstore/...

FUZZTIME ?= 10m
fuzz: ## fuzz each decoder and each route, for FUZZTIME (10m) in total
	@FUZZTIME=$(FUZZTIME) GO=$(GO) scripts/fuzz

# The linters have pinned versions. The first run builds them, which takes some minutes.
lint: ## golangci-lint, go vet, gofumpt, go mod tidy, generated code, a compatible API, vocabulary, govulncheck
	GOGC=400 $(TOOL) golangci-lint run ./...
	$(GO) vet ./...
	$(GO) vet -tags measure ./test/e2e
	@unformatted=$$($(TOOL) gofumpt -l .); if [[ -n $$unformatted ]]; then printf 'gofumpt would change:\n%s\n' "$$unformatted"; exit 1; fi
	$(GO) mod tidy -diff
	scripts/generated
	scripts/api-compatible
	scripts/vocabulary
	scripts/vulnerabilities

generate: ## generate the Go client and the TypeScript types from api/openapi.yaml
	$(GO) generate ./client

fmt: ## format all Go code
	$(TOOL) gofumpt -w .

OLD ?=
ONLY ?=
ROUNDS ?= 5
BENCH = OLD='$(OLD)' ONLY='$(ONLY)' ROUNDS='$(ROUNDS)' GO='$(GO)' scripts/bench
# OLD=commit measures that commit's programs in the same run. The load is wrk's if it is installed.
bench: ## run the benchmarks, ONLY=pattern, in ROUNDS (5), beside floors and commit OLD (20 minutes)
	@$(BENCH)

bench-record: ## run the benchmarks as make bench does, and append the result to reports/bench.md
	@RECORD=$(CURDIR)/reports/bench.md $(BENCH)

# It writes internal/capacity/calibration.json and reports/plans.md.
calibrate: ## measure this machine's costs for capacity planning (3 minutes)
	SECKILL_BENCH_CALIBRATION=$(CURDIR)/internal/capacity/calibration.json $(GO) test -run '^$$' -bench Calibrate -benchtime 5x -timeout 20m ./test/bench/
	$(GO) test -count=1 ./cmd/seckillctl -run Plan -plans.update

SEEDS ?= 5
SEED ?= 1
FAULTS ?= all
ON ?=
# Results go to reports/. ON=clusters replaces each server by a cluster; SEED is the first seed.
faults: ## test every fault, or FAULTS=a,b, with SEEDS (5) seeds and 6,000 buyers (hours)
	$(GO) test ./test/faults -count=1 -timeout 12h -faults.names=$(FAULTS) -faults.on=$(ON) \
		-faults.seed=$(SEED) -faults.seeds=$(SEEDS) -faults.units=2000 -faults.buyers=6000 \
		-faults.out=$(CURDIR)/reports/fault-runs.txt
	$(GO) test ./test/faults/table -count=1 -update

SOAK ?= 1h
soak: ## sell for an hour (SOAK): 50 sales that come and go, 200 purchases/s, a fault each minute
	$(GO) test ./test/faults -count=1 -timeout 24h -v -run TestSoak -faults.soak=$(SOAK) \
		-faults.seed=$(SEED) -faults.soak-sales=50 -faults.soak-rate=200 -faults.soak-every=1m

model: ## check the simulated protocol on 20,000 schedules, then without each rule (1 minute)
	$(GO) test ./test/model -count=1 -run AllRules -v -schedules 20000
	$(GO) test ./test/model -count=1 -run EachRule

# It draws rejected histories in reports/_artifacts.
history: ## judge histories of concurrent clients with porcupine, SEEDS (5) from SEED (5 minutes)
	$(GO) test ./test/history -count=1 -timeout 12h -v -history.all -history.seed=$(SEED) \
		-history.seeds=$(SEEDS) -artifacts -outputdir=$(CURDIR)/reports

profile: ## write CPU profiles of API and consumer, sold out and selling, to profiles/
	SECKILL_BENCH_PROFILE=$(CURDIR)/profiles $(GO) test -run '^$$' -bench 'SoldOut|Accepted|WholeWay' -benchtime 1x ./test/bench/

# It needs root and 6 GB of disk if it builds stand-ins for images that cannot be pulled.
compose-test: ## test docker-compose.yml unchanged: 10,000 buyers, the ledger, the dashboards
	scripts/compose-test

# -version prints the commit, or the release that VERSION names.
STAMP = $(if $(VERSION),-X flashsale.dev/seckill/internal/app.version=$(VERSION))
build: ## build static programs in bin/
	CGO_ENABLED=0 $(GO) build -tags nomsgpack -trimpath -ldflags '$(STAMP)' -o bin/ ./cmd/...

release: ## build static programs for linux/amd64 and arm64 in dist/; VERSION=v1.2.3 names them
	@scripts/release

release-check: ## build a release twice, in two directories, and compare every byte (some minutes)
	@scripts/release check

demo: ## run a whole sale in one process: 500 units, 5,000 buyers
	$(GO) run -tags nomsgpack ./cmd/standalone -demo

LOADTEST ?= -impatient 0.2 -hostile 0.05 -html loadtest.html
loadtest: ## load the API on 127.0.0.1:8080, check the ledger; LOADTEST='-help' lists options
	$(GO) run ./cmd/loadtest $(LOADTEST)
