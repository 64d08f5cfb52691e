"""AES as FIPS 197, SP 800-38A and IEEE 1619 define it: the reference for the results of the kernels."""

import functools


def times_x(a):
    return a << 1 ^ (0x11B if a & 0x80 else 0)


def product(a, b):
    result = 0
    while b:
        result ^= a if b & 1 else 0
        a, b = times_x(a), b >> 1
    return result


def make_sbox():
    power, logarithm = [0] * 255, [0] * 256
    a = 1
    for i in range(255):
        power[i], logarithm[a] = a, i
        a ^= times_x(a)
    box = []
    for x in range(256):
        y = power[-logarithm[x] % 255] if x else 0
        box.append(y ^ 0x63 ^ rotated(y, 1) ^ rotated(y, 2) ^ rotated(y, 3) ^ rotated(y, 4))
    return box


def rotated(y, count):
    return (y << count | y >> 8 - count) & 0xFF


SBOX = make_sbox()
INVERSE = [SBOX.index(x) for x in range(256)]
TIMES = {k: [product(x, k) for x in range(256)] for k in (1, 2, 3, 9, 11, 13, 14)}


def expand(key):
    """Round keys, concatenated."""
    words = [key[i : i + 4] for i in range(0, len(key), 4)]
    count, constant = len(words), 1
    for i in range(count, 4 * (count + 7)):
        last = words[-1]
        if i % count == 0:
            last = bytes([SBOX[last[1]] ^ constant, SBOX[last[2]], SBOX[last[3]], SBOX[last[0]]])
            constant = times_x(constant)
        elif count > 6 and i % count == 4:
            last = bytes(SBOX[x] for x in last)
        words.append(bytes(x ^ y for x, y in zip(words[i - count], last)))
    return [b"".join(words[i : i + 4]) for i in range(0, len(words), 4)]


def mixed(block, row):
    """MixColumns by the matrix with this first row."""
    result = []
    for c in range(0, 16, 4):
        for r in range(4):
            value = 0
            for i in range(4):
                value ^= TIMES[row[(i - r) % 4]][block[c + i]]
            result.append(value)
    return bytes(result)


def schedule(key):
    """Round keys for encryption, then for decryption in the order of use. InvMixColumns is applied to those for decryption, except the
    first and the last one."""
    keys = expand(key)
    back = [keys[-1]] + [mixed(k, (14, 11, 13, 9)) for k in keys[-2:0:-1]] + [keys[0]]
    return b"".join(keys), b"".join(keys) + b"".join(back)


def xor(a, b):
    return (int.from_bytes(a, "big") ^ int.from_bytes(b, "big")).to_bytes(16, "big")


def encrypt(keys, block):
    block = xor(block, keys[0])
    for key in keys[1:]:
        block = bytes(SBOX[block[(i + 4 * (i % 4)) % 16]] for i in range(16))
        if key is not keys[-1]:
            block = mixed(block, (2, 3, 1, 1))
        block = xor(block, key)
    return block


def decrypt(keys, block):
    block = xor(block, keys[-1])
    for key in keys[-2::-1]:
        block = xor(bytes(INVERSE[block[(i - 4 * (i % 4)) % 16]] for i in range(16)), key)
        if key is not keys[0]:
            block = mixed(block, (14, 11, 13, 9))
    return block


def expected(name, key, reg, data, before, block):
    """Block number `block` of the results of a pass; `before` is the ciphertext before the first block."""
    keys = expand(key)
    here = data[16 * block : 16 * block + 16]
    previous = data[16 * block - 16 : 16 * block] if block else before
    if name == "ecb_encrypt":
        return encrypt(keys, here)
    if name == "ecb_decrypt":
        return decrypt(keys, here)
    if name == "ctr":
        return xor(here, encrypt(keys, ((int.from_bytes(reg, "big") + block) % (1 << 128)).to_bytes(16, "big")))
    if name == "ctr32":
        low = (int.from_bytes(reg[12:], "big") + block) % (1 << 32)
        return xor(here, encrypt(keys, reg[:12] + low.to_bytes(4, "big")))
    if name == "ctr_little32":
        low = (int.from_bytes(reg[:4], "little") + block) % (1 << 32)
        return xor(here, encrypt(keys, low.to_bytes(4, "little") + reg[4:]))
    if name == "cbc_decrypt":
        return xor(decrypt(keys, here), previous)
    if name == "cfb_decrypt":
        return xor(encrypt(keys, previous), here)
    if name.startswith("ocb"):
        offset = ocb_offset(key, reg, block + 1)
        return xor((encrypt if name == "ocb_encrypt" else decrypt)(keys, xor(here, offset)), offset)
    tweak = int.from_bytes(reg, "little")
    for _ in range(block):
        tweak = tweak << 1 ^ ((1 << 128 | 0x87) if tweak >> 127 else 0)
    tweak = tweak.to_bytes(16, "little")
    return xor((encrypt if name == "xts_encrypt" else decrypt)(keys, xor(here, tweak)), tweak)


@functools.cache
def ocb_masks(key):
    """L_*, L_$, L_0, L_1, ..., L_47 (RFC 7253, section 4.1)."""
    masks = [int.from_bytes(encrypt(expand(key), bytes(16)), "big")]
    while len(masks) < 50:
        masks.append(masks[-1] << 1 & (1 << 128) - 1 ^ (0x87 if masks[-1] >> 127 else 0))
    return [mask.to_bytes(16, "big") for mask in masks]


def ocb_offset(key, first, number):
    """The offset of block `number`, counted from 1: block n adds the mask of the trailing zeros of n."""
    offset, masks = first, ocb_masks(key)
    for n in range(1, number + 1):
        offset = xor(offset, masks[2 + (n & -n).bit_length() - 1])
    return offset
