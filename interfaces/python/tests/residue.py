"""A program that uses keys and drops them. test_residue.py runs it and searches its memory for the keys.

residue.py FOLDER

Before each step, the program reads a byte from standard input. In a step it makes a key, uses the key with one function or class, drops
all objects and zeroes the key. Then it prints the name of the step and the length of the key. Keys are in bytearrays, because Python does
not wipe objects of the type bytes. For the same reason the program computes a key byte by byte and never stores it as text or bytes.
"""

import gc
import os
import sys

import numpy

import lockstep
import lockstep.parquet
import lockstep.random
import lockstep.safetensors.numpy
import lockstep.tensor
from lockstep import aead, hazmat

FOLDER = sys.argv[1] if __name__ == "__main__" else ""
# The data are not zeros. The ECB encryption of a block of zeros is the hash key H of GCM, which is one of the secrets that no output
# may contain.
SMALL, LARGE = bytearray(b"\x05" * 40), bytearray(b"\x05" * 300_000)
NONCE = b"n" * 12


def byte(step, index):
    """Returns a byte of the key of a step. test_residue.py computes the same keys."""
    value = (step + 1) * 0x9E3779B1 + (index + 1) * 0x85EBCA6B & 0xFFFFFFFF
    for _ in range(3):
        value = (value ^ value >> 15) * 0x2C1B3C6D & 0xFFFFFFFF
        value = (value ^ value >> 12) * 0x297A2D39 & 0xFFFFFFFF
    return value >> 24


def messages(cipher, key, nonce=NONCE):
    made = cipher(key)
    for data in (SMALL, LARGE):
        sealed = made.encrypt(nonce, data, b"aad")
        made.decrypt(nonce, sealed, b"aad")
        made.encrypt_into(nonce, data, None, bytearray(len(data) + 16))
    try:
        made.decrypt(nonce, sealed, b"")
    except lockstep.InvalidTag:
        pass


def siv(key):
    made = aead.AESSIV(key)
    for data in (SMALL, LARGE):
        made.decrypt(made.encrypt(data, [b"aad"]), [b"aad"])


def many(cipher, key, nonce=NONCE):
    for data in (SMALL, LARGE):
        sealed = aead.encrypt_many(cipher, key, [nonce] * 9, [data] * 9)
        aead.decrypt_many(cipher, key, [nonce] * 9, sealed)
    aead.encrypt_many(cipher, [key] * 9, [nonce] * 9, [SMALL] * 9)


def raw(mode, key):
    iv = None if mode == "ECB" else bytes(16)
    for data in (LARGE[:48], LARGE[: 1 << 18]):
        hazmat.decrypt(mode, key, hazmat.encrypt(mode, key, data, iv), iv)


def wrap(key):
    hazmat.aes_key_unwrap(key, hazmat.aes_key_wrap(key, bytes(32)))
    hazmat.aes_key_unwrap_with_padding(key, hazmat.aes_key_wrap_with_padding(key, bytes(31)))
    hazmat.cmac(key, SMALL)
    hazmat.gmac(key, NONCE, SMALL)


def hctr2(key):
    for data in (SMALL, LARGE):
        hazmat.hctr2_decrypt(key, b"tweak", hazmat.hctr2_encrypt(key, b"tweak", data))


def files(key):
    path = os.path.join(FOLDER, "file")
    with lockstep.open(path, "wb", key=key) as file:
        file.write(LARGE)
    with lockstep.open(path, key=key) as file:
        file.read()
        file.seek(70_000)
        file.read(10)
    lockstep.encrypt_file(path, path + ".enc", key, overwrite=True)
    lockstep.decrypt_file(path + ".enc", path + ".dec", key, overwrite=True)


def key_file(key):
    path = os.path.join(FOLDER, "key")
    with open(path, "wb", buffering=0) as file:
        file.write(b"lockstep-key-256 ")
        for value in key:
            file.write(b"%02x" % value)
    lockstep.encrypt_file(path, path + ".enc", path, overwrite=True)
    with lockstep.open(path + ".enc", key=path) as file:
        file.read(0)


def generator(key):
    # The position is 1, because block 0 of the keystream is the hash key H of GCM, which is one of the secrets.
    made = lockstep.random.Generator(key, 1)
    made.bytes(48)
    made.bytes(8 << 20)
    made.uniform((1000,))
    made.normal((1000,), "float32")
    made.integers(0, 10, (1000,))
    made.jumped().bytes(10)


def bit_generator(key):
    made = numpy.random.Generator(lockstep.random.BitGenerator(key, 1))
    made.random(1000)
    made.bit_generator.jumped().advance(3)


def arrays(key):
    data, tags = numpy.zeros(300, numpy.uint8), numpy.zeros(16, numpy.uint8)
    sealed = lockstep.tensor.seal(key, NONCE, data, tags=tags)
    lockstep.tensor.open(key, NONCE, sealed.data, sealed.tags)


def parquet(key):
    plain, path = os.path.join(FOLDER, "table.parquet"), os.path.join(FOLDER, "table.encrypted")
    lockstep.parquet.encrypt(plain, path, footer_key=key, overwrite=True)
    with lockstep.parquet.open(path, {"footer": key}) as file:
        file.read()


def parquet_modules(key):
    # The modules are not authentic, so GCM refuses them. CTR has no tags and decrypts them.
    module = (28 + 16).to_bytes(4, "little") + bytearray(b"\x05" * 44)
    lockstep.parquet.decrypt_modules([module] * 3, key, [b"aad"] * 3)
    lockstep.parquet.decrypt_modules([module] * 3, [key] * 3, [b""] * 3, cipher="CTR")


def safetensors(key):
    path = os.path.join(FOLDER, "weights")
    lockstep.safetensors.numpy.save_file({"a": numpy.zeros(100_000, numpy.uint8)}, path, key=key)
    lockstep.safetensors.numpy.load_file(path, key=key)


STEPS = [
    *[(f"{cipher.__name__}, {8 * size} bits", size, lambda key, cipher=cipher: messages(cipher, key))
      for cipher in (aead.AESGCM, aead.AESGCMSIV, aead.AESOCB3, aead.AESCCM) for size in (16, 32)],
    ("AESEAX", 32, lambda key: messages(aead.AESEAX, key, bytes(16))),
    ("XAES256GCM", 32, lambda key: messages(aead.XAES256GCM, key, bytes(24))),
    ("AESSIV", 64, siv),
    *[(f"many {cipher.__name__}", 32, lambda key, cipher=cipher, size=size: many(cipher, key, bytes(size)))
      for cipher, size in ((aead.AESGCM, 12), (aead.AESGCMSIV, 12), (aead.AESOCB3, 12), (aead.AESCCM, 12), (aead.AESEAX, 16),
                           (aead.XAES256GCM, 24))],
    *[(f"hazmat {mode}", 32, lambda key, mode=mode: raw(mode, key)) for mode in ("ECB", "CBC", "CFB", "OFB", "CTR", "XTS", "CBC-CS3")],
    ("hazmat key wrap and MACs", 32, wrap),
    ("hazmat HCTR2", 32, hctr2),
    ("files", 32, files),
    ("key file", 32, key_file),
    ("Generator", 32, generator),
    ("BitGenerator", 32, bit_generator),
    ("tensor", 16, arrays),
    ("parquet", 32, parquet),
    ("parquet modules", 32, parquet_modules),
    ("safetensors", 32, safetensors),
]  # fmt: skip


def run(number, size, use):
    key = bytearray(size)
    for index in range(size):
        key[index] = byte(number, index)
    use(key)
    for index in range(size):
        key[index] = 0


def main():
    alive = None
    gc.collect()
    for number, (name, size, use) in enumerate(STEPS):
        os.read(0, 1)
        run(number, size, use)
        os.write(1, f"{size} {name}\n".encode())
    # This proves that the search works: the key of this cipher is still in use, so the search must find it.
    os.read(0, 1)
    key = bytearray(32)
    for index in range(32):
        key[index] = byte(len(STEPS), index)
    alive = aead.AESGCM(key)
    for index in range(32):
        key[index] = 0
    os.write(1, b"32 control\n")
    os.read(0, 1)
    return alive is None


if __name__ == "__main__":
    sys.exit(main())
