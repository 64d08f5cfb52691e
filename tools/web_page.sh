#!/usr/bin/env bash
# Builds the page of interfaces/web/page, and tests it in a headless Chromium with WebGPU and WebGL 2 in software, and in Firefox.
#
#   tools/web_page.sh build FOLDER PACKAGE     PACKAGE: the folder of the npm package, which the page loads from beside it
#   tools/web_page.sh test FOLDER [COMMAND]    FOLDER: a built page; COMMAND: the program `lockstep`, to exchange files with
#
# The programs of the GPUs are those of devices/wgpu and devices/opengl, which two examples of these crates print.
set -euo pipefail

usage() {
    sed -n '2,7s/^# \{0,1\}//p' "$0" >&2
    exit 2
}
project=$(cd "$(dirname "$0")/.." && pwd)
page=$project/interfaces/web/page

build() {
    local folder package target
    mkdir -p "$1"
    folder=$(cd "$1" && pwd)
    package=$(cd "$2" && pwd)
    cd "$project"
    target=${CARGO_TARGET_DIR:-$project/target}
    # The features are the same as in `make test`, so that nothing is compiled twice.
    cargo build --workspace --locked --quiet --example export_wgsl --example export_glsl
    "$target/debug/examples/export_wgsl" >"$folder/wgpu.json"
    "$target/debug/examples/export_glsl" >"$folder/opengl.json"
    cp -r "$page"/{index.html,style.css,icon.svg,js} "$folder"
    rm -rf "$folder/lockstep"
    mkdir "$folder/lockstep"
    cp "$package"/*.js "$package"/*.wasm "$package"/LICENSE-* "$folder/lockstep"
}

run_tests() {
    LOCKSTEP_PAGE=$(cd "$1" && pwd)
    export LOCKSTEP_PAGE
    if [ "${2:-}" ]; then
        [ -x "$2" ] || { echo "web_page: there is no program $2" >&2; exit 1; }
        LOCKSTEP=$(cd "$(dirname "$2")" && pwd)/$(basename "$2")
        export LOCKSTEP
    fi
    "$project/tools/setup.sh" browser firefox node python
    cd "$page/test"
    npm ci --no-audit --no-fund --loglevel=error >/dev/null
    exec node --test --test-concurrency=2 ./*.test.js
}

case "${1:-} $#" in
"build 3") build "$2" "$3" ;;
"test 2" | "test 3") run_tests "$2" "${3:-}" ;;
*) usage ;;
esac
