#!/usr/bin/env python3
"""Tests OpenSSL with its AES on a device, through the provider, like the engines for GeForce in the literature.

    tools/provider-test/device.py LOCKSTEP_SO

The devices are cuda:emu, opengl:software and qpu, which the module of `make provider-lab` has, or the one named by
LOCKSTEP_TEST_DEVICE, such as cuda:0. If LOCKSTEP_TEST_OPTIONAL is set, nginx and curl may be missing. `openssl enc` encrypts and decrypts in every
mode on the device and, for comparison, with the default provider. With CUDA, nginx serves an object over TLS: its workers are forked after the
provider is loaded, and a driver or the emulator refuses to work in the child of a process that has started it. On simulated devices,
`openssl speed` measures ECB and GCM. The settings are the defaults, except for real devices, which get short calls only on request. The trace
proves that the device did all work that it supports, and that the CPU did not repeat it.
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
# `openssl enc` passes 4096 bytes at a time, less than the default threshold of real devices.
REAL = {"threshold": "16", "ahead": "off"}
MODES = ("ecb", "cbc", "cfb", "cfb8", "ofb", "ctr")
# The modes that each kind of device encrypts and decrypts. The CPU does the rest. OpenGL has no kernels for serial passes,
# and only CUDA has the passes of CFB8.
SUPPORTED = {
    "cuda": (MODES, MODES),
    "opengl": (("ecb", "ctr"), ("ecb", "ctr", "cbc", "cfb")),
    "qpu": (("ecb", "cbc", "cfb", "ofb", "ctr"), ("ecb", "cbc", "cfb", "ofb", "ctr")),
}
SIZE = 40_000
# Options of curl for records of CBC and of GCM.
SUITES = (["--tls-max", "1.2", "--ciphers", "ECDHE-RSA-AES256-SHA384"], ["--tlsv1.3"])
OBJECT = 150_000


def settings(device):
    return REAL if re.search(r":\d", device) else {}


def variables(device):
    return {f"LOCKSTEP_{name.upper()}": value for name, value in settings(device).items()} | {"LOCKSTEP_DEVICE": device}


def totals(trace, pattern):
    """The sum of the bytes of all processes in lines of the trace."""
    return sum(int(match[1]) for line in trace.lines() if (match := re.search(pattern, line)))


def worked(trace, device):
    """The bytes of the work of the device, without self-tests."""
    return totals(trace, rf": (\d+) bytes on {re.escape(device)}$")


def enc(test, openssl, device):
    data = random.Random(4).randbytes(SIZE)
    plain = test.write("plain", data)
    for bits in (128, 256):
        for mode in MODES:
            name = f"enc -aes-{bits}-{mode} on {device}"
            options = ["-K", KEY[: bits // 4]] + ([] if mode == "ecb" else ["-iv", IV])
            common_part = [openssl, "enc", f"-aes-{bits}-{mode}", *options]
            theirs = test.run(*common_part, "-in", plain, subject=False).stdout
            trace, more = test.trace(), variables(device)
            ours = test.run(*common_part, "-in", plain, trace=trace, **more)
            if test.ran(ours, name):
                test.check(ours.stdout == theirs, name, "the ciphertexts differ")
            back = test.run(*common_part, "-d", "-in", test.write("sealed", theirs), trace=trace, **more)
            if test.ran(back, f"{name}, decrypted"):
                test.check(back.stdout == data, f"{name}, decrypted", "the plaintexts differ")
            done = worked(trace, device)
            directions = sum(mode in modes for modes in SUPPORTED[device.split(":")[0]])
            # ECB and CBC add a block of padding, which the device also processes.
            good = directions * SIZE <= done <= directions * (SIZE + 16)
            test.check(good, f"{name}: the device did what it supports", f"it did {done} bytes in {directions} directions")
            # Once in each of the two processes, which make several calls.
            stated = sum("; the CPU does this work" in line for line in trace.lines())
            test.check(stated == 2 - directions, f"{name}: work of the CPU is stated in the trace", f"{stated} times")
            said = sum(output.stderr.count(b"; the CPU does this work") for output in (ours, back))
            expected = 0 if settings(device) else 2 - directions
            test.check(said == expected, f"{name}: work of the CPU is stated on standard error", f"{said} times")
            wrong = [line for line in trace.lines() if "wrong result" in line]
            test.check(not wrong, f"{name}: results are right", " ".join(wrong[:1]))


def speed(test, openssl, device):
    """Measurements with the default sizes, from 16 bytes a call. The draws of OpenSSL's random generator stay on the CPU."""
    for mode in ("ECB", "GCM"):
        name, trace = f"speed of {mode} on {device}", test.trace()
        command = [openssl, "speed", "-seconds", "1", "-elapsed", "-evp", f"aes-128-{mode}"]
        output = test.ran(test.run(*command, trace=trace, **variables(device)), name)
        test.check(output and f"AES-128-{mode}".encode() in output, f"{name}: a rate")
        done, called = worked(trace, device), totals(trace, rf"AES-128-{mode} encrypt: (\d+) bytes in")
        test.check(done == called > 0, f"{name}: the device did all", f"{done} of {called} bytes")


def nginx(test, openssl, device):
    """An object over TLS, by workers that are forked after the provider is loaded."""
    curl = common.program("curl")
    key, certificate = common.make_certificate(test, openssl)
    data = random.Random(5).randbytes(OBJECT)
    documents = test.path("documents")
    os.mkdir(documents)
    test.write("documents/object", data)
    os.mkdir(test.path("upload"))
    if os.geteuid() == 0:
        shutil.chown(test.path("upload"), servers.user())
    test.subject_conf = test.configuration("device.cnf", device=device, **settings(device))
    trace = test.trace()
    values = {"folder": test.folder, "documents": documents, "key": key, "certificate": certificate}
    values.update(tls12=servers.TLS12, tls13=servers.TLS13)
    running = servers.started(test, servers.nginx, values, trace)
    if not running:
        return
    with running:
        address = f"https://127.0.0.1:{values['port']}/object"
        for options in SUITES:
            command = [curl, "-sS", "--cacert", certificate, *options, address]
            output = test.ran(test.run(*command, subject=False), f"nginx on {device}")
            test.check(output == data, f"nginx on {device}, {' '.join(options)}: the object")
        running.running.send_signal(signal.SIGQUIT)
        running.end()
    done = worked(trace, device)
    test.check(done >= len(SUITES) * OBJECT, f"nginx on {device}: the device did it", f"it did {done} bytes")


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
            if not settings(device):
                speed(test, openssl, device)
        return test.finish()


if __name__ == "__main__":
    sys.exit(main())
