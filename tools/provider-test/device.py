#!/usr/bin/env python3
"""Tests OpenSSL with its AES on a device, through the provider, like the engines for GeForce in the literature.

    tools/provider-test/device.py LOCKSTEP_SO

The devices are cuda:emu, opengl:software and qpu, which the module of `make provider-lab` has, or the one named by
LOCKSTEP_TEST_DEVICE, such as cuda:0. If LOCKSTEP_TEST_OPTIONAL is set, nginx and curl may be missing. `openssl enc` encrypts and decrypts in every
mode on the device and, for comparison, with the default provider. With CUDA, nginx serves an object over TLS. On qpu, `openssl speed` measures
ECB. The counters of the device in the trace prove that the device did the work, and that the CPU did not repeat it.
"""

import sys

sys.dont_write_bytecode = True

import os
import random
import re
import shutil
import signal

import common
import servers

KEY = "00112233445566778899aabbccddeeff0123456789abcdeffedcba9876543210"
IV = "f0e0d0c0b0a09080706050403020fffe"
# `openssl enc` passes 4096 bytes at a time. CBC decryption keeps the last block of them for the next call.
SETTINGS = {"threshold": "2048", "ahead": "off"}
MODES = ("ecb", "cbc", "cfb", "cfb8", "ofb", "ctr")
# The modes that each kind of device encrypts and decrypts. The CPU does the rest. OpenGL has no kernels for serial passes,
# and only CUDA has the passes of CFB8.
SUPPORTED = {
    "cuda": (MODES, MODES),
    "opengl": (("ecb", "ctr"), ("ecb", "ctr", "cbc", "cfb")),
    "qpu": (("ecb", "cbc", "cfb", "ofb", "ctr"), ("ecb", "cbc", "cfb", "ofb", "ctr")),
}
SIZE = 40_000
# The device processes each CBC record; the CPU processes the records of GCM (docs/provider.md).
SUITE, ENTRY = "ECDHE-RSA-AES256-SHA384", "chain_encrypt"
OBJECT = 150_000


def device_bytes(trace, device):
    """Bytes of data that each entry point, or kernel, of the device has worked on."""
    found = {}
    for line in trace.lines():
        match = re.search(rf"{re.escape(device)} ([\w/-]+): (\d+) bytes in \d+ launches", line)
        if match:
            found[match[1]] = found.get(match[1], 0) + int(match[2])
    return found


def enc(test, openssl, device):
    data = random.Random(4).randbytes(SIZE)
    plain = test.write("plain", data)
    for bits in (128, 256):
        for mode in MODES:
            name = f"enc -aes-{bits}-{mode} on {device}"
            options = ["-K", KEY[: bits // 4]] + ([] if mode == "ecb" else ["-iv", IV])
            common_part = [openssl, "enc", f"-aes-{bits}-{mode}", *options]
            theirs = test.run(*common_part, "-in", plain, subject=False).stdout
            trace = test.trace()
            more = {f"LOCKSTEP_{name.upper()}": value for name, value in SETTINGS.items()} | {"LOCKSTEP_DEVICE": device}
            ours = test.run(*common_part, "-in", plain, trace=trace, **more)
            if test.ran(ours, name):
                test.check(ours.stdout == theirs, name, "the ciphertexts differ")
            back = test.run(*common_part, "-d", "-in", test.write("sealed", theirs), trace=trace, **more)
            if test.ran(back, f"{name}, decrypted"):
                test.check(back.stdout == data, f"{name}, decrypted", "the plaintexts differ")
            done = sum(device_bytes(trace, device).values())
            directions = sum(mode in modes for modes in SUPPORTED[device.split(":")[0]])
            # The bytes in each direction, except the last bytes, which are less than a call of 4096 bytes; and those of the self-tests.
            if directions:
                test.check(done >= directions * (SIZE - 8192), f"{name}: the device did it", f"it did {done} bytes")
            else:
                test.check(done < SIZE - 8192, f"{name}: the CPU did it", f"the device did {done} bytes")
            wrong = [line for line in trace.lines() if "wrong result" in line]
            test.check(not wrong, f"{name}: results are right", " ".join(wrong[:1]))


def speed(test, openssl, device):
    """A measurement as the thesis about the QPUs made it: ECB, with 16384 bytes a call."""
    trace = test.trace()
    more = {f"LOCKSTEP_{name.upper()}": value for name, value in SETTINGS.items()} | {"LOCKSTEP_DEVICE": device}
    command = [openssl, "speed", "-seconds", "1", "-bytes", "16384", "-elapsed", "-evp", "aes-128-ecb"]
    output = test.ran(test.run(*command, trace=trace, **more), f"speed on {device}")
    test.check(output and b"AES-128-ECB" in output, f"speed on {device}: a rate")
    done = sum(device_bytes(trace, device).values())
    test.check(done >= 16384, f"speed on {device}: the device did it", f"it did {done} bytes")


def nginx(test, openssl, device):
    """An object over TLS 1.2."""
    curl = common.program("curl")
    key, certificate = common.make_certificate(test, openssl)
    data = random.Random(5).randbytes(OBJECT)
    documents = test.path("documents")
    os.mkdir(documents)
    test.write("documents/object", data)
    os.mkdir(test.path("upload"))
    if os.geteuid() == 0:
        shutil.chown(test.path("upload"), servers.user())
    test.subject_conf = test.configuration("device.cnf", device=device, **SETTINGS)
    trace = test.trace()
    values = {"folder": test.folder, "documents": documents, "key": key, "certificate": certificate}
    values.update(tls12=servers.TLS12, tls13=servers.TLS13)
    running = servers.started(test, servers.nginx, values, trace)
    if not running:
        return
    with running:
        address = f"https://127.0.0.1:{values['port']}/object"
        command = [curl, "-sS", "--cacert", certificate, "--tls-max", "1.2", "--ciphers", SUITE, address]
        output = test.ran(test.run(*command, subject=False), f"nginx on {device}")
        test.check(output == data, f"nginx on {device}: the object")
        running.running.send_signal(signal.SIGQUIT)
        running.end()
    done = device_bytes(trace, device)
    test.check(done.get(ENTRY, 0) >= OBJECT, f"nginx on {device}: the device did it", str(done))


def main():
    test = common.Test(__doc__, "device")
    named = os.environ.get("LOCKSTEP_TEST_DEVICE")
    if not test.proof:
        print("device on the default provider: it has none, nothing to check")
        return 0
    with test:
        openssl = common.program("openssl")
        for device in [named] if named else ["cuda:emu", "opengl:software", "qpu"]:
            enc(test, openssl, device)
            if device.startswith("cuda"):
                if os.environ.get("LOCKSTEP_TEST_OPTIONAL") and not (shutil.which("nginx") and shutil.which("curl")):
                    print("NOT TESTED: nginx on the device: nginx or curl is not installed")
                else:
                    nginx(test, openssl, device)
            if device.startswith("qpu"):
                speed(test, openssl, device)
        return test.finish()


if __name__ == "__main__":
    sys.exit(main())
