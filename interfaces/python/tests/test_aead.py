"""Compares the classes of `lockstep.aead` with those of pyca cryptography."""

import inspect

import numpy
import pytest
from conftest import data
from cryptography.exceptions import InvalidTag as PycaInvalidTag
from cryptography.hazmat.primitives.ciphers import aead as pyca

import lockstep
from lockstep import aead

# The lengths of keys and the lengths of nonces that are tested for each mode, in bytes.
MODES = {
    "AESGCM": ((16, 24, 32), (8, 12, 13, 16, 128)),
    "AESGCMSIV": ((16, 32), (12,)),
    "AESOCB3": ((16, 24, 32), (12, 13, 14, 15)),
    "AESCCM": ((16, 24, 32), (7, 11, 13)),
    "AESSIV": ((32, 48, 64), (None,)),
}
# Sizes in bytes. Some are close to the size of a block, to the width of a kernel, or to the size from which the interpreter lock is
# released. The last ones are so large that the work is divided among threads.
SIZES = [0, 1, 15, 16, 17, 255, 1024, (16 << 10) - 3, (16 << 10) + 1, 100_003, (3 << 20) + 7]


def arguments(nonce, message, aad):
    """The arguments of a call. SIV gets no nonce, and gets its associated data as a list."""
    return (message, aad) if nonce is None else (data(nonce), message, aad)


@pytest.mark.parametrize("name", MODES)
def test_pyca_computes_the_same(name):
    keys, nonces = MODES[name]
    for key in map(data, keys):
        ours, theirs = getattr(aead, name)(key), getattr(pyca, name)(key)
        for size in SIZES:
            for nonce in nonces:
                if name == "AESCCM" and size >= 1 << (8 * (15 - nonce)):
                    continue
                choices = [None, [], [b""], [data(3), data(40)]] if nonce is None else [None, b"", data(20), data(70_000)]
                for aad in choices if size in (0, 17) else choices[-1:]:
                    call = arguments(nonce, data(size), aad)
                    encrypted = ours.encrypt(*call)
                    assert type(encrypted) is bytes
                    assert encrypted == theirs.encrypt(*call), (size, nonce, aad)
                    header = call[:-2]
                    assert ours.decrypt(*header, encrypted, aad) == call[-2]
                    # One bit of the first or of the last byte is changed.
                    for at in (0, -1):
                        wrong = bytearray(encrypted)
                        wrong[at] ^= 1
                        with pytest.raises(lockstep.InvalidTag):
                            ours.decrypt(*header, wrong, aad)


def test_ccm_has_every_length_of_tag(key):
    for tag in (4, 6, 8, 10, 12, 14, 16):
        ours, theirs = aead.AESCCM(key, tag), pyca.AESCCM(key, tag_length=tag)
        nonce, message = data(12), data(100)
        encrypted = ours.encrypt(nonce, message, b"aad")
        assert encrypted == theirs.encrypt(nonce, message, b"aad")
        assert ours.decrypt(nonce, encrypted, b"aad") == message


def test_xaes_has_the_published_vectors():
    # The two vectors of the specification (C2SP, XAES-256-GCM). The Rust tests have the accumulated vectors.
    nonce = b"ABCDEFGHIJKLMNOPQRSTUVWX"
    vectors = [
        (b"\x01" * 32, b"", "ce546ef63c9cc60765923609b33a9a1974e96e52daf2fcf7075e2271"),
        (b"\x03" * 32, b"c2sp.org/XAES-256-GCM", "986ec1832593df5443a179437fd083bf3fdb41abd740a21f71eb769d"),
    ]
    for key, aad, expected in vectors:
        cipher = aead.XAES256GCM(key)
        encrypted = cipher.encrypt(nonce, b"XAES-256-GCM", aad)
        assert encrypted.hex() == expected
        assert cipher.decrypt(nonce, encrypted, aad) == b"XAES-256-GCM"
        with pytest.raises(ValueError):
            cipher.encrypt(nonce[:23], b"", aad)
    assert len(aead.XAES256GCM.generate_key()) == 32


@pytest.mark.parametrize("name", MODES)
def test_into_a_buffer(name):
    keys, (nonce, *_) = MODES[name]
    cipher = getattr(aead, name)(data(keys[0]))
    for size in (0, 5, 1000, 70_000 if name != "AESCCM" else 60_000, 3 << 20):
        if name == "AESCCM" and size > 1 << 20:
            nonce = 11
        aad = None
        call = arguments(nonce, data(size), aad)
        expected = cipher.encrypt(*call)
        output = bytearray(size + 16)
        assert cipher.encrypt_into(*call, output) == size + 16
        assert output == expected
        back = numpy.zeros(size, dtype=numpy.uint8)
        assert cipher.decrypt_into(*call[:-2], output, aad, back) == size
        assert back.tobytes() == call[-2]
        # The plaintext and the ciphertext are at the same addresses, so each call works in place.
        start = 16 if name == "AESSIV" else 0
        memory = memoryview(bytearray(size + 16))
        body = memory[start : start + size]
        body[:] = call[-2]
        cipher.encrypt_into(*call[:-2], body, aad, memory)
        assert memory == expected
        cipher.decrypt_into(*call[:-2], memory, aad, body)
        assert body == call[-2]
        # If the tag is wrong, the output buffer contains zeros and no plaintext.
        output[start + size - 1 if size else -1] ^= 1
        for buffer in (bytearray(b"x" * size), memoryview(output)[start : start + size]):
            with pytest.raises(lockstep.InvalidTag):
                cipher.decrypt_into(*call[:-2], output, aad, buffer)
            assert bytes(buffer) == bytes(size)


def test_memory_that_overlaps_in_part_is_refused(key):
    cipher = aead.AESGCM(key)
    memory = memoryview(bytearray(200))
    with pytest.raises(ValueError, match="overlaps"):
        cipher.encrypt_into(bytes(12), memory[1:101], None, memory[:116])
    with pytest.raises(ValueError, match="overlaps"):
        cipher.encrypt_into(memory[:12], bytes(100), None, memory[:116])
    with pytest.raises(ValueError, match="overlaps"):
        cipher.encrypt_into(bytes(12), bytes(100), memory[110:120], memory[:116])
    with pytest.raises(ValueError, match="overlaps"):
        cipher.decrypt_into(bytes(12), memory[:116], None, memory[4:104])
    with pytest.raises(ValueError, match="overlaps"):
        aead.AESSIV(key).encrypt_into(memory[0:100], None, memory[:116])


def test_any_contiguous_buffer_is_taken(key):
    cipher = aead.AESGCM(bytearray(key))
    nonce, message, aad = data(12), data(64), data(8)
    expected = cipher.encrypt(nonce, message, aad)
    array = numpy.frombuffer(message, dtype=numpy.float32).reshape(4, 4)
    for buffer in (bytearray(message), memoryview(message), array, memoryview(message).cast("H")):
        assert cipher.encrypt(memoryview(nonce), buffer, numpy.frombuffer(aad, dtype=numpy.uint8)) == expected
    for buffer in (array[:, ::2], array.T, memoryview(message)[::2]):
        with pytest.raises((BufferError, ValueError)):
            cipher.encrypt(nonce, buffer, aad)


def outcome(call, invalid):
    """The type of the exception of a call, or None."""
    try:
        call()
    except invalid:
        return "InvalidTag"
    except Exception as error:  # noqa: BLE001: every exception is compared
        return type(error).__name__
    return None


def bad_calls(module, name, invalid):
    """The outcome of many calls, most of them with a bad argument."""
    kind = getattr(module, name)
    key = bytes(MODES[name][0][0])
    cipher = kind(key)
    found = {}

    def record(title, call):
        assert title not in found
        found[title] = outcome(call, invalid)

    for title, given in {
        "7 bytes": bytes(7), "33": bytes(33), "0": b"", "text": "x" * 32, "none": None, "number": 32, "list": [1] * 32,
        "bytearray": bytearray(key), "strided": memoryview(bytes(2 * len(key)))[::2],
    }.items():  # fmt: skip
        record(f"key {title}", lambda given=given: kind(given))
    record("no key", lambda: kind())
    record("key by name", lambda: kind(key=key))
    for given in (0, 17, 128, 256, 512, "a", None, 128.0, -1, 1 << 70):
        record(f"bit_length {given}", lambda given=given: kind.generate_key(given))
    record("no bit_length", lambda: kind.generate_key())
    record("bit_length by name", lambda: kind.generate_key(bit_length=256))

    message, nonce = bytes(20), bytes(12)
    if name == "AESSIV":
        front, aads = (), {"none": None, "empty": [], "tuple": (b"a",), "text": ["a"], "bytes": b"abc", "number": [1]}
    else:
        front, aads = (nonce,), {"none": None, "text": "a", "list": [b"a"], "number": 1, "array": bytearray(3)}
        for size in (0, 1, 6, 7, 8, 11, 12, 13, 14, 15, 16, 128, 129):
            for method in ("encrypt", "decrypt"):
                call = lambda size=size, method=method: getattr(cipher, method)(bytes(size), message, None)  # noqa: E731
                record(f"{method} nonce of {size}", call)
        for given in ("text", None, 5):
            record(f"nonce {given}", lambda given=given: cipher.encrypt(given, message, None))
    for title, given in aads.items():
        record(f"encrypt aad {title}", lambda given=given: cipher.encrypt(*front, message, given))
        record(f"decrypt aad {title}", lambda given=given: cipher.decrypt(*front, message, given))
    for title, given in {"text": "a", "none": None, "list": [1], "strided": memoryview(bytes(40))[::2]}.items():
        for method in ("encrypt", "decrypt"):
            call = lambda given=given, method=method: getattr(cipher, method)(*front, given, None)  # noqa: E731
            record(f"{method} data {title}", call)
    record("no aad", lambda: cipher.encrypt(*front, message))
    record("too many", lambda: cipher.encrypt(*front, message, None, None))
    record("by name", lambda: cipher.encrypt(*front, data=message, associated_data=None))
    record("by a wrong name", lambda: cipher.encrypt(*front, message, aad=None))
    for size in (0, 1, 15, 16, 17):
        record(f"decrypt {size}", lambda size=size: cipher.decrypt(*front, bytes(size), None))
    for title, buffer in {
        "short": bytearray(35), "long": bytearray(37), "right": bytearray(36), "read-only": bytes(36), "none": None,
        "text": "x" * 36, "strided": memoryview(bytearray(72))[::2],
    }.items():  # fmt: skip
        record(f"encrypt_into {title}", lambda buffer=buffer: cipher.encrypt_into(*front, message, None, buffer))
    for title, buffer in {
        "short": bytearray(3), "long": bytearray(5), "right": bytearray(4), "read-only": bytes(4), "none": None,
    }.items():  # fmt: skip
        record(f"decrypt_into {title}", lambda buffer=buffer: cipher.decrypt_into(*front, message, None, buffer))
    record("decrypt_into of 5", lambda: cipher.decrypt_into(*front, bytes(5), None, bytearray(3)))
    return found


@pytest.mark.parametrize("name", MODES)
def test_bad_calls_raise_what_pyca_raises(name):
    theirs = bad_calls(pyca, name, PycaInvalidTag)
    ours = bad_calls(aead, name, lockstep.InvalidTag)
    assert {"TypeError", "ValueError", "InvalidTag", "BufferError", None} <= set(theirs.values()), "the calls test little"
    assert ours == theirs


def test_bad_lengths_of_ccm_tags():
    def all_of(kind):
        lengths = (0, 2, 3, 4, 5, 15, 16, 17, 18, "a", None, True, -4, 16.0)
        return {length: outcome(lambda length=length: kind(bytes(16), length), ()) for length in lengths}

    assert all_of(aead.AESCCM) == all_of(pyca.AESCCM)
    # A nonce of 13 bytes allows at most 65535 bytes of data. The behaviour for longer data is not compared with pyca's, which raises
    # InternalError.
    with pytest.raises(ValueError):
        aead.AESCCM(bytes(16)).encrypt(bytes(13), bytes(65536), None)
    with pytest.raises(lockstep.InvalidTag):
        aead.AESCCM(bytes(16)).decrypt(bytes(13), bytes(65536 + 16), None)


def test_siv_takes_126_strings_and_refuses_more():
    cipher = aead.AESSIV(bytes(32))
    many = [bytes([i]) for i in range(127)]
    assert cipher.encrypt(b"data", many[:126]) == pyca.AESSIV(bytes(32)).encrypt(b"data", many[:126])
    # RFC 5297, section 7, limits the number of strings; pyca does not check this.
    with pytest.raises(ValueError):
        cipher.encrypt(b"data", many)


@pytest.mark.parametrize("name", [*MODES, "XAES256GCM"])
def test_classes_are_documented(name):
    kind = getattr(aead, name)
    assert kind.__module__ == "lockstep.aead"
    assert "byte" in kind.__doc__
    for method in ("encrypt", "decrypt", "encrypt_into", "decrypt_into", "generate_key"):
        assert getattr(kind, method).__doc__, method
    if hasattr(pyca, name):
        for method in ("encrypt", "decrypt", "encrypt_into", "decrypt_into"):
            of = [str(inspect.signature(getattr(getattr(module, name), method))) for module in (aead, pyca)]
            assert of[0] == of[1]


def test_keys_are_not_printed(key):
    assert key.hex() not in repr(aead.AESGCM(key))
    assert lockstep.InvalidTag.__module__ == "lockstep"
