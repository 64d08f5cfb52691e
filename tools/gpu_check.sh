#!/usr/bin/env bash
# Checks and measurements on a machine with a GPU.
#
#   tools/gpu_check.sh build FOLDER [ARCHITECTURES]   builds programs that require only a driver on the GPU machine
#   tools/gpu_check.sh run FOLDER OUT [DEVICE]        on that machine: self-tests, the suite on each kernel, sanitizer, benchmark, the same GPU by
#                                                     wgpu and OpenGL, openssl
#
# `run` writes OUT/DATE-DEVICE.json and .md for CUDA and wgpu, the tables and plots of docs/papers (DATE-DEVICE-geforce8.json and .html by CUDA,
# -gems.json and .svg and -geforce.json by OpenGL), and OUT/log. It goes on after a failure and then exits with 1.
set -uo pipefail

cd "$(dirname "$0")/.."

build() {
    set -e
    local folder=$1 target=${CARGO_TARGET_DIR:-target}
    tools/cuda_kernels.py "$folder/kernels" --arch "${2:-90}"
    export LOCKSTEP_CUDA_KERNELS
    LOCKSTEP_CUDA_KERNELS=$(cd "$folder/kernels" && pwd)
    # One by one: in one build, the provider would get the feature wgpu of the command.
    cargo build --release --locked -p lockstep-cli
    cargo build --release --locked -p lockstep-provider
    cargo build --release --locked -p lockstep-aes --features wgpu,lab --example device_speed
    local backend suite
    for backend in cuda wgpu opengl; do
        suite=$(cargo test --release --locked -p lockstep-$backend --test $backend --no-run 2>&1 | sed -n "s/.*(\(.*$backend-[0-9a-f]*\))$/\1/p")
        cp "$suite" "$folder/tests-$backend"
    done
    cp "$target/release/lockstep" "$target/release/examples/device_speed" "$folder/"
    cp "$target/release/liblockstep_provider.so" "$folder/lockstep.so"
    du -sh "$folder"/*
}

run() {
    local folder=$1 out=$2 device=${3:-cuda:0} failed=()
    named() { echo "$(date +%F)-$(printf %s "$1" | tr -c 'a-z0-9\n' -)"; }
    local name
    name=$(named "$device")
    mkdir -p "$out"
    step() {
        echo "== $1"
        shift
        timeout "${LIMIT:-240}" "$@" 2>&1 | tail -n 60
        local rc=${PIPESTATUS[0]}
        [ "$rc" -eq 0 ] || { failed+=("$*: exit code $rc"); echo "FAILED with $rc"; }
    }
    # Self-tests and the shared suite on another device of the same GPU. Fails if there is none.
    is_there() {
        if ! "$folder/lockstep" devices | grep -q "^$1:"; then
            echo "NOT TESTED: $1: $("$folder/lockstep" devices | grep "^$2" || echo "no driver for $2")"
            return 1
        fi
        step "self-tests of $1" "$folder/lockstep" selftest --device "$1"
        LOCKSTEP_TEST_DEVICE=$1 step "the shared suite on $1" "$folder/tests-$2" suite::
    }
    {
        step "the machine" sh -c 'nvidia-smi || true; lscpu | head -20'
        step "devices" "$folder/lockstep" devices
        step "self-tests" "$folder/lockstep" selftest --device "$device"
        LOCKSTEP_TEST_DEVICE=$device step "the shared suite" "$folder/tests-cuda" suite::
        if command -v compute-sanitizer >/dev/null; then
            LOCKSTEP_TEST_DEVICE=$device step "sanitizer" compute-sanitizer --error-exitcode 9 "$folder/tests-cuda" suite::bitslice::many
        else
            echo "NOT TESTED: compute-sanitizer is not here"
        fi
        LIMIT=${BENCH_LIMIT:-300} step "benchmark" "$folder/device_speed" "$device" "$out/$name.json" "$out/$name.md" "${LARGEST:-1073741824}"
        LIMIT=180 step "the CUDA paper's table" sh -c '"$1" lab cuda --device "$2" --json --force --html "$3.html" >"$3.json"' lab \
            "$folder/lockstep" "$device" "$out/$name-geforce8"
        # The same GPU by wgpu and by OpenGL, if their drivers are installed.
        local portable=${PORTABLE:-wgpu:0} opengl=${OPENGL:-opengl:0} other
        if is_there "$portable" wgpu; then
            other=$(named "$portable")
            LIMIT=${BENCH_LIMIT:-300} step "benchmark by wgpu" "$folder/device_speed" "$portable" "$out/$other.json" "$out/$other.md" \
                "${LARGEST:-1073741824}"
            step "wgpu beside CUDA" python3 tools/gpu_ratio.py "$out/$other.json" "$out/$name.json"
        fi
        if is_there "$opengl" opengl; then
            other=$(named "$opengl")
            LIMIT=300 step "Figure 36-9 of GPU Gems 3" sh -c '"$1" lab opengl --device "$2" --json --force --plot "$3.svg" ${4:+--total "$4"} >"$3.json"' \
                lab "$folder/lockstep" "$opengl" "$out/$other-gems" "${TOTAL:-}"
            LIMIT=300 step "the files of the GeForce thesis" sh -c '"$1" lab geforce measure --device "$2" --cuda "$3" --json --scale "$5" >"$4.json"' \
                lab "$folder/lockstep" "$opengl" "$device" "$out/$other-geforce" "${SCALE:-16}"
        fi
        if command -v openssl >/dev/null; then
            LOCKSTEP_TEST_DEVICE=$device step "openssl and nginx" python3 tools/provider-test/device.py "$folder/lockstep.so"
        fi
        [ ${#failed[@]} -eq 0 ] && echo "all is well" || printf 'FAILED: %s\n' "${failed[@]}"
    } 2>&1 | tee "$out/log"
    ! grep -q '^FAILED' "$out/log"
}

case "${1:-}" in
    build) shift && [ $# -ge 1 ] && build "$@" ;;
    run) shift && [ $# -ge 2 ] && run "$@" ;;
    *)
        sed -n '2,/^set/{/^#/s/^# \{0,1\}//p}' "$0" >&2
        exit 2
        ;;
esac
