#!/usr/bin/env bash
# Runs the arm64 tests on an x86-64 machine with Debian or a derivative, under QEMU's user-mode emulation (see run.sh).
#
#   tools/arm64/test.sh [cargo test arguments]     default: -p lockstep-cpu
set -euo pipefail

cd "$(dirname "$0")/../.."
[ "$(uname -m)" = x86_64 ] || {
    echo "arm64-test: this script is for x86-64; on arm64 run cargo test" >&2
    exit 1
}
# Tests of kernels that the processor lacks must fail here, not be skipped.
export LOCKSTEP_ARM64_TEST=1

arguments=("$@")
[ ${#arguments[@]} -gt 0 ] || arguments=(-p lockstep-cpu)
# By default, all tests run except documentation tests, which would require a rustdoc for Arm.
case " ${arguments[*]} " in
    *' --lib '* | *' --test '* | *' --tests '* | *' --bin '* | *' --bins '* | *' --all-targets '*) ;;
    *) arguments=(--tests "${arguments[@]}") ;;
esac
exec tools/arm64/run.sh cargo test "${arguments[@]}"
