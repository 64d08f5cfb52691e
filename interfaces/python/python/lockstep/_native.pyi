"""The types of the native part of the package, and the documentation of its public members. The examples are also tests."""

from collections.abc import Callable, Sequence
from typing import Any, BinaryIO, final, overload

from ._file_keys import Keys
from ._types import Buffer, Path, Tensor

__version__: str

class InvalidTag(Exception):
    """Authentication failed: the key, the nonce, the associated data or the context is wrong, or the data were changed.

    verified: after decrypt_file with partial=True, the length in bytes of the plaintext that was kept; otherwise None.

    >>> cipher = AESGCM(bytes(32))
    >>> try:
    ...     cipher.decrypt(bytes(12), bytes(20), None)
    ... except lockstep.InvalidTag as error:
    ...     print("not authentic", error.verified)
    not authentic None
    """

    verified: int | None

class _Aead:
    @overload
    def encrypt(self, nonce: Buffer, data: Buffer, associated_data: Buffer | None) -> bytes:
        """Encrypts and authenticates data; authenticates associated_data.

        nonce: bytes that are used only once with this key; data: the message; associated_data: bytes that both sides know, or
        None. Returns the ciphertext, which has len(data) bytes, and the tag after it. If data is an array of another library,
        the result is a new array of bytes. Raises ValueError for a nonce of a wrong length, and for data that are too long.

        >>> AESGCM(bytes(32)).encrypt(bytes(12), b"data", b"header").hex()
        'aac6345ca392a548a5a7274cdecaa7995d1245ba'
        """
        ...
    @overload
    def encrypt(self, nonce: Buffer, data: Tensor, associated_data: Buffer | None) -> Any: ...
    @overload
    def decrypt(self, nonce: Buffer, data: Buffer, associated_data: Buffer | None) -> bytes:
        """Checks data, which are a ciphertext and its tag, and associated_data. If they are authentic, decrypts the ciphertext.

        nonce and associated_data: as for `encrypt`. Returns the plaintext. Raises InvalidTag if anything is not authentic,
        ValueError for a nonce of a wrong length.

        >>> cipher = AESGCM(bytes(32))
        >>> cipher.decrypt(bytes(12), cipher.encrypt(bytes(12), b"data", None), None)
        b'data'
        """
        ...
    @overload
    def decrypt(self, nonce: Buffer, data: Tensor, associated_data: Buffer | None) -> Any: ...
    def encrypt_into(
        self, nonce: Buffer, data: Buffer | Tensor, associated_data: Buffer | None, buf: Buffer | Tensor
    ) -> int:
        """Does the same as `encrypt`, but writes the result to a buffer.

        buf: a writable buffer with the length of data and tag. For work in place, data is the part of buf that gets the ciphertext.
        Returns the number of bytes written. Also raises ValueError for a buffer of another length or one that partly overlaps an
        argument, and TypeError for a read-only buffer.

        >>> buf = bytearray(b"data" + bytes(16))
        >>> AESGCM(bytes(32)).encrypt_into(bytes(12), memoryview(buf)[:4], None, buf)
        20
        """
        ...
    def decrypt_into(
        self, nonce: Buffer, data: Buffer | Tensor, associated_data: Buffer | None, buf: Buffer | Tensor
    ) -> int:
        """Does the same as `decrypt`, but writes the result to a buffer.

        buf: a writable buffer with the length of data without the tag; it may be the memory of the ciphertext. It is zeroed if
        InvalidTag is raised. Returns the number of bytes written. Also raises the exceptions of `encrypt_into`.

        >>> sealed = bytearray(AESGCM(bytes(32)).encrypt(bytes(12), b"data", None))
        >>> AESGCM(bytes(32)).decrypt_into(bytes(12), sealed, None, memoryview(sealed)[:4])
        4
        >>> bytes(sealed[:4])
        b'data'
        """
        ...

@final
class AESGCM(_Aead):
    """AES-GCM (SP 800-38D): nonces of 8 to 128 bytes (12 are best), tags of 16 bytes.

    key: 16, 24 or 32 bytes. A nonce must never be used twice with one key.

    >>> cipher = AESGCM(AESGCM.generate_key(256))
    >>> nonce = os.urandom(12)
    >>> cipher.decrypt(nonce, cipher.encrypt(nonce, b"data", b"header"), b"header")
    b'data'
    """

    def __new__(cls, key: Buffer) -> AESGCM: ...
    @staticmethod
    def generate_key(bit_length: int) -> bytes:
        """A random key of bit_length bits, from the operating system.

        Raises ValueError for a length that the mode does not have.

        >>> len(AESGCM.generate_key(256))
        32
        """
        ...

@final
class AESGCMSIV(_Aead):
    """AES-GCM-SIV (RFC 8452): nonces of 12 bytes, tags of 16 bytes.

    key: 16 or 32 bytes. A nonce that is used twice reveals only whether two messages are equal.

    >>> cipher = AESGCMSIV(AESGCMSIV.generate_key(256))
    >>> len(cipher.encrypt(os.urandom(12), b"data", None))
    20
    """

    def __new__(cls, key: Buffer) -> AESGCMSIV: ...
    @staticmethod
    def generate_key(bit_length: int) -> bytes:
        """A random key of bit_length bits, from the operating system.

        Raises ValueError for a length that the mode does not have.

        >>> len(AESGCMSIV.generate_key(256))
        32
        """
        ...

@final
class AESOCB3(_Aead):
    """AES-OCB3 (RFC 7253): nonces of 12 to 15 bytes, tags of 16 bytes.

    key: 16, 24 or 32 bytes. A nonce must never be used twice with one key.

    >>> cipher = AESOCB3(AESOCB3.generate_key(128))
    >>> len(cipher.encrypt(os.urandom(15), b"data", None))
    20
    """

    def __new__(cls, key: Buffer) -> AESOCB3: ...
    @staticmethod
    def generate_key(bit_length: int) -> bytes:
        """A random key of bit_length bits, from the operating system.

        Raises ValueError for a length that the mode does not have.

        >>> len(AESOCB3.generate_key(256))
        32
        """
        ...

@final
class AESCCM(_Aead):
    """AES-CCM (SP 800-38C): nonces of 7 to 13 bytes.

    key: 16, 24 or 32 bytes; tag_length: 4, 6, 8, 10, 12, 14 or 16 bytes, 16 if it is None. A nonce must never be used twice with
    one key. With a nonce of n bytes, a message has less than 2 ** (8 * (15 - n)) bytes.

    >>> cipher = AESCCM(AESCCM.generate_key(128), tag_length=8)
    >>> len(cipher.encrypt(os.urandom(13), b"data", None))
    12
    """

    def __new__(cls, key: Buffer, tag_length: int | None = None) -> AESCCM: ...
    @staticmethod
    def generate_key(bit_length: int) -> bytes:
        """A random key of bit_length bits, from the operating system.

        Raises ValueError for a length that the mode does not have.

        >>> len(AESCCM.generate_key(256))
        32
        """
        ...

@final
class AESEAX(_Aead):
    """AES-EAX (Bellare, Rogaway and Wagner, 2004): nonces of 8 to 128 bytes, which may be random if they have 16 bytes, and tags of
    16 bytes.

    key: 16, 24 or 32 bytes. A nonce must never be used twice with one key.

    >>> cipher = AESEAX(AESEAX.generate_key(256))
    >>> len(cipher.encrypt(os.urandom(16), b"data", None))
    20
    """

    def __new__(cls, key: Buffer) -> AESEAX: ...
    @staticmethod
    def generate_key(bit_length: int) -> bytes:
        """A random key of bit_length bits, from the operating system.

        Raises ValueError for a length that the mode does not have.

        >>> len(AESEAX.generate_key(256))
        32
        """
        ...

@final
class XAES256GCM(_Aead):
    """XAES-256-GCM (C2SP): nonces of 24 bytes, which may be random, and tags of 16 bytes.

    key: 32 bytes. A nonce must never be used twice with one key.

    >>> cipher = XAES256GCM(XAES256GCM.generate_key())
    >>> len(cipher.encrypt(os.urandom(24), b"data", None))
    20
    """

    def __new__(cls, key: Buffer) -> XAES256GCM: ...
    @staticmethod
    def generate_key(bit_length: int = 256) -> bytes:
        """A random key of bit_length bits, from the operating system.

        Raises ValueError for a length that the mode does not have.

        >>> len(XAES256GCM.generate_key(256))
        32
        """
        ...

@final
class AESSIV:
    """AES-SIV (RFC 5297): tags of 16 bytes, which precede the ciphertext, and no nonce.

    key: 32, 48 or 64 bytes. The associated data are a list of at most 126 buffers. The same message is encrypted to the same bytes,
    unless the associated data differ.

    >>> cipher = AESSIV(AESSIV.generate_key(512))
    >>> cipher.decrypt(cipher.encrypt(b"data", [b"one", b"two"]), [b"one", b"two"])
    b'data'
    """

    def __new__(cls, key: Buffer) -> AESSIV: ...
    @staticmethod
    def generate_key(bit_length: int) -> bytes:
        """A random key of bit_length bits, from the operating system.

        Raises ValueError for a length that the mode does not have.

        >>> len(AESSIV.generate_key(256))
        32
        """
        ...
    @overload
    def encrypt(self, data: Buffer, associated_data: list[Buffer] | list[bytes] | None) -> bytes:
        """Encrypts and authenticates data; authenticates each buffer of associated_data.

        Returns tag and ciphertext. Raises ValueError for more than 126 buffers.

        >>> AESSIV(bytes(64)).encrypt(b"data", [b"header"]).hex()
        'ad090d8504c004a1b3d45831717a536f010f3622'
        """
        ...
    @overload
    def encrypt(self, data: Tensor, associated_data: list[Buffer] | list[bytes] | None) -> Any: ...
    @overload
    def decrypt(self, data: Buffer, associated_data: list[Buffer] | list[bytes] | None) -> bytes:
        """Checks data, which are a tag and the ciphertext, and associated_data. If they are authentic, decrypts the ciphertext;
        otherwise raises InvalidTag.

        >>> AESSIV(bytes(64)).decrypt(AESSIV(bytes(64)).encrypt(b"data", None), None)
        b'data'
        """
        ...
    @overload
    def decrypt(self, data: Tensor, associated_data: list[Buffer] | list[bytes] | None) -> Any: ...
    def encrypt_into(
        self, data: Buffer | Tensor, associated_data: list[Buffer] | list[bytes] | None, buf: Buffer | Tensor
    ) -> int:
        """Does the same as `encrypt_into` of the other classes, but the tag precedes the ciphertext.

        >>> buf = bytearray(20)
        >>> AESSIV(bytes(64)).encrypt_into(b"data", None, buf)
        20
        """
        ...
    def decrypt_into(
        self, data: Buffer | Tensor, associated_data: list[Buffer] | list[bytes] | None, buf: Buffer | Tensor
    ) -> int:
        """Does the same as `decrypt_into` of the other classes, but the tag precedes the ciphertext.

        >>> buf = bytearray(4)
        >>> AESSIV(bytes(64)).decrypt_into(AESSIV(bytes(64)).encrypt(b"data", None), None, buf)
        4
        """
        ...

AEADS: tuple[type, ...]

_Strings = Buffer | tuple[Buffer, int] | list[Buffer | None] | None

def many_in_list(
    mode: str,
    encrypts: bool,
    tag: int,
    keys: _Strings,
    nonces: _Strings,
    data: list[Buffer],
    aad: _Strings,
) -> list[bytes | None]: ...
def many_in_buffer(
    mode: str,
    encrypts: bool,
    tag: int,
    keys: _Strings,
    nonces: _Strings,
    data: Buffer,
    places: tuple[int, int] | list[int],
    aad: _Strings,
    output: Buffer,
    statuses: Buffer,
) -> None: ...

@final
class NativeReader:
    def __new__(cls, file: Path | BinaryIO, keys: Keys) -> NativeReader: ...
    def size(self) -> int: ...
    def readinto(self, offset: int, buffers: Sequence[Buffer]) -> int: ...

@final
class NativeWriter:
    def __new__(cls, file: Path | BinaryIO, replaces: bool, keys: Keys) -> NativeWriter: ...
    def write(self, data: Buffer) -> int: ...
    def finish(self) -> None: ...
    def discard(self) -> None: ...

def encrypt_file(
    source: Path,
    destination: Path,
    keys: Keys,
    progress: Callable[[int, int | None], object] | None,
    overwrite: bool,
) -> int: ...
def decrypt_file(
    source: Path,
    destination: Path,
    keys: Keys,
    progress: Callable[[int, int | None], object] | None,
    overwrite: bool,
    partial: bool,
    sparse: bool,
) -> int: ...
def encrypt_buffers(
    file: Path | BinaryIO, replaces: bool, key: Buffer | Path, context: Buffer, buffers: Sequence[Buffer]
) -> None: ...
@final
class NativePlan:
    def __new__(cls, encrypts: bool, inputs: Sequence[Path], output: Path, existing: str, syncs: bool) -> NativePlan: ...
    def files(self) -> list[tuple[str, str, str, int, bytes | None]]: ...
    def skipped(self) -> list[tuple[str, str]]: ...
    def failed(self) -> list[tuple[str, str]]: ...
    def without_input(self) -> list[str]: ...
    def create_folders(self) -> None: ...
    def remove_abandoned(self) -> None: ...

@final
class NativeGroups:
    def __new__(
        cls, encrypts: bool, key: Buffer | Path, context: Buffer, output: Path, replaces: bool, syncs: bool
    ) -> NativeGroups: ...
    def threads(self) -> int: ...
    def process(
        self, files: Sequence[tuple[str, str, str, int, bytes | None]]
    ) -> list[tuple[str, int, int, bytes | None, str | None]]: ...

def generate_key() -> bytes:
    """A random key of 32 bytes for files, from the operating system.

    >>> len(lockstep.generate_key())
    32
    """
    ...
def plaintext_len(size: int) -> int: ...
@overload
def raw(mode: str, encrypts: bool, key: Buffer, data: Buffer, iv: Buffer | None) -> bytes: ...
@overload
def raw(mode: str, encrypts: bool, key: Buffer, data: Tensor, iv: Buffer | None) -> Any: ...
def raw_into(
    mode: str, encrypts: bool, key: Buffer, data: Buffer | Tensor, iv: Buffer | None, buf: Buffer | Tensor
) -> int: ...
def hctr2(encrypts: bool, key: Buffer, tweak: Buffer, data: Buffer) -> bytes: ...
def cmac(key: Buffer, data: Buffer) -> bytes:
    """The CMAC (SP 800-38B) of data. It has 16 bytes.

    key: 16, 24 or 32 bytes. Raises ValueError for another length.

    >>> hazmat.cmac(bytes(16), b"data").hex()
    '962d1a2d4f65982a677a97ed70e88b33'
    """
    ...
def gmac(key: Buffer, nonce: Buffer, data: Buffer) -> bytes:
    """The GMAC (SP 800-38D) of data. It has 16 bytes.

    key: 16, 24 or 32 bytes; nonce: 8 to 128 bytes, which must never be used twice with one key. Raises ValueError for other lengths.

    >>> hazmat.gmac(bytes(16), bytes(12), b"data").hex()
    'c6946148f48fb947aae3bafda8a98fe0'
    """
    ...
def wrap(encrypts: bool, padded: bool, wrapping_key: Buffer, key: Buffer) -> bytes: ...

@final
class NativeParquet:
    def __new__(
        cls,
        file: Path | BinaryIO,
        resolve: Callable[[str | None, bytes | None], bytes | None],
        expected: list[str],
        aad_prefix: bytes | None,
        allows_missing_aad: bool,
        allows_unauthenticated_pages: bool,
        allows_unauthenticated_footer: bool,
    ) -> NativeParquet: ...
    def size(self) -> int: ...
    def read(self, offset: int, count: int) -> bytes: ...
    def save(self, destination: Path, overwrite: bool) -> None: ...
    def readinto(self, offset: int, buffer: Buffer) -> int: ...

def parquet_modules(
    pages: Sequence[Buffer | Tensor],
    keys: Sequence[Buffer],
    aads: Sequence[Buffer],
    is_ctr: bool,
    stream: Any = None,
) -> list[Any]: ...
def parquet_encrypt(
    source: Path | BinaryIO,
    destination: Path,
    footer_key: Buffer,
    columns: list[tuple[str, Buffer, bytes | None]],
    plain_columns: list[str],
    is_ctr: bool,
    plaintext_footer: bool,
    aad_prefix: bytes | None,
    stores_aad_prefix: bool,
    footer_key_metadata: bytes | None,
    overwrite: bool,
) -> None: ...

@final
class EarlierSelection:
    def restore(self) -> None: ...

def select(device: str | None, kernel: str | None, threads: int | None, verify: str | None) -> EarlierSelection: ...
def devices() -> list[tuple[str, str, list[str]]]: ...
def missing_devices() -> dict[str, str]:
    """The backends that have no device on this machine, each with the reason. The call starts the drivers of GPUs.

    >>> "cpu" in lockstep.missing_devices()
    False
    """
    ...
def selftest() -> list[tuple[str, str, int, list[str]]]: ...
def after_fork_in_child() -> None: ...
def run_command(arguments: list[str], closed: list[int]) -> int: ...
def shown_name(name: str) -> str: ...

@final
class DeviceArray:
    """An array of bytes in the memory of a device. Other libraries can use it through DLPack and __cuda_array_interface__.

    shape: a number or a tuple; device: a name such as "cuda:0". The memory is zero at first, and is wiped when the last reference to it
    is dropped. Raises ValueError for a device that does not exist or whose memory has no addresses, RuntimeError if the device has not
    enough memory.

    >>> with lockstep.use("cuda:emu"):    # the emulator; "cuda:0" is the first GPU
    ...     tensor.DeviceArray((2, 16), "cuda:emu").nbytes
    32
    """

    def __new__(cls, shape: int | Sequence[int], device: str) -> DeviceArray: ...
    @property
    def device(self) -> str: ...
    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def nbytes(self) -> int: ...
    def tobytes(self, stream: int = 0) -> bytes:
        """Waits for all earlier work on the stream (a number; 0 is the default stream), and returns the bytes.

        >>> with lockstep.use("cuda:emu"):
        ...     tensor.DeviceArray(4, "cuda:emu").tobytes().hex()
        '00000000'
        """
        ...
    def copy_from(self, data: Buffer, stream: int = 0) -> None:
        """Copies a buffer of the same length to the device, after all earlier work on the stream.

        >>> with lockstep.use("cuda:emu"):
        ...     array = tensor.DeviceArray(4, "cuda:emu")
        ...     array.copy_from(b"data")
        ...     array.tobytes()
        b'data'
        """
        ...
    def __dlpack__(
        self,
        *,
        stream: Any = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any: ...
    def __dlpack_device__(self) -> tuple[int, int]: ...
    @property
    def __cuda_array_interface__(self) -> dict[str, Any]: ...

def array_size(array: Any, stream: Any = None) -> tuple[int, list[int]]: ...
def synchronize() -> None:
    """Waits for the end of all work of `lockstep.tensor`. Raises RuntimeError if a device has failed.

    >>> tensor.synchronize()
    """
    ...
def tensor_batch(
    mode: str,
    seals: bool,
    key: Any,
    nonces: Any,
    data: Any,
    out: Any,
    tags: Any,
    status: Any,
    offsets: list[int] | None,
    stream: Any,
) -> None: ...

@final
class Keystream:
    def __new__(cls, key: Buffer, position: int) -> Keystream: ...
    position: int
    def at(self, position: int) -> Keystream: ...
    def bytes(self, size: int) -> bytes: ...
    def fill(self, array: Any, stream: Any = None) -> None: ...
    def floats(self, array: Any, kind: str) -> None: ...
    def integers(self, array: Any, low: int, last: int) -> None: ...

@final
class NumpyBits:
    def __new__(cls, key: Buffer, position: int) -> NumpyBits: ...
    @property
    def position(self) -> tuple[int, int]: ...
    def at(self, block: int, used: int) -> NumpyBits: ...
    def install(self, capsule: object) -> None: ...
    def set_position(self, block: int, used: int) -> None: ...

def normal_table() -> bytes: ...
