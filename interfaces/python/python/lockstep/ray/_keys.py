"""Functions that return keys. The workers call them, and the driver checks that such a function contains no key."""

from __future__ import annotations

import io
import os
import pickle
import re
import types
from collections.abc import Callable
from typing import Any

from ray import cloudpickle

KeySource = Callable[[], Any]

_LENGTHS = (16, 32)
_HEX = re.compile(r"(?:[0-9a-fA-F]{32}|[0-9a-fA-F]{64})\s*")
_WHY = (
    "it would be in the arguments of every task, which Ray stores, copies to other nodes and may write to disk. "
    "Give a function without arguments that fetches the key on the worker, such as from a file or a key service"
)


class KeyUnavailable(RuntimeError):
    """The function for the key has failed on a worker. The message does not contain the result of the function or the message of
    its exception."""


class _Guard(cloudpickle.CloudPickler):  # type: ignore[misc]
    """Pickles a function, and refuses parts that look like a key: 16 or 32 bytes, or the hexadecimal digits of 16 or 32 bytes."""

    def __init__(self, file: io.BytesIO) -> None:
        super().__init__(file)
        # The byte strings in the code of functions. They are accepted even if they have the length of a key.
        self._code: set[bytes] = set()

    def persistent_id(self, part: Any) -> None:
        if isinstance(part, types.CodeType):
            self._code |= {part.co_code, part.co_linetable, part.co_exceptiontable}
        elif isinstance(part, (bytes, bytearray, memoryview, pickle.PickleBuffer)):
            view = memoryview(part)
            if view.nbytes in _LENGTHS and not (isinstance(part, bytes) and part in self._code):
                raise TypeError(f"the function key refers to {view.nbytes} bytes, as a key has: {_WHY}")
        elif isinstance(part, str) and _HEX.fullmatch(part):
            raise TypeError(f"the function key refers to a string of hexadecimal digits, as a key has: {_WHY}")


def pickled(key: KeySource) -> bytes:
    """Returns the pickled function, for the arguments of tasks.

    Raises TypeError for a key instead of a function, and for a function that contains a key.
    """
    if not callable(key):
        what = type(key).__name__
        raise TypeError(f"key is a {what}, not a function: {_WHY}")
    file = io.BytesIO()
    _Guard(file).dump(key)
    return file.getvalue()


def fetch(function: bytes) -> bytes | os.PathLike[str]:
    """Calls a pickled function, and returns the key or the path of a key file.

    Raises KeyUnavailable. An exception of the function may contain the key, so its message is not passed on.
    """
    problem = None
    try:
        call = pickle.loads(function)
    except Exception as error:
        # The exception may contain the original message, because `pickled` has checked that the pickled function contains no key.
        raise KeyUnavailable(f"the function key cannot be loaded on the worker: {type(error).__name__}: {error}") from None
    try:
        key = call()
    except Exception as error:
        problem = f"has raised {type(error).__name__}{_place(error)}; its message is not shown, because it may contain the key"
    else:
        if isinstance(key, os.PathLike):
            return key
        if isinstance(key, (bytes, bytearray, memoryview)):
            size = memoryview(key).nbytes
            if size in _LENGTHS:
                return bytes(key)
            problem = f"has returned {size} bytes: a key has 16 or 32"
        else:
            problem = f"has returned a {type(key).__name__}: it must return bytes, or the path of a key file as pathlib.Path"
    # The exception is raised outside of the handler, so that it does not refer to the exception of the function, which can contain the key.
    raise KeyUnavailable(f"the function key {problem}")


def _place(error: BaseException) -> str:
    """The place where an exception was raised, without the source text of the line."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if trace is None:
        return ""
    code = trace.tb_frame.f_code
    return f" in {code.co_name} ({code.co_filename}, line {trace.tb_lineno})"
