"""Encryption of the distributed checkpoints of PyTorch."""

from __future__ import annotations

import io
import os
from collections.abc import Generator
from contextlib import contextmanager
from typing import IO, Any, cast

from torch.distributed.checkpoint import FileSystemReader, FileSystemWriter
from torch.distributed.checkpoint._extension import Extension, ExtensionRegistry, StreamTransformExtension
from torch.distributed.checkpoint.filesystem import FileSystem, SerializationFormat

from . import _files
from ._file_keys import Keys
from ._shown import shown
from ._types import Buffer, Path

_NAME = "stream.lockstep"
_DESCRIPTOR = f"{_NAME}/1"


class EncryptedStream(StreamTransformExtension):
    """Encrypts the tensors and objects of a checkpoint, each as a message of C2SP chunked encryption.

        stream = EncryptedStream(key)
        dcp.save(state, storage_writer=stream.writer(path))
        dcp.load(state, storage_reader=stream.reader(path))

    key, context: as in lockstep.open, and the same on all ranks. The key is not written to the checkpoint.

    `writer` and `reader` also encrypt the metadata file: names, shapes, and a pickle, which is loaded only if it is authentic. If
    you make a `FileSystemWriter(path, _extensions=[stream])` and a `FileSystemReader(path, _extension_registry=stream.registry())`
    yourself, the metadata file is neither secret nor authentic. With `SerializationFormat.SAFETENSORS`, PyTorch does not use
    extensions for tensors, so the tensors would be plain. `writer` refuses this format.
    """

    def __init__(self, key: Buffer | Path, context: Buffer = b"") -> None:
        fixed = key if isinstance(key, (str, os.PathLike)) else bytes(memoryview(cast("bytes", key)))
        self._keys = Keys.of(fixed, bytes(memoryview(cast("bytes", context))))

    @staticmethod
    def registry_name() -> str:
        return _NAME

    @staticmethod
    def from_descriptor(version: str) -> Extension:
        raise ValueError("the checkpoint is encrypted: use the reader or the registry of EncryptedStream(key)")

    def get_descriptor(self) -> str:
        return _DESCRIPTOR

    def transform_to(self, output: IO[bytes]) -> IO[bytes]:
        """A stream that encrypts to output. Its `close` ends the message and closes output."""
        file = cast("Any", output)
        return cast("IO[bytes]", _files.open_with(file, "wb", self._keys, None, lambda _: output.close()))

    def transform_from(self, input: IO[bytes]) -> IO[bytes]:
        """A stream with the plaintext of input. The object input must be able to seek. Raises InvalidTag."""
        return cast("IO[bytes]", _files.open_with(cast("Any", input), "rb", self._keys))

    def registry(self) -> ExtensionRegistry:
        """A registry in which a reader of PyTorch finds this object."""
        stream = self

        class Registered(EncryptedStream):
            @staticmethod
            def from_descriptor(version: str) -> Extension:
                if version.partition(".")[0] != "1":
                    raise ValueError(f"the checkpoint has the version {shown(version)} of {_NAME}: only 1 is supported")
                return stream

        registry = ExtensionRegistry()
        registry.register(Registered)
        return registry

    def writer(self, path: Path, **arguments: Any) -> FileSystemWriter:
        """A writer whose files are all encrypted. arguments: those of FileSystemWriter."""
        if arguments.get("serialization_format", SerializationFormat.TORCH_SAVE) != SerializationFormat.TORCH_SAVE:
            raise ValueError("PyTorch encrypts tensors only with SerializationFormat.TORCH_SAVE")
        if "_extensions" in arguments:
            raise ValueError("an encrypting writer has no other extensions")
        writer = FileSystemWriter(path, _extensions=[self], **arguments)
        writer.fs = _EncryptedMetadata(self)
        return writer

    def reader(self, path: Path) -> FileSystemReader:
        """A reader for checkpoints that `writer` wrote. It refuses a checkpoint that has a plain part."""
        return _Reader(path, self)


class _EncryptedMetadata(FileSystem):
    """Encrypts the metadata files as a whole. The items in other files are encrypted one by one."""

    def __init__(self, stream: EncryptedStream) -> None:
        super().__init__()
        self._stream = stream

    @contextmanager
    def create_stream(self, path: Path, mode: str) -> Generator[Any, None, None]:
        with super().create_stream(path, mode) as raw:
            if ".metadata" not in os.path.basename(os.fspath(path)):
                yield raw
            elif "w" in mode:
                collected = _Collected(raw.fileno())
                yield collected
                with _files.open_with(cast("Any", raw), "wb", self._stream._keys) as file:
                    file.write(collected.getbuffer())
                raw.flush()
                os.fsync(raw.fileno())
            else:
                with self._stream.transform_from(raw) as file:
                    yield file


class _Collected(io.BytesIO):
    """Collects the data of a file. PyTorch calls fsync with the descriptor of this object before the encrypted data are
    written."""

    def __init__(self, descriptor: int) -> None:
        super().__init__()
        self._descriptor = descriptor

    def fileno(self) -> int:
        return self._descriptor


class _Reader(FileSystemReader):
    def __init__(self, path: Path, stream: EncryptedStream) -> None:
        super().__init__(path, _extension_registry=stream.registry())
        self.fs = _EncryptedMetadata(stream)

    def set_up_storage_reader(self, metadata: Any, *args: Any, **kwargs: Any) -> None:
        super().set_up_storage_reader(metadata, *args, **kwargs)
        for index, item in self.storage_data.items():
            if list(item.transform_descriptors or ()) != [_DESCRIPTOR]:
                raise ValueError(f"{shown(index.fqn)} is not encrypted in this checkpoint")
