#!/usr/bin/env bash
# Encrypts, decrypts and compares a file, and prints the device and the rate.
#
#   tools/run.sh LOCKSTEP [FILE]        without FILE: 512 MiB of random bytes, on a tmpfs if there is one with enough room
set -euo pipefail

lockstep=$1
file=${2:-}
place=${TMPDIR:-/tmp}
# The file is not on a disk, because otherwise the speed of the disk would be measured. The script writes three copies of the file.
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

# Runs a command and sets `took` to its time in nanoseconds.
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
# Encryption is measured twice: with the output to /dev/null, and with the output to a new file.
seconds "$lockstep" encrypt -q -k "$folder/key" "$file" >/dev/null
echo "encrypt   $(rate), to /dev/null"
seconds "$lockstep" encrypt -q -k "$folder/key" "$file" -o "$folder/encrypted"
echo "encrypt   $(rate)"
seconds "$lockstep" decrypt -q -k "$folder/key" "$folder/encrypted" -o "$folder/decrypted"
echo "decrypt   $(rate)"
cmp "$file" "$folder/decrypted"
echo "the same bytes came back"
