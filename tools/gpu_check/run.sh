#!/usr/bin/env bash
# Runs the parts of the GPU check, from the folder that `tools/gpu_check.sh build` made. The script needs bash, coreutils, sed and grep. A
# part that needs another program prints NOT TESTED if this program is missing.
#
#   FOLDER/run.sh OUT [DEVICE] [PART...]       DEVICE: cuda:0
#
# Each part writes OUT/PART.json (state, command lines, seconds, exit codes), OUT/PART.log and its results, OUT/PART.*. Without a PART,
# all parts run that are not complete in OUT, in the order of the list below: a part that failed or was interrupted runs again. A
# complete part runs again if it is named; its earlier files go to OUT/earlier. So do the files of another build or device. Measurements
# continue where they were interrupted.
#
# LIMIT_TOTAL (560) is the number of seconds for this call: a part that does not fit is left for the next call. The other variables are
# listed in parts.sh. Exit code: 0 all parts are complete; 1 no part is left for the next call, and a part failed;
# 2 OUT cannot be written, or wrong arguments; 3 parts are left for the next call.
set -uo pipefail

# The parts in their order. Each has a name, the number of seconds that must be left when it begins, and its limit in
# seconds.
PARTS='
machine     20  90
devices     15  90
selftest    30 180
suite      100 420
sanitizer   60 300
rates       60 500
host        40 240
messages    60 420
papers      60 300
wgpu        60 300
opengl      60 420
openssl     30 180
tensors     60 300
carry-less  40 180
peers       60 240
'

here=$(cd "$(dirname "$0")" && pwd)
limit_total=${LIMIT_TOTAL:-560}
build=$(cat "$here/build" 2>/dev/null || echo unknown)
part=''
group=''

usage() {
    sed -n '2,/^set/{/^#/s/^# \{0,1\}//p}' "$0" >&2
    exit 2
}

# Prints the argument as a JSON string. Control characters become spaces; command lines contain none.
quoted() {
    printf '"%s"' "$(printf %s "$1" | tr '\000-\037' ' ' | sed 's/\\/\\\\/g; s/"/\\"/g')"
}

cannot_write() {
    echo "FAILED: $1 cannot be written: is the disk full, or is the folder read-only?" >&2
    exit 2
}

# Renames a complete file to its final name.
publish() {
    mv -f "$1" "$2" || cannot_write "$2"
}

state_of() {
    sed -n 's/^ *"state": "\(.*\)",$/\1/p' "$out/$1.json" 2>/dev/null
}

# True if the files of a part belong to this build and to this device.
is_of_this_run() {
    grep -q -x -F "  \"build\": $(quoted "$build")," "$out/$1.json" 2>/dev/null &&
        grep -q -x -F "  \"device\": $(quoted "$device")," "$out/$1.json"
}

is_complete() {
    is_of_this_run "$1" || return 1
    case "$(state_of "$1")" in done | 'not tested') true ;; *) false ;; esac
}

# Moves the files of the part $1 to OUT/earlier.
to_earlier() {
    local earlier
    earlier=$out/earlier/$(date -u +%F-%H%M%S)
    mkdir -p "$earlier" && mv -f "$out/$1".* "$earlier/" || cannot_write "$earlier"
}

# Writes OUT/PART.json. The arguments are the state, the start and the seconds. The steps are in the file that parts.sh wrote.
describe() {
    local state=$1 start=$2 seconds=$3 steps=$out/.$part.steps file separator=''
    {
        printf '{\n  "part": %s,\n  "state": %s,\n' "$(quoted "$part")" "$(quoted "$state")"
        printf '  "build": %s,\n  "device": %s,\n' "$(quoted "$build")" "$(quoted "$device")"
        printf '  "start": %s,\n  "seconds": %d,\n' "$(quoted "$start")" "$seconds"
        printf '  "steps": [\n'
        [ ! -e "$steps" ] || sed '$!s/$/,/; s/^/    /' "$steps"
        printf '  ],\n  "results": ['
        for file in "$out/$part".*; do
            case "$file" in
                *.json.part | *.log.part | "$out/$part.json" | "$out/$part.log") continue ;;
            esac
            [ ! -e "$file" ] || { printf '%s%s' "$separator" "$(quoted "$(basename "$file")")" && separator=', '; }
        done
        printf '],\n  "log": %s\n}\n' "$(quoted "$part.log")"
    } 2>/dev/null >"$out/$part.json.part" || cannot_write "$out/$part.json"
    publish "$out/$part.json.part" "$out/$part.json"
    rm -f "$steps"
}

# Ends all processes that a part has left running.
end_group() {
    [ -z "$group" ] || kill -"$1" -- "-$group" 2>/dev/null || true
}

interrupted() {
    trap '' TERM INT HUP
    end_group TERM
    sleep 0.5
    end_group KILL
    echo "interrupted: $part is not complete and runs again" >&2
    exit 143
}

# Runs one part. The arguments are its name and its limit in seconds.
run() {
    local limit=$2 begun=$SECONDS start guard=() rc
    part=$1
    start=$(date -u +%FT%TZ)
    # setpriv ends the part together with this script, even if this script is killed.
    ! command -v setpriv >/dev/null || guard=(setpriv --pdeathsig TERM)
    rm -f "$out/.$part.steps"
    echo "$part on $device, $start, at most $limit s" 2>/dev/null >"$out/$part.log.part" || cannot_write "$out/$part.log"
    # `timeout` makes a process group.
    PART_LIMIT=$limit "${guard[@]}" timeout -k 5 "$limit" bash "$here/parts.sh" "$part" "$out" "$device" \
        >>"$out/$part.log.part" 2>&1 </dev/null &
    group=$!
    wait "$group"
    rc=$?
    end_group KILL
    group=''
    local seconds=$((SECONDS - begun)) state
    case $rc in
        0) state='done' ;;
        77) state='not tested' ;;
        3) state='unfinished' ;;
        124 | 137)
            state='failed'
            # The part ended at the limit of the call. Its own limit was not reached, so it has not failed.
            [ "$limit" -ge "$3" ] || state='unfinished'
            echo "FAILED: the part was ended after $limit seconds" >>"$out/$part.log.part"
            ;;
        *) state='failed' ;;
    esac
    publish "$out/$part.log.part" "$out/$part.log"
    describe "$state" "$start" "$seconds"
    echo "$part: $state, $seconds s"
    case "$state" in
        failed) grep -a -m 5 '^FAILED' "$out/$part.log" || tail -n 5 "$out/$part.log" ;;
        'not tested') grep -a '^NOT TESTED' "$out/$part.log" ;;
    esac
}

summary() {
    local name state
    echo
    for name in $(printf '%s' "$PARTS" | sed -n 's/^\([a-z-]*\) .*/\1/p'); do
        state=$(state_of "$name")
        printf '%-11s %s\n' "$name" "${state:-not run}"
    done | tee "$out/summary.txt.part"
    publish "$out/summary.txt.part" "$out/summary.txt"
    ! grep -q -e ' unfinished$' -e ' not run$' "$out/summary.txt" || return 3
    ! grep -q ' failed$' "$out/summary.txt" || return 1
    # If the summary could not be written completely, the call fails.
    [ "$(wc -l <"$out/summary.txt")" -ge 15 ] || cannot_write "$out/summary.txt"
}

[ $# -ge 1 ] || usage
out=$1
device=${2:-cuda:0}
shift
[ $# -eq 0 ] || shift
named=" $* "
for name in "$@"; do
    printf '%s' "$PARTS" | grep -q "^$name " || { echo "no part $name: see run.sh" >&2 && exit 2; }
done
mkdir -p "$out" 2>/dev/null && out=$(cd "$out" && pwd) && : 2>/dev/null >"$out/.writable" || {
    echo "$out cannot be written: name another folder" >&2
    exit 2
}
rm -f "$out/.writable"
trap interrupted TERM INT HUP

while read -r name least limit <&3; do
    [ -n "$name" ] || continue
    if [ "$named" != '  ' ]; then
        [[ "$named" == *" $name "* ]] || continue
        ! is_complete "$name" || to_earlier "$name"
    elif is_complete "$name"; then
        echo "$name: complete in an earlier call"
        continue
    fi
    # Measurements of another build or device are moved away, so that they are not continued.
    [ ! -e "$out/$name.json" ] || is_of_this_run "$name" || to_earlier "$name"
    left=$((limit_total - SECONDS))
    if [ "$left" -lt "$least" ]; then
        echo "$name: left for the next call: it needs $least s, and $left s are left"
        continue
    fi
    run "$name" $((left < limit ? left : limit)) "$limit"
done 3<<<"$PARTS"
summary
