"""Tests with arrays of other libraries, on the host and on the emulator of GPUs. The classes of lockstep.aead and the functions of
lockstep.tensor are compared with pyca."""

import gc
import sys
from types import SimpleNamespace

import numpy
import pytest
from conftest import CudaArray, Dlpack, data, on_device, run_python
from cryptography.hazmat.primitives.ciphers import aead as pyca

import lockstep
from lockstep import _arrays, aead, tensor
from lockstep.random import Generator

# Each entry has a mode, and the lengths in bytes of its key and its nonce.
MODES = [("AESGCM", 32, 12), ("AESGCMSIV", 16, 12), ("AESOCB3", 24, 12), ("AESCCM", 32, 12)]


class Copying(Dlpack):
    """An array whose library exports a copy of it instead of its own memory."""

    def __dlpack__(self, **arguments):
        return self.array.__dlpack__(**{**arguments, "copy": True})


def sealed_by_pyca(keys, nonces, messages):
    return [pyca.AESGCM(key).encrypt(nonce, message, None) for key, nonce, message in zip(keys, nonces, messages, strict=True)]


class TestClassesOnTheHost:
    @pytest.mark.parametrize(("mode", "key_size", "nonce_size"), MODES)
    @pytest.mark.parametrize("size", [0, 5, 1000, 100_000])
    def test_messages(self, mode, key_size, nonce_size, size):
        key, nonce, plain, aad = data(key_size), data(nonce_size), data(size), data(20)
        ours, theirs = getattr(aead, mode)(key), getattr(pyca, mode)(key)
        expected = theirs.encrypt(nonce, plain, aad)
        sealed = ours.encrypt(nonce, Dlpack(numpy.frombuffer(bytearray(plain), numpy.uint8)), aad)
        assert bytes(sealed) == expected
        assert bytes(ours.decrypt(nonce, Dlpack(sealed), aad)) == plain
        sealed[-1] ^= 1
        with pytest.raises(lockstep.InvalidTag):
            ours.decrypt(nonce, Dlpack(sealed), aad)

    def test_siv(self):
        key, plain = data(64), data(333)
        sealed = aead.AESSIV(key).encrypt(Dlpack(numpy.frombuffer(plain, numpy.uint8)), [b"a", b"bc"])
        assert bytes(sealed) == pyca.AESSIV(key).encrypt(plain, [b"a", b"bc"])
        assert bytes(aead.AESSIV(key).decrypt(Dlpack(sealed), [b"a", b"bc"])) == plain

    def test_in_place(self, key):
        plain, nonce = data(4000), data(12)
        place = numpy.frombuffer(bytearray(plain + bytes(16)), numpy.uint8)
        assert aead.AESGCM(key).encrypt_into(nonce, Dlpack(place[:4000]), None, Dlpack(place)) == 4016
        assert place.tobytes() == pyca.AESGCM(key).encrypt(nonce, plain, None)
        assert aead.AESGCM(key).decrypt_into(nonce, Dlpack(place), None, Dlpack(place[:4000])) == 4000
        assert place[:4000].tobytes() == plain

    def test_elements_may_have_any_type(self, key):
        numbers, nonce = numpy.arange(100, dtype=numpy.float64).reshape(4, 25), data(12)
        sealed = aead.AESGCM(key).encrypt(nonce, Dlpack(numbers), None)
        assert bytes(sealed) == pyca.AESGCM(key).encrypt(nonce, numbers.tobytes(), None)
        out = numpy.zeros((4, 25))
        aead.AESGCM(key).decrypt_into(nonce, Dlpack(sealed), None, Dlpack(out))
        assert (out == numbers).all()

    def test_bad_arrays(self, key):
        cipher, nonce, plain = aead.AESGCM(key), data(12), numpy.zeros((8, 8), numpy.uint8)
        read_only = numpy.zeros(80, numpy.uint8)
        read_only.flags.writeable = False
        for buf, error in [
            (Dlpack(read_only), TypeError),
            (Dlpack(numpy.zeros((10, 16), numpy.uint8)[:, ::2]), BufferError),
            (Dlpack(numpy.zeros(79, numpy.uint8)), ValueError),
            (Copying(numpy.zeros(80, numpy.uint8)), BufferError),
        ]:
            with pytest.raises(error):
                cipher.encrypt_into(nonce, Dlpack(plain), None, buf)
        with pytest.raises(BufferError, match="contiguous"):
            cipher.encrypt(nonce, Dlpack(plain.T[1:]), None)
        with pytest.raises(ValueError, match="ROCm"):
            cipher.encrypt(nonce, Dlpack(plain, (10, 0)), None)
        with pytest.raises(ValueError, match="device type 8"):
            cipher.encrypt(nonce, Dlpack(plain, (8, 0)), None)

    def test_without_a_gpu(self, key):
        """A tensor in the memory of a GPU is refused if Lockstep does not have this GPU."""
        with lockstep.use("cpu"), pytest.raises(ValueError, match="cuda:0"):
            aead.AESGCM(key).encrypt(data(12), Dlpack(numpy.zeros(8, numpy.uint8), (2, 0)), None)


    def test_arrays_of_objects(self, key):
        objects = numpy.array([[], {}], dtype=object)
        for use in (
            lambda: tensor.seal(key, bytes(12), objects),
            lambda: tensor.open(key, bytes(12), bytes(16), bytes(16), out=objects),
            lambda: Generator(key).fill(objects),
        ):
            with pytest.raises(TypeError, match="objects of Python"):
                use()
        assert objects.tolist() == [[], {}]


def test_a_subclass_belongs_to_the_library_of_its_base_class():
    class Own(numpy.ndarray):
        pass

    assert Own.__module__ != "numpy"
    assert _arrays.package_of(numpy.zeros(2).view(Own)) == "numpy"
    assert _arrays.package_of(bytearray(2)) == "builtins"


def test_the_current_stream_of_cupy_is_that_of_the_device_of_the_array(monkeypatch):
    current = [5]

    class Device:
        def __enter__(self):
            current.append(7)

        def __exit__(self, *exception):
            current.pop()

    class Array:
        device = Device()

    Array.__module__ = "cupy"
    stream = SimpleNamespace(get_current_stream=lambda: SimpleNamespace(ptr=current[-1]))
    monkeypatch.setitem(sys.modules, "cupy", SimpleNamespace(cuda=stream))
    assert _arrays.stream_of(Array(), 1, None) == 7
    assert _arrays.stream_of(Array(), 1, 9) == 9


class TestBatchesOnTheHost:
    @pytest.mark.parametrize("own_keys", [False, True])
    @pytest.mark.parametrize("key_size", [16, 24, 32])
    @pytest.mark.parametrize("row", [12, 16])
    def test_rows(self, own_keys, key_size, row):
        count, size = 20, 77
        keys = [data(key_size) for _ in range(count)] if own_keys else [data(key_size)] * count
        nonces = numpy.frombuffer(data(count * row), numpy.uint8).reshape(count, row)
        plain = numpy.frombuffer(data(count * size), numpy.uint8).reshape(count, size)
        key = numpy.frombuffer(b"".join(keys), numpy.uint8).reshape(count, key_size) if own_keys else keys[0]
        result = tensor.seal(key, nonces, plain)
        expected = sealed_by_pyca(keys, [bytes(nonce[:12]) for nonce in nonces], map(bytes, plain))
        assert bytes(result.data) == b"".join(message[:-16] for message in expected)
        assert bytes(result.tags) == b"".join(message[-16:] for message in expected)
        assert bytes(result.status) == b"\1" * count
        opened = tensor.open(key, nonces, result.data, result.tags)
        assert bytes(opened.data) == plain.tobytes()
        tensor.check(opened.status)

    def test_offsets_and_wrong_tags(self, key):
        plain, offsets = bytearray(data(1000)), [3, 3, 20, 500, 999]
        original = bytes(plain)
        nonces = numpy.frombuffer(data(4 * 12), numpy.uint8).reshape(4, 12)
        result = tensor.seal(key, nonces, plain, out=plain, offsets=offsets)
        assert result.data is plain
        assert (plain[:3], plain[999:]) == (original[:3], original[999:])
        tags = bytearray(result.tags)
        tags[16 * 2] ^= 4
        opened = tensor.open(key, nonces, plain, tags, out=plain, offsets=offsets)
        assert bytes(opened.status) == bytes([1, 1, 2, 1])
        assert plain == original[:20] + bytes(480) + original[500:]
        with pytest.raises(lockstep.InvalidTag, match="message 2"):
            tensor.check(opened.status)

    def test_one_message(self, key):
        result = tensor.seal(key, b"n" * 12, b"attack at dawn")
        assert bytes(result.data) + bytes(result.tags) == pyca.AESGCM(key).encrypt(b"n" * 12, b"attack at dawn", None)

    def test_bad_arguments(self, key):
        nonces = numpy.zeros((4, 12), numpy.uint8)
        for changes in [
            {"key": bytes(17)},
            {"key": numpy.zeros((3, 32), numpy.uint8)},
            {"nonces": numpy.zeros((4, 13), numpy.uint8)},
            {"nonces": bytes(13)},
            {"data": bytes(41)},
            {"out": bytearray(39)},
            {"tags": bytearray(63)},
            {"offsets": [0, 10, 20, 40]},
            {"offsets": [0, 10, 20, 15, 40]},
            {"offsets": [0, 10, 20, 30, 41]},
        ]:
            with pytest.raises(ValueError):
                tensor.seal(**{"key": key, "nonces": nonces, "data": bytes(40), **changes})
        with pytest.raises(TypeError):
            tensor.seal(key, nonces, bytes(40), out=bytes(40))
        shared = bytearray(104)
        with pytest.raises(ValueError, match="overlap"):
            tensor.seal(key, nonces, bytes(40), out=memoryview(shared)[:40], tags=memoryview(shared)[39:103])


class TestDevices:
    """Tests with memory of the emulator. The same code processes the memory of a GPU."""

    def test_memory(self, emulator):
        array = on_device(b"abcdef", (2, 3))
        assert (array.shape, array.nbytes, array.device) == ((2, 3), 6, emulator)
        assert array.tobytes() == b"abcdef"
        # The device type is 12 (kDLExtDev), so no library takes this memory for memory of a GPU.
        assert array.__dlpack_device__() == (12, 0)
        assert tensor.DeviceArray(5, emulator).tobytes() == bytes(5)
        for bad in (-1, "x", 1 << 60):
            with pytest.raises((TypeError, ValueError, OverflowError, RuntimeError)):
                tensor.DeviceArray(bad, emulator)
        with pytest.raises(ValueError, match="cuda:7"):
            tensor.DeviceArray(1, "cuda:7")

    @pytest.mark.parametrize(("mode", "key_size", "nonce_size"), [*MODES, ("XAES256GCM", 32, 24)])
    @pytest.mark.parametrize("wrap", [lambda array: array, Dlpack, CudaArray])
    def test_classes(self, emulator, mode, key_size, nonce_size, wrap):
        key, nonce, plain, aad = data(key_size), data(nonce_size), data(1003), data(20)
        cipher = getattr(aead, mode)(key)
        expected = cipher.encrypt(nonce, plain, aad)
        sealed = cipher.encrypt(nonce, wrap(on_device(plain)), aad)
        assert isinstance(sealed, tensor.DeviceArray)
        assert sealed.tobytes() == expected
        assert cipher.decrypt(nonce, wrap(sealed), aad).tobytes() == plain
        wrong, out = on_device(expected[:-1] + bytes([expected[-1] ^ 1])), on_device(b"x" * 1003)
        with pytest.raises(lockstep.InvalidTag):
            cipher.decrypt_into(nonce, wrap(wrong), aad, wrap(out))
        assert out.tobytes() == bytes(1003)

    def test_siv(self, emulator):
        key, plain = data(32), data(300)
        sealed = aead.AESSIV(key).encrypt(on_device(plain), [b"a"])
        assert sealed.tobytes() == pyca.AESSIV(key).encrypt(plain, [b"a"])
        assert aead.AESSIV(key).decrypt(sealed, [b"a"]).tobytes() == plain

    @pytest.mark.parametrize("own_keys", [False, True])
    @pytest.mark.parametrize("wrap", [lambda array: array, Dlpack, CudaArray])
    @pytest.mark.parametrize("host", [False, True])
    def test_batches(self, emulator, own_keys, wrap, host):
        count, size = 9, 1000
        keys = [data(16) for _ in range(count)] if own_keys else [data(16)] * count
        rows = numpy.frombuffer(data(count * 16), numpy.uint8).reshape(count, 16)
        plain = data(count * size)
        key = numpy.frombuffer(b"".join(keys), numpy.uint8).reshape(count, 16) if own_keys else keys[0]
        nonces = rows
        if not host:
            key = on_device(key, (count, 16) if own_keys else 16)
            nonces = on_device(rows, (count, 16))
            key, nonces = (Dlpack(key), Dlpack(nonces)) if wrap is Dlpack else (key, nonces)
        result = tensor.seal(key, nonces, wrap(on_device(plain)))
        messages = [plain[size * index :][:size] for index in range(count)]
        expected = sealed_by_pyca(keys, [bytes(row[:12]) for row in rows], messages)
        tensor.synchronize()
        assert result.data.tobytes() == b"".join(message[:-16] for message in expected)
        assert result.tags.tobytes() == b"".join(message[-16:] for message in expected)
        tensor.check(result.status)
        tags = bytearray(result.tags.tobytes())
        tags[16 * 3 + 1] ^= 1
        opened = tensor.open(key, nonces, result.data, on_device(tags), out=result.data)
        assert opened.status.tobytes() == bytes([1, 1, 1, 2, 1, 1, 1, 1, 1])
        assert result.data.tobytes() == plain[: 3 * size] + bytes(size) + plain[4 * size :]
        with pytest.raises(lockstep.InvalidTag, match="message 3$"):
            tensor.check(opened.status)

    def test_offsets(self, emulator, key):
        plain, offsets = data(500), [7, 100, 100, 481]
        nonces = numpy.frombuffer(data(3 * 12), numpy.uint8).reshape(3, 12)
        host = tensor.seal(key, nonces, plain, offsets=offsets)
        device = tensor.seal(key, nonces, on_device(plain), offsets=offsets)
        assert device.tags.tobytes() == bytes(host.tags)
        assert device.data.tobytes()[7:481] == bytes(host.data)[7:481]

    def test_arrays_may_be_dropped_at_once(self, emulator, key):
        expected = tensor.seal(key, b"n" * 12, bytes(100_000)).data
        results = []
        for _ in range(6):
            array = on_device(bytes(100_000))
            results.append(tensor.seal(key, b"n" * 12, Dlpack(array)).data)
            del array
            gc.collect()
        del results[:-1]
        gc.collect()
        assert results[0].tobytes() == bytes(expected)

    def test_arguments(self, emulator, key):
        array = on_device(bytes(64))
        address = array.__cuda_array_interface__["data"][0]
        other = on_device(bytes(32))
        unaligned = CudaArray(other, shape=(16,), data=(other.__cuda_array_interface__["data"][0] + 1, False))
        cases = [
            (TypeError, "read-only", {"out": CudaArray(array, data=(address, True))}),
            (BufferError, "contiguous", {"data": CudaArray(array, shape=(8, 8), strides=(1, 8))}),
            (ValueError, "overlap", {"out": array, "tags": CudaArray(array, shape=(16,))}),
            (ValueError, "same device", {"out": bytearray(64)}),
            (ValueError, "another stream", {"data": CudaArray(array, stream=77), "stream": 78}),
            (ValueError, "another stream", {"data": CudaArray(array, stream=77), "out": CudaArray(array, stream=78)}),
            (ValueError, "another stream", {"key": CudaArray(other, stream=77)}),
            (ValueError, "stream of its own", {"stream": 2}),
            (ValueError, "stream of its own", {"data": CudaArray(array, stream=2)}),
            (TypeError, "no stream", {"stream": "x"}),
            (ValueError, "2 \\*\\* 64", {"stream": -1}),
            (TypeError, "masked", {"data": CudaArray(array, mask=array)}),
            (ValueError, "16 bytes: make a copy", {"tags": unaligned}),
            (ValueError, "\\(n, 16\\)", {"nonces": on_device(bytes(24), (2, 12))}),
            *(
                (ValueError, "no valid shape", {"data": CudaArray(array, **change)})
                for change in (
                    {"shape": (-1,)}, {"shape": (1 << 64,)}, {"shape": (6.5,)}, {"shape": ("64",)}, {"shape": 64}, {"strides": (0.5,)},
                    {"data": (-1, False)}, {"data": (1 << 64, False)}, {"data": (str(address), False)}, {"data": (address, "no")},
                    {"data": (address, None)}, {"data": address}, {"stream": -1}, {"stream": 1 << 64}, {"stream": "x"},
                )
            ),
            (ValueError, "2 \\*\\* 64", {"data": CudaArray(array, typestr="|u" + "9" * 25)}),
            ((ValueError, RuntimeError), "not allocated", {"data": CudaArray(array, data=(4096, False))}),
        ]
        for error, message, changes in cases:
            with pytest.raises(error, match=message):
                tensor.seal(**{"key": key, "nonces": b"n" * 12, "data": array, **changes})
        tensor.synchronize()
        assert tensor.seal(key, b"n" * 12, array, stream=0).status.tobytes() == b"\1"

    def test_classes_use_the_stream_of_the_data(self, emulator, key):
        plain, sealed = on_device(bytes(64)), on_device(bytes(80))
        for method, data_, out in (("encrypt_into", plain, sealed), ("decrypt_into", sealed, plain)):
            with pytest.raises(ValueError, match="another stream"):
                call = getattr(aead.AESGCM(key), method)
                call(bytes(12), CudaArray(data_, stream=77), None, CudaArray(out, stream=78))
        assert aead.AESGCM(key).encrypt_into(bytes(12), CudaArray(plain, stream=1), None, CudaArray(sealed, stream=1)) == 80

    @pytest.mark.parametrize("size", [0, 1, 16, 1000, (4 << 20) + 17])
    def test_random_bytes(self, emulator, key, size):
        array, generator = tensor.DeviceArray(size, emulator), Generator(key, 2**64 - 2)
        generator.fill(array)
        assert array.tobytes() == Generator(key, 2**64 - 2).bytes(size)
        assert generator.position == 2**64 - 2 + -(-size // 16)

    def test_random_bytes_overwrite(self, emulator, key):
        array = on_device(data(100))
        Generator(key).fill(CudaArray(array))
        assert array.tobytes() == Generator(key).bytes(100)

    def test_work_at_the_end_of_the_interpreter(self, emulator):
        code = """
            import lockstep
            from lockstep import tensor
            lockstep.use("cuda:emu")
            array = tensor.DeviceArray(50_000, "cuda:emu")
            for _ in range(4):
                tensor.seal(bytes(32), bytes(12), array, out=array)
        """
        assert run_python(code).returncode == 0

    def test_a_fork_after_work(self, emulator):
        code = """
            import os, lockstep
            from lockstep import tensor
            lockstep.use("cuda:emu")
            array = tensor.DeviceArray(10_000, "cuda:emu")
            tensor.seal(bytes(32), bytes(12), array)
            if (child := os.fork()) == 0:
                result = tensor.seal(bytes(32), bytes(12), b"x" * 100000)
                # The array is in the memory of the parent's device. The child drops it, which must not call the driver.
                del array
                os._exit(0 if bytes(result.status) == b"\\1" else 1)
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        """
        process = run_python(code)
        assert process.returncode == 0, process.stderr
