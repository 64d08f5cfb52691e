#!/usr/bin/env python3
"""Tests OpenSSL with its AES on a device, through the provider, like the engines for GeForce in the literature.

    tools/provider-test/device.py LOCKSTEP_SO

The devices are cuda:emu, opengl:software, qpu and spu, which the module of `make provider-lab` has, or the one named by
LOCKSTEP_TEST_DEVICE, such as cuda:0. If LOCKSTEP_TEST_OPTIONAL is set, nginx and curl may be missing. `openssl enc` encrypts and decrypts in its
modes on the device and, for comparison, with the default provider. Every mode of the provider runs through libcrypto (ciphers.py, in this folder)
on the device, on the CPU and with the default provider. A mode for which no table states what each device does is a failure. With CUDA,
nginx serves an object over TLS: its workers are forked after the provider is loaded, and a driver or the emulator refuses to work in the child of
a process that has started it. On simulated devices, `openssl speed` measures ECB and GCM. The settings are the defaults, except for real devices,
which get short calls only on request. The trace proves that the device did all work that it supports, and that the CPU did not repeat it.
"""

import sys

sys.dont_write_bytecode = True

import itertools
import os
import random
import re
import shutil
import signal

import common
import servers

CIPHERS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "ciphers.py")
KEY = "00112233445566778899aabbccddeeff0123456789abcdeffedcba9876543210"
IV = "f0e0d0c0b0a09080706050403020fffe"
# Settings of real devices. `openssl enc` passes 4096 bytes at a time, which is below their default threshold.
REAL = {"threshold": "16", "ahead": "off"}
# The modes for which `openssl enc` passes the data in pieces.
MODES = ("ecb", "cbc", "cfb", "cfb8", "cfb1", "ofb", "ctr")
SIZE = 40_000
# For each mode, how many times its passes process the data of a message. GHASH in GCM is not counted, because the CPU always
# computes it. Key wrap processes a block of 16 bytes 6 times for each 8 bytes, which is 12 times the data.
PASSES = {
    "ECB": 1, "CBC": 1, "CBC-CTS": 1, "CFB": 1, "CFB8": 1, "CFB1": 1, "OFB": 1, "CTR": 1, "XTS": 1, "GCM": 1, "OCB": 1,
    "CCM": 2, "GCM-SIV": 2, "SIV": 2, "WRAP": 12, "WRAP-PAD": 12, "WRAP-INV": 12, "WRAP-PAD-INV": 12,
}  # fmt: skip
# For each kind of device, the modes that it supports only in part or not at all, with the number of its passes in encryption and in
# decryption. The CPU does the rest. OpenGL has no kernels for serial passes. Only CUDA has kernels for CFB1, CFB8 and GCM-SIV.
LACKING = {
    "cuda": {},
    "opengl": {
        "CBC": (0, 1), "CBC-CTS": (0, 1), "CFB": (0, 1), "CFB8": (0, 0), "CFB1": (0, 0), "OFB": (0, 0), "CCM": (1, 1), "GCM-SIV": (0, 0),
        "SIV": (0, 0),
    },
    "qpu": {"CFB8": (0, 0), "CFB1": (0, 0), "GCM-SIV": (0, 0)},
    "spu": {"CFB8": (0, 0), "CFB1": (0, 0), "GCM-SIV": (0, 0), "XTS": (0, 0)},
}  # fmt: skip
# Options of curl: the first list selects records in CBC mode, and the second list selects records in GCM.
SUITES = (["--tls-max", "1.2", "--ciphers", "ECDHE-RSA-AES256-SHA384"], ["--tlsv1.3"])
OBJECT = 150_000


def settings(device):
    return REAL if re.search(r":\d", device) else {}


def variables(device):
    return {f"LOCKSTEP_{name.upper()}": value for name, value in settings(device).items()} | {"LOCKSTEP_DEVICE": device}


def totals(trace, pattern):
    """The sum of the numbers of bytes in the lines of the trace that match a pattern, over all processes."""
    return sum(int(match[1]) for line in trace.lines() if (match := re.search(pattern, line)))


def worked(trace, device):
    """The number of bytes that the device has processed, without self-tests."""
    return totals(trace, rf": (\d+) bytes on {re.escape(device)}$")


def passes_of(device, mode):
    """How many times the device processes the data of a message in a mode: in encryption and in decryption."""
    return LACKING[device.split(":")[0]].get(mode, (PASSES[mode], PASSES[mode]))


def check_work(test, name, device, trace, passes, wanted, size, outputs):
    """Checks by the trace how many bytes the device processed. Also checks that the processes with these outputs have stated the
    work that the CPU does in place of the device."""
    done = worked(trace, device)
    # The device may also process additional data, nonces, padding and tags.
    good = passes * size <= done <= (passes * size + 512 if passes else 0)
    test.check(good, f"{name}: the device did what it supports", f"it did {done} bytes, {passes} times {size} are right")
    stated = sum("; the CPU does this work" in line for line in trace.lines())
    test.check(stated == wanted, f"{name}: work of the CPU is stated in the trace", f"{stated} times")
    said = sum(output.stderr.count(b"; the CPU does this work") for output in outputs)
    expected = 0 if settings(device) else wanted
    test.check(said == expected, f"{name}: work of the CPU is stated on standard error", f"{said} times")
    wrong = [line for line in trace.lines() if "wrong result" in line]
    test.check(not wrong, f"{name}: results are right", " ".join(wrong[:1]))


def enc(test, openssl, device):
    data = random.Random(4).randbytes(SIZE)
    plain = test.write("plain", data)
    for bits, mode in zip(itertools.cycle((128, 256)), MODES):
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
        passes = passes_of(device, mode.upper())
        # Each of the two processes makes several calls, and states once what the CPU does.
        check_work(test, name, device, trace, sum(passes), passes.count(0), SIZE, (ours, back))


def mode_of(name):
    """The mode in the name of a cipher, such as WRAP-PAD in AES-128-WRAP-PAD."""
    return name.split("-", 2)[2]


def every_mode(test, device):
    """Tests all ciphers with keys of 128 and 256 bits, through libcrypto."""

    def run(direction, inputs, name, **more):
        lines = "".join(f"{cipher} {data.hex()}\n" for cipher, data in inputs.items())
        done = test.run(sys.executable, CIPHERS, direction, data=lines.encode(), **more)
        output = test.ran(done, name) or b""
        found = dict(line.split() for line in output.decode().splitlines())
        return done, {cipher: bytes.fromhex(data) for cipher, data in found.items() if data != "-"}

    listed = test.ran(test.run(sys.executable, CIPHERS, "list", "lockstep"), "names of ciphers") or b""
    names = sorted(name for name in listed.decode().split() if not name.startswith("AES-192"))
    plain = {name: random.Random(name).randbytes(64 if "WRAP" in name else 2048) for name in names}
    _, sealed = run("encrypt", plain, "every mode on the CPU", LOCKSTEP_DEVICE="cpu")
    _, theirs = run("encrypt", plain, "every mode of the default provider", subject=False)
    test.check(theirs and all(sealed.get(name) == data for name, data in theirs.items()), "every mode: the CPU's ciphertexts")

    def check(mode):
        of_mode = [name for name in names if mode_of(name) == mode]
        if not test.check(mode in PASSES, f"{mode}: the table states which part is the device's"):
            return
        for direction, passes in zip(("encrypt", "decrypt"), passes_of(device, mode)):
            before, after = (plain, sealed) if direction == "encrypt" else (sealed, plain)
            name, trace = f"{mode} on {device}, {direction}", test.trace()
            inputs = {cipher: before.get(cipher, b"") for cipher in of_mode}
            done, results = run(direction, inputs, name, trace=trace, **variables(device))
            test.check(results == {cipher: after.get(cipher) for cipher in of_mode}, f"{name}: the CPU's results")
            size = sum(len(plain[cipher]) for cipher in of_mode)
            check_work(test, name, device, trace, passes, int(passes < PASSES[mode]), size, [done])

    test.check(not PASSES.keys() - set(map(mode_of, names)), "every mode of the table is a mode of the provider")
    test.side_by_side(check, [(mode,) for mode in sorted(set(map(mode_of, names)))])


def speed(test, openssl, device):
    """Runs `openssl speed` with its default sizes, from 16 bytes per call. The CPU serves OpenSSL's random generator."""
    for mode in ("ECB", "GCM"):
        name, trace = f"speed of {mode} on {device}", test.trace()
        command = [openssl, "speed", "-seconds", "1", "-elapsed", "-evp", f"aes-128-{mode}"]
        output = test.ran(test.run(*command, trace=trace, **variables(device)), name)
        test.check(output and f"AES-128-{mode}".encode() in output, f"{name}: a rate")
        done, called = worked(trace, device), totals(trace, rf"AES-128-{mode} encrypt: (\d+) bytes in")
        test.check(done == called > 0, f"{name}: the device did all", f"{done} of {called} bytes")


def nginx(test, openssl, device):
    """Serves an object over TLS by workers of nginx, which are forked after the provider is loaded."""
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
        for device in [named] if named else ["cuda:emu", "opengl:software", "qpu", "spu"]:
            enc(test, openssl, device)
            every_mode(test, device)
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
