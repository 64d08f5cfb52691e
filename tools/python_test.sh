#!/usr/bin/env bash
# Tests the Python package of interfaces/python: its types by mypy and pyright, and its behaviour by pytest.
#
#   tools/python_test.sh [--cluster|--suites] EXTENSION [ARGUMENT...]    EXTENSION: liblockstep_lab_python.so; ARGUMENT...: for pytest
#
# With --cluster, runs the tests of tests/cluster instead, which need Ray. Ray ends the process of the tests with status 1 if its server
# (gcs_server) does not answer for a minute. If the process ends with this status and without a file of results, the end of the server's
# log is printed, and the tests run once more. With --suites, runs the tests of tests/suites instead, which fsspec, pyarrow and zarr publish.
#
# The package is put together under the build folder, as in a wheel. The packages that the tests need are installed in a virtual
# environment there; if that is not possible, this prints NOT TESTED and succeeds, or fails if the environment variable CI is set.
set -euo pipefail

folder=
case ${1:-} in
    --cluster | --suites)
        folder=${1#--}
        shift
        ;;
esac
cluster=
[ "$folder" != cluster ] || cluster=cluster
[ $# -gt 0 ] && [ -f "$1" ] || {
    sed -n '2,/^set/{/^#/s/^# \{0,1\}//p}' "$0" >&2
    exit 2
}
root=$(cd "$(dirname "$0")/.." && pwd)
extension=$(realpath "$1")
shift
if ! python=$("$root/tools/python_venv.py" $cluster); then
    echo "NOT TESTED: interfaces/python${folder:+/tests/$folder}" >&2
    [ -z "${CI:-}" ]
    exit
fi
package=$(realpath -m "${CARGO_TARGET_DIR:-$root/target}")/python-package${folder:+-$folder}
"$root/tools/python_package.sh" "$extension" "$package"
export PYTHONPATH=$package PYTHONDONTWRITEBYTECODE=1

cd "$root/interfaces/python"
# Warnings in the code of other projects are not treated as errors.
if [ "$folder" = cluster ]; then
    results=$package/results.xml
    RAY_TMPDIR=$(mktemp -d /tmp/lsXXXXXX)
    export RAY_TMPDIR
    trap 'rm -rf "$RAY_TMPDIR"' EXIT
    for attempt in 1 2; do
        rm -f "$results"
        status=0
        # pytest does not capture what Ray's library prints, and writes the file of results at its end.
        "$python" -m pytest -W default --capture=sys tests/cluster "$@" --junitxml="$results" || status=$?
        if [ $status != 1 ] || [ -e "$results" ]; then
            exit $status
        fi
        echo "attempt $attempt: Ray has ended the process of the tests; logs of its server:" >&2
        tail -n 30 "$RAY_TMPDIR"/*/ray/session_2*/logs/gcs_server.* >&2 || true
        pkill -KILL -f "$RAY_TMPDIR/" || true
        rm -rf "${RAY_TMPDIR:?}"/*
    done
    exit $status
elif [ "$folder" ]; then
    exec "$python" -m pytest -W default "tests/$folder" "$@"
fi
types() {
    "$python" -m mypy --cache-dir "$package/mypy"
    # Compares the stubs with the extension.
    "$python" -m mypy.stubtest --ignore-disjoint-bases --mypy-config-file pyproject.toml --allowlist tests/stubtest.txt lockstep._native
    # The first call of pyright's package downloads the program.
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
