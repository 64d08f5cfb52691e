#!/usr/bin/env bash
# Checks the crates of the npm package and of its suite by clippy, as they are compiled for WebAssembly. Warnings are errors.
#
#   tools/web/lint.sh
#
# The check is skipped if there is no clippy for WebAssembly yet, except in CI, which fetches it (run.sh): CI=1 tools/web/lint.sh.
set -euo pipefail

project=$(cd "$(dirname "$0")/../.." && pwd)
if [ -z "${CI:-}" ] && ! rustup target list --installed 2>/dev/null | grep -qx wasm32-unknown-unknown &&
    ! compgen -G "${XDG_CACHE_HOME:-$HOME/.cache}/lockstep-web/clippy-driver-*" >/dev/null; then
    echo "web-lint: no clippy for WebAssembly, skipped (CI=1 tools/web/lint.sh fetches it)"
    exit 0
fi
mkdir -p "${CARGO_TARGET_DIR:-$project/target}"
build=$(cd "${CARGO_TARGET_DIR:-$project/target}" && pwd)/web-lint
cd "$project/interfaces/web"
exec ../../tools/web/run.sh --clippy cargo check --locked --quiet --package lockstep-web --package lockstep-web-suite \
    --target wasm32-unknown-unknown --target-dir "$build"
