"""Encrypted safetensors files with arrays of numpy: the functions of safetensors.numpy, with the additional argument key.

The types bfloat16 and float8 need the package ml_dtypes; without it, a file with such tensors raises ValueError.
"""

from __future__ import annotations

import importlib
import io
from collections.abc import Mapping
from typing import Any, BinaryIO

import numpy as np

from .._shown import shown
from .._types import Buffer, Path
from . import _file

__all__ = ["load", "load_file", "save", "save_file"]

_NUMPY = {
    "BOOL": "bool",
    "U8": "uint8",
    "I8": "int8",
    "U16": "uint16",
    "I16": "int16",
    "F16": "float16",
    "U32": "uint32",
    "I32": "int32",
    "F32": "float32",
    "U64": "uint64",
    "I64": "int64",
    "F64": "float64",
    "C64": "complex64",
}
_ML_DTYPES = {
    "BF16": "bfloat16",
    "F8_E4M3": "float8_e4m3fn",
    "F8_E5M2": "float8_e5m2",
    "F8_E8M0": "float8_e8m0fnu",
    "F8_E4M3FNUZ": "float8_e4m3fnuz",
    "F8_E5M2FNUZ": "float8_e5m2fnuz",
}
_NAMES = {there: here for here, there in (_NUMPY | _ML_DTYPES).items()}


def _dtype(name: str) -> np.dtype[Any]:
    if name in _NUMPY:
        return np.dtype(_NUMPY[name])
    if name not in _ML_DTYPES:
        raise ValueError(f"numpy has no type for {name}: use the framework 'pt'")
    try:
        dtype: np.dtype[Any] = np.dtype(getattr(importlib.import_module("ml_dtypes"), _ML_DTYPES[name]))
        return dtype
    except (ImportError, AttributeError):
        raise ValueError(f"numpy has no type for {name}: install ml_dtypes, or use the framework 'pt'") from None


class _Numpy:
    def empty(self, dtype: str, shape: tuple[int, ...]) -> tuple[Any, Buffer]:
        array = np.empty(shape, _dtype(dtype))
        return array, array.reshape(-1).view(np.uint8)

    def place(self, array: Any, device: Any) -> Any:
        if device not in ("cpu", None):
            raise ValueError(f"the device is {shown(device)}: numpy has 'cpu' only")
        return array

    def compact(self, array: Any) -> Any:
        return np.ascontiguousarray(array) if isinstance(array, np.ndarray) and array.ndim else array

    def check(self, tensors: Mapping[str, Any]) -> None:
        for name, array in tensors.items():
            if not isinstance(array, np.ndarray):
                raise TypeError(f"{shown(name)} is no array of numpy: {type(array)}")
            if not array.flags.c_contiguous:
                raise ValueError(f"{shown(name)} is not contiguous: use numpy.ascontiguousarray")
            if array.dtype.name not in _NAMES:
                raise ValueError(f"{shown(name)} has the type {array.dtype}, which safetensors files do not have")

    def tensor(self, array: Any) -> tuple[str, tuple[int, ...], Buffer, Any]:
        little = array.astype(array.dtype.newbyteorder("<")) if array.dtype.byteorder == ">" else array
        return _NAMES[array.dtype.name], array.shape, little.reshape(-1).view(np.uint8), little


FRAMEWORK: _file.Framework = _Numpy()


def save_file(
    tensor_dict: Mapping[str, np.ndarray[Any, Any]],
    filename: Path | BinaryIO,
    metadata: Mapping[str, str] | None = None,
    *,
    key: Buffer | Path,
    context: Buffer = b"",
) -> None:
    """Encrypts contiguous arrays to a file, on all cores. The file appears complete or not at all, and replaces an existing one.

    key and context are those of lockstep.open. Raises ValueError for arrays that are not contiguous or have other types, OSError.
    """
    _file.save(tensor_dict, filename, metadata, FRAMEWORK, key, context)


def save(
    tensor_dict: Mapping[str, np.ndarray[Any, Any]],
    metadata: Mapping[str, str] | None = None,
    *,
    key: Buffer | Path,
    context: Buffer = b"",
) -> bytes:
    """Returns the bytes of the file that `save_file` would write."""
    output = io.BytesIO()
    _file.save(tensor_dict, output, metadata, FRAMEWORK, key, context)
    return output.getvalue()


def load_file(
    filename: Path | BinaryIO, *, key: Buffer | Path, context: Buffer = b""
) -> dict[str, np.ndarray[Any, Any]]:
    """Reads all arrays of an encrypted file, by name, in one pass on all cores, directly into the memory of the arrays.

    Raises the same exceptions as `lockstep.safetensors.safe_open`: InvalidTag, ValueError and OSError. In this case no array is returned.
    """
    return _file.TensorFile(filename, FRAMEWORK, "cpu", key, context).read_all()


def load(data: bytes, *, key: Buffer | Path, context: Buffer = b"") -> dict[str, np.ndarray[Any, Any]]:
    """Returns all arrays from the bytes of an encrypted file, by name."""
    return load_file(io.BytesIO(data), key=key, context=context)
