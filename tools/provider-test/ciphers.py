#!/usr/bin/env python3
"""Encrypts or decrypts with ciphers of the preferred provider, through libcrypto, also with those that `openssl enc` refuses.

    tools/provider-test/ciphers.py list PROVIDER          prints the names of the ciphers of a provider
    tools/provider-test/ciphers.py encrypt|decrypt        reads lines `NAME INPUT`, prints lines `NAME OUTPUT`, in hexadecimal

The tag of authenticated encryption follows the ciphertext. Modes that take a message in pieces get it in two updates. The output is `-` if there is
no such cipher.
"""

import ctypes
import ctypes.util
import sys

# The numbers of modes and commands in openssl/evp.h.
GCM, CCM, XTS, WRAP, OCB, SIV, GCM_SIV = 0x6, 0x7, 0x10001, 0x10002, 0x10003, 0x10004, 0x10005
AEADS = (GCM, CCM, OCB, SIV, GCM_SIV)
# Modes in which one update must contain the whole message.
WHOLE = (CCM, XTS, WRAP, SIV, GCM_SIV)
SET_IVLEN, GET_TAG, SET_TAG, WRAP_ALLOW = 0x9, 0x10, 0x11, 1
AAD, TAG = b"additional data of 32 bytes, all.", 16
KEY = bytes(range(0x40, 0x80))
IV = bytes(range(0xA0, 0xB0))

crypto = ctypes.CDLL(ctypes.util.find_library("crypto"))
for function in ("CIPHER_fetch", "CIPHER_get0_name", "CIPHER_get0_provider", "CIPHER_CTX_new"):
    getattr(crypto, f"EVP_{function}").restype = ctypes.c_void_p
crypto.OSSL_PROVIDER_get0_name.restype = ctypes.c_void_p


def names(provider):
    """The names of the ciphers of a provider."""
    found = []

    @ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)
    def add(cipher, _):
        of = crypto.OSSL_PROVIDER_get0_name(ctypes.c_void_p(crypto.EVP_CIPHER_get0_provider(ctypes.c_void_p(cipher))))
        if ctypes.string_at(of).decode() == provider:
            found.append(ctypes.string_at(crypto.EVP_CIPHER_get0_name(ctypes.c_void_p(cipher))).decode())

    # Initialises libcrypto, which reads the configuration file.
    crypto.OPENSSL_init_crypto(ctypes.c_uint64(0x40), None)
    crypto.EVP_CIPHER_do_all_provided(None, add, None)
    return found


def run(name, encrypts, data):
    """Encrypts or decrypts, and returns the output, or `None` if there is no such cipher."""
    cipher = ctypes.c_void_p(crypto.EVP_CIPHER_fetch(None, name.encode(), None))
    if not cipher:
        return None
    context = ctypes.c_void_p(crypto.EVP_CIPHER_CTX_new())
    mode, key_len = crypto.EVP_CIPHER_get_mode(cipher), crypto.EVP_CIPHER_get_key_length(cipher)
    is_aead, is_whole = mode in AEADS, mode in WHOLE or name.endswith("-CTS")
    data, tag = (data[:-TAG], data[-TAG:]) if is_aead and not encrypts else (data, bytes(TAG))
    output, written = ctypes.create_string_buffer(len(data) + 64), ctypes.c_int(0)

    def call(function, *arguments):
        if getattr(crypto, f"EVP_{function}")(context, *arguments) <= 0:
            crypto.ERR_print_errors_fp(ctypes.c_void_p.in_dll(ctypes.CDLL(None), "stderr"))
            sys.exit(f"{name}: EVP_{function} failed")

    def control(number, size, pointer):
        call("CIPHER_CTX_ctrl", number, size, pointer)

    crypto.EVP_CIPHER_CTX_set_flags(context, WRAP_ALLOW)
    call("CipherInit_ex2", cipher, None, None, int(encrypts), None)
    if mode in (GCM, CCM, OCB):
        control(SET_IVLEN, 12, None)
    if mode in (CCM, OCB) and encrypts:
        control(SET_TAG, TAG, None)
    if is_aead and not encrypts:
        control(SET_TAG, TAG, tag)
    call("CipherInit_ex2", None, KEY[:key_len], None if mode == SIV else IV, int(encrypts), None)
    if mode == CCM:
        call("CipherUpdate", None, ctypes.byref(written), None, len(data))
    if is_aead:
        call("CipherUpdate", None, ctypes.byref(written), AAD, 32)
    done = 0
    half = len(data) // 32 * 16
    for piece in [data] if is_whole else [data[:half], data[half:]]:
        call("CipherUpdate", ctypes.byref(output, done), ctypes.byref(written), piece, len(piece))
        done += written.value
    call("CipherFinal_ex", ctypes.byref(output, done), ctypes.byref(written))
    result = output.raw[: done + written.value]
    if is_aead and encrypts:
        made = ctypes.create_string_buffer(TAG)
        control(GET_TAG, TAG, made)
        result += made.raw
    crypto.EVP_CIPHER_CTX_free(context)
    crypto.EVP_CIPHER_free(cipher)
    return result


def main():
    if len(sys.argv) == 3 and sys.argv[1] == "list":
        print("\n".join(names(sys.argv[2])))
    elif sys.argv[1:] in (["encrypt"], ["decrypt"]):
        for line in sys.stdin:
            name, data = line.split()
            result = run(name, sys.argv[1] == "encrypt", bytes.fromhex(data))
            print(name, "-" if result is None else result.hex())
    else:
        print(__doc__.strip(), file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
