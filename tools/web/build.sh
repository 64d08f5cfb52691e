#!/usr/bin/env bash
# Builds the npm package `lockstep-aes` in a folder, without its development files.
#
#   tools/web/build.sh FOLDER [CARGO_ARGUMENT...]     --no-default-features: only the authenticated modes, without the JavaScript
set -euo pipefail

[ $# -gt 0 ] || {
    sed -n '2,4s/^# \{0,1\}//p' "$0" >&2
    exit 2
}
project=$(cd "$(dirname "$0")/../.." && pwd)
mkdir -p "$1"
out=$(cd "$1" && pwd)
shift
# Sets the build folder of the project as an absolute path.
mkdir -p "${CARGO_TARGET_DIR:-$project/target}"
build=$(cd "${CARGO_TARGET_DIR:-$project/target}" && pwd)/web-build
generator=${XDG_CACHE_HOME:-$HOME/.cache}/lockstep-web/bindgen
cd "$project/interfaces/web"

# The generator runs on this machine. Its build folder is in the cache, because it is the same in every checkout.
cargo build --locked --quiet --package lockstep-web-bindgen --target-dir "$generator"
../../tools/web/run.sh cargo build --locked --release --package lockstep-web --target wasm32-unknown-unknown --target-dir "$build" "$@"
"$generator/debug/lockstep-web-bindgen" "$build/wasm32-unknown-unknown/release/lockstep_web.wasm" "$out"
[[ " $* " == *' --no-default-features '* ]] || cp js/* package.json README.md ../../LICENSE-MIT ../../LICENSE-APACHE "$out"
