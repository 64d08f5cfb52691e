#!/usr/bin/env bash
# Rehearses the GPU check on the emulator and on software devices, with small sizes: all parts, an interruption, and wrong results.
#
#   tools/gpu_check/rehearse.sh FOLDER      a folder of `tools/gpu_check.sh rehearsal`
#
# The figures mean nothing. Takes some minutes.
set -euo pipefail

[ $# -eq 1 ] || {
    sed -n '2,/^set/{/^#/s/^# \{0,1\}//p}' "$0" >&2
    exit 2
}
folder=$(realpath "$1")
temporary=$(mktemp -d)
trap 'rm -rf "$temporary"' EXIT
out=$temporary/out

fail() {
    echo "rehearsal: $*" >&2
    exit 1
}

# A program in place of nvidia-smi. It prints the clocks and the power that the rows must contain.
mkdir "$temporary/bin"
cat >"$temporary/bin/nvidia-smi" <<'END'
#!/bin/sh
case "$*" in
    *query-gpu*) while echo '1980, 2619, 312.45, 44'; do sleep 0.05; done ;;
    *) echo 'GPU 0: none, for a rehearsal' ;;
esac
END
chmod +x "$temporary/bin/nvidia-smi"
export PATH=$temporary/bin:$PATH
export PORTABLE=wgpu:software OPENGL=opengl:software QUICK=1 MEASURE_SECONDS=0.01 LARGEST=16384 PORTABLE_LARGEST=16384
export SUITES=it_does_something

# The measurement is interrupted, and then continues.
LIMIT_TOTAL=900 "$folder/run.sh" "$out" cuda:emu machine host messages &
running=$!
until [ "$(grep -c '"seconds"' "$out/messages.jsonl" 2>/dev/null || true)" -ge 5 ] 2>/dev/null; do
    kill -0 $running 2>/dev/null || fail 'the part messages ended early'
    sleep 0.1
done
kill $running
wait $running && fail 'an interrupted run succeeded'
[ -e "$out/host.json" ] && [ ! -e "$out/messages.json" ] || fail 'the states after an interruption are wrong'
before=$(grep '"seconds"' "$out/messages.jsonl")

code=0
LIMIT_TOTAL=1800 "$folder/run.sh" "$out" cuda:emu || code=$?
[ $code -eq 0 ] || fail "exit code $code"
case "$(grep '"seconds"' "$out/messages.jsonl")" in "$before"*) ;; *) fail 'rows were lost or measured again' ;; esac
for part in machine devices selftest suite rates host messages papers wgpu opengl openssl tensors carry-less peers; do
    grep -q '"state": "done"' "$out/$part.json" || fail "$part: $(grep '"state"' "$out/$part.json")"
    python3 -m json.tool "$out/$part.json" >/dev/null || fail "$part.json is no JSON"
done
grep -q '"sm_mhz":1980.0' "$out/rates.jsonl" || fail 'the rows have no clocks'
grep -q '"watts":312.45' "$out/rates.jsonl" || fail 'the rows have no power'

# The control: a device that copies wrong bytes must fail the check. Results that were complete before must be kept.
code=0
LOCKSTEP_TEST_FAULTS=copy:5 LIMIT_TOTAL=900 "$folder/run.sh" "$out" cuda:emu carry-less || code=$?
# The wrong copy can be a copy of data, of a tag or of a status. This depends on the number of copies before it.
[ $code -eq 1 ] && grep -qE 'WRONG|was not processed' "$out/carry-less.jsonl" || fail 'wrong results were not found'
grep -q '"state": "done"' "$out/rates.json" || fail 'a failure changed another part'
echo 'rehearsal: all parts passed'
