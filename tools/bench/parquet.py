#!/usr/bin/env python3
"""Measures how fast an encrypted Parquet file becomes an Arrow table: by pyarrow, by DuckDB, and by lockstep with pyarrow.

    tools/bench/parquet.py PACKAGE [MIB]    PACKAGE: a wheel of `make wheel`, or a folder with the package; MIB: size (256)

The file has eight columns of random 64-bit integers, uncompressed, encrypted by AES_GCM_V1 with a key of 256 bits. It is in memory
(the page cache). The measurements alternate, and the best time of each is reported. If lockstep and its peer both read by pyarrow, the
faster of the two ways in which pyarrow reads is reported. CPU time is that of all threads; on a machine with other work it is more reliable
than the elapsed time. Prints tables in Markdown with the bar (the required value) of each figure.
"""

import os
import sys
import tempfile

import harness
import python_venv

COLUMNS = 8
ROUNDS = 7
PYARROW = "pyarrow's decryption"
LOCKSTEP = "lockstep, read by pyarrow"


def measure(folder, size):
    import duckdb
    import lockstep
    import lockstep.parquet
    import numpy
    import pyarrow
    import pyarrow.parquet as pq
    import pyarrow.parquet.encryption as pe

    key = b"0123456789abcdef0123456789abcdef"
    rows = size * (1 << 20) // (8 * COLUMNS)
    numbers = numpy.random.default_rng(1)
    table = pyarrow.table({f"c{i}": numbers.integers(0, 1 << 62, rows) for i in range(COLUMNS)})
    plain, path = os.path.join(folder, "plain.parquet"), os.path.join(folder, "encrypted.parquet")
    settings = {"compression": "none", "use_dictionary": False, "write_statistics": False}
    pq.write_table(table, plain, **settings)
    pq.write_table(table, path, encryption_properties=pe.create_encryption_properties(key), **settings)
    connection = duckdb.connect()
    connection.execute(f"pragma add_parquet_key('key', '{key.decode()}')")
    # DuckDB reads a file that it has written: it cannot read files of pyarrow that have several pages in a column chunk.
    theirs = os.path.join(folder, "duckdb.parquet")
    # DuckDB would have to download an extension for encryption. Without the extension, it encrypts only if this
    # option is set.
    connection.execute("set force_mbedtls_unsafe = 'true'")
    connection.register("rows", table)
    connection.execute(f"copy (from rows) to '{theirs}' (compression uncompressed, encryption_config {{footer_key: 'key'}})")
    connection.execute("set force_mbedtls_unsafe = 'false'")
    query = f"from read_parquet('{theirs}', encryption_config={{footer_key: 'key'}})"

    def by_pyarrow(pre_buffer=True):
        properties = pe.create_decryption_properties(key)
        return pq.read_table(path, decryption_properties=properties, pre_buffer=pre_buffer)

    def by_lockstep(pre_buffer=True):
        with lockstep.parquet.open(path, {"footer": key}) as file:
            return pq.read_table(file, pre_buffer=pre_buffer)

    def by_duckdb():
        return connection.sql(query).to_arrow_table()

    def decryption_only():
        with lockstep.parquet.open(path, {"footer": key}) as file:
            while file.read(16 << 20):
                pass

    def write():
        lockstep.parquet.encrypt(plain, path + ".out", footer_key=key, overwrite=True)

    assert by_lockstep().equals(table) and by_pyarrow().equals(table)
    functions = {
        "plain file by pyarrow": lambda: pq.read_table(plain),
        PYARROW: by_pyarrow,
        f"{PYARROW}, pre_buffer=False": lambda: by_pyarrow(False),
        LOCKSTEP: by_lockstep,
        f"{LOCKSTEP}, pre_buffer=False": lambda: by_lockstep(False),
        "lockstep, decryption only": decryption_only,
        "lockstep, encryption of a file": write,
        "DuckDB": by_duckdb,
    }
    contenders = {name: harness.timed_with_cpu(function) for name, function in functions.items()}
    times = {name: harness.best(taken) for name, taken in harness.alternate(contenders, ROUNDS).items()}
    bytes_of_file = os.path.getsize(path)
    versions = f"pyarrow {pyarrow.__version__}, DuckDB {duckdb.__version__}, Python {sys.version.split()[0]}"
    print(f"lockstep-aes {lockstep.__version__}, {versions}")
    print(f"{harness.machine()}\n{lockstep.devices()[0].description}, {size} MiB\n")
    harness.head("reader", "time", "MB/s", "CPU time")
    for name, (seconds, cpu) in times.items():
        harness.row(name, f"{seconds * 1e3:.0f} ms", f"{bytes_of_file / seconds / 1e6:.0f}", f"{cpu * 1e3:.0f} ms")

    def better(name):
        return harness.best((times[name], times[f"{name}, pre_buffer=False"]))

    ours, theirs, duckdbs = better(LOCKSTEP), better(PYARROW), times["DuckDB"]
    print()
    harness.head("figure", "ratio of times", "ratio of CPU times", "bar")
    harness.row("pyarrow / lockstep", f"{theirs[0] / ours[0]:.2f}", f"{theirs[1] / ours[1]:.2f}", 1.2)
    harness.row("DuckDB / lockstep", f"{duckdbs[0] / ours[0]:.2f}", f"{duckdbs[1] / ours[1]:.2f}", "")
    harness.row("lockstep's rate / 123 MB/s", f"{bytes_of_file / ours[0] / 123e6:.2f}", "", 8)


def main():
    if len(sys.argv) not in (2, 3) or sys.argv[1] in ("-h", "--help"):
        print(__doc__.strip())
        sys.exit(2)
    python_venv.use()
    size = int(sys.argv[2]) if len(sys.argv) > 2 else 256
    with tempfile.TemporaryDirectory() as folder:
        harness.use_package(sys.argv[1], folder)
        measure(folder, size)


if __name__ == "__main__":
    main()
