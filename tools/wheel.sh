#!/usr/bin/env bash
# Builds the Python package as a wheel, installs it in a clean folder without other packages, and tests it there.
#
#   tools/wheel.sh FOLDER              one wheel for Python 3.11 and later; earlier wheels in FOLDER are removed
#   tools/wheel.sh FOLDER PYTHON       a wheel for this free-threaded Python
#   tools/wheel.sh FOLDER --arm64      one wheel for 64-bit Arm, tested with Debian's Python under QEMU (see arm64/run.sh)
set -euo pipefail

[ $# -eq 1 ] || [ $# -eq 2 ] || {
    sed -n '2,/^set/{/^#/s/^# \{0,1\}//p}' "$0" >&2
    exit 2
}
# The maximum size of a wheel in bytes: 4.5 MB of programs, and machine code for GPUs of up to 5 MB.
most=9500000
root=$(cd "$(dirname "$0")/.." && pwd)
folder=$(realpath -m "$1")
# LOCKSTEP_CUDA_KERNELS= (empty) embeds no machine code for GPUs.
kernels=${LOCKSTEP_CUDA_KERNELS-$("$root/tools/cuda_kernels.py")}
export LOCKSTEP_CUDA_KERNELS=$kernels
python=$("$root/tools/python_venv.py")
# Level 9 makes the wheel 1.5 % smaller than maturin's level 6.
build=("$python" -m maturin build --release --compression-level 9 --manifest-path "$root/interfaces/python/Cargo.toml" --out "$folder")
clean=$(mktemp -d)
trap 'rm -rf "$clean"' EXIT
case ${2:-} in
    "")
        rm -f "$folder"/lockstep_aes-*-abi3-*_"$(uname -m)".whl
        "${build[@]}"
        ;;
    --arm64)
        rm -f "$folder"/lockstep_aes-*-abi3-*_aarch64.whl
        # With the stable ABI, no interpreter for the other processor is needed.
        "$root/tools/arm64/run.sh" "${build[@]}"
        ;;
    *)
        command -v "$2" >/dev/null || {
            echo "wheel: no program $2: install a free-threaded Python, and name it by PYTHON=path" >&2
            exit 1
        }
        rm -f "$folder"/lockstep_aes-*t-*.whl
        # Free-threaded Pythons before 3.15 have no stable ABI, so the wheel is built without the feature for it.
        "${build[@]}" --interpreter "$2" --no-default-features --features cuda
        ;;
esac
wheel=$(ls -t "$folder"/lockstep_aes-*.whl | head -n 1)
size=$(stat -c %s "$wheel")
[ "$size" -le $most ] || {
    echo "wheel: $wheel has $size bytes, more than $most" >&2
    exit 1
}

pip=(-m pip --disable-pip-version-check --quiet install --no-index --no-deps)
if [ "${2:-}" = --arm64 ]; then
    platform=${wheel##*-abi3-}
    # The pip of this machine installs the wheel, because Debian's Python for Arm has no pip. pip refuses a wheel
    # whose tags do not match.
    "$python" "${pip[@]}" --target "$clean/packages" --platform "${platform%%.*}" --python-version 3.11 --only-binary :all: "$wheel"
    used=(env PYTHONPATH="$clean/packages" "$root/tools/arm64/run.sh" --system python3)
else
    tested=$python
    [ $# -eq 1 ] || tested=$2
    "$tested" -m venv "$clean/venv"
    "$clean/venv/bin/python" "${pip[@]}" "$wheel"
    used=("$clean/venv/bin/python")
fi
cd "$clean"
"${used[@]}" -W error "$root/tools/wheel_check.py"
"${used[@]}" -m lockstep --version
[ "${2:-}" = --arm64 ] || "$clean/venv/bin/lockstep" --version
echo "$wheel, $((size >> 10)) KiB"
