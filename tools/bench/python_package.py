#!/usr/bin/env python3
"""Measures the Python package against pyca cryptography, in the same run.

    tools/bench/python_package.py WHEEL [MIB]    WHEEL: of `make wheel`, or a folder with the package; MIB: the size of the file in MiB (1024)

The wheel is unpacked, not installed. The measurements of the two packages alternate, and the best time of each is reported. Prints a
table in Markdown with the bar (the required value) of each figure.
"""

import os
import shutil
import subprocess
import sys
import tempfile

import harness
import python_venv


def best(*functions, seconds=1.0, most=2000, before=lambda: None):
    """The best time of each function in seconds. `before` is called before each call and not timed."""
    contenders = {number: harness.timed(function) for number, function in enumerate(functions)}
    results = harness.alternate(contenders, most, seconds=seconds * len(functions), before=before)
    return [min(taken) for taken in results.values()]


def add(what, ours, theirs, bar):
    """Prints a row of the table."""
    harness.row(what, harness.duration(ours), harness.duration(theirs), f"{theirs / ours:.2f}", bar)


def messages():
    from cryptography.hazmat.primitives.ciphers import aead as pyca

    import lockstep
    from lockstep import aead

    key, nonce = os.urandom(32), os.urandom(12)
    ours, theirs = aead.AESGCM(key), pyca.AESGCM(key)
    for size, count, bar in ((16, 2000, "0.91"), (1024, 2000, "0.91"), (65536, 50, "")):
        data = os.urandom(size)
        calls = [harness.repeated(lambda c=cipher: c.encrypt(nonce, data, None), count) for cipher in (ours, theirs)]
        add(f"AESGCM.encrypt, {size} bytes", *(t / count for t in best(*calls)), bar)
        sealed = ours.encrypt(nonce, data, None)
        calls = [harness.repeated(lambda c=cipher: c.decrypt(nonce, sealed, None), count) for cipher in (ours, theirs)]
        add(f"AESGCM.decrypt, {size} bytes", *(t / count for t in best(*calls)), bar)
    data, output = os.urandom(16 << 20), bytearray((16 << 20) + 16)
    for threads, bar in ((1, "1.05"), (None, "")):
        with lockstep.use(threads=threads):
            name = "one thread" if threads else "all cores"
            calls = [lambda c=cipher: c.encrypt(nonce, data, None) for cipher in (ours, theirs)]
            add(f"AESGCM.encrypt, 16 MiB, {name}", *best(*calls), bar)
            calls = [lambda c=cipher: c.encrypt_into(nonce, data, None, output) for cipher in (ours, theirs)]
            add(f"AESGCM.encrypt_into, 16 MiB, {name}", *best(*calls), bar)
    data = os.urandom(1 << 20)
    for name, bar in (("AESGCMSIV", "12"), ("AESOCB3", ""), ("AESSIV", "")):
        arguments = (data, []) if name == "AESSIV" else (nonce, data, None)
        calls = [lambda c=getattr(module, name)(key): c.encrypt(*arguments) for module in (aead, pyca)]
        add(f"{name}.encrypt, 1 MiB", *best(*calls), bar)


def batches():
    import numpy
    from cryptography.hazmat.primitives.ciphers import aead as pyca

    from lockstep import aead

    count = 10_000
    keys, nonces = [os.urandom(32) for _ in range(count)], [os.urandom(12) for _ in range(count)]
    messages = [os.urandom(1024) for _ in range(count)]

    def loop():
        return [pyca.AESGCM(key).encrypt(nonce, data, None) for key, nonce, data in zip(keys, nonces, messages)]

    def lists():
        return aead.encrypt_many(aead.AESGCM, keys, nonces, messages)

    arrays = [numpy.frombuffer(b"".join(rows), numpy.uint8).reshape(count, -1) for rows in (keys, nonces, messages)]

    def rows():
        return aead.encrypt_many(aead.AESGCM, *arrays)

    assert lists() == loop() and rows().tobytes() == b"".join(loop())
    in_lists, in_rows, theirs = best(lists, rows, loop, seconds=3)
    add("encrypt_many, 10,000 x 1 KiB, a key each, lists", in_lists, theirs, "5")
    add("encrypt_many, 10,000 x 1 KiB, a key each, numpy arrays", in_rows, theirs, "5")


def files(size):
    from cryptography import cobblestone

    import lockstep

    key = os.urandom(32)
    with tempfile.TemporaryDirectory() as folder:
        source, ours, theirs, back = (os.path.join(folder, name) for name in ("source", "ours", "theirs", "back"))
        block = os.urandom(1 << 20)
        with open(source, "wb") as file:
            for _ in range(size):
                file.write(block)

        def stream(coder, from_path, to_path):
            with open(from_path, "rb") as reader, open(to_path, "wb") as writer:
                while piece := reader.read(1 << 20):
                    writer.write(coder.update(piece))
                writer.write(coder.finalize())

        def encrypt():
            lockstep.encrypt_file(source, ours, key)

        def encrypt_pyca():
            stream(cobblestone.Cobblestone256Encryptor(key, b""), source, theirs)

        def decrypt():
            lockstep.decrypt_file(ours, back, key)

        def decrypt_pyca():
            stream(cobblestone.Cobblestone256Decryptor(key, b""), ours, back)

        def copy():
            shutil.copyfile(source, back)

        # Each output is a new file. To replace a file takes much longer: ext4 then writes the data to the disk at once.
        def remove_of(*paths):
            return lambda: [os.remove(path) for path in paths if os.path.exists(path)]

        encrypted, encrypted_by_pyca, _ = best(encrypt, encrypt_pyca, copy, seconds=20, most=6, before=remove_of(ours, theirs, back))
        encrypt()
        decrypted, decrypted_by_pyca, copied = best(decrypt, decrypt_pyca, copy, seconds=20, most=6, before=remove_of(back))
        add(f"encrypt_file, {size} MiB, against pyca's stream", encrypted, encrypted_by_pyca, "2")
        add(f"decrypt_file, {size} MiB, against pyca's stream", decrypted, decrypted_by_pyca, "")
        add(f"decrypt_file, {size} MiB, against a plain copy", decrypted, copied, "")


def imports():
    def start(code):
        return harness.timed(lambda: subprocess.run([sys.executable, "-c", code], check=True))

    codes = ("pass", "import lockstep", "from cryptography.hazmat.primitives.ciphers import aead")
    results = harness.alternate({code: start(code) for code in codes}, 15)
    bare, ours, theirs = (min(taken) for taken in results.values())
    add("import, without the start of Python", ours - bare, theirs - bare, "at most 60 ms")


def main():
    if len(sys.argv) not in (2, 3) or sys.argv[1] in ("-h", "--help"):
        print(__doc__.strip())
        sys.exit(2)
    python_venv.use()
    size = int(sys.argv[2]) if len(sys.argv) > 2 else 1024
    with tempfile.TemporaryDirectory() as folder:
        harness.use_package(sys.argv[1], folder)
        import cryptography

        import lockstep

        print(f"lockstep-aes {lockstep.__version__}, cryptography {cryptography.__version__}, Python {sys.version.split()[0]}")
        print(f"{harness.machine()}\n{lockstep.devices()[0].description}\n")
        harness.head("call", "lockstep", "peer (pyca)", "peer's time / ours", "bar")
        imports()
        messages()
        batches()
        files(size)


if __name__ == "__main__":
    main()
