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
# Settings of pyarrow's writer that the tests combine with each algorithm: most vary one setting, some vary
# several.
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
# Options with which files of both algorithms can be read.
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
        # The name of a group means all columns in the group.
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
        # Readers without a key can read the plain column if the footer is plaintext.
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
            # A prefix that the file stores is shown in the error message, but it is not used.
            with pytest.raises(ValueError, match='the AAD prefix "table 1", .*pass it as aad_prefix' if store else "does not store"):
                read(file, {"footer": FOOTER})
            with pytest.raises(ValueError, match="aad_prefix"):
                lockstep.parquet.decrypt(io.BytesIO(file), tmp_path / "plain.parquet", {"footer": FOOTER})
            with pytest.raises(ValueError, match="prefix is empty"):
                read(file, {"footer": FOOTER}, aad_prefix=b"")
            assert not (tmp_path / "plain.parquet").exists()
    without = write(TABLE, encryption_properties=pe.create_encryption_properties(FOOTER))
    with pytest.raises(ValueError, match="written without one"):
        read(without, {"footer": FOOTER}, aad_prefix=b"table 1")


def fail(*_arguments):
    raise AssertionError("a key is requested")


@pytest.mark.parametrize("plaintext_footer", [False, True])
def test_identifiers_and_prefixes_are_checked_before_keys_are_requested(plaintext_footer, tmp_path):
    properties = pe.create_encryption_properties(FOOTER, plaintext_footer=plaintext_footer, aad_prefix=b"table 1")
    stored = write(TABLE.slice(0, 10), encryption_properties=properties)
    with pytest.raises(ValueError, match='"table 1"'):
        read(stored, None, kms=fail)
    # In the footer, the identifier follows the prefix and is a string of 8 bytes.
    start = stored.rindex(b"\x18\x07table 1") + 9
    assert stored[start : start + 2] == b"\x18\x08"
    everything = {"allow_missing_aad": True, "allow_unauthenticated_footer": True, "aad_prefix": b"table 1"}
    for length in (0, 7, 9, 13):
        identifier = bytes([0x18, length]) + bytes(length)
        changed = bytearray(stored[:start] + identifier + stored[start + 10 : -8])
        size = int.from_bytes(stored[-8:-4], "little") + length - 8
        changed += size.to_bytes(4, "little") + stored[-4:]
        for source in ({"kms": fail}, {"keys": {"footer": FOOTER}}, {"keys": {}}):
            with pytest.raises(ValueError, match=f"{length} bytes instead of 8"):
                lockstep.parquet.open(io.BytesIO(changed), **source, **everything)
            with pytest.raises(ValueError, match=f"{length} bytes instead of 8"):
                lockstep.parquet.decrypt(io.BytesIO(changed), tmp_path / "out", **source, **everything)
    assert read(stored, {"footer": FOOTER}, **everything).num_rows == 10


def test_plain_columns_without_a_footer_key(tmp_path):
    path, footer = tmp_path / "file.parquet", {"allow_unauthenticated_footer": True}
    lockstep.parquet.encrypt(
        io.BytesIO(write(TABLE, row_group_size=1000, write_page_index=True)),
        path,
        footer_key=FOOTER,
        columns={"point": COLUMN, "note": COLUMN[:16]},
        plain_columns=["id", "list"],
        plaintext_footer=True,
        footer_key_metadata=material("footer", FOOTER),
        column_key_metadata={"point": material("column", COLUMN), "note": material("footer", COLUMN[:16])},
    )

    def kms(master, wrapped):
        return None if master == "footer" else unwrap(master, wrapped)

    for source, names in (
        ({"keys": {}}, ["id", "list"]),
        ({"keys": {"columns": {"point": COLUMN}}}, ["id", "list", "point"]),
        ({"kms": kms}, ["id", "list", "point"]),
    ):
        with pytest.raises(ValueError, match="no footer key, so that the signature of the footer cannot be checked"):
            lockstep.parquet.open(path, **source)
        with lockstep.parquet.open(path, **source, **footer) as file:
            parquet = pq.ParquetFile(file)
            assert parquet.schema_arrow.equals(TABLE.schema)
            assert parquet.read(names).equals(TABLE.select(names))
            for name, message in (("value", "column value, which is encrypted with the footer key"), ("note", "column note")):
                with pytest.raises(ValueError, match=f"there is no key for {message}: give one"):
                    parquet.read([name])
        out = tmp_path / "out.parquet"
        lockstep.parquet.decrypt(path, out, **source, **footer, overwrite=True)
        assert pq.read_table(out, columns=names).equals(TABLE.select(names))
    # If the footer key is given, the signature of the footer is checked.
    changed = path.read_bytes()
    at = changed.rindex(b"point")
    changed = changed[:at] + b"paint" + changed[at + 5 :]
    with pytest.raises((ValueError, lockstep.InvalidTag)):
        read(changed, {"footer": FOOTER}, **footer)
    # Without its key, an encrypted footer cannot be read.
    lockstep.parquet.encrypt(io.BytesIO(write(TABLE)), path, footer_key=FOOTER, plain_columns=["id"], overwrite=True)
    with pytest.raises(ValueError, match="no key for the footer"):
        lockstep.parquet.open(path, {}, **footer)


@pytest.mark.parametrize("plaintext_footer", [False, True])
def test_names_of_groups(plaintext_footer, tmp_path):
    """open takes each name that encrypt takes."""
    path = tmp_path / "file.parquet"
    for columns in (
        {"list": COLUMN, "point": COLUMN[:16], "map": FOOTER[:24]},
        {"list.list": COLUMN, "point.y": COLUMN[:16], "map.key_value.key": FOOTER[:24], "value": COLUMN},
    ):
        lockstep.parquet.encrypt(
            io.BytesIO(write(TABLE, row_group_size=1000)),
            path,
            footer_key=FOOTER,
            columns=columns,
            plaintext_footer=plaintext_footer,
            overwrite=True,
        )
        assert read(path.read_bytes(), {"footer": FOOTER, "columns": columns}).equals(TABLE)
    with pytest.raises(ValueError, match="column point.x: .* the file has encrypted it with the footer key"):
        read(path.read_bytes(), {"footer": FOOTER, "columns": {"point": COLUMN[:16]}})
    with pytest.raises(ValueError, match="column point.y.z: two keys"):
        read(path.read_bytes(), {"footer": FOOTER, "columns": {**columns, "point.y.z": COLUMN}})
    with pytest.raises(ValueError, match="no column lis"):
        read(path.read_bytes(), {"footer": FOOTER, "columns": {**columns, "lis": COLUMN}})


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
        # DuckDB reads the Bloom filters: no filter excludes a value that is present, and all filters exclude
        # a value that is absent.
        probe = f"select count(*) from parquet_bloom_probe('{decrypted}', 'id', {{}}) where bloom_filter_excludes"
        assert duckdb.sql(probe.format(10_000_000)).fetchall() == [(3,)]
        assert duckdb.sql(probe.format(1500)).fetchall()[0][0] < 3


def test_duckdb_and_polars(tmp_path):
    duckdb = pytest.importorskip("duckdb")
    key = b"0123456789abcdef"
    # Columns are not nested, because DuckDB's associated data of nested columns differ from those of Lockstep
    # and pyarrow.
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
    # DuckDB would have to download an extension for encryption. Without the extension, it encrypts only if
    # this option is set.
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
    # The control: the unchanged file is read.
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
    # A plain page replaces a page that the footer describes as encrypted.
    page = plain[4:8000]
    file[4 : 4 + len(page)] = page
    keys = {"footer": FOOTER, "columns": {"a": COLUMN}}
    with pytest.raises(ValueError, match="column a"):
        read(bytes(file), keys)
    # A plain column or a plain file is refused if the reader has a key for it.
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
    with pytest.raises(ValueError, match="unknown entries: 'footr';"):
        lockstep.parquet.open(io.BytesIO(file), {"footr": FOOTER})
    with pytest.raises(ValueError, match=r"unknown entries: \(a text, not shown\);"):
        lockstep.parquet.open(io.BytesIO(file), {"\ud800": FOOTER})
    with pytest.raises(TypeError, match="keys is of the type bytes"):
        lockstep.parquet.open(io.BytesIO(file), FOOTER)
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
            # Changes of values are not detected. The output must still not be much larger than the input.
            assert path.stat().st_size < 3 * len(plain)
    assert 20 < refused < 200


# Files of parquet-java (library/parquet/tests/data/README.md), and the columns in the order of their keys.
JAVA = pathlib.Path(__file__).parents[3] / "library" / "parquet" / "tests" / "data"
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
        # The decrypted file, with its column indexes and offset indexes, is encrypted again.
        lockstep.parquet.encrypt(file, tmp_path / "again.parquet", footer_key=FOOTER)
    assert pyarrow_reads(tmp_path / "again.parquet").equals(expected)
    keys["footer"] = FOOTER
    with pytest.raises(lockstep.InvalidTag):
        lockstep.parquet.open(JAVA / f"{name}.parquet.encrypted", keys, **options)
