#!/usr/bin/env bash
# Puts the Python package together, as in a wheel.
#
#   tools/python_package.sh EXTENSION FOLDER    EXTENSION: liblockstep_native.so, or liblockstep_lab_python.so; FOLDER/lockstep is made, and replaced if it exists
set -euo pipefail

[ $# -eq 2 ] && [ -f "$1" ] || {
    sed -n '2,/^set/{/^#/s/^# \{0,1\}//p}' "$0" >&2
    exit 2
}
root=$(cd "$(dirname "$0")/.." && pwd)
rm -rf "$2/lockstep"
mkdir -p "$2"
cp -r "$root/interfaces/python/python/lockstep" "$2/"
find "$2" -name __pycache__ -prune -exec rm -r {} +
cp "$1" "$2/lockstep/_native.abi3.so"
# The extension of `lab/python` also contains a second module, whose import adds simulated devices.
if grep -q PyInit__lab "$1"; then
    ln -s _native.abi3.so "$2/lockstep/_lab.abi3.so"
    echo 'from . import _lab as _lab' >>"$2/lockstep/__init__.py"
fi
