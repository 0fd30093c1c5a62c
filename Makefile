# The commands a person needs; each does all that it depends on.
#
#   make demo    install what is missing, build, embed the example proteins, show the result
#   make test    the same for all tests
#   make build   build/release/quintet
#
# The build itself is CMake's (see CMakePresets.json).
.PHONY: help demo test build deps bench clean
BUILD := build/release

help:
	@sed -n 's/^#   //p' Makefile

deps:
	@scripts/install-deps.sh

build: deps
	@cmake --preset release >/dev/null
	@cmake --build --preset release

demo: build
	@scripts/demo.sh "$(BUILD)/quintet"

test: build
	@scripts/install-deps.sh pocl-opencl-icd
	@ctest --preset release --parallel 2

bench: deps
	@scripts/install-deps.sh libopenblas-dev
	@cmake --preset release -DQUINTET_BENCH=ON >/dev/null
	@cmake --build --preset release

clean:
	@rm -rf build
