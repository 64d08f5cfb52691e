"""Raw modes: hazardous material.

These functions do not authenticate data, except GMAC, CMAC and key wrap. The caller must not use an iv twice with the same key, and must
detect changed ciphertext by other means. ECB shows which blocks of the data are equal. Use `lockstep.aead` or `lockstep.open` unless a
protocol prescribes a raw mode.

Arguments that hold bytes may be any contiguous buffers. The data and the output of encrypt, encrypt_into, decrypt and decrypt_into may
also be arrays of other libraries (`__dlpack__`, `__cuda_array_interface__`), on the host or on a GPU. On a GPU, the current stream of
the library is used. For such arrays, encrypt and decrypt return a new array of bytes of the same library on the same device, and each
call waits for the end of the work.

Keys have 16, 24 or 32 bytes. Keys of XTS have 32 or 64 bytes: the key of the data, then the key of the tweak. Wrong lengths raise
ValueError. Large calls release the interpreter lock and use all cores if the mode is parallel.
"""

from __future__ import annotations

from typing import Any, Literal, overload

from . import _native
from ._native import InvalidTag, cmac, gmac
from ._types import Buffer, Tensor

Mode = Literal["ECB", "CBC", "PCBC", "CFB", "CFB8", "CFB1", "OFB", "CTR", "XTS", "CBC-CS1", "CBC-CS2", "CBC-CS3"]

__all__ = [
    "aes_key_unwrap",
    "aes_key_unwrap_with_padding",
    "aes_key_wrap",
    "aes_key_wrap_with_padding",
    "cmac",
    "decrypt",
    "decrypt_into",
    "encrypt",
    "encrypt_into",
    "gmac",
    "hctr2_decrypt",
    "hctr2_encrypt",
]


@overload
def encrypt(mode: Mode, key: Buffer, data: Buffer, iv: Buffer | None = None) -> bytes: ...
@overload
def encrypt(mode: Mode, key: Buffer, data: Tensor, iv: Buffer | None = None) -> Any: ...
def encrypt(mode: Mode, key: Buffer, data: Any, iv: Buffer | None = None) -> Any:
    """Encrypts data; the result has the same length.

    mode: ECB, CBC and PCBC take whole blocks of 16 bytes, without padding; CFB (128 bits), CFB8, CFB1, OFB and CTR any length;
    XTS at least 16 bytes, a data unit; CBC-CS1, CBC-CS2 and CBC-CS3 (ciphertext stealing) at least 16 bytes. iv: 16 bytes, the
    initialization vector, the first counter block (big-endian), or the tweak; None for ECB.
    """
    return _native.raw(mode, True, key, data, iv)


@overload
def decrypt(mode: Mode, key: Buffer, data: Buffer, iv: Buffer | None = None) -> bytes: ...
@overload
def decrypt(mode: Mode, key: Buffer, data: Tensor, iv: Buffer | None = None) -> Any: ...
def decrypt(mode: Mode, key: Buffer, data: Any, iv: Buffer | None = None) -> Any:
    """Decrypts data; the result has the same length. The arguments are those of encrypt."""
    return _native.raw(mode, False, key, data, iv)


def encrypt_into(
    mode: Mode, key: Buffer, data: Buffer | Tensor, buf: Buffer | Tensor, iv: Buffer | None = None
) -> int:
    """Does the same as encrypt, but writes the result to a writable buffer of len(data) bytes, which may be the memory of data. Returns the
    number of bytes."""
    return _native.raw_into(mode, True, key, data, iv, buf)


def decrypt_into(
    mode: Mode, key: Buffer, data: Buffer | Tensor, buf: Buffer | Tensor, iv: Buffer | None = None
) -> int:
    """Does the same as decrypt, but writes the result to a writable buffer of len(data) bytes, which may be the memory of data. Returns the
    number of bytes."""
    return _native.raw_into(mode, False, key, data, iv, buf)


def hctr2_encrypt(key: Buffer, tweak: Buffer, data: Buffer) -> bytes:
    """Encrypts at least 16 bytes with HCTR2: each bit of the result depends on each bit of data. The tweak has any length."""
    return _native.hctr2(True, key, tweak, data)


def hctr2_decrypt(key: Buffer, tweak: Buffer, data: Buffer) -> bytes:
    """Decrypts at least 16 bytes with HCTR2."""
    return _native.hctr2(False, key, tweak, data)


def aes_key_wrap(wrapping_key: Buffer, key_to_wrap: Buffer) -> bytes:
    """Wraps a key (KW, RFC 3394). The length of the key must be a multiple of 8 bytes, and at least 16. The result is 8 bytes longer."""
    return _native.wrap(True, False, wrapping_key, key_to_wrap)


def aes_key_unwrap(wrapping_key: Buffer, wrapped_key: Buffer) -> bytes:
    """Unwraps a key (KW, RFC 3394). Raises InvalidTag if it is not authentic; a wrong length raises ValueError."""
    return _unwrap(False, wrapping_key, wrapped_key)


def aes_key_wrap_with_padding(wrapping_key: Buffer, key_to_wrap: Buffer) -> bytes:
    """Wraps a key of 1 to 2 ** 32 - 1 bytes (KWP, RFC 5649). The result is 8 to 15 bytes longer."""
    return _native.wrap(True, True, wrapping_key, key_to_wrap)


def aes_key_unwrap_with_padding(wrapping_key: Buffer, wrapped_key: Buffer) -> bytes:
    """Unwraps a key (KWP, RFC 5649). Raises InvalidTag if it is not authentic; a wrong length raises ValueError."""
    return _unwrap(True, wrapping_key, wrapped_key)


def _unwrap(padded: bool, wrapping_key: Buffer, wrapped_key: Buffer) -> bytes:
    try:
        return _native.wrap(False, padded, wrapping_key, wrapped_key)
    except InvalidTag:
        raise InvalidTag("the wrapped key is not authentic: the wrapping key is wrong, or the data were changed") from None
