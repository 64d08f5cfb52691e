#!/usr/bin/env bash
# Checks under valgrind that no branch and no address of the default kernels depends on keys or data.
#
#   tools/leak-test.sh                          everything: engine/cpu/tests/cpu/leak.rs
#   tools/leak-test.sh KERNEL [OPERATION]       one kernel, with debug information: reports name functions and lines
#
# The test builds its probe with the release profile, stripped, so its reports have addresses only.
set -euo pipefail

cd "$(dirname "$0")/.."

if ! command -v valgrind >/dev/null; then
    echo "NOT TESTED: secrets in branches and addresses: no valgrind: apt-get install valgrind" >&2
    [ -z "${CI:-}" ] || exit 1
    exit 0
fi
if [ $# -eq 0 ]; then
    # The features are those of `make test`, so that its build is used.
    exec cargo test --workspace --locked --test cpu -- --ignored leak::
fi
export CARGO_PROFILE_RELEASE_STRIP=none CARGO_PROFILE_RELEASE_DEBUG=1
folder=${CARGO_TARGET_DIR:-target}/leak
cargo build --release -p lockstep-cpu --example leak_probe --target-dir "$folder"
exec valgrind --error-exitcode=9 "$folder/release/examples/leak_probe" "$@"
