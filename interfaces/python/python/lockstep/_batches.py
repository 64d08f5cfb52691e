"""Batches of messages. This module converts the arguments of the caller to those of the native functions."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from . import _arrays
from ._native import AEADS, AESCCM, many_in_buffer, many_in_list
from ._shown import shown
from ._types import Buffer

if TYPE_CHECKING:
    import numpy
    from numpy.typing import NDArray

    Bytes = NDArray[numpy.uint8]
else:
    # numpy is imported only by programs that use it.
    Bytes = Any

Strings = Buffer | Sequence[Buffer]

_TAG = 16


def _numpy() -> Any:
    """The module numpy, if the program has imported it. Otherwise, no argument can be an array of numpy."""
    return sys.modules.get("numpy")


def _is_array(value: object) -> bool:
    numpy = _numpy()
    return numpy is not None and isinstance(value, numpy.ndarray)


def _strings(value: Any, what: str, may_be_shared: bool) -> Any:
    """Converts an argument for the native functions: to None, a buffer for all messages, a pair of a buffer and the width of its rows, or a
    list."""
    if value is None or isinstance(value, list):
        return value
    if isinstance(value, tuple):
        return list(value)
    view = memoryview(value)
    shape = view.shape or ()
    if len(shape) == 2:
        return value, shape[1] * view.itemsize
    if may_be_shared and len(shape) == 1:
        return value
    raise TypeError(f"{what} must be a list with one for each message, or an array with one row for each message")


def _run(
    encrypts: bool, mode: type, keys: Any, nonces: Any, data: Any, associated_data: Any, offsets: Any, tag_length: int
) -> tuple[Any, Any, Any]:
    """Returns the outputs, their offsets (None for lists and rows) and the statuses. They are tensors of PyTorch if the data are a tensor
    of PyTorch."""
    on_host, as_library = _arrays.on_host, _arrays.as_library
    head, aad = (encrypts, mode, on_host(keys), on_host(nonces)), on_host(associated_data)
    outputs, ends, statuses = _run_on_buffers(*head, on_host(data), aad, offsets, tag_length)
    return as_library(outputs, data), as_library(ends, data), as_library(statuses, data)


def _run_on_buffers(
    encrypts: bool, mode: type, keys: Any, nonces: Any, data: Any, associated_data: Any, offsets: Any, tag_length: int
) -> tuple[Any, Any, Any]:
    if mode not in AEADS:
        raise TypeError("mode must be a class of lockstep.aead, such as AESGCM")
    if tag_length not in (range(4, 17, 2) if mode is AESCCM else (_TAG,)):
        raise ValueError(f"{mode.__name__} has no tags of {shown(tag_length)} bytes")
    head = (mode.__name__, encrypts, tag_length)
    keys = _strings(keys, "keys", True)
    nonces = _strings(nonces, "nonces", False)
    aad = _strings(associated_data, "associated_data", True)
    if isinstance(data, (list, tuple)):
        if offsets is not None:
            raise TypeError("offsets are for messages in one buffer, not for a list")
        outputs = many_in_list(*head, keys, nonces, data if isinstance(data, list) else list(data), aad)
        return outputs, None, None if encrypts else [output is not None for output in outputs]
    view = memoryview(data)
    shape = view.shape or ()
    step = tag_length if encrypts else -tag_length
    places: Any
    ends: Any = None
    width = 0
    if offsets is not None:
        places, ends = _offsets(offsets, view.nbytes, step)
        count, size = len(places) - 1, ends[-1]
    elif len(shape) == 2:
        count, width = shape[0], shape[1] * view.itemsize
        places = (count, width)
        size = count * max(0, width + step)
    else:
        raise TypeError("data must be a list, an array with one row for each message, or a buffer with offsets")
    output: Any
    if _is_array(data):
        numpy = _numpy()
        output, statuses = numpy.empty(size, numpy.uint8), numpy.zeros(count, numpy.bool_)
        ends = None if ends is None else numpy.array(ends, numpy.int64)
    else:
        output, statuses = bytearray(size), bytearray(count)
    many_in_buffer(*head, keys, nonces, data, places, aad, output, statuses)
    if not _is_array(data):
        statuses = [status == 1 for status in statuses]
    if ends is not None:
        return output, ends, statuses
    if _is_array(data):
        return output.reshape(count, max(0, width + step)), None, statuses
    # The output has no second dimension if the size is 0, because a memoryview cannot have a dimension of length 0.
    return memoryview(output).cast("B", (count, size // count)) if size else output, None, statuses


def _offsets(given: Any, most: int, step: int) -> tuple[list[int], list[int]]:
    """The offsets of the messages and of the outputs. An output is `step` bytes longer than its message."""
    offsets = given.tolist() if _is_array(given) else [int(offset) for offset in given]
    if not offsets or offsets[0] < 0 or offsets[-1] > most or any(a > b for a, b in zip(offsets, offsets[1:])):
        raise ValueError("offsets must have one number more than there are messages, and ascend to at most len(data)")
    ends = [0]
    for a, b in zip(offsets, offsets[1:]):
        ends.append(ends[-1] + max(0, b - a + step))
    return offsets, ends


def encrypt_many(
    mode: type,
    keys: Strings,
    nonces: Strings | None,
    data: Any,
    associated_data: Strings | None = None,
    *,
    offsets: Any = None,
    tag_length: int = _TAG,
) -> Any:
    """Encrypts many messages in one call, on all cores.

    mode: a class of this module. keys: one key for all messages, a list, or an array of bytes with one row for each message.
    nonces: a list or an array with rows; for AESSIV also None. associated_data: None, one buffer for all messages, a list, or
    an array with rows. tag_length: for AESCCM.

    data, and the result for each form of data:

    - a list of n buffers: a list of n bytes objects, each with a ciphertext and its tag;
    - an array of n rows of m bytes: an array of n rows of m + 16 bytes (of the same library for numpy and PyTorch, otherwise a memoryview);
    - a buffer with `offsets`, n + 1 ascending numbers; message i is data[offsets[i]:offsets[i + 1]]. The
      result is a pair: the concatenated outputs and their n + 1 offsets (arrays of the same library for numpy and PyTorch, otherwise
      a bytearray and a list).

    Arrays must be on the host; for arrays on a GPU, use `lockstep.tensor.seal`.

    Raises TypeError and ValueError as the class does, and also if the numbers of keys, nonces and messages differ. Ctrl-C
    stops the call between pieces of 32 MiB.
    """
    outputs, ends, _ = _run(True, mode, keys, nonces, data, associated_data, offsets, tag_length)
    return outputs if ends is None else (outputs, ends)


def decrypt_many(
    mode: type,
    keys: Strings,
    nonces: Strings | None,
    data: Any,
    associated_data: Strings | None = None,
    *,
    offsets: Any = None,
    tag_length: int = _TAG,
) -> Any:
    """Checks and decrypts many messages in one call, on all cores.

    The arguments are those of encrypt_many. Returns what encrypt_many returns, and in addition the statuses, True for each
    message that is authentic: (outputs, statuses), or (outputs, offsets, statuses). The output of a message that is not authentic
    is None in a list, and zeros in an array. Statuses are a list, or an array of bool for an array of numpy or PyTorch.

    A message that is not authentic raises no exception: check the statuses.
    """
    outputs, ends, statuses = _run(False, mode, keys, nonces, data, associated_data, offsets, tag_length)
    return (outputs, statuses) if ends is None else (outputs, ends, statuses)
