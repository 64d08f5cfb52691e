#!/usr/bin/env python3
"""Compares the speed of the provider with OpenSSL's default provider, with OpenSSL's programs.

    tools/bench/provider.py LOCKSTEP_SO [--openssl PROGRAM] [--rounds N] [--seconds S] [--quick] [--no-enc] [--enc-only]

Runs `openssl speed -evp` and `openssl enc` with both providers alternating, N (9) times. The first provider of a
round alternates too. Prints tables in Markdown with medians and spreads. --openssl names an OpenSSL other than the one in
the path; --quick uses fewer sizes. `openssl enc` reads a file of 2 GiB that is in the page cache and writes to
/dev/null; its outputs with both providers are compared once, on the first 64 MiB.
"""

import argparse
import os
import subprocess
import sys
import tempfile

import harness

CIPHERS = ["aes-128-ctr", "aes-256-ctr", "aes-128-gcm", "aes-256-gcm", "aes-128-ecb", "aes-256-ecb",
           "aes-128-xts", "aes-256-xts", "aes-128-cbc", "aes-256-cbc"]
SIZES = [16, 64, 256, 1024, 8192, 16384, 65536, 1 << 20]
QUICK = [16, 1024, 16384]
KEY = "00112233445566778899aabbccddeeff0123456789abcdeffedcba9876543210"
IV = "f0e0d0c0b0a090807060504030201000"


class Bench:
    def __init__(self, options, folder):
        self.options = options
        self.openssl = options.openssl
        self.plain, self.conf = harness.configurations(folder, options.module)

    def environment(self, ours, **more):
        return harness.openssl_environment(self.conf if ours else self.plain, **more)

    def check(self):
        done = subprocess.run([self.openssl, "list", "-providers"], env=self.environment(True),
                              capture_output=True, text=True)
        if "lockstep" not in done.stdout:
            sys.exit(f"the provider is not loaded: {done.stderr.strip()}")

    def speed(self, cipher, size, ours):
        """The rate in bytes per second that `openssl speed` prints."""
        done = subprocess.run(
            [self.openssl, "speed", "-seconds", str(self.options.seconds), "-bytes", str(size), "-evp", cipher],
            env=self.environment(ours), capture_output=True, text=True, check=True)
        rate = done.stdout.split()[-1]
        return float(rate.rstrip("k")) * 1000

    def turns(self, measure):
        """Measures alternately without (False) and with (True) the provider. There is no warm-up, because each run is a
        new process."""
        contenders = {side: lambda side=side: measure(side) for side in (False, True)}
        results = harness.alternate(contenders, self.options.rounds, warm_up=False)
        return results[False], results[True]

    def speeds(self):
        sizes = QUICK if self.options.quick else SIZES
        harness.head("cipher", "bytes", "default GB/s", "lockstep GB/s", "ratio", "spread of the ratio")
        for cipher in CIPHERS:
            for size in sizes:
                default, lockstep = self.turns(lambda ours: self.speed(cipher, size, ours))
                found = harness.Ratios(lockstep, default)
                rates = (f"{rate / 1e9:.3f}" for rate in reversed(found.medians))
                harness.row(cipher, size, *rates, f"{found.of_medians:.2f}", found.spread())

    def enc(self, file, output, ours, **more):
        command = [self.openssl, "enc", "-aes-256-ctr", "-K", KEY, "-iv", IV, "-in", file, "-out", output]
        environment = self.environment(ours, **more)
        return harness.timed(lambda: subprocess.run(command, env=environment, check=True, capture_output=True))()

    def files(self, folder):
        gigabytes = 2
        file, head = os.path.join(folder, "data"), os.path.join(folder, "head")
        with open(file, "wb") as data:
            block = os.urandom(1 << 20)
            for _ in range(gigabytes << 10):
                data.write(block)
        with open(file, "rb") as data, open(head, "wb") as first:
            first.write(data.read(64 << 20))
        outputs = [os.path.join(folder, name) for name in ("a", "b", "c")]
        self.enc(head, outputs[0], False)
        self.enc(head, outputs[1], True)
        self.enc(head, outputs[2], True, LOCKSTEP_KERNEL="cpu/soft")
        contents = [open(name, "rb").read() for name in outputs]
        if contents[0] != contents[1] or contents[0] != contents[2]:
            sys.exit("the outputs differ")
        print()
        harness.head("openssl enc -aes-256-ctr", "seconds", "ratio", "spread of the ratio")
        self.row("2 GiB in the cache: default against lockstep", self.turns(lambda ours: self.enc(file, "/dev/null", ours)))
        soft = {"LOCKSTEP_KERNEL": "cpu/soft"}
        ahead = lambda on: self.enc(file, "/dev/null", True, LOCKSTEP_AHEAD="on" if on else "off", **soft)
        self.row("2 GiB, cpu/soft: ahead off against on", self.turns(ahead))

    @staticmethod
    def row(what, times):
        found = harness.Ratios(*times)
        seconds = " / ".join(f"{median:.2f}" for median in found.medians)
        harness.row(what, seconds, f"{found.of_medians:.2f}", found.spread())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("module", metavar="LOCKSTEP_SO")
    parser.add_argument("--openssl", default="openssl")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--seconds", type=int, default=1)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--no-enc", action="store_true")
    parser.add_argument("--enc-only", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(options, folder)
        bench.check()
        version = subprocess.run([options.openssl, "version"], env=bench.environment(False), capture_output=True,
                                 text=True).stdout.strip()
        print(f"{version}, {options.rounds} rounds of {options.seconds} s\n{harness.machine()}\n")
        if not options.enc_only:
            bench.speeds()
        if not options.no_enc:
            bench.files(folder)


if __name__ == "__main__":
    main()
