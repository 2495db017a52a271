# Everything that is run by hand or by CI. Start with `make`.
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.PHONY: help services test test-browser shots test-unit test-store test-clusters lint fmt bench bench-record calibrate profile build demo faults model loadtest fuzz release release-check compose-test

GO ?= go
TOOL = $(GO) tool -modfile=tools/go.mod
# What needs no server, no C compiler and no network: the rules, and the parts brought along.
SERVERLESS = $(shell scripts/serverless)

help: ## this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /\1\t/' | awk -F'\t' '{printf "  make %-12s %s\n", $$1, $$2}'

services: ## install what the tests need (Debian, Ubuntu; no daemon is left running)
	@scripts/services

test: ## all tests, with -race, on real servers; installs what is missing
	@GO=$(GO) scripts/test

test-browser: services ## the pages in a real browser, against standalone and against real servers
	$(GO) test -race -count=1 -timeout 15m ./test/browser

shots: services ## the same, and new pictures for docs/img (fonts-inter and fonts-noto-cjk match those in the repository)
	$(GO) test -count=1 -timeout 15m ./test/browser -browser.shots=$(CURDIR)/docs/img

test-unit: ## the packages whose tests need nothing but Go
	$(GO) test $(SERVERLESS)

test-store: ## the store's tests on the MySQL or MariaDB of SECKILL_TEST_MYSQL_DSN (root@tcp(host:3306)/); on a private one without it
	$(GO) test -count=1 ./internal/sqlstore/...

test-clusters: services ## the life of the test servers' own clusters, beside what make test does on them (two minutes)
	$(GO) test -race -count=1 -tags clusters -run 'RabbitCluster|MySQLGroup' ./internal/testing/servers

FUZZTIME ?= 10m
fuzz: ## every fuzz target: each decoder, and each route through the whole router; FUZZTIME (10m) in total
	@FUZZTIME=$(FUZZTIME) GO=$(GO) scripts/fuzz

lint: ## golangci-lint, go vet, gofumpt, go mod tidy, the vocabulary and govulncheck, in pinned versions (the first run builds them: some minutes)
	$(TOOL) golangci-lint run ./...
	$(GO) vet ./...
	$(GO) vet -tags clusters,measure ./internal/testing/servers ./test/e2e
	@unformatted=$$($(TOOL) gofumpt -l .); if [[ -n $$unformatted ]]; then printf 'gofumpt would change:\n%s\n' "$$unformatted"; exit 1; fi
	$(GO) mod tidy -diff
	scripts/vocabulary
	scripts/vulnerabilities

fmt: ## format all Go code
	$(TOOL) gofumpt -w .

BENCH = $(GO) test -run '^$$' -bench . -benchtime 5x -timeout 40m ./test/bench/

bench: ## the benchmarks, each beside its floor: tables of ratios and figures (some 5 minutes)
	$(BENCH)

bench-record: ## the same, appended to docs/explanation/performance.md
	SECKILL_BENCH_RECORD=$(CURDIR)/docs/explanation/performance.md $(BENCH)

calibrate: ## measure costs on this machine into internal/capacity/calibration.json, and rewrite the plans in docs/how-to/scale.md (3 minutes)
	SECKILL_BENCH_CALIBRATION=$(CURDIR)/internal/capacity/calibration.json $(GO) test -run '^$$' -bench Calibrate -benchtime 5x -timeout 20m ./test/bench/
	$(GO) test -count=1 ./cmd/seckillctl -run Plan -scaling.update

SEEDS ?= 5
SEED ?= 1
FAULTS ?= all
ON ?=
# Results go to reports/. ON=clusters replaces each server by a cluster; SEED is the first seed.
faults: ## every fault, or FAULTS=a,b, with SEEDS (5) seeds and 6,000 buyers; takes hours
	$(GO) test ./test/faults -count=1 -timeout 12h -faults.names=$(FAULTS) -faults.on=$(ON) \
		-faults.seed=$(SEED) -faults.seeds=$(SEEDS) -faults.units=2000 -faults.buyers=6000 \
		-faults.out=$(CURDIR)/reports/fault-runs.txt
	$(GO) run ./test/faults/table -doc reports/faults.md <reports/fault-runs.txt

model: ## the simulated protocol: 20,000 schedules, then each rule left out (under a minute)
	$(GO) test ./test/model -count=1 -run AllRules -v -schedules 20000
	$(GO) test ./test/model -count=1 -run EachRule

profile: ## processor profiles of the API, sold out and selling, in profiles/ (read them with go tool pprof)
	SECKILL_BENCH_PROFILE=$(CURDIR)/profiles $(GO) test -run '^$$' -bench 'SoldOut|Accepted' -benchtime 1x ./test/bench/

compose-test: ## docker-compose.yml as it is, on stand-ins where no image can be pulled: 10,000 buyers, the ledger, the dashboards (root, 6 GB)
	scripts/compose-test $(KEEP)

# -version prints the commit, or the release that VERSION names.
STAMP = $(if $(VERSION),-X flashsale.dev/seckill/internal/app.version=$(VERSION))
build: ## static programs in bin/
	CGO_ENABLED=0 $(GO) build -tags nomsgpack -trimpath -ldflags '$(STAMP)' -o bin/ ./cmd/...

release: ## static programs for linux/amd64 and arm64 in dist/, with SHA256SUMS; VERSION=v1.2.3 names them
	@scripts/release

release-check: ## builds a release twice, elsewhere and from nothing, and compares byte by byte (some minutes)
	@scripts/release check

demo: ## a whole sale in one process: 500 units, 5,000 buyers
	$(GO) run -tags nomsgpack ./cmd/standalone -demo

LOADTEST ?= -impatient 0.2 -hostile 0.05 -html loadtest.html
loadtest: ## buyers rush the API on 127.0.0.1:8080 (make demo is one), and checks the ledger; LOADTEST='-help' lists its options
	$(GO) run ./cmd/loadtest $(LOADTEST)
