"""Tests with threads, forks and signals, and at the end of the interpreter."""

import os
import pickle
import signal
import subprocess
import sys
import textwrap
import threading
import time

import pytest
from conftest import data, run_python, started

import lockstep
from lockstep import aead


def test_the_import_starts_nothing():
    done = run_python(
        """
        import os
        before = set(os.listdir("/proc/self/task"))
        import lockstep
        libraries = open("/proc/self/maps").read()
        for name in ("libcuda", "libvulkan", "libEGL", "numpy", "libtorch", "fsspec"):
            assert name not in libraries, name
        assert set(os.listdir("/proc/self/task")) == before
        lockstep.aead.AESGCM(bytes(16)).encrypt(bytes(12), bytes(1 << 20), None)
        assert "libcuda" not in open("/proc/self/maps").read()
        """
    )
    assert done.returncode == 0, done.stderr


def test_threads_share_a_cipher(key):
    cipher, nonce = aead.AESGCM(key), data(12)
    messages = [data(size) for size in (10, 5000, 40_000, 3 << 20)]
    expected = [cipher.encrypt(nonce, message, b"aad") for message in messages]
    failures = []

    def work():
        for _ in range(20):
            for message, result in zip(messages, expected):
                if cipher.encrypt(nonce, message, b"aad") != result or cipher.decrypt(nonce, result, b"aad") != message:
                    failures.append(len(message))

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_other_threads_run_during_a_long_call(key):
    cipher = aead.AESGCM(key)
    message, output = bytearray(64 << 20), bytearray((64 << 20) + 16)
    resized, started = [], threading.Event()

    def work():
        started.wait()
        while not resized:
            try:
                output.extend(b"x")
                resized.append("output: not exported")
            except BufferError:
                resized.append("refused")
                return

    thread = threading.Thread(target=work)
    thread.start()
    started.set()
    # The buffer cannot be resized while a call uses it. The other thread can resize it only before or after a call.
    while not resized and len(output) == len(message) + 16:
        cipher.encrypt_into(bytes(12), message, None, output)
    thread.join()
    assert resized == ["refused"]
    output.extend(b"x")


def test_a_list_that_changes_during_a_batch(key):
    nonces, messages = [data(12) for _ in range(3000)], [bytearray(data(2000)) for _ in range(3000)]
    same = [bytes(message) for message in messages]
    stop = threading.Event()

    def work():
        while not stop.is_set():
            messages[:] = [bytearray(message) for message in same]

    thread = threading.Thread(target=work)
    thread.start()
    for _ in range(5):
        encrypted = aead.encrypt_many(aead.AESGCM, key, nonces, messages)
        assert aead.decrypt_many(aead.AESGCM, key, nonces, encrypted)[0] == same
    stop.set()
    thread.join()


def test_selections(key):
    cipher = aead.AESGCM(key)
    expected = cipher.encrypt(bytes(12), bytes(100), None)
    with lockstep.use("cpu", threads=1) as selection:
        assert isinstance(selection, lockstep.Selection)
        assert [device.name for device in lockstep.devices()] == ["cpu"]
        assert cipher.encrypt(bytes(12), bytes(100), None) == expected
    for bad in ({"device": "gpu9"}, {"kernel": "cpu/none"}, {"threads": 0}, {"verify": "maybe"}):
        with pytest.raises(ValueError):
            lockstep.use(**bad)
    with lockstep.use(kernel="cpu/soft"):
        assert cipher.encrypt(bytes(12), bytes(100), None) == expected
    device = lockstep.devices()[0]
    assert device.name == "cpu" and "cpu/soft" in device.kernels and device.description in repr(device)
    assert isinstance(device.kernels, tuple) and hash(device) == hash(lockstep.devices()[0])
    assert b"lockstep._" not in pickle.dumps(device) and pickle.loads(pickle.dumps(device)) == device
    assert {kind.__module__ for kind in (lockstep.Device, lockstep.SelfTest, lockstep.Selection, lockstep.Writer)} == {"lockstep"}
    assert "cuda" in lockstep.missing_devices() or len(lockstep.devices()) > 1


def test_the_self_test_passes():
    with lockstep.use("cpu"):
        results = lockstep.selftest()
    assert {result.kernel for result in results} >= {"cpu/soft"}
    assert all(isinstance(result.failures, tuple) for result in results) and len(set(results)) == len(results)
    assert all(result.passed and result.operations > 0 and not result.failures for result in results)


def test_the_self_test_of_a_device_that_the_environment_names(emulator):
    code = """
        import lockstep
        results = lockstep.selftest()
        assert {result.device for result in results} == {"qpu"} and all(result.passed for result in results), results
    """
    done = run_python(code, environment={"LOCKSTEP_DEVICE": "qpu"}, timeout=600)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("device", ["cuda:emu", "wgpu:software"])
def test_devices_for_tests(key, device):
    """Devices for tests use the same code as real devices. The extension in these tests has such devices, but the extension in a
    wheel does not."""
    message, nonces = data(5000), [data(12) for _ in range(4)]
    expected = [aead.AESGCM(key).encrypt(nonce, message, b"aad") for nonce in nonces]
    try:
        selection = lockstep.use(device)
    except ValueError as error:
        pytest.skip(str(error))
    with selection:
        cipher = aead.AESGCM(key)
        encrypted = [cipher.encrypt(nonce, message, b"aad") for nonce in nonces]
        many = aead.encrypt_many(aead.AESGCM, key, nonces, [message] * 4, b"aad")
        with pytest.raises(lockstep.InvalidTag):
            cipher.decrypt(nonces[0], expected[0], b"other")
    assert encrypted == many == expected


def test_the_child_of_a_fork_works():
    done = run_python(
        """
        import os, sys, threading, warnings
        warnings.simplefilter("ignore")
        import lockstep
        cipher, stop = lockstep.aead.AESGCM(bytes(32)), False
        try:
            # If the extension has the emulator, the parent selects it. The child then inherits a device that it cannot use.
            lockstep.use("cuda:emu")
        except ValueError:
            pass
        expected = cipher.encrypt(bytes(12), bytes(100_000), None)
        def work():
            while not stop:
                cipher.encrypt(bytes(12), bytes(100_000), None)
                lockstep.use(threads=1).__exit__()
        threads = [threading.Thread(target=work) for _ in range(3)]
        for thread in threads:
            thread.start()
        for _ in range(20):
            child = os.fork()
            if child == 0:
                for size in (100, 100_000, 3 << 20):
                    cipher.decrypt(bytes(12), cipher.encrypt(bytes(12), bytes(size), None), None)
                good = cipher.encrypt(bytes(12), bytes(100_000), None) == expected
                os._exit(0 if good and [d.name for d in lockstep.devices()] == ["cpu"] else 1)
            assert os.waitpid(child, 0)[1] == 0
        stop = True
        """
    )
    assert done.returncode == 0, done.stderr


IN_CHILD = """
    import os, sys, warnings
    import lockstep
    from lockstep import hazmat

    def in_child(work):
        '''Forks; returns what the function returns in the child, with the texts of its warnings.'''
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                with warnings.catch_warnings(record=True) as caught:
                    warnings.simplefilter("always")
                    result = work()
                os.write(write, repr((result, [str(one.message) for one in caught])).encode())
            finally:
                os._exit(0)
        os.close(write)
        with os.fdopen(read) as file:
            result = eval(file.read())
        assert os.waitpid(child, 0)[1] == 0
        return result

    def work():
        return hazmat.encrypt("CTR", bytes(16), bytes(1 << 16), bytes(16))[:16].hex()

    def names():
        return [device.name for device in lockstep.devices()]
"""


@pytest.mark.parametrize("device", ["spu", "cuda:emu"])
def test_the_child_of_a_fork_opens_a_simulated_device_again(device, emulator):
    """The child opens the device again, whether the parent selected it by `use` or by an environment variable. So does a child of the
    child."""
    code = f"""
        expected = work()
        lockstep.use({device!r})
        # The parent has made an engine, but has not used the emulator for any work.
        assert names() == [{device!r}]
        assert in_child(lambda: (names(), work())) == (([{device!r}], expected), [])
        assert in_child(lambda: in_child(names)) == ((([{device!r}], [])), [])
    """
    done = run_python(IN_CHILD + code.replace("\n    ", "\n"))
    assert done.returncode == 0, done.stderr
    code = """
        assert names() == [os.environ["LOCKSTEP_DEVICE"]]
        assert in_child(names) == ([os.environ["LOCKSTEP_DEVICE"]], [])
    """
    done = run_python(IN_CHILD + code.replace("\n    ", "\n"), environment={"LOCKSTEP_DEVICE": device})
    assert done.returncode == 0, done.stderr


def test_a_simulated_device_that_has_worked_is_opened_again_in_the_child(emulator):
    code = """
        expected = work()
        lockstep.use("spu")
        assert work() == expected
        assert in_child(lambda: (names(), work())) == ((["spu"], expected), [])
    """
    done = run_python(IN_CHILD + code.replace("\n    ", "\n"))
    assert done.returncode == 0, done.stderr


def test_the_child_of_a_fork_warns_once_that_it_cannot_use_the_device(emulator):
    """Like the driver of a GPU, the emulator refuses to work in the child of a process that has used it."""
    code = """
        expected = work()
        lockstep.use("cuda:emu")
        assert work() == expected
        (found, first, again), caught = in_child(lambda: (names(), work(), work()))
        assert (found, first, again) == (["cpu"], expected, expected)
        [text] = caught
        assert text.startswith("the device 'cuda:emu' of the parent process cannot be used in its child"), text
        # A selection that the child makes replaces the selection of the parent.
        assert in_child(lambda: (lockstep.use("cpu") and work(), work())) == ((expected, expected), [])

        def strict():
            warnings.simplefilter("error")
            try:
                lockstep.aead.AESGCM(bytes(16)).encrypt(bytes(12), b"", None)
            except RuntimeWarning:
                return names()

        assert in_child(strict) == (["cpu"], [])
    """
    done = run_python(IN_CHILD + code.replace("\n    ", "\n"))
    assert done.returncode == 0, done.stderr


def test_a_selection_of_the_parent_that_ends_in_the_child(emulator):
    """The end of the parent's selection in the child restores the previous engine of the parent, but the child does not use this engine."""
    code = """
        expected = work()
        lockstep.use("spu")
        assert work() == expected

        def end(selection):
            selection.__exit__()
            return names(), work()

        with lockstep.use("cpu", threads=1) as selection:
            assert in_child(lambda: end(selection)) == ((["spu"], expected), [])
        assert names() == ["spu"]
    """
    done = run_python(IN_CHILD + code.replace("\n    ", "\n"))
    assert done.returncode == 0, done.stderr


def test_a_selection_of_the_parent_that_is_dropped_in_the_child(emulator):
    """The selection refers to the engine of the parent. The child drops the selection, but does not drop this engine."""
    code = """
        expected = work()
        try:
            lockstep.use("wgpu:software")
        except ValueError:
            sys.exit()
        assert work() == expected
        selection = lockstep.use("cpu", threads=1)

        def drop():
            global selection
            selection = None
            return names(), work()

        assert in_child(drop) == ((["cpu"], expected), [])
        selection.__exit__()
        assert names() == ["wgpu:software"] and work() == expected
    """
    done = run_python(IN_CHILD + code.replace("\n    ", "\n"))
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("what", ["encrypt", "decrypt", "read", "many"])
def test_ctrl_c_stops_a_long_call(tmp_path, key, what):
    """KeyboardInterrupt is raised, and no incomplete output remains."""
    code = """
        import os, sys, lockstep
        what, folder, key = sys.argv[1], sys.argv[2], bytes.fromhex(sys.argv[3])
        source = os.path.join(folder, "source")
        # The file is sparse, so creating it takes no time, but processing 1 TiB takes longer than any test
        # waits.
        with open(source, "wb") as file:
            file.truncate(1 << 40)
        if what != "encrypt":
            small = os.path.join(folder, "small")
            with open(small, "wb") as file:
                file.truncate(3 << 20)
            lockstep.encrypt_file(small, os.path.join(folder, "encrypted"), key)
        print("ready", flush=True)
        try:
            if what == "encrypt":
                lockstep.encrypt_file(source, os.path.join(folder, "out"), key)
            while what == "decrypt":
                lockstep.decrypt_file(os.path.join(folder, "encrypted"), os.path.join(folder, "out"), key, overwrite=True)
                os.unlink(os.path.join(folder, "out"))
            while what == "read":
                with lockstep.open(os.path.join(folder, "encrypted"), key=key) as file:
                    file.read()
            messages = [bytes(1 << 20)] * 64
            while what == "many":
                lockstep.aead.encrypt_many(lockstep.aead.AESGCM, key, [bytes(12)] * 64, messages)
        except KeyboardInterrupt:
            print("interrupted", *sorted(os.listdir(folder)), flush=True)
    """
    command = [sys.executable, "-c", textwrap.dedent(code), what, str(tmp_path), key.hex()]
    with started(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "ready\n"
        time.sleep(0.3)
        process.send_signal(signal.SIGINT)
        output, _ = process.communicate(timeout=30)
    words = output.split()
    assert words[0] == "interrupted"
    # A decryption may already be complete when the signal arrives, and its output then exists.
    names = {"source"} if what == "encrypt" else {"source", "small", "encrypted"}
    assert set(words[1:]) - {"out"} == names
    assert "out" not in words or what == "decrypt" and os.path.getsize(tmp_path / "out") == 3 << 20


def test_an_exception_of_a_signal_handler_is_not_lost(tmp_path, key):
    """A handler can run whenever a function that is written in Python starts. Wherever it raises an exception, the caller receives it."""
    path = tmp_path / "file"

    def work():
        with lockstep.open(path, "wb", key=key) as file:
            file.write(b"a file")
        with lockstep.open(path, key=key) as file:
            assert file.read(1) + file.read() == b"a file"

    class Interruption(BaseException):
        pass

    def interrupted_at(number):
        """True if a function with this number was started."""
        starts = 0

        def trace(frame, _event, _argument):
            nonlocal starts
            # No exception is raised in `__del__` or in a function that it calls, because Python would ignore the exception.
            if "__del__" not in {frame.f_code.co_name, frame.f_back and frame.f_back.f_code.co_name}:
                starts += 1
                if starts == number:
                    raise Interruption

        before = sys.gettrace()
        sys.settrace(trace)
        try:
            work()
        except Interruption:
            return True
        finally:
            sys.settrace(before)
        assert starts < number, f"an exception at start {number} of {starts} was lost"
        return False

    number = 1
    while interrupted_at(number):
        number += 1
    assert number > 20


# A file that is being written has no name. In a debug build, this variable gives it a temporary name, as on file systems without
# O_TMPFILE.
NAMED = {"LOCKSTEP_TEST_NAMED_FILES": "1"}


@pytest.mark.parametrize("environment", [{}, NAMED], ids=["unnamed", "named"])
@pytest.mark.parametrize("what", ["aead", "file", "open", "callback"])
def test_the_interpreter_ends_during_work(tmp_path, what, environment):
    """The interpreter ends while a daemon thread is in a call. The process does not crash, and no file remains."""
    done = run_python(
        """
        import sys, threading, time, lockstep
        what, folder = sys.argv[1], sys.argv[2]
        with open(folder + "/source", "wb") as file:
            file.truncate(1 << 40)
        running = threading.Event()
        def work():
            cipher = lockstep.aead.AESGCM(bytes(32))
            while what == "aead":
                running.set()
                cipher.encrypt(bytes(12), bytes(1 << 20), None)
            running.set()
            if what == "file":
                lockstep.encrypt_file(folder + "/source", folder + "/out", bytes(32))
            if what == "callback":
                lockstep.encrypt_file(folder + "/source", folder + "/out", bytes(32), progress=lambda done, total: None)
            file = lockstep.open(folder + "/out", "wb", key=bytes(32))
            while True:
                file.write(bytes(1 << 20))
        threading.Thread(target=work, daemon=True).start()
        running.wait()
        time.sleep(0.2)
        """,
        what,
        tmp_path,
        environment=environment,
    )
    assert done.returncode == 0, done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["source"]


@pytest.mark.parametrize("environment", [{}, NAMED], ids=["unnamed", "named"])
@pytest.mark.parametrize("ends", ["sys.exit(0)", "del file; os._exit(0)", "file.discard(); os._exit(0)"])
def test_the_child_of_a_fork_does_not_remove_the_file_of_its_parent(tmp_path, ends, environment):
    done = run_python(
        f"""
        import os, sys, warnings
        warnings.simplefilter("ignore")
        import lockstep
        file = lockstep.open(sys.argv[1], "wb", key=bytes(32))
        file.write(bytes(100_000))
        child = os.fork()
        if child == 0:
            {ends}
        assert os.waitpid(child, 0)[1] == 0
        file.write(bytes(100_000))
        file.close()
        with lockstep.open(sys.argv[1], key=bytes(32)) as file:
            assert file.read() == bytes(200_000)
        """,
        tmp_path / "out",
        environment=environment,
    )
    assert done.returncode == 0, done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


@pytest.mark.parametrize("kind", ["path", "object", "fsspec"])
def test_the_child_of_a_fork_cannot_write_the_file_of_its_parent(tmp_path, kind):
    """If the child could write, both processes would encrypt with the same nonces, and the child would complete or remove the file."""
    done = run_python(
        """
        import os, sys, warnings
        warnings.simplefilter("ignore")
        import lockstep, lockstep.fsspec
        kind, path, key = sys.argv[1], sys.argv[2], bytes(32)
        below = None
        if kind == "fsspec":
            folder, name = os.path.split(path)
            system = lockstep.fsspec.LockstepFileSystem(fo=folder, target_protocol="file", key=key)
            file = system.open(name, "wb")
        else:
            below = open(path, "wb") if kind == "object" else None
            file = lockstep.open(below or path, "wb", key=key)
        file.write(bytes(70_000))
        before = os.path.getsize(path) if below else 0
        child = os.fork()
        if child == 0:
            for action in (lambda: file.write(bytes(1 << 20)), file.close):
                try:
                    action()
                except (OSError, ValueError) as error:
                    print("refused:", error, flush=True)
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        file.write(bytes(70_000))
        file.close()
        if below:
            below.close()
        with lockstep.open(path, key=key) as file:
            assert file.read() == bytes(140_000)
        """,
        kind,
        tmp_path / "out",
    )
    assert done.returncode == 0, done.stderr
    assert "before a fork" in done.stdout
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_the_child_of_a_fork_keeps_the_manifest_of_its_parent(tmp_path):
    done = run_python(
        """
        import os, sys
        from lockstep import _manifest
        journal = _manifest.Journal(sys.argv[1], "encrypt", False)
        child = os.fork()
        if child == 0:
            journal.close()
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        journal.finish(".", set())
        """,
        tmp_path / "manifest",
    )
    assert done.returncode == 0, done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["manifest"]


def test_an_open_file_at_the_end_of_the_interpreter(tmp_path):
    done = run_python(
        """
        import sys, lockstep
        file = lockstep.open(sys.argv[1], "wb", key=bytes(32))
        file.write(b"data")
        """,
        tmp_path / "out",
    )
    assert done.returncode == 0, done.stderr
    assert list(tmp_path.iterdir()) == []
