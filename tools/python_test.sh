#!/usr/bin/env bash
# Tests the Python package of interfaces/python: its types by mypy and pyright, and its behaviour by pytest.
#
#   tools/python_test.sh [--cluster] EXTENSION [ARGUMENT...]    EXTENSION: liblockstep_lab_python.so; ARGUMENT...: for pytest
#
# With --cluster, runs the tests of tests/cluster instead, which need Ray.
#
# The package is put together under the build folder, as in a wheel. The packages that the tests need are installed in a virtual
# environment there; if that is not possible, this prints NOT TESTED and succeeds, or fails if the environment variable CI is set.
set -euo pipefail

cluster=
if [ "${1:-}" = --cluster ]; then
    cluster=cluster
    shift
fi
[ $# -gt 0 ] && [ -f "$1" ] || {
    sed -n '2,/^set/{/^#/s/^# \{0,1\}//p}' "$0" >&2
    exit 2
}
root=$(cd "$(dirname "$0")/.." && pwd)
extension=$(realpath "$1")
shift
if ! python=$("$root/tools/python_venv.py" $cluster); then
    echo "NOT TESTED: interfaces/python ${cluster:+on a cluster}" >&2
    [ -z "${CI:-}" ]
    exit
fi
package=$(realpath -m "${CARGO_TARGET_DIR:-$root/target}")/python-package${cluster:+-cluster}
"$root/tools/python_package.sh" "$extension" "$package"
export PYTHONPATH=$package PYTHONDONTWRITEBYTECODE=1

cd "$root/interfaces/python"
if [ "$cluster" ]; then
    # Warnings in Ray's own code are not treated as errors.
    exec "$python" -m pytest -W default tests/cluster "$@"
fi
types() {
    "$python" -m mypy --cache-dir "$package/mypy"
    # Compares the stubs with the extension.
    "$python" -m mypy.stubtest --ignore-disjoint-bases --mypy-config-file pyproject.toml --allowlist tests/stubtest.txt lockstep._native
    # pyright's package installs the program itself when it is called first.
    if timeout 120 "$python" -m pyright --version >/dev/null 2>&1; then
        "$python" -m pyright --pythonpath "$python"
    else
        echo "NOT TESTED: interfaces/python by pyright, which cannot be installed: install Node.js" >&2
        [ -z "${CI:-}" ]
    fi
}
types >"$package/types.log" 2>&1 &
types=$!
failed=0
"$python" -m pytest "$@" || failed=$?
wait $types || failed=$?
cat "$package/types.log"
exit $failed
