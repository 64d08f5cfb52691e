#!/usr/bin/env bash
# Real programs on our provider, unmodified, by configuration alone: openssl, nginx, Apache httpd, Python, and a program
# in C that begins and ends in every way. Each script can be run alone and says what it does with -h.
#
#   tools/provider-test/all.sh LOCKSTEP_SO LOCKSTEP_COMMAND
#   LOCKSTEP_TEST_SUBJECT=default tools/provider-test/all.sh      checks the scripts themselves on the default provider
#
# Installs what it needs, if it may. Fails if anything failed or is missing; nothing is skipped.
set -euo pipefail

if [ "${LOCKSTEP_TEST_SUBJECT:-lockstep}" != default ] && [ $# -ne 2 ]; then
    sed -n '2,/^set/{/^#/s/^# \{0,1\}//p}' "$0" >&2
    exit 2
fi
here=$(cd "$(dirname "$0")" && pwd)
"$here/../setup.sh" programs

# Two at a time: each waits for other programs most of its time.
logs=$(mktemp -d)
arguments=("$@")
run() {
    for script in "$@"; do
        "$here/$script.py" "${arguments[@]}" && touch "$logs/$script.passed"
    done
}
# With a process group of its own, to be ended with this script.
set -m
run openssl device >"$logs/openssl" 2>&1 &
background=$!
trap 'kill -- "-$background" 2>/dev/null || true; rm -rf "$logs"' EXIT
run lifecycle python_ssl servers || true
wait "$background" || true
cat "$logs/openssl"

failed=()
for script in lifecycle openssl python_ssl servers device; do
    [ -e "$logs/$script.passed" ] || failed+=("$script")
done
[ ${#failed[@]} -eq 0 ] || {
    echo "real programs: failed: ${failed[*]}" >&2
    exit 1
}
