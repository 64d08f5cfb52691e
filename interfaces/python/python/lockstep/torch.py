"""Lockstep for PyTorch: operators that `torch.compile` accepts, and random numbers with the names of PyTorch.

| name | content |
|---|---|
| `gcm_seal(key, nonces, data)` | `lockstep.tensor.seal`: returns ciphertext, tags and statuses |
| `gcm_open(key, nonces, data, tags)` | `lockstep.tensor.open`: returns plaintext and statuses |
| `random_bytes(key, position, out)` | fills `out` with `lockstep.random.Generator(key, position).fill` |
| `EncryptedStream` | encrypts distributed checkpoints (`torch.distributed.checkpoint`) |
| `Generator` | `rand`, `randn`, `randint` and states of a `lockstep.random.Generator` |

The functions check the types of their arguments and call the operators `torch.ops.lockstep.gcm_seal` and so on. Do not call the operators
directly: if an argument has a wrong type, the exception of PyTorch contains the argument, which can be a key. The operators have no
derivatives. Keys are tensors of bytes with 16, 24 or 32 elements, or with such a row for each message. The results of gcm_seal and
gcm_open have the type and the shape of the data; their bytes are the ciphertext or the plaintext.
"""

import contextlib
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, library

from . import random, tensor
from ._checkpoint import EncryptedStream
from ._shown import shown

__all__ = ["EncryptedStream", "Generator", "gcm_open", "gcm_seal", "random_bytes"]


def gcm_seal(key: Tensor, nonces: Tensor, data: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The ciphertext as a tensor like data, tags of the shape (n, 16), and n statuses."""
    _check_tensors(key=key, nonces=nonces, data=data)
    sealed: tuple[Tensor, Tensor, Tensor] = _gcm_seal(key, nonces, data)
    return sealed


@library.custom_op("lockstep::gcm_seal", mutates_args=())
def _gcm_seal(key: Tensor, nonces: Tensor, data: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    out, count = torch.empty_like(data), _count(nonces)
    tags = torch.empty((count, 16), dtype=torch.uint8, device=data.device)
    _, _, status = tensor.seal(key, nonces, data, out=out, tags=tags)
    return out, tags, status


@_gcm_seal.register_fake
def _(key: Tensor, nonces: Tensor, data: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    count = _count(nonces)
    tags = torch.empty((count, 16), dtype=torch.uint8, device=data.device)
    return torch.empty_like(data), tags, torch.empty(count, dtype=torch.uint8, device=data.device)


def gcm_open(key: Tensor, nonces: Tensor, data: Tensor, tags: Tensor) -> tuple[Tensor, Tensor]:
    """The plaintext as a tensor like data, and n statuses. See `lockstep.tensor.open` for messages that are not authentic."""
    _check_tensors(key=key, nonces=nonces, data=data, tags=tags)
    opened: tuple[Tensor, Tensor] = _gcm_open(key, nonces, data, tags)
    return opened


@library.custom_op("lockstep::gcm_open", mutates_args=())
def _gcm_open(key: Tensor, nonces: Tensor, data: Tensor, tags: Tensor) -> tuple[Tensor, Tensor]:
    out = torch.empty_like(data)
    _, status = tensor.open(key, nonces, data, tags, out=out)
    return out, status


@_gcm_open.register_fake
def _(key: Tensor, nonces: Tensor, data: Tensor, tags: Tensor) -> tuple[Tensor, Tensor]:
    return torch.empty_like(data), torch.empty(_count(nonces), dtype=torch.uint8, device=data.device)


def random_bytes(key: Tensor, position: int, out: Tensor) -> None:
    """Fills a tensor of any type with random bytes from a position on, in blocks. The key, 32 bytes, is on the CPU."""
    _check_tensors(key=key, out=out)
    if not isinstance(position, (int, torch.SymInt)):
        raise TypeError(f"position is of the type {type(position).__name__}: give an integer")
    _random_bytes(key, position, out)


@library.custom_op("lockstep::random_bytes", mutates_args=("out",))
def _random_bytes(key: Tensor, position: int, out: Tensor) -> None:
    random.Generator(key.numpy(), position).fill(out)


@_random_bytes.register_fake
def _(key: Tensor, position: int, out: Tensor) -> None:
    return None


def _check_tensors(**arguments: Any) -> None:
    for name, argument in arguments.items():
        if not isinstance(argument, Tensor):
            raise TypeError(f"{name} is of the type {type(argument).__name__}: give a tensor")


def _device(given: Any) -> torch.device:
    with contextlib.suppress(RuntimeError, TypeError, ValueError):
        return torch.device(given)
    # The exception is raised outside of the handler, so that it does not refer to PyTorch's exception, which contains the argument.
    raise ValueError(f"there is no device {shown(given)}: give a device of PyTorch, such as 'cpu'")


def _count(nonces: Tensor) -> int:
    return nonces.shape[0] if nonces.dim() == 2 else 1


class Generator:
    """Random tensors from AES-256-CTR, with the names of PyTorch's functions. PyTorch's own functions do not accept this
    generator.

    key: 32 bytes. device: the device of new tensors.
    """

    def __init__(self, key: Any, position: int = 0, device: Any = "cpu") -> None:
        self._generator = random.Generator(key, position)
        self.device = _device(device)

    def _like(self) -> Tensor:
        return torch.empty(0, device=self.device)

    def rand(self, *size: int, dtype: torch.dtype = torch.float32) -> Tensor:
        """Uniform numbers in [0, 1), of float32 or float64."""
        return self._generator.uniform(size, dtype, like=self._like())  # type: ignore[no-any-return]

    def randn(self, *size: int, dtype: torch.dtype = torch.float32) -> Tensor:
        """Normal numbers, of float32 or float64."""
        return self._generator.normal(size, dtype, like=self._like())  # type: ignore[no-any-return]

    def randint(self, low: int, high: int, size: Sequence[int], dtype: torch.dtype = torch.int64) -> Tensor:
        """Integers from low to high - 1."""
        return self._generator.integers(low, high, size, dtype, like=self._like())  # type: ignore[no-any-return]

    def get_state(self) -> Tensor:
        """The position, without the key, as 16 bytes on the CPU."""
        return torch.tensor(list(self._generator.position.to_bytes(16, "big")), dtype=torch.uint8)

    def set_state(self, state: Tensor) -> "Generator":
        """Sets the position to that of a state. Returns this generator."""
        values = state.tolist()
        if state.dtype != torch.uint8 or len(values) != 16:
            raise ValueError("a state has 16 bytes")
        self._generator.position = int.from_bytes(bytes(values), "big")
        return self
