"""Authenticated encryption of arrays. Arrays on the host are processed on the host, and arrays on a GPU are processed on the GPU, on the
caller's stream.

| name | content |
|---|---|
| `seal`, `open` | one message or many in one array, by AES-GCM or another mode; on a GPU, AES-GCM returns before the work is done |
| `check` | raises `lockstep.InvalidTag` if a message of `open` was not authentic |
| `synchronize` | waits for all work, and raises the failures of devices |
| `DeviceArray` | memory of a device that is wiped when it is freed |

An array is any object with a contiguous buffer, with `__dlpack__` (PyTorch, CuPy, JAX, numpy) or with `__cuda_array_interface__`
(Numba). Its elements may have any type whose size is a whole number of bytes; the bytes are processed. The data of a GPU are not
copied to the host.

The stream of a call is the argument `stream` (a number, or a stream of PyTorch, CuPy or Numba). Without this argument, it is the stream of
the data: the current stream of PyTorch or CuPy, the stream of `__cuda_array_interface__`, or the default stream. The library keeps the
arrays of a call until its work is done, so the program may drop them at any time. If a device fails after the return of a call, the next
call or `synchronize` raises the exception.
"""

import atexit
import contextlib
from collections.abc import Sequence
from typing import Any, NamedTuple

from . import _arrays
from ._native import AESGCM, DeviceArray, InvalidTag, array_size, synchronize, tensor_batch

__all__ = ["DeviceArray", "Opened", "Sealed", "check", "open", "seal", "synchronize"]

_DONE = 1


class Sealed(NamedTuple):
    """The result of `seal`: arrays on the device of the data."""

    data: Any
    """The ciphertext, with the shape and type of `out`, or as bytes."""
    tags: Any
    """16 bytes for each message, in one dimension unless `tags` was given."""
    status: Any
    """A byte for each message: 1 if it is encrypted."""


class Opened(NamedTuple):
    """The result of `open`: arrays on the device of the data."""

    data: Any
    """The plaintext; zeros for each message that was not authentic."""
    status: Any
    """A byte for each message: 1 if it was authentic, 2 if not, 0 if it was not processed."""


def seal(
    key: Any,
    nonces: Any,
    data: Any,
    *,
    out: Any = None,
    tags: Any = None,
    offsets: Sequence[int] | None = None,
    stream: Any = None,
    mode: type = AESGCM,
) -> Sealed:
    """Encrypts and authenticates messages with tags of 16 bytes, without associated data.

    key: the bytes of a key, or an array of bytes with n rows, a key for each message.
    nonces: 12 bytes for one message (XAES256GCM: 24); for n messages an array of bytes of the shape (n, 12), or (n, 16), where
    only the first 12 bytes of each row are used (XAES256GCM: (n, 24)). Nonces of AESGCM on a GPU have rows of 16 bytes. A nonce must
    never be used twice with one key.
    data: the messages in one array: n equal parts, or the parts between the n + 1 `offsets` in bytes.
    out: the array for the ciphertext, which may be `data`; None: a new array of bytes.
    tags: the array for the tags; None: a new one.

    mode: a class of `lockstep.aead` except AESSIV. On a GPU, AESGCM copies nothing to the host, and the call returns before the work is
    done. The other modes copy keys, nonces and tags, but not the data, and the call waits for the end.

    Key and nonces may be on the host or on the device of the data; offsets are on the host.

    Raises TypeError for objects that are no arrays, and for read-only `out` and `tags`; BufferError for arrays that are not
    contiguous; ValueError for wrong lengths and shapes, and for devices that are not supported.
    """
    count = _count(nonces, stream)
    to = _arrays.empty_like(data, array_size(data, stream)[0], stream=stream) if out is None else out
    tag = _arrays.empty_like(data, 16 * count, stream=stream) if tags is None else tags
    status = _arrays.empty_like(data, count, True, stream)
    tensor_batch(_name(mode), True, key, nonces, data, to, tag, status, _list(offsets), stream)
    return Sealed(*_results(data, (to, out), (tag, tags), (status, None)))


def open(
    key: Any,
    nonces: Any,
    data: Any,
    tags: Any,
    *,
    out: Any = None,
    offsets: Sequence[int] | None = None,
    stream: Any = None,
    mode: type = AESGCM,
) -> Opened:
    """Checks and decrypts messages of `seal`, with the same arguments. The plaintext of a message with a wrong tag is zeroed.

    A wrong tag raises no exception, since the result is not known when the call returns: use `check`, or compare `status` with 1 on the
    device, before the plaintext is used.
    """
    count = _count(nonces, stream)
    to = _arrays.empty_like(data, array_size(data, stream)[0], stream=stream) if out is None else out
    status = _arrays.empty_like(data, count, True, stream)
    tensor_batch(_name(mode), False, key, nonces, data, to, tags, status, _list(offsets), stream)
    return Opened(*_results(data, (to, out), (status, None)))


def check(status: Any) -> None:
    """Waits for the statuses of `seal` or `open`; raises InvalidTag, with the numbers of the messages, unless all are 1."""
    wrong = [index for index, value in enumerate(_host(status)) if value != _DONE]
    if wrong:
        shown = ", ".join(map(str, wrong[:10])) + (", ..." if len(wrong) > 10 else "")
        raise InvalidTag(f"not authentic: message {shown}")


def _results(data: Any, *arrays: tuple[Any, Any]) -> list[Any]:
    """The results of a call. `arrays` has each result together with the argument that the caller gave for it, or None. If the data are
    an array of JAX, new results are arrays of JAX too."""
    if not _arrays.is_jax(data):
        return [array for array, _ in arrays]
    # JAX uses streams of its own and does not wait for the work on this stream, so the work must be complete when this function returns.
    synchronize()
    return [_arrays.result_like(array, data) if given is None else given for array, given in arrays]


def _host(status: Any) -> bytes:
    if isinstance(status, DeviceArray):
        # The array does not show which stream writes it, so the function waits for all work.
        synchronize()
        return status.tobytes()
    if _arrays.is_jax(status):
        import numpy

        return numpy.asarray(status).tobytes()
    if hasattr(status, "cpu"):
        status = status.cpu()
    if hasattr(status, "numpy"):
        status = status.numpy()
    elif hasattr(status, "get"):
        status = status.get()
    return bytes(memoryview(status).cast("B"))


def _count(nonces: Any, stream: Any) -> int:
    _, shape = array_size(nonces, stream)
    return shape[0] if len(shape) == 2 else 1


def _name(mode: type) -> str:
    if not isinstance(mode, type):
        raise TypeError("mode must be a class of lockstep.aead, such as AESGCM")
    return mode.__name__


def _list(offsets: Sequence[int] | None) -> list[int] | None:
    return None if offsets is None else [int(offset) for offset in offsets]


@atexit.register
def _synchronize_at_exit() -> None:
    with contextlib.suppress(Exception):
        synchronize()
