"""AES on parallel hardware.

| name | content |
|---|---|
| `lockstep.aead` | authenticated encryption of messages, with the interface of pyca cryptography, and batches |
| `open`, `encrypt_file`, `decrypt_file` | encrypted files (C2SP chunked encryption, "Cobblestone") with random access |
| `lockstep.fsspec` | encrypted files in libraries that open files through fsspec |
| `lockstep.tensor`, `lockstep.torch` | authenticated encryption of arrays on the host and on GPUs; operators for PyTorch |
| `lockstep.random` | random numbers from AES-256-CTR |
| `lockstep.parquet` | encrypted Parquet files, which every reader of Parquet can read through this module |
| `lockstep.safetensors`, `lockstep.torch` | encrypted model weights, checkpoints of PyTorch |
| `lockstep.ray` | encryption of files and columns on a cluster of Ray |
| `lockstep.hazmat` | raw modes |
| `use`, `devices`, `missing_devices`, `selftest` | the devices that do the work |
| `InvalidTag` | the exception for data that are not authentic |

Each module is imported when it is used for the first time. The import opens no driver and starts no thread. Messages go to the logger
`lockstep` of `logging`.
"""

import importlib as _importlib
import os as _os
from typing import TYPE_CHECKING as _TYPE_CHECKING

from . import aead, hazmat
from ._devices import Device, Selection, SelfTest, devices, selftest, use
from ._files import Writer, decrypt_file, encrypt_file, open
from ._native import InvalidTag, __version__, after_fork_in_child as _after_fork_in_child, generate_key, missing_devices

_os.register_at_fork(after_in_child=_after_fork_in_child)

_MODULES = ("fsspec", "parquet", "random", "ray", "safetensors", "tensor", "torch")

if _TYPE_CHECKING:
    from . import fsspec, parquet, random, ray, safetensors, tensor, torch
else:

    def __getattr__(name: str) -> object:
        if name not in _MODULES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        try:
            return _importlib.import_module(f"{__name__}.{name}")
        except ImportError as error:
            # Programs that read all attributes, such as `inspect.getmembers`, handle only an AttributeError.
            raise AttributeError(f"{__name__}.{name} cannot be imported: {error}") from error


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULES})


__all__ = [
    "Device",
    "InvalidTag",
    "Selection",
    "SelfTest",
    "Writer",
    "__version__",
    "aead",
    "decrypt_file",
    "devices",
    "encrypt_file",
    "generate_key",
    "hazmat",
    "missing_devices",
    "open",
    "selftest",
    "use",
]
