# lockstep: AES on parallel hardware. `make run` and `make test` include the set-up.

CARGO ?= cargo
TARGET = $(or $(CARGO_TARGET_DIR),target)
LOCKSTEP = $(TARGET)/release/lockstep
LOCKSTEP_LAB = $(TARGET)/release/lockstep-lab
PROVIDER = $(TARGET)/release/lockstep.so
PROVIDER_LAB = $(TARGET)/release/lockstep-lab.so
# With link-time optimisation, for installation.
DIST = $(TARGET)/dist
# Command and module of the test profile: checked arithmetic, less optimisation. The module has simulated devices.
TESTED = $(TARGET)/debug/lockstep
TESTED_PROVIDER = $(TARGET)/debug/lockstep.so
PREFIX ?= /usr/local
INSTALL ?= install

.PHONY: help build lab provider provider-lab dist install c-library c-test deb deb-arm64 deb-check run test test-release test-packages test-packages-arm64 test-full test-wgpu test-provider test-provider-oldest test-provider-newest \
	test-provider-releases nightly test-dist publish-check soak soak-check soak-module lint bench bench-files \
	bench-provider bench-python bench-rustls wheel wheel-arm64 wheel-freethreaded python-test torch-test test-ray test-python-suites timing leak-test prove prove-short prove-mutants prove-gpu prove-arm asan miri fuzz arrow-rs-test rustls-test arm64-test arm64-test-all arm-report arm-report-check kernel-report kernel-check gpu-check gpu-rehearsal lab-pages mode-pictures spu-gnu qpu-vc4asm tools-present clean

# Makes the command after it embed machine code for GPUs in what it builds. LOCKSTEP_CUDA_KERNELS= (empty) embeds none.
WITH_KERNELS = kernels=$${LOCKSTEP_CUDA_KERNELS-$$(tools/cuda_kernels.py)} && export LOCKSTEP_CUDA_KERNELS="$$kernels" &&

# A dry run (make -n) runs the lines that contain the name MAKE in brackets, with all commands in them. It does not run the lines that
# call make by this name, so it compiles no kernels.
SUBMAKE = $(MAKE)

# Several targets build the same files with other features; cargo runs in parallel by itself.
.NOTPARALLEL:

# The targets that most people need. `make help` lists them first.
FIRST = run test build provider lint
help:
	@echo 'The targets that most people need:'
	@for target in $(FIRST); do sed -n "s/^## \(make $$target \)/  \1/p" Makefile; done
	@echo 'All other targets:'
	@sed -n 's/^## /  /p' Makefile | grep -vE '^  make ($(subst $() ,|,$(FIRST))) '

# All crates. All tests use the same features, so that nothing is compiled twice.
WORKSPACE = --workspace --locked
# Two tests run for each core, because many tests wait for programs and devices.
export RUST_TEST_THREADS ?= $(shell echo $$((2 * $$(nproc))))
# The examples are not in this list, because `make lint` compiles them.
TESTS = $(WORKSPACE) --tests
# `lockstep --version --json` prints the commit of the build.
export LOCKSTEP_COMMIT = $(shell git describe --always --abbrev=40 --dirty --exclude '*' 2>/dev/null)

## make run [FILE=path]   build the command for CPU and CUDA, then encrypt, decrypt and compare a file; print the device and rate
run: tools-present
	$(CARGO) build --release --locked --no-default-features
	@tools/run.sh $(LOCKSTEP) $(FILE)

## make build             the command with every backend: target/release/lockstep
build: tools-present
	$(CARGO) build --release --locked

## make lab               the command with simulated devices, and the reproductions of papers: target/release/lockstep-lab
lab: tools-present-lab
	$(CARGO) build --release --locked -p lockstep-lab

## make provider          the module for OpenSSL 3, for CPU and CUDA: target/release/lockstep.so
provider: tools-present
	$(CARGO) build --release --locked -p lockstep-provider
	$(INSTALL) -m 755 $(TARGET)/release/liblockstep_provider.so $(PROVIDER)

## make provider-lab      the module with the emulator, the simulators and OpenGL in software, for tests and study: target/release/lockstep-lab.so
provider-lab: tools-present-lab
	$(CARGO) build --release --locked -p lockstep-lab-provider
	$(INSTALL) -m 755 $(TARGET)/release/liblockstep_lab_provider.so $(PROVIDER_LAB)

## make dist              command and module for installation and packages, with link-time optimisation: target/dist
dist: tools-present
	$(WITH_KERNELS) $(CARGO) build --profile dist --locked
	$(WITH_KERNELS) $(CARGO) build --profile dist --locked -p lockstep-provider
	$(INSTALL) -m 755 $(DIST)/liblockstep_provider.so $(DIST)/lockstep.so

## make cuda-kernels      compile the CUDA kernels for all GPUs, which packages embed from then on (minutes, once)
.PHONY: cuda-kernels
cuda-kernels:
	tools/cuda_kernels.py --full

## make wheel             the Python package for Python 3.11 and later: one wheel, in dist/
wheel: tools-present-python
	tools/wheel.sh dist

## make wheel-arm64       the same for 64-bit Arm, built on x86-64 and tested under QEMU
wheel-arm64: tools-present-python
	tools/wheel.sh dist --arm64

## make wheel-freethreaded  the same for a free-threaded Python (PYTHON=path), which no test here runs
wheel-freethreaded: tools-present-python
	tools/wheel.sh dist $(or $(PYTHON),python3t)

## make install           after make dist: install command, module, configuration and manual pages in PREFIX=/usr/local
install:
	@[ -e $(DIST)/lockstep.so ] || { echo 'there is nothing to install: run `make dist` first' >&2; exit 1; }
	$(INSTALL) -d $(addprefix $(DESTDIR)$(PREFIX)/,bin lib/ossl-modules share/lockstep share/man/man1 share/man/man7)
	$(INSTALL) -m 755 $(DIST)/lockstep $(DESTDIR)$(PREFIX)/bin/
	$(INSTALL) -m 755 $(DIST)/lockstep.so $(DESTDIR)$(PREFIX)/lib/ossl-modules/
	sed 's|^# module = .*|module = $(abspath $(PREFIX))/lib/ossl-modules/lockstep.so|' interfaces/provider/lockstep.cnf \
		| $(INSTALL) -m 644 /dev/stdin $(DESTDIR)$(PREFIX)/share/lockstep/lockstep.cnf
	$(INSTALL) -m 644 docs/lockstep-provider.7 $(DESTDIR)$(PREFIX)/share/man/man7/
	$(DIST)/lockstep man --out-dir $(DESTDIR)$(PREFIX)/share/man/man1

## make c-library         the C library with its header and file for pkg-config: target/c
c-library: tools-present
	$(WITH_KERNELS) $(CARGO) rustc --profile dist --locked -p lockstep-capi --lib --crate-type staticlib
	tools/c_library.sh $(DIST)/liblockstep_c.a $(TARGET)/c $(abspath $(TARGET)/c)

## make c-test            the tests of the C interface
c-test: tools-present-tests
	$(CARGO) test $(WORKSPACE) --test capi --test devices

## make deb               the Debian package of command, provider and C library: dist/lockstep_VERSION_ARCHITECTURE.deb
deb: dist c-library
	tools/deb.sh $(DIST) dist

# The parts of the package for 64-bit Arm. $(1): the profile
ARM64_BUILT = $(TARGET)/arm64/aarch64-unknown-linux-gnu
define build-arm64
	$(WITH_KERNELS) tools/arm64/run.sh $(CARGO) build --profile $(1) --locked
	$(WITH_KERNELS) tools/arm64/run.sh $(CARGO) build --profile $(1) --locked -p lockstep-provider
	$(WITH_KERNELS) tools/arm64/run.sh $(CARGO) rustc --profile $(1) --locked -p lockstep-capi --lib --crate-type staticlib
endef

## make deb-arm64         the same for 64-bit Arm, built on x86-64: dist/lockstep_VERSION_arm64.deb
deb-arm64: tools-present
	$(call build-arm64,dist)
	tools/arm64/run.sh tools/deb.sh $(ARM64_BUILT)/dist dist

## make deb-check         make deb, and use the package in a clean folder
deb-check: tools-present-peers deb
	tools/deb_check.sh dist/lockstep_*_$$(dpkg --print-architecture).deb

## make test              all tests except the longest; asks before it installs missing programs (SETUP=yes or CI: without a question; SETUP=no: never)
test:
	@tools/setup.sh programs browser
	@mkdir -p $(TARGET)
	$(CARGO) test $(TESTS) --no-run --message-format=json-render-diagnostics >$(TARGET)/test-programs.json
	$(INSTALL) -m 755 $(TARGET)/debug/deps/liblockstep_lab_provider.so $(TESTED_PROVIDER)
	tools/in_parallel.sh "tools/test_binaries.py $(TARGET)/test-programs.json" "$(CARGO) test $(WORKSPACE) --doc" "tools/python_test.sh $(PYTHON_EXTENSION) && $(RUN_PAGES)" \
		"tools/interop/pyca.py $(TESTED) && tools/bench_page/check.py $(TESTED)" \
		"tools/provider-test/all.sh $(TESTED_PROVIDER) $(TESTED) openssl device lifecycle" tools/gpu_check/self_test.py

# The examples of README and docs. After the Python tests, because both install the same packages.
RUN_PAGES = tools/pages/run.py $(TESTED) $(PYTHON_EXTENSION) $(TESTED_PROVIDER) $(TARGET)/debug/deps/liblockstep_c.a

## make test-pages        run the examples of README and docs, from a clean folder for each page
.PHONY: test-pages
test-pages: tools-present-tests
	$(CARGO) test $(TESTS) --no-run --quiet
	$(INSTALL) -m 755 $(TARGET)/debug/deps/liblockstep_lab_provider.so $(TESTED_PROVIDER)
	$(RUN_PAGES)

## make test-release      the scripts of make test, and those with nginx, Apache and Python, with the release builds of the command and the module
test-release: tools-present
	$(WITH_KERNELS) $(SUBMAKE) build provider
	@tools/run.sh $(LOCKSTEP)
	@! grep -q LOCKSTEP_TEST_FAULTS $(PROVIDER) || { echo '$(PROVIDER) has the faults of tests: see devices/cuda/src/machine/failing.rs' >&2; exit 1; }
	tools/setup.sh programs browser
	tools/in_parallel.sh "tools/provider-test/all.sh $(PROVIDER) $(LOCKSTEP) openssl lifecycle python_ssl wheels servers" \
		"tools/interop/pyca.py $(LOCKSTEP) && tools/bench_page/check.py $(LOCKSTEP)"

## make test-packages     the Debian package of release builds with machine code for GPUs, used in a clean folder
test-packages: tools-present-peers
	$(WITH_KERNELS) $(SUBMAKE) build provider
	$(WITH_KERNELS) $(CARGO) rustc --release --locked -p lockstep-capi --lib --crate-type staticlib
	tools/deb.sh $(TARGET)/release $(TARGET)/packages
	tools/deb_check.sh $(TARGET)/packages/lockstep_*_$$(dpkg --print-architecture).deb

## make test-packages-arm64  the wheel and the Debian package for 64-bit Arm under QEMU: they exchange files with the command of make dist
test-packages-arm64: dist
	$(call build-arm64,release)
	tools/arm64/run.sh tools/deb.sh $(ARM64_BUILT)/release $(TARGET)/packages
	tools/arm64/run.sh --system tools/deb_check.sh $(TARGET)/packages/lockstep_*_arm64.deb $(DIST)/lockstep
	tools/wheel.sh $(TARGET)/packages --arm64

## make test-provider     the tests of the provider, loaded by OpenSSL and used by real programs
test-provider: tools-present-tests build provider-lab
	$(CARGO) test -p lockstep-provider -p lockstep-provider-library -p lockstep-provider-settings --features lockstep-provider/opengl --locked
	tools/provider-test/all.sh $(PROVIDER_LAB) $(LOCKSTEP)

## make test-provider-oldest  the provider loaded by OpenSSL 3.0.2, which is built first (minutes, once)
test-provider-oldest: test-openssl-3.0.2

## make test-provider-newest  the same with the newest OpenSSL
test-provider-newest: test-openssl-4.0

## make test-provider-releases  the same with each release in tools/openssl-releases: 3.0.2, 3.5, 4.0
test-provider-releases: test-provider-oldest test-openssl-3.5 test-provider-newest

# With the features of the whole workspace, so that the builds of `make test` are used.
test-openssl-%: tools-present-tests
	$(WITH_KERNELS) $(SUBMAKE) provider
	tools/openssl_release.sh $* $(CARGO) test $(WORKSPACE) --test openssl
	tools/openssl_release.sh $* tools/provider-test/openssl.py $(PROVIDER)

## make soak [SOAK_SECONDS=600]  nginx and forking programs on the provider under load, with reloads and failing devices
soak: soak-module
	tools/soak/soak.py $(TESTED_PROVIDER)

## make soak-check        check that the soak detects wrong bytes, hangs, leaks and failed requests (a minute)
soak-check: soak-module
	tools/soak/self_check.py $(TESTED_PROVIDER)

# Built with the tests: only such a module has a device that fails on demand (feature faults of lockstep-cuda). `make test` builds the
# same module.
soak-module: tools-present-programs
	$(CARGO) test $(TESTS) --no-run --quiet
	$(INSTALL) -m 755 $(TARGET)/debug/deps/liblockstep_lab_provider.so $(TESTED_PROVIDER)

# With simulated devices. Built with the test programs, so that nothing is compiled twice: without development dependencies, features would differ.
PYTHON_EXTENSION = $(TARGET)/debug/deps/liblockstep_lab_python.so

## make python-test       the tests of the Python package: types, and behaviour against pyca
python-test: tools-present-tests
	$(CARGO) test $(TESTS) --no-run --quiet
	tools/python_test.sh $(PYTHON_EXTENSION)

## make torch-test        the tests of the Python package with PyTorch and JAX, which are downloaded once (0.7 GB)
torch-test: tools-present-tests
	$(CARGO) test $(TESTS) --no-run --quiet
	tools/torch_test.sh $(PYTHON_EXTENSION)

## make test-ray          files and columns on a cluster of three nodes of Ray on this machine, one of which is killed
test-ray: tools-present-tests
	$(CARGO) test $(TESTS) --no-run --quiet
	tools/python_test.sh --cluster $(PYTHON_EXTENSION)

## make test-python-suites  the tests that fsspec, pyarrow and zarr publish for file systems and stores, on encrypted files
test-python-suites: tools-present-tests
	$(CARGO) test $(TESTS) --no-run --quiet
	tools/python_test.sh --suites $(PYTHON_EXTENSION)

## make test-wgpu         the tests of the portable GPU backend, on Mesa's software devices
test-wgpu: tools-present-tests
	$(CARGO) test -p lockstep-wgpu --locked

## make test-full         make test, and: formatting, clippy, docs, PyTorch, a cluster of Ray, suites of fsspec and others, the wheel, release builds, the package, prove-short, oldest and newest OpenSSL, soak-check, Arm, the npm package, the page for browsers, GPU code
test-full: lint test torch-test test-ray test-python-suites wheel test-release test-packages prove-short test-provider-oldest test-provider-newest soak-check arm64-test web-test web-page-test kernel-check

## make nightly           slow checks and other toolchains: sanitizer, Miri, leak-test, fuzzing, arrow-rs, hyper and quinn, installed builds, crates as published, OpenSSL 3.5, more on Arm, a rehearsal of gpu-check, the memory of the npm package, prove-gpu, prove-mutants, prove-arm with SHORT=1
nightly: guides-check asan miri leak-test fuzz arrow-rs-test rustls-test test-provider test-dist publish-check test-openssl-3.5 arm64-test-all arm-report-check test-packages-arm64 gpu-rehearsal web-memory prove-gpu prove-mutants
	$(SUBMAKE) prove-arm SHORT=1

## make guides-check      apply the examples of docs/adding-a-kernel.md and docs/adding-a-mode.md to a copy of the project, and compile it
.PHONY: guides-check
guides-check: tools-present-tests
	tools/guides/check.py

## make publish-check     pack the crates for crates.io and compile each package with the others, without uploading (minutes)
publish-check: tools-present-tests
	tools/publish_check.py
	$(CARGO) publish --workspace --dry-run --locked

# The command of `make dist` on a file, and the openssl program on its module.
test-dist: tools-present-peers dist
	@tools/run.sh $(DIST)/lockstep
	tools/provider-test/openssl.py $(DIST)/lockstep.so

## make lint              formatting, clippy and documentation with warnings as errors, the architecture, generated pages
lint: tools-present-tests
	for manifest in dev/fuzz library/parquet/arrow-rs interfaces/rustls/peers interfaces/web; do $(CARGO) metadata --locked --format-version 1 --manifest-path $$manifest/Cargo.toml >/dev/null || exit; done
	tools/setup.sh --self-test
	tools/architecture/check.py --self-test
	tools/bench/harness.py --self-test
	tools/bench_page/check.py --self-test
	tools/guides/check.py --self-test
	tools/pages/run.py --self-test
	tools/picture_texts.py --self-test
	tools/picture_texts.py
	tools/guides/check.py --no-compile
	tools/architecture/check.py
	tools/scale_model.py --self-test
	tools/scale_model.py --check
	tools/publish_check.py
	tools/key_generators.py --self-test
	tools/key_generators.py
	tools/cuda_kernels.py --check
	$(CARGO) fmt --all --check
	$(CARGO) clippy $(WORKSPACE) --all-targets -- -D warnings
	$(CARGO) clippy -p lockstep-aes --no-default-features --locked -- -D warnings
	$(CARGO) clippy -p lockstep-aes --no-default-features --features rustcrypto --locked -- -D warnings
	$(CARGO) clippy -p lockstep-rustls --no-default-features --locked -- -D warnings
	$(CARGO) clippy -p lockstep-cli --no-default-features --locked -- -D warnings
	$(CARGO) clippy -p lockstep-provider -p lockstep-provider-library --locked -- -D warnings
	tools/cross_check.sh
	tools/web/lint.sh
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --workspace --no-deps --locked --quiet --document-private-items

## make bench [SUITE=...]  speed compared with OpenSSL, AWS-LC and RustCrypto, or another suite: throughput, crossover, ..., all
bench: build
	$(LOCKSTEP) bench $(SUITE)

## make bench-files       speed of encrypting and decrypting files, compared with openssl, age, pyca and cp
bench-files: tools-present-tests build
	tools/bench/files.py $(LOCKSTEP)

## make bench-provider    speed of the provider compared with the default provider of the same OpenSSL
bench-provider: tools-present-peers provider
	tools/bench/provider.py $(PROVIDER)

## make bench-python      speed of the Python package compared with pyca cryptography
bench-python: wheel
	tools/bench/python_package.py $(wildcard dist/lockstep_aes-*-abi3-*_$(shell uname -m).whl)

## make bench-rustls      speed of TLS and QUIC by rustls compared with its other providers (ROUNDS=61; WORK=TEXT: only the rows whose names contain the text); builds them first (minutes)
bench-rustls: tools-present-tests
	$(CARGO) run --release --locked --example speed $(RUSTLS_PEERS)

## make timing            measure whether running times depend on secrets (dudect); a measurement, not a test
timing:
	$(CARGO) run --release --locked -p lockstep-cpu --example timing

## make leak-test         check by valgrind that no branch and no address depends on a key, with controls that leak
leak-test: tools-present-tests
	tools/leak-test.sh

## make prove             interpret the machine code of the CPU kernels: constant time, nothing left behind, bounds, results equal to the standards (PROVE=path: another build)
prove: $(if $(PROVE),,proof-harness)
	$(PROVER) --known dev/proof/known.txt

## make prove-short       fewer lengths and keys, a limit of the instructions that no run executes, and 20 of the mutants
prove-short: $(if $(PROVE),,proof-harness)
	$(PROVER) --known dev/proof/known.txt --short --unexecuted dev/proof/unexecuted.txt --mutants 20 --equivalent dev/proof/equivalent.txt

## make prove-mutants     200 random changes of instructions of the CPU kernels, which the analysis must find (SEED=number: other changes)
prove-mutants: $(if $(PROVE),,proof-harness)
	$(PROVER) --known dev/proof/known.txt --mutants 200 --equivalent dev/proof/equivalent.txt $(if $(SEED),--seed $(SEED))

## make prove-gpu         the same for the CUDA kernels bitslice (ECB, CTR, key expansion) and GHASH for sm_90; no GPU needed (MUTANTS=number: also changed instructions)
GPU_CODE = $(TARGET)/gpu-code
prove-gpu: tools-present
	tools/gpu_code.py $(GPU_CODE) bitslice_expand bitslice_ecb_encrypt bitslice_ecb_decrypt bitslice_ctr bitslice_ctr32 ghash
	$(CARGO) run --release --locked -p lockstep-proof --bin prove-gpu -- $(GPU_CODE) $(if $(SHORT),--short) --mutants $(or $(MUTANTS),0) $(if $(SEED),--seed $(SEED))

## make prove-arm         the same as make prove for the CPU kernels for 64-bit Arm, without registers, the stack and the equality of GCM, GCM-SIV, GHASH and POLYVAL, on x86-64; the table of instructions is compared with QEMU (SHORT=1: fewer lengths)
prove-arm: tools-present
	CARGO_PROFILE_DIST_STRIP=none tools/arm64/run.sh $(CARGO) build --profile dist --locked -p lockstep-proof-harness
	$(CARGO) run --release --locked -p lockstep-proof --bin prove -- $(ARM64_BUILT)/dist/liblockstep_proof_harness.so $(if $(SHORT),--short)
	tools/arm64/test.sh -p lockstep-proof --test arm

PROVER = $(CARGO) run --release --locked -p lockstep-proof --bin prove -- $(or $(PROVE),$(DIST)/liblockstep_proof_harness.so)

# With the profile of packages, except that symbols are kept: reports name functions. Symbols do not change the code.
.PHONY: proof-harness
proof-harness: tools-present
	CARGO_PROFILE_DIST_STRIP=none $(CARGO) build --profile dist --locked -p lockstep-proof-harness

## make asan              the kernels under AddressSanitizer
asan:
	tools/asan.sh

## make miri              core, modes and planner under Miri (nightly toolchain with miri)
miri:
	tools/miri.sh

## make fuzz              fuzz each parser and stream for some seconds
fuzz:
	tools/fuzz.sh 10

## make arrow-rs-test     encrypted Parquet files that arrow-rs writes and reads
arrow-rs-test: tools-present-tests
	$(CARGO) test --locked --manifest-path library/parquet/arrow-rs/Cargo.toml --target-dir $(abspath $(TARGET))/arrow-rs

# A workspace of its own: hyper, quinn and the other providers. Tests and measurement use the same builds.
RUSTLS_PEERS = --manifest-path interfaces/rustls/peers/Cargo.toml --target-dir $(abspath $(TARGET))/rustls-peers

## make rustls-test       the provider of rustls in hyper and quinn, on loopback
rustls-test: tools-present-tests
	$(CARGO) test --release --locked $(RUSTLS_PEERS)

## make web               the npm package for browsers and Node: target/web
.PHONY: web web-test web-memory bench-web
web: tools-present
	tools/web/build.sh $(TARGET)/web

## make web-test          the npm package in Node: the suite on SIMD128, vectors, files exchanged with the command, bad input
web-test: tools-present-tests tools-present-node web
	$(CARGO) test $(TESTS) --no-run --quiet
	tools/web/test.sh $(TARGET)/web $(TESTED)

## make web-memory        the memory of a stream of 4 GiB in Node, in about three minutes
web-memory: tools-present-node web
	tools/web/memory.sh $(TARGET)/web

## make bench-web         speed and size of the npm package, compared with WebCrypto and with packages of npm, which are downloaded
bench-web: tools-present tools-present-node web
	tools/web/bench.sh $(TARGET)/web

## make web-page          the page for browsers, with the npm package: target/web-page
.PHONY: web-page web-page-test
web-page: web
	tools/web_page.sh build $(TARGET)/web-page $(TARGET)/web

## make web-page-test     the page in a headless Chromium, with WebGPU and WebGL 2 in software, and in Firefox
web-page-test: web-page
	tools/web_page.sh test $(TARGET)/web-page $(wildcard $(TESTED))

## make arm64-test        the Arm kernel under QEMU
arm64-test:
	tools/arm64/test.sh

# Also crates whose code is the same on all processors.
arm64-test-all:
	tools/arm64/test.sh -p lockstep-core -p lockstep-modes -p lockstep-planner -p lockstep-testkit -p lockstep-cpu -p lockstep-qpu

## make kernel-report     write docs/kernels.md: instructions per byte in the machine code of the CUDA kernels (no GPU needed)
kernel-report:
	tools/kernel_report.py

## make kernel-check      check that docs/kernels.md is up to date, the required figures, and that no address or branch depends on a secret
kernel-check:
	tools/kernel_report.py --self-test
	tools/kernel_report.py --check

## make arm-report        write docs/kernels-arm.md: the loops of the CPU kernels for Arm by llvm-mca, beside AWS-LC's GCM
arm-report:
	tools/arm_report.py

# Fails if GCM takes more clocks than its limit, in comparison with AWS-LC's.
arm-report-check:
	tools/arm_report.py --check

## make lab-pages         write docs/papers: the papers' tables compared with Lockstep's results, with pictures
lab-pages: lab
	$(LOCKSTEP_LAB) lab cell --page docs/papers/cell.md
	$(LOCKSTEP_LAB) lab g80 --page docs/papers/g80.md
	$(LOCKSTEP_LAB) lab geforce --page docs/papers/geforce-engine.md
	$(LOCKSTEP_LAB) lab qpu --page docs/papers/videocore.md

## make mode-pictures     draw the pictures of docs/modes.md
mode-pictures: build
	tools/mode_pictures.sh $(LOCKSTEP)

## make spu-gnu           compare the SPU's assembler with GNU as, built from Debian's binutils-source (minutes, once)
spu-gnu:
	sh lab/spu/tests/gnu/check.sh $(TARGET)/spu-gnu

## make qpu-vc4asm        compare the QPU's assembler with vc4asm (VC4ASM=path: the program, built from its source)
qpu-vc4asm:
	LOCKSTEP_VC4ASM=$(VC4ASM) $(CARGO) test -p lockstep-qpu --locked vc4asm

## make gpu-check         on a machine with a GPU: self-tests, the suite on each kernel, measurements, openssl, tensors (DEVICE=cuda:0)
gpu-check: tools-present-peers
	tools/gpu_check.sh build $(TARGET)/gpu-check
	LIMIT_TOTAL=$(or $(LIMIT_TOTAL),7200) tools/gpu_check.sh run $(TARGET)/gpu-check $(TARGET)/gpu-check-results $(DEVICE)

## make gpu-rehearsal     the parts of gpu-check on the emulator and on software devices, with small sizes
gpu-rehearsal: tools-present-programs
	tools/gpu_check.sh rehearsal $(TARGET)/gpu-rehearsal
	tools/gpu_check/rehearse.sh $(TARGET)/gpu-rehearsal

tools-present:
	@tools/setup.sh

tools-present-%:
	@tools/setup.sh $*

clean:
	$(CARGO) clean
