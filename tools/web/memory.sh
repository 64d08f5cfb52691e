#!/usr/bin/env bash
# Tests that a long stream, 4 GiB unless stated, is encrypted and decrypted in at most 100 MiB of memory, in Node. Takes a few minutes.
#
#   tools/web/memory.sh PACKAGE [MIB]       PACKAGE: the folder of tools/web/build.sh, MIB: the length of the stream
set -euo pipefail

[ $# -gt 0 ] || {
    sed -n '2,4s/^# \{0,1\}//p' "$0" >&2
    exit 2
}
LOCKSTEP_WEB=$(cd "$1" && pwd)
export LOCKSTEP_WEB LOCKSTEP_WEB_MIB=${2:-4096}
exec node --test "$(dirname "$0")/../../interfaces/web/test/memory.test.js"
