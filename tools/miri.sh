#!/usr/bin/env bash
# Runs the unit tests of core, modes and planner under Miri, which finds undefined behaviour.
#
#   tools/miri.sh [cargo miri test arguments]      default: core, modes and planner --lib
#
# This script requires a nightly toolchain with the components miri and rust-src. Without them it prints NOT TESTED
# and succeeds.
set -euo pipefail

cd "$(dirname "$0")/.."

skip() {
    echo "NOT TESTED: Miri: $*" >&2
    exit 0
}

RUSTUP_AUTO_INSTALL=0 cargo +nightly --version >/dev/null 2>&1 || skip "no nightly toolchain: rustup toolchain install nightly"
# rustup's proxy exists even if the component is not installed.
cargo +nightly miri --version >/dev/null 2>&1 || skip "no component miri: rustup +nightly component add miri rust-src"
[ -d "$(rustc +nightly --print sysroot)/lib/rustlib/src/rust/library" ] ||
    skip "no component rust-src: rustup +nightly component add rust-src"

unset RUSTFLAGS RUSTC_WRAPPER CARGO_ENCODED_RUSTFLAGS
# The mock device waits for real time, but by default Miri isolates programs from the clock of the machine.
export MIRIFLAGS="-Zmiri-disable-isolation${MIRIFLAGS:+ $MIRIFLAGS}"
arguments=("$@")
[ ${#arguments[@]} -gt 0 ] || arguments=(-p lockstep-core -p lockstep-modes -p lockstep-planner --lib)
exec cargo +nightly miri test --target-dir "${CARGO_TARGET_DIR:-target}/miri" "${arguments[@]}"
