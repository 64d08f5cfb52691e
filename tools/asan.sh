#!/usr/bin/env bash
# Runs the tests of the CPU kernels under AddressSanitizer: their loops work on raw pointers.
#
#   tools/asan.sh [cargo test arguments]       default: the kernels against the oracle, streams and vectors
#
# Needs a nightly toolchain, which alone has sanitizers. Without one this says so and succeeds: nothing was found wrong.
set -euo pipefail

cd "$(dirname "$0")/.."
target=x86_64-unknown-linux-gnu

if ! RUSTUP_AUTO_INSTALL=0 cargo +nightly --version >/dev/null 2>&1; then
    echo "NOT TESTED: AddressSanitizer: no nightly toolchain: rustup toolchain install nightly" >&2
    exit 0
fi

# The standard library of the toolchain is not instrumented, but its allocator and memory functions are intercepted. The
# C parts (AWS-LC) are left alone. --target: else build scripts would be instrumented, too.
export RUSTFLAGS="-Zsanitizer=address"
export ASAN_OPTIONS="detect_stack_use_after_return=1:strict_string_checks=1${ASAN_OPTIONS:+:$ASAN_OPTIONS}"
unset RUSTC_WRAPPER CARGO_ENCODED_RUSTFLAGS CARGO_BUILD_TARGET
asan() {
    cargo +nightly test --target "$target" --target-dir "${CARGO_TARGET_DIR:-target}/asan" "$@"
}
if [ $# -gt 0 ]; then
    asan "$@"
else
    asan -p lockstep-cpu --lib --test x86_kernels --test soft_kernel --test threads --test streams --test wycheproof
    # Of the shared suite, the narrowest and the widest vectors, alone and over threads; it takes the longest.
    asan -p lockstep-cpu --test suite -- aesni:: vaes512_threads::
fi
