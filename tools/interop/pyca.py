#!/usr/bin/env python3
"""Tests that Python's `cryptography` (pyca) reads the output of lockstep, and lockstep that of pyca.

    tools/interop/pyca.py path/to/lockstep

Files: both Cobblestone suites, with and without a context, lengths around the borders of chunks, from files and from
pipes; both sides must refuse wrong contexts and keys. Raw modes: GCM, GCM-SIV, CCM, OCB, SIV, XTS, KW, KWP,
CMAC and GMAC against `lockstep cipher`. Prints `N passed, M failed`; fails if a check failed or none ran.

Requires `cryptography` 50 or later, which it installs in a virtual environment under the build folder if this Python lacks
it. If that is not possible, it prints NOT TESTED and succeeds; if the environment variable CI is set, it fails.
"""

import os
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

import random
import subprocess
import tempfile

import pyca_venv

if len(sys.argv) != 2 or sys.argv[1] in ("-h", "--help"):
    print(__doc__.strip(), file=sys.stdout if len(sys.argv) == 2 else sys.stderr)
    sys.exit(0 if len(sys.argv) == 2 else 2)

pyca_venv.ensure("interoperability with pyca cryptography")

from cryptography import cobblestone
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.ciphers.aead import AESCCM, AESGCM, AESGCMSIV, AESOCB3, AESSIV
from cryptography.hazmat.primitives.cmac import CMAC
from cryptography.hazmat.primitives.keywrap import aes_key_wrap, aes_key_wrap_with_padding

SIZES = [0, 1, 16383, 16384, 16385, (1 << 20) + 7]
CONTEXTS = ["", "backups/monday, größer"]
SUITES = {
    128: (cobblestone.Cobblestone128Encryptor, cobblestone.Cobblestone128Decryptor),
    256: (cobblestone.Cobblestone256Encryptor, cobblestone.Cobblestone256Decryptor),
}
# Exit codes of the command `lockstep`.
DONE, NOT_AUTHENTIC = 0, 1

# The seed of the generator is fixed, so each run has the same data. The data are not secret.
RANDOM = random.Random(0x10C57E9)


class Tally:
    """The number of checks that passed and that failed. A failure is printed at once."""

    def __init__(self):
        self.passed = 0
        self.failed = 0

    def check(self, good, name):
        if good:
            self.passed += 1
        else:
            self.failed += 1
            print(f"FAILED: {name}", file=sys.stderr)


class Lockstep:
    """The command `lockstep` that is tested."""

    def __init__(self, path, folder):
        self.path = path
        self.folder = folder

    def run(self, *arguments, data=b""):
        """Runs the command, and returns its exit code and its standard output."""
        done = subprocess.run([self.path, *arguments], input=data, capture_output=True, timeout=300)
        self.said = done.stderr.decode(errors="replace").strip()
        return done.returncode, done.stdout

    def key(self, bits, name):
        """Makes a key file by `keygen`, and returns its path and the key."""
        file = os.path.join(self.folder, name)
        code, _ = self.run("keygen", "--bits", str(bits), "-o", file)
        if code != DONE:
            sys.exit(f"{self.path} keygen failed: {self.said}")
        with open(file, encoding="ascii") as text:
            prefix, digits = text.read().split()
        if prefix != f"lockstep-key-{bits}":
            sys.exit(f"keygen wrote a key file that begins with {prefix}")
        return file, bytes.fromhex(digits)

    def write(self, name, data):
        file = os.path.join(self.folder, name)
        with open(file, "wb") as output:
            output.write(data)
        return file


def pyca_encrypt(bits, key, context, data):
    encryptor = SUITES[bits][0](key, context.encode())
    # The pieces do not end at the ends of chunks. pyca must divide the data into chunks itself.
    pieces = [encryptor.update(data[at : at + 70_001]) for at in range(0, len(data), 70_001)]
    return b"".join(pieces) + encryptor.finalize()


def pyca_decrypt(bits, key, context, message):
    """The plaintext, or None if pyca refuses the message."""
    decryptor = SUITES[bits][1](key, context.encode())
    try:
        pieces = [decryptor.update(message[at : at + 70_001]) for at in range(0, len(message), 70_001)]
        return b"".join(pieces) + decryptor.finalize()
    except (InvalidTag, ValueError):
        return None


def files(lockstep, tally):
    """Tests Cobblestone in both directions."""
    for bits in SUITES:
        file, key = lockstep.key(bits, f"key-{bits}")
        _, other_key = lockstep.key(bits, f"other-{bits}")
        for size in SIZES:
            data = RANDOM.randbytes(size)
            plain = lockstep.write("plain", data)
            for context in CONTEXTS:
                name = f"Cobblestone-{bits}, {size} bytes, context {context!r}"
                option = ["--context", context] if context else []

                code, message = lockstep.run("encrypt", "-k", file, *option, plain)
                tally.check(code == DONE, f"{name}: lockstep encrypts: {lockstep.said}")
                tally.check(pyca_decrypt(bits, key, context, message) == data, f"{name}: pyca reads lockstep's")
                wrong = pyca_decrypt(bits, key, context + "x", message)
                tally.check(wrong is None, f"{name}: pyca refuses a wrong context")
                wrong = pyca_decrypt(bits, other_key, context, message)
                tally.check(wrong is None, f"{name}: pyca refuses a wrong key")
                code, message = lockstep.run("encrypt", "-k", file, *option, data=data)
                same = code == DONE and pyca_decrypt(bits, key, context, message) == data
                tally.check(same, f"{name}: pyca reads what came through a pipe: {lockstep.said}")

                message = pyca_encrypt(bits, key, context, data)
                encrypted = lockstep.write("encrypted", message)
                code, output = lockstep.run("decrypt", "-k", file, *option, encrypted)
                tally.check((code, output) == (DONE, data), f"{name}: lockstep reads pyca's: {lockstep.said}")
                code, output = lockstep.run("decrypt", "-k", file, *option, data=message)
                good = (code, output) == (DONE, data)
                tally.check(good, f"{name}: lockstep reads pyca's from a pipe: {lockstep.said}")
                code, output = lockstep.run("decrypt", "-k", file, "--context", context + "x", encrypted)
                good = (code, output) == (NOT_AUTHENTIC, b"")
                tally.check(good, f"{name}: lockstep refuses a wrong context with exit code 1, not {code}")
                wrong = lockstep.write("wrong", pyca_encrypt(bits, other_key, context, data))
                code, output = lockstep.run("decrypt", "-k", file, *option, wrong)
                good = (code, output) == (NOT_AUTHENTIC, b"")
                tally.check(good, f"{name}: lockstep refuses a wrong key with exit code 1, not {code}")
                start, length = size // 3, min(size, 20_000)
                code, output = lockstep.run(
                    "decrypt", "-k", file, *option, "--range", f"{start}:{length}", encrypted
                )
                good = (code, output) == (DONE, data[start : start + length])
                tally.check(good, f"{name}: lockstep reads a range of pyca's: {lockstep.said}")


def raw(lockstep, tally):
    """Tests the raw modes in both directions."""

    def both_ways(name, mode, options, data, sealed):
        """Checks both directions. `sealed` is the result of pyca for `data`."""
        plain = lockstep.write("plain", data)
        code, output = lockstep.run("cipher", "--mode", mode, *options, plain)
        tally.check((code, output) == (DONE, sealed), f"{name}: the same ciphertext: {lockstep.said}")
        encrypted = lockstep.write("encrypted", sealed)
        code, output = lockstep.run("cipher", "--mode", mode, "-d", *options, encrypted)
        tally.check((code, output) == (DONE, data), f"{name}: decrypts pyca's: {lockstep.said}")

    def refuses(name, mode, options, sealed):
        changed = bytearray(sealed)
        changed[len(sealed) // 2] ^= 1
        encrypted = lockstep.write("encrypted", changed)
        code, output = lockstep.run("cipher", "--mode", mode, "-d", *options, encrypted)
        good = (code, output) == (NOT_AUTHENTIC, b"")
        tally.check(good, f"{name}: a flipped bit is refused with exit code 1, not {code}")

    for bits in (128, 192, 256):
        for size in (0, 1, 15, 16, 17, 1000, 16385, (1 << 20) + 7):
            data = RANDOM.randbytes(size)
            key = RANDOM.randbytes(bits // 8)
            aad = RANDOM.randbytes(size % 50)
            key_file = lockstep.write("raw-key", key)
            common = ["--key-file", key_file]
            with_aad = [*common, "--aad-hex", aad.hex()] if aad else common

            for iv_bytes in (12, 16):
                iv = RANDOM.randbytes(iv_bytes)
                name = f"AES-{bits}-GCM, {size} bytes, IV of {iv_bytes}"
                options = [*with_aad, "--iv-hex", iv.hex()]
                sealed = AESGCM(key).encrypt(iv, data, aad)
                both_ways(name, "gcm", options, data, sealed)
                refuses(name, "gcm", options, sealed)

            for iv_bytes, tag in ((7, 16), (12, 8)):
                iv = RANDOM.randbytes(iv_bytes)
                name = f"AES-{bits}-CCM, {size} bytes, IV of {iv_bytes}, tag of {tag}"
                options = [*with_aad, "--iv-hex", iv.hex(), "--tag-len", str(tag)]
                sealed = AESCCM(key, tag_length=tag).encrypt(iv, data, aad)
                both_ways(name, "ccm", options, data, sealed)
                refuses(name, "ccm", options, sealed)

            iv = RANDOM.randbytes(12)
            if bits != 192:
                name = f"AES-{bits}-GCM-SIV, {size} bytes"
                options = [*with_aad, "--iv-hex", iv.hex()]
                sealed = AESGCMSIV(key).encrypt(iv, data, aad)
                both_ways(name, "gcm-siv", options, data, sealed)
                refuses(name, "gcm-siv", options, sealed)

            for iv_bytes in (12, 15):
                iv = RANDOM.randbytes(iv_bytes)
                name = f"AES-{bits}-OCB, {size} bytes, IV of {iv_bytes}"
                options = [*with_aad, "--iv-hex", iv.hex()]
                sealed = AESOCB3(key).encrypt(iv, data, aad)
                both_ways(name, "ocb", options, data, sealed)
                refuses(name, "ocb", options, sealed)

            pair = key + RANDOM.randbytes(bits // 8)
            pair_file = lockstep.write("raw-pair", pair)
            strings = [RANDOM.randbytes(n) for n in (0, 5, 16, 33)[: size % 5]]
            options = ["--key-file", pair_file]
            for string in strings:
                options += ["--aad-hex", string.hex()]
            # pyca's SIV takes no empty plaintext before OpenSSL 3.5.
            if size:
                name = f"AES-{bits}-SIV, {size} bytes, {len(strings)} strings"
                sealed = AESSIV(pair).encrypt(data, strings)
                both_ways(name, "siv", options, data, sealed)
                refuses(name, "siv", options, sealed)

            # Key wrap is serial, and pyca processes it block by block in Python, so long data would take too much
            # time.
            if 0 < size <= 1000:
                sealed = aes_key_wrap_with_padding(key, data)
                both_ways(f"AES-{bits}-KWP, {size} bytes", "kwp", common, data, sealed)
                refuses(f"AES-{bits}-KWP, {size} bytes", "kwp", common, sealed)
            if 16 <= size <= 1000 and size % 8 == 0:
                sealed = aes_key_wrap(key, data)
                both_ways(f"AES-{bits}-KW, {size} bytes", "kw", common, data, sealed)
                refuses(f"AES-{bits}-KW, {size} bytes", "kw", common, sealed)

            if bits != 192 and size >= 16:
                tweak = RANDOM.randbytes(16)
                encryptor = Cipher(algorithms.AES(pair), modes.XTS(tweak)).encryptor()
                sealed = encryptor.update(data) + encryptor.finalize()
                options = ["--key-file", pair_file, "--iv-hex", tweak.hex()]
                both_ways(f"AES-{bits}-XTS, {size} bytes", "xts", options, data, sealed)

            mac = CMAC(algorithms.AES(key))
            mac.update(data)
            plain = lockstep.write("plain", data)
            code, output = lockstep.run("cipher", "--mode", "cmac", *common, plain)
            same = (code, output.strip()) == (DONE, mac.finalize().hex().encode())
            tally.check(same, f"AES-{bits}-CMAC, {size} bytes: {lockstep.said}")

            iv = RANDOM.randbytes(12)
            code, output = lockstep.run("cipher", "--mode", "gmac", *common, "--iv-hex", iv.hex(), plain)
            same = (code, output.strip()) == (DONE, AESGCM(key).encrypt(iv, b"", data).hex().encode())
            tally.check(same, f"AES-{bits}-GMAC, {size} bytes: {lockstep.said}")


def main():
    path = os.path.abspath(sys.argv[1])
    if not os.access(path, os.X_OK):
        print(f"{path} is no program: build it (cargo build --release) and give its path", file=sys.stderr)
        return 2
    tally = Tally()
    with tempfile.TemporaryDirectory(prefix="lockstep-pyca-") as folder:
        lockstep = Lockstep(path, folder)
        files(lockstep, tally)
        raw(lockstep, tally)
    print(f"pyca interoperability: {tally.passed} passed, {tally.failed} failed")
    return 0 if tally.passed and not tally.failed else 1


if __name__ == "__main__":
    sys.exit(main())
