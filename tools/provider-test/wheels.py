#!/usr/bin/env python3
"""Tests programs that contain an OpenSSL library of their own on our provider: the packages cryptography (pyca) and pyarrow of PyPI, and
Node, if it is installed.

    tools/provider-test/wheels.py LOCKSTEP_SO

Only OPENSSL_CONF selects our provider. What one process encrypts on our provider, another decrypts on the OpenSSL of the package
alone, and the reverse: AESGCM and Cobblestone of pyca, and encrypted Parquet files of pyarrow. pyca reports forged messages of every
authenticated mode as it does on its own OpenSSL, and errors of Node have the same codes. A trace of our provider proves that it did
the work. The packages are those of tools/python_venv.py; if they cannot be installed, this fails.

LOCKSTEP_TEST_SUBJECT=default checks this script: it runs the same tests on the default provider alone, without checks of traces.
"""

import sys

sys.dont_write_bytecode = True

import os
import random
import shutil
import subprocess

# The seed is fixed, so each run has the same data. The data are not secret.
RANDOM = random.Random(0x10C57E9)
KEYS = {bits: RANDOM.randbytes(bits // 8) for bits in (128, 192, 256)}
NONCE, AAD = RANDOM.randbytes(12), b"associated data"
SIZES = (0, 1, 1000, 100_000)
CONTEXT = b"backups/monday"
FORGED_MODES = ("GCM", "CCM", "OCB", "GCM-SIV", "SIV")
ROWS = 50_000
ALGORITHMS = ("AES_GCM_V1", "AES_GCM_CTR_V1")
# The number of bytes that a process must have passed to our provider: PYCA_BYTES for all messages with one length of key, and PYARROW_BYTES
# for a file.
PYCA_BYTES, PYARROW_BYTES = sum(SIZES), 8 * ROWS


def main():
    import common

    test = common.Test(__doc__, "wheels")
    with test:
        done = subprocess.run([os.path.join(common.ROOT, "tools", "python_venv.py")], stdout=subprocess.PIPE, text=True)
        if done.returncode:
            common.fail("the packages cannot be installed: see above")
        python = done.stdout.strip()
        for package in ("pyca", "pyarrow"):
            for writes, reads in ((True, False), (False, True), (True, True)):
                exchange(test, python, package, writes, reads)
        node(test)
        return test.finish()


NODE = """
const crypto = require("node:crypto");
const tries = {
    "AES-256-GCM": ["aes-256-gcm", 12, {}, 3], "AES-256-CCM": ["aes-256-ccm", 12, { authTagLength: 16 }, 3],
    "AES-256-OCB": ["aes-256-ocb", 12, { authTagLength: 16 }, 3], "AES-256-CBC": ["aes-256-cbc", 16, {}, 17],
    "padding": ["aes-256-cbc", 16, {}, 32],
};
for (const [name, [cipher, ivBytes, options, bytes]] of Object.entries(tries)) {
    const decipher = crypto.createDecipheriv(cipher, Buffer.alloc(32, 1), Buffer.alloc(ivBytes, 2), options);
    try {
        if (decipher.setAuthTag && cipher !== "aes-256-cbc") decipher.setAuthTag(Buffer.alloc(16));
        decipher.update(Buffer.alloc(bytes));
        decipher.final();
        console.log(name, "accepted");
    } catch (error) {
        console.log(name, error.code, error.message);
    }
}
"""


def node(test):
    """Tests that Node reports forged messages and wrong lengths on our provider by the same error codes as on its own
    OpenSSL."""
    if not shutil.which("node"):
        print("NOT TESTED: errors of Node: node is not installed")
        return
    outputs = {}
    for is_ours, configuration in ((False, test.default_conf), (True, test.subject_conf)):
        trace = test.trace()
        name = f"node: forged messages on {'our provider' if is_ours else 'its own OpenSSL'}"
        options = ("--openssl-shared-config", f"--openssl-config={configuration}")
        done = test.run("node", *options, "-e", NODE, subject=is_ours, trace=trace)
        outputs[is_ours] = test.ran(done, name)
        for mode in ("GCM", "CCM", "OCB", "CBC") if is_ours else ():
            test.proved(trace, f"AES-256-{mode}", "decrypt", name)
    test.check(outputs[False] == outputs[True], "node: the same errors on both providers", outputs)


def exchange(test, python, package, writer_is_ours, reader_is_ours):
    """Runs a process that encrypts, and then one that decrypts."""
    folder = test.path(f"{package}-{writer_is_ours}-{reader_is_ours}")
    os.mkdir(folder)
    for step, is_ours in (("encrypt", writer_is_ours), ("decrypt", reader_is_ours)):
        trace = test.trace()
        name = f"{package}: {step} on {'our provider' if is_ours else 'its own OpenSSL'}"
        done = test.run(python, __file__, package, step, folder, subject=is_ours, trace=trace)
        test.ran(done, name)
        if not is_ours:
            continue
        if package == "pyca":
            for bits in KEYS:
                test.proved(trace, f"AES-{bits}-GCM", step, name, at_least=PYCA_BYTES)
            for mode in FORGED_MODES if step == "decrypt" else ():
                test.proved(trace, f"AES-256-{mode}", step, name, at_least=1)
        else:
            for bits in KEYS:
                test.proved(trace, f"AES-{bits}-GCM", step, name, at_least=PYARROW_BYTES)
                # AES_GCM_CTR_V1 encrypts pages by CTR.
                test.proved(trace, f"AES-{bits}-CTR", step, name, at_least=PYARROW_BYTES)


# The code below runs in separate processes, with OPENSSL_CONF set.


def refuses(function, error):
    try:
        function()
    except error:
        return
    raise SystemExit("a changed message was not refused")


def changed(message):
    return bytes([message[0] ^ 1]) + message[1:]


def pyca_messages():
    """Returns for each message its name, its plaintext, and the functions that encrypt and decrypt it."""
    from cryptography import cobblestone
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    def whole(kind):
        return lambda key, data: (lambda it: it.update(data) + it.finalize())(kind(key, CONTEXT))

    suites = {
        128: (cobblestone.Cobblestone128Encryptor, cobblestone.Cobblestone128Decryptor),
        256: (cobblestone.Cobblestone256Encryptor, cobblestone.Cobblestone256Decryptor),
    }
    for size in SIZES:
        plain = random.Random(size).randbytes(size)
        for bits, key in KEYS.items():
            cipher = AESGCM(key)
            yield (
                f"gcm-{bits}-{size}",
                plain,
                lambda data, cipher=cipher: cipher.encrypt(NONCE, data, AAD),
                lambda data, cipher=cipher: cipher.decrypt(NONCE, data, AAD),
            )
        for bits, kinds in suites.items():
            encrypt, decrypt = map(whole, kinds)
            key = KEYS[bits]
            yield (
                f"cobblestone-{bits}-{size}",
                plain,
                lambda data, encrypt=encrypt, key=key: encrypt(key, data),
                lambda data, decrypt=decrypt, key=key: decrypt(key, data),
            )


def forged_messages():
    """Returns functions that decrypt a forged message: one for each mode of pyca, and one for its incremental GCM."""
    from cryptography.hazmat.primitives.ciphers import Cipher, aead, algorithms, modes

    key = KEYS[256]
    for kind in (aead.AESGCM, aead.AESCCM, aead.AESOCB3, aead.AESGCMSIV):
        cipher = kind(key)
        for plain in (b"abc", bytes(1000)):
            message = changed(cipher.encrypt(NONCE, plain, AAD))
            yield lambda cipher=cipher, message=message: cipher.decrypt(NONCE, message, AAD)
    siv = aead.AESSIV(key + KEYS[256][::-1])
    message = changed(siv.encrypt(b"abc", [AAD, NONCE]))
    yield lambda: siv.decrypt(message, [AAD, NONCE])

    def incremental(tag):
        decryptor = Cipher(algorithms.AES(key), modes.GCM(bytes(12), tag)).decryptor()
        decryptor.update(b"abc")
        return decryptor.finalize() if tag else decryptor.finalize_with_tag(bytes(16))

    yield lambda: incremental(bytes(16))
    yield lambda: incremental(None)


def pyca(step, folder):
    from cryptography.exceptions import InvalidTag

    if step == "decrypt":
        for decrypt in forged_messages():
            refuses(decrypt, InvalidTag)
    for name, plain, encrypt, decrypt in pyca_messages():
        path = os.path.join(folder, name)
        if step == "encrypt":
            with open(path, "wb") as file:
                file.write(encrypt(plain))
            continue
        with open(path, "rb") as file:
            message = file.read()
        if decrypt(message) != plain:
            raise SystemExit(f"{name}: other bytes")
        refuses(lambda: decrypt(changed(message)), InvalidTag)  # noqa: B023


def pyarrow(step, folder):
    import pyarrow as arrow
    import pyarrow.parquet as parquet
    import pyarrow.parquet.encryption as encryption

    numbers = random.Random(5)
    table = arrow.table({"a": [numbers.getrandbits(63) for _ in range(ROWS)]})
    for bits, key in KEYS.items():
        for algorithm in ALGORITHMS:
            path = os.path.join(folder, f"{algorithm}-{bits}.parquet")
            if step == "encrypt":
                properties = encryption.create_encryption_properties(key, encryption_algorithm=algorithm)
                parquet.write_table(
                    table, path, compression="none", use_dictionary=False, encryption_properties=properties
                )
                continue
            properties = encryption.create_decryption_properties(key)
            if not parquet.read_table(path, decryption_properties=properties).equals(table):
                raise SystemExit(f"{path}: other rows")
            wrong = encryption.create_decryption_properties(changed(key))
            refuses(lambda: parquet.read_table(path, decryption_properties=wrong), (OSError, arrow.ArrowException))  # noqa: B023


if __name__ == "__main__":
    if sys.argv[1:2] in (["pyca"], ["pyarrow"]):
        {"pyca": pyca, "pyarrow": pyarrow}[sys.argv[1]](*sys.argv[2:])
    else:
        sys.exit(main())
