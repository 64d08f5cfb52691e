"""Tests properties of the file system `lockstep` that the published tests of fsspec do not test (for these see test_fsspec_suite.py)."""

import gc
import gzip
import os
import pathlib
import pickle

import fsspec
import pytest
from conftest import data

import lockstep
import lockstep.fsspec

KEY = data(32)
PLAIN = data(100_000)


@pytest.fixture(params=["memory", "file"])
def files(request, tmp_path):
    """A file system whose paths are relative to a folder."""
    other = fsspec.filesystem(request.param)
    root = str(tmp_path / "root")
    other.makedirs(root)
    yield lockstep.fsspec.LockstepFileSystem(root, key=KEY, fs=other)
    other.rm(root, recursive=True)


RANGES = [(None, None), (5, None), (-5, None), (None, 7), (None, -7), (3, -3), (-9, -3), (-9, 5), (50_000, 60_000), (99_990, 200_000)]


@pytest.mark.parametrize(("start", "end"), RANGES)
def test_ranges(files, start, end):
    files.pipe_file("name", PLAIN)
    assert files.cat_file("name", start=start, end=end) == PLAIN[start:end]
    assert files.cat_ranges(["name", "name"], start, end) == [PLAIN[start:end]] * 2


def test_blocks(files):
    lines = b"".join(b"line %d\n" % index for index in range(20_000))
    files.pipe_file("name", lines)
    assert files.read_block("name", 10, 20) == lines[10:30]
    assert files.read_block("name", len(lines) - 5, 100) == lines[-5:]
    blocks = [files.read_block("name", offset, 10_000, delimiter=b"\n") for offset in range(0, len(lines), 10_000)]
    assert b"".join(blocks) == lines and all(block.endswith(b"\n") for block in blocks)


def test_names_and_modes(files):
    with files.open("name", "wb") as file:
        assert (file.name, file.mode) == ("name", "wb")
    with files.open("name") as file:
        assert (file.name, file.mode, file.size) == ("name", "rb", 0)


def test_copies_of_folders_below_the_root(files, tmp_path):
    files.pipe({"d/a": b"1", "other/b": b"2"})
    files.copy("d", "other", recursive=True)
    files.copy("d/", "new", recursive=True)
    (tmp_path / "local").mkdir()
    files.get("d", str(tmp_path / "local"), recursive=True)
    assert files.find("") == ["d/a", "new/a", "other/b", "other/d/a"] and files.cat_file("other/d/a") == b"1"
    assert (tmp_path / "local" / "d" / "a").read_bytes() == b"1"
    files.get(["d/a", "other/b"], [str(tmp_path / "a"), str(tmp_path / "b")])
    assert (tmp_path / "b").read_bytes() == b"2"


@pytest.mark.parametrize("path", ["../name", "a/../../name", "lockstep://.."])
def test_paths_stay_below_the_folder(files, path):
    for call in (lambda: files.pipe_file(path, b"1"), lambda: files.cat_file(path), lambda: files.rm(path, recursive=True)):
        with pytest.raises(ValueError, match="below the folder"):
            call()


def test_removal_and_sizes(files):
    files.pipe({"d/s/b": b"1", "d/a.csv": b"22", "d/b.csv": b"333", "d/c.txt": b"4444"})
    assert files.du("") == 10 and files.du("d", total=False)["d/a.csv"] == 2 and files.du("d/c.txt") == 4
    assert files.glob("d/*.csv") == ["d/a.csv", "d/b.csv"] and files.glob("/d/*.csv") == ["d/a.csv", "d/b.csv"]
    files.rm("d/*.csv")
    assert files.find("d") == ["d/c.txt", "d/s/b"]
    files.rm(["d/c.txt"])
    files.rm("d", recursive=True)
    assert files.find("") == [] and not files.exists("d")
    with pytest.raises(FileNotFoundError):
        files.rm("d")
    # For a plain file, `du` counts the size on the underlying file system.
    files.fs.pipe_file(files._target("plain"), b"12345")
    assert files.info("plain")["size"] is None and files.du("") == 5


def test_transactions(files):
    files.pipe_file("old", b"old")
    with files.transaction:
        files.pipe_file("old", b"new")
        files.pipe_file("new", b"new")
        with files.open("packed.gz", "wb", compression="infer") as file:
            file.write(b"packed")
        with files.open("text", "w") as file:
            file.write("text")
        del file
        gc.collect()
        assert files.cat_file("old") == b"old" and files.find("") == ["old"]
    assert files.cat(["old", "new"]) == {"old": b"new", "new": b"new"}
    assert gzip.decompress(files.cat_file("packed.gz")) == b"packed" and files.cat_file("text") == b"text"
    with pytest.raises(ZeroDivisionError), files.transaction:
        files.pipe_file("old", b"newer")
        files.pipe_file("other", b"other")
        files.open("unfinished", "wb").write(b"x")
        raise ZeroDivisionError
    assert files.cat_file("old") == b"new" and files.find("") == ["new", "old", "packed.gz", "text"]
    # After the end of the transaction, a file appears again as soon as it is written.
    files.pipe_file("other", b"other")
    assert files.exists("other")


def test_a_writer_that_fails_leaves_the_old_file(files):
    files.pipe_file("name", b"old")
    for compression in (None, "gzip"):
        with pytest.raises(ZeroDivisionError), files.open("name", "wb", compression=compression) as file:
            file.write(PLAIN)
            raise ZeroDivisionError
        dropped = files.open("name", "wb", compression=compression)
        dropped.write(PLAIN)
        del dropped
        gc.collect()
        assert files.cat_file("name") == b"old" and files.find("") == ["name"]


@pytest.mark.parametrize("compression", [None, "gzip"])
def test_a_text_writer_that_fails_leaves_the_old_file(files, compression):
    files.pipe_file("name", b"old")
    with pytest.raises(ZeroDivisionError), files.open("name", "w", compression=compression, newline="") as file:
        file.write("new")
        raise ZeroDivisionError
    dropped = files.open("name", "wt", compression=compression)
    dropped.write("new")
    del dropped
    gc.collect()
    assert files.cat_file("name") == b"old"
    with files.open("name", "w", compression=compression, encoding="utf-16-le") as file:
        file.write("new")
    with files.open("name", "r", compression=compression, encoding="utf-16-le") as file:
        assert file.read() == "new"


def test_a_transaction_of_the_other_file_system(tmp_path):
    other = fsspec.filesystem("file", skip_instance_cache=True)
    files = lockstep.fsspec.LockstepFileSystem(str(tmp_path), key=KEY, fs=other)
    with other.transaction:
        other.pipe_file(str(tmp_path / "a"), b"1")
        files.pipe_file("b", b"2")
        other.pipe_file(str(tmp_path / "c"), b"3")
    assert sorted(os.listdir(tmp_path)) == ["a", "b", "c"] and files.cat_file("b") == b"2"
    for _ in range(100):
        files.pipe_file("b", b"2")
    assert not other.transaction.files


def test_a_transaction_on_files_that_do_not_wait_for_it(tmp_path):
    other = fsspec.filesystem("zip", fo=str(tmp_path / "archive.zip"), mode="w")
    files = lockstep.fsspec.LockstepFileSystem("folder", key=KEY, fs=other)
    with pytest.raises(NotImplementedError, match="ZipFileSystem"), files.transaction:
        files.pipe_file("name", b"1")
    other.close()


def test_a_path_object_is_moved(files):
    files.pipe_file("a", b"1")
    files.mv(pathlib.Path("a"), "b")
    assert files.find("") == ["b"]


@pytest.mark.parametrize("compression", ["infer", "gzip"])
def test_compression(files, compression):
    with files.open("name.gz", "wb", compression=compression) as file:
        file.write(PLAIN)
    assert gzip.decompress(files.cat_file("name.gz")) == PLAIN
    with files.open("name.gz", compression=compression) as file:
        assert file.read() == PLAIN
    with files.open("text.gz", "wt", compression=compression) as file:
        file.write("größer")
    with files.open("text.gz", "rt", compression=compression) as file:
        assert file.read() == "größer"


@pytest.fixture(params=["memory://{}", "file://{}"])
def url(request, tmp_path):
    """The chained URL of a folder that contains two files."""
    url = "lockstep::" + request.param.format(tmp_path / "root")
    with fsspec.open_files([f"{url}/a.csv", f"{url}/b.csv"], "wb", lockstep={"key": KEY}) as opened:
        for index, file in enumerate(opened):
            file.write(b"%d" % index)
    yield url
    fsspec.filesystem(request.param.partition(":")[0]).rm(str(tmp_path / "root"), recursive=True)


def test_patterns_in_urls(url, tmp_path):
    options = {"lockstep": {"key": KEY}}
    with fsspec.open_files(f"{url}/*.csv", **options) as opened:
        assert [file.read() for file in opened] == [b"0", b"1"]
    with fsspec.open_files(f"{url}/new-*.csv", "wb", num=2, **options) as opened:
        for file in opened:
            file.write(b"new")
    files, folder = fsspec.url_to_fs(url, **options)
    assert folder == str(tmp_path / "root")
    assert [path.removeprefix(folder + "/") for path in files.find(folder)] == ["a.csv", "b.csv", "new-0.csv", "new-1.csv"]
    # The path before `::` is relative to the folder after `::`.
    files, path = fsspec.url_to_fs(url.replace("lockstep::", "lockstep://a.csv::"), **options)
    assert path == "a.csv" and files.cat_file(path) == b"0" and files.find("") == ["a.csv", "b.csv", "new-0.csv", "new-1.csv"]
    # The root may be a single file, whose path is empty.
    again = fsspec.filesystem("lockstep", fo=f"{folder}/a.csv", key=KEY, fs=files.fs)
    assert again.cat_file("") == b"0"


def test_compression_and_caches_in_urls(url, tmp_path):
    options = {"lockstep": {"key": KEY}}
    with fsspec.open(f"{url}/g.csv.gz", "wb", compression="infer", **options) as file:
        file.write(b"packed")
    with fsspec.open(f"{url}/g.csv.gz", "rb", **options) as file:
        assert gzip.decompress(file.read()) == b"packed"
    with fsspec.open(f"{url}/g.csv.gz", "rb", compression="infer", **options) as file:
        assert file.read() == b"packed"
    options["simplecache"] = {"cache_storage": str(tmp_path / "cache")}
    for name in ("a", "b"):
        with fsspec.open(f"simplecache::{url}/{name}.csv", "rb", **options) as file:
            assert file.read() == {"a": b"0", "b": b"1"}[name]
    with fsspec.open(f"simplecache::{url}/c.csv", "wb", **options) as file:
        file.write(b"2")
    files, folder = fsspec.url_to_fs(url, lockstep={"key": KEY})
    assert files.cat_file(f"{folder}/c.csv") == b"2"
    assert files.fs.cat_file(f"{folder}/c.csv") != b"2"


def test_pickled_file_systems(url):
    files, folder = fsspec.url_to_fs(url, lockstep={"key": KEY})
    again = pickle.loads(pickle.dumps(files))
    assert again.cat_file(f"{folder}/a.csv") == b"0" and again == files


def test_a_file_system_with_a_key_is_freed(tmp_path):
    files = lockstep.fsspec.LockstepFileSystem(str(tmp_path), key=bytearray(KEY), target_protocol="file")
    key = files._for_reading.key
    files.pipe_file("name", b"1")
    gc.collect()
    del files
    # The keys have been released by reference counting: cyclic garbage collection has not run.
    assert not [one for one in gc.get_referrers(key) if isinstance(one, lockstep._file_keys.Keys)]


def test_one_recipient_and_one_identity(tmp_path):
    identity = tmp_path / "identity"
    identity.write_text("AGE-SECRET-KEY-1GFPYYSJZGFPYYSJZGFPYYSJZGFPYYSJZGFPYYSJZGFPYYSJZGFPQ4EGAEX\n")
    os.chmod(identity, 0o600)
    recipient = "age1zvkyg2lqzraa2lnjvqej32nkuu0ues2s82hzrye869xeexvn73equnujwj"
    options = {"recipients": recipient, "identities": identity}
    files = lockstep.fsspec.LockstepFileSystem(str(tmp_path), target_protocol="file", **options)
    files.pipe_file("name", b"123")
    assert files.cat_file("name", start=-1) == b"3"
    # The listing of a folder does not show how many bytes the envelope has, so the size of the plaintext is
    # unknown.
    assert files.info("name")["size"] is None and files.du("name") > 3
