"""Model weights: encrypted safetensors files, with the functions of the package safetensors.

| this package | the package safetensors |
|---|---|
| `safe_open(filename, framework, device="cpu", *, key, context=b"")` | `safetensors.safe_open` |
| `lockstep.safetensors.numpy`, `lockstep.safetensors.torch`: `save_file`, `load_file`, `save`, `load` | `safetensors.numpy`, `safetensors.torch` |
| `save_file`, `load_file` of this module | the same functions; the tensors or an argument determine the framework |

An encrypted file has the format of a .safetensors file that `lockstep encrypt -k` has encrypted (C2SP chunked encryption).
`lockstep decrypt` decrypts it to a .safetensors file. Names, shapes and metadata of the tensors are encrypted and authenticated like
their values. The package safetensors is not needed.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any, BinaryIO

from .._types import Buffer, Path
from ._file import TensorFile, TensorSlice, by_name, safe_open, save as _save

__all__ = ["TensorSlice", "load_file", "safe_open", "save_file"]

if sys.byteorder != "little":
    raise ImportError("lockstep.safetensors needs a processor of little-endian byte order")


def save_file(
    tensors: Mapping[str, Any],
    filename: Path | BinaryIO,
    metadata: Mapping[str, str] | None = None,
    *,
    key: Buffer | Path,
    context: Buffer = b"",
) -> None:
    """Encrypts tensors of numpy or PyTorch to a file: see `lockstep.safetensors.numpy` and `lockstep.safetensors.torch`."""
    torch = sys.modules.get("torch")
    has_torch = torch is not None and any(isinstance(tensor, torch.Tensor) for tensor in tensors.values())
    _save(tensors, filename, metadata, by_name("pt" if has_torch else "np"), key, context)


def load_file(
    filename: Path | BinaryIO, framework: str, device: Any = "cpu", *, key: Buffer | Path, context: Buffer = b""
) -> dict[str, Any]:
    """Returns all tensors of an encrypted file, by name. The arguments and exceptions are those of `safe_open`."""
    return TensorFile(filename, by_name(framework), device, key, context).read_all()
