"""lockstep.parquet against pyarrow, DuckDB and polars."""

import base64
import datetime
import io
import json
import pathlib
import random

import lockstep
import lockstep.parquet
import pytest
from conftest import data
from lockstep.aead import AESGCM

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")
pe = pytest.importorskip("pyarrow.parquet.encryption")

ROWS = 3000
FOOTER, COLUMN = data(32), data(32)
# What the matrix varies, one setting at a time and some together.
WRITINGS = [
    {},
    {"compression": "none"},
    {"data_page_version": "2.0"},
    {"data_page_version": "2.0", "compression": "none", "use_dictionary": False},
    {"compression": "zstd", "row_group_size": 700},
    {"data_page_size": 512, "write_page_index": True, "write_batch_size": 64},
    {"write_page_checksum": True},
    {"write_statistics": False},
]
ALGORITHMS = ["AES_GCM_V1", "AES_GCM_CTR_V1"]
# What reads files of both algorithms.
BOTH = {"allow_unauthenticated_pages": True}


def make_table(rows=ROWS):
    numbers = random.Random(1)
    return pa.table(
        {
            "id": pa.array(range(rows), pa.int64()),
            "value": pa.array([None if i % 7 == 0 else numbers.random() for i in range(rows)], pa.float64()),
            "city": pa.array([f"city {i % 13}" for i in range(rows)]).dictionary_encode(),
            "note": pa.array([None if i % 5 else "note " * (i % 9) for i in range(rows)]),
            "list": pa.array([None if i % 11 == 0 else list(range(i % 4)) for i in range(rows)], pa.list_(pa.int32())),
            "point": pa.array([{"x": i, "y": {"z": str(i)}} for i in range(rows)]),
            "map": pa.array([[("a", i), ("b", None)] for i in range(rows)], pa.map_(pa.string(), pa.int16())),
            "flag": pa.array([i % 3 == 0 for i in range(rows)]),
            "day": pa.array([datetime.date(2026, 1, 1)] * rows),
            "empty": pa.nulls(rows, pa.int32()),
        }
    )


TABLE = make_table()


class Kms(pe.KmsClient):
    """Wraps keys by GCM with master keys that are in memory."""

    MASTERS = {"footer": data(16), "column": data(16)}

    def __init__(self, _config=None):
        super().__init__()

    def wrap_key(self, key, master):
        nonce = data(12)
        return base64.b64encode(nonce + AESGCM(self.MASTERS[master]).encrypt(nonce, key, None))

    def unwrap_key(self, wrapped, master):
        return unwrap(master, wrapped)


def unwrap(master, wrapped):
    sealed = base64.b64decode(wrapped)
    return AESGCM(Kms.MASTERS[master]).decrypt(sealed[:12], sealed[12:], None)


FACTORY = pe.CryptoFactory(Kms)
CONFIG = pe.KmsConnectionConfig()


def write(table, **options):
    """A file in memory that pyarrow has written."""
    sink = io.BytesIO()
    pq.write_table(table, sink, **options)
    return sink.getvalue()


def read(file, keys, **options):
    with lockstep.parquet.open(io.BytesIO(file), keys, **options) as plain:
        return pq.read_table(plain)


def pyarrow_reads(path, key=FOOTER, **options):
    return pq.read_table(path, decryption_properties=pe.create_decryption_properties(key, **options))


def material(master, key):
    """Key metadata as pyarrow writes them."""
    return json.dumps(
        {
            "keyMaterialType": "PKMT1",
            "internalStorage": True,
            "isFooterKey": master == "footer",
            "kmsInstanceID": "DEFAULT",
            "kmsInstanceURL": "DEFAULT",
            "masterKeyID": master,
            "wrappedDEK": Kms().wrap_key(key, master).decode(),
            "doubleWrapping": False,
        }
    ).encode()


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("options", WRITINGS, ids=str)
def test_reads_what_pyarrow_writes(options, algorithm):
    for length, plaintext_footer in ((16, False), (24, True), (32, False)):
        key = FOOTER[:length]
        properties = pe.create_encryption_properties(key, encryption_algorithm=algorithm, plaintext_footer=plaintext_footer)
        file = write(TABLE, encryption_properties=properties, **options)
        if algorithm == "AES_GCM_CTR_V1":
            with pytest.raises(ValueError, match="pages of the file have no authentication"):
                read(file, {"footer": key})
        else:
            assert read(file, {"footer": key}).equals(TABLE)
        assert read(file, {"footer": key}, **BOTH).equals(TABLE)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("options", WRITINGS, ids=str)
def test_pyarrow_reads_what_lockstep_writes(options, algorithm, tmp_path):
    plain = write(TABLE, **options)
    for length, plaintext_footer in ((16, False), (24, True), (32, False)):
        key, path = FOOTER[:length], tmp_path / f"{length}.parquet"
        lockstep.parquet.encrypt(
            io.BytesIO(plain), path, footer_key=key, algorithm=algorithm, plaintext_footer=plaintext_footer
        )
        assert pyarrow_reads(path, key).equals(TABLE)
        assert read(path.read_bytes(), {"footer": key}, **BOTH).equals(TABLE)
        with pytest.raises((OSError, ValueError)):
            pyarrow_reads(path, bytes(length))


@pytest.mark.parametrize("double", [False, True])
@pytest.mark.parametrize("plaintext_footer", [False, True])
@pytest.mark.parametrize("bits", [128, 192, 256])
def test_reads_column_keys_of_pyarrow_by_kms(double, plaintext_footer, bits):
    config = pe.EncryptionConfiguration(
        "footer",
        column_keys={"column": ["value", "list.list.element", "point.y.z"]},
        double_wrapping=double,
        plaintext_footer=plaintext_footer,
        data_key_length_bits=bits,
        encryption_algorithm=ALGORITHMS[double],
    )
    file = write(TABLE, encryption_properties=FACTORY.file_encryption_properties(CONFIG, config), row_group_size=1000)
    calls = []

    def kms(master, wrapped):
        calls.append(master)
        return unwrap(master, wrapped)

    assert read(file, None, kms=kms, **BOTH).equals(TABLE)
    assert set(calls) == {"footer", "column"}
    if double:
        # A key that encrypts keys is unwrapped once.
        assert len(calls) == len(set(calls))

    def fails(master, wrapped):
        raise PermissionError("no access")

    with pytest.raises(PermissionError, match="no access"):
        read(file, None, kms=fails, **BOTH)


@pytest.mark.parametrize("plaintext_footer", [False, True])
def test_pyarrow_reads_column_keys_of_lockstep(plaintext_footer, tmp_path):
    path = tmp_path / "file.parquet"
    lockstep.parquet.encrypt(
        io.BytesIO(write(TABLE, row_group_size=1000, write_page_index=True)),
        path,
        footer_key=FOOTER,
        # The name of a group is that of all columns in it.
        columns={"value": COLUMN, "point": COLUMN[:16]},
        plain_columns=["id"],
        footer_key_metadata=material("footer", FOOTER),
        column_key_metadata={"value": material("column", COLUMN), "point": material("column", COLUMN[:16])},
        plaintext_footer=plaintext_footer,
    )
    properties = FACTORY.file_decryption_properties(CONFIG, pe.DecryptionConfiguration())
    assert pq.read_table(path, decryption_properties=properties).equals(TABLE)
    keys = {"footer": FOOTER, "columns": {"value": COLUMN, "point.x": COLUMN[:16], "point.y.z": COLUMN[:16]}}
    assert read(path.read_bytes(), keys).equals(TABLE)
    if plaintext_footer:
        # A reader without keys reads the plain column.
        assert pq.read_table(path, columns=["id"]).equals(TABLE.select(["id"]))


def test_a_column_without_key_cannot_be_read_and_the_others_can(tmp_path):
    path = tmp_path / "file.parquet"
    for plaintext_footer in (False, True):
        plain = io.BytesIO(write(TABLE, row_group_size=1000))
        lockstep.parquet.encrypt(
            plain, path, footer_key=FOOTER, columns={"value": COLUMN}, plaintext_footer=plaintext_footer, overwrite=True
        )
        with lockstep.parquet.open(path, {"footer": FOOTER}) as file:
            parquet = pq.ParquetFile(file)
            assert parquet.schema_arrow.equals(TABLE.schema)
            others = [name for name in TABLE.column_names if name != "value"]
            assert parquet.read(others).equals(TABLE.select(others))
            with pytest.raises(ValueError, match="no key for column value"):
                parquet.read(["value"])


def test_aad_prefixes(tmp_path):
    for store in (True, False):
        properties = pe.create_encryption_properties(FOOTER, aad_prefix=b"table 1", store_aad_prefix=store)
        theirs = write(TABLE, encryption_properties=properties)
        path = tmp_path / f"{store}.parquet"
        lockstep.parquet.encrypt(
            io.BytesIO(write(TABLE)), path, footer_key=FOOTER, aad_prefix=b"table 1", store_aad_prefix=store
        )
        assert pyarrow_reads(path, aad_prefix=b"table 1").equals(TABLE)
        for file in (theirs, path.read_bytes()):
            assert read(file, {"footer": FOOTER}, aad_prefix=b"table 1").equals(TABLE)
            with pytest.raises(ValueError if store else lockstep.InvalidTag):
                read(file, {"footer": FOOTER}, aad_prefix=b"table 2")
            if store:
                assert read(file, {"footer": FOOTER}).equals(TABLE)
            else:
                with pytest.raises(ValueError, match="does not store"):
                    read(file, {"footer": FOOTER})
    without = write(TABLE, encryption_properties=pe.create_encryption_properties(FOOTER))
    with pytest.raises(ValueError, match="written without one"):
        read(without, {"footer": FOOTER}, aad_prefix=b"table 1")


def test_empty_tables(tmp_path):
    for table in (TABLE.slice(0, 0), pa.table({}), TABLE.slice(0, 1)):
        file = write(table, encryption_properties=pe.create_encryption_properties(FOOTER))
        assert read(file, {"footer": FOOTER}).equals(table)
        path = tmp_path / "file.parquet"
        lockstep.parquet.encrypt(io.BytesIO(write(table)), path, footer_key=FOOTER, overwrite=True)
        assert pyarrow_reads(path).equals(table)


def test_bloom_filters(tmp_path):
    options = {"id": {"ndv": 1000, "fpp": 0.05}}
    plain = write(TABLE, bloom_filter_options=options, row_group_size=1000, write_page_index=True)
    assert len(plain) > len(write(TABLE, row_group_size=1000, write_page_index=True))
    path = tmp_path / "file.parquet"
    duckdb = pytest.importorskip("duckdb")
    for plain_columns in ([], ["id"]):
        lockstep.parquet.encrypt(
            io.BytesIO(plain), path, footer_key=FOOTER, plain_columns=plain_columns, overwrite=True
        )
        decrypted = tmp_path / "plain.parquet"
        lockstep.parquet.decrypt(path, decrypted, {"footer": FOOTER}, overwrite=True)
        assert pq.read_table(decrypted).equals(TABLE)
        # DuckDB reads the filters: none of them excludes a value that is there, and all exclude one that is not.
        probe = f"select count(*) from parquet_bloom_probe('{decrypted}', 'id', {{}}) where bloom_filter_excludes"
        assert duckdb.sql(probe.format(10_000_000)).fetchall() == [(3,)]
        assert duckdb.sql(probe.format(1500)).fetchall()[0][0] < 3


def test_duckdb_and_polars(tmp_path):
    duckdb = pytest.importorskip("duckdb")
    key = b"0123456789abcdef"
    # DuckDB computes associated data of nested columns in another way, also for files of pyarrow.
    table = TABLE.select(["id", "value", "note", "flag", "day"])
    connection = duckdb.connect()
    connection.execute(f"pragma add_parquet_key('key', '{key.decode()}')")
    ours, plain = tmp_path / "ours.parquet", tmp_path / "plain.parquet"
    lockstep.parquet.encrypt(io.BytesIO(write(table)), ours, footer_key=key)
    rows = connection.sql(f"from read_parquet('{ours}', encryption_config={{footer_key: 'key'}})").to_arrow_table()
    assert rows.to_pylist() == table.to_pylist()
    lockstep.parquet.decrypt(ours, plain, {"footer": key})
    assert connection.sql(f"from read_parquet('{plain}')").to_arrow_table().to_pylist() == table.to_pylist()
    theirs = tmp_path / "theirs.parquet"
    # Without an extension that is downloaded, DuckDB encrypts only if this is set.
    connection.execute("set force_mbedtls_unsafe = 'true'")
    connection.register("rows", table)
    connection.execute(f"copy (from rows) to '{theirs}' (encryption_config {{footer_key: 'key'}})")
    assert read(theirs.read_bytes(), {"footer": key}, allow_missing_aad=True).to_pylist() == table.to_pylist()
    with pytest.raises(ValueError, match="no associated data"):
        read(theirs.read_bytes(), {"footer": key})
    polars = pytest.importorskip("polars")
    with lockstep.parquet.open(ours, {"footer": key}) as file:
        assert polars.read_parquet(file).to_arrow().to_pylist() == table.to_pylist()


def test_small_reads_give_the_same_bytes():
    properties = pe.create_encryption_properties(FOOTER)
    file = write(TABLE, encryption_properties=properties, data_page_size=512, write_batch_size=64, compression="none")
    with lockstep.parquet.open(io.BytesIO(file), {"footer": FOOTER}) as plain:
        whole = plain.read()
        assert len(whole) == plain.size() and plain.read() == b"" and plain.read(5) == b""
        numbers = random.Random(2)
        for _ in range(300):
            start, count = numbers.randrange(len(whole)), numbers.choice([0, 1, 7, 100, 5000, 60_000])
            plain.seek(start)
            assert plain.read(count) == whole[start : start + count]
        plain.seek(0)
        buffered = io.BufferedReader(plain, 100)
        assert buffered.read(1000) == whole[:1000]
    assert pq.read_table(io.BytesIO(whole)).equals(TABLE)


@pytest.mark.parametrize("plaintext_footer", [False, True])
def test_damaged_files_are_refused(plaintext_footer):
    table = TABLE.slice(0, 200).select(["id", "value", "list"])
    properties = pe.create_encryption_properties(FOOTER, plaintext_footer=plaintext_footer)
    file = write(table, encryption_properties=properties, row_group_size=100)
    refused = (ValueError, lockstep.InvalidTag)
    numbers = random.Random(3)
    for position in range(0, len(file), 7):
        changed = bytearray(file)
        changed[position] ^= 1 << numbers.randrange(8)
        with pytest.raises(refused):
            read(bytes(changed), {"footer": FOOTER})
    for size in [*range(0, 50), *range(50, len(file), 101)]:
        with pytest.raises(refused):
            read(file[:size], {"footer": FOOTER})
    for _ in range(300):
        changed = bytearray(file)
        for _ in range(numbers.randrange(1, 6)):
            start = numbers.randrange(len(file))
            changed[start : start + numbers.randrange(9)] = numbers.randbytes(numbers.randrange(9))
        if bytes(changed) != file:
            with pytest.raises(refused):
                read(bytes(changed), {"footer": FOOTER})
    # The control.
    assert read(file, {"footer": FOOTER}).equals(table)


def test_pages_that_were_exchanged_are_refused():
    table = pa.table({"a": pa.array(range(100), pa.int64()), "b": pa.array(range(100), pa.int64())})
    properties = pe.create_encryption_properties(FOOTER)
    file = write(table, encryption_properties=properties, use_dictionary=False, compression="none")
    metadata = pq.read_metadata(io.BytesIO(file), decryption_properties=pe.create_decryption_properties(FOOTER))
    columns = [metadata.row_group(0).column(i) for i in range(2)]
    (a, b), size = (column.data_page_offset for column in columns), columns[0].total_compressed_size
    assert size == columns[1].total_compressed_size
    changed = file[:a] + file[b : b + size] + file[a : a + size] + file[b + size :]
    with pytest.raises(lockstep.InvalidTag, match="column a"):
        read(changed, {"footer": FOOTER})


def test_a_plain_column_in_place_of_an_encrypted_one_is_refused(tmp_path):
    table = pa.table({"a": pa.array(range(1000), pa.int64()), "b": pa.array(range(1000), pa.int64())})
    plain = write(table, use_dictionary=False, compression="none")
    path = tmp_path / "file.parquet"
    lockstep.parquet.encrypt(io.BytesIO(plain), path, footer_key=FOOTER, columns={"a": COLUMN}, plain_columns=["b"])
    file = bytearray(path.read_bytes())
    # The plain page where the footer promises an encrypted one.
    page = plain[4:8000]
    file[4 : 4 + len(page)] = page
    keys = {"footer": FOOTER, "columns": {"a": COLUMN}}
    with pytest.raises(ValueError, match="column a"):
        read(bytes(file), keys)
    # A plain column, or a plain file, for which the reader expects encryption.
    keys["columns"]["b"] = COLUMN
    with pytest.raises(ValueError, match="column b is not encrypted"):
        read(path.read_bytes(), keys)
    with pytest.raises(ValueError, match="the file is not encrypted"):
        read(plain, keys)


def test_policies_that_cannot_be_followed_leave_no_file(tmp_path):
    plain, path = write(TABLE), tmp_path / "file.parquet"

    def refuses(message, source=plain, **options):
        with pytest.raises(ValueError, match=message):
            lockstep.parquet.encrypt(io.BytesIO(source), path, **{"footer_key": FOOTER, **options})
        assert list(tmp_path.iterdir()) == []

    refuses("no column valve", columns={"valve": COLUMN})
    refuses("no column list.element", plain_columns=["list.element"])
    refuses("has a key and is named as plain", columns={"value": COLUMN}, plain_columns=["value"])
    refuses("two keys", columns={"point": COLUMN, "point.x": COLUMN})
    refuses("a key of 31 bytes", footer_key=FOOTER[1:])
    refuses("a key of 0 bytes for column value", columns={"value": b""})
    refuses("algorithm", algorithm="AES_CBC")
    refuses("prefix is empty", aad_prefix=b"")
    refuses("not an intact Parquet file", source=plain[:-9] + plain[-8:])
    refuses("not an intact Parquet file", source=b"")
    for plaintext_footer in (False, True):
        properties = pe.create_encryption_properties(FOOTER, plaintext_footer=plaintext_footer)
        refuses("encrypted already", source=write(TABLE, encryption_properties=properties))
    path.write_bytes(b"old")
    with pytest.raises(FileExistsError):
        lockstep.parquet.encrypt(io.BytesIO(plain), path, footer_key=FOOTER)
    assert path.read_bytes() == b"old"


def test_dots_in_names(tmp_path):
    """A column whose name starts with that of a plain column and a dot is not plain."""
    path, options = tmp_path / "file.parquet", {"compression": "none", "use_dictionary": False}
    table = pa.table({"user": ["ann"] * 10, "user.password": [f"secret {i}" for i in range(10)]})
    plain = write(table, **options)
    for names, is_visible in ((["user"], False), (["user", "user.password"], True)):
        lockstep.parquet.encrypt(io.BytesIO(plain), path, footer_key=FOOTER, plain_columns=names, overwrite=True)
        assert b"ann" in path.read_bytes()
        assert (b"secret 7" in path.read_bytes()) == is_visible
    ambiguous = write(pa.table({"a": [{"b": 1, "c": 2}], "a.b": [3]}), **options)
    with pytest.raises(ValueError, match=r"column a\.b: two columns"):
        lockstep.parquet.encrypt(io.BytesIO(ambiguous), path, footer_key=FOOTER, plain_columns=["a.b"], overwrite=True)
    lockstep.parquet.encrypt(io.BytesIO(ambiguous), path, footer_key=FOOTER, plain_columns=["a.c"], overwrite=True)


def test_arguments_of_open():
    file = write(TABLE, encryption_properties=pe.create_encryption_properties(FOOTER))
    with pytest.raises(TypeError, match="either keys or kms"):
        lockstep.parquet.open(io.BytesIO(file))
    with pytest.raises(ValueError, match="no key for the footer"):
        lockstep.parquet.open(io.BytesIO(file), {})
    with pytest.raises(ValueError, match="unknown entries"):
        lockstep.parquet.open(io.BytesIO(file), {"footr": FOOTER})
    with pytest.raises(ValueError, match="no column valve"):
        lockstep.parquet.open(io.BytesIO(file), {"footer": FOOTER, "columns": {"valve": COLUMN}})
    with pytest.raises(lockstep.InvalidTag, match="footer"):
        lockstep.parquet.open(io.BytesIO(file), {"footer": COLUMN})
    with pytest.raises(FileNotFoundError):
        lockstep.parquet.open("no such file", {"footer": FOOTER})
    with pytest.raises(ValueError, match="no key for the footer"):
        lockstep.parquet.open(
            io.BytesIO(write(TABLE, encryption_properties=pe.create_encryption_properties(FOOTER))), kms=unwrap
        )


def test_damaged_plain_files_are_refused_or_encrypted_as_they_are(tmp_path):
    plain = write(TABLE.slice(0, 50), write_page_index=True, row_group_size=20, bloom_filter_options={"id": {"ndv": 50, "fpp": 0.1}})
    footer = len(plain) - 8 - int.from_bytes(plain[-8:-4], "little")
    numbers, refused = random.Random(4), 0
    path = tmp_path / "file.parquet"
    for _ in range(200):
        changed = bytearray(plain)
        for _ in range(numbers.randrange(1, 4)):
            changed[numbers.randrange(footer if numbers.random() < 0.7 else 0, len(plain))] = numbers.randrange(256)
        try:
            lockstep.parquet.encrypt(io.BytesIO(changed), path, footer_key=FOOTER, columns={"point": COLUMN}, overwrite=True)
        except ValueError:
            refused += 1
        else:
            # A change of a value is not noticed, and the output is small.
            assert path.stat().st_size < 3 * len(plain)
    assert 20 < refused < 200


# Files of parquet-java (crates/parquet/tests/data/README.md), and the columns in the order of their keys.
JAVA = pathlib.Path(__file__).parents[2] / "parquet" / "tests" / "data"
JAVA_COLUMNS = ["double_field", "float_field", "boolean_field", "int32_field", "ba_field", "flba_field"]
JAVA_COLUMNS += ["int64_field.list.element", "int96_field"]


def java_key(first, last):
    return bytes(48 + (first + i) % 10 for i in range(31)) + b"%d" % last


@pytest.mark.parametrize(
    "name",
    [
        "uniform_encryption",
        "encrypt_columns_and_footer",
        "encrypt_columns_and_footer_ctr",
        "encrypt_columns_and_footer_disable_aad_storage",
        "encrypt_columns_plaintext_footer",
    ],
)
def test_reads_files_of_parquet_java(name, tmp_path):
    uniform = JAVA / "uniform_encryption.parquet.encrypted"
    expected = pyarrow_reads(uniform, java_key(0, 1))
    assert expected.num_rows == 50 and expected["ba_field"][:3].to_pylist() == [b"parquet000", None, b"parquet002"]
    keys = {"footer": java_key(0, 1)}
    if name != "uniform_encryption":
        keys["columns"] = {column: java_key(1, 2 + i) for i, column in enumerate(JAVA_COLUMNS)}
    options = {"aad_prefix": b"tester"} if "disable_aad" in name else {"allow_unauthenticated_pages": name.endswith("ctr")}
    with lockstep.parquet.open(JAVA / f"{name}.parquet.encrypted", keys, **options) as file:
        assert pq.read_table(file).equals(expected)
        # Their plain form, with its column and offset indexes, is encrypted again.
        lockstep.parquet.encrypt(file, tmp_path / "again.parquet", footer_key=FOOTER)
    assert pyarrow_reads(tmp_path / "again.parquet").equals(expected)
    keys["footer"] = FOOTER
    with pytest.raises(lockstep.InvalidTag):
        lockstep.parquet.open(JAVA / f"{name}.parquet.encrypted", keys, **options)


def sealed_module(key, plain, aad):
    """A module of GCM, by its definition."""
    nonce = data(12)
    sealed = nonce + AESGCM(key).encrypt(nonce, plain, aad)
    return len(sealed).to_bytes(4, "little") + sealed


class Dlpack:
    """An array with DLPack only, as tensors of PyTorch have it."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **arguments):
        return self.array.__dlpack__(**arguments)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


class TestModules:
    KEYS = [data(32), data(16), data(24)]
    PLAIN = [data(5000), b"", data(17)]
    AADS = [lockstep.parquet.module_aad(b"file", "data_page", 1, 2, i) for i in range(3)]

    def modules(self):
        return [sealed_module(*parts) for parts in zip(self.KEYS, self.PLAIN, self.AADS, strict=True)]

    def test_associated_data(self):
        aad = lockstep.parquet.module_aad
        assert aad(b"f", "footer", 1, 2, 3) == b"f\0"
        assert aad(b"f", "offset_index", 0x102, 3, 9) == b"f\x07\x02\x01\x03\0"
        assert aad(b"f", "data_page_header", 1, 2, 0x7FFF) == b"f\x04\x01\0\x02\0\xff\x7f"
        with pytest.raises(ValueError, match="'page'"):
            aad(b"f", "page")
        with pytest.raises(ValueError, match="32767"):
            aad(b"f", "data_page", 0, 0, 1 << 15)

    def test_on_the_host(self):
        numpy = pytest.importorskip("numpy")
        modules = self.modules()
        assert lockstep.parquet.decrypt_modules(modules, self.KEYS, self.AADS) == self.PLAIN
        pages = [modules[0], numpy.frombuffer(modules[1], numpy.uint8), memoryview(modules[2])]
        assert lockstep.parquet.decrypt_modules(pages, self.KEYS, self.AADS) == self.PLAIN
        pages[1] = Dlpack(numpy.frombuffer(bytearray(modules[1]), numpy.uint8))
        plain = lockstep.parquet.decrypt_modules(pages, self.KEYS, self.AADS)
        assert [bytes(page) for page in plain] == self.PLAIN and isinstance(plain[1], numpy.ndarray)
        same = [sealed_module(self.KEYS[0], *parts) for parts in zip(self.PLAIN, self.AADS, strict=True)]
        assert lockstep.parquet.decrypt_modules(same, self.KEYS[0], self.AADS) == self.PLAIN
        assert lockstep.parquet.decrypt_modules([], self.KEYS[0], []) == []

    def test_pages_of_a_file(self, tmp_path):
        """The first page header and page of a file of pyarrow, by both algorithms."""
        table = pa.table({"a": pa.array(range(100), pa.int64())})
        for algorithm in ALGORITHMS:
            properties = pe.create_encryption_properties(FOOTER, encryption_algorithm=algorithm)
            file = write(table, encryption_properties=properties, compression="none", use_dictionary=False, store_schema=False)
            end = len(file) - 8 - int.from_bytes(file[-8:-4], "little")
            header_end = 8 + int.from_bytes(file[4:8], "little")
            page_end = header_end + 4 + int.from_bytes(file[header_end : header_end + 4], "little")
            # The identifier of 8 bytes, after 4 bytes of the metadata.
            aad = [
                lockstep.parquet.module_aad(file[end + 4 : end + 12], module, 0, 0, 0) for module in ("data_page_header", "data_page")
            ]
            header = lockstep.parquet.decrypt_modules([file[4:header_end]], FOOTER, aad[:1])
            cipher = "CTR" if "CTR" in algorithm else "GCM"
            page = lockstep.parquet.decrypt_modules([file[header_end:page_end]], FOOTER, aad[1:], cipher=cipher)
            assert header[0] is not None
            assert page[0].endswith(b"".join(i.to_bytes(8, "little") for i in range(100)))

    def test_changes(self):
        modules = [bytearray(module) for module in self.modules()]
        modules[0][100] ^= 1
        modules[1][0] ^= 1
        assert lockstep.parquet.decrypt_modules(modules, self.KEYS, self.AADS) == [None, None, self.PLAIN[2]]
        # A module at another place.
        aads = [self.AADS[1], *self.AADS[1:]]
        assert lockstep.parquet.decrypt_modules(self.modules(), self.KEYS, aads) == [None, *self.PLAIN[1:]]

    def test_wrong_arguments(self):
        modules = self.modules()
        with pytest.raises(ValueError, match="2 strings of associated data"):
            lockstep.parquet.decrypt_modules(modules, self.KEYS, self.AADS[:2])
        with pytest.raises(ValueError, match="2 keys"):
            lockstep.parquet.decrypt_modules(modules, self.KEYS[:2], self.AADS)
        with pytest.raises(ValueError, match="31 bytes"):
            lockstep.parquet.decrypt_modules([bytes(31)], self.KEYS[0], [b""])
        with pytest.raises(ValueError, match="'XTS'"):
            lockstep.parquet.decrypt_modules(modules, self.KEYS, self.AADS, cipher="XTS")
        with pytest.raises(TypeError):
            lockstep.parquet.decrypt_modules(["text"], self.KEYS[0], [b""])
        with pytest.raises(ValueError, match="key"):
            lockstep.parquet.decrypt_modules(modules, bytes(15), self.AADS)

    def test_on_a_device(self):
        """The pages stay in the memory of the emulator, which has the path of a GPU."""
        tensor = pytest.importorskip("lockstep.tensor")
        try:
            selection = lockstep.use("cuda:emu")
        except ValueError:
            pytest.skip("NOT TESTED: memory of devices, because the extension is built without the feature lab")

        def on_device(module):
            array = tensor.DeviceArray(len(module), "cuda:emu")
            array.copy_from(module)
            return array

        with selection:
            modules = self.modules()
            plain = lockstep.parquet.decrypt_modules([on_device(module) for module in modules], self.KEYS, self.AADS)
            assert all(isinstance(page, tensor.DeviceArray) for page in plain)
            assert [page.tobytes() for page in plain] == self.PLAIN
            modules[2] = modules[2][:-1] + bytes([modules[2][-1] ^ 1])
            plain = lockstep.parquet.decrypt_modules([on_device(module) for module in modules], self.KEYS, self.AADS)
            assert plain[2] is None and plain[0].tobytes() == self.PLAIN[0]
            # Pages of CTR, which have no tag: the keystream is not that of GCM, so the plaintexts are not these.
            pages = [(len(module) - 20).to_bytes(4, "little") + module[4:-16] for module in modules]
            plain = lockstep.parquet.decrypt_modules(
                [on_device(page) for page in pages], self.KEYS, [b""] * 3, cipher="CTR"
            )
            on_host = lockstep.parquet.decrypt_modules(pages, self.KEYS, [b""] * 3, cipher="CTR")
            assert [page.tobytes() for page in plain] == on_host and on_host[0] != self.PLAIN[0]
            with pytest.raises(ValueError, match="one device"):
                lockstep.parquet.decrypt_modules([on_device(modules[0]), modules[1]], self.KEYS[0], self.AADS[:2])
