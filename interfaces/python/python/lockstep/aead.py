"""Authenticated encryption, with the names and the order of arguments of pyca cryptography.

Every argument that holds bytes may be any object with a contiguous buffer: bytes, bytearray, memoryview, a numpy array of any
type. Calls on more than 16 KiB release the interpreter lock, and calls on megabytes use all cores. The bytes of a mutable
buffer must not change during a call.

Wrong types raise TypeError, wrong lengths ValueError, and data that are not authentic `lockstep.InvalidTag`. If a buffer is not
contiguous, its owner raises the exception: ValueError for numpy, and BufferError for others.
"""

from ._batches import decrypt_many, encrypt_many
from ._native import AESCCM, AESEAX, AESGCM, AESGCMSIV, AESOCB3, AESSIV, XAES256GCM

__all__ = ["AESCCM", "AESEAX", "AESGCM", "AESGCMSIV", "AESOCB3", "AESSIV", "XAES256GCM", "decrypt_many", "encrypt_many"]
