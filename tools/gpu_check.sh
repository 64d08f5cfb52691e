#!/usr/bin/env bash
# Checks and measurements on a machine with a GPU. The machine needs only a driver.
#
#   tools/gpu_check.sh build FOLDER [ARCHITECTURES]            the folder with everything in it, and FOLDER.tar.gz to carry; ARCHITECTURES: 90
#   tools/gpu_check.sh rehearsal FOLDER                        the same from debug builds with emulators, for a rehearsal without a GPU
#   tools/gpu_check.sh run FOLDER OUT [DEVICE] [PART...]       on that machine; the same as FOLDER/run.sh OUT [DEVICE] [PART...]
#
# tools/gpu_check/run.sh describes OUT and the parts. docs/testing.md has the procedure.
set -euo pipefail

# The maximum size of the archive in bytes. Each program contains the machine code of the kernels, in compressed form.
most=60000000
root=$(cd "$(dirname "$0")/.." && pwd)
target=$(realpath -m "${CARGO_TARGET_DIR:-$root/target}")
cargo=${CARGO:-cargo}

usage() {
    sed -n '2,/^set/{/^#/s/^# \{0,1\}//p}' "$0" >&2
    exit 2
}

# Builds a test program and prints its path. The arguments are the package, its test, and further arguments of cargo.
test_program() {
    "$cargo" test --no-run --message-format=json-render-diagnostics "${@:2}" |
        sed -n "s/.*\"name\":\"$1\".*\"executable\":\"\([^\"]*\)\".*/\1/p" | tail -n 1
}

# Copies the content that both kinds of folders have: scripts, the Python package, and the loaders of Vulkan and EGL.
copy_scripts() {
    local folder=$1 library path
    install -m 755 "$root"/tools/gpu_check/{run.sh,parts.sh} "$root/tools/gpu_ratio.py" "$folder/"
    mkdir -p "$folder/provider-test" "$folder/loaders" "$folder/python"
    # The script is placed next to the package, which it imports.
    install -m 755 "$root/tools/gpu_check/tensors.py" "$folder/python/"
    install -m 755 "$root"/tools/provider-test/{device,ciphers,common,provider_configuration,servers}.py "$folder/provider-test/"
    install -m 644 "$root/interfaces/provider/lockstep.cnf" "$folder/"
    cp -r "$root/interfaces/python/python/lockstep" "$folder/python/"
    echo "$(git -C "$root" describe --always --dirty 2>/dev/null || echo unknown), $(date -u +%FT%TZ)" >"$folder/build"
    find "$folder/python" -name __pycache__ -prune -exec rm -r {} +
    for library in libvulkan.so.1 libEGL.so.1 libGLdispatch.so.0; do
        path=$(PATH=$PATH:/usr/sbin:/sbin ldconfig -p | sed -n "s/.*$library (.*x86-64.*) => //p" | head -n 1)
        if [ -n "$path" ]; then
            cp -L "$path" "$folder/loaders/$library"
        else
            echo "gpu_check: no $library here: the GPU machine must have it" >&2
        fi
    done
}

# Writes FOLDER/requires: the versions and the libraries that the programs need.
requirements() {
    local programs=("$1"/{lockstep,lockstep-lab,device_speed,tests-cuda,tests-wgpu,tests-opengl,lockstep.so,python/lockstep/_native.abi3.so})
    {
        printf 'glibc '
        objdump -T "${programs[@]}" | grep -o 'GLIBC_[0-9.]*' | sort -Vu | tail -n 1 | sed 's/GLIBC_//'
        objdump -p "${programs[@]}" | sed -n 's/^ *NEEDED *//p' | sort -u | grep -v -E '^(ld-linux|lib(c|m|dl|rt|pthread)\.)' |
            sed 's/^/library /'
    } >"$1/requires"
    cat "$1/requires"
}

build() {
    local folder=$1 architectures=${2:-90} backend size
    LOCKSTEP_CUDA_KERNELS=$("$root/tools/cuda_kernels.py" --arch "$architectures" --no-ptx)
    export LOCKSTEP_CUDA_KERNELS
    rm -rf "$folder"
    mkdir -p "$folder/python/lockstep"
    copy_scripts "$folder"
    cd "$root"
    # The packages are built one by one, because in a common build the provider would get the features of the command.
    "$cargo" build --release --locked -p lockstep-cli
    # `lockstep lab` starts the program `lockstep-lab`, which must be in the same folder as `lockstep`.
    "$cargo" build --release --locked -p lockstep-lab
    "$cargo" build --release --locked -p lockstep-aes --features wgpu --example device_speed
    for backend in cuda wgpu opengl; do
        install -m 755 "$(test_program $backend --release --locked -p lockstep-$backend --test $backend)" "$folder/tests-$backend"
    done
    "$cargo" build --release --locked -p lockstep-provider
    "$cargo" build --release --locked -p lockstep-python
    install -m 755 "$target/release/lockstep" "$target/release/lockstep-lab" "$target/release/examples/device_speed" "$folder/"
    install -m 755 "$target/release/liblockstep_provider.so" "$folder/lockstep.so"
    install -m 755 "$target/release/liblockstep_native.so" "$folder/python/lockstep/_native.abi3.so"
    requirements "$folder"
    du -ab "$folder" | sort -n | tail -n 12
    tar -c -C "$(dirname "$folder")" "$(basename "$folder")" | gzip -9 >"$folder.tar.gz"
    size=$(stat -c %s "$folder.tar.gz")
    [ "$size" -le $most ] || {
        echo "gpu_check: $folder.tar.gz has $size bytes, more than $most" >&2
        exit 1
    }
    echo "$folder: $(du -sb "$folder" | cut -f 1) bytes; $folder.tar.gz: $size bytes"
}

rehearsal() {
    local folder=$1 backend options
    options=(--workspace --locked --tests)
    rm -rf "$folder"
    mkdir -p "$folder/python/lockstep"
    copy_scripts "$folder"
    cd "$root"
    for backend in cuda wgpu opengl; do
        ln -s "$(test_program $backend "${options[@]}")" "$folder/tests-$backend"
    done
    "$cargo" build --quiet "${options[@]:0:2}" --example device_speed_lab
    # The programs with simulated devices get the names of the programs without them.
    ln -s "$target/debug/lockstep-lab" "$folder/lockstep"
    ln -s "$target/debug/lockstep-lab" "$folder/"
    ln -s "$target/debug/examples/device_speed_lab" "$folder/device_speed"
    ln -s "$target/debug/deps/liblockstep_lab_provider.so" "$folder/lockstep.so"
    "$root/tools/python_package.sh" "$target/debug/deps/liblockstep_lab_python.so" "$folder/python"
    requirements "$folder"
}

command=${1:-}
[ $# -ge 2 ] || usage
case "$command" in
    build | rehearsal)
        folder=$(realpath -m "$2")
        "$command" "$folder" "${@:3}"
        ;;
    run)
        [ $# -ge 3 ] || usage
        exec "$2/run.sh" "${@:3}"
        ;;
    *) usage ;;
esac
