"""Tests URLs with `lockstep::` in libraries that open files through fsspec: pandas, pyarrow's datasets, zarr and dask. Also runs the
examples of docs/python.md."""

import pathlib
import re

import fsspec
import numpy
import pytest
from conftest import data
from cryptography import cobblestone

import lockstep
import lockstep.fsspec  # noqa: F401: registers the protocol; an installed package is found without it

pandas = pytest.importorskip("pandas")
PAGE = pathlib.Path(__file__).parents[3] / "docs" / "python.md"
PLACES = ["memory://tables", "file://{tmp_path}/tables"]


@pytest.fixture(params=PLACES, ids=["memory", "file"])
def root(request, tmp_path):
    """A folder on a file system of fsspec."""
    place = request.param.format(tmp_path=tmp_path)
    files = fsspec.filesystem(place.partition(":")[0])
    files.makedirs(place, exist_ok=True)
    yield place
    files.rm(place, recursive=True)


def plaintext(path, key):
    """The plaintext of a file, decrypted by another implementation."""
    decryptor = cobblestone.Cobblestone256Decryptor(key, b"")
    with fsspec.open(path, "rb") as file:
        return decryptor.update(file.read()) + decryptor.finalize()


@pytest.fixture
def table():
    numbers = numpy.random.default_rng(1)
    return pandas.DataFrame({"id": numpy.arange(20_000), "x": numbers.random(20_000), "name": ["größer", "b"] * 10_000})


def test_pandas_csv(root, key, table):
    options = {"lockstep": {"key": key}}
    table.to_csv(f"lockstep::{root}/table.csv", index=False, storage_options=options)
    assert plaintext(f"{root}/table.csv", key) == table.to_csv(index=False).encode()
    read = pandas.read_csv(f"lockstep::{root}/table.csv", storage_options=options)
    pandas.testing.assert_frame_equal(read, table)
    parts = pandas.read_csv(f"lockstep::{root}/table.csv", storage_options=options, chunksize=7000)
    assert [len(part) for part in parts] == [7000, 7000, 6000]
    with pytest.raises(lockstep.InvalidTag):
        pandas.read_csv(f"lockstep::{root}/table.csv", storage_options={"lockstep": {"key": data(32)}})


def test_pandas_parquet(root, key, table):
    pytest.importorskip("pyarrow")
    options = {"lockstep": {"key": key}}
    table.to_parquet(f"lockstep::{root}/table.parquet", storage_options=options)
    assert plaintext(f"{root}/table.parquet", key)[:4] == b"PAR1"
    read = pandas.read_parquet(f"lockstep::{root}/table.parquet", storage_options=options, columns=["x", "name"])
    pandas.testing.assert_frame_equal(read, table[["x", "name"]])
    with pytest.raises(lockstep.InvalidTag):
        pandas.read_parquet(f"lockstep::{root}/table.parquet", storage_options={"lockstep": {"key": data(32)}})


def test_pandas_formats(root, key, table):
    options = {"lockstep": {"key": key}}
    small = table[:100]
    small.to_json(f"lockstep::{root}/table.json", storage_options=options, double_precision=15)
    small.to_pickle(f"lockstep::{root}/table.pickle", storage_options=options)
    pandas.testing.assert_frame_equal(pandas.read_pickle(f"lockstep::{root}/table.pickle", storage_options=options), small)
    read = pandas.read_json(f"lockstep::{root}/table.json", storage_options=options, precise_float=True)
    pandas.testing.assert_frame_equal(read, small)


def test_a_table_that_fails_to_be_written_leaves_no_file(root, key):
    options = {"lockstep": {"key": key}}
    with pytest.raises(Exception, match="(?i)convert|mixed|type"):
        pandas.DataFrame({"a": [1, "x", object()]}).to_parquet(f"lockstep::{root}/bad.parquet", storage_options=options)
    assert fsspec.filesystem(root.partition(":")[0]).ls(root) == []


def test_pyarrow_dataset(root, key, table):
    arrow = pytest.importorskip("pyarrow")
    dataset = pytest.importorskip("pyarrow.dataset")
    files, folder = fsspec.url_to_fs(f"lockstep::{root}", lockstep={"key": key})
    content = arrow.Table.from_pandas(table)
    dataset.write_dataset(content, f"{folder}/set", filesystem=files, format="parquet", partitioning=["name"])
    assert len(files.find(f"{folder}/set")) == 2
    assert plaintext(files.fs.unstrip_protocol(files.find(folder)[0]), key)[:4] == b"PAR1"
    read = dataset.dataset(f"{folder}/set", filesystem=files, format="parquet", partitioning=["name"])
    part = read.to_table(columns=["id"], filter=(dataset.field("name") == "b") & (dataset.field("id") < 100))
    assert sorted(part["id"].to_pylist()) == list(range(1, 100, 2))
    assert read.count_rows() == len(table)


def test_zarr(root, key):
    zarr = pytest.importorskip("zarr")
    options = {"lockstep": {"key": key}}
    store = zarr.storage.FsspecStore.from_url(f"lockstep::{root}", storage_options=options)
    numbers = numpy.random.default_rng(1).random((300, 200))
    array = zarr.create_array(store, name="numbers", shape=numbers.shape, chunks=(100, 100), dtype=numbers.dtype)
    array[:] = numbers
    again = zarr.open_array(zarr.storage.FsspecStore.from_url(f"lockstep::{root}", storage_options=options), path="numbers", mode="r")
    assert (again[50:250:3, 20] == numbers[50:250:3, 20]).all()
    assert b'"shape"' in plaintext(f"{root}/numbers/zarr.json", key)


def test_zarr_shards(root, key):
    """zarr stores the index of a shard at the end of the shard."""
    zarr = pytest.importorskip("zarr")
    store = zarr.storage.FsspecStore.from_url(f"lockstep::{root}", storage_options={"lockstep": {"key": key}})
    numbers = numpy.random.default_rng(1).random((400, 200))
    array = zarr.create_array(store, name="numbers", shape=numbers.shape, chunks=(20, 100), shards=(200, 200), dtype=numbers.dtype)
    array[:] = numbers
    again = zarr.open_array(store, path="numbers", mode="r")
    assert (again[150:250:3, 20] == numbers[150:250:3, 20]).all()


# dask calls functions that pandas has deprecated, so warnings must not be errors here.
@pytest.mark.filterwarnings("default")
def test_dask(root, key, table):
    dataframe = pytest.importorskip("dask.dataframe")
    options = {"lockstep": {"key": key}}
    parts = dataframe.from_pandas(table, npartitions=3)
    parts.to_csv(f"lockstep::{root}/part-*.csv", index=False, storage_options=options)
    files, folder = fsspec.url_to_fs(f"lockstep::{root}", **options)
    assert [path.removeprefix(folder) for path in files.find(folder)] == [f"/part-{index}.csv" for index in range(3)]
    # dask reads each file in blocks of about 50,000 bytes, and moves the start of each block to the start of a line.
    read = dataframe.read_csv(f"lockstep::{root}/part-*.csv", storage_options=options, blocksize=50_000)
    assert read.npartitions > 6
    pandas.testing.assert_frame_equal(read.compute().reset_index(drop=True).astype(table.dtypes), table)
    parts.to_parquet(f"lockstep::{root}/parquet", storage_options=options)
    read = dataframe.read_parquet(f"lockstep::{root}/parquet", storage_options=options, columns=["id", "x"])
    pandas.testing.assert_frame_equal(read.compute(), table[["id", "x"]])


def test_the_examples_of_the_page_run(tmp_path, monkeypatch):
    """Runs the examples that need no GPU, no PyTorch and no keys of other people. A file system in memory replaces S3."""
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    blocks = [block for block in blocks if "torch" not in block and "like=tensor" not in block]
    assert len(blocks) >= 5
    (tmp_path / "photos.tar").write_bytes(data(100_000))
    names = {"__name__": "examples"}
    for block in blocks:
        block = block.partition("# For age recipients")[0].replace("s3://", "memory://").replace('"s3"', '"memory"')
        exec(compile(block.replace('{"anon": False}', "{}"), str(PAGE), "exec"), names)
