"""Compares batches with the results of the classes for each message."""

import numpy
import pytest
from conftest import data

import lockstep
from lockstep import aead
from lockstep.aead import decrypt_many, encrypt_many

MODES = {"AESGCM": 12, "AESGCMSIV": 12, "AESOCB3": 12, "AESCCM": 11, "XAES256GCM": 24, "AESEAX": 16, "AESSIV": None}


def one(kind, key, nonce, message, aad):
    """The encryption of one message by the class."""
    return kind(key).encrypt(message, [aad] if aad else []) if nonce is None else kind(key).encrypt(nonce, message, aad)


@pytest.mark.parametrize("name", MODES)
@pytest.mark.parametrize("count", [0, 1, 200])
def test_lists(name, count):
    kind, length = getattr(aead, name), MODES[name]
    sizes = [(i * 37) % 1500 for i in range(count)]
    keys = [data(32) for _ in sizes]
    nonces = None if length is None else [data(length) for _ in sizes]
    messages, aads = [data(size) for size in sizes], [data(size % 21) for size in sizes]
    encrypted = encrypt_many(kind, keys, nonces, messages, aads)
    if length is None:
        # SIV distinguishes an empty string of associated data from no string, so it gets a list with one string.
        expected = [kind(key).encrypt(message, [aad]) for key, message, aad in zip(keys, messages, aads)]
    else:
        expected = [one(kind, *args) for args in zip(keys, nonces, messages, aads)]
    assert encrypted == expected
    assert decrypt_many(kind, keys, nonces, encrypted, aads) == (messages, [True] * count)
    # Some messages are not authentic. One of them is shorter than a tag.
    if count:
        encrypted[0] = encrypted[0][:-1] + bytes([encrypted[0][-1] ^ 1])
        encrypted[count // 2] = b"short"
        plain, statuses = decrypt_many(kind, keys, nonces, encrypted, aads)
        wrong = {0, count // 2}
        assert statuses == [i not in wrong for i in range(count)]
        assert plain == [None if i in wrong else messages[i] for i in range(count)]


@pytest.mark.parametrize("is_opened", [False, True])
def test_a_batch_of_several_parts(is_opened):
    """A batch of GCM on one thread is processed in parts of 256 messages."""
    count, wrong, short = 700, {0, 255, 512, 699}, {256, 511}
    keys, nonces, aads = ([data(length) for _ in range(count)] for length in (32, 12, 5))
    plains = [data(i % 40) for i in range(count)]
    expected = [aead.AESGCM(*key).encrypt(*rest) for *key, rest in zip(keys, zip(nonces, plains, aads))]
    rows = [numpy.frombuffer(b"".join(strings), numpy.uint8).reshape(count, -1) for strings in (keys, nonces, aads)]
    with lockstep.use(threads=1):
        if not is_opened:
            assert encrypt_many(aead.AESGCM, keys, nonces, plains, aads) == expected
            ends = numpy.cumsum([0] + [len(plain) for plain in plains])
            output, _ = encrypt_many(aead.AESGCM, *rows[:2], b"".join(plains), rows[2], offsets=ends)
            assert bytes(output) == b"".join(expected)
            with pytest.raises(ValueError, match="key must be"):
                encrypt_many(aead.AESGCM, [*keys[:600], b"short", *keys[601:]], nonces, plains, aads)
            return
        for i in wrong:
            expected[i] = bytes([expected[i][0] ^ 1]) + expected[i][1:]
        for i in short:
            expected[i] = b"short"
        is_good = [i not in wrong | short for i in range(count)]
        opened = decrypt_many(aead.AESGCM, keys, nonces, expected, aads)
        assert opened == ([plain if good else None for plain, good in zip(plains, is_good)], is_good)
        ends = numpy.cumsum([0] + [len(message) for message in expected])
        output, starts, statuses = decrypt_many(aead.AESGCM, *rows[:2], b"".join(expected), rows[2], offsets=ends)
        assert list(statuses) == is_good
        for i in range(count):
            shown = bytes(output[starts[i] : starts[i + 1]])
            assert shown == plains[i] if is_good[i] else not any(shown), i


def test_a_shared_key_and_other_buffers(key):
    messages = [bytearray(data(1000)) for _ in range(50)]
    nonces = numpy.frombuffer(data(12 * 50), dtype=numpy.uint8).reshape(50, 12)
    cipher = aead.AESGCM(key)
    expected = [cipher.encrypt(nonce.tobytes(), message, b"aad") for nonce, message in zip(nonces, messages)]
    assert encrypt_many(aead.AESGCM, key, nonces, messages, b"aad") == expected
    assert encrypt_many(aead.AESGCM, bytearray(key), [memoryview(n.copy()) for n in nonces], tuple(messages), b"aad") == expected
    expected = [cipher.encrypt(nonce.tobytes(), message, None) for nonce, message in zip(nonces, messages)]
    assert encrypt_many(aead.AESGCM, key, nonces, messages) == expected
    assert encrypt_many(aead.AESGCM, key, nonces, messages, [None] * 50) == expected


@pytest.mark.parametrize("name", ["AESGCM", "AESSIV"])
def test_one_buffer_with_offsets(name, key):
    kind = getattr(aead, name)
    count = 100
    sizes = [(i * 53) % 700 for i in range(count)]
    offsets = numpy.concatenate([[3], 3 + numpy.cumsum(sizes)])
    buffer = numpy.frombuffer(data(int(offsets[-1]) + 5), dtype=numpy.uint8)
    nonces = None if MODES[name] is None else numpy.frombuffer(data(12 * count), dtype=numpy.uint8).reshape(count, 12)
    messages = [buffer[a:b].tobytes() for a, b in zip(offsets, offsets[1:])]
    expected = encrypt_many(kind, key, nonces, messages)

    output, ends = encrypt_many(kind, key, nonces, buffer, offsets=offsets)
    assert isinstance(output, numpy.ndarray) and output.dtype == numpy.uint8 and ends.dtype == numpy.int64
    assert [output[a:b].tobytes() for a, b in zip(ends, ends[1:])] == expected
    plain, starts, statuses = decrypt_many(kind, key, nonces, output, offsets=ends)
    assert statuses.dtype == numpy.bool_ and statuses.all() and len(statuses) == count
    assert plain.tobytes() == b"".join(messages) and list(starts) == [a - 3 for a in offsets]
    # The call also accepts `bytes` and a list of integers instead of types of numpy.
    output, ends = encrypt_many(kind, key, nonces, buffer.tobytes(), offsets=offsets.tolist())
    assert type(output) is bytearray and output == b"".join(expected)
    output[ends[7]] ^= 1
    plain, starts, statuses = decrypt_many(kind, key, nonces, output, offsets=ends)
    assert statuses == [i != 7 for i in range(count)]
    assert not any(plain[starts[7] : starts[8]]) and plain[: starts[7]] == b"".join(messages[:7])
    # A message that is shorter than a tag has no output.
    plain, starts, statuses = decrypt_many(kind, key, nonces if nonces is None else nonces[:1], bytes(9), offsets=[0, 9])
    assert (plain, starts, statuses) == (b"", [0, 0], [False])


def test_rows(key):
    rows = numpy.frombuffer(data(64 * 256), dtype=numpy.uint8).reshape(64, 256)
    keys = numpy.frombuffer(data(64 * 32), dtype=numpy.uint8).reshape(64, 32)
    nonces = numpy.frombuffer(data(64 * 12), dtype=numpy.uint8).reshape(64, 12)
    output = encrypt_many(aead.AESGCM, keys, nonces, rows)
    assert output.shape == (64, 272)
    for at in range(64):
        expected = aead.AESGCM(keys[at].tobytes()).encrypt(nonces[at].tobytes(), rows[at].tobytes(), None)
        assert output[at].tobytes() == expected
    output[5, 5] ^= 1
    plain, statuses = decrypt_many(aead.AESGCM, keys, nonces, output)
    assert plain.shape == rows.shape and statuses.tolist() == [at != 5 for at in range(64)]
    assert (plain[5] == 0).all() and (plain[6] == rows[6]).all()
    view = encrypt_many(aead.AESGCM, key, nonces, memoryview(rows.tobytes()).cast("B", (64, 256)))
    assert view.shape == (64, 272)


def test_long_messages_go_to_the_planner(key):
    messages, nonces = [data(3 << 20) for _ in range(3)], [data(12) for _ in range(3)]
    encrypted = encrypt_many(aead.AESGCM, key, nonces, messages)
    assert encrypted == [aead.AESGCM(key).encrypt(nonce, message, None) for nonce, message in zip(nonces, messages)]
    encrypted[1] = bytes(len(encrypted[1]))
    plain, statuses = decrypt_many(aead.AESGCM, key, nonces, encrypted)
    assert (plain, statuses) == ([messages[0], None, messages[2]], [True, False, True])


def test_ccm_with_short_tags(key):
    encrypted = encrypt_many(aead.AESCCM, key, [bytes(12)], [b"data"], tag_length=8)
    assert encrypted == [aead.AESCCM(key, 8).encrypt(bytes(12), b"data", None)]
    assert decrypt_many(aead.AESCCM, key, [bytes(12)], encrypted, tag_length=8) == ([b"data"], [True])


def test_bad_batches(key):
    nonces, messages = [bytes(12)] * 2, [b"a", b"b"]
    for error, call in [
        (ValueError, lambda: encrypt_many(aead.AESGCM, [key], nonces, messages)),
        (ValueError, lambda: encrypt_many(aead.AESGCM, key, nonces[:1], messages)),
        (ValueError, lambda: encrypt_many(aead.AESGCM, key, nonces, messages, [b""])),
        (ValueError, lambda: encrypt_many(aead.AESGCM, [key, key[:7]], nonces, messages)),
        (ValueError, lambda: encrypt_many(aead.AESGCM, key, [bytes(12), bytes(7)], messages)),
        (ValueError, lambda: encrypt_many(aead.AESGCM, key, None, messages)),
        # One nonce for all messages is refused.
        (TypeError, lambda: encrypt_many(aead.AESGCM, key, bytes(12), messages)),
        (TypeError, lambda: encrypt_many(aead.AESGCM, key, nonces, ["a", "b"])),
        (TypeError, lambda: encrypt_many(aead.AESGCM, key, nonces, b"ab")),
        (TypeError, lambda: encrypt_many(dict, key, nonces, messages)),
        (TypeError, lambda: encrypt_many(aead.AESGCM(key), key, nonces, messages)),
        (TypeError, lambda: encrypt_many("AESGCM", key, nonces, messages)),
        (TypeError, lambda: encrypt_many(type("AESGCM", (), {}), key, nonces, messages)),
        # None is not accepted as an empty message.
        (TypeError, lambda: encrypt_many(aead.AESGCM, key, nonces, [b"a", None])),
        (TypeError, lambda: encrypt_many(aead.AESSIV, key, [None, b""], messages)),
        (TypeError, lambda: encrypt_many(aead.AESGCM, key, nonces, messages, offsets=[0, 1, 2])),
        (ValueError, lambda: encrypt_many(aead.AESGCM, key, nonces, b"ab", offsets=[0, 2, 1])),
        (ValueError, lambda: encrypt_many(aead.AESGCM, key, nonces, b"ab", offsets=[0, 1, 3])),
        (ValueError, lambda: encrypt_many(aead.AESGCM, key, nonces, b"ab", offsets=[-1, 1, 2])),
        (ValueError, lambda: encrypt_many(aead.AESGCM, key, nonces, b"ab", offsets=[])),
        (BufferError, lambda: encrypt_many(aead.AESGCM, key, nonces, [b"a", memoryview(b"abcd")[::2]])),
    ]:
        with pytest.raises(error):
            call()


@pytest.mark.parametrize("name", MODES)
@pytest.mark.parametrize("length", [-1, 0, 1, 5, 15, 17, 2**40])
def test_a_part_of_a_tag_is_not_verified(key, name, length):
    """Shorter tags are refused: a tag of one byte could be forged in 256 attempts."""
    kind, nonces = getattr(aead, name), [bytes(MODES[name] or 0)]
    encrypted = encrypt_many(kind, key, nonces, [b"message"])
    assert decrypt_many(kind, key, nonces, encrypted) == ([b"message"], [True])
    shorter = [encrypted[0][: 7 + max(0, length)]]
    for call in (encrypt_many, decrypt_many):
        with pytest.raises(ValueError, match=f"{name} has no tags"):
            call(kind, key, nonces, shorter, tag_length=length)
    if 0 <= length < 2**40:
        # The native function makes the same check itself.
        with pytest.raises(ValueError, match=f"{name} has no tags"):
            lockstep._native.many_in_list(name, False, length, key, nonces, shorter, None)


def test_batches_on_a_named_kernel(key):
    nonces, messages = [data(12) for _ in range(20)], [data(100) for _ in range(20)]
    expected = encrypt_many(aead.AESGCM, key, nonces, messages)
    with lockstep.use(kernel="cpu/soft"):
        assert encrypt_many(aead.AESGCM, key, nonces, messages) == expected
