"""Tests of forks while other threads work. No lock of the parent may stop the child: each test fails if a child does not end in time."""

import pytest
from conftest import run_python

SETUP = """
    import io, os, signal, sys, threading, time, warnings
    warnings.simplefilter("ignore")
    import numpy, pyarrow, pyarrow.parquet, lockstep, lockstep.parquet, lockstep.random
    from lockstep import aead
    KEY, stop = bytes(range(32)), threading.Event()

    def forks(count, in_child):
        '''Forks while threads work. The child calls a function.'''
        for index in range(count):
            child = os.fork()
            if child == 0:
                # If a child waits for a lock for ever, SIGALRM ends the child, and its exit status shows the signal.
                signal.alarm(20)
                try:
                    in_child(index)
                except BaseException as error:
                    print(repr(error), file=sys.stderr, flush=True)
                    os._exit(1)
                os._exit(0)
            assert os.waitpid(child, 0)[1] == 0, index
            time.sleep(0.002)

    def during(works, count, in_child):
        '''Forks while threads repeat each of the works.'''
        def repeat(work):
            while not stop.is_set():
                work()
        threads = [threading.Thread(target=repeat, args=(work,)) for work in works]
        for thread in threads:
            thread.start()
        try:
            forks(count, in_child)
        finally:
            stop.set()
            for thread in threads:
                thread.join()
"""

CASES = {
    # A fork could copy this state in the middle of a call: the lock and the position of the generator, and the lock of numpy.
    "generators": """
        generator, bits = lockstep.random.Generator(KEY), lockstep.random.BitGenerator(KEY)
        by_numpy = numpy.random.Generator(bits)
        out = numpy.empty(300_000)

        def in_child(index):
            for source in (generator, generator.jumped()):
                assert len(source.bytes(100_000)) == 100_000
                source.normal(1000), source.uniform(1000), source.integers(0, 6, 1000)
                source.position = 5
                assert source.bytes(16) == lockstep.random.Generator(KEY, 5).bytes(16)
            assert by_numpy.random(1000).std() > 0.2
            assert by_numpy.bit_generator.advance(7).state["state"]["used"] == 0
            with bits.lock:
                bits.random_raw()

        works = [
            lambda: generator.bytes(1_000_000),
            lambda: generator.normal(100_000),
            lambda: by_numpy.random(out=out),
            lambda: generator.integers(0, 6, 100_000),
        ]
        during(works, 8, in_child)
    """,
    # The child uses keys that were made before the fork, the engine of the process, and ciphers that the child itself makes.
    "ciphers": """
        ciphers = [kind(KEY) for kind in (aead.AESGCM, aead.AESGCMSIV, aead.AESOCB3, aead.AESCCM, aead.XAES256GCM, aead.AESSIV)]

        def once(cipher, size):
            message = bytes(size)
            nonce = [bytes(24 if isinstance(cipher, aead.XAES256GCM) else 12)] * (not isinstance(cipher, aead.AESSIV))
            assert cipher.decrypt(*nonce, cipher.encrypt(*nonce, message, None), None) == message

        def in_child(index):
            for cipher in ciphers:
                once(cipher, 100)
                once(cipher, 100_000)
            aead.encrypt_many(aead.AESGCM, KEY, [bytes(12)] * 10, [bytes(1000)] * 10)

        def in_threads():
            # The parent makes new ciphers, which expand their keys while the process forks.
            ciphers[:] = [type(cipher)(KEY) for cipher in ciphers]
            for cipher in ciphers:
                once(cipher, 100_000)

        during([in_threads, in_threads], 8, in_child)
    """,
    # In the child, an open file works, or its error states that the file must be opened again.
    "files": """
        target = io.BytesIO()
        with lockstep.open(target, "wb", key=KEY) as file:
            file.write(bytes(3 << 20))
        plain, table = os.path.join(sys.argv[1], "plain"), os.path.join(sys.argv[1], "table")
        pyarrow.parquet.write_table(pyarrow.table({"a": numpy.arange(300_000)}), plain, compression="none", use_dictionary=False)
        lockstep.parquet.encrypt(plain, table, footer_key=KEY)
        path = os.path.join(sys.argv[1], "file")
        with lockstep.open(path, "wb", key=KEY) as file:
            file.write(bytes(9 << 20))
        readers = [lockstep.open(target, key=KEY), lockstep.open(path, key=KEY)]
        view = lockstep.parquet.open(table, {"footer": KEY})
        outcomes = set()

        def uses(writer):
            # The raw files are used, because a thread of the parent holds the lock of Python's buffered files
            # during the fork.
            yield lambda: readers[0].raw.readinto(bytearray(100_000))
            yield lambda: readers[1].raw.readinto(bytearray(100_000))
            yield lambda: view.read(1000)
            yield lambda: writer.raw.write(bytes(100_000))

        def in_child(index):
            for use in uses(writer):
                try:
                    use()
                except RuntimeError as error:
                    assert "open the file again" in str(error) or "reentrant" in str(error)
            writer.raw.close()
            with lockstep.open(path, key=KEY) as file:
                assert file.read(10) == bytes(10)
            with lockstep.open(os.path.join(sys.argv[1], "new"), "wb", key=KEY) as file:
                file.write(bytes(100_000))

        writer = lockstep.open(io.BytesIO(), "wb", key=KEY)

        def work(action):
            return lambda: (action(), [reader.raw.seek(0) for reader in readers])

        def view_all():
            view.seek(0)
            view.read()

        works = [
            lambda: readers[1].raw.seek(0) + readers[1].raw.readinto(bytearray(9 << 20)),
            lambda: readers[0].raw.seek(0) + readers[0].raw.readinto(bytearray(3 << 20)),
            lambda: writer.raw.write(bytes(3 << 20)),
            view_all,
        ]
        during(works, 6, in_child)
    """,
    # The forking thread holds the lock during the fork, and then releases it in the child too.
    "a lock of the forking thread": """
        generator, bits = lockstep.random.Generator(KEY), lockstep.random.BitGenerator(KEY)
        for source, lock in ((generator, generator._lock), (bits, bits.lock)):
            if not hasattr(lock, "_is_owned"):
                continue
            with lock:
                child = os.fork()
                if child == 0:
                    signal.alarm(20)
                    assert lock._is_owned()
            if child == 0:
                assert not lock._is_owned()
                thread = threading.Thread(target=source.advance, args=(1,))
                thread.start()
                thread.join()
                os._exit(0)
            assert os.waitpid(child, 0)[1] == 0
    """,
    # If no other thread makes a call during the fork, the objects of the parent work in the child. This
    # includes a fork in a callback.
    "idle": """
        target = io.BytesIO()
        with lockstep.open(target, "wb", key=KEY) as file:
            file.write(bytes(3 << 20))
        reader = lockstep.open(target, key=KEY)
        reader.read(10)
        forks(2, lambda index: (reader.seek(0), reader.read()))
        class Forking(io.BytesIO):
            children = []
            def read(self, size=-1):
                if not self.children:
                    self.children.append(os.fork())
                    if self.children[0] == 0:
                        signal.alarm(20)
                return super().read(size)
        content = target.getvalue()
        with lockstep.open(Forking(content), key=KEY) as file:
            assert file.read() == bytes(3 << 20)
        if Forking.children[0] == 0:
            os._exit(0)
        assert os.waitpid(Forking.children[0], 0)[1] == 0
    """,
}


@pytest.mark.parametrize("case", CASES)
def test_forks(tmp_path, case):
    done = run_python(SETUP + CASES[case].replace("\n    ", "\n"), tmp_path)
    assert done.returncode == 0, done.stderr
