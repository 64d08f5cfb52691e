#!/usr/bin/env bash
# Runs every CUDA kernel once under ThreadSanitizer, with an operating-system thread for each CUDA thread. This detects
# accesses to shared and global memory that no barrier orders.
#
#   tools/cuda_tsan.sh [PART OF A KERNEL'S NAME]
#
# This script requires GCC's libtsan. Without libtsan it prints NOT TESTED and succeeds.
set -euo pipefail

cd "$(dirname "$0")/.."

if ! [ -e "$(${CXX:-c++} -print-file-name=libtsan.so)" ]; then
    echo "NOT TESTED: races between CUDA threads: ${CXX:-c++} has no libtsan" >&2
    exit 0
fi

export LOCKSTEP_EMULATOR_TSAN=1 LOCKSTEP_TEST_KERNEL="${1:-}"
# The folder of the compiler that contains libtsan.
RUSTFLAGS="-L native=$(dirname "$(${CXX:-c++} -print-file-name=libtsan.so)")${RUSTFLAGS:+ $RUSTFLAGS}"
export RUSTFLAGS
unset RUSTC_WRAPPER CARGO_ENCODED_RUSTFLAGS
run() {
    # ThreadSanitizer requires a fixed address layout.
    setarch "$(uname -m)" -R cargo test -p lockstep-cuda --target-dir "${CARGO_TARGET_DIR:-target}/cuda-tsan" --test cuda -- --test-threads=1 "$@"
}
log=$(mktemp)
suppressions=$(mktemp)
trap 'rm -f "$log" "$suppressions"' EXIT
# Rust code is not instrumented, so its synchronisation is not visible to ThreadSanitizer. The stacks of CUDA threads, which are
# tested here, have no frames of Rust.
printf 'race:%s\n' library/std library/core library/alloc >"$suppressions"
export TSAN_OPTIONS="suppressions=$suppressions${TSAN_OPTIONS:+:$TSAN_OPTIONS}"
if run --ignored races::a_race >"$log" 2>&1 || ! grep -q "WARNING: ThreadSanitizer: data race" "$log"; then
    cat "$log" >&2
    echo "a race made on purpose was not seen" >&2
    exit 1
fi
run --nocapture races::every_kernel_runs
[ -n "${1:-}" ] || run serial_kernels::
