#!/usr/bin/env python3
"""Measures the speed of Python's `cryptography` (pyca), for comparison with lockstep.

    tools/bench/pyca.py [--bits 128|256] [--count 10000] [--sizes 16,64,256,1024] [--rounds 5] [--lockstep PATH] [--json]
    tools/bench/pyca.py --file FILE [--update]
    tools/bench/pyca.py --version

Messages: AESGCM with a new key for each of COUNT messages, in a loop; keys, nonces and data are prepared before. With
--lockstep each round also runs `PATH bench --mode gcm-BITS-keys --size SIZE --threads 1` (a batch of 10,000).
Prints medians, with minimum and maximum.

File: prints how many seconds Cobblestone-256 takes for FILE, in updates of 4 MiB, to /dev/null. It reuses buffers
(`update_into`), which is the fastest way in pyca; with --update it allocates new ones (`update`). The start of Python is not counted.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time

import harness
import pyca_venv

PIECE = 4 << 20


def messages(bits, count, size):
    """Seconds in which pyca encrypts this number of messages, each with a different key."""
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    keys = [os.urandom(bits // 8) for _ in range(count)]
    nonces = [os.urandom(12) for _ in range(count)]
    data = [os.urandom(size) for _ in range(count)]
    start = time.perf_counter()
    for key, nonce, text in zip(keys, nonces, data):
        AESGCM(key).encrypt(nonce, text, None)
    return time.perf_counter() - start


def lockstep(path, bits, size):
    """Seconds in which `lockstep bench` encrypts a message."""
    name = f"gcm-{bits}-keys"
    # `lockstep bench` makes one round after its warm-up round. This script repeats the call for further rounds.
    options = ["--rounds", "1", "--no-openssl", "--threads", "1", "--json"]
    command = [path, "bench", "--mode", name, "--size", str(size), *options]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    if done.returncode:
        sys.exit(f"{' '.join(command)} failed: {done.stderr.strip()}")
    results = json.loads(done.stdout)["suites"]["peers"]["results"]
    results = [result for result in results if (result["work"], result["size"]) == (name, size)]
    if len(results) != 1:
        sys.exit(f"{' '.join(command)}: expected one result of this size, not {len(results)}")
    return size / results[0]["bytes_per_second"]["lockstep"]["median"]


def file(path, reuse):
    """Seconds in which pyca encrypts a file."""
    from cryptography.cobblestone import Cobblestone256Encryptor

    encryptor = Cobblestone256Encryptor(Cobblestone256Encryptor.generate_key(), b"")
    # The buffer has room for a piece, for the end of the previous piece, and for a tag of each chunk.
    room, output = memoryview(bytearray(PIECE)), memoryview(bytearray(PIECE + PIECE // 64 + 32768))
    with open(path, "rb", buffering=0) as source, open(os.devnull, "wb", buffering=0) as sink:
        start = time.perf_counter()
        if reuse:
            while got := source.readinto(room):
                done = encryptor.update_into(room[:got], output)
                sink.write(output[:done])
        else:
            while piece := source.read(PIECE):
                sink.write(encryptor.update(piece))
        sink.write(encryptor.finalize())
        return time.perf_counter() - start


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, usage=argparse.SUPPRESS
    )
    parser.add_argument("--bits", type=int, choices=(128, 256), default=128)
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--sizes", type=lambda text: [int(size) for size in text.split(",")], default=[16, 64, 256, 1024])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--lockstep", metavar="PATH")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--file")
    parser.add_argument("--update", action="store_true")
    parser.add_argument("--version", action="store_true")
    arguments = parser.parse_args()
    pyca_venv.ensure("pyca's speed")
    import cryptography
    from cryptography.hazmat.backends.openssl import backend

    if arguments.file:
        print(f"{file(arguments.file, not arguments.update):.6f}")
        return
    versions = f"pyca cryptography {cryptography.__version__} ({backend.openssl_version_text()})"
    if arguments.version:
        print(versions)
        return
    results = []
    for size in arguments.sizes:
        contenders = {"pyca": lambda: messages(arguments.bits, arguments.count, size) / arguments.count}
        if arguments.lockstep:
            contenders["lockstep"] = lambda: lockstep(arguments.lockstep, arguments.bits, size)
        results.append({"size": size, "lockstep": [], **harness.alternate(contenders, arguments.rounds)})
    if arguments.json:
        print(harness.as_json(versions, bits=arguments.bits, count=arguments.count, seconds=results))
        return
    print(f"{harness.machine()}, {versions}\n")
    print(f"AES-{arguments.bits}-GCM, a new key for each of {arguments.count} messages, one thread\n")
    harness.head("message", "who", "ns a message (least to most)", "GB/s", "lockstep is faster")
    for result in results:
        for who in ("pyca", "lockstep"):
            times = [seconds * 1e9 for seconds in result[who]]
            if not times:
                continue
            middle = statistics.median(times)
            times_faster = ""
            if who == "pyca" and result["lockstep"]:
                times_faster = f"{middle / (statistics.median(result['lockstep']) * 1e9):.2f} x"
            harness.row(f"{result['size']} B", who, harness.spread(times), f"{result['size'] / middle:.3f}", times_faster)


if __name__ == "__main__":
    main()
