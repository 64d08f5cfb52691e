"""Uses the Python package that is installed: one call of each kind, in the folder in which it is started.

    python3 wheel_check.py

tools/wheel.sh runs it with the new wheel and nothing else, natively or under QEMU. The tests of the package are in
interfaces/python/tests.
"""

import lockstep

# Test case 14 of the GCM specification (McGrew, Viega): zeros, AES-256.
KNOWN = "cea7403d4d606b6e074ec5d3baf39d18d0d1c8a799996bf0265b98b5d48ab919"
assert lockstep.aead.AESGCM(bytes(32)).encrypt(bytes(12), bytes(16), None).hex() == KNOWN

key = lockstep.generate_key()
cipher = lockstep.aead.AESGCM(key)
data = bytes(3 << 20)
assert cipher.decrypt(bytes(12), cipher.encrypt(bytes(12), data, None), None) == data
try:
    cipher.decrypt(bytes(12), bytes(32), None)
except lockstep.InvalidTag:
    pass
else:
    raise SystemExit("a false tag is accepted")

with lockstep.open("file", "wb", key=key) as file:
    file.write(data)
with lockstep.open("file", key=key) as file:
    assert file.read() == data

assert [device.name for device in lockstep.devices()][0] == "cpu"
results = lockstep.selftest()
assert results and all(result.passed for result in results), results
# A wheel contains no simulated devices. The messages state how to get them.
for device in ("cuda:emu", "wgpu:software", "spu"):
    try:
        lockstep.use(device)
    except ValueError as error:
        assert device == "wgpu:software" or "make lab" in str(error), error
        continue
    raise SystemExit(f"the wheel has the device {device}")
