# lockstep: AES on parallel hardware. `make run` and `make test` do all the set-up.

CARGO ?= cargo
TARGET = $(or $(CARGO_TARGET_DIR),target)
LOCKSTEP = $(TARGET)/release/lockstep

.PHONY: help build run test test-full lint bench bench-files timing leak-test asan miri fuzz arm64-test tools-present clean

help:
	@sed -n 's/^## //p' Makefile

## make run [FILE=path]   build, then encrypt, decrypt and compare a file, and tell device and rate
run: build
	@tools/run.sh $(LOCKSTEP) $(FILE)

build: tools-present
	$(CARGO) build --release --locked

## make test              all tests that need nothing but Rust, a C compiler, OpenSSL and Python (under 15 minutes)
test: tools-present
	$(CARGO) test --workspace --locked
	$(CARGO) build --release --locked
	tools/pyca_interop.py $(LOCKSTEP)

## make test-full         make test, and: formatting, clippy, docs, leaks, sanitizers, fuzzing, Arm by emulation
test-full: lint test leak-test asan miri fuzz arm64-test

lint: tools-present
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets --locked -- -D warnings
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --workspace --no-deps --locked --quiet --document-private-items

## make bench             the processor's kernels beside OpenSSL, AWS-LC and RustCrypto
bench: build
	$(LOCKSTEP) bench

## make bench-files       files: lockstep beside openssl, age, pyca and cp
bench-files: build
	tools/bench_files.sh $(LOCKSTEP)

## make timing            do running times depend on secrets? A measurement (dudect), not a test
timing:
	$(CARGO) run --release --locked -p lockstep-cpu --example timing

## make leak-test         no branch and no address depends on a key: valgrind, with a table lookup as control
leak-test: tools-present
	tools/leak-test.sh

## make asan              the kernels under AddressSanitizer (nightly toolchain)
asan:
	tools/asan.sh

## make miri              core under Miri (nightly toolchain with miri)
miri:
	tools/miri.sh

## make fuzz              each parser and stream for some seconds (nightly toolchain)
fuzz:
	tools/fuzz.sh 10

## make arm64-test        the Arm kernel under QEMU
arm64-test:
	tools/arm64-test.sh

tools-present:
	@tools/setup.sh

clean:
	$(CARGO) clean
