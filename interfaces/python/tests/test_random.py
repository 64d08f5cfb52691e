"""Tests of lockstep.random: its keystream equals that of pyca's AES, and its numbers equal those of a slow computation in Python."""

import copy
import pickle
import statistics
import struct
import threading

import numpy
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

import lockstep
from lockstep import _random_arrays
from lockstep.random import BitGenerator, Generator

KEY = bytes(range(32))


def keystream(position, size, key=KEY):
    """The keystream, computed by pyca."""
    counter = modes.CTR(position.to_bytes(16, "big"))
    return Cipher(algorithms.AES(key), counter).encryptor().update(bytes(size))


def words(position, count, size):
    return list(struct.unpack(f"<{count}{'I' if size == 4 else 'Q'}", keystream(position, count * size)))


def test_position_and_state_wait_for_calls():
    generator, read = Generator(KEY), []
    threads = [threading.Thread(target=lambda get=get: read.append(get())) for get in (lambda: generator.position, lambda: generator.state)]
    with generator._lock:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(0.05)
        assert not read and "at position 0" in repr(generator)
        generator.bytes(160)
    for thread in threads:
        thread.join()
    assert 10 in read and generator.state in read


@pytest.mark.parametrize("position", [0, 1, 2**64 - 1, 2**128 - 2])
@pytest.mark.parametrize("size", [0, 1, 16, 1000, 40_000, 3_000_000])
def test_bytes_are_the_keystream(position, size):
    assert Generator(KEY, position).bytes(size) == keystream(position, size)
    array = numpy.ones(size, numpy.uint8)
    generator = Generator(KEY, position)
    generator.fill(array)
    assert array.tobytes() == keystream(position, size)
    assert generator.position == (position + -(-size // 16)) % 2**128


def test_fill_takes_buffers_of_every_type():
    for array in (bytearray(100), memoryview(bytearray(100)), numpy.zeros((5, 5), numpy.float32)):
        Generator(KEY).fill(array)
        assert bytes(array) == keystream(0, 100)


@pytest.mark.parametrize(
    ("array", "error"),
    [
        (bytes(8), TypeError),
        (numpy.frombuffer(bytes(8), numpy.uint8), TypeError),
        (numpy.zeros((4, 4))[:, ::2], BufferError),
        ([1, 2], TypeError),
    ],
)
def test_fill_refuses(array, error):
    generator = Generator(KEY)
    with pytest.raises(error):
        generator.fill(array)
    assert generator.position == 0


@pytest.mark.parametrize("count", [1, 1000, 700_001])
def test_uniform(count):
    generator = Generator(KEY, 5)
    assert generator.uniform(count).tolist() == [(word >> 11) / 2**53 for word in words(5, count, 8)]
    assert generator.position == 5 + -(-count // 2)
    single = Generator(KEY, 5).uniform((count,), "float32")
    assert single.dtype == numpy.float32
    assert single.tolist() == [(word >> 8) / 2**24 for word in words(5, count, 4)]


def quantile(word):
    """The normally distributed number for a 64-bit word, computed by the standard library with an error of about 1e-15."""
    tail = ((word & (2**63 - 1)) | 1) / 2**64
    value = -statistics.NormalDist().inv_cdf(tail)
    return -value if word >> 63 else value


def test_normal():
    numbers = Generator(KEY).normal(20_000)
    for number, word in zip(numbers.tolist(), words(0, 20_000, 8), strict=True):
        assert number == pytest.approx(quantile(word), rel=1e-13, abs=1e-14)
    single = Generator(KEY).normal(20_000, "float32")
    for number, word in zip(single.tolist(), words(0, 20_000, 4), strict=True):
        assert number == pytest.approx(quantile(word << 32 | 2**31), rel=1e-7, abs=1e-8)


def test_normal_of_rare_words():
    rare = [1 << bit for bit in range(64)] + [(1 << bit) - 1 for bit in range(1, 65)] + [0, 3, 2**63 + 1, 5 << 59]
    array = numpy.array(rare, dtype=numpy.uint64).view(numpy.int64)
    for number, word in zip(_random_arrays.normal_of_words(numpy, array).tolist(), rare, strict=True):
        assert number == pytest.approx(quantile(word), rel=1e-13, abs=1e-14), hex(word)


@pytest.mark.parametrize("bits", [32, 64])
def test_array_operations_make_the_same_numbers(bits):
    """On a GPU, array operations make the numbers. Here numpy runs these operations, and the result is compared with that of
    the extension."""
    stream, dtype = Generator(KEY, 9), f"float{bits}"
    raw = numpy.frombuffer(stream.bytes(100_000 * bits // 8), f"<i{bits // 8}").astype(numpy.int64)
    raw = raw & 0xFFFFFFFF if bits == 32 else raw
    uniform = _random_arrays.uniform_of_words(numpy, raw, bits)
    assert uniform.tobytes() == Generator(KEY, 9).uniform(100_000, dtype).tobytes()
    wide = raw if bits == 64 else (raw << 32) | (1 << 31)
    normal = _random_arrays.normal_of_words(numpy, wide).astype(dtype)
    assert normal.tobytes() == Generator(KEY, 9).normal(100_000, dtype).tobytes()


def integers(position, low, high, count):
    """The integers according to the rule in the documentation, and the position after them."""
    size = 4 if high - low <= 2**32 else 8
    mask, results, used = (1 << (high - low - 1).bit_length()) - 1, [], 0
    stream = iter(words(position, 3 * count + 64, size))
    while len(results) < count:
        candidate = next(stream) & mask
        used += 1
        if candidate < high - low:
            results.append(low + candidate)
    return results, position + -(-used * size // 16)


@pytest.mark.parametrize(
    ("low", "high", "dtype"),
    [
        (0, 1, "int64"),
        (0, 6, "int64"),
        (-3, 4, "int8"),
        (0, 256, "uint8"),
        (-40_000, 1 << 31, "int64"),
        (0, 1 << 32, "uint32"),
        (0, (1 << 32) + 1, "int64"),
        (-(1 << 63), 1 << 63, "int64"),
        (0, 1 << 64, "uint64"),
        ((1 << 63) + 5, (1 << 64) - 3, "uint64"),
    ],
)
@pytest.mark.parametrize("count", [1, 20_000])
def test_integers(low, high, dtype, count):
    expected, position = integers(7, low, high, count)
    generator = Generator(KEY, 7)
    numbers = generator.integers(low, high, count, dtype)
    assert numbers.dtype == dtype
    assert numbers.tolist() == expected
    assert generator.position == position


@pytest.mark.parametrize(("low", "high", "dtype"), [(3, 3, "int64"), (0, 257, "uint8"), (-1, 2, "uint8"), (0, 2, "float64")])
def test_integers_refuse(low, high, dtype):
    with pytest.raises(ValueError):
        Generator(KEY).integers(low, high, 1, dtype)


def test_array_operations_make_the_same_integers(monkeypatch):
    """On a GPU, array operations make the integers. Here numpy runs these operations in several batches, and the result is
    compared with that of the extension."""
    monkeypatch.setattr(_random_arrays, "_BATCH", 1000)
    for low, high in [(0, 5), (-7, 1 << 33), (0, 1 << 63), (-(1 << 63), (1 << 62) + 3)]:
        array, stream = numpy.zeros(3456, numpy.int64), Generator(KEY, 3)
        _random_arrays._fill_integers(numpy, stream._stream, low, high - 1 - low, array)
        reference = Generator(KEY, 3)
        assert array.tolist() == reference.integers(low, high, 3456).tolist()
        assert stream.position == reference.position


def on_gpu(monkeypatch):
    """Processes arrays of numpy by the code for arrays on a GPU."""
    monkeypatch.setattr(_random_arrays._arrays, "device_name", lambda array: "cuda:0")
    monkeypatch.setattr(_random_arrays, "_library_on_device", lambda array: numpy)


def test_arrays_on_a_gpu_must_be_contiguous(monkeypatch):
    on_gpu(monkeypatch)
    for fill in (Generator(KEY).uniform, Generator(KEY).normal, lambda **out: Generator(KEY).integers(0, 9, **out)):
        out = numpy.zeros((4, 4), numpy.int64 if fill.__name__ == "<lambda>" else numpy.float64)
        with pytest.raises(BufferError, match="contiguous"):
            fill(out=out[:, ::2])
        assert not out.any()
        assert fill(out=out).any()


def test_threads_get_disjoint_integers_on_a_gpu(monkeypatch):
    on_gpu(monkeypatch)
    monkeypatch.setattr(_random_arrays, "_BATCH", 500)
    generator, parts = Generator(KEY), []
    threads = [threading.Thread(target=lambda: parts.append(generator.integers(0, 5, 20_000).tolist())) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    reference = Generator(KEY)
    assert sorted(parts) == sorted(reference.integers(0, 5, 20_000).tolist() for _ in range(6))
    assert generator.position == reference.position


def test_a_range_that_the_elements_cannot_represent():
    with pytest.raises(ValueError, match="more integers"):
        Generator(KEY)._stream.integers(numpy.zeros(3, numpy.int32), 0, 1 << 40)


def test_shapes_and_outputs():
    assert isinstance(float(Generator(KEY).uniform()), float)
    assert Generator(KEY).normal((2, 3), "float32").shape == (2, 3)
    out = numpy.zeros((2, 3))
    assert Generator(KEY).uniform(out=out) is out
    assert out.any()
    with pytest.raises(ValueError, match="float16"):
        Generator(KEY).uniform(1, "float16")


def test_positions_and_states():
    generator = Generator(KEY, 10)
    assert generator.advance(-11).position == 2**128 - 1
    assert generator.jumped(2).position == 2**65 - 1
    assert generator.jumped().bytes(40) == keystream(2**64 - 1, 40)
    state = generator.state
    assert Generator.from_state(KEY, state).bytes(99) == generator.bytes(99)
    assert KEY.hex() not in repr(state) + repr(generator)
    for bad in (-1, 2**128):
        with pytest.raises(ValueError):
            Generator(KEY, bad)
        with pytest.raises(ValueError):
            generator.position = bad
    with pytest.raises(ValueError):
        Generator.from_state(KEY, {"generator": "other", "version": 1, "position": 0})
    with pytest.raises(ValueError, match="32 bytes"):
        Generator(bytes(16))


@pytest.mark.parametrize("make", [Generator, BitGenerator])
def test_keys_are_not_pickled(make):
    for store in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match="key"):
            store(make(KEY))


def test_threads_get_disjoint_parts():
    generator, parts = Generator(KEY), []
    threads = [threading.Thread(target=lambda: parts.append(generator.bytes(100_000))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(parts) == sorted(keystream(6250 * index, 100_000) for index in range(8))


def test_devices_do_not_change_bytes():
    with lockstep.use("cpu", kernel="cpu/soft"):
        assert Generator(KEY, 3).bytes(100_000) == keystream(3, 100_000)


class TestNumpy:
    def test_words(self):
        raw = numpy.random.Generator(BitGenerator(KEY, 4)).bit_generator.random_raw(2000)
        assert raw.tolist() == words(4, 2000, 8)
        doubles = numpy.random.Generator(BitGenerator(KEY, 4)).random(2000)
        assert doubles.tolist() == [(word >> 11) / 2**53 for word in words(4, 2000, 8)]
        # For a range of 2 ** 32, numpy returns each 32-bit word unchanged.
        small = numpy.random.Generator(BitGenerator(KEY, 4)).integers(0, 2**32, 3000, dtype=numpy.uint32)
        assert small.tolist() == words(4, 3000, 4)

    def test_words_are_aligned(self):
        generator = numpy.random.Generator(BitGenerator(KEY))
        first = generator.integers(0, 2**32, dtype=numpy.uint32)
        assert int(first) == words(0, 1, 4)[0]
        assert generator.bit_generator.random_raw() == words(0, 2, 8)[1]

    def test_distributions(self):
        generator = numpy.random.Generator(BitGenerator(KEY))
        values = generator.standard_normal(100_000)
        assert abs(values.mean()) < 0.02
        assert abs(values.std() - 1) < 0.02
        assert sorted(generator.permutation(100)) == list(range(100))

    def test_states(self):
        generator = numpy.random.Generator(BitGenerator(KEY))
        for count in (1, 3, 510, 513):
            generator.integers(0, 2**32, count, dtype=numpy.uint32)
            state = generator.bit_generator.state
            expected = generator.random(700).tolist()
            other = BitGenerator(KEY)
            other.state = state
            assert numpy.random.Generator(other).random(700).tolist() == expected
        assert KEY.hex() not in repr(state)
        with pytest.raises(ValueError):
            other.state = {"bit_generator": "PCG64", "state": {}}
        with pytest.raises(ValueError):
            other.state = {"bit_generator": "BitGenerator", "state": {"position": 0, "used": 16}}

    def test_jumps(self):
        source = BitGenerator(KEY, 1)
        source.random_raw()
        jumped = source.jumped(3)
        assert jumped.random_raw() == words(3 * 2**64 + 1, 2, 8)[1]
        assert source.advance(5).random_raw() == words(6, 1, 8)[0]
        with pytest.raises(TypeError):
            source.spawn(2)

    def test_it_is_initialised_once(self):
        source = BitGenerator(KEY)
        generator = numpy.random.Generator(source)
        with pytest.raises(TypeError, match="once"):
            source.__init__(KEY)
        assert generator.bit_generator.random_raw() == words(0, 1, 8)[0]

    def test_the_source_outlives_its_name(self):
        generators = [numpy.random.Generator(BitGenerator(KEY, index)) for index in range(50)]
        for index, generator in enumerate(generators):
            assert generator.bit_generator.random_raw() == words(index, 1, 8)[0]
