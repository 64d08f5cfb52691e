"""Reads, checks and writes the header of safetensors files (https://huggingface.co/docs/safetensors, "Format").

A file consists of the length of the header (8 bytes, little endian), the header (JSON), and the bytes of the tensors without gaps.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any, NamedTuple

from .._shown import shown

# The maximum length of a header in bytes. The package safetensors has the same limit.
MAX_HEADER = 100_000_000
PREFIX = 8

# The number of bits of an element of each type. The types have the order of the package safetensors, which writes tensors of later
# types first.
BITS = {
    "BOOL": 8,
    "F4": 4,
    "F6_E2M3": 6,
    "F6_E3M2": 6,
    "U8": 8,
    "I8": 8,
    "F8_E5M2": 8,
    "F8_E4M3": 8,
    "F8_E8M0": 8,
    "F8_E4M3FNUZ": 8,
    "F8_E5M2FNUZ": 8,
    "I16": 16,
    "U16": 16,
    "F16": 16,
    "BF16": 16,
    "I32": 32,
    "U32": 32,
    "F32": 32,
    "C64": 64,
    "F64": 64,
    "I64": 64,
    "U64": 64,
}
_ORDER = {name: place for place, name in enumerate(BITS)}


class Entry(NamedTuple):
    """A tensor in a file."""

    dtype: str
    shape: tuple[int, ...]
    # Offsets in the file, in bytes.
    start: int
    end: int


class Header(NamedTuple):
    # The tensors are in the order of their data in the file.
    tensors: dict[str, Entry]
    metadata: dict[str, str] | None


def size(dtype: str, shape: tuple[int, ...]) -> int:
    """The number of bytes of a tensor. Raises ValueError for an unknown type, and for a tensor that ends within a byte."""
    if dtype not in BITS:
        raise ValueError(f"the type {shown(dtype)} is unknown")
    bits = math.prod(shape) * BITS[dtype]
    if bits % 8:
        raise ValueError(f"a tensor of the type {dtype} and the shape {list(shape)} ends within a byte")
    return bits // 8


def header_len(prefix: bytes, file_len: int) -> int:
    """The length of the header from the first 8 bytes of a file."""
    if len(prefix) < PREFIX:
        raise _malformed(f"it has {len(prefix)} bytes")
    length = int.from_bytes(prefix, "little")
    if length > MAX_HEADER:
        raise _malformed(f"its header has {length} bytes, and at most {MAX_HEADER} are allowed")
    if length > file_len - PREFIX:
        raise _malformed("it ends within its header")
    return length


def parse(text: bytes, file_len: int) -> Header:
    """Checks a header completely. Raises ValueError unless the tensors fill the rest of the file without gaps and overlaps."""
    if not text.startswith(b"{"):
        raise _malformed("its header does not start with {")
    try:
        content = json.loads(text.decode("utf-8"), object_pairs_hook=_object, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise _malformed(f"its header is not valid JSON: {error}") from None
    metadata = content.pop("__metadata__", None)
    if metadata is not None and not (
        isinstance(metadata, dict) and all(isinstance(value, str) for value in metadata.values())
    ):
        raise _malformed("its metadata are not texts by names")
    base = PREFIX + len(text)
    tensors = sorted(((name, _entry(name, given, base)) for name, given in content.items()), key=_place)
    end = base
    for name, entry in tensors:
        if entry.start != end:
            raise _malformed(f"the tensor {name!r} starts at byte {entry.start}, and the one before it ends at byte {end}")
        end = entry.end
    if end != file_len:
        raise _malformed(f"its tensors end at byte {end} of {file_len}")
    return Header(dict(tensors), metadata)


def build(tensors: Mapping[str, tuple[str, tuple[int, ...]]], metadata: Mapping[str, str] | None) -> tuple[bytes, list[str]]:
    """Returns the start of a file for tensors, whose types and shapes are given by name. Also returns the names in the order in which the
    bytes of the tensors follow.

    The result is the same as that of the package safetensors: tensors of larger types come first, and the length of the header is a
    multiple of 8 bytes.
    """
    content: dict[str, Any] = {}
    if metadata is not None:
        for pair in metadata.items():
            if not all(isinstance(text, str) for text in pair):
                raise TypeError(f"names and values of metadata must be texts, not {type(pair[0]).__name__} and {type(pair[1]).__name__}")
        content["__metadata__"] = dict(metadata)
    names = sorted(tensors, key=lambda name: (-_ORDER[tensors[name][0]], name.encode("utf-8")))
    at = 0
    for name in names:
        if name == "__metadata__":
            raise ValueError("no tensor can have the name __metadata__")
        dtype, shape = tensors[name]
        start, at = at, at + size(dtype, shape)
        content[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": [start, at]}
    text = json.dumps(content, ensure_ascii=False, separators=(",", ":")).encode("utf-8")
    text += b" " * (-len(text) % 8)
    if len(text) > MAX_HEADER:
        raise ValueError(f"the header has {len(text)} bytes, and at most {MAX_HEADER} are allowed")
    return len(text).to_bytes(PREFIX, "little") + text, names


def _malformed(problem: str) -> ValueError:
    return ValueError(f"the file is authentic, but not a safetensors file: {problem}")


def _place(tensor: tuple[str, Entry]) -> tuple[int, int]:
    return tensor[1].start, tensor[1].end


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    content = dict(pairs)
    if len(content) != len(pairs):
        raise ValueError("a name occurs twice")
    for name in content:
        # A name with only one half of a surrogate pair raises a ValueError.
        name.encode("utf-8")
    return content


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not a number")


def _entry(name: str, given: Any, base: int) -> Entry:
    def numbers(value: Any) -> bool:
        return isinstance(value, list) and all(type(number) is int and 0 <= number < 1 << 64 for number in value)

    if not isinstance(given, dict) or not {"dtype", "shape", "data_offsets"} <= given.keys():
        raise _malformed(f"the tensor {name!r} has no type, shape or offsets")
    dtype, shape, offsets = given["dtype"], given["shape"], given["data_offsets"]
    if not (isinstance(dtype, str) and numbers(shape) and numbers(offsets) and len(offsets) == 2):
        raise _malformed(f"the tensor {name!r} has a type, a shape or offsets of a wrong kind")
    try:
        expected = size(dtype, tuple(shape))
    except ValueError as error:
        raise _malformed(f"the tensor {name!r}: {error}") from None
    if offsets[1] - offsets[0] != expected:
        raise _malformed(f"the tensor {name!r} has {offsets[1] - offsets[0]} bytes, and its type and shape need {expected}")
    return Entry(dtype, tuple(shape), base + offsets[0], base + offsets[1])
