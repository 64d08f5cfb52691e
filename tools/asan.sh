#!/usr/bin/env bash
# Runs the tests of the CPU kernels under AddressSanitizer: their loops use raw pointers.
#
#   tools/asan.sh [cargo test arguments]       default: the kernels against the oracle, streams and vectors
#
# Sanitizers are an unstable feature: a nightly toolchain is used if there is one, otherwise the stable one with RUSTC_BOOTSTRAP=1,
# which permits unstable features.
set -euo pipefail

cd "$(dirname "$0")/.."
target=x86_64-unknown-linux-gnu

cargo=(cargo +nightly)
if ! RUSTUP_AUTO_INSTALL=0 "${cargo[@]}" --version >/dev/null 2>&1; then
    export RUSTC_BOOTSTRAP=1
    cargo=(cargo)
fi

# The standard library of the toolchain is not instrumented, but its allocator and memory functions are intercepted. The
# C parts (AWS-LC) are not instrumented either. With --target, build scripts are not instrumented.
export RUSTFLAGS="-Zsanitizer=address"
export ASAN_OPTIONS="detect_stack_use_after_return=1:strict_string_checks=1${ASAN_OPTIONS:+:$ASAN_OPTIONS}"
unset RUSTC_WRAPPER CARGO_ENCODED_RUSTFLAGS CARGO_BUILD_TARGET
asan() {
    "${cargo[@]}" test --target "$target" --target-dir "${CARGO_TARGET_DIR:-target}/asan" "$@"
}
if [ $# -gt 0 ]; then
    asan "$@"
else
    asan -p lockstep-cpu --lib
    asan -p lockstep-cpu --test cpu -- inline:: x86_kernels:: soft_kernel:: threads:: streams:: wycheproof::
    # The shared suite takes the longest, so it runs only with the narrowest vectors, and with the widest vectors on several threads.
    asan -p lockstep-cpu --test cpu -- suite::aesni:: suite::vaes512_threads::
fi
