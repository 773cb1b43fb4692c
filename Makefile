# Every target sets up what it needs in .venv, from a bare machine with Python 3.11, make and npm.
PYTHON ?= $(shell tools/python.sh)
BIN := .venv/bin
STAMP := .venv/.installed
# Tests start hundreds of processes, which would each compile what changed; pytest alone rewrites for
# five seconds in each worker.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: release releases demo test lint check rule prove mutate real clients drift bugs kills attacks runs wheel readings all hunts race sequences bench status docs site clean sandbox bare
.DEFAULT_GOAL := demo

$(STAMP): pyproject.toml constraints.txt sdk/python/pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Python 3.11 or newer is needed; set PYTHON=/path/to/python"; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check 'pip>=25.1'
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check \
	  --constraint constraints.txt --editable . --editable sdk/python --group dev
	@$(BIN)/python -m compileall -q harness reference_server
	@touch $@

# What the TypeScript SDK is built with, where npm is; its tests say so where it is not.
TYPESCRIPT := sdk/typescript/node_modules/.installed
$(TYPESCRIPT): sdk/typescript/package.json
	@command -v npm > /dev/null || { echo "no npm: the TypeScript SDK is not built or tested"; exit 0; }; \
	  npm install --prefix sdk/typescript --no-package-lock --ignore-scripts --no-audit --no-fund \
	    --silent && touch $@

# The reference server confines commands with bubblewrap.
sandbox: $(STAMP) ## install bubblewrap, where that can be done; all targets do without it too
	@tools/bubblewrap.sh

# `make test` judges what was played.
demo: $(STAMP) sandbox ## play the scenarios on the reference server, agent exec, agent mcp and the Python SDK
	@mkdir -p .harness/reports
	@$(BIN)/python -m tests.suite_play begin
	@$(BIN)/harness run --target reference -v --json .harness/reports/reference.json \
	  --server-cmd "$(BIN)/agent app-server" --agent-cmd $(BIN)/agent \
	  --sdk-cmd "$(BIN)/python fixtures/sdk_drivers/python_driver.py"
	@$(BIN)/python -m tests.suite_play keep

test: $(STAMP) $(TYPESCRIPT) sandbox ## all tests, but of what the six targets from bugs to readings run a sample
	@$(BIN)/python -m pytest -q -n 6 --dist worksteal -m "not bugs and not kills and not attacks and not runs and not wheel and not readings"

lint: $(STAMP) ## the lines that each room may have, format, lint, types
	@$(BIN)/python -m tools.weight --budget
	@$(BIN)/ruff format --check --quiet .
	@$(BIN)/ruff check --quiet .
	@NODE_OPTIONS=--max-semi-space-size=64 $(BIN)/pyright

check: lint sandbox ## the fast inner loop: format, lint, types, layers, fast tests
	@$(BIN)/python -m pytest -q -n 2 -m "not slow and not fuzz" tests/architecture tests/unit tests/rules tests/faults tests/agreement tests/docs

rule: $(STAMP) ## begin a rule: RULE=family.slug NEXT_TO=a-rule-that-exists
	@$(BIN)/python -m tools.scaffold "$(RULE)" "$(NEXT_TO)"

prove: $(STAMP) ## prove one rule and write its rows: RULE=family.slug
	@$(BIN)/python -m tools.prove "$(RULE)"

bare: $(STAMP) ## scenarios of commands and patches, and the tests of the sandbox, as on a machine without bubblewrap
	@tools/bare.sh

real: $(STAMP) sandbox ## install the real servers and judge both, with loopback only
	@tools/real.sh

releases: $(STAMP) sandbox ## nineteen releases of the real server side by side; writes docs/releases.md
	@tools/releases.sh

drift: $(STAMP) sandbox ## what our double of a real server does otherwise than it (after make real)
	@tools/drift.sh

clients: $(STAMP) sandbox ## install nine public clients, and use each on a release and on our double, offline
	@$(BIN)/python -m tools.clients

bugs: $(STAMP) sandbox ## each planted bug, and the scenario that must tell of it; each fault on each trace
	@$(BIN)/python -m pytest -q -n 4 -m bugs tests/conformance/test_bugs.py tests/conformance/test_command_strangers.py tests/conformance/test_sdk_strangers.py tests/conformance/test_sdk_on_agent.py tests/conformance/test_exec_programs.py tests/faults/test_matrix.py tests/fuzz/test_ten_broken_servers.py tests/fuzz/test_sequence_search.py

kills: $(STAMP) ## the reference server, killed at some moments of each play; `test` judges what each kill would leave
	@$(BIN)/python -m pytest -q -n 4 -m kills tests/server

attacks: $(STAMP) sandbox ## what a hostile model or client tries on the reference server
	@$(BIN)/python -m pytest -q -n 4 -m attacks tests/server

runs: $(STAMP) sandbox ## whole runs: servers that hang, flood or lose things; workers; interrupts
	@$(BIN)/python -m pytest -q -n 4 -m runs tests/conformance tests/cli tests/docs tests/golden

wheel: $(STAMP) sandbox ## every command and every page for users, with the wheel alone
	@$(BIN)/python -m pytest -q -n 4 -m wheel tests/wheel

readings: $(STAMP) sandbox ## the whole suite on correct servers that chose otherwise (needs node)
	@command -v node > /dev/null || { echo "make readings: the odd server needs node"; exit 1; }
	@$(BIN)/python -m pytest -q -n 4 -m readings tests/conformance

# One run of pytest collects once, and while some tests wait others use the cores.
all: $(STAMP) $(TYPESCRIPT) sandbox ## `make test` and these six targets, in one run (needs node)
	@command -v node > /dev/null || { echo "make all: the odd server needs node"; exit 1; }
	@$(BIN)/python -m pytest -q -n 8 --dist worksteal

hunts: $(STAMP) sandbox ## harness fuzz on ten broken servers, with five seeds each: an hour; SEEDS=1, OTHERS=1
	@SEEDS="$(SEEDS)" OTHERS="$(OTHERS)" $(BIN)/python -m pytest -q tests/fuzz/hunts.py

sequences: $(STAMP) sandbox ## every pair of operations, in every order, on the reference server
	@mkdir -p .harness
	@$(BIN)/harness fuzz --target reference --what sequences -v --json .harness/sequences.json \
	  --server-cmd "$(BIN)/agent app-server"

race: $(STAMP) sandbox ## every action at every position of a turn, on the reference server
	@mkdir -p .harness/reports
	@$(BIN)/harness run --target reference --race all -n 2 --json .harness/reports/races.json

mutate: $(STAMP) sandbox ## each fault at work between the reference server and the rules that must notice it
	@mkdir -p .harness/mutation
	@$(BIN)/harness mutate --target reference -n 2 --json .harness/mutation/reference.json \
	  --server-cmd "$(BIN)/agent app-server" --agent-cmd $(BIN)/agent \
	  --sdk-cmd "$(BIN)/python fixtures/sdk_drivers/python_driver.py"

bench: $(STAMP) sandbox ## the budgets of the design beside the real server's figures; PARTS="rules suite"
	@$(BIN)/python -m tools.bench $(PARTS)

status: demo ## requirement x rule x scenario x fault x target, from real runs
	@$(BIN)/harness status --output .harness/status.md

docs: $(STAMP) ## write the generated pages of docs/
	@$(BIN)/python -m tools.docs

SITE := .venv/.site
$(SITE): $(STAMP)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --group site
	@touch $@

site: $(SITE) sandbox ## the documents as a site in .harness/site, with each link checked
	@$(BIN)/python -m tools.site

release: $(STAMP) ## wheel, source distribution, SBOM and checksums in dist/, built twice and compared
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --group release
	@$(BIN)/python -m tools.release

clean: ## remove what make made
	@rm -rf .venv .harness .pytest_cache .ruff_cache .hypothesis
