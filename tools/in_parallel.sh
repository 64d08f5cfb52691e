#!/usr/bin/env bash
# Runs shell commands at the same time. Prints the output of the first command at once. The output of each other
# command is printed when the command has ended, in the order of the arguments. If a command fails, the script fails
# after all commands have ended. A command that has not ended after its limit is killed, and has failed. A signal ends
# all commands.
#
#   tools/in_parallel.sh COMMAND...     each COMMAND is one argument
set -euo pipefail

[ $# -gt 0 ] || {
    sed -n '2,/^set/{/^#/s/^# \{0,1\}//p}' "$0" >&2
    exit 2
}
# Each limit is several times the time that a command takes on 2 cores. The first limit is longer, because the first command can be
# all test programs.
limits=(60m)
for _ in "${@:2}"; do
    limits+=(25m)
done
logs=$(mktemp -d)
jobs=()
# Each job has its own process group, which is ended with this script.
set -m
trap 'for job in "${jobs[@]}"; do kill -- "-$job" 2>/dev/null || true; done; rm -rf "$logs"' EXIT
trap 'exit 130' INT TERM
run() {
    exec timeout --kill-after=10 "${limits[${#jobs[@]}]}" bash -c "$1" 2>&1 </dev/null
}
run "$1" &
jobs+=($!)
for command in "${@:2}"; do
    run "$command" >"$logs/${#jobs[@]}" &
    jobs+=($!)
done

failed=()
for index in "${!jobs[@]}"; do
    status=0
    wait "${jobs[$index]}" || status=$?
    [ "$index" -eq 0 ] || cat "$logs/$index"
    # `timeout` returns 124 after SIGTERM and 137 after SIGKILL.
    case $status in
    0) ;;
    124 | 137) failed+=("${*:$index+1:1} (status $status: probably it had not ended after ${limits[$index]})") ;;
    *) failed+=("${*:$index+1:1}") ;;
    esac
done
for command in "${failed[@]+"${failed[@]}"}"; do
    echo "failed: $command" >&2
done
[ ${#failed[@]} -eq 0 ]
