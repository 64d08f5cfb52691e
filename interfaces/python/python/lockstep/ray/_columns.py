"""Encrypts and decrypts columns of a data set of Ray. Each cell is a message of its own."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence
from typing import Any

from .. import _devices, _native
from .._batches import decrypt_many, encrypt_many
from .._shown import shown
from . import _keys

_NONCE = 24
_TAG = 16
_KEY = 32
_LABEL = b"lockstep.ray/v1"


class _Columns:
    """The base class of `Encrypt` and `Decrypt`: the columns, the key, and the associated data of each cell."""

    def __init__(
        self,
        columns: str | Sequence[str],
        *,
        key: _keys.KeySource,
        context: bytes = b"",
        bind: str | None = None,
        device: str | None = None,
        threads: int | None = None,
    ) -> None:
        fetched = _keys.fetch(_keys.pickled(key))
        if not isinstance(fetched, bytes) or len(fetched) != _KEY:
            raise _keys.KeyUnavailable("the function key must return 32 bytes for columns, which use XAES-256-GCM")
        self._key = fetched
        self._columns = [columns] if isinstance(columns, str) else list(columns)
        if bind in self._columns:
            raise ValueError(f"the column {shown(bind)} cannot be encrypted and bind other columns at the same time")
        self._context = bytes(memoryview(context))
        self._bind = bind
        # The selection applies to the whole process, because Ray started the process only for this class.
        _devices.use(device, threads=threads)

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {', '.join(map(shown, self._columns))}>"

    def __reduce__(self) -> Any:
        raise TypeError(
            f"an object of {type(self).__name__} has a key: give map_batches the class, and its arguments as fn_constructor_kwargs"
        )

    def _cells(self, column: str, values: Sequence[Any]) -> list[bytes]:
        raise NotImplementedError

    def _result(self, column: str, cells: list[bytes], aad: Any) -> list[bytes]:
        raise NotImplementedError

    def __call__(self, batch: Any) -> Any:
        """Processes the columns of a batch. The result has the form of the batch: a table of pyarrow, or a dictionary of numpy
        arrays."""
        if isinstance(batch, dict):
            return self._arrays(batch)
        if hasattr(batch, "column_names") and hasattr(batch, "set_column"):
            return self._table(batch)
        raise TypeError(f"a batch is a {type(batch).__name__}: use batch_format='numpy' or 'pyarrow'")

    def _arrays(self, batch: dict[str, Any]) -> dict[str, Any]:
        import numpy

        changed = dict(batch)
        for column in [*self._columns, *([] if self._bind is None else [self._bind])]:
            if getattr(_column(batch, column), "dtype", numpy.dtype(object)).kind in "SU":
                raise TypeError(f"the column {shown(column)} has strings of numpy, which lose zero bytes: use batch_format='pyarrow'")
        for column in self._columns:
            values = _column(batch, column)
            cells = self._column(column, list(values), None if self._bind is None else list(_column(batch, self._bind)))
            # The column is an array of objects, because numpy's arrays of byte strings lose zero bytes at the end.
            changed[column] = numpy.empty(len(cells), object)
            changed[column][:] = cells
        return changed

    def _table(self, batch: Any) -> Any:
        import pyarrow

        for column in self._columns:
            index = batch.column_names.index(column) if column in batch.column_names else None
            if index is None:
                raise KeyError(f"the batch has no column {shown(column)}")
            bound = None if self._bind is None else _column(batch, self._bind).to_pylist()
            cells = self._column(column, batch.column(index).to_pylist(), bound)
            batch = batch.set_column(index, column, pyarrow.array(cells, pyarrow.large_binary()))
        return batch

    def _column(self, column: str, values: list[Any], bound: list[Any] | None) -> list[bytes]:
        for value in values:
            if not isinstance(value, bytes):
                what = "a null" if value is None else f"a {type(value).__name__}"
                raise TypeError(f"the column {shown(column)} has {what}: all its cells must be bytes")
        name = column.encode()
        fixed = b"".join([_LABEL, len(self._context).to_bytes(8), self._context, len(name).to_bytes(8), name])
        aad = fixed if bound is None else [fixed + _encoded(value) for value in bound]
        return self._result(column, values, aad) if values else []


def _column(batch: Any, column: str) -> Any:
    with contextlib.suppress(KeyError):
        return batch[column]
    # The exception is raised outside of the handler, so that it does not refer to Python's exception, which contains the name.
    raise KeyError(f"the batch has no column {shown(column)}")


def _encoded(value: Any) -> bytes:
    """A value that is bound to a cell. Values that differ in type or content have different encodings."""
    value = value.item() if hasattr(value, "item") else value
    if isinstance(value, bytes):
        return b"b" + value
    if isinstance(value, str):
        return b"s" + value.encode()
    if isinstance(value, int) and not isinstance(value, bool):
        return b"i%d" % value
    raise TypeError(f"the column that bind names has a {type(value).__name__}: its cells must be bytes, str or int")


class Encrypt(_Columns):
    """Encrypts columns of bytes, for `map_batches` of `ray.data`. Each worker has one object, with a warm engine.

        dataset.map_batches(lockstep.ray.Encrypt, fn_constructor_kwargs={"columns": ["text"], "key": fetch}, concurrency=3)

    columns: the columns, whose cells must be bytes. key: a function that returns 32 bytes, as in encrypt_files. context: bytes that
    both sides know. bind: a column that remains plain, of bytes, str or int, such as a row number; a cell can be decrypted only in
    a row with the same value. device, threads: as in lockstep.use.

    An encrypted cell is a random nonce of 24 bytes, the ciphertext and a tag of 16 bytes (XAES-256-GCM). The associated data are the
    context, the name of the column and the bound value, so that a cell cannot be moved to another column or, with `bind`, another row.
    """

    def _result(self, column: str, cells: list[bytes], aad: Any) -> list[bytes]:
        random = os.urandom(_NONCE * len(cells))
        nonces = [random[at : at + _NONCE] for at in range(0, len(random), _NONCE)]
        sealed = encrypt_many(_native.XAES256GCM, self._key, nonces, cells, aad)
        return [nonce + text for nonce, text in zip(nonces, sealed)]


class Decrypt(_Columns):
    """Decrypts columns that `Encrypt` has encrypted, with the same arguments.

    Raises InvalidTag if a cell is not authentic. In this case no cell of its batch is returned.
    """

    def _result(self, column: str, cells: list[bytes], aad: Any) -> list[bytes]:
        short = sum(len(cell) < _NONCE + _TAG for cell in cells)
        nonces = [cell[:_NONCE] for cell in cells]
        opened: list[bytes | None] = []
        if not short:
            opened, _ = decrypt_many(
                _native.XAES256GCM, self._key, nonces, [memoryview(cell)[_NONCE:] for cell in cells], aad
            )
        wrong = short or sum(text is None for text in opened)
        if wrong:
            raise _native.InvalidTag(f"{wrong} of {len(cells)} cells of a batch are not authentic in the column {shown(column)}")
        return [text for text in opened if text is not None]
