#!/usr/bin/env bash
# Runs unmodified programs on our provider by configuration alone: openssl, nginx, Apache httpd, Python, and a program
# in C that starts and ends in every way. Each script can be run alone; -h prints its description.
#
#   tools/provider-test/all.sh LOCKSTEP_SO LOCKSTEP_COMMAND [SCRIPT...]     SCRIPT: openssl, device, lifecycle, python_ssl, wheels, servers
#   LOCKSTEP_TEST_SUBJECT=default tools/provider-test/all.sh      runs the scripts on the default provider, to check them
#
# Installs missing programs if it is permitted to. Fails if anything failed or is missing; nothing is skipped.
set -euo pipefail

if [ "${LOCKSTEP_TEST_SUBJECT:-lockstep}" != default ] && [ $# -lt 2 ]; then
    sed -n '2,/^set/{/^#/s/^# \{0,1\}//p}' "$0" >&2
    exit 2
fi
here=$(cd "$(dirname "$0")" && pwd)
"$here/../setup.sh" programs

# Two scripts run at the same time, because each spends most of its time waiting for other programs.
logs=$(mktemp -d)
arguments=("${@:1:2}")
scripts=("${@:3}")
[ ${#scripts[@]} -gt 0 ] || scripts=(openssl device lifecycle python_ssl wheels servers)
run() {
    for script in "$@"; do
        [[ " ${scripts[*]} " == *" $script "* ]] || continue
        "$here/$script.py" "${arguments[@]}" && touch "$logs/$script.passed"
    done
}
# The background job has its own process group, so that this script can end the whole group.
set -m
run openssl device >"$logs/openssl" 2>&1 &
background=$!
trap 'kill -- "-$background" 2>/dev/null || true; rm -rf "$logs"' EXIT
run lifecycle python_ssl wheels servers || true
wait "$background" || true
cat "$logs/openssl"

failed=()
for script in "${scripts[@]}"; do
    [ -e "$logs/$script.passed" ] || failed+=("$script")
done
[ ${#failed[@]} -eq 0 ] || {
    echo "real programs: failed: ${failed[*]}" >&2
    exit 1
}
