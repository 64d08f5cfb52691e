"""Tests in which other threads change the arguments of a call. The results are unspecified, but the process does not crash, and every
call ends.

Short arguments that can change are copied at the start of a call. The result then corresponds to one of the values of the argument, or
to a mixture of them.
"""

import io
import threading

import numpy
import pytest
from conftest import data
from numpy.lib.stride_tricks import as_strided

import lockstep
import lockstep.parquet
import lockstep.safetensors.numpy as tensors
from lockstep import aead, hazmat, random, tensor

SIZES = (16, 1000, 5000, 300_000)
ERRORS = (lockstep.InvalidTag, ValueError)


def attempt(call):
    try:
        call()
    except ERRORS:
        pass


def calls(size):
    """Calls of all entry points, each as a function and the buffers that it gets."""
    key, nonce, message, output = bytearray(data(32)), bytearray(data(12)), bytearray(data(size)), bytearray(size + 16)
    aad, both = bytearray(data(size)), bytearray(size + 16)
    shared = [key, nonce, message, output, aad, both]
    inside = memoryview(both)[:size]
    for kind in (aead.AESGCM, aead.AESGCMSIV, aead.AESOCB3, aead.AESCCM):
        cipher = kind(key)
        yield lambda cipher=cipher: cipher.encrypt(nonce, message, aad)
        yield lambda cipher=cipher: cipher.decrypt(nonce, message, aad)
        yield lambda cipher=cipher: cipher.encrypt_into(nonce, message, aad, output)
        yield lambda cipher=cipher: cipher.encrypt_into(nonce, inside, aad, both)
        yield lambda cipher=cipher: cipher.decrypt_into(nonce, output, aad, message)
        yield lambda cipher=cipher: cipher.decrypt_into(nonce, both, aad, inside)
        yield lambda kind=kind: kind(key)
    siv = aead.AESSIV(key)
    yield lambda: siv.encrypt(message, [aad, nonce])
    yield lambda: siv.decrypt(message, [aad, nonce])
    yield lambda: siv.encrypt_into(message, [aad], output)
    rows = numpy.frombuffer(bytearray(data(4 * size)), numpy.uint8).reshape(4, size)
    nonces = numpy.frombuffer(bytearray(data(64)), numpy.uint8).reshape(4, 16)
    shared += [rows, nonces]
    yield lambda: aead.encrypt_many(aead.AESGCM, key, [nonce] * 4, [message] * 4, aad)
    yield lambda: aead.decrypt_many(aead.AESGCM, key, [nonce] * 4, [message] * 4, aad)
    yield lambda: aead.encrypt_many(aead.AESGCM, key, nonces[:, :12].copy(), rows)
    yield lambda: aead.decrypt_many(aead.AESGCM, key, nonces[:, :12].copy(), rows)
    yield lambda: tensor.seal(key, nonces, rows, out=rows)
    tags = numpy.zeros((4, 16), numpy.uint8)
    shared.append(tags)
    yield lambda: tensor.open(key, nonces, rows, tags)
    whole = size // 16 * 16
    blocks, iv, result = bytearray(data(whole)), bytearray(data(16)), bytearray(whole)
    shared += [blocks, iv, result]
    for mode in ("CBC", "CTR", "CBC-CS3"):
        yield lambda mode=mode: hazmat.encrypt(mode, key, blocks, iv)
        yield lambda mode=mode: hazmat.decrypt_into(mode, key, blocks, result, iv)
        yield lambda mode=mode: hazmat.encrypt_into(mode, key, blocks, blocks, iv)
    yield lambda: hazmat.hctr2_encrypt(key, nonce, message)
    yield lambda: hazmat.cmac(key, message)
    yield lambda: hazmat.gmac(key, nonce, message)
    yield lambda: hazmat.aes_key_wrap(key, blocks[:64])
    generator = random.Generator(key)
    yield lambda: generator.fill(message)
    yield lambda: generator.uniform(out=rows.reshape(-1)[: size // 16 * 8].view(numpy.float64))
    target = io.BytesIO()

    def write():
        with lockstep.open(target, "wb", key=key, context=aad[:100]) as file:
            file.write(message)
            file.raw.write(message)

    yield write
    plain = io.BytesIO()
    fixed = bytes(32)
    with lockstep.open(plain, "wb", key=fixed) as file:
        file.write(bytes(message))
    reader = lockstep.open(plain, key=fixed)
    yield lambda: reader.raw.seek(0) + reader.raw.readinto(message)
    yield lambda: tensors.save_file({"a": rows}, io.BytesIO(), key=fixed)
    yield lambda: lockstep.parquet.decrypt_modules([message, rows[0]], key, [aad, aad])
    yield shared


@pytest.mark.parametrize("size", SIZES)
def test_threads_that_change_arguments(size):
    *functions, shared = calls(size)
    stop = threading.Event()
    views = [numpy.frombuffer(buffer, numpy.uint8) for buffer in shared]
    sources = [data(256) for _ in range(4)]

    def change():
        patterns = [numpy.resize(numpy.frombuffer(source, numpy.uint8), max(view.size for view in views)) for source in sources]
        while not stop.is_set():
            for pattern in patterns:
                for view in views:
                    # While numpy copies a long array, it does not hold the interpreter lock, so the call in the other thread can run.
                    numpy.copyto(view, pattern[: view.size])

    thread = threading.Thread(target=change)
    thread.start()
    try:
        for _ in range(3 if size > 100_000 else 20):
            for function in functions:
                attempt(function)
    finally:
        stop.set()
        thread.join()


@pytest.mark.parametrize("size", [100, 300_000, 5 << 20])
def test_file_objects_that_change_arguments(key, size):
    """Methods of a file object are called during the call. They change the buffer of `readinto` and the data of `write`."""
    buffer = bytearray(size)

    class Changing(io.BytesIO):
        def change(self):
            # The call holds an export of the buffer, so the buffer cannot be resized.
            with pytest.raises(BufferError):
                buffer.append(0)
            buffer[:] = data(size)

        def read(self, count=-1):
            if is_changed:
                self.change()
            return super().read(count)

        def write(self, piece):
            if is_changed:
                self.change()
            return super().write(piece)

    is_changed = False
    file = Changing()
    with lockstep.open(file, "wb", key=key) as writer:
        writer.write(bytes(size))
    with lockstep.open(file, key=key) as reader:
        is_changed = True
        attempt(lambda: reader.raw.readinto(buffer))
        is_changed = False
        reader.raw.seek(0)
        assert reader.raw.readinto(buffer) == size and buffer == bytes(size)
    target = Changing()
    with lockstep.open(target, "wb", key=key) as writer:
        is_changed = size > 100_000
        writer.raw.write(buffer)
        is_changed = False
    with lockstep.open(target, key=key) as reader:
        assert len(reader.read()) == size


@pytest.mark.parametrize("mode", ["AESSIV", "AESGCMSIV", "encrypt_many"])
def test_short_arguments_are_read_once(key, mode):
    """These modes process the message and its associated data twice. Both passes must use the same content of the buffer."""
    message, stop = bytearray(1024), threading.Event()
    contents = numpy.frombuffer(data(2 * len(message)), numpy.uint8).reshape(2, -1)
    # A single call of numpy writes the two contents alternately, 1000 times each, without the interpreter lock.
    shape = (1000, *contents.shape)
    to = as_strided(numpy.frombuffer(message, numpy.uint8), shape, (0, 0, 1))
    source = as_strided(contents, shape, (0, len(message), 1))

    def change():
        while not stop.is_set():
            numpy.copyto(to, source)

    thread = threading.Thread(target=change)
    thread.start()
    try:
        for _ in range(300):
            if mode == "AESSIV":
                cipher = aead.AESSIV(key)
                assert cipher.decrypt(cipher.encrypt(message, None), None)
            elif mode == "AESGCMSIV":
                cipher = aead.AESGCMSIV(key)
                assert cipher.decrypt(bytes(12), cipher.encrypt(bytes(12), message, None), None)
            else:
                encrypted = aead.encrypt_many(aead.AESSIV, key, None, [message])
                assert all(aead.decrypt_many(aead.AESSIV, key, None, encrypted)[1])
    finally:
        stop.set()
        thread.join()


@pytest.mark.parametrize("size", [0, 1, 7, 8, 9, 1023, 1024, 1025, 40_000])
@pytest.mark.parametrize("start", [0, 1, 5])
def test_copies_have_the_bytes_of_the_buffer(key, size, start):
    """Tests lengths and alignments close to those for which the copy uses whole words."""
    whole = data(size + start)
    view = memoryview(bytearray(whole))[start:]
    cipher, nonce = aead.AESGCM(bytearray(key)), data(12)
    expected = aead.AESGCM(key).encrypt(nonce, whole[start:], whole[start:])
    assert cipher.encrypt(bytearray(nonce), view, view) == expected
    assert cipher.decrypt(bytearray(nonce), memoryview(bytearray(expected)), view) == whole[start:]
    assert hazmat.cmac(bytearray(key), view) == hazmat.cmac(key, whole[start:])
    target = io.BytesIO()
    with lockstep.open(target, "wb", key=bytearray(key), context=bytearray(b"context")) as file:
        file.write(view)
        file.raw.write(view)
    with lockstep.open(target, key=key, context=b"context") as file:
        assert file.read() == bytes(view) * 2


@pytest.mark.parametrize("size", [0, 1, 2, 16, 1000, 1024, 1025, 1 << 20])
def test_new_bytes_are_new_objects(key, size):
    """The interpreter shares some short objects of the type bytes. The library must not write a result into them."""
    before = [bytes([value]) for value in range(256)]
    nonce = data(12)
    results = [aead.AESGCM(key).decrypt(nonce, aead.AESGCM(key).encrypt(nonce, bytes([fill]) * size, None), None) for fill in (1, 2)]
    assert results == [b"\1" * size, b"\2" * size]
    assert random.Generator(key).bytes(size) == random.Generator(key).bytes(size)
    assert before == [bytes([value]) for value in range(256)] and bytes() == b""
