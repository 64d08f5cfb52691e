"""Encrypted files as Python's file objects."""

from __future__ import annotations

import contextlib
import io
import os
from collections.abc import Callable, Sequence
from typing import Any, BinaryIO, Literal, cast, overload

# `_file_objects` is imported here because the extension calls it, even when the interpreter ends and imports fail.
from . import _file_objects, _native  # noqa: F401  # pyright: ignore[reportUnusedImport]
from ._file_keys import LOGGER, Keys
from ._shown import shown
from ._types import Buffer, Path

# The size of a buffer in bytes: four chunks of the format. Reads and writes of more bytes do not go through the buffer.
_BUFFER = 4 * 16384


class _Raw(io.RawIOBase):
    """The base class of raw files."""

    # The attributes `name` and `mode` of a buffered object return those of its raw file.
    name: object
    mode: str

    def __reduce__(self) -> Any:
        # A shallow copy would share the encrypted file, and the `close` of the copy would close or discard the file of the original.
        raise TypeError(f"a {type(self).__name__} is not copied or pickled: open the file again")

    def _check_open(self) -> None:
        if self.closed:
            raise ValueError("the file is closed")


class SeekableFile(_Raw):
    """A file that can seek. A subclass sets the position `_position`, and `_closes`, which is a file that `close` closes too."""

    _position: int
    _closes: BinaryIO | None

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def size(self) -> int:
        """The length in bytes."""
        raise NotImplementedError

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        self._check_open()
        starts = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self.size()}
        if whence not in starts:
            raise ValueError(f"whence is {shown(whence)}: it must be 0, 1 or 2")
        position = starts[whence] + offset
        if position < 0:
            raise ValueError(f"a position before the start of the file: {position}")
        self._position = position
        return position

    def tell(self) -> int:
        self._check_open()
        return self._position

    def close(self) -> None:
        try:
            if not self.closed and self._closes is not None:
                self._closes.close()
        finally:
            super().close()


class RawReader(SeekableFile):
    """A raw file that reads the plaintext of an encrypted file."""

    def __init__(self, file: Path | BinaryIO, keys: Keys, closes: BinaryIO | None) -> None:
        # The attributes are set before the file is opened, because Python calls `close` even if the opening raises an exception.
        self._closes = None
        self._native: _native.NativeReader | None = None
        self._native = _native.NativeReader(file, keys.checked(False))
        self._position = 0
        self._closes = closes

    def _open(self) -> _native.NativeReader:
        if self._native is None:
            raise ValueError("the file is closed")
        return self._native

    def size(self) -> int:
        """The number of bytes of the plaintext."""
        return self._open().size()

    def readinto(self, buffer: Any, /) -> int:
        count = self._open().readinto(self._position, [buffer])
        self._position += count
        return count

    def readall(self) -> bytes:
        rest = bytearray(max(0, self.size() - self._position))
        self.readinto(rest)
        return bytes(rest)

    def close(self) -> None:
        # The end of the native reader closes the file if it was opened by its path, and wipes the key.
        self._native = None
        super().close()


class _RawWriter(_Raw):
    """A raw file that encrypts the data written to it. The file is complete after `finish`. `close` without `finish` discards the file."""

    def __init__(
        self,
        file: Path | BinaryIO,
        replaces: bool,
        keys: Keys,
        ends: Callable[[bool], None] | None,
    ) -> None:
        self._ends: Callable[[bool], None] | None = None
        self._position = 0
        self._native = _native.NativeWriter(file, replaces, keys.checked(True))
        self._ends = ends
        self._process = os.getpid()

    def writable(self) -> bool:
        return True

    def tell(self) -> int:
        self._check_open()
        return self._position

    def write(self, data: Any, /) -> int:
        self._check_open()
        count = self._native.write(data)
        self._position += count
        return count

    def _end(self, is_complete: bool) -> None:
        ends, self._ends = self._ends, None
        # After a fork, the file belongs to the parent, so the child does not complete it.
        if ends is not None and self._process == os.getpid():
            ends(is_complete)

    def finish(self) -> None:
        self._native.finish()
        self._end(True)

    def close(self) -> None:
        if not self.closed:
            # `discard` has no effect after `finish`.
            if hasattr(self, "_native"):
                self._native.discard()
            self._end(False)
        super().close()


class Discardable:
    """A file that `close` completes, and that `discard` closes without a result."""

    __slots__ = ()

    def discard(self) -> None:
        raise NotImplementedError

    def __exit__(self, kind: object, value: object, traceback: object) -> None:
        if kind is None:
            cast(Any, self).close()
        else:
            self.discard()

    def __del__(self) -> None:
        # The finalizers of Python's files would close the file, which completes it, so the file is discarded first. The suppressed
        # exceptions mean that the object was not initialised.
        with contextlib.suppress(AttributeError, ValueError):
            if not cast(Any, self).closed:
                self.discard()


class Writer(Discardable, io.BufferedWriter):
    """The file object of `lockstep.open` for writing.

    `close` completes the file. After an exception in a `with` block, after `discard`, or if the object is dropped without a call
    of `close`, no file appears. In the child of a fork, `write` and `close` raise OSError, and dropping the object has no effect.
    """

    __module__ = "lockstep"

    @property
    def _encrypting(self) -> _RawWriter:
        return cast(_RawWriter, self.raw)

    def close(self) -> None:
        """Writes the end of the message; the file appears under its name. Raises OSError if it cannot be written."""
        if self.closed:
            return
        try:
            self.flush()
            self._encrypting.finish()
        except BaseException:
            self.discard()
            raise
        super().close()

    def discard(self) -> None:
        """Closes the file without a result."""
        if not self.raw.closed:
            self.raw.close()


@overload
def open(
    file: Path | BinaryIO,
    mode: Literal["rb"] = "rb",
    *,
    key: Buffer | Path | None = None,
    context: Buffer = b"",
    identities: Path | Sequence[Path] | None = None,
    passphrase: str | None = None,
) -> io.BufferedReader: ...
@overload
def open(
    file: Path | BinaryIO,
    mode: Literal["wb", "xb"],
    *,
    key: Buffer | Path | None = None,
    context: Buffer = b"",
    recipients: str | Sequence[str] | None = None,
    passphrase: str | None = None,
) -> Writer: ...
@overload
def open(
    file: Path | BinaryIO,
    mode: str,
    *,
    key: Buffer | Path | None = None,
    context: Buffer = b"",
    recipients: str | Sequence[str] | None = None,
    identities: Path | Sequence[Path] | None = None,
    passphrase: str | None = None,
) -> io.BufferedReader | Writer: ...
def open(
    file: Path | BinaryIO,
    mode: str = "rb",
    *,
    key: Buffer | Path | None = None,
    context: Buffer = b"",
    recipients: str | Sequence[str] | None = None,
    identities: Path | Sequence[Path] | None = None,
    passphrase: str | None = None,
) -> io.BufferedReader | Writer:
    """Opens an encrypted file in the format that the command `lockstep` writes and reads (C2SP chunked encryption).

    file: a path, or a binary file object. A file object for reading must be able to seek. It is not closed, and the program must not use
    it while the encrypted file is open. mode: "rb", "wb", or "xb", which refuses an existing file.

    key: 16 or 32 bytes, or the path (str or os.PathLike) of a key file; context: bytes that both sides know.

    The other arguments are alternatives to a key. recipients, for writing: age recipients ("age1...") and SSH public keys. identities,
    for reading: paths of age identity files and SSH private keys. passphrase, for writing and reading: the passphrase of the file or, with
    identities, the passphrase of an encrypted identity. One recipient and one identity may be given without a list.

    Reading: a seekable buffered reader. Opening checks the header and the last chunk, so that a file that was cut off is
    refused; each read checks the chunks that it needs. Raises InvalidTag for data that are not authentic.

    Writing: a `Writer`. A file at a path appears complete at `close`, or not at all. Writers cannot seek.

    Raises FileNotFoundError, FileExistsError and other OSErrors, ValueError for an unknown mode or an invalid key, and TypeError for
    arguments that exclude each other. The logger `lockstep` gets a warning for a key file that other users can read.

    >>> key = lockstep.generate_key()
    >>> with lockstep.open("records.enc", "wb", key=key) as file:
    ...     file.write(b"0123456789")
    10
    >>> with lockstep.open("records.enc", key=key) as file:
    ...     file.seek(5)
    ...     file.read(2)
    5
    b'56'
    """
    opened: io.BufferedReader | Writer = open_with(
        file, mode, Keys.of(key, context, recipients, identities, passphrase)
    )
    return opened


def encrypt_file(
    source: Path,
    destination: Path,
    key: Buffer | Path | None = None,
    context: Buffer | None = None,
    *,
    recipients: str | Sequence[str] | None = None,
    passphrase: str | None = None,
    progress: Callable[[int, int | None], object] | None = None,
    overwrite: bool = False,
) -> int:
    """Encrypts the file at the path source to the path destination, on all cores. The destination appears complete or not at all.

    key: 16 or 32 bytes, or the path of a key file. context: bytes that both sides know; decryption needs the same bytes. Alternatives to
    a key are recipients (age recipients, "age1...", and SSH public keys) and a passphrase.

    progress: a function that is called at most 20 times a second, and once at the end. Its arguments are the number of plaintext bytes
    processed so far and the total number, which is None if source is not a regular file. If it raises an exception, the work stops and
    encrypt_file raises the exception. If the call at the end raises an exception, the destination is complete and remains. overwrite:
    replace an existing destination.

    Returns the length of the plaintext in bytes. Raises FileExistsError, OSError, or ValueError for a key of a wrong length or an
    invalid recipient. Ctrl-C stops the work.

    >>> key = lockstep.generate_key()
    >>> with open("photos.tar", "wb") as file:
    ...     _ = file.write(bytes(100_000))
    >>> lockstep.encrypt_file("photos.tar", "photos.tar.enc", key, progress=print)
    100000 100000
    100000
    """
    keys = Keys.of(key, context, recipients, None, passphrase).checked(True)
    count = _native.encrypt_file(source, destination, keys, progress, overwrite)
    LOGGER.debug("encrypted %s to %s: %d bytes", shown(os.fspath(source)), shown(os.fspath(destination)), count)
    return count


def decrypt_file(
    source: Path,
    destination: Path,
    key: Buffer | Path | None = None,
    context: Buffer | None = None,
    *,
    identities: Path | Sequence[Path] | None = None,
    passphrase: str | None = None,
    progress: Callable[[int, int | None], object] | None = None,
    overwrite: bool = False,
    partial: bool = False,
    sparse: bool = True,
) -> int:
    """Decrypts the file at the path source to the path destination, on all cores. The destination appears complete and verified, or
    not at all.

    key and context: as for encrypt_file. Alternatives to a key are the passphrase of the file, and identities, which are the paths of age
    identity files and SSH private keys. With identities, passphrase is the passphrase of an encrypted identity. The other arguments
    and the result are those of encrypt_file.

    partial: keep the verified beginning of a file that was damaged, changed or cut off. The call still raises InvalidTag. The attribute
    `verified` of the exception is the number of plaintext bytes in the destination. If the number is 0, no destination was written.
    sparse: blocks of 4096 zeros become holes in the destination, which take no space on the disk.

    Raises InvalidTag for a wrong key, context, identity or passphrase, and for a file that was damaged, changed or cut off;
    FileExistsError, OSError, ValueError as encrypt_file.

    >>> key = lockstep.generate_key()
    >>> with lockstep.open("notes.enc", "wb", key=key) as file:
    ...     _ = file.write(b"some text")
    >>> lockstep.decrypt_file("notes.enc", "notes.txt", key)
    9
    """
    if partial and overwrite:
        raise ValueError("a part must not replace a complete file: give partial or overwrite, not both")
    keys = Keys.of(key, context, None, identities, passphrase).checked(False)
    count = _native.decrypt_file(source, destination, keys, progress, overwrite, partial, sparse)
    LOGGER.debug("decrypted %s to %s: %d bytes", shown(os.fspath(source)), shown(os.fspath(destination)), count)
    return count


def open_with(
    file: Path | BinaryIO,
    mode: str,
    keys: Keys,
    closes: BinaryIO | None = None,
    ends: Callable[[bool], None] | None = None,
    name: object = None,
    kind: type[io.BufferedReader | Writer] | None = None,
) -> Any:
    """Does the same as `open`, with more arguments. closes: a file object to close after reading. ends: a function to call after writing, with
    True if the file is complete. name: the name of the result, if it is not the name of the file. kind: the class of the result, if it
    is not the class that `open` returns.
    """
    if mode not in ("rb", "wb", "xb"):
        raise ValueError(f"mode is {shown(mode)}: it must be 'rb', 'wb' or 'xb'")
    is_path, needed = isinstance(file, (str, os.PathLike)), "read" if mode == "rb" else "write"
    if not is_path and not hasattr(file, needed):
        raise TypeError(f"file is a {type(file).__name__}: it must be a path (str or os.PathLike) or a binary file object")
    raw: _Raw = RawReader(file, keys, closes) if mode == "rb" else _RawWriter(file, mode == "wb", keys, ends)
    raw.mode = mode
    name = name or (file if is_path else getattr(file, "name", None))
    if name is not None:
        # If the file has no name, the attribute `name` does not exist. This is also so for a BufferedReader of a BytesIO.
        raw.name = name
    return _buffered(kind or (io.BufferedReader if mode == "rb" else Writer), raw)


def _buffered(kind: type[io.BufferedReader | Writer], raw: _Raw) -> io.BufferedReader | Writer:
    """Returns a buffered object for a raw file whose position is 0.

    The constructor of the buffered object calls `tell` and drops exceptions that `tell` raises. A signal handler can run in each function
    that is written in Python. If it ran in `tell`, its KeyboardInterrupt would be dropped. Therefore `tell` is replaced by `int`, which is
    not written in Python and returns 0.
    """
    vars(raw)["tell"] = int
    buffered = kind(raw, _BUFFER)
    del vars(raw)["tell"]
    return buffered
