"""Encrypted safetensors files, for every framework."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Mapping
from types import TracebackType
from typing import Any, BinaryIO, Protocol, cast

from .. import _native
from .._file_keys import Keys
from .._shown import shown
from .._types import Buffer, Path
from . import _header


class Framework(Protocol):
    """The operations that differ between numpy and PyTorch."""

    def empty(self, dtype: str, shape: tuple[int, ...]) -> tuple[Any, Buffer]:
        """A new array in host memory, and its bytes. Raises ValueError for a type that the framework does not have."""
        ...

    def place(self, array: Any, device: Any) -> Any:
        """The array on a device."""
        ...

    def compact(self, array: Any) -> Any:
        """The array, or a copy of it if it is a part of a larger one."""
        ...

    def check(self, tensors: Mapping[str, Any]) -> None:
        """Raises an exception unless the tensors can be saved."""
        ...

    def tensor(self, array: Any) -> tuple[str, tuple[int, ...], Buffer, Any]:
        """Type, shape and bytes of a tensor that is to be saved, and an object that must exist as long as the bytes."""
        ...


class TensorFile:
    """The tensors of an encrypted file. Each read decrypts and checks the chunks that it needs."""

    def __init__(self, file: Path | BinaryIO, framework: Framework, device: Any, key: Buffer | Path, context: Buffer) -> None:
        keys = Keys.of(key, context).checked(False)
        self._reader: _native.NativeReader | None = _native.NativeReader(file, keys)
        self._framework = framework
        self._device = device
        length = self._reader.size()
        prefix = bytearray(min(_header.PREFIX, length))
        self._reader.readinto(0, [prefix])
        text = bytearray(_header.header_len(bytes(prefix), length))
        self._reader.readinto(_header.PREFIX, [text])
        self.header = _header.parse(bytes(text), length)

    def close(self) -> None:
        self._reader = None

    def entry(self, name: str) -> _header.Entry:
        entry = self.header.tensors.get(name)
        if entry is None:
            raise KeyError(f"the file has no tensor {shown(name)}")
        return entry

    def read(self, names: Iterable[str]) -> dict[str, Any]:
        """Reads tensors that are adjacent in the file."""
        entries = [(name, self.entry(name)) for name in names]
        made = [(name, *self._framework.empty(entry.dtype, entry.shape)) for name, entry in entries]
        if entries:
            self._fill(entries[0][1].start, [buffer for _, _, buffer in made])
        return {name: self._framework.place(array, self._device) for name, array, _ in made}

    def read_all(self) -> dict[str, Any]:
        return self.read(self.header.tensors)

    def read_part(self, name: str, index: Any) -> Any:
        """`tensor[index]`. Only the rows (the first dimension) that the index selects are decrypted."""
        entry = self.entry(name)
        first, *others = index if isinstance(index, tuple) and index else (index,)
        rows = _rows(first, entry.shape)
        # `row` is the number of bytes of a row. It must be a whole number, but a row of a vector of the type F4 is half a byte.
        row, rest = divmod(entry.end - entry.start, max(1, entry.shape[0])) if rows else (0, 0)
        if rows is None or rest:
            return self._framework.compact(self.read([name])[name][index])
        start, stop, inside = rows
        shape = (stop - start, *entry.shape[1:])
        array, buffer = self._framework.empty(entry.dtype, shape)
        self._fill(entry.start + start * row, [buffer])
        return self._framework.place(self._framework.compact(array[(inside, *others)]), self._device)

    def _fill(self, start: int, buffers: list[Buffer]) -> None:
        if self._reader is None:
            raise ValueError("the file is closed")
        # The file contains all these bytes, because the header was checked against the length of the file.
        self._reader.readinto(start, buffers)


def _rows(index: Any, shape: tuple[int, ...]) -> tuple[int, int, int | slice] | None:
    """Returns the range of rows that an index of the first dimension selects, and the index within these rows. None for indices of other
    types, which need all rows."""
    if not shape or isinstance(index, bool):
        return None
    if isinstance(index, slice):
        start, stop, step = index.indices(shape[0])
        if step < 1:
            return None
        return start, max(start, stop), slice(None, None, step)
    try:
        number = operator.index(index)
    except TypeError:
        return None
    if not -shape[0] <= number < shape[0]:
        raise IndexError(f"row {number} of {shape[0]}")
    row = number % shape[0]
    return row, row + 1, 0


class TensorSlice:
    """A tensor of a file. Parts of the tensor can be read."""

    def __init__(self, file: TensorFile, name: str) -> None:
        self._file = file
        self._name = name
        self._entry = file.entry(name)

    def get_shape(self) -> list[int]:
        return list(self._entry.shape)

    def get_dtype(self) -> str:
        return self._entry.dtype

    def __getitem__(self, index: Any) -> Any:
        """A part of the tensor. Only the rows (the first dimension) that the index selects are decrypted."""
        return self._file.read_part(self._name, index)


class safe_open:
    """Opens an encrypted safetensors file. Tensors, or parts of them, are read when they are requested.

    The arguments are those of safetensors.safe_open, and in addition key and context, which are those of lockstep.open. filename: a path,
    or a binary file object that can seek. framework: "pt" or "np". device: the device of the tensors, for "pt". The tensors are decrypted
    in host memory and copied to the device.

    Opening decrypts and checks the header. Raises InvalidTag for data that are not authentic, which is also possible when a tensor is read;
    ValueError for a malformed header, and for a type that the framework does not have; OSError.
    """

    def __init__(
        self,
        filename: Path | BinaryIO,
        framework: str,
        device: Any = "cpu",
        *,
        key: Buffer | Path,
        context: Buffer = b"",
    ) -> None:
        self._file = TensorFile(filename, by_name(framework), device, key, context)

    def __enter__(self) -> safe_open:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._file.close()

    def keys(self) -> list[str]:
        """The names of the tensors."""
        return sorted(self._file.header.tensors)

    def offset_keys(self) -> list[str]:
        """The names of the tensors, in the order of the file."""
        return list(self._file.header.tensors)

    def metadata(self) -> dict[str, str] | None:
        """The metadata in the header."""
        return self._file.header.metadata

    def get_tensor(self, name: str) -> Any:
        """A tensor. Raises KeyError if the file has no such tensor."""
        return self._file.read([name])[name]

    def get_tensors(self) -> dict[str, Any]:
        """Returns all tensors. They are read in one pass over the file, on all cores."""
        return self._file.read_all()

    def get_slice(self, name: str) -> TensorSlice:
        """Returns an object that reads parts of a tensor: `file.get_slice("weight")[10:20]`."""
        return TensorSlice(self._file, name)


def by_name(framework: str) -> Framework:
    """Returns the framework with this name. Raises ValueError if it is not supported, and ImportError if it is not installed."""
    if framework in ("np", "numpy"):
        from .numpy import FRAMEWORK

        return FRAMEWORK
    if framework in ("pt", "torch", "pytorch"):
        from . import torch

        return cast(Framework, torch.FRAMEWORK)
    raise ValueError(f"the framework {shown(framework)} is not supported: use 'pt' or 'np'")


def save(
    tensors: Mapping[str, Any],
    file: Path | BinaryIO,
    metadata: Mapping[str, str] | None,
    framework: Framework,
    key: Buffer | Path,
    context: Buffer,
) -> None:
    """Encrypts tensors to a file. The file of a path appears complete or not at all."""
    framework.check(tensors)
    parts = {name: framework.tensor(tensor) for name, tensor in tensors.items()}
    start, names = _header.build({name: part[:2] for name, part in parts.items()}, metadata)
    keys = Keys.of(key, context).checked(True)
    _native.encrypt_buffers(file, True, key, keys.context, [start, *(parts[name][2] for name in names)])
