#!/usr/bin/env bash
# Draws the pictures of docs/modes.md: a penguin, and its encryption in each mode under published keys.
#
#   tools/mode_pictures.sh LOCKSTEP
set -euo pipefail

lockstep=${1:?"which program? give the path of lockstep"}
pictures=$(dirname "$0")/../docs/modes
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${CARGO:-cargo}" run -q --release --locked -p lockstep-cli --example penguin -- "$folder"
cp "$folder/penguin.png" "$pictures/penguin.png"
for mode in ecb cbc ctr xts; do
    key=$folder/key
    [ $mode != xts ] || key=$folder/key-xts
    "$lockstep" picture --mode $mode --key-file "$key" --force "$folder/penguin.png" "$pictures/$mode.png"
done
