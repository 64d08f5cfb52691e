"""Encrypted files for all libraries that open files by fsspec: pandas, pyarrow, zarr, dask.

    pandas.read_parquet("lockstep::s3://bucket/table.parquet", storage_options={"lockstep": {"key": key}})

The part before `::` decrypts and encrypts, the part after it is any other file system of fsspec. The options are `key`, `context`,
`recipients`, `identities` and `passphrase`, as in `lockstep.open`; the options of the other file system are given under its name. A folder
after `::` is a tree of encrypted files. File sizes are those of the plaintext; names are not encrypted.

A file that is opened for writing by the file system appears complete or not at all, as with `lockstep.open`. The objects of
`fsspec.open` complete the file even after an exception in their `with` block, because they do not pass the exception on to the
file. Transactions and appending are refused.

An installed package registers the protocol by itself; `import lockstep.fsspec` does the same.
"""

from __future__ import annotations

import hashlib
import io
import os
import secrets
from typing import Any, cast

import fsspec
from fsspec.spec import AbstractFileSystem

from ._files import Keys, open_with
from ._native import plaintext_len
from ._shown import shown


# Of this process only, so that nobody can try passphrases on a token.
_TOKEN_KEY = secrets.token_bytes(32)


class _Sink:
    """A file of another file system, to write to. Some libraries, such as paramiko, return None after they have written everything."""

    def __init__(self, file: Any) -> None:
        self._file = file
        self._is_raw = isinstance(file, io.RawIOBase)

    def write(self, data: bytes) -> Any:
        count = self._file.write(data)
        return len(data) if count is None and not self._is_raw else count

    def flush(self) -> None:
        self._file.flush()


class LockstepFileSystem(AbstractFileSystem):  # type: ignore[misc]
    """Encrypted files on another file system of fsspec.

    fo: the root on the other file system. key, context and passphrase: as in `lockstep.open`; recipients are used for writing, and
    identities for reading. fs: the file system, or target_protocol and target_options.
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
        recipients: list[str] | None = None,
        identities: list[Any] | None = None,
        passphrase: str | None = None,
        fs: AbstractFileSystem | None = None,
        target_protocol: str | None = None,
        target_options: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        if all(given is None for given in (key, recipients, identities, passphrase)):
            raise ValueError("lockstep:: needs a key: give storage_options={'lockstep': {'key': key}}")
        if fs is None:
            if target_protocol is None:
                raise ValueError("lockstep:: needs another file system: write lockstep::file:///folder/name, for example")
            fs = fsspec.filesystem(target_protocol, **(target_options or {}))
        self._for_reading = Keys(key, context, None, identities, passphrase)
        self._for_writing = Keys(key, context, recipients, None, None if recipients else passphrase)
        self.fs = fs
        self.root = str(fs._strip_protocol(fo)) if fo else ""

    @property
    def _fs_token(self) -> str:
        """A name of the options, for comparisons in this process. dask shows it in the names of tasks."""
        return hashlib.blake2b(self._fs_token_.encode(), key=_TOKEN_KEY, digest_size=16).hexdigest()

    def to_dict(self, *, include_password: bool = True) -> dict[str, Any]:
        """The options without the secrets and without the options of the other file system, which can have secrets too: a file system
        is not made from them.
        """
        options = {"fo": self.root, "target_protocol": self.fs.protocol}
        return {"cls": f"{type(self).__module__}:{type(self).__name__}", "protocol": self.protocol, "args": [], **options}

    @classmethod
    def _strip_protocol(cls, path: Any) -> Any:
        if isinstance(path, list):
            return [cls._strip_protocol(one) for one in path]
        if not isinstance(path, (str, os.PathLike)):
            # The text of other objects can be a key.
            raise TypeError(f"the path is {shown(path)}: give a str")
        path = str(path)
        if path.startswith("lockstep::"):
            path = path.removeprefix("lockstep::")
        return path.removeprefix("lockstep://").strip("/")

    def _target(self, path: str) -> str:
        """The path on the other file system for a path on this file system."""
        path = self._strip_protocol(path)
        if not self.root:
            return path
        return f"{self.root.rstrip('/')}/{path}" if path else self.root

    def _own(self, target: str) -> str:
        """The path on this file system for a path on the other file system."""
        return target.removeprefix(self.root.rstrip("/")).strip("/") if self.root else target

    def _own_info(self, info: dict[str, Any]) -> dict[str, Any]:
        own = {**info, "name": self._own(info["name"])}
        if info.get("type") == "file" and info.get("size") is not None:
            # Without an envelope, which is a part of the size.
            try:
                own["size"] = plaintext_len(info["size"]) if self._for_reading.key is not None else None
            except ValueError:
                # Not an encrypted file.
                own["size"] = None
        return own

    def info(self, path: str, **kwargs: Any) -> dict[str, Any]:
        return self._own_info(self.fs.info(self._target(path), **kwargs))

    def ls(self, path: str, detail: bool = True, **kwargs: Any) -> list[Any]:
        found = [self._own_info(info) for info in self.fs.ls(self._target(path), detail=True, **kwargs)]
        return found if detail else sorted(info["name"] for info in found)

    def _open(self, path: str, mode: str = "rb", **kwargs: Any) -> Any:
        kwargs.pop("block_size", None)
        kwargs.pop("cache_options", None)
        if not kwargs.pop("autocommit", True) and mode != "rb":
            raise NotImplementedError("lockstep:: has no transactions: write the files without one; each appears when it is complete")
        target = self._target(path)
        if mode == "rb":
            file = self.fs.open(target, "rb", **kwargs)
            try:
                return open_with(file, mode, self._for_reading, closes=file)
            except BaseException:
                file.close()
                raise
        if mode not in ("wb", "xb"):
            raise ValueError(f"mode is {shown(mode)}: it must be 'rb', 'wb' or 'xb'")
        if mode == "xb" and self.fs.exists(target):
            raise FileExistsError(target)
        parent = self.fs._parent(target)
        if parent:
            self.fs.makedirs(parent, exist_ok=True)
        # The file must not appear before it is complete.
        file = self.fs.open(target, "wb", autocommit=False, **kwargs)

        def ends(is_complete: bool) -> None:
            if is_complete:
                file.close()
                if hasattr(file, "commit"):
                    file.commit()
                return
            if hasattr(file, "discard"):
                file.discard()
            else:
                file.close()
            if self.fs.protocol == "memory" and self.fs.exists(target):
                # On the file system in memory, a file appears when it is opened.
                self.fs.rm_file(target)

        try:
            return open_with(cast("Any", _Sink(file)), "wb", self._for_writing, ends=ends)
        except BaseException:
            ends(False)
            raise

    def mkdir(self, path: str, create_parents: bool = True, **kwargs: Any) -> None:
        self.fs.mkdir(self._target(path), create_parents=create_parents, **kwargs)

    def makedirs(self, path: str, exist_ok: bool = False) -> None:
        # fsspec calls this with the root before it writes to a file, which may be the root itself.
        if self._strip_protocol(path):
            self.fs.makedirs(self._target(path), exist_ok=exist_ok)

    def rmdir(self, path: str) -> None:
        self.fs.rmdir(self._target(path))

    def _rm(self, path: str) -> None:
        self.fs.rm_file(self._target(path))

    def mv(self, path1: str, path2: str, recursive: bool = False, maxdepth: int | None = None, **kwargs: Any) -> None:
        self.fs.mv(self._target(path1), self._target(path2), recursive=recursive, maxdepth=maxdepth, **kwargs)

    def cp_file(self, path1: str, path2: str, **kwargs: Any) -> None:
        # The copy has the same key and context, so the ciphertext is copied.
        self.fs.cp_file(self._target(path1), self._target(path2), **kwargs)

    def created(self, path: str) -> Any:
        return self.fs.created(self._target(path))

    def modified(self, path: str) -> Any:
        return self.fs.modified(self._target(path))


if "lockstep" not in fsspec.registry:
    fsspec.register_implementation("lockstep", LockstepFileSystem)
