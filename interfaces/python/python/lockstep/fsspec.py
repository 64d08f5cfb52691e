"""Encrypted files for all libraries that open files through fsspec, such as pandas, dask, pyarrow and zarr.

    pandas.read_parquet("lockstep::s3://bucket/table.parquet", storage_options={"lockstep": {"key": key}})

The part before `::` decrypts and encrypts, the part after it is any other file system of fsspec. The options are `key`, `context`,
`recipients`, `identities` and `passphrase`, as in `lockstep.open`; the options of the other file system are given under its name. The
paths are those of the other file system, so that patterns (`lockstep::file:///folder/*.csv`) and the endings of names have their usual
meaning. File sizes are those of the plaintext, or None if they are unknown; names are not encrypted.

    files = fsspec.filesystem("lockstep", fo="/folder", target_protocol="file", key=key)
    files.cat("name")

In this file system, and in the URL `lockstep://name::file:///folder`, paths are relative to the folder.

A file that is opened for writing by the file system appears complete or not at all, as with `lockstep.open`; in a transaction, all files
appear at its end, or none if it is aborted. The objects of `fsspec.open` complete the file even after an exception in their `with` block,
because they do not pass the exception on to the file. Appending is refused. `simplecache::lockstep::` stores plaintext in its folder.

An installed package registers the protocol by itself; `import lockstep.fsspec` does the same.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import hashlib
import io
import os
import secrets
from typing import Any, cast

import fsspec
from fsspec.compression import compr
from fsspec.core import get_compression, has_magic
from fsspec.implementations.chained import ChainedFileSystem
from fsspec.spec import AbstractFileSystem

from ._file_keys import Keys
from ._files import Discardable, RawReader, Writer, open_with
from ._native import plaintext_len
from ._shown import shown, shown_path


# A random key of this process, with which tokens are computed. Without it, an attacker could test guessed passphrases against a token.
_TOKEN_KEY = secrets.token_bytes(32)


class _Target:
    """A new file of another file system. It appears when it is complete, or not at all."""

    def __init__(self, files: Any, path: str, commits: bool, options: dict[str, Any]) -> None:
        # The file system `memory` shows a file as soon as it is opened, so the content is collected here and put into the file at the end.
        self._content = io.BytesIO() if files.protocol == "memory" else None
        self._put = functools.partial(files.pipe_file, path)
        self._file: Any = self._content
        if self._content is None:
            self._file = files.open(path, "wb", autocommit=False, **options)
            # `open` has added the file to the transaction of `files`. It is removed, because the transaction would commit it a
            # second time.
            with contextlib.suppress(AttributeError, ValueError):
                files.transaction.files.remove(self._file)
            if not commits and not hasattr(self._file, "commit"):
                self._file.close()
                raise NotImplementedError(f"files of {type(files).__name__} cannot appear at the end of a transaction: write without one")
        self._is_raw = isinstance(self._file, io.RawIOBase)
        self._commits = commits
        self._is_pending = True
        self._process = os.getpid()

    def write(self, data: bytes) -> Any:
        count = self._file.write(data)
        # Some libraries, such as paramiko, return None after they have written everything.
        return len(data) if count is None and not self._is_raw else count

    def flush(self) -> None:
        self._file.flush()

    def end(self, is_complete: bool) -> None:
        """Called after the last `write`. A complete file of a transaction does not appear before `commit` is called."""
        if not is_complete:
            self.discard()
            return
        if self._content is None:
            self._file.close()
        if self._commits:
            self.commit()

    def commit(self) -> None:
        if not self._is_pending:
            return
        if self._content is not None:
            self._put(self._content.getvalue())
        elif hasattr(self._file, "commit"):
            self._file.commit()
        self._is_pending = False

    def discard(self) -> None:
        # After a fork, the file belongs to the parent, so the child leaves it unchanged.
        if not self._is_pending or self._process != os.getpid():
            return
        self._is_pending = False
        if hasattr(self._file, "discard"):
            self._file.discard()
        else:
            self._file.close()


class _Reader(io.BufferedReader):
    """A file object with the size of the plaintext, which fsspec needs for ranges that count from the end."""

    @property
    def size(self) -> int:
        return cast(RawReader, self.raw).size()


class _Writer(Writer):
    """A file object with the methods that end a transaction."""

    target: _Target | None = None

    def commit(self) -> None:
        """Gives the file its name. A file that was discarded does not appear."""
        self.close()
        if self.target is not None:
            self.target.commit()

    def discard(self) -> None:
        super().discard()
        if self.target is not None:
            self.target.discard()


class _CompressedWriter(Discardable, io.BufferedIOBase):
    """A compressor, together with the file that it writes to. This class closes the file, because the compressors of Python do not."""

    def __init__(self, compressor: Any, file: _Writer) -> None:
        self._compressor, self._file = compressor, file
        self._is_ended = False

    def writable(self) -> bool:
        return True

    def write(self, data: Any, /) -> int:
        return int(self._compressor.write(data))

    def flush(self) -> None:
        # `close` of the base class calls `flush` too, when the compressor has already ended.
        if not self._is_ended:
            self._compressor.flush()

    def close(self) -> None:
        if self._is_ended:
            return
        try:
            self._compressor.close()
            self._is_ended = True
            self._file.close()
        except BaseException:
            self.discard()
            raise
        super().close()

    def discard(self) -> None:
        self._is_ended = True
        self._file.discard()
        super().close()


class _TextWriter(Discardable, io.TextIOWrapper):
    """A text file. `discard` discards its binary file."""

    def discard(self) -> None:
        # `buffer` is a `_Writer` or a `_CompressedWriter`.
        cast(Any, self.buffer).discard()


def _without_protocol(path: Any) -> str:
    """The path of a URL `lockstep://path` or `lockstep::path`."""
    if not isinstance(path, (str, os.PathLike)):
        # Other objects are not converted to text, because the text can be a key.
        raise TypeError(f"the path is {shown(path)}: give a str")
    return os.fspath(path).removeprefix("lockstep::").removeprefix("lockstep://")


def _below_folder(path: Any) -> Any:
    if isinstance(path, list):
        return [_below_folder(one) for one in path]
    path = _without_protocol(path).strip("/")
    if ".." in path.split("/"):
        raise ValueError(f"the path {shown(path)} has '..': give a path below the folder")
    return path


def _on_target(files: Any, default: str, path: Any) -> Any:
    if isinstance(path, list):
        return [_on_target(files, default, one) for one in path]
    return files._strip_protocol(_without_protocol(path) or default)


class LockstepFileSystem(ChainedFileSystem):  # type: ignore[misc]
    """A file system with encrypted files, which are stored on another file system of fsspec.

    fo: a folder or a file on the other file system. Paths are relative to it. Without fo, or with full_paths, paths are those of the other
    file system. A chained URL sets full_paths; the empty path then means the file fo. key, context and passphrase: as in `lockstep.open`.
    recipients are used for writing, and identities for reading. The other file system is given as fs, or by target_protocol and
    target_options.

    >>> key = lockstep.generate_key()
    >>> files = LockstepFileSystem("/folder", key=key, target_protocol="memory")
    >>> files.pipe({"name": b"data"})
    >>> files.cat_file("name", start=-2)
    b'ta'
    """

    protocol = "lockstep"
    # An instance holds a key, so fsspec must not keep it after its user has dropped it.
    cachable = False
    root_marker = ""

    def __init__(
        self,
        fo: str = "",
        key: Any = None,
        context: Any = b"",
        recipients: Any = None,
        identities: Any = None,
        passphrase: str | None = None,
        fs: AbstractFileSystem | None = None,
        target_protocol: str | None = None,
        target_options: dict[str, Any] | None = None,
        full_paths: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        if all(given is None for given in (key, recipients, identities, passphrase)):
            raise ValueError("lockstep:: needs a key: give storage_options={'lockstep': {'key': key}}")
        if fs is None:
            if target_protocol is None:
                raise ValueError("lockstep:: needs another file system: write lockstep::file:///folder/name, for example")
            fs = fsspec.filesystem(target_protocol, **(target_options or {}))
        given = Keys.of(key, context, recipients, identities, passphrase)
        self._for_reading = given._replace(recipients=None)
        self._for_writing = given._replace(identities=None, passphrase=None if given.recipients else passphrase)
        self.fs = fs
        self._fo = str(fs._strip_protocol(fo)) if fo else ""
        self.root = "" if full_paths else self._fo
        # fsspec also calls `_strip_protocol` of an instance. The paths of an instance depend on the underlying file system, so each
        # instance has its own function.
        strip = _below_folder if self.root else functools.partial(_on_target, fs, self._fo)
        setattr(self, "_strip_protocol", strip)

    @staticmethod
    def _get_kwargs_from_urls(path: str) -> dict[str, Any]:
        """The options that a URL implies. If there is no path before `::`, fsspec uses the path after it."""
        return {} if _without_protocol(path) else {"full_paths": True}

    @property
    def _fs_token(self) -> str:
        """A token that identifies the options in this process. It must not contain secrets, because dask shows it in the names of tasks."""
        return hashlib.blake2b(str(self._fs_token_).encode(), key=_TOKEN_KEY, digest_size=16).hexdigest()

    def __repr__(self) -> str:
        """A text that is the same for equal file systems. If a file system contains this one, fsspec computes its token from this text."""
        return f"<{type(self).__name__} {self._fs_token}>"

    def to_dict(self, *, include_password: bool = True) -> dict[str, Any]:
        """The options without the secrets, and without the options of the other file system, which can contain secrets too. A file system
        cannot be made from the result.
        """
        options = {"fo": self._fo, "full_paths": not self.root, "target_protocol": self.fs.protocol}
        return {"cls": f"{type(self).__module__}:{type(self).__name__}", "protocol": self.protocol, "args": [], **options}

    @classmethod
    def _strip_protocol(cls, path: Any) -> Any:
        """The path of a URL. fsspec calls this method of the class when there is no file system yet."""
        return [cls._strip_protocol(one) for one in path] if isinstance(path, list) else _without_protocol(path).rstrip("/")

    def _parent(self, path: Any) -> str:
        path = self._strip_protocol(path)
        return path.rpartition("/")[0] if self.root else str(self.fs._parent(path))

    def _target(self, path: Any) -> str:
        """The path on the other file system for a path on this file system."""
        path = self._strip_protocol(path)
        if not self.root:
            return str(path)
        return f"{self.root.rstrip('/')}/{path}" if path else self.root

    def _own(self, target: str) -> str:
        """The path on this file system for a path on the other file system."""
        return target.removeprefix(self.root.rstrip("/")).strip("/") if self.root else target

    def _own_info(self, info: dict[str, Any]) -> dict[str, Any]:
        own = {**info, "name": self._own(info["name"]), "stored_size": info.get("size")}
        if info.get("type") == "file" and info.get("size") is not None:
            # A file that is encrypted with a key has no envelope, so the stored size determines the size of the plaintext. Other files
            # have an envelope of unknown length, so the size of their plaintext is unknown.
            try:
                own["size"] = plaintext_len(info["size"]) if self._for_reading.key is not None else None
            except ValueError:
                # The size is not that of any encrypted file, so the file is not encrypted.
                own["size"] = None
        return own

    def info(self, path: str, **kwargs: Any) -> dict[str, Any]:
        return self._own_info(self.fs.info(self._target(path), **kwargs))

    def ls(self, path: str, detail: bool = True, **kwargs: Any) -> list[Any]:
        found = [self._own_info(info) for info in self.fs.ls(self._target(path), detail=True, **kwargs)]
        return found if detail else sorted(info["name"] for info in found)

    def du(self, path: str, total: bool = True, maxdepth: int | None = None, withdirs: bool = False, **kwargs: Any) -> Any:
        """Does the same as in fsspec. If the size of the plaintext of a file is unknown, the size of the encrypted file is counted."""
        found = self.find(path, maxdepth=maxdepth, withdirs=withdirs, detail=True, **kwargs)
        # If the path is a file and not a folder, `find` returns no details of it.
        infos = [info or self.info(name) for name, info in found.items()]
        sizes = {info["name"]: info["stored_size"] if info["size"] is None else info["size"] for info in infos}
        return sum(sizes.values()) if total else sizes

    def cat_file(self, path: str, start: int | None = None, end: int | None = None, **kwargs: Any) -> bytes:
        """The bytes [start:end] of a file, as in a slice."""
        with self.open(path, "rb", **kwargs) as file:
            first, last, _ = slice(start, end).indices(file.size)
            file.seek(first)
            return bytes(file.read(max(0, last - first)))

    def open(
        self,
        path: str,
        mode: str = "rb",
        block_size: int | None = None,
        cache_options: dict[str, Any] | None = None,
        compression: str | None = None,
        **kwargs: Any,
    ) -> Any:
        if "b" not in mode:
            text = {name: kwargs.pop(name) for name in ("encoding", "errors", "newline") if name in kwargs}
            file = self.open(path, f"{mode.replace('t', '')}b", block_size, cache_options, compression, **kwargs)
            return (io.TextIOWrapper if "r" in mode else _TextWriter)(file, **text)
        compression = get_compression(self._strip_protocol(path), compression)
        if compression is None or "r" in mode:
            return super().open(path, mode, block_size, cache_options, compression, **kwargs)
        file = super().open(path, mode, block_size, cache_options, **kwargs)
        return _CompressedWriter(compr[compression](file, mode=mode[0]), file)

    def _open(self, path: str, mode: str = "rb", **kwargs: Any) -> Any:
        kwargs.pop("block_size", None)
        kwargs.pop("cache_options", None)
        commits = kwargs.pop("autocommit", True)
        target, name = self._target(path), self._strip_protocol(path)
        if mode == "rb":
            file = self.fs.open(target, "rb", **kwargs)
            try:
                return open_with(file, mode, self._for_reading, closes=file, name=name, kind=_Reader)
            except BaseException:
                file.close()
                raise
        if "a" in mode or "+" in mode:
            raise NotImplementedError("an encrypted file cannot be changed: read it, and write it again")
        if mode not in ("wb", "xb"):
            raise ValueError(f"mode is {shown(mode)}: it must be 'rb', 'wb' or 'xb'")
        if mode == "xb" and self.fs.exists(target):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), shown_path(target))
        parent = self.fs._parent(target)
        if parent:
            self.fs.makedirs(parent, exist_ok=True)
        output = _Target(self.fs, target, commits, kwargs)
        try:
            writer = open_with(cast("Any", output), mode, self._for_writing, ends=output.end, name=name, kind=_Writer)
        except BaseException:
            output.discard()
            raise
        writer.target = output
        return writer

    def mkdir(self, path: str, create_parents: bool = True, **kwargs: Any) -> None:
        self.fs.mkdir(self._target(path), create_parents=create_parents, **kwargs)

    def makedirs(self, path: str, exist_ok: bool = False) -> None:
        # Before fsspec writes to a file, it calls this function with the folder of the file. Nothing is created if that is the root.
        if self._strip_protocol(path):
            self.fs.makedirs(self._target(path), exist_ok=exist_ok)

    def rmdir(self, path: str) -> None:
        self.fs.rmdir(self._target(path))

    def _rm(self, path: str) -> None:
        self.fs.rm_file(self._target(path))

    def rm(self, path: Any, recursive: bool = False, maxdepth: int | None = None) -> None:
        paths = path if isinstance(path, list) else [path]
        if any(has_magic(self._strip_protocol(one)) for one in paths):
            paths = self.expand_path(paths)
        self.fs.rm([self._target(one) for one in paths], recursive=recursive, maxdepth=maxdepth)

    def mv(self, path1: Any, path2: Any, recursive: bool = False, maxdepth: int | None = None, **kwargs: Any) -> None:
        if isinstance(path1, list) or has_magic(self._strip_protocol(path1)):
            super().mv(path1, path2, recursive=recursive, maxdepth=maxdepth, **kwargs)
            return
        self.fs.mv(self._target(path1), self._target(path2), recursive=recursive, maxdepth=maxdepth, **kwargs)

    def cp_file(self, path1: str, path2: str, **kwargs: Any) -> None:
        # The copy must have the same key and the same context as the original, so it is enough to copy the ciphertext.
        self.fs.cp_file(self._target(path1), self._target(path2), **kwargs)

    def _with_full_paths(self, *paths: Any) -> tuple[Any, ...]:
        """A file system with the paths of the other file system, and these paths on it. A / at the end of a path is kept.

        fsspec takes the part of a name before the last / for its folder. The name of a folder directly below the root has no such part, so
        fsspec would copy this folder to a wrong place.
        """
        if not self.root or has_magic(self.root) or not all(isinstance(path, str) and self._strip_protocol(path) for path in paths):
            return super(), *paths
        files = type(self)(*self.storage_args, **{**self.storage_options, "full_paths": True})
        return files, *(self._target(path) + "/" * path.endswith("/") for path in paths)

    def get(self, rpath: Any, lpath: Any, *args: Any, **kwargs: Any) -> None:
        files, rpath = self._with_full_paths(rpath)
        files.get(rpath, lpath, *args, **kwargs)

    def copy(self, path1: Any, path2: Any, *args: Any, **kwargs: Any) -> None:
        files, path1, path2 = self._with_full_paths(path1, path2)
        files.copy(path1, path2, *args, **kwargs)

    def created(self, path: str) -> Any:
        return self.fs.created(self._target(path))

    def modified(self, path: str) -> Any:
        return self.fs.modified(self._target(path))


if "lockstep" not in fsspec.registry:
    fsspec.register_implementation("lockstep", LockstepFileSystem)
