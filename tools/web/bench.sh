#!/usr/bin/env bash
# Measures the npm package in Node, beside WebCrypto and packages of npm, and prints the sizes of the module.
#
#   tools/web/bench.sh PACKAGE [PART...]     PACKAGE: the folder of tools/web/build.sh; PART: sizes, ctr, messages, cobblestone, short, workers
set -euo pipefail

[ $# -gt 0 ] || {
    sed -n '2,4s/^# \{0,1\}//p' "$0" >&2
    exit 2
}
project=$(cd "$(dirname "$0")/../.." && pwd)
LOCKSTEP_WEB=$(cd "$1" && pwd)
shift
build=$(cd "${CARGO_TARGET_DIR:-$project/target}" && pwd)/web-build
cd "$project/interfaces/web"

# The packages for comparison are installed outside of the package, because the package has no dependencies.
npm ci --prefix bench --no-audit --no-fund --loglevel=error
../../tools/web/run.sh cargo build --locked --release --package lockstep-web-suite --target wasm32-unknown-unknown --target-dir "$build"
../../tools/web/build.sh "$build/aead-only" --no-default-features
export LOCKSTEP_WEB LOCKSTEP_AEAD_ONLY=$build/aead-only LOCKSTEP_SUITE=$build/wasm32-unknown-unknown/release/lockstep_web_suite.wasm
exec node bench/speed.js "$@"
