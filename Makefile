# make test is all a newcomer needs; the other targets are for contributors.

GO ?= go
PROGRAMS := agentledger aps

# As releases are built: without C code, which also links faster. Only the race detector needs a C compiler.
export CGO_ENABLED ?= 0

# Without debugging information, the linker takes a quarter less time. The stacks of panics and races are the same. -trimpath
# leaves the paths of this folder out, so that releases reuse what was compiled for tests.
export GOFLAGS ?= -ldflags=-w -trimpath

.PHONY: build check test test-python test-typescript test-runtimes test-adapters test-n8n test-pages pictures race lint vuln fuzz fuzz-verifiers interop drill drill-signatures nightly bench soak deploy-check docs release release-check release-install-check clean

build:
	$(GO) build -o bin/ $(addprefix ./cmd/,$(PROGRAMS))

# Longer than the tests of any package take on a busy machine: only a hang exceeds it.
TIMEOUT := -timeout 40m

# Every test, nothing skipped. PostgreSQL's server, nginx, Caddy, HAProxy, Python, Node.js, curl, zsh, fish, promtool and Chromium are installed if they are missing.
test:
	./scripts/postgres
	./scripts/proxies
	./scripts/python
	./scripts/node
	./scripts/curl
	./scripts/shells
	./scripts/promtool
	./scripts/chromium
	./scripts/npm web
	$(MAKE) programs
	$(MAKE) --jobs=3 --output-sync=line --old-file=programs test-go test-python test-node

.PHONY: test-go test-node programs

# With Go's default, garbage collection takes about a tenth of the processor time of compilers and tests. Drills and soak use the default, as releases do.
test: export GOGC ?= 400

# The Go tests, with those of test-pages. Many of them wait for processes, so more packages than processors run at a time. The
# packages that take longest begin first, so that none of them runs alone in the end. vet is a part of lint.
test-go: programs
	$(PROGRAMS_BUILT) $(GO) test $(TIMEOUT) -vet=off -tags axe -p 5 -parallel 4 ./cmd/... ./web/... ./storage/... ./internal/read/... ./...

# The tests in Node.js, one after the other, because some of them use the same node_modules.
test-node: programs
	$(MAKE) --old-file=programs test-typescript
	$(MAKE) --old-file=programs test-runtimes
	$(MAKE) --old-file=programs test-adapters
	$(MAKE) --old-file=programs test-n8n

# The programs that Go tests start, which are built once for all packages (internal/test/servicetest).
PROGRAMS_BUILT := AGENTLEDGER_TEST_PROGRAMS=$(CURDIR)/bin/test
programs:
	$(GO) build -buildvcs=false -tags dev -ldflags '-w -X main.testPasswords=yes' -o bin/test/ $(addprefix ./cmd/,$(PROGRAMS)) ./examples/toolloop ./examples/httptool ./examples/importer ./examples/countersigned

# The client for Python: types, and tests against the real server.
test-python: programs
	./scripts/python
	./scripts/node
	./scripts/npm clients/python/pyright
	cd clients/python && ./interpreter -m mypy src tests/typed_use.py
	cd clients/python && pyright/node_modules/.bin/pyright --pythonpath "$$(./interpreter -c 'import sys; print(sys.executable)')"
	cd clients/python/tests && AGENTLEDGER_BIN=$(CURDIR)/bin/test/agentledger APS_BIN=$(CURDIR)/bin/test/aps ../interpreter -m unittest

# The client for TypeScript: types, and tests against the real server.
test-typescript: programs
	./scripts/node
	./scripts/npm clients/typescript
	cd clients/typescript && npm run --silent types
	cd clients/typescript && AGENTLEDGER_BIN=$(CURDIR)/bin/test/agentledger APS_BIN=$(CURDIR)/bin/test/aps npm test --silent

# The client for TypeScript in Deno and Bun, which npm brings, in programs and in workers. Chromium is a Go test of web.
test-runtimes: programs
	./scripts/node
	./scripts/npm clients/typescript/runtimes-test
	cd clients/typescript/runtimes-test && AGENTLEDGER_BIN=$(CURDIR)/bin/test/agentledger npm test --silent

# The adapters of the client for TypeScript, against the real packages and the real server.
test-adapters: programs
	./scripts/node
	./scripts/npm clients/typescript/adapters-test --ignore-scripts
	cd clients/typescript/adapters-test && AGENTLEDGER_BIN=$(CURDIR)/bin/test/agentledger npm test --silent

# The n8n nodes and template, against the real server, with the n8n-workflow of n8n 1 and of n8n 2. The build takes parts of clients/typescript.
test-n8n: programs
	./scripts/node
	./scripts/npm clients/n8n --ignore-scripts
	cd clients/n8n && AGENTLEDGER_BIN=$(CURDIR)/bin/test/agentledger npm test

# The pages in Chromium under axe-core, which npm brings, light on a phone and dark on a desk. `make pictures` checks all four
# combinations and keeps pictures of them in bin/pages, and writes those of an organization with a day of acts: all pages to bin/pages/northwind, and the README's to docs/pictures.
PAGES := ^TestAccessibility.*$$
test-pages: programs
	./scripts/chromium
	./scripts/node
	./scripts/npm web
	$(PROGRAMS_BUILT) $(GO) test -vet=off -tags axe ./web ./web/page -run '$(PAGES)' -timeout 60m

pictures: programs
	./scripts/chromium
	./scripts/node
	./scripts/npm web
	mkdir -p bin/pages
	$(PROGRAMS_BUILT) $(GO) test -vet=off -tags axe ./web ./web/page -run '$(PAGES)' -timeout 60m -artifacts -outputdir $(CURDIR)/bin/pages
	$(PROGRAMS_BUILT) $(GO) test -vet=off ./web -run '^TestReadmePictures$$' -timeout 60m -pictures $(CURDIR)/bin/pages/northwind

# The Go tests under the race detector (needs a C compiler), of the packages that have anything to race (scripts/racepackages).
# The pages of ./web and the tests of cmd/agentledger below run the service in the process of the test.
IN_PROCESS := ^Test(Clock|CorrectClock|Disk|Document|Half|Heap|Idle|Least|Listeners|Metrics|Proxy|Routes|Setup|Slow|Start|Store|Successor|Traces|Unready|Witness)
#
# Tests that repeat one sequence of steps for each write, seed or flipped bit, or thousands of times, and tests of other programs, take most of the time there and
# have nothing to race that other tests leave out. make test runs them.
UNRACED := VerifiersAgree|ManyQuiet|ErasedValuesBehind|ColumnNamedAgain|OverBlocks|OlderForm|Nginx|ManyWaiting|CourierEdits|ThereAndBack|Resumed|AtEachWrite|AtEachStatement|Simulation|Oracle|AlertRules|Promtool|Chromium|WithoutScripts|Hostile|MergedPostings|OfEachSize|NaiveScans|Damaged|Flipped|RandomFaults|FailOver|^TestScripts$$|PackVectors|^TestVectors$$|VerifyMutated|TextSearch|^TestActs$$
race: export CGO_ENABLED := 1
race: export GOGC ?= 400
race:
	./scripts/postgres
	./scripts/python
	./scripts/node
	./scripts/curl
	./scripts/promtool
	./scripts/chromium
	$(GO) test $(TIMEOUT) -vet=off -p 4 -race -skip '$(UNRACED)' ./web $$(./scripts/racepackages)
	$(GO) test $(TIMEOUT) -vet=off -race ./cmd/agentledger -run '$(IN_PROCESS)'

# The fast loop of a contributor: lint, build and the tests of the packages that changed since BASE.
check:
	./scripts/check

# Modules of their own, which are checked with this one.
INTEROP := interop interop/outside interop/acme interop/objects

lint:
	@test -z "$$(gofmt -l .)" || { echo "not gofmt'ed:"; gofmt -l .; exit 1; }
	$(GO) vet -tags axe ./...
	@for module in $(INTEROP) bench; do echo "go vet $$module"; (cd $$module && $(GO) vet -mod=mod ./...) || exit 1; done
	$(GO) tool -modfile=tools/go.mod staticcheck ./...

# Known vulnerabilities in code that the module calls. Asks the public database, or reads the copy VULNDB.
VULNDB ?=
vuln:
	./scripts/vuln $(VULNDB)

# Each fuzz target for FUZZTIME. GUIDED compiles everything once more, with the coverage counters that steer fuzzing to inputs that
# reach new code. Without them (GUIDED=), seeds are changed at random, which is enough for a thousand inputs.
FUZZTIME ?= 10s
GUIDED ?= yes
fuzz: fuzz-verifiers
	./scripts/fuzz $(FUZZTIME) $(GUIDED)

# All verifiers (aps, both clients and interop/frompage) judge DOCUMENTS bundles and evidence packs with random changes, and must agree.
DOCUMENTS ?= 400
DOCUMENTS_SEED ?= 1
fuzz-verifiers:
	./scripts/node
	./scripts/python
	$(GO) test ./cmd/aps -run '^TestVerifiersAgree$$' -count=1 -v $(TIMEOUT) -differential-inputs $(DOCUMENTS) -differential-seed $(DOCUMENTS_SEED)

# A served log of 100,003 entries, read and verified by third-party programs, in a separate module whose versions of shared
# dependencies follow the product's.
# interop/outside is a module that can't import internal packages: it uses the public packages with the real server.
# interop/acme gets a certificate from an ACME server. interop/objects stores objects of the archive in an S3 server.
interop:
	./scripts/node
	./scripts/python
	./scripts/npm interop/mcp --ignore-scripts
	./scripts/npm interop/openid --ignore-scripts
	./scripts/npm interop/passkeys --ignore-scripts
	@for module in $(INTEROP); do (set -x; cd $$module && $(GO) test -mod=mod ./... -count=1 $(TIMEOUT)) || exit 1; done

# SIGKILL of the real server under load, ROUNDS times; the commit path on a file
# system that loses what was not synced, cut at every sync; the simulation of
# sequencer and store for SEEDS seeds; three nodes whose network, database, clocks and
# processes break, ROUNDS times (docs/internals/nodes.md); gateway, server and service killed during CALLS calls of tools; EVENTS events
# of each client through a proxy that answers wrongly, and CLIENT_KILLS kills of each client. Then the long forms of tests that make test runs in short forms.
ROUNDS ?= 100
SEEDS ?= 20000
NODE_SEEDS ?= 300
MOVE_KILLS ?= 6
ACTIVATIONS ?= 40
CALLS ?= 2000
EVENTS ?= 20000
CLIENT_KILLS ?= 40
SIGNATURES ?= 1000000
SIGNATURES_SEED ?= 25519
drill: drill-signatures
	$(GO) test ./cmd/agentledger -run '^TestKill' -count=1 -v -timeout 60m -kill-rounds $(ROUNDS)
	$(GO) test ./log -run '^Test(Crash|FailingDisk|Damaged)' -count=1 -timeout 60m -crash-rounds $(ROUNDS)
	$(GO) test ./log -run '^TestSim' -count=1 -timeout 60m -sim-seeds $(SEEDS) -sim-node-seeds $(NODE_SEEDS)
	$(GO) test ./internal/cluster -run '^TestSimulation$$' -count=1 -timeout 60m -sim-seeds 20000
	$(GO) test ./cmd/agentledger/nodes -run '^TestDrill$$' -count=1 -v -timeout 60m -node-rounds $(ROUNDS)
	$(GO) test ./cmd/agentledger -run '^TestMoveKilled$$' -count=1 -timeout 60m -move-kills $(MOVE_KILLS)
	$(GO) test ./internal/flow/approval -run '^TestActivationOracle$$' -count=1 -timeout 60m -activation-rounds $(ACTIVATIONS)
	$(GO) test ./internal/deliver/webhook -run '^TestManyWaiting$$' -count=1 -timeout 60m -many-waiting 100000
	$(GO) test ./internal/test/readers -run '^TestVotersAreBounded$$' -count=1 -timeout 60m -whole-voters
	$(GO) test ./internal/test/clientdrill -count=1 -v -parallel 6 -timeout 60m -events $(EVENTS) -kills $(CLIENT_KILLS)
	cd interop && $(GO) test -mod=mod ./mcp -run '^TestCallsThroughKills$$' -count=1 -v -timeout 60m -kill-calls $(CALLS)

drill-signatures:
	$(GO) test ./edkey -run '^TestTableAnswersAsTheLibrary' -count=1 -timeout 0 -signatures $(SIGNATURES) -signatures-seed $(SIGNATURES_SEED)

# The long forms, which take a night: every drill, two hours of mixed work, and signatures and inputs that differ each time. .ci/run has
# the short forms.
nightly:
	$(MAKE) drill SIGNATURES=100000000 SIGNATURES_SEED=$$(date +%Y%m%d)
	$(MAKE) soak
	$(MAKE) pictures
	$(MAKE) fuzz FUZZTIME=200000x DOCUMENTS=20000 DOCUMENTS_SEED=$$(date +%Y%m%d)

# Writes what it measured to docs/performance.md.
bench:
	./scripts/bench

# Mixed work for SOAK, at half of the machine's capacity. It fails if the live heap, goroutines, sockets, files, resident memory
# or bytes of an event grow by more than a tenth from the second quarter of the time to the last (the last two in runs of an
# hour or more), if acknowledged events are missing, or if a hundredth of the steps is refused. Latencies are only reported.
SOAK ?= 2h
soak:
	cd bench && $(GO) build -mod=mod -o ../bin/soak . && nice -n 5 ../bin/soak -soak $(SOAK) soak

# The Helm chart and the compose file: read by the libraries of their authors, and the real program starts with what
# they make of the values. In a module of its own.
deploy-check:
	./scripts/postgres
	cd tools/deploy && $(GO) vet ./... && $(GO) test ./... -count=1 $(TIMEOUT)

# The documents as a static site in bin/docs, which a browser opens from the file system. Its links are tested.
docs:
	cd tools/docs && $(GO) vet ./... && $(GO) test ./... && $(GO) run . -root $(CURDIR) -out $(CURDIR)/bin/docs

# What operators install, from the commit that is checked out, into bin/release/VERSION.
# release-check builds PLATFORM, or everything, twice and compares the bytes. The first build stays there, without a signature.
# release-install-check installs the packages of this machine's architecture on this Debian, as root, and removes them again.
VERSION ?= 0.0.0
PLATFORM ?=
RELEASE := $(GO) -C tools/release run .
release:
	$(RELEASE) build -tree $(CURDIR) -version $(VERSION) -platform "$(PLATFORM)" -out $(CURDIR)/bin/release/$(VERSION)

release-check:
	cd tools/release && $(GO) vet ./... && $(GO) test ./...
	$(RELEASE) check -tree $(CURDIR) -version $(VERSION) -platform "$(PLATFORM)" -out $(CURDIR)/bin/release/$(VERSION)

release-install-check:
	./scripts/rpm
	./scripts/systemd
	$(RELEASE) install-check $(CURDIR)/bin/release/$(VERSION)

clean:
	rm -rf bin
