# Everything here is a line or two; what takes more is a script in scripts/.

# The container image of the manager, and the namespace of an installation.
IMG ?= ghcr.io/reyisjones/gpu-orchestrator:v0.1.0
NAMESPACE ?= gpu-orchestrator-system
# docker or podman.
CONTAINER_TOOL ?= docker
# Arguments for `make sandbox`, `make run` and `make bench`.
ARGS ?=

.DEFAULT_GOAL := help

##@ Start here

.PHONY: help
help: ## Show this list
	@awk 'BEGIN {FS = ":.*## "} /^##@/ {printf "\n%s\n", substr($$0, 5)} /^[a-z0-9-]+:.*## / {printf "  %-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: demo
demo: bin/sandbox ## Bring up a control plane with simulated GPU nodes and run a workload on it
	bin/sandbox up --demo $(ARGS)

.PHONY: sandbox
sandbox: bin/sandbox ## Bring up the sandbox and leave it running (ARGS="--nodes 100")
	bin/sandbox up $(ARGS)

##@ Build

.PHONY: build
build: ## Compile every binary into bin/
	scripts/build.sh

# The go command knows better than make what is out of date.
.PHONY: bin/sandbox
bin/sandbox:
	scripts/build.sh sandbox

.PHONY: docker-build
docker-build: ## Build the manager's image (IMG=registry/name:tag)
	$(CONTAINER_TOOL) build --target manager --tag $(IMG) .

.PHONY: docker-push
docker-push: ## Push the manager's image
	$(CONTAINER_TOOL) push $(IMG)

.PHONY: clean
clean: ## Remove what was built
	rm -rf bin dist coverage.out

##@ Test

.PHONY: test
test: ## Formatting, vet, import rules, unit tests with race detector and coverage
	scripts/test.sh fast

.PHONY: test-all
test-all: ## Everything, as continuous integration runs it
	scripts/test.sh

.PHONY: e2e
e2e: ## Only the tests on a real control plane
	scripts/test.sh e2e

.PHONY: faults
faults: ## Every write of every flow through every kind of fault (ARGS="-flows run -kinds lose"; docs/faults.md)
	scripts/faults.sh $(ARGS)

.PHONY: conformance
conformance: ## Answer other schedulers' own cases (../shared/conformance) and have the answers judged
	scripts/conformance.sh $(ARGS)

.PHONY: fgd
fgd: ## Play the published packing experiment again and compare (ARGS="--plot bin/fgd.html")
	scripts/fgd.sh $(ARGS)

.PHONY: bruteforce
bruteforce: ## Placement, preemption and moves against trying everything, ten times the usual cases
	go test ./core/placement -run 'Exact|EverySet|NearlyFewest|TheEarliest|PackersUse' -rapid.checks=1000 -v | grep -v -e '=== RUN' -e 'rapid. draw'

.PHONY: bench
bench: ## Benchmarks, ten runs each, summarised (ARGS=./core/placement)
	scripts/bench.sh $(ARGS)

.PHONY: bench-e2e
bench-e2e: ## The product beside the stock scheduler on the sandbox (ARGS="-scenario mixed")
	scripts/bench-e2e.sh $(ARGS)

.PHONY: jobs
jobs: ## Replay published traces (../shared/data) by our policy and by others (PLOTS=folder draws)
	scripts/jobs.sh $(ARGS)

.PHONY: locality
locality: ## Model what our placement of gangs saves against the stock scheduler's
	scripts/locality.sh $(ARGS)

.PHONY: cover
cover: coverage.out ## Show in a browser what the unit tests cover
	go tool cover -html=coverage.out

coverage.out:
	scripts/test.sh fast

##@ Change

.PHONY: fmt
fmt: ## Format the Go code
	gofmt -w $(shell git ls-files '*.go')

.PHONY: vet
vet: ## Let the compiler's vet look for mistakes
	CGO_ENABLED=0 go vet ./...

.PHONY: lint
lint: ## Run the linters of .golangci.yml
	CGO_ENABLED=0 scripts/tool golangci-lint run ./...

.PHONY: generate
generate: ## Generate deep copies, CRDs and reference pages
	scripts/generate.sh

.PHONY: manifests
manifests: ## Generate the CRDs alone
	scripts/generate.sh crds

.PHONY: docs
docs: ## Generate the reference pages alone
	scripts/generate.sh docs

.PHONY: check
check: ## What must hold before a push: generated code, a clean tree, lint, `make test`
	scripts/test.sh check

.PHONY: vulnerabilities
vulnerabilities: ## Ask the Go vulnerability database about our dependencies
	scripts/tool govulncheck ./...

.PHONY: tools
tools: ## Compile the development tools now instead of on first use
	go build -modfile=go.tools.mod -o bin/tools/ tool

##@ Cluster

.PHONY: run
run: ## Run the manager here against the cluster of the current kubeconfig
	go run ./cmd/manager $(ARGS)

.PHONY: install
install: ## Install the CRDs alone
	scripts/deploy.sh --crds-only

.PHONY: uninstall
uninstall: ## Remove the CRDs, and with them every GPUWorkload (ARGS=--yes)
	scripts/uninstall.sh --crds-only $(ARGS)

.PHONY: deploy
deploy: ## Install everything (NAMESPACE=, IMG=)
	IMG=$(IMG) scripts/deploy.sh $(ARGS) $(NAMESPACE)

.PHONY: undeploy
undeploy: ## Remove everything (ARGS=--yes to remove workloads too)
	scripts/uninstall.sh $(ARGS) $(NAMESPACE)
