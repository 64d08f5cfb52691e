#!/usr/bin/env python3
"""Measures what the provider gains in packages of PyPI that contain an OpenSSL library of their own: cryptography and pyarrow.

    tools/bench/wheels.py LOCKSTEP_SO [ROUNDS]

One process uses only the OpenSSL of the package, and another one our provider, which OPENSSL_CONF selects. They are measured alternately,
15 times or ROUNDS times. A time is the CPU time of all threads, because other work on the machine changes CPU
time less than elapsed time. Prints a table in Markdown with the medians, and the ratio of both with the range of the middle half of the
rounds. Packages: tools/python_venv.py.
"""

import os
import subprocess
import sys
import tempfile
import time

import harness
import python_venv

KEY = bytes(range(32))
MIB = 1 << 20


def pyca_cases():
    from cryptography import cobblestone
    from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM, AESGCMSIV

    data = os.urandom(16 * MIB)
    gcm, siv = AESGCM(KEY), AESGCMSIV(KEY)

    def ctr(part):
        Cipher(algorithms.AES(KEY), modes.CTR(bytes(16))).encryptor().update(part)

    def stream():
        encryptor = cobblestone.Cobblestone256Encryptor(KEY, b"")
        for at in range(0, len(data), 16384):
            encryptor.update(data[at : at + 16384])
        encryptor.finalize()

    def repeat(count, function, *arguments):
        return harness.repeated(lambda: function(*arguments), count)

    for size, name in ((1024, "1 KiB"), (16384, "16 KiB"), (MIB, "1 MiB")):
        yield f"pyca, AESGCM.encrypt, {name}", repeat(8 * MIB // size, gcm.encrypt, bytes(12), data[:size], None)
    yield "pyca, AESGCMSIV.encrypt, 1 MiB", repeat(4, siv.encrypt, bytes(12), data[:MIB], None)
    yield "pyca, CTR, 1 MiB", repeat(32, ctr, data[:MIB])
    yield "pyca, Cobblestone-256 encryptor, 16 MiB in pieces of 16 KiB", stream


def pyarrow_cases():
    import numpy
    import pyarrow
    import pyarrow.parquet as parquet
    import pyarrow.parquet.encryption as encryption

    numbers = numpy.random.default_rng(1)
    table = pyarrow.table({f"c{i}": numbers.integers(0, 1 << 62, MIB) for i in range(4)})
    settings = {"compression": "none", "use_dictionary": False, "write_statistics": False}
    for algorithm in ("AES_GCM_V1", "AES_GCM_CTR_V1"):

        def write(algorithm=algorithm):
            properties = encryption.create_encryption_properties(KEY, encryption_algorithm=algorithm)
            sink = pyarrow.BufferOutputStream()
            parquet.write_table(table, sink, encryption_properties=properties, **settings)
            return sink.getvalue()

        def read(file):
            properties = encryption.create_decryption_properties(KEY)
            parquet.read_table(pyarrow.BufferReader(file), decryption_properties=properties, use_threads=False)

        file = write()
        yield f"pyarrow, write 32 MiB, {algorithm}", write
        yield f"pyarrow, read 32 MiB, {algorithm}", lambda file=file: read(file)


def serve():
    """Runs the case whose number is read, and prints its CPU time."""
    cases = [*pyca_cases(), *pyarrow_cases()]
    print("|".join(name for name, _ in cases), flush=True)
    for line in sys.stdin:
        print(harness.timed(cases[int(line)][1], time.process_time)(), flush=True)


def start(configuration):
    environment = harness.openssl_environment(configuration)
    # The limits of the C library's allocator are fixed. Otherwise the allocator may return memory to the system in only one of the two
    # processes that are compared. Mapping this memory again takes more time than the encryption of its content.
    environment |= {"MALLOC_MMAP_THRESHOLD_": str(1 << 30), "MALLOC_TRIM_THRESHOLD_": str(1 << 30)}
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    return subprocess.Popen([sys.executable, __file__, "serve"], env=environment, **pipes)


def ask(process, case):
    print(case, file=process.stdin, flush=True)
    return float(process.stdout.readline())


def main(module, rounds):
    with tempfile.TemporaryDirectory() as folder:
        sides = [start(path) for path in harness.configurations(folder, module, threads=1)]
        names = [side.stdout.readline().strip() for side in sides][0].split("|")
        harness.head("call", "own OpenSSL, ms", "provider, ms", "ratio", "middle half")
        for case, name in enumerate(names):
            contenders = {number: lambda side=side: ask(side, case) for number, side in enumerate(sides)}
            found = harness.Ratios(*harness.alternate(contenders, rounds).values())
            milliseconds = (f"{1000 * median:.1f}" for median in found.medians)
            harness.row(name, *milliseconds, f"{found.median:.2f}", found.middle_half())
        for side in sides:
            side.stdin.close()
            side.wait(60)


if __name__ == "__main__":
    if len(sys.argv) < 2 or sys.argv[1] in ("-h", "--help"):
        print(__doc__.strip())
        sys.exit(2)
    if sys.argv[1] == "serve":
        sys.exit(serve())
    python_venv.use()
    main(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 15)
