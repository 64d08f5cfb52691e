#!/bin/bash
# Checks that the code for the Raspberry Pi's QPUs compiles for its processors: ARMv6, ARMv7 and 64-bit Arm.
#
#   tools/cross_check.sh
#
# A target that rustup has not installed is reported and skipped; `make arm64-test-all` runs the tests on 64-bit Arm in any case.
set -euo pipefail
cd "$(dirname "$0")/.."

installed=$(rustup target list --installed 2>/dev/null || true)
for target in arm-unknown-linux-gnueabihf armv7-unknown-linux-gnueabihf aarch64-unknown-linux-gnu; do
    if grep -qx "$target" <<<"$installed"; then
        cargo check --quiet --locked -p lockstep-qpu --target "$target"
        echo "cross-check: $target: ok"
    else
        echo "cross-check: $target is not installed, skipped (rustup target add $target)"
    fi
done
