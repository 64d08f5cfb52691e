"""Functions that read and write binary file objects of the program. The extension calls them on the thread of the caller. They check the
results of the objects' methods in the same way as `io.BufferedReader` and `io.BufferedWriter`."""

import errno
import operator
from typing import Any

# The greatest position in a file.
_LAST = (1 << 63) - 1


def read_at(file: Any, offset: int, count: int) -> bytes:
    """Reads `count` bytes from an offset, or fewer if the file ends."""
    position = file.seek(offset)
    # The returned position is not compared with the requested one: paramiko's file objects return None, and those of PyTorch's
    # readers of checkpoints return the position in the file that contains theirs. As in `io.BufferedReader`, only a position
    # that no file can have is refused.
    if position is not None:
        _number(position, "seek", _LAST)
    pieces = []
    while count:
        piece = file.read(count)
        if piece is None:
            raise _would_block("read", "it has no data yet")
        if not isinstance(piece, bytes):
            raise TypeError(f"read() of the file object must return bytes, not {type(piece).__name__}")
        if len(piece) > count:
            raise _invalid("read", "length", len(piece), count)
        if not piece:
            break
        pieces.append(piece)
        count -= len(piece)
    return b"".join(pieces)


def size(file: Any) -> int:
    """The number of bytes in a file."""
    file.seek(0, 2)
    return _number(file.tell(), "tell", _LAST)


def write(file: Any, data: bytes) -> int:
    """Writes bytes, perhaps not all; returns the number of written bytes."""
    written = file.write(data)
    if written is None:
        raise _would_block("write", "it could not take the data without blocking")
    return _number(written, "write", len(data))


def _number(result: Any, method: str, most: int) -> int:
    """The number that a method of a file object has returned."""
    try:
        number = operator.index(result)
    except Exception as error:
        raise TypeError(f"{method}() of the file object must return an integer: {error}") from None
    if not 0 <= number <= most:
        raise _invalid(method, "length or position", number, most)
    return number


def _invalid(method: str, what: str, number: int, most: int) -> OSError:
    return OSError(f"{method}() of the file object returned invalid {what} {number} (should have been between 0 and {most})")


def _would_block(method: str, problem: str) -> BlockingIOError:
    # The third argument is `characters_written`. It is 0, because the caller cannot rely on any data of the call.
    text = f"{method}() of the file object returned None: {problem}; give an object that waits"
    return BlockingIOError(errno.EAGAIN, text, 0)
