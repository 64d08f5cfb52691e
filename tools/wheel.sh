#!/usr/bin/env bash
# Builds the Python package as a wheel, and tests it: installed in a clean virtual environment, with nothing else.
#
#   tools/wheel.sh FOLDER              one wheel for Python 3.11 and later; earlier wheels in FOLDER are removed
#   tools/wheel.sh FOLDER PYTHON       a wheel for this free-threaded Python
set -euo pipefail

[ $# -eq 1 ] || [ $# -eq 2 ] || {
    sed -n '2,/^set/{/^#/s/^# \{0,1\}//p}' "$0" >&2
    exit 2
}
# In bytes: the limit for a wheel without machine code for GPUs.
most=$((8 << 20))
root=$(cd "$(dirname "$0")/.." && pwd)
folder=$(realpath -m "$1")
python=$("$root/tools/python_venv.py")
options=(--release --manifest-path "$root/crates/python/Cargo.toml" --out "$folder")
tested=$python
if [ $# -eq 2 ]; then
    command -v "$2" >/dev/null || {
        echo "wheel: no program $2: install a free-threaded Python, and name it by PYTHON=path" >&2
        exit 1
    }
    tested=$2
    # Free-threaded Pythons before 3.15 have no stable ABI.
    options+=(--interpreter "$2" --no-default-features --features cuda)
    rm -f "$folder"/lockstep_aes-*t-*.whl
else
    rm -f "$folder"/lockstep_aes-*-abi3-*.whl
fi
"$python" -m maturin build "${options[@]}"
wheel=$(ls -t "$folder"/lockstep_aes-*.whl | head -n 1)
size=$(stat -c %s "$wheel")
[ "$size" -le $most ] || {
    echo "wheel: $wheel has $size bytes, more than $most" >&2
    exit 1
}

clean=$(mktemp -d)
trap 'rm -rf "$clean"' EXIT
"$tested" -m venv "$clean/venv"
"$clean/venv/bin/python" -m pip --disable-pip-version-check --quiet install --no-index --no-deps "$wheel"
cd "$clean"
venv/bin/python -W error - <<'END'
import lockstep

key = lockstep.generate_key()
cipher = lockstep.aead.AESGCM(key)
data = bytes(3 << 20)
assert cipher.decrypt(bytes(12), cipher.encrypt(bytes(12), data, None), None) == data
with lockstep.open("file", "wb", key=key) as file:
    file.write(data)
with lockstep.open("file", key=key) as file:
    assert file.read() == data
assert [device.name for device in lockstep.devices()][0] == "cpu"
# A wheel has no devices for tests.
for device in ("cuda:emu", "wgpu:software", "spu"):
    try:
        lockstep.use(device)
    except ValueError:
        continue
    raise SystemExit(f"the wheel has the device {device}")
END
venv/bin/python -m lockstep --version
echo "$wheel, $((size >> 10)) KiB"
