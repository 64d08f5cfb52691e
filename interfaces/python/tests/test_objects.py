"""Tests with unusual files of the program: file objects that return wrong results, file objects that use the encrypted file during a
call, and FIFOs."""

import errno
import io
import os
import signal
import subprocess
import sys

import numpy
import pyarrow
import pyarrow.parquet
import pytest
from conftest import data, run_python, started

import lockstep
import lockstep.fsspec
import lockstep.parquet
import lockstep.random
import lockstep.safetensors.numpy as tensors

KEY = bytes(range(32))


class Sink(io.BytesIO):
    """A file object for writing. A test can set the results of some calls."""

    def __init__(self, answer, from_call=1):
        super().__init__()
        self.answer, self.calls, self.from_call = answer, 0, from_call

    def write(self, piece):
        self.calls += 1
        if self.calls < self.from_call:
            return super().write(piece)
        return self.answer(super().write, bytes(piece))


def write_file(sink, plain):
    with lockstep.open(sink, "wb", key=KEY) as file:
        file.write(plain)


def save_tensors(sink, plain):
    tensors.save_file({"a": numpy.frombuffer(plain, numpy.uint8)}, sink, key=KEY)


@pytest.mark.parametrize("store", [write_file, save_tensors])
@pytest.mark.parametrize(
    ("answer", "error", "message"),
    [
        (lambda write, piece: None, BlockingIOError, "None"),
        (lambda write, piece: -1, OSError, "invalid length"),
        (lambda write, piece: len(piece) + 1, OSError, "invalid length"),
        (lambda write, piece: 1 << 70, OSError, "invalid length"),
        (lambda write, piece: "5", TypeError, "integer"),
        (lambda write, piece: 5.0, TypeError, "integer"),
        (lambda write, piece: 0, OSError, "write"),
    ],
)
@pytest.mark.parametrize("call", [1, 2])
def test_results_of_write(store, answer, error, message, call):
    """For a wrong result of `write`, the exception is the same as that of `io.BufferedWriter` for a raw file. If no exception is
    raised, no data are lost."""
    with pytest.raises(error, match=message) as caught:
        store(Sink(answer, call), data(1_000_000))
    if error is BlockingIOError:
        assert (caught.value.errno, caught.value.characters_written) == (errno.EAGAIN, 0)


class Index:
    def __init__(self, number):
        self.number = number

    def __index__(self):
        return self.number


@pytest.mark.parametrize("store", [write_file, save_tensors])
def test_short_writes_are_completed(store):
    expected, plain = io.BytesIO(), data(100_168)
    store(expected, plain)
    for answer in (lambda write, piece: write(piece[:777]), lambda write, piece: Index(write(piece[:5000]))):
        sink = Sink(answer)
        store(sink, plain)
        assert len(sink.getvalue()) == len(expected.getvalue())
        with lockstep.open(sink, key=KEY) as file:
            assert plain in file.read()


def test_a_sink_that_blocks_on_odd_calls():
    """The file stays incomplete, and an exception reports this."""
    sink = Sink(lambda write, piece: None if sink.calls % 2 else write(piece))
    with pytest.raises(BlockingIOError):
        write_file(sink, data(100_168))
    with pytest.raises(lockstep.InvalidTag):
        lockstep.open(sink, key=KEY)


class Answers(io.BytesIO):
    """A file object for reading. A test can set the results of its calls."""

    changes = {}

    def __init__(self, content, **changes):
        super().__init__(content)
        self.changes = changes

    def read(self, size=-1):
        return self.changes.get("read", lambda read, size: read(size))(super().read, size)

    def seek(self, offset, whence=0):
        position = super().seek(offset, whence)
        return self.changes["seek"](position) if whence == 0 and "seek" in self.changes else position

    def tell(self):
        return self.changes.get("tell", lambda position: position)(super().tell())


def message(plain):
    target = io.BytesIO()
    write_file(target, plain)
    return target.getvalue()


def table(tmp_path):
    plain, encrypted = tmp_path / "plain", tmp_path / "encrypted"
    pyarrow.parquet.write_table(pyarrow.table({"a": numpy.arange(200_000)}), plain, compression="none", use_dictionary=False)
    lockstep.parquet.encrypt(plain, encrypted, footer_key=KEY)
    return encrypted.read_bytes()


@pytest.mark.parametrize("kind", ["file", "parquet"])
@pytest.mark.parametrize(
    ("changes", "error", "text"),
    [
        ({"read": lambda read, size: None}, BlockingIOError, "None"),
        ({"read": lambda read, size: read(size) + b"x"}, OSError, "invalid length"),
        ({"read": lambda read, size: "text"}, TypeError, "bytes, not str"),
        ({"read": lambda read, size: bytearray(read(size))}, TypeError, "bytes, not bytearray"),
        ({"seek": lambda position: -1}, OSError, "invalid"),
        ({"seek": lambda position: "0"}, TypeError, "integer"),
        ({"tell": lambda position: -1}, OSError, "invalid"),
        ({"tell": lambda position: 1 << 70}, OSError, "invalid"),
        ({"tell": lambda position: None}, TypeError, "integer"),
    ],
)
def test_results_of_read_seek_and_tell(tmp_path, kind, changes, error, text):
    content = message(b"data") if kind == "file" else table(tmp_path)
    with pytest.raises(error, match=text):
        if kind == "file":
            lockstep.open(Answers(content, **changes), key=KEY)
        else:
            lockstep.parquet.open(Answers(content, **changes), {"footer": KEY})


def test_objects_that_read_little_and_return_no_position():
    plain = data(100_000)
    source = Answers(message(plain), read=lambda read, size: read(min(size, 777)), seek=lambda position: None)
    with lockstep.open(source, key=KEY) as file:
        assert file.read() == plain


def test_fsspec_completes_writes_of_libraries_that_return_nothing(monkeypatch, tmp_path):
    """For example, the `write` of paramiko's file objects returns None."""

    class Silent(Sink):
        def close(self):
            pass

    sink = Silent(lambda write, piece: write(piece) and None)
    files = lockstep.fsspec.LockstepFileSystem(str(tmp_path), key=KEY, target_protocol="file")
    monkeypatch.setattr(files.fs, "open", lambda *arguments, **options: sink)
    plain = data(100_000)
    files.pipe_file("name", plain)
    with lockstep.open(io.BytesIO(sink.getvalue()), key=KEY) as file:
        assert file.read() == plain


REENTRANT = """
    import io, sys, lockstep, lockstep.parquet

    kind, path = sys.argv[1:]
    KEY, plain = bytes(range(32)), bytes(6 << 20)

    class Object(io.BytesIO):
        action = None

        def act(self):
            action, self.action = self.action, None
            if action is not None:
                try:
                    action()
                except RuntimeError as error:
                    seen.add("reentrant" in str(error))
                self.action = action

        def write(self, data):
            self.act()
            return super().write(data)

        def read(self, size=-1):
            self.act()
            return super().read(size)

    def write(source, action):
        with lockstep.open(source, "wb", key=KEY) as file:
            source.action = action and (lambda: action(file))
            file.write(plain)
            file.raw.write(plain)
            source.action = None

    def read(source, action):
        file = lockstep.open(source, key=KEY) if kind == "reader" else lockstep.parquet.open(source, {"footer": KEY})
        source.action = lambda: action(file)
        assert len(file.read(5 << 20)) == 5 << 20
        file.seek(0)
        getattr(file, "raw", file).readinto(bytearray(5 << 20))

    for size in (100, 5 << 20):
        for use in (lambda file: file, lambda file: getattr(file, "raw", file)):
            seen, source = set(), Object()
            if kind == "writer":
                write(source, lambda file: use(file).write(bytes(size)))
            else:
                if kind == "parquet":
                    source = Object(open(path, "rb").read())
                else:
                    write(source, None)
                read(source, lambda file: use(file).seek(0) + use(file).readinto(bytearray(size)))
            print(size, sorted(seen), flush=True)
"""


@pytest.mark.parametrize("kind", ["reader", "writer", "parquet"])
def test_file_objects_that_use_the_encrypted_file(tmp_path, kind):
    """File objects that use the encrypted file cause a RuntimeError, not a deadlock, for short and long reads and writes."""
    path = tmp_path / "table"
    if kind == "parquet":
        plain = tmp_path / "plain"
        columns = {"a": numpy.arange(1_000_000)}
        pyarrow.parquet.write_table(pyarrow.table(columns), plain, compression="none", use_dictionary=False)
        lockstep.parquet.encrypt(plain, path, footer_key=KEY)
    done = run_python(REENTRANT, kind, path, timeout=30)
    assert (done.returncode, done.stdout) == (0, "100 [True]\n" * 2 + "5242880 [True]\n" * 2), done.stderr


def test_file_objects_are_called_by_the_calling_thread(tmp_path):
    """File objects are called on the thread of the caller. Some objects, such as those of sqlite3, refuse calls from other threads, and a
    call from another thread would wait for a lock that the caller holds."""
    done = run_python(
        """
        import io, sys, threading, lockstep, numpy, lockstep.safetensors.numpy as tensors

        threads, KEY = set(), bytes(32)

        class Object(io.BytesIO):
            def write(self, data):
                threads.add(threading.get_ident())
                return super().write(data)

            def read(self, size=-1):
                threads.add(threading.get_ident())
                return super().read(size)

        lockstep.use(threads=4)
        source, plain = Object(), bytes(9 << 20)
        with lockstep.open(source, "wb", key=KEY) as file:
            file.write(plain)
        assert lockstep.open(source, key=KEY).read() == plain
        saved = Object()
        tensors.save_file({"a": numpy.zeros(9 << 20, numpy.uint8)}, saved, key=KEY)
        assert not tensors.load_file(saved, key=KEY)["a"].any()
        assert threads == {threading.get_ident()}
        """
    )
    assert done.returncode == 0, done.stderr


def test_callbacks_may_use_the_library(tmp_path):
    """The library may be called by progress callbacks, and by methods that Python calls to convert an argument."""
    source, calls = tmp_path / "source", []
    source.write_bytes(bytes(1 << 20))

    def progress(done, total):
        lockstep.encrypt_file(source, tmp_path / f"nested{len(calls)}", KEY)
        calls.append(done)

    assert lockstep.encrypt_file(source, tmp_path / "out", KEY, progress=progress) == calls[-1] == 1 << 20

    file = lockstep.open(tmp_path / "out", key=KEY)

    class Number(int):
        def __index__(self):
            return len(file.raw.read(10))

    generator = lockstep.random.Generator(KEY)

    class Size:
        def __index__(self):
            return len(generator.bytes(10))

    assert file.read(Number(5)) and len(generator.bytes(Size())) == 10

    class Exporter:
        def __buffer__(self, flags):
            return memoryview(cipher.encrypt(bytes(12), b"data", None))

    cipher = lockstep.aead.AESGCM(KEY)
    if sys.version_info >= (3, 12):
        assert len(cipher.encrypt(bytes(12), Exporter(), None)) == 36


def test_a_fifo_without_a_writer_can_be_interrupted(tmp_path):
    """Ctrl-C ends a call that waits for another process to open a FIFO, and other threads run meanwhile."""
    (tmp_path / "plain").write_bytes(b"data")
    (tmp_path / "encrypted").write_bytes(message(b"data"))
    recipients = ["age15kepa5g8tfkrt46d98xketn2dkls5qvqukcd34888la3rj6zz3kq8hgjdw"]
    with lockstep.open(tmp_path / "envelope", "wb", recipients=recipients) as file:
        file.write(b"data")
    done = run_python(
        """
        import os, signal, sys, threading, lockstep, lockstep.parquet
        os.chdir(sys.argv[1])
        KEY = bytes(range(32))
        calls = {
            "key": lambda fifo: lockstep.open("encrypted", key=fifo),
            "identity": lambda fifo: lockstep.open("envelope", identities=[fifo]),
            "input": lambda fifo: lockstep.open(fifo, key=KEY),
            "encrypt": lambda fifo: lockstep.encrypt_file(fifo, "out", KEY),
            "decrypt": lambda fifo: lockstep.decrypt_file(fifo, "out", KEY),
            "output": lambda fifo: lockstep.open(fifo, "wb", key=KEY),
            "output of a file": lambda fifo: lockstep.encrypt_file("plain", fifo, KEY, overwrite=True),
            "parquet": lambda fifo: lockstep.parquet.open(fifo, {"footer": KEY}),
        }
        # If a shell starts the tests in the background, they ignore SIGINT, so Python's handler is set.
        signal.signal(signal.SIGINT, signal.default_int_handler)
        for what, call in calls.items():
            os.mkfifo(what)
            threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGINT)).start()
            try:
                call(what)
            except KeyboardInterrupt:
                print(what, flush=True)
        """,
        tmp_path,
        timeout=30,
    )
    kinds = ["key", "identity", "input", "encrypt", "decrypt", "output", "output of a file", "parquet"]
    assert done.stdout.splitlines() == kinds, done.stderr


def test_a_key_from_a_fifo(tmp_path):
    """A shell passes a key through a FIFO if the user writes a process substitution."""
    fifo, encrypted = tmp_path / "fifo", tmp_path / "encrypted"
    os.mkfifo(fifo)
    encrypted.write_bytes(message(b"data"))
    text = f"lockstep-key-256 {KEY.hex()}"
    with started(["sh", "-c", f"echo '{text}' > '{fifo}'"]) as writer:
        with lockstep.open(encrypted, key=fifo) as file:
            assert file.read() == b"data"
        assert writer.wait() == 0


@pytest.mark.parametrize(
    ("closed", "arguments", "code", "text"),
    [
        ("<&-", "encrypt -k key", 2, "standard input is closed"),
        (">&-", "encrypt -k key plain", 2, "standard output is closed"),
        (">&-", "--version", 2, "standard output is closed"),
        ("2>&-", "encrypt -k key plain -o out", 0, ""),
        ("<&- >&- 2>&-", "encrypt -k key plain -o out", 0, ""),
        ("<&- >&- 2>&-", "encrypt -k key", 2, ""),
    ],
)
def test_closed_standard_streams(tmp_path, closed, arguments, code, text):
    """`python -m lockstep` neither waits nor loses data if a standard stream is closed. interfaces/cli/tests has the same test
    for the program."""
    (tmp_path / "key").write_text(f"lockstep-key-256 {KEY.hex()}\n", encoding="ascii")
    (tmp_path / "plain").write_bytes(b"data")
    command = f'"$1" -m lockstep {arguments} {closed}'
    done = subprocess.run(["sh", "-c", command, "sh", sys.executable], cwd=tmp_path, capture_output=True, timeout=30)
    assert done.returncode == code and text in done.stderr.decode(), done.stderr
    if code == 0:
        with lockstep.open(tmp_path / "out", key=KEY) as file:
            assert file.read() == b"data"
    else:
        assert not (tmp_path / "out").exists()


def test_signals_run_while_a_file_object_is_read():
    """The calling thread reads, so it must run the signal handlers during the read."""
    armed = []

    def read(read, size):
        if armed:
            os.kill(os.getpid(), armed.pop())
        return read(size)

    # If a shell starts the tests in the background, they ignore SIGINT, so Python's handler is set during the test.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with lockstep.open(Answers(message(bytes(3 << 20)), read=read), key=KEY) as file:
            armed.append(signal.SIGINT)
            with pytest.raises(KeyboardInterrupt):
                file.read()
    finally:
        signal.signal(signal.SIGINT, before)


class Interrupts:
    """An object whose methods are interrupted by Ctrl-C."""

    def __index__(self):
        raise KeyboardInterrupt

    def seek(self, *_):
        return self

    read = __fspath__ = __index__
    __dlpack__ = property(__index__)


class InterruptsLate:
    __cuda_array_interface__ = {"shape": (Interrupts(),), "data": (1, False), "typestr": "|u1", "version": 3}


@pytest.mark.parametrize(
    "call",
    [
        lambda: lockstep.open(Interrupts(), key=KEY),
        lambda: lockstep.encrypt_file(Interrupts(), "out", KEY),
        lambda: lockstep.aead.AESGCM(KEY).encrypt(bytes(12), Interrupts(), None),
        lambda: lockstep.aead.AESGCM(KEY).encrypt(bytes(12), InterruptsLate(), None),
        lambda: lockstep.hazmat.encrypt("CTR", KEY, Interrupts(), bytes(16)),
        lambda: lockstep.tensor.DeviceArray(Interrupts(), "cpu"),
    ],
)
def test_ctrl_c_in_a_method_of_an_object_is_not_replaced(call):
    with pytest.raises(KeyboardInterrupt):
        call()


def test_causes_that_form_a_circle():
    done = run_python(
        """
        import io, lockstep
        class Number:
            def __index__(self):
                first, second = ValueError("first"), ValueError("second")
                first.__cause__, second.__cause__ = second, first
                raise first
        class File(io.BytesIO):
            def seek(self, *_):
                return Number()
        try:
            lockstep.open(File(), key=bytes(32))
        except TypeError as error:
            print(error)
        """
    )
    assert "must return an integer: first" in done.stdout, done.stderr


def test_ctrl_c_in_the_number_that_a_file_object_returns_is_not_replaced():
    class File(io.BytesIO):
        def seek(self, *_):
            return Interrupts()

    with pytest.raises(KeyboardInterrupt):
        lockstep.open(File(), key=KEY)
