#!/usr/bin/env bash
# Tests the Python package of interfaces/python with PyTorch and JAX on the CPU: tensors, operators, torch.compile, encrypted checkpoints.
#
#   tools/torch_test.sh EXTENSION [ARGUMENT...]    EXTENSION: liblockstep_lab_python.so; ARGUMENT...: for pytest
#
# tools/torch_packages.py installs PyTorch and JAX. If that is not possible, this prints NOT TESTED and succeeds, or fails if the
# environment variable CI is set.
set -euo pipefail

[ $# -gt 0 ] && [ -f "$1" ] || {
    sed -n '2,/^set/{/^#/s/^# \{0,1\}//p}' "$0" >&2
    exit 2
}
root=$(cd "$(dirname "$0")/.." && pwd)
extension=$(realpath "$1")
shift
if ! python=$("$root/tools/python_venv.py") || ! torch=$("$root/tools/torch_packages.py"); then
    echo "NOT TESTED: interfaces/python with PyTorch and JAX" >&2
    [ -z "${CI:-}" ]
    exit
fi
package=$(dirname "$torch")/torch-test
"$root/tools/python_package.sh" "$extension" "$package"
# If this variable is set, tests that need these libraries fail without them.
export PYTHONPATH=$package:$torch LOCKSTEP_TEST_TORCH=1
# Several processes import PyTorch. The folder lets them share the compiled modules, and keeps compiled files out of the checkout.
export PYTHONPYCACHEPREFIX=$torch/pycache
unset PYTHONDONTWRITEBYTECODE
cd "$root/interfaces/python"
"$python" -m pytest "$@" tests/test_tensor_torch.py tests/test_torch_files.py tests/test_jax.py
