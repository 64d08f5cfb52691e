#!/usr/bin/env bash
# Tests the reader of age files, and the npm package in Node: the shared suite of backends on SIMD128, vectors, files that the command reads and writes, bad input.
#
#   tools/web/test.sh PACKAGE COMMAND       PACKAGE: the folder of tools/web/build.sh, COMMAND: the program `lockstep`
set -euo pipefail

[ $# -eq 2 ] || {
    sed -n '2,4s/^# \{0,1\}//p' "$0" >&2
    exit 2
}
project=$(cd "$(dirname "$0")/../.." && pwd)
LOCKSTEP_WEB=$(cd "$1" && pwd)
LOCKSTEP=$(cd "$(dirname "$2")" && pwd)/$(basename "$2")
build=$(cd "${CARGO_TARGET_DIR:-$project/target}" && pwd)/web-build
cd "$project/interfaces/web"

cargo test --locked --quiet --package lockstep-web --target-dir "$build"
../../tools/web/run.sh cargo build --locked --package lockstep-web-suite --target wasm32-unknown-unknown --target-dir "$build"
export LOCKSTEP_WEB LOCKSTEP LOCKSTEP_SUITE=$build/wasm32-unknown-unknown/debug/lockstep_web_suite.wasm
# Two test files run at a time, because CI has two processors.
exec node --test --test-concurrency=2 test/*.test.js
