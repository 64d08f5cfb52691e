"""Fills arrays of numpy, PyTorch, CuPy and JAX with the numbers of `lockstep.random`.

On the host, the extension computes the numbers. On a GPU, the extension writes random words, and array operations of PyTorch or CuPy
convert the words to the same numbers. The results are the same bit for bit because only such operations are used: integer operations,
exact conversions, and single multiplications and additions, whose rounding IEEE 754 specifies.
"""

import contextlib
import math
import struct
import sys
from collections.abc import Sequence
from typing import Any

from . import _arrays
from ._native import Keystream, normal_table
from ._shown import shown

_FLOATS = ("float32", "float64")
_INTEGERS = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")
_LOW_63 = (1 << 63) - 1
# Maximum number of words of a batch on a GPU. The limit bounds the memory: a batch of normal numbers takes about 100 bytes per number.
_BATCH = 1 << 22


def _name(dtype: Any) -> str:
    """The name of a type of elements, such as float32, of any library."""
    if isinstance(dtype, type):
        return dtype.__name__
    return str(getattr(dtype, "name", dtype)).removeprefix("torch.")


def _target(shape: int | Sequence[int], dtype: Any, like: Any, out: Any, allowed: tuple[str, ...]) -> tuple[Any, str]:
    """The array to fill, and the name of its type."""
    name = _name(dtype if out is None else out.dtype)
    if name not in allowed:
        what = shown(name) if name.isidentifier() else shown(dtype)
        raise ValueError(f"the type {what} is not supported: use {', '.join(allowed)}")
    if out is not None:
        return out, name
    # Other objects are refused here: their elements can be the bytes of a key, which a message of PyTorch would contain.
    if not isinstance(shape, (int, Sequence)) or isinstance(shape, (str, bytes, bytearray, memoryview)):
        raise TypeError(f"the shape is of the type {type(shape).__name__}: give an integer, or a list or tuple of integers")
    shape = (shape,) if isinstance(shape, int) else tuple(shape)
    library = None if like is None else _arrays.package_of(like)
    if like is not None and library == "torch":
        torch = sys.modules["torch"]
        return torch.empty(shape, dtype=getattr(torch, name), device=like.device), name
    if like is not None and library == "cupy":
        with like.device:
            return sys.modules["cupy"].empty(shape, dtype=name), name
    import numpy

    return numpy.empty(shape, dtype=name), name


def _result(array: Any, like: Any, out: Any) -> Any:
    if out is None and _arrays.is_jax(like):
        return sys.modules["jax"].device_put(array, like.device)
    return array[()] if out is None and array.shape == () and _arrays.package_of(array) == "numpy" else array


def floats(stream: Keystream, kind: str, shape: Any, dtype: Any, like: Any, out: Any) -> Any:
    array, name = _target(shape, dtype, like, out, _FLOATS)
    if _arrays.device_name(array) is None:
        stream.floats(array, kind)
    else:
        with _on_device(array):
            _fill_floats(_library_on_device(array), stream, kind, array, name)
    return _result(array, like, out)


def integers(stream: Keystream, low: int, high: int, shape: Any, dtype: Any, like: Any, out: Any) -> Any:
    array, name = _target(shape, dtype, like, out, _INTEGERS)
    bits = int(name.removeprefix("u").removeprefix("int"))
    least, greatest = (0, (1 << bits) - 1) if name[0] == "u" else (-(1 << bits - 1), (1 << bits - 1) - 1)
    if low >= high:
        raise ValueError("low must be less than high")
    if low < least or high - 1 > greatest:
        raise ValueError(f"{shown(name)} has numbers from {least} to {greatest}")
    if _arrays.device_name(array) is None:
        stream.integers(array, _signed(low), high - 1 - low)
    else:
        with _on_device(array):
            _fill_integers(_library_on_device(array), stream, low, high - 1 - low, array)
    return _result(array, like, out)


def _signed(word: int) -> int:
    """The signed 64-bit integer that is equal to a number modulo 2 ** 64."""
    word &= (1 << 64) - 1
    return word - (1 << 64) if word >> 63 else word


def _library_on_device(array: Any) -> Any:
    library = _arrays.package_of(array)
    if library not in ("torch", "cupy"):
        raise TypeError("numbers on a GPU are written to arrays of PyTorch and CuPy; bytes are written to all arrays, by fill")
    return sys.modules[library]


def _cast(array: Any, dtype: Any) -> Any:
    return array.to(dtype) if hasattr(array, "to") else array.astype(dtype)


def _words(library: Any, stream: Keystream, like: Any, count: int, bits: int) -> Any:
    """Words of the keystream as 64-bit integers. Words of 32 bits become integers that are not negative."""
    dtype = library.int64 if bits == 64 else library.int32
    if library.__name__ == "torch":
        words = library.empty(count, dtype=dtype, device=like.device)
    else:
        words = library.empty(count, dtype=dtype)
    stream.fill(words, None)
    return words if bits == 64 else _cast(words, library.int64) & 0xFFFFFFFF


def _on_device(array: Any) -> Any:
    """A context in which the library of an array makes new arrays on the same device. PyTorch takes the device as an argument."""
    return array.device if _arrays.package_of(array) == "cupy" else contextlib.nullcontext()


def _flat(array: Any) -> Any:
    """The elements of an array on a GPU as a vector that shares the memory of the array. The array must be contiguous, because `reshape`
    would copy other arrays."""
    _arrays.check(array, True)
    if not (array.is_contiguous() if hasattr(array, "is_contiguous") else array.flags.c_contiguous):
        raise BufferError("the array is not contiguous: give a contiguous one")
    return array.reshape(-1)


def _fill_floats(library: Any, stream: Keystream, kind: str, array: Any, name: str) -> None:
    bits = 32 if name == "float32" else 64
    flat = _flat(array)
    for start in range(0, flat.shape[0], _BATCH):
        part = flat[start : start + _BATCH]
        words = _words(library, stream, array, part.shape[0], bits)
        if kind == "uniform":
            part[:] = uniform_of_words(library, words, bits)
        else:
            wide = words if bits == 64 else (words << 32) | (1 << 31)
            part[:] = _cast(normal_of_words(library, wide), part.dtype)


def uniform_of_words(library: Any, words: Any, bits: int) -> Any:
    """Numbers in [0, 1), the same as those of `uniform32` and `uniform64` in the extension."""
    if bits == 32:
        return _cast(words >> 8, library.float32) * 2.0**-24
    return _cast((words >> 11) & ((1 << 53) - 1), library.float64) * 2.0**-53


def normal_of_words(library: Any, words: Any) -> Any:
    """Normal numbers from 64-bit words, the same as those of `normal` in the extension."""
    odd = (words & _LOW_63) | 1
    upper = odd >> 10
    is_long = upper > 0
    # The selected values are less than 2 ** 53, so the conversion and the exponent are exact.
    _, exponent = library.frexp(_cast(library.where(is_long, upper, odd), library.float64))
    octave = 63 - _cast(exponent, library.int64) - _cast(is_long, library.int64) * 10
    scaled = odd << octave
    argument = _cast((scaled >> 5) & ((1 << 53) - 1), library.float64) * 2.0**-52 - 1.0
    index = octave * 16 + ((scaled >> 58) & 15)
    table = _table(library, words)
    value = table[8][index]
    for term in range(7, -1, -1):
        value = value * argument
        value = value + table[term][index]
    return library.where(words < 0, -value, value)


def _table(library: Any, like: Any) -> Any:
    """The coefficients, sorted by degree, on the device of an array."""
    numbers = normal_table()
    values = struct.unpack(f"<{len(numbers) // 8}d", numbers)
    columns = [values[degree::9] for degree in range(9)]
    if library.__name__ == "torch":
        return library.tensor(columns, dtype=library.float64, device=like.device)
    return library.array(columns, dtype=library.float64)


def _fill_integers(library: Any, stream: Keystream, low: int, last: int, array: Any) -> None:
    bits = 32 if last < 1 << 32 else 64
    mask = (1 << last.bit_length()) - 1
    flat = _flat(array)
    written, total = 0, flat.shape[0]
    while written < total:
        start = stream.position
        expected = math.ceil(min(total - written, _BATCH) * (mask + 1) / (last + 1) * 1.05) + 64
        # The number of words is rounded down to whole blocks. Each batch except the last one uses all of its words.
        words = _words(library, stream, array, expected // 4 * 4, bits) & _signed(mask)
        # The comparison must be unsigned, but the words are signed, so the highest bits of both operands are inverted.
        is_result = (words ^ -(1 << 63)) <= _signed(last ^ (1 << 63))
        results = words[is_result][: total - written]
        count = int(results.shape[0])
        flat[written : written + count] = _cast(results + _signed(low), flat.dtype)
        written += count
        used = words.shape[0]
        if written == total:
            used = int(library.where(is_result)[0][count - 1]) + 1
        stream.position = (start + -(-used * (bits // 8) // 16)) % (1 << 128)
