# make demo   record one small inference on the real libraries and print where its time went
# make test   every test, with PyTorch; then those that must hold without it, in an environment that has none
# make test-vm  run_cpu on emulated machines with several NUMA nodes; needs Debian, see docs/vm-tests.md
# make check  lint, format, types, layers
# make docs   the pages of docs/ as HTML, warnings as errors
# Each makes the environment it needs, from nothing but python3, python3-venv and make.

PYTHON ?= python3
TORCH_VERSION ?= 2.13.0
# pip takes the CPU build of PyTorch where the index or a find-links folder offers one.
PIP_INSTALL = install --quiet --disable-pip-version-check

DEMO_ENV = .venv-demo
TEST_ENV = .venv-test
PLAIN_ENV = .venv-test-plain
VM_ENV = .venv-vm
DEMO_RUN = demo.cpulens

# oneDNN's wheel brings no OpenMP runtime: GNU's must be in the system.
NEED_LIBGOMP = tools/need libgomp1 '/sbin/ldconfig -p | grep -q libgomp.so.1'

# Pages are tested in a browser; without one those tests are skipped, or fail where CI is set.
NEED_BROWSER = tools/need chromium 'command -v chromium || command -v chromium-browser || command -v google-chrome'

.PHONY: demo test test-vm check docs benchmark clean

demo: $(DEMO_ENV)/installed
	$(DEMO_ENV)/bin/run_cpu --disable-iomp --ninstances 1 examples/demo.py $(DEMO_RUN)
	@echo
	@echo "The run is in $(DEMO_RUN); see it again: $(DEMO_ENV)/bin/cpulens top $(DEMO_RUN) --by primitive,problem"

test: $(TEST_ENV)/installed $(PLAIN_ENV)/installed
	-$(NEED_BROWSER)
	$(TEST_ENV)/bin/python -m pytest
	$(PLAIN_ENV)/bin/python -m pytest -m "not torch" tests/unit/backends tests/integration/backends

test-vm: $(VM_ENV)/installed
	tests/vm/prepare
	$(VM_ENV)/bin/python -m pytest tests/vm

check: $(TEST_ENV)/installed
	$(TEST_ENV)/bin/ruff check .
	$(TEST_ENV)/bin/ruff format --check .
	$(TEST_ENV)/bin/mypy
	$(TEST_ENV)/bin/lint-imports

docs: $(TEST_ENV)/installed
	$(TEST_ENV)/bin/python -m sphinx -q -W --keep-going -b html docs build/docs

benchmark: $(TEST_ENV)/installed
	$(TEST_ENV)/bin/python benchmarks/record.py
	$(TEST_ENV)/bin/python benchmarks/parse.py
	$(TEST_ENV)/bin/python benchmarks/launcher.py

$(DEMO_ENV)/installed: pyproject.toml
	$(NEED_LIBGOMP)
	$(PYTHON) -m venv $(DEMO_ENV)
	$(DEMO_ENV)/bin/python -m pip $(PIP_INSTALL) --editable '.[runtime]'
	touch $@

$(TEST_ENV)/installed: pyproject.toml Makefile
	$(NEED_LIBGOMP)
	$(PYTHON) -m venv $(TEST_ENV)
	$(TEST_ENV)/bin/python -m pip $(PIP_INSTALL) torch==$(TORCH_VERSION)
	$(TEST_ENV)/bin/python -m pip $(PIP_INSTALL) --editable '.[runtime,test,clients,dev]'
	touch $@

$(PLAIN_ENV)/installed: pyproject.toml Makefile
	$(NEED_LIBGOMP)
	$(PYTHON) -m venv $(PLAIN_ENV)
	$(PLAIN_ENV)/bin/python -m pip $(PIP_INSTALL) --editable '.[runtime,test]'
	touch $@

# The emulated machines bring their own Python; the host's only starts them.
$(VM_ENV)/installed: Makefile
	$(PYTHON) -m venv $(VM_ENV)
	$(VM_ENV)/bin/python -m pip $(PIP_INSTALL) pytest
	touch $@

clean:
	rm -rf $(DEMO_ENV) $(TEST_ENV) $(PLAIN_ENV) $(VM_ENV) $(DEMO_RUN) build
