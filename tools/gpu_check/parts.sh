#!/usr/bin/env bash
# The parts of the GPU check: the steps of each. Started by run.sh, once for each part.
#
#   parts.sh PART OUT DEVICE
#
# Exit code: 0 done; 1 a step failed; 3 measurements are left for the next call; 77 nothing could be tested here.
#
# Variables, for other devices and for rehearsals:
#   PORTABLE, OPENGL      devices of wgpu and OpenGL (wgpu:0, opengl:0)
#   LARGEST, PORTABLE_LARGEST   bytes of the largest measurements (4 GiB; 1 GiB by wgpu)
#   MEASURE_SECONDS       seconds of a measurement at the largest size (0.5)
#   SUITES                tests of the shared suite, by the beginnings of their names (all)
#   QUICK                 not empty: trial runs instead of measurements, for emulators
#   DOLLARS, WATTS        price and power for the papers' tables (the power is measured otherwise)
set -uo pipefail

here=$(cd "$(dirname "$0")" && pwd)
part=$1
out=$2
device=$3
portable=${PORTABLE:-wgpu:0}
opengl=${OPENGL:-opengl:0}
limit=${PART_LIMIT:-400}
speed=$here/device_speed
lockstep=$here/lockstep
failed=0
left=0
tested=0
PATH=$PATH:/usr/local/cuda/bin:/usr/sbin
export XDG_CACHE_HOME=${XDG_CACHE_HOME:-$out/.cache} PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1

has() {
    command -v "$1" >/dev/null
}

quoted() {
    printf '"%s"' "$(printf %s "$1" | tr '\000-\037' ' ' | sed 's/\\/\\\\/g; s/"/\\"/g')"
}

# Runs a step. The arguments are its name, its limit in seconds, and its command. The limit is shortened if the part has less time left.
step() {
    local name=$1 most=$2 begun=$SECONDS rc
    shift 2
    [ "$most" -le $((limit - SECONDS - 2)) ] || most=$((limit - SECONDS - 2))
    echo "== $name: $*"
    if [ "$most" -le 0 ]; then
        echo "left for the next call: no time is left"
        left=1
        return 3
    fi
    timeout --foreground -k 5 "$most" "$@"
    rc=$?
    printf '{"step": %s, "command": %s, "seconds": %d, "exit": %d}\n' "$(quoted "$name")" "$(quoted "$*")" \
        $((SECONDS - begun)) "$rc" >>"$out/.$part.steps" || { echo "FAILED: $out cannot be written" && exit 1; }
    case $rc in
        0) tested=1 ;;
        3) left=1 ;;
        77) ;;
        124 | 137) failed=1 && echo "FAILED: $name: ended after $most seconds" ;;
        *) failed=1 && echo "FAILED: $name: exit code $rc" ;;
    esac
    return $rc
}

# Runs a step and writes its standard output to a file. The file gets its name when the step has ended.
step_to() {
    local file=$1
    shift
    step "$@" >"$file.part" || {
        local rc=$?
        cat "$file.part"
        rm -f "$file.part"
        return $rc
    }
    # The first line is the headline of the step. It is printed to the log and is not a part of the file.
    sed -n 1p "$file.part"
    sed 1d "$file.part" >"$file" && rm -f "$file.part"
}

not_tested() {
    echo "NOT TESTED: $*"
}

# Runs a mode of device_speed until 40 seconds before the limit of the part, and writes its tables.
measure() {
    local mode=$1 on=$2 rows=$3
    shift 3
    step "$mode on $on" "$limit" "$speed" "$mode" "$on" "$out/$rows.jsonl" --seconds "${MEASURE_SECONDS:-0.5}" \
        --until $((limit - SECONDS > 60 ? limit - SECONDS - 40 : 20)) --clocks "$out/$rows.$mode.clocks.csv" "$@"
    "$speed" page "$out/$rows.jsonl" >"$out/$rows.md.part" && mv -f "$out/$rows.md.part" "$out/$rows.md"
}

# Selects the loaders of Vulkan and EGL of this folder if the machine has none, and finds the driver's files in other
# places.
use_loaders() {
    local library libraries
    libraries=$(ldconfig -p)
    for library in libvulkan.so.1 libEGL.so.1; do
        [[ $libraries == *"$library"* ]] || {
            echo "$library is not installed: the one of this folder is used"
            export LD_LIBRARY_PATH=$here/loaders${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
        }
    done
    local shared=/usr/local/nvidia/share
    [ -e /usr/share/vulkan/icd.d/nvidia_icd.json ] || [ -e /etc/vulkan/icd.d/nvidia_icd.json ] ||
        [ ! -e $shared/vulkan/icd.d/nvidia_icd.json ] || export VK_DRIVER_FILES=$shared/vulkan/icd.d/nvidia_icd.json
    [ -e /usr/share/glvnd/egl_vendor.d/10_nvidia.json ] || [ ! -e $shared/glvnd/egl_vendor.d/10_nvidia.json ] ||
        export __EGL_VENDOR_LIBRARY_FILENAMES=$shared/glvnd/egl_vendor.d/10_nvidia.json
}

is_there() {
    "$lockstep" devices 2>/dev/null | grep -q "^$1[: ]"
}

# Self-tests and the shared suite on another device of the same GPU. Fails if this machine has no such device.
other_device() {
    local name=$1 backend=$2
    if ! is_there "$name"; then
        not_tested "$name: $("$lockstep" devices 2>&1 | grep "^$backend" || echo "no driver for $backend")"
        return 1
    fi
    # A software device needs more time, so the limit is larger.
    step "self-tests of $name" $((${QUICK:+200} + 100)) "$lockstep" selftest --device "$name"
    step "the shared suite on $name" 240 env LOCKSTEP_TEST_DEVICE="$name" "$here/tests-$backend" "${SUITES:-suite::}"
}

# Checks whether the system meets the requirements of the programs, which the file `requires` of the folder lists.
part_requirements() {
    local kind value glibc libraries missing=0
    glibc=$(getconf GNU_LIBC_VERSION 2>/dev/null | sed 's/.* //')
    libraries=$(ldconfig -p 2>/dev/null || /sbin/ldconfig -p)
    while read -r kind value; do
        case $kind in
            glibc)
                echo "glibc here: ${glibc:-unknown}; required: $value"
                [ "$(printf '%s\n%s\n' "$value" "${glibc:-0}" | sort -V | head -n 1)" = "$value" ] || {
                    echo "FAILED: glibc ${glibc:-unknown} is too old: the programs need $value. Build the folder on an older system."
                    missing=1
                }
                ;;
            library) [[ $libraries == *"$value"* ]] || { echo "FAILED: no $value: install it" && missing=1; } ;;
        esac
    done <"$here/requires"
    return $missing
}

facts() {
    local name
    echo "# libraries"
    ldconfig -p | grep -E 'lib(cuda|nvidia-ml|nvrtc|vulkan|EGL|GLX|OpenGL|crypto)\.so'
    echo "# files of the drivers"
    ls /usr/share/vulkan/icd.d /etc/vulkan/icd.d /usr/share/glvnd/egl_vendor.d /usr/local/nvidia/share 2>/dev/null
    echo "# programs"
    for name in python3 nvcc compute-sanitizer ncu openssl nginx curl gcc g++ cargo stdbuf setpriv; do
        echo "$name: $(command -v "$name" || echo none)"
    done
    has openssl && openssl version
    has python3 || return 0
    python3 --version
    python3 - <<'END'
import importlib.metadata
for name in ("torch", "cupy-cuda13x", "cupy-cuda12x", "cupy", "numba", "numba-cuda", "jax", "numpy", "cryptography", "pytest"):
    try:
        print(name, importlib.metadata.version(name))
    except importlib.metadata.PackageNotFoundError:
        print(name, "none")
END
}

part_machine() {
    step system 30 sh -c 'uname -a; cat /etc/os-release; lscpu | head -n 25; free -h; df -h "$1" | tail -n 1' sh "$out"
    has nvidia-smi && step nvidia-smi 60 nvidia-smi && nvidia-smi -q >"$out/machine.nvidia-smi.txt" 2>&1
    facts 2>&1 | tee "$out/machine.facts.txt"
    part_requirements || failed=1
    step 'the command starts' 30 "$lockstep" --version
    step 'device_speed starts' 30 sh -c '"$1" 2>&1 | grep usage' sh "$speed"
}

part_devices() {
    step_to "$out/devices.list.txt" devices 80 "$lockstep" devices
    cat "$out/devices.list.txt" 2>/dev/null
    is_there "$device" || { failed=1 && echo "FAILED: there is no $device"; }
}

part_selftest() {
    step 'self-tests' 150 "$lockstep" selftest --device "$device"
}

part_suite() {
    local module modules
    modules=${SUITES:-$("$here/tests-cuda" suite:: --list | sed -n 's/^\(suite::[a-z_0-9]*::\).*: test$/\1/p' | sort -u)}
    [ -n "${SUITES:-}" ] || modules="$modules suite::carry_less_products"
    for module in $modules; do
        step "$module" 200 env LOCKSTEP_TEST_DEVICE="$device" "$here/tests-cuda" "$module"
    done
}

part_sanitizer() {
    local tool test
    has compute-sanitizer || { not_tested 'no compute-sanitizer' && return; }
    for tool in memcheck racecheck; do
        for test in bitslice::many_segments table::many_segments bitslice::gcm_agrees; do
            step "$tool, $test" 120 env LOCKSTEP_TEST_DEVICE="$device" compute-sanitizer --tool $tool --error-exitcode 9 \
                "$here/tests-cuda" "suite::$test" --exact
        done
    done
}

part_rates() {
    measure resident "$device" rates --largest "${LARGEST:-4294967296}"
}

part_host() {
    measure host "$device" host --largest "${LARGEST:-1073741824}"
}

part_messages() {
    measure messages "$device" messages --largest "${LARGEST:-2147483648}"
    measure latency "$device" messages --largest "${LARGEST:-1048576}"
    step_to "$out/messages.latency.json" 'latency from the host' 60 "$lockstep" bench latency ${QUICK:+--quick} --json --quiet \
        --device cpu --device "$device"
    [ -n "${QUICK:-}" ] || step_to "$out/messages.calibration.txt" calibration 90 "$lockstep" calibrate
    step_to "$out/messages.crossover.json" crossover 180 "$lockstep" bench crossover ${QUICK:+--quick} --json --quiet \
        --html "$out/messages.crossover.html" --force
}

part_papers() {
    local watts=${WATTS:-}
    # If the user states no power, the largest measured power is used.
    [ -n "$watts" ] || watts=$(sed -n 's/.*"watts":\([0-9.]*\).*/\1/p' "$out/rates.jsonl" 2>/dev/null | sort -n | tail -n 1)
    step_to "$out/papers.cuda.json" "the CUDA paper's figures and table" 280 "$lockstep" lab cuda --device "$device" --json --force \
        --html "$out/papers.cuda.html" ${DOLLARS:+--dollars "$DOLLARS"} ${watts:+--watts "$watts"} ${QUICK:+--largest 4096}
}

part_wgpu() {
    use_loaders
    other_device "$portable" wgpu || return
    measure resident "$portable" wgpu --largest "${PORTABLE_LARGEST:-1073741824}"
    if [ -e "$out/rates.jsonl" ] && has python3 && [ -z "${QUICK:-}" ]; then
        step_to "$out/wgpu.ratio.txt" 'wgpu beside CUDA' 30 python3 "$here/gpu_ratio.py" "$out/wgpu.jsonl" "$out/rates.jsonl" 0
        cat "$out/wgpu.ratio.txt"
    fi
}

part_opengl() {
    local scale=16
    [ -z "${QUICK:-}" ] || scale=1048576
    use_loaders
    other_device "$opengl" opengl || return
    # Programs cannot use the device memory of this backend, so data are copied from and to the host.
    step_to "$out/opengl.throughput.json" 'host to host by OpenGL' 120 "$lockstep" bench throughput ${QUICK:+--quick} --json --quiet \
        --device "$opengl" --mode ctr --mode ecb
    step_to "$out/opengl.gems.json" 'Figure 36-9 of GPU Gems 3' 150 "$lockstep" lab opengl --device "$opengl" --json --force \
        --plot "$out/opengl.gems.svg" ${QUICK:+--total 16384 --no-openssl}
    step_to "$out/opengl.geforce.json" 'the files of the GeForce thesis' 150 "$lockstep" lab geforce measure --device "$opengl" \
        --cuda "$device" --json --scale $scale ${QUICK:+--edges 16 --runs 1}
}

# Measures the seconds and the CPU seconds of `openssl enc` for a file, with the default provider, and with our provider on the CPU and on
# the device.
enc() {
    set -o pipefail
    local expected='' digest who file=$XDG_CACHE_HOME/openssl.data conf=$XDG_CACHE_HOME/openssl.cnf size=${QUICK:+1}
    mkdir -p "$XDG_CACHE_HOME"
    head -c $((${size:-256} << 20)) /dev/urandom >"$file"
    TIMEFORMAT='%R s, %U + %S s of CPU'
    for who in default cpu "$device"; do
        sed "s|^# module = .*|module = $here/lockstep.so|" "$here/lockstep.cnf" >"$conf"
        [ "$who" != default ] || conf=/dev/null
        echo "aes-256-ctr, ${size:-256} MiB, $who:"
        { time OPENSSL_CONF=$conf LOCKSTEP_DEVICE=$who LOCKSTEP_THRESHOLD=2048 openssl enc -aes-256-ctr -K "$(printf '%064d' 7)" \
            -iv "$(printf '%032d' 9)" -in "$file" | sha256sum >"$file.digest"; } 2>&1 || return 1
        digest=$(cat "$file.digest")
        [ "${expected:=$digest}" = "$digest" ] || { echo "FAILED: the output by $who differs from that of OpenSSL" && return 1; }
        conf=$XDG_CACHE_HOME/openssl.cnf
    done
    rm -f "$file" "$file.digest"
}

part_openssl() {
    has openssl || { not_tested 'no openssl' && return; }
    if has python3; then
        step 'openssl enc and nginx by the device' 120 env LOCKSTEP_TEST_DEVICE="$device" LOCKSTEP_TEST_OPTIONAL=1 \
            python3 "$here/provider-test/device.py" "$here/lockstep.so"
    else
        not_tested 'no python3'
    fi
    export -f enc
    export here device XDG_CACHE_HOME
    step_to "$out/openssl.enc.txt" 'openssl enc: time and CPU time' 150 bash -c enc
    cat "$out/openssl.enc.txt" 2>/dev/null
}

part_tensors() {
    local section
    has python3 || { not_tested 'no python3' && return; }
    python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { not_tested 'Python 3.11 or later is required' && return; }
    for section in interface torch cupy numba jax; do
        step "tensors: $section" 120 env XLA_PYTHON_CLIENT_PREALLOCATE=false python3 "$here/python/tensors.py" "$section" "$device" \
            "$out/tensors.$section.json"
    done
}

part_carry-less() {
    measure products "$device" carry-less --largest "${LARGEST:-1073741824}"
}

part_peers() {
    local threads mode all=1 size=64K
    [ -n "${QUICK:-}" ] || { all="1 $(nproc)" && size=16M; }
    for threads in $all; do
        if has openssl && [ -z "${QUICK:-}" ]; then
            for mode in aes-128-ctr aes-256-ctr aes-128-gcm aes-256-gcm; do
                step_to "$out/peers.openssl-$mode-$threads.txt" "openssl speed $mode, $threads" 30 openssl speed -seconds 2 -bytes 1048576 \
                    -elapsed -evp $mode -multi "$threads"
            done
        fi
        step_to "$out/peers.throughput-$threads.json" "our kernels of the CPU, $threads threads" 100 "$lockstep" bench throughput \
            ${QUICK:+--quick} --json --quiet --device cpu --threads "$threads" --mode ctr --mode gcm --mode ecb --size 64K \
            --size $size
    done
    step_to "$out/peers.peers.json" 'libraries in one process' 100 "$lockstep" bench peers ${QUICK:+--quick --no-openssl} --json --quiet
}

"part_$part"
[ $failed -eq 0 ] || exit 1
[ $left -eq 0 ] || exit 3
[ $tested -eq 1 ] || exit 77
