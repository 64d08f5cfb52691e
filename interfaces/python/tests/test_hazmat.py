"""Compares `lockstep.hazmat` with pyca cryptography and with published vectors."""

import pytest
from conftest import data
from cryptography.hazmat.decrepit.ciphers import modes as old_modes
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.cmac import CMAC
from cryptography.hazmat.primitives import keywrap

import lockstep
from lockstep import hazmat

SIZES = [0, 16, 4096, (2 << 20) + 32]


def pyca(mode, key, plain, iv):
    kind = getattr(old_modes if mode in ("CFB", "CFB8", "OFB") else modes, mode)
    encryptor = Cipher(algorithms.AES(key), kind() if iv is None else kind(iv)).encryptor()
    return encryptor.update(plain) + encryptor.finalize()


@pytest.mark.parametrize("mode", ["ECB", "CBC", "CFB", "CFB8", "OFB", "CTR", "XTS"])
def test_pyca_computes_the_same(mode):
    for length in (32, 64) if mode == "XTS" else (16, 24, 32):
        key, iv = data(length), None if mode == "ECB" else data(16)
        whole = mode in ("ECB", "CBC")
        for size in SIZES if whole else [*SIZES, 17, 1003]:
            if mode == "XTS" and size < 16 or mode == "CFB8" and size > 5000:
                continue
            plain = data(size)
            encrypted = hazmat.encrypt(mode, key, plain, iv)
            assert encrypted == pyca(mode, key, plain, iv), (mode, size)
            assert hazmat.decrypt(mode, key, encrypted, iv) == plain
            buffer = bytearray(plain)
            assert hazmat.encrypt_into(mode, key, buffer, buffer, iv) == size
            assert buffer == encrypted
            other = bytearray(size)
            hazmat.decrypt_into(mode, key, encrypted, other, iv)
            assert other == plain


def test_modes_that_pyca_lacks(key):
    iv, plain = data(16), data(48)
    for mode in ("PCBC", "CFB1", "CBC-CS1", "CBC-CS2", "CBC-CS3"):
        assert hazmat.decrypt(mode, key, hazmat.encrypt(mode, key, plain, iv), iv) == plain
    cbc = hazmat.encrypt("CBC", key, plain, iv)
    # For data of whole blocks, the addendum to SP 800-38A defines that CS1 and CS2 equal CBC, and that CS3 swaps the last two blocks.
    assert hazmat.encrypt("CBC-CS1", key, plain, iv) == cbc == hazmat.encrypt("CBC-CS2", key, plain, iv)
    assert hazmat.encrypt("CBC-CS3", key, plain, iv) == cbc[:16] + cbc[32:] + cbc[16:32]
    for size in (16, 17, 31, 1000, 100_000):
        message = data(size)
        encrypted = hazmat.hctr2_encrypt(key, b"tweak", message)
        assert len(encrypted) == size and encrypted != message
        assert hazmat.hctr2_decrypt(key, b"tweak", encrypted) == message
        assert hazmat.hctr2_decrypt(key, b"other", encrypted) != message


def test_macs_and_wrapped_keys(key):
    for size in (0, 1, 16, 100, 100_000):
        message, nonce = data(size), data(12)
        mac = CMAC(algorithms.AES(key))
        mac.update(message)
        assert hazmat.cmac(key, message) == mac.finalize()
        assert hazmat.gmac(key, nonce, message) == AESGCM(key).encrypt(nonce, b"", message)
    secret = data(40)
    wrapped = hazmat.aes_key_wrap(key, secret)
    assert wrapped == keywrap.aes_key_wrap(key, secret)
    assert hazmat.aes_key_unwrap(key, wrapped) == secret
    for size in (1, 8, 9, 33):
        wrapped = hazmat.aes_key_wrap_with_padding(key, secret[:size])
        assert wrapped == keywrap.aes_key_wrap_with_padding(key, secret[:size])
        assert hazmat.aes_key_unwrap_with_padding(key, wrapped) == secret[:size]
    for unwrap in (hazmat.aes_key_unwrap, hazmat.aes_key_unwrap_with_padding):
        with pytest.raises(lockstep.InvalidTag):
            unwrap(key, bytes(40))
        with pytest.raises(ValueError):
            unwrap(key, bytes(41))


def test_bad_calls(key):
    for error, call in [
        (ValueError, lambda: hazmat.encrypt("CBC", key, bytes(15), bytes(16))),
        (ValueError, lambda: hazmat.encrypt("CBC", key, bytes(16), bytes(15))),
        (ValueError, lambda: hazmat.encrypt("CBC", key, bytes(16))),
        (ValueError, lambda: hazmat.encrypt("ECB", key, bytes(16), bytes(16))),
        (ValueError, lambda: hazmat.encrypt("GCM", key, bytes(16), bytes(16))),
        (ValueError, lambda: hazmat.encrypt("CTR", key[:20], bytes(16), bytes(16))),
        (ValueError, lambda: hazmat.encrypt("XTS", bytes(32), bytes(16), bytes(16))),
        (ValueError, lambda: hazmat.encrypt("XTS", key, bytes(15), bytes(16))),
        (ValueError, lambda: hazmat.encrypt_into("CTR", key, bytes(16), bytearray(15), bytes(16))),
        (TypeError, lambda: hazmat.encrypt_into("CTR", key, bytes(16), bytes(16), bytes(16))),
        (TypeError, lambda: hazmat.encrypt("CTR", key, "text", bytes(16))),
        (ValueError, lambda: hazmat.hctr2_encrypt(key, b"", bytes(15))),
        (ValueError, lambda: hazmat.cmac(key[:3], b"")),
        (ValueError, lambda: hazmat.gmac(key, b"", b"")),
        (ValueError, lambda: hazmat.aes_key_wrap(key, bytes(15))),
    ]:
        with pytest.raises(error):
            call()
    memory = memoryview(bytearray(64))
    with pytest.raises(ValueError, match="overlaps"):
        hazmat.encrypt_into("CTR", key, memory[:32], memory[1:33], bytes(16))
