# make demo: convert, check and run the example model.   make test: everything a change must pass.
# make native-test: the C++ tests under address and undefined-behaviour sanitizers.
# make neon-test: the C++ tests for 64-bit Arm, by cross-compiler and emulator (Debian: g++-aarch64-linux-gnu, qemu-user).
PYTHON ?= python3
VENV := .venv
BIN := $(CURDIR)/$(VENV)/bin
NATIVE := pyproject.toml CMakeLists.txt $(shell find kernels -type f -name '*.?pp' -o -type f -name '*.inc' 2>/dev/null)
DEMO := build/demo

.PHONY: demo test native-test neon-test lint types clean

demo: $(VENV)/.run
	mkdir -p $(DEMO)
	$(BIN)/pulse convert models/enc.onnx --pulse 4 -o $(DEMO)/enc.pulse4.onnx
	$(BIN)/pulse check models/enc.onnx --pulse 4
	$(BIN)/python examples/make_input.py models/enc.onnx $(DEMO)/in.npz 200
	$(BIN)/pulse run $(DEMO)/enc.pulse4.onnx $(DEMO)/in.npz $(DEMO)/out.npz
	$(BIN)/pulse sweep models/enc.onnx --pulses 1,2,4,8 --frame-ms 10 --quick --html $(DEMO)/sweep.html

# Tests that live by the clock go first, with the machine to themselves; the closing line of the last is the verdict.
CLOCKED := tests/test_live_mic.py tests/test_live_worker.py
test: lint types
	$(BIN)/pytest -q $(CLOCKED)
	$(BIN)/pytest -q -n 2 $(addprefix --ignore=,$(CLOCKED))

lint: $(VENV)/.dev
	$(BIN)/ruff check .

# costmodel/ is installed as pulse.costmodel, so types are checked on a tree of links laid out as installed.
types: $(VENV)/.dev
	rm -rf build/types && mkdir -p build/types
	cp -rs $(CURDIR)/pulse build/types/pulse
	cp -rs $(CURDIR)/costmodel build/types/pulse/costmodel
	cd build/types && $(BIN)/mypy --config-file $(CURDIR)/pyproject.toml --cache-dir $(CURDIR)/.mypy_cache -p pulse

native-test: $(VENV)/.base
	$(BIN)/cmake -S . -B build/native-test -G Ninja -DCMAKE_MAKE_PROGRAM=$(BIN)/ninja -DPULSE_SANITIZE=ON
	$(BIN)/cmake --build build/native-test
	$(BIN)/ctest --test-dir build/native-test --output-on-failure

neon-test: $(VENV)/.base
	$(BIN)/cmake -S . -B build/neon-test -G Ninja -DCMAKE_MAKE_PROGRAM=$(BIN)/ninja -DPULSE_NATIVE_TESTS=ON \
	  -DCMAKE_SYSTEM_NAME=Linux -DCMAKE_SYSTEM_PROCESSOR=aarch64 -DCMAKE_CXX_COMPILER=aarch64-linux-gnu-g++ \
	  -DCMAKE_EXE_LINKER_FLAGS=-static -DCMAKE_CROSSCOMPILING_EMULATOR=qemu-aarch64
	$(BIN)/cmake --build build/neon-test
	$(BIN)/ctest --test-dir build/neon-test --output-on-failure

# The stamps name what they were made from: the environment is installed anew when native sources or pyproject.toml change.
$(VENV)/.base:
	$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "pulse needs Python 3.11 or newer: set PYTHON=")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install -q --disable-pip-version-check scikit-build-core nanobind cmake ninja
	touch $@

$(VENV)/.run: $(VENV)/.base $(NATIVE)
	$(BIN)/pip install -q --disable-pip-version-check --no-build-isolation -e .
	touch $@

$(VENV)/.dev: $(VENV)/.run
	$(BIN)/pip install -q --disable-pip-version-check --no-build-isolation -e '.[dev]'
	touch $@

clean:
	rm -rf build $(VENV)
