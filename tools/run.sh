#!/usr/bin/env bash
# The main job on a real file: encrypts it, decrypts it, compares, and tells device and rate.
#
#   tools/run.sh LOCKSTEP [FILE]        without FILE: 512 MiB of random bytes, in memory if there is a tmpfs with room
set -euo pipefail

lockstep=$1
file=${2:-}
place=${TMPDIR:-/tmp}
# A disk would be measured instead of us. Three copies of the file are made.
if [ -z "$file" ] && [ "$(df --output=avail -k /dev/shm 2>/dev/null | tail -n 1)" -gt $((2 << 20)) ] 2>/dev/null; then
    place=/dev/shm
fi
folder=$(mktemp -d "$place/lockstep-run.XXXXXX")
trap 'rm -rf "$folder"' EXIT

if [ -z "$file" ]; then
    file=$folder/random
    head -c $((512 << 20)) /dev/urandom >"$file"
fi
[ -f "$file" ] || {
    echo "run: $file is not a file" >&2
    exit 2
}
size=$(stat -c %s "$file")

"$lockstep" devices
"$lockstep" keygen -o "$folder/key"

# Seconds that a command takes.
seconds() {
    local start end
    start=$(date +%s%N)
    "$@"
    end=$(date +%s%N)
    took=$((end - start))
}
rate() {
    awk -v bytes="$size" -v ns="$took" 'BEGIN { printf "%.2f s, %.2f GB/s", ns / 1e9, bytes / (ns > 0 ? ns : 1) }'
}

echo
echo "$file: $size bytes"
# What the work takes, and what it takes with the writing of new files.
seconds "$lockstep" encrypt -q -k "$folder/key" "$file" >/dev/null
echo "encrypt   $(rate), to /dev/null"
seconds "$lockstep" encrypt -q -k "$folder/key" "$file" -o "$folder/encrypted"
echo "encrypt   $(rate)"
seconds "$lockstep" decrypt -q -k "$folder/key" "$folder/encrypted" -o "$folder/decrypted"
echo "decrypt   $(rate)"
cmp "$file" "$folder/decrypted"
echo "the same bytes came back"
