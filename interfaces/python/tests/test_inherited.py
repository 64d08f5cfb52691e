"""The classes of the package inherit members from numpy, io and fsspec. Each inherited member either is safe or raises an exception. If
a library adds a member, a test fails until the member is added to the list of safe members or to the list of refused ones."""

import copy
import io
import os
import pickle

import fsspec.spec
import numpy
import pytest
from conftest import data
from numpy.random.bit_generator import SeedSequence

import lockstep
import lockstep.fsspec
import lockstep.parquet
from lockstep.random import BitGenerator

KEY, OTHER = bytes(range(32)), bytes(range(1, 33))
# Attributes that every object has. The attributes for copies and pickles are not among them, because they are tested below.
OF_OBJECTS = set(dir(object)) - {"__reduce__", "__reduce_ex__", "__getstate__"} | {
    "__abstractmethods__", "__annotations__", "__dict__", "__module__", "__weakref__", "__firstlineno__", "__static_attributes__"
}  # fmt: skip
# The exceptions that the classes of `io` raise for operations that they do not support.
REFUSALS = (io.UnsupportedOperation, NotImplementedError, AttributeError)


def unknown(parent, known):
    return sorted(set(dir(parent)) - OF_OBJECTS - set(known))


class TestNumpy:
    """numpy.random.BitGenerator."""

    # These attributes are safe: they use only the keystream or its position, or are locks or addresses.
    SAFE = {"random_raw", "state", "lock", "capsule", "cffi", "_cffi", "ctypes", "_ctypes", "_benchmark"}
    REFUSED = {
        "seed_seq": lambda source: source.seed_seq,
        "_seed_seq": lambda source: source._seed_seq,
        "spawn": lambda source: source.spawn(1),
        "__reduce__": lambda source: source.__reduce__(),
        "__reduce_ex__": lambda source: source.__reduce_ex__(4),
        "__getstate__": lambda source: source.__getstate__(),
        "__setstate__": lambda source: source.__setstate__(({}, None)),
        # The call is also refused if it is made through numpy's own function, or through another class of numpy.
        "spawn of numpy": lambda source: numpy.random.BitGenerator.spawn(source, 1),
        "spawn of a generator": lambda source: numpy.random.Generator(source).spawn(1),
        "pickle": pickle.dumps,
        "copy": copy.copy,
        "deepcopy": copy.deepcopy,
        "pickle of a generator": lambda source: pickle.dumps(numpy.random.Generator(source)),
        "deepcopy of a generator": lambda source: copy.deepcopy(numpy.random.Generator(source)),
        "pickle of RandomState": lambda source: pickle.dumps(numpy.random.RandomState(source)),
        "seed of RandomState": lambda source: numpy.random.RandomState(source).seed(1),
        "__init__": lambda source: source.__init__(KEY),
    }

    def test_every_member_is_known(self):
        assert unknown(numpy.random.BitGenerator, self.SAFE | set(self.REFUSED)) == []

    @pytest.mark.parametrize("name", REFUSED)
    def test_refused(self, name):
        source = BitGenerator(KEY)
        with pytest.raises(TypeError) as caught:
            self.REFUSED[name](source)
        assert KEY.hex() not in str(caught.value)

    @pytest.mark.parametrize("name", ["seed_seq", "_seed_seq", "spawn", "spawn of a generator"])
    def test_the_message_has_the_remedy(self, name):
        with pytest.raises(TypeError, match="jumped.*advance"):
            self.REFUSED[name](BitGenerator(KEY))

    def test_the_seed_in_numpys_own_class(self):
        """The attribute of numpy's own class, which C code of numpy reads, also returns a seed without values."""
        seed = numpy.random.BitGenerator.seed_seq.__get__(BitGenerator(KEY).jumped())
        assert not isinstance(seed, SeedSequence)
        for use in (lambda: seed.spawn(1), lambda: seed.generate_state(4), lambda: numpy.random.PCG64(seed)):
            with pytest.raises(TypeError, match="jumped"):
                use()
        assert not hasattr(seed, "entropy")

    def test_what_is_safe_depends_on_the_key(self):
        def results(key):
            source = BitGenerator(key, 3)
            ctypes = source.ctypes
            found = [source.random_raw(), ctypes.next_uint64(ctypes.state), source.jumped().random_raw()]
            found += [numpy.random.RandomState(source).randint(1 << 30), numpy.random.Generator(source).integers(1 << 60)]
            with source.lock:
                pass
            return found

        assert all(one != other for one, other in zip(results(KEY), results(OTHER)))
        assert results(KEY) == results(KEY)
        source = BitGenerator(KEY)
        source._benchmark(10)
        for text in (repr(source), str(source.state), repr(numpy.random.RandomState(source).get_state(legacy=False))):
            assert KEY.hex() not in text

    def test_a_shallow_copy_of_a_generator_shares_the_stream(self):
        """A shallow copy does not repeat the numbers of the generator. Before numpy 2, it is refused."""
        generator = numpy.random.Generator(BitGenerator(KEY))
        try:
            assert copy.copy(generator).bit_generator is generator.bit_generator
        except TypeError as error:
            assert "key" in str(error) and numpy.__version__ < "2"


def make_reader(tmp_path):
    path = tmp_path / "file"
    with lockstep.open(path, "wb", key=KEY) as file:
        file.write((MARK + b"\n") * 10)
    return path, lockstep.open(path, key=KEY)


MARK = b"plaintext that must not be stored"


class TestFiles:
    """Classes of io."""

    RAW = {"__del__", "__enter__", "__exit__", "__iter__", "__next__", "_checkClosed", "_checkReadable", "_checkSeekable", "_checkWritable",
           "close", "closed", "fileno", "flush", "isatty", "read", "readable", "readall", "readline", "readlines", "seek", "seekable",
           "tell", "truncate", "writable", "writelines", "_abc_impl", "readinto", "write",
           "__reduce__", "__reduce_ex__", "__getstate__"}  # fmt: skip
    BUFFERED = RAW - {"readall"} | {"_dealloc_warn", "detach", "mode", "name", "raw", "read1", "readinto", "readinto1", "write", "peek",
                                    "_finalizing", "__setstate__"}  # fmt: skip

    def test_every_member_is_known(self):
        assert unknown(io.RawIOBase, self.RAW) == []
        for parent in (io.BufferedReader, io.BufferedWriter):
            assert unknown(parent, self.BUFFERED) == []

    def test_reader(self, tmp_path):
        """No member gives access to the encrypted file itself."""
        path, file = make_reader(tmp_path)
        for one in (file, file.raw):
            with pytest.raises(io.UnsupportedOperation):
                one.fileno()
            for call in (lambda: one.write(b"x"), lambda: one.writelines([b"x"]), lambda: one.truncate(0)):
                with pytest.raises(REFUSALS):
                    call()
            for store in (pickle.dumps, copy.copy, copy.deepcopy):
                with pytest.raises(TypeError):
                    store(one)
            assert not one.isatty() and not one.writable()
            for read in (one.read, one.readline, one.__next__, lambda: b"".join(one.readlines())):
                one.seek(0)
                assert MARK.startswith(read()[:20])
        for one, read in ((file, file.read1), (file, file.peek), (file.raw, file.raw.readall)):
            one.seek(0)
            assert read().startswith(MARK)
        file.seek(0)
        assert file.readinto(buffer := bytearray(40)) == file.readinto1(bytearray(40)) == 40 and MARK in buffer
        raw = file.detach()
        raw.seek(0)
        assert raw.read(10) == MARK[:10]
        raw.close()
        assert MARK not in path.read_bytes()

    def test_writer(self, tmp_path):
        """Each method that writes encrypts its data. Operations that the class does not support are refused."""
        path = tmp_path / "file"
        with lockstep.open(path, "wb", key=KEY) as file:
            for one in (file, file.raw):
                one.write(MARK)
                one.writelines([MARK, MARK])
                one.flush()
                calls = [one.fileno, lambda: one.seek(0), lambda: one.truncate(0), lambda: one.read(5), one.readline, one.__next__]
                for call in calls:
                    with pytest.raises(REFUSALS):
                        call()
                for store in (pickle.dumps, copy.copy, copy.deepcopy):
                    with pytest.raises(TypeError):
                        store(one)
        with lockstep.open(path, key=KEY) as file:
            assert file.read() == MARK * 6
        assert MARK not in path.read_bytes()
        # If a writer is detached from its buffer, the output does not appear.
        raw = lockstep.open(tmp_path / "other", "wb", key=KEY).detach()
        raw.write(MARK)
        raw.close()
        assert os.listdir(tmp_path) == ["file"]


class TestFsspec:
    """fsspec.spec.AbstractFileSystem."""

    # These methods are safe: they are methods of Lockstep's class, or inherited methods that call only such methods.
    SAFE = {
        "__dask_tokenize__", "__getstate__", "__reduce__", "__reduce_ex__", "_cache", "_cached", "_extra_tokenize_attributes", "_fs_token",
        "_get_kwargs_from_urls", "_get_pyarrow_filesystem", "_instantiation_lock", "_isfilestore", "_latest", "_ls_from_cache", "_open",
        "_parent", "_pid", "_rm", "_strip_protocol", "_strip_tokenize_options", "async_impl", "blocksize", "cachable", "cat", "cat_file",
        "cat_ranges", "checksum", "clear_instance_cache", "copy", "cp", "cp_file", "created", "current", "delete", "disk_usage", "download",
        "du", "end_transaction", "exists", "expand_path", "find", "from_dict", "from_json", "get", "get_file", "get_mapper", "glob", "head",
        "info", "invalidate_cache", "isdir", "isfile", "lexists", "listdir", "ls", "makedir", "makedirs", "mirror_sync_methods", "mkdir",
        "mkdirs", "modified", "move", "mv", "open", "pipe", "pipe_file", "protocol", "put", "put_file", "read_block", "read_bytes",
        "read_text", "rename", "rm", "rm_file", "rmdir", "root_marker", "sep", "size", "sizes", "start_transaction", "stat", "tail", "to_dict",
        "to_json", "touch", "transaction", "transaction_type", "tree", "ukey", "unstrip_protocol", "upload", "walk", "write_bytes", "write_text",
    }  # fmt: skip
    REFUSED = {
        "sign": lambda files: files.sign("name"),
        "fsid": lambda files: files.fsid,
        "appending": lambda files: files.open("name", "ab"),
        "appending text": lambda files: files.open("name", "a"),
        "changing": lambda files: files.open("name", "r+b"),
        "touch without truncation": lambda files: files.touch("name", truncate=False),
    }

    @pytest.fixture
    def files(self, tmp_path):
        (tmp_path / "root").mkdir()
        options = {"auto_mkdir": True}
        files = lockstep.fsspec.LockstepFileSystem(str(tmp_path / "root"), key=KEY, target_protocol="file", target_options=options)
        files.pipe_file("name", MARK)
        return files

    def test_every_member_is_known(self):
        assert unknown(fsspec.spec.AbstractFileSystem, self.SAFE | set(self.REFUSED)) == []

    @pytest.mark.parametrize("name", REFUSED)
    def test_refused(self, files, tmp_path, name):
        before = (tmp_path / "root" / "name").read_bytes()
        with pytest.raises((NotImplementedError, ValueError)):
            self.REFUSED[name](files)
        assert (tmp_path / "root" / "name").read_bytes() == before
        assert os.listdir(tmp_path / "root") == ["name"]

    def test_whatever_writes_encrypts(self, files, tmp_path):
        source = tmp_path / "source"
        source.write_bytes(MARK)
        text = MARK.decode()
        writers = [
            lambda: files.pipe("a", MARK),
            lambda: files.pipe({"a": MARK}),
            lambda: files.pipe_file("a", MARK, mode="create"),
            lambda: files.write_bytes("a", MARK),
            lambda: files.write_text("a", text),
            lambda: files.put(str(source), "a"),
            lambda: files.put_file(str(source), "a"),
            lambda: files.upload(str(source), "a"),
            lambda: files.get_mapper("").__setitem__("a", MARK),
            lambda: files.cp_file("name", "a"),
            lambda: files.cp("name", "a"),
            lambda: files.copy("name", "a"),
            lambda: files.mv("name", "a"),
            lambda: files.move("name", "a"),
            lambda: files.rename("name", "a"),
            lambda: written(files.open("a", "wb"), MARK),
            lambda: written(files.open("a", "xb"), MARK),
            lambda: written(files.open("a", "w"), text),
            lambda: written(files.open("a", "wb", compression=None, block_size=10), MARK),
            lambda: written(files._open("a", "wb"), MARK),
            lambda: in_transaction(files),
        ]
        for index, write in enumerate(writers):
            files.pipe_file("name", MARK)
            write()
            stored = tmp_path / "root" / "a"
            assert MARK not in stored.read_bytes(), index
            with lockstep.open(stored, key=KEY) as file:
                assert file.read() == MARK, index
            stored.unlink()
        files.touch("b")
        with lockstep.open(tmp_path / "root" / "b", key=KEY) as file:
            assert file.read() == b""

    def test_whatever_reads_decrypts(self, files, tmp_path):
        target = tmp_path / "target"
        stored = (tmp_path / "root" / "name").read_bytes()
        readers = [
            lambda: files.cat("name"),
            lambda: files.cat_file("name"),
            lambda: files.cat_ranges(["name"], 0, len(MARK))[0],
            lambda: files.head("name"),
            lambda: files.tail("name"),
            lambda: files.read_bytes("name"),
            lambda: files.read_text("name").encode(),
            lambda: files.get_mapper("")["name"],
            lambda: files.open("name").read(),
            lambda: files.open("name", "r").read().encode(),
            lambda: files._open("name").read(),
            lambda: copied(lambda: files.get("name", str(target)), target),
            lambda: copied(lambda: files.get_file("name", str(target)), target),
            lambda: copied(lambda: files.download("name", str(target)), target),
        ]
        for index, read in enumerate(readers):
            assert read() == MARK, index
        # Plain files and changed files are refused.
        for content in (MARK * 10, stored[:-1] + bytes([stored[-1] ^ 1])):
            (tmp_path / "root" / "name").write_bytes(content)
            for index, read in enumerate(readers):
                target.unlink(missing_ok=True)
                with pytest.raises((lockstep.InvalidTag, KeyError)):
                    found = read()
                    raise found if isinstance(found, Exception) else AssertionError(index)
                assert not target.exists() or target.read_bytes() == b"", index

    def test_sizes_are_those_of_the_plaintext(self, files):
        assert files.size("name") == files.info("name")["size"] == files.du("name") == len(MARK)
        assert files.sizes(["name"]) == [len(MARK)] == [info["size"] for info in files.ls("")]
        assert files.stat("name")["size"] == len(MARK) and files.disk_usage("") == len(MARK)


def written(file, content):
    with file:
        file.write(content)


def copied(copy, target):
    copy()
    return target.read_bytes()


def in_transaction(files):
    with files.transaction:
        files.pipe_file("a", MARK)


def test_parquet(tmp_path):
    """PlainFile inherits from the raw files of io. It has no descriptor and does not write."""
    import pyarrow
    import pyarrow.parquet

    plain, encrypted = tmp_path / "plain", tmp_path / "encrypted"
    pyarrow.parquet.write_table(pyarrow.table({"a": list(range(100))}), plain)
    lockstep.parquet.encrypt(plain, encrypted, footer_key=KEY)
    with lockstep.parquet.open(encrypted, {"footer": KEY}) as file:
        for call in (file.fileno, lambda: file.truncate(0), lambda: file.write(data(5)), lambda: file.writelines([b"x"])):
            with pytest.raises(REFUSALS):
                call()
        for store in (pickle.dumps, copy.copy, copy.deepcopy):
            with pytest.raises(TypeError):
                store(file)
