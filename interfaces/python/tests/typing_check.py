"""Uses of the package that type checkers must accept, and some uses that they must refuse. The file is only checked and never run."""

import io
from typing import assert_type

import numpy

import lockstep
from lockstep import aead, hazmat

cipher = aead.AESGCM(bytearray(32))
assert_type(cipher.encrypt(b"", memoryview(b""), None), bytes)
assert_type(cipher.encrypt_into(b"", numpy.zeros(4), b"", bytearray(20)), int)
assert_type(aead.AESCCM(b"", tag_length=8).decrypt(b"", b"", b""), bytes)
assert_type(aead.AESSIV(b"").encrypt(b"", [b"a"]), bytes)
assert_type(aead.XAES256GCM.generate_key(), bytes)
cipher.encrypt("text", b"", None)  # type: ignore[call-overload]  # pyright: ignore[reportArgumentType]
cipher.encrypt(b"", b"")  # type: ignore[call-overload]  # pyright: ignore[reportCallIssue]

assert_type(lockstep.open("file", key=b""), io.BufferedReader)
assert_type(lockstep.open("file", "wb", key="key-file"), lockstep.Writer)
assert_type(lockstep.encrypt_file("a", "b", b"", progress=print), int)
lockstep.open("file", identities=["a"], recipients=["b"])  # type: ignore[call-overload]  # pyright: ignore[reportCallIssue]

assert_type(hazmat.encrypt("CTR", b"", b"", b""), bytes)
lockstep.open("file", identities="a", passphrase="b")
lockstep.encrypt_file("a", "b", recipients="age1", progress=lambda done, total: None)
lockstep.encrypt_file("a", "b", recipients=b"age1")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
assert_type(lockstep.random.Generator(b"").position, int)
hazmat.encrypt("GCM", b"", b"")  # type: ignore[call-overload]  # pyright: ignore[reportArgumentType]

with lockstep.use("cpu", threads=1):
    assert_type(lockstep.devices()[0].kernels, tuple[str, ...])
