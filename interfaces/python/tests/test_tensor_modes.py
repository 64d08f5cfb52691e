"""Tests with arrays of other libraries and with modes other than GCM. lockstep.tensor, lockstep.hazmat and the batches of lockstep.aead
are compared with pyca."""

import signal

import numpy
import pytest
from conftest import CudaArray, Dlpack, data, on_device
from cryptography.hazmat.primitives.ciphers import aead as pyca

import lockstep
from lockstep import aead, hazmat, tensor

# Each entry has a class, and the lengths in bytes of its key and its nonce.
MODES = [("AESGCM", 16, 12), ("AESGCMSIV", 32, 12), ("AESOCB3", 24, 12), ("AESCCM", 32, 12), ("XAES256GCM", 32, 24)]
COUNT, SIZE = 7, 333


def rows(count, size):
    return numpy.frombuffer(data(count * size), numpy.uint8).reshape(count, size)


def sealed(mode, keys, nonces, messages):
    """Ciphertexts and tags that pyca computes. pyca lacks XAES-256-GCM, so these are computed by lockstep's class, which other tests
    check."""
    kind = getattr(pyca, mode, None) or getattr(aead, mode)
    result = [kind(bytes(key)).encrypt(bytes(nonce), bytes(message), None) for key, nonce, message in zip(keys, nonces, messages)]
    return b"".join(message[:-16] for message in result), b"".join(message[-16:] for message in result)


@pytest.mark.parametrize(("mode", "key_size", "nonce_size"), MODES)
@pytest.mark.parametrize("own_keys", [False, True])
def test_batches_on_the_host(mode, key_size, nonce_size, own_keys):
    keys, nonces, plain = rows(COUNT if own_keys else 1, key_size), rows(COUNT, nonce_size), rows(COUNT, SIZE)
    kind, key = getattr(aead, mode), keys if own_keys else keys[0]
    result = tensor.seal(key, nonces, plain, mode=kind)
    expected = sealed(mode, keys if own_keys else [keys[0]] * COUNT, nonces, plain)
    assert (bytes(result.data), bytes(result.tags)) == expected
    tags = bytearray(result.tags)
    tags[16 * 5] ^= 1
    opened = tensor.open(key, nonces, result.data, tags, mode=kind)
    assert bytes(opened.status) == bytes([1, 1, 1, 1, 1, 2, 1])
    assert bytes(opened.data) == plain[:5].tobytes() + bytes(SIZE) + plain[6:].tobytes()


def test_a_batch_in_place_is_not_interrupted():
    """A batch that works in place is not interrupted: an interruption would leave the only copy of the data partly encrypted."""
    count = 96
    key, nonces, plain = data(32), rows(count, 12), numpy.zeros((count, 1 << 20), numpy.uint8)
    expected, work = bytes(tensor.seal(key, nonces, plain).data), plain.copy()

    def stop(_number, _frame):
        raise ZeroDivisionError

    before = signal.signal(signal.SIGALRM, stop)
    try:
        with pytest.raises(ZeroDivisionError):
            signal.setitimer(signal.ITIMER_REAL, 0.001)
            tensor.seal(key, nonces, work, out=work)
            signal.pause()
    finally:
        signal.signal(signal.SIGALRM, before)
    # If the signal arrives before the call, the call does not run and the data are unchanged. Otherwise all data are encrypted.
    assert work.tobytes() in (expected, plain.tobytes())


@pytest.mark.parametrize(("mode", "key_size", "nonce_size"), MODES[1:])
@pytest.mark.parametrize("own_keys", [False, True])
@pytest.mark.parametrize("wrap", [lambda array: array, Dlpack, CudaArray])
@pytest.mark.parametrize("host", [False, True])
def test_batches_on_a_device(emulator, mode, key_size, nonce_size, own_keys, wrap, host):
    keys, nonces, plain = rows(COUNT if own_keys else 1, key_size), rows(COUNT, nonce_size), rows(COUNT, SIZE)
    expected = sealed(mode, keys if own_keys else [keys[0]] * COUNT, nonces, plain)
    kind, key, given = getattr(aead, mode), keys if own_keys else keys[0], nonces
    if not host:
        key, given = on_device(key, key.shape), on_device(nonces, nonces.shape)
    result = tensor.seal(key, given, wrap(on_device(plain)), mode=kind)
    assert (result.data.tobytes(), result.tags.tobytes()) == expected
    tensor.check(result.status)
    tags = bytearray(result.tags.tobytes())
    tags[16 * 3 + 1] ^= 1
    opened = tensor.open(key, given, result.data, on_device(tags), out=result.data, mode=kind)
    assert opened.status.tobytes() == bytes([1, 1, 1, 2, 1, 1, 1])
    assert result.data.tobytes() == plain[:3].tobytes() + bytes(SIZE) + plain[4:].tobytes()
    with pytest.raises(lockstep.InvalidTag, match="message 3$"):
        tensor.check(opened.status)


def test_offsets_and_empty_messages_on_a_device(emulator):
    key, nonces, plain, offsets = data(32), rows(4, 12), data(500), [7, 100, 100, 481, 481]
    device = tensor.seal(key, nonces, on_device(plain), offsets=offsets, mode=aead.AESGCMSIV)
    messages = [plain[a:b] for a, b in zip(offsets, offsets[1:])]
    expected = sealed("AESGCMSIV", [key] * 4, nonces, messages)
    assert (device.data.tobytes()[7:481], device.tags.tobytes()) == expected
    opened = tensor.open(key, nonces, device.data, device.tags, offsets=offsets, mode=aead.AESGCMSIV)
    assert opened.status.tobytes() == b"\1" * 4 and opened.data.tobytes()[7:481] == plain[7:481]


def test_bad_modes():
    key, nonces, plain = data(32), rows(2, 12), bytes(20)
    for error, arguments in [
        (TypeError, {"mode": "AESGCM"}),
        (TypeError, {"mode": int}),
        (ValueError, {"mode": aead.AESSIV}),
        (ValueError, {"mode": aead.XAES256GCM}),
        (ValueError, {"mode": aead.AESGCMSIV, "key": data(24)}),
        (ValueError, {"mode": aead.AESOCB3, "nonces": rows(2, 15)}),
    ]:
        with pytest.raises(error):
            tensor.seal(**{"key": key, "nonces": nonces, "data": plain, **arguments})
    # A message that one mode has encrypted is not authentic in another mode.
    result = tensor.seal(key, nonces, plain, mode=aead.AESGCMSIV)
    assert bytes(tensor.open(key, nonces, result.data, result.tags).status) == b"\2\2"


RAW = [("ECB", 16), ("CBC", 32), ("PCBC", 16), ("CFB", 24), ("CFB8", 16), ("OFB", 16), ("CTR", 32), ("XTS", 64)]


def iv_of(mode):
    return None if mode == "ECB" else data(16)


@pytest.mark.parametrize(("mode", "size"), [*RAW, ("CBC-CS3", 32), ("CFB1", 16)])
def test_raw_modes_on_the_host(mode, size):
    key, iv, plain = data(size), iv_of(mode), data(480)
    expected = hazmat.encrypt(mode, key, plain, iv)
    result = hazmat.encrypt(mode, key, Dlpack(numpy.frombuffer(plain, numpy.float64)), iv)
    assert bytes(result) == expected
    assert bytes(hazmat.decrypt(mode, key, Dlpack(result), iv)) == plain
    place = numpy.frombuffer(bytearray(plain), numpy.uint8)
    assert hazmat.encrypt_into(mode, key, Dlpack(place), Dlpack(place), iv) == 480
    assert place.tobytes() == expected
    with pytest.raises(ValueError):
        hazmat.encrypt_into(mode, key, Dlpack(place[:320]), Dlpack(place[16:336]), iv)
    with pytest.raises(ValueError, match="480 bytes"):
        hazmat.encrypt_into(mode, key, Dlpack(place), bytearray(479), iv)


@pytest.mark.parametrize(("mode", "size"), RAW)
@pytest.mark.parametrize("wrap", [lambda array: array, Dlpack, CudaArray])
def test_raw_modes_on_a_device(emulator, mode, size, wrap):
    key, iv = data(size), iv_of(mode)
    for length in (480,) if mode in ("ECB", "CBC", "PCBC") else (480, 333):
        plain = data(length)
        expected = hazmat.encrypt(mode, key, plain, iv)
        result = hazmat.encrypt(mode, key, wrap(on_device(plain)), iv)
        assert isinstance(result, tensor.DeviceArray) and result.tobytes() == expected
        assert hazmat.decrypt_into(mode, key, wrap(result), wrap(result), iv) == length
        assert result.tobytes() == plain
    with pytest.raises(ValueError, match="same device"):
        hazmat.encrypt_into(mode, key, result, bytearray(length), iv)


def test_raw_modes_that_no_device_has(emulator, key):
    with pytest.raises(ValueError, match="stealing"):
        hazmat.encrypt("CBC-CS1", key, on_device(bytes(32)), bytes(16))


def test_encrypt_many_takes_arrays_on_the_host_only(emulator, key):
    nonces, plain = rows(COUNT, 12), rows(COUNT, SIZE)
    expected = aead.encrypt_many(aead.AESGCMSIV, key, nonces, plain)
    made = aead.encrypt_many(aead.AESGCMSIV, key, Dlpack(nonces), Dlpack(plain))
    assert bytes(made) == expected.tobytes()
    opened, authentic = aead.decrypt_many(aead.AESGCMSIV, key, Dlpack(nonces), Dlpack(expected))
    assert bytes(opened) == plain.tobytes() and list(authentic) == [True] * COUNT
    with pytest.raises(ValueError, match="on a device"):
        aead.encrypt_many(aead.AESGCMSIV, key, nonces, on_device(plain, plain.shape))
