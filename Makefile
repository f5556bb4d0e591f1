# The only entry points of this repository. `make help` lists them.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

# What one target needs is made side by side: much of it waits for the network or keeps one core. Several targets on the
# command line are made one after the other.
ifeq ($(words $(MAKECMDGOALS)),1)
MAKEFLAGS += --jobs=4
endif

PYTHON ?= python3.11
ifndef SWITCHOVER_STARTED
export SWITCHOVER_STARTED := $(shell date +%s)
endif

# Bytecode is kept, whatever the environment says: each process would compile all that it imports.
export PYTHONDONTWRITEBYTECODE :=
export PYTHONPYCACHEPREFIX := $(CURDIR)/build/pycache

VENV := .venv
BIN := $(VENV)/bin
UV := build/uv/bin/uv
EXTRAS := cli consumer operator pipeline
PURE := api cluster coordination engine groups lag metadata reasons
READ := README.md docs/guide docs/charts docs/pipeline $(patsubst %,docs/%.md,api cli comparison concepts consumer disaster faq \
  first-migration gitops index install kafka-4 lag managed-kafka operations preflight preflight-groups rehearsal report security tls)
LAYERS := unit packaging pipeline simulation adapters apiserver sandbox
say = @printf '\n== %s (%d s since start) ==\n' "$(1)" "$$(( $$(date +%s) - $$SWITCHOVER_STARTED ))"

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z][a-z -]*:.*## / {printf "  %-26s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

# --- set-up -----------------------------------------------------------------------------------------------------------

.PHONY: debian venv lock
debian: ## install what is missing of sandbox/debian-packages.txt (sudo unless root)
	@sandbox/debian

venv: $(VENV)/installed ## the virtual environment in .venv, exactly as locked

# PySpark alone has no wheel: the one that is built of it is unpacked at once.
UNCOMPRESSED := --config-settings=--build-option=--compression=stored

$(VENV)/installed: requirements/dev.txt pyproject.toml | $(UV)
	$(call say,virtual environment)
	$(UV) venv --quiet --allow-existing --no-python-downloads --python $(PYTHON) $(VENV)
	$(UV) pip sync --quiet --require-hashes --python $(BIN)/python $(UNCOMPRESSED) requirements/dev.txt
	$(UV) pip install --quiet --no-deps --no-build-isolation --python $(BIN)/python --editable .
	@touch $@

$(UV): requirements/uv.txt | debian
	$(PYTHON) -m venv --clear build/uv
	build/uv/bin/pip install --quiet --disable-pip-version-check --require-hashes --requirement requirements/uv.txt
	@touch $@

LOCK := $(UV) pip compile --quiet --universal --generate-hashes --no-emit-index-url --no-header
lock: $(UV) ## resolve pyproject.toml into requirements/*.txt
	$(LOCK) requirements/uv.in --output-file requirements/uv.txt
	for extra in $(EXTRAS); do \
	  $(LOCK) pyproject.toml --extra $$extra --output-file requirements/$$extra.txt || exit; done
	$(LOCK) pyproject.toml --extra operator --extra pipeline --group dev --group build --output-file requirements/dev.txt
	$(LOCK) --group docs --output-file requirements/docs.txt

# --- checks -----------------------------------------------------------------------------------------------------------

.PHONY: lint check docs-run coverage crds stories messages proof known-bugs notice sbom test collected test-long soak browser shard ledger $(LAYERS)
lint: debian venv ## ruff, mypy, import contracts, the ratchet, generated CRDs, sentences of the pages for users
	$(call say,lint)
	$(BIN)/ruff check
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python tests/ratchet.py
	$(BIN)/python -m switchover.api.crds --check crds
	"$$(nice sandbox/build prose)/vale" --no-wrap $(READ)

check: lint ## lint and the tests of the pure core, in two workers: before every commit
	$(BIN)/pytest --numprocesses 2 -m 'not long' tests/unit

docs-run: venv ## the commands on the pages for users that need no server, as they stand
	$(BIN)/pytest tests/unit/test_documents.py

# Not part of check: it makes the same tests half as fast.
coverage: venv ## the same tests once more, and how much of the pure core they run, by line and branch
	$(BIN)/pytest --numprocesses 2 -m 'not long' --cov-branch --cov-report term:skip-covered --cov-report html:build/coverage \
	  $(PURE:%=--cov switchover.%) tests/unit

crds: venv ## write crds/ from the models (the chart's files/crds is a link to it)
	$(BIN)/python -m switchover.api.crds --write crds

stories: venv ## write tests/stories/ anew: what simulated migrations tell of themselves
	rm -f tests/stories/*.txt
	STORIES=write $(BIN)/pytest --numprocesses 2 -m 'story and not long' tests/unit tests/simulation

messages: venv ## write tests/unit/golden/messages.txt, every message of a gate on one page to review, and cases.txt, which test ran its command
	MESSAGES=write $(BIN)/pytest tests/unit/test_messages.py tests/unit/test_cases.py

proof: venv ## write the tables of docs/proof.md out of what the last make test has run
	PYTHONPATH=tests:sandbox:sandbox/apps $(BIN)/python -m proof

known-bugs: venv ## bring each bug of tests/known_bugs back, one at a time: a test must see it; BUGS="a b": these alone
	$(BIN)/python tests/known_bugs.py $(BUGS)

notice: venv ## write NOTICE: the licence of every package that is shipped
	$(BIN)/python tests/notice.py

sbom: venv ## a bill of materials (CycloneDX) for each extra, of what is locked: build/sbom/
	$(MAKE) --no-print-directory $(EXTRAS:%=build/sbom/%.cdx.json)

build/sbom/%.cdx.json: requirements/%.txt pyproject.toml
	@mkdir -p $(@D)
	$(BIN)/cyclonedx-py requirements $< --pyproject pyproject.toml --output-reproducible --output-file $@

unit packaging simulation pipeline: venv ## one layer of tests: pure core; the wheel alone; Kopf in virtual time; Spark on small data
	$(BIN)/pytest -m 'not long' tests/$@

adapters: debian venv ## one layer of tests: real Kafka and ZooKeeper on loopback
	$(BIN)/pytest -m 'not long' tests/$@

apiserver: binaries evaluators venv ## one layer of tests: a real control plane without nodes
	$(BIN)/pytest -m 'not long' tests/$@

# The stories alone: they fill two slow cores, and servers of other tests beside them do not answer in time.
# Then one worker more than cores: it computes in the time that the others wait (tests/conftest.py). What else CI's machine does
# nobody knows: there an overrun of a budget is told, and is no failure.
TESTED = $(BIN)/pytest -m 'not long' $(if $(CI),,--budgets)
test: lint collected binaries evaluators images-stories ## every layer, as CI runs it
	$(call say,stories)
	$(TESTED) --capture no tests/sandbox && stories=0 || stories=$$?; \
	$(TESTED) --numprocesses $$(($$(nproc) + 1)) $(patsubst %,tests/%,$(filter-out sandbox,$(LAYERS))) && exit $$stories

# What pytest makes of the tests' source is kept: of a fresh clone each worker would make all of it, when both cores are wanted.
collected: venv
	@mkdir -p build
	@$(BIN)/pytest --collect-only --quiet $(LAYERS:%=tests/%) >build/collected || { tail -n 40 build/collected; false; }

test-long: shard lint browser binaries evaluators images-pipeline images-zkcc images-worlds ## the tests marked long that have not passed on this commit; SHARD=3/8: a share
	$(call say,long tests)
	$(BIN)/pytest --numprocesses 2 --timeout 3600 --ledger run $(SHARD:%=--shard %) $(LAYERS:%=tests/%)

soak: venv binaries images ## one migration of real pods in a chaos that SEED makes, judged; a line in build/soak.jsonl
	SOAK=$(or $(SEED),1) $(BIN)/pytest -m long --capture no tests/sandbox/test_soak.py

browser: debian ## what the long tests alone need: Chromium and Spin
	@sandbox/debian sandbox/debian-packages-long.txt

shard: debian
	@$(if $(SHARD),$(PYTHON) tests/ledger.py '$(SHARD)')

ledger: venv ## which long tests have run on this commit; WRITE=1: the last entry of each into tests/long_tests.jsonl
	@$(BIN)/pytest --quiet --ledger $(if $(WRITE),write,show) $(LAYERS:%=tests/%)

# --- the documentation as a website -------------------------------------------------------------------------------------

DOCS := build/docs
MKDOCS = NO_MKDOCS_2_WARNING=1 $(DOCS)/bin/mkdocs
.PHONY: docs docs-serve reference pictures
docs: $(DOCS)/installed reference ## the documentation as a website, build/site/; a dead link fails. REPOSITORY=https://…/main: links to code go there
	$(call say,documentation)
	$(MKDOCS) build --config-file website/mkdocs.yml

docs-serve: $(DOCS)/installed reference ## the same at http://127.0.0.1:8000, made anew at each change
	$(MKDOCS) serve --config-file website/mkdocs.yml

reference: venv ## write docs/reference/, which is not committed, from CRDs, commands, metrics, reasons and gates
	$(BIN)/python website/reference.py

pictures: venv ## write docs/pictures/ from the plans and the member's tables
	$(BIN)/python website/step_pictures.py
	$(BIN)/python website/batch_pictures.py
	$(BIN)/python website/member_pictures.py

$(DOCS)/installed: requirements/docs.txt | $(UV)
	$(UV) venv --quiet --allow-existing --no-python-downloads --python $(PYTHON) $(DOCS)
	$(UV) pip sync --quiet --require-hashes --python $(DOCS)/bin/python requirements/docs.txt
	@touch $@

# --- the operator's image, for a cluster of your own --------------------------------------------------------------------

# By docker, or by buildah where there is none or IMAGE_ENGINE=buildah; BASE_IMAGE=NAME@sha256:… pins what it stands on, and
# IMAGE_FLAGS and PUSH_FLAGS go to the engine. ARCHITECTURE=arm64 makes …:VERSION-arm64, on whatever machine and without an
# emulator, and image-index puts those of ARCHITECTURES under the name without.
.PHONY: image image-push image-index image-digest version wheel chart
ENGINE = $(or $(IMAGE_ENGINE),$(shell docker info >/dev/null 2>&1 && echo docker || echo buildah))
VERSION = $(shell sed -n 's/^version = "\(.*\)"$$/\1/p' pyproject.toml)
IMAGE = $(or $(REGISTRY),localhost)/switchover/operator:$(VERSION)
BUILT = $(IMAGE)$(ARCHITECTURE:%=-%)
ARCHITECTURES ?= amd64 arm64
# Which buildahs before 1.30 do not know by themselves.
OWN_PLATFORM = linux/$(subst x86_64,amd64,$(subst aarch64,arm64,$(shell uname -m)))
HELM ?= helm

image: ## build the operator's image from this checkout: REGISTRY/switchover/operator:VERSION
	$(call say,image $(BUILT))
	$(ENGINE) build --tag $(BUILT) $(ARCHITECTURE:%=--platform linux/% --build-arg BUILDPLATFORM=$(OWN_PLATFORM)) $(BASE_IMAGE:%=--build-arg BASE_IMAGE=%) \
	  --label org.opencontainers.image.version=$(VERSION) \
	  --label org.opencontainers.image.revision=$$(git describe --always --abbrev=40 --dirty --exclude '*') $(IMAGE_FLAGS) .

image-push: | $(if $(REGISTRY),image) ## and push it: make image-push REGISTRY=registry.example/team
	@$(if $(REGISTRY),,echo 'image-push: where to? make image-push REGISTRY=registry.example/team' >&2; exit 2)
	$(ENGINE) push $(PUSH_FLAGS) $(BUILT)

image-index: ## and give the pushed images of all ARCHITECTURES one name (docker)
	@$(if $(REGISTRY),,echo 'image-index: where? make image-index REGISTRY=registry.example/team' >&2; exit 2)
	docker buildx imagetools create --tag $(IMAGE) $(ARCHITECTURES:%=$(IMAGE)-%)

image-digest: ## print the digest of that name (docker)
	@docker buildx imagetools inspect --format '{{.Manifest.Digest}}' $(IMAGE)

version: ## print the version, which pyproject.toml has
	@echo $(VERSION)

wheel: venv ## build the wheel into build/dist/
	$(BIN)/hatchling build --target wheel --directory build/dist

chart: ## package the chart into build/dist/; RUNBOOKS=https://…/docs: where its value `docs` leads by default
	rm -rf build/chart
	mkdir -p build/chart build/dist
	cp --recursive --dereference helm/switchover build/chart/switchover
	sed --in-place 's|^docs: ""$$|docs: "$(RUNBOOKS)"|' build/chart/switchover/values.yaml
	$(HELM) package build/chart/switchover --destination build/dist

# --- kubectl switchover, for krew ---------------------------------------------------------------------------------------

.PHONY: krew
krew: venv ## archive and manifest of the kubectl plugin in build/krew: make krew URL=https://… (where the archive will lie)
	@$(if $(URL),,echo 'krew: where will the archive lie? make krew URL=https://downloads.example/switchover' >&2; exit 2)
	deploy/krew/pack $(BIN)/python build/krew '$(URL)'

# --- the sandbox and the demo -----------------------------------------------------------------------------------------

.PHONY: binaries evaluators images images-stories images-groups images-zkcc images-pipeline images-worlds sandbox sandbox-down demo demo-rollback \
	demo-groups demo-zkcc demo-pipeline demo-down clean
# Nice: the compilers take every core that is left, and what is built beside them uses one at a time.
binaries: debian ## build Kubernetes, CoreDNS and Helm from their Go module (nothing to do when built)
	$(call say,Kubernetes binaries)
	nice sandbox/build

evaluators: debian ## build what reads statuses as kstatus, Flux and Argo CD do, and what judges the chart and the workflows
	nice sandbox/build gitops linters monitoring

images: debian ## build the container images
	$(call say,images)
	sandbox/images/build

images-stories: images ## and those that the stories of make test need besides
	sandbox/images/build kafka4 kafka-generated

images-groups: images ## and those of the consumer groups' world
	sandbox/images/build kafka4 java-member

images-zkcc: images ## and the member on the old consumer, which ZooKeeper coordinates
	sandbox/images/build java-old-member

images-pipeline: images-groups ## and the pipeline's
	sandbox/images/build pipeline

images-worlds: images ## and Kafka as the images of other people have it
	sandbox/images/build kafka-generated kafka-variables kafka-words kafka38

sandbox: binaries ## a real Kubernetes on this machine; SANDBOX_NODES=3 (0: the control plane alone)
	$(call say,sandbox)
	sandbox/up

sandbox-down: ## take the sandbox away, and everything it left
	sandbox/down

demo: venv binaries images ## one whole migration under load; KILL=5 kills the operator five times on the way
	$(call say,demo)
	PYTHONPATH=sandbox:sandbox/apps $(BIN)/python -m demo --kill $(or $(KILL),0)

demo-rollback: venv binaries images ## half-way forward, all the way back, and again to the end, under load
	$(call say,demo of the way back)
	PYTHONPATH=sandbox:sandbox/apps $(BIN)/python -m demo --rollback

demo-groups: venv binaries images-groups ## two consumer groups moved under load, five stories, judged by an oracle
	$(call say,demo of consumer groups)
	PYTHONPATH=sandbox:sandbox/apps $(BIN)/python -m demo_groups

demo-zkcc: venv binaries images-zkcc ## old consumers in Java moved from ZooKeeper's coordination to Kafka's and back, under load
	$(call say,demo of old consumers)
	PYTHONPATH=sandbox:sandbox/apps $(BIN)/python -m demo_zkcc

demo-pipeline: venv binaries images-pipeline images-zkcc ## the five jobs of the pipeline in pods, on real migrations of groups and of a cluster
	$(call say,demo of the pipeline)
	PYTHONPATH=sandbox:sandbox/apps $(BIN)/python -m demo_pipeline

demo-down: ## take the demo and its sandbox away
	sandbox/down
	rm -rf build/demo build/demo-rollback build/demo-groups build/demo-zkcc build/demo-pipeline build/demo.lock

clean: sandbox-down ## remove what was built in this checkout
	rm -rf build $(VENV)
