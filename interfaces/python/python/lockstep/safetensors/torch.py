"""Encrypted safetensors files with tensors of PyTorch: the functions of safetensors.torch, with the additional argument key."""

from __future__ import annotations

import ctypes
import io
from collections.abc import Mapping
from typing import Any, BinaryIO

import torch

from .._shown import shown
from .._types import Buffer, Path
from . import _file

__all__ = ["load", "load_file", "save", "save_file"]

# Some types are missing in older versions of PyTorch.
_NAMES = {
    "BOOL": "bool",
    "F4": "float4_e2m1fn_x2",
    "U8": "uint8",
    "I8": "int8",
    "F8_E5M2": "float8_e5m2",
    "F8_E4M3": "float8_e4m3fn",
    "F8_E8M0": "float8_e8m0fnu",
    "F8_E4M3FNUZ": "float8_e4m3fnuz",
    "F8_E5M2FNUZ": "float8_e5m2fnuz",
    "I16": "int16",
    "U16": "uint16",
    "F16": "float16",
    "BF16": "bfloat16",
    "I32": "int32",
    "U32": "uint32",
    "F32": "float32",
    "C64": "complex64",
    "F64": "float64",
    "I64": "int64",
    "U64": "uint64",
}
_TYPES = {name: getattr(torch, there) for name, there in _NAMES.items() if hasattr(torch, there)}
_OF_TYPES = {dtype: name for name, dtype in _TYPES.items()}


def _bytes(tensor: torch.Tensor) -> Buffer:
    """The memory of a contiguous tensor on the host. It is valid as long as the tensor."""
    length = tensor.numel() * tensor.element_size()
    return (ctypes.c_ubyte * length).from_address(tensor.data_ptr()) if length else bytearray()


class _Torch:
    def empty(self, dtype: str, shape: tuple[int, ...]) -> tuple[Any, Buffer]:
        if dtype not in _TYPES:
            raise ValueError(f"PyTorch {torch.__version__} has no type for {dtype}")
        if dtype == "F4":
            # Each element of PyTorch's type contains two numbers of the type F4.
            if not shape or shape[-1] % 2:
                raise ValueError(f"PyTorch has no tensor of the type F4 with the shape {list(shape)}")
            shape = (*shape[:-1], shape[-1] // 2)
        tensor = torch.empty(shape, dtype=_TYPES[dtype])
        return tensor, _bytes(tensor)

    def place(self, array: Any, device: Any) -> Any:
        return array.to(device)

    def compact(self, array: Any) -> Any:
        return array if array.is_contiguous() and array.nbytes == array.untyped_storage().nbytes() else array.clone()

    def check(self, tensors: Mapping[str, Any]) -> None:
        for name, tensor in tensors.items():
            if not isinstance(tensor, torch.Tensor):
                raise ValueError(f"{shown(name)} is no tensor of PyTorch: {type(tensor)}")
            if tensor.layout != torch.strided:
                raise ValueError(f"{shown(name)} is a sparse tensor: use to_dense()")
            if tensor.is_meta:
                raise ValueError(f"{shown(name)} has no data: it is on the device meta")
            if not tensor.is_contiguous():
                raise ValueError(f"{shown(name)} is not contiguous: use contiguous()")
            if tensor.dtype not in _OF_TYPES:
                raise ValueError(f"{shown(name)} has the type {tensor.dtype}, which safetensors files do not have")
        self._check_apart(tensors)

    def _check_apart(self, tensors: Mapping[str, torch.Tensor]) -> None:
        places = [
            (str(tensor.device), tensor.data_ptr(), tensor.data_ptr() + tensor.nbytes, name)
            for name, tensor in tensors.items()
            if tensor.nbytes
        ]
        places.sort()
        for one, other in zip(places, places[1:], strict=False):
            if one[0] == other[0] and other[1] < one[2]:
                raise RuntimeError(f"{shown(one[3])} and {shown(other[3])} share memory: save one of them, or use clone()")

    def tensor(self, array: Any) -> tuple[str, tuple[int, ...], Buffer, Any]:
        name, shape = _OF_TYPES[array.dtype], tuple(array.shape)
        # PyTorch can store conjugation and negation as flags of a tensor. The bytes do not contain these flags, so both are applied here.
        host = array.detach().resolve_conj().resolve_neg().cpu()
        if name == "F4":
            shape = (*shape[:-1], shape[-1] * 2)
        return name, shape, _bytes(host), host


FRAMEWORK: _file.Framework = _Torch()


def save_file(
    tensors: Mapping[str, torch.Tensor],
    filename: Path | BinaryIO,
    metadata: Mapping[str, str] | None = None,
    *,
    key: Buffer | Path,
    context: Buffer = b"",
) -> None:
    """Encrypts contiguous, dense tensors to a file, on all cores. The file appears complete or not at all.

    An existing file is replaced. Tensors of devices are copied to the host first. key and context are those of lockstep.open. Raises
    ValueError for tensors that are not contiguous, sparse, or of other types; RuntimeError if two share memory; OSError.
    """
    _file.save(tensors, filename, metadata, FRAMEWORK, key, context)


def save(
    tensors: Mapping[str, torch.Tensor],
    metadata: Mapping[str, str] | None = None,
    *,
    key: Buffer | Path,
    context: Buffer = b"",
) -> bytes:
    """Returns the bytes of the file that `save_file` would write."""
    output = io.BytesIO()
    _file.save(tensors, output, metadata, FRAMEWORK, key, context)
    return output.getvalue()


def load_file(
    filename: Path | BinaryIO, device: Any = "cpu", *, key: Buffer | Path, context: Buffer = b""
) -> dict[str, torch.Tensor]:
    """Reads all tensors of an encrypted file, by name, in one pass on all cores, directly into the memory of the tensors.

    For devices other than the CPU, the tensors are decrypted in host memory and copied to the device. Raises the same exceptions as
    `lockstep.safetensors.safe_open`: InvalidTag, ValueError and OSError. In this case no tensor is returned.
    """
    return _file.TensorFile(filename, FRAMEWORK, device, key, context).read_all()


def load(data: bytes, *, key: Buffer | Path, context: Buffer = b"") -> dict[str, torch.Tensor]:
    """Returns all tensors from the bytes of an encrypted file, by name."""
    return load_file(io.BytesIO(data), key=key, context=context)
