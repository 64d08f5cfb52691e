"""Encrypted Parquet files (Parquet Modular Encryption). Every reader of Parquet can read them through `open`.

open(file, keys)     a file object with the plain form of an encrypted file, decrypted when it is read
encrypt(input, ...)  an encrypted file from a plain one
decrypt(input, ...)  a plain file from an encrypted one
decrypt_modules(...) pages and other modules, in memory of the host or of a GPU, for readers that decode Parquet themselves
"""

from __future__ import annotations

import base64
import binascii
import json
import os
import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, BinaryIO, Literal, get_args

from . import _native
from ._files import SeekableFile
from ._shown import shown
from ._types import Buffer, Path, Tensor
from .aead import AESGCM

Kms = Callable[[str, str], bytes | None]

__all__ = ["PlainFile", "decrypt", "decrypt_modules", "encrypt", "module_aad", "open"]

_Module = Literal[
    "footer",
    "column_meta_data",
    "data_page",
    "dictionary_page",
    "data_page_header",
    "dictionary_page_header",
    "column_index",
    "offset_index",
    "bloom_filter_header",
    "bloom_filter_bitset",
]

# The types of modules. The index of a type is its number in the format (Encryption.md, section 4.4.2).
_MODULES: tuple[str, ...] = get_args(_Module)

# The length in bytes of the identifier of a file (`aad_file_unique`).
_FILE_UNIQUE = 8


class PlainFile(SeekableFile):
    """The plain form of an encrypted Parquet file: a binary file object that reads and seeks.

    It is not buffered, and `read(n)` returns fewer than n bytes only at the end. Threads that share the object also share its
    position.
    """

    def __init__(self, native: _native.NativeParquet, closes: BinaryIO | None = None) -> None:
        self._native = native
        self._position = 0
        self._closes = closes

    def size(self) -> int:
        """The length in bytes."""
        return self._native.size()

    def read(self, size: int | None = -1, /) -> bytes:
        self._check_open()
        if size is None or size < 0:
            size = max(0, self._native.size() - self._position)
        data = self._native.read(self._position, size)
        self._position += len(data)
        return data

    def readall(self) -> bytes:
        return self.read()

    def read_buffer(self, size: int, /) -> Any:
        """Reads into memory that pyarrow allocates and reuses. pyarrow calls this method instead of `read`."""
        import pyarrow

        self._check_open()
        buffer = pyarrow.allocate_buffer(max(0, min(size, self._native.size() - self._position)))
        self.readinto(buffer)
        return buffer

    def readinto(self, buffer: Any, /) -> int:
        self._check_open()
        count = self._native.readinto(self._position, buffer)
        self._position += count
        return count


class _KeyMaterial:
    """Unwraps keys as pyarrow and parquet-java wrap them (parquet-mr, key tools): the key metadata are JSON."""

    def __init__(self, kms: Kms) -> None:
        self._kms = kms
        # The unwrapped keys that encrypt other keys, by their identifiers.
        self._keks: dict[str, bytes] = {}

    def unwrap(self, metadata: bytes | None) -> bytes | None:
        if metadata is None:
            return None
        try:
            material = json.loads(metadata)
            if material["keyMaterialType"] != "PKMT1":
                raise ValueError(f"the type of the key material is {shown(material['keyMaterialType'])}: only PKMT1 is supported")
            if not material["internalStorage"]:
                raise ValueError("the key material is in another file: only material in the file itself is supported")
            master, wrapped = str(material["masterKeyID"]), str(material["wrappedDEK"])
            is_double = bool(material["doubleWrapping"])
            kek_id, wrapped_kek = (str(material[name]) if is_double else "" for name in ("keyEncryptionKeyID", "wrappedKEK"))
        except (KeyError, TypeError, UnicodeDecodeError, json.JSONDecodeError, RecursionError) as error:
            raise ValueError(f"the key metadata are no key material of pyarrow or parquet-java: {error!r}") from error
        if not is_double:
            return self._kms(master, wrapped)
        kek = self._keks.get(kek_id)
        if kek is None:
            unwrapped = self._kms(master, wrapped_kek)
            if unwrapped is None:
                return None
            kek = self._keks[kek_id] = bytes(unwrapped)
        return _unwrap_locally(kek, kek_id, wrapped)


def _unwrap_locally(kek: bytes, kek_id: str, wrapped: str) -> bytes:
    """Unwraps a key that is encrypted with GCM. The associated data are the identifier of the key that encrypts it."""
    try:
        sealed = base64.b64decode(wrapped, validate=True)
        aad = base64.b64decode(kek_id, validate=True)
    except binascii.Error as error:
        raise ValueError("a wrapped key is not base64") from error
    if len(sealed) < 28:
        raise ValueError("a wrapped key is too short")
    return AESGCM(kek).decrypt(sealed[:12], sealed[12:], aad)


def open(
    file: Path | BinaryIO,
    keys: Mapping[str, Any] | None = None,
    *,
    kms: Kms | None = None,
    aad_prefix: bytes | None = None,
    allow_missing_aad: bool = False,
    allow_unauthenticated_pages: bool = False,
    allow_unauthenticated_footer: bool = False,
) -> PlainFile:
    """Opens an encrypted Parquet file; returns a file object with the same table as a plain Parquet file.

    pyarrow, pandas, polars, DuckDB and others read it like any Parquet file. Data are decrypted and checked when they are read,
    and data that are not authentic are not returned. Offsets are the same as in the encrypted file.

    file: a path, or a binary file object that can seek. The object is not closed, and the program must not use it while the result is open.
    keys: {"footer": key, "columns": {path: key}}, each key 16, 24 or 32 bytes. A path is the names of a column from the root, joined
    by dots; the name of a group means all columns in the group. kms: instead of keys, a function of a master key's identifier and a
    wrapped key that returns the key, or None if there is no key; it is called for the key material that pyarrow and parquet-java store
    in the file. aad_prefix: required if the file was written with one. A prefix that the file stores is not used, but it must equal
    aad_prefix. allow_missing_aad: read files of DuckDB, whose modules have no associated data, so that an exchange of pages or columns of
    the file is not detected. allow_unauthenticated_pages: read files with AES_GCM_CTR_V1, whose pages have no tags, so that changes in
    them are not detected. In a file with an encrypted footer, the format does not authenticate the algorithm. With this argument, an
    attacker can therefore change the algorithm of such a file to AES_GCM_CTR_V1, even if its writer chose AES_GCM_V1, and its pages are
    then not authenticated. allow_unauthenticated_footer: read a file with a plaintext footer without a footer key. The signature of the
    footer is then not checked. Changes of names, types, other metadata, and columns without a key are not detected, and neither are row
    groups that are missing or in another order. For a column in keys, the path, the physical type and the bytes of the pages are still
    authentic. The schema, which states how the bytes are decoded (repetition, length of a fixed-length type, logical type), is not
    authentic. With kms, every column may have been replaced by a plain one.

    Columns whose key is not given are in the schema, but cannot be read: a read raises ValueError.

    Raises InvalidTag for data that are not authentic (a wrong key, a wrong prefix, a damaged or changed file); ValueError for a file
    that is not Parquet or not encrypted, for a column with a key that the file does not have or has not encrypted, for missing keys,
    for a missing or different aad_prefix, and for files that need one of the arguments allow_...; OSError; and any exception of kms.
    """
    if (keys is None) == (kms is None):
        raise TypeError("give either keys or kms")
    expected: list[str] = []
    if kms is not None:
        material = _KeyMaterial(kms)

        def resolve(column: str | None, metadata: bytes | None) -> bytes | None:
            return material.unwrap(metadata)

    else:
        # Other objects than mappings are refused before they are iterated: their elements can be the bytes of a key, which a message
        # would show.
        if not isinstance(keys, Mapping):
            raise TypeError(f"keys is of the type {type(keys).__name__}: give a mapping with the entries 'footer' and 'columns'")
        unknown = [name for name in keys if name not in ("footer", "columns")]
        if unknown:
            raise ValueError(f"keys has unknown entries: {', '.join(map(shown, unknown))}; its entries are 'footer' and 'columns'")
        footer = keys.get("footer")
        columns: Mapping[str, bytes] = keys.get("columns") or {}
        expected = list(columns)

        def resolve(column: str | None, metadata: bytes | None) -> bytes | None:
            return footer if column is None else columns.get(column)

    native = _native.NativeParquet(
        file, resolve, expected, aad_prefix, allow_missing_aad, allow_unauthenticated_pages, allow_unauthenticated_footer
    )
    return PlainFile(native)


def encrypt(
    input: Path | BinaryIO,
    output: Path,
    *,
    footer_key: Buffer,
    columns: Mapping[str, Buffer] | None = None,
    plain_columns: Iterable[str] = (),
    algorithm: str = "AES_GCM_V1",
    plaintext_footer: bool = False,
    aad_prefix: bytes | None = None,
    store_aad_prefix: bool = True,
    footer_key_metadata: bytes | None = None,
    column_key_metadata: Mapping[str, bytes] | None = None,
    overwrite: bool = False,
) -> None:
    """Encrypts a plain Parquet file, without decompressing its pages. The output appears complete or not at all.

    input: a path, or a binary file object that can seek. output: a path. footer_key: 16, 24 or 32 bytes. columns: the keys of
    columns by their paths (names from the root, joined by dots); the name of a group means all columns in the group. Columns without
    a key are encrypted with the footer key, except plain_columns, which are not encrypted. algorithm: "AES_GCM_V1", or
    "AES_GCM_CTR_V1", whose pages are not authenticated, so that `open` needs allow_unauthenticated_pages. plaintext_footer: leave
    the footer readable, and sign it. aad_prefix: identifies the file, so that it cannot be exchanged for another one.
    store_aad_prefix: write the prefix to the file, where everyone can read it. `open` needs the prefix as an argument in both cases; other
    readers may use the stored prefix. footer_key_metadata, column_key_metadata: data with which readers find the keys.

    Raises ValueError for a name that is no column, for contradictory settings, and for a file that is not plain Parquet or cannot
    be encrypted; FileExistsError unless overwrite is true; OSError.
    """
    if algorithm not in ("AES_GCM_V1", "AES_GCM_CTR_V1"):
        raise ValueError("algorithm must be 'AES_GCM_V1' or 'AES_GCM_CTR_V1'")
    metadata = dict(column_key_metadata or {})
    unknown = set(metadata) - set(columns or ())
    if unknown:
        raise ValueError(f"column_key_metadata names {', '.join(map(shown, unknown))}, which columns does not have")
    entries = [(path, key, metadata.get(path)) for path, key in (columns or {}).items()]
    plain = [plain_columns] if isinstance(plain_columns, str) else list(plain_columns)
    _native.parquet_encrypt(
        input,
        output,
        footer_key,
        entries,
        plain,
        algorithm == "AES_GCM_CTR_V1",
        plaintext_footer,
        aad_prefix,
        store_aad_prefix,
        footer_key_metadata,
        overwrite,
    )


def decrypt(
    input: Path | BinaryIO,
    output: Path,
    keys: Mapping[str, Any] | None = None,
    *,
    kms: Kms | None = None,
    aad_prefix: bytes | None = None,
    allow_missing_aad: bool = False,
    allow_unauthenticated_pages: bool = False,
    allow_unauthenticated_footer: bool = False,
    overwrite: bool = False,
) -> None:
    """Writes the plain form of an encrypted Parquet file to a path. The output appears complete or not at all.

    The arguments and exceptions are those of `open`; also FileExistsError unless overwrite is true. Only the owner can read the
    output. The output does not contain the data of a column without a key in readable form.
    """
    with open(
        input,
        keys,
        kms=kms,
        aad_prefix=aad_prefix,
        allow_missing_aad=allow_missing_aad,
        allow_unauthenticated_pages=allow_unauthenticated_pages,
        allow_unauthenticated_footer=allow_unauthenticated_footer,
    ) as plain:
        plain._native.save(output, overwrite)


def module_aad(
    aad_file_unique: bytes,
    module: _Module,
    row_group: int = 0,
    column: int = 0,
    page: int = 0,
    *,
    aad_prefix: bytes = b"",
) -> bytes:
    """The associated data of a module, for decrypt_modules.

    aad_file_unique: the file's identifier in its metadata, 8 bytes. module: its type. row_group, column, page: ordinals from 0; the
    dictionary page is not counted. All modules except the footer have a row group and a column, and data pages and their headers also
    have a page; other ordinals must be 0. aad_prefix: the AAD prefix that is expected, not one that the file states.

    Raises ValueError for an identifier of another length, an unknown type, and ordinals that the type does not have.
    """
    if len(aad_file_unique) != _FILE_UNIQUE:
        raise ValueError(f"the identifier of a file (aad_file_unique) has {_FILE_UNIQUE} bytes, not {len(aad_file_unique)}: refuse the file")
    if module not in _MODULES:
        raise ValueError(f"{shown(module)} is not a type of modules: it must be one of {', '.join(_MODULES)}")
    ordinals = (row_group, column, page)
    count = {"footer": 0, "data_page": 3, "data_page_header": 3}.get(module, 2)
    if any(not 0 <= ordinal < 1 << 15 for ordinal in ordinals[:count]):
        raise ValueError(f"the ordinals {', '.join(map(shown, ordinals[:count]))} must be from 0 to 32767")
    if any(ordinals[count:]):
        raise ValueError(f"a module of the type {module!r} has only {count} of the ordinals {', '.join(map(shown, ordinals))}: the others must be 0")
    place = struct.pack(f"<B{count}h", _MODULES.index(module), *ordinals[:count])
    return b"".join((aad_prefix, aad_file_unique, place))


def decrypt_modules(
    pages: Sequence[Buffer | Tensor],
    keys: Buffer | Sequence[Buffer],
    aads: Sequence[Buffer],
    *,
    cipher: Literal["GCM", "CTR"] = "GCM",
    stream: Any = None,
) -> list[Any]:
    """Decrypts and checks modules of encrypted Parquet files in one batch: pages, page headers and others.

    pages: modules with their length fields, as they are in the file: bytes-like objects and arrays on the host, or arrays on one GPU,
    by DLPack or __cuda_array_interface__. On a GPU only lengths, nonces and tags are copied to the host. keys: a key of 16, 24 or 32
    bytes, or one for each module. aads: the associated data of each module (module_aad); CTR does not use them. cipher: "CTR" for
    the pages of AES_GCM_CTR_V1, "GCM" for all other modules. stream: as in lockstep.tensor.

    Returns the plaintexts: bytes for objects with a buffer, otherwise new arrays of bytes of the library and on the device of the
    module. None stands for a module that is not authentic; with CTR, only a wrong length is detected.

    Raises ValueError for wrong lengths and numbers, and for arrays that are on several devices.
    """
    if cipher not in ("GCM", "CTR"):
        raise ValueError(f"cipher is {shown(cipher)}: it must be 'GCM' or 'CTR'")
    # Only lists and tuples are sequences of keys here, because a buffer, which is one key, is a sequence too.
    given: list[Any] = list(keys) if isinstance(keys, (list, tuple)) else [keys]
    return _native.parquet_modules(list(pages), given, list(aads), cipher == "CTR", stream)
