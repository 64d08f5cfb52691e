"""The inputs of the serial modes and GHASH: parallel messages, and a message of many tiles."""

import random
import struct
from collections import Counter

import aes
from inputs import FIRST_TILE, FROM, KEYS, SCHEDULES, SCRATCH, SEGMENT_BYTES, SEGMENTS, TO, Measured, program_of
from image import GLOBALS
from machine import REGION, Machine
from sass import Problem

CBC_ENCRYPT, PCBC_DECRYPT = 0, 8  # enum Chain in chain/chain.cu
MESSAGES, LANES, ROUNDS = 1024, 32, 10
OUTPUT, ROWS, MATRICES = 8, 9, 10
MATRICES_BYTES = 16 * 128 * 128 // 8


def segments(sizes, registers, keys):
    result, at = bytearray(), 0
    for size, register, key in zip(sizes, registers, keys):
        result += struct.pack("<QQQQIIQ", (FROM << REGION) + at, (TO << REGION) + at, size, 0, key, 0, 0) + register + bytes(16)
        at += size
    return result


def chain(name, functions, image):
    """AES-128 with the 1024 messages of a warp: the instructions that two further blocks of each message add. For chain_keys: the
    instructions of one message."""
    option = (PCBC_DECRYPT if name == "chain_decrypt" else CBC_ENCRYPT) | ROUNDS << 8
    counts = []
    for blocks in (1, 3):
        secret = random.Random(name)
        keys = [secret.randbytes(16) for _ in range(8)]
        registers = [secret.randbytes(16) for _ in range(MESSAGES)]
        data = secret.randbytes(16 * blocks * MESSAGES)
        schedules = b"".join(aes.schedule(key)[1] for key in keys)
        memory = {
            FROM: bytearray(data), TO: bytearray(len(data)), SCHEDULES: bytearray(schedules), GLOBALS >> REGION: image.variables,
            SEGMENTS: segments([16 * blocks] * MESSAGES, registers, [i % 8 for i in range(MESSAGES)]),
            SCRATCH: bytearray((ROUNDS + 1) * 512 * LANES), FIRST_TILE: bytearray(8),
        }  # fmt: skip
        machine = Machine(memory, (SEGMENTS, SEGMENT_BYTES))
        places = [number << REGION for number in (SEGMENTS, FIRST_TILE, SCHEDULES, SCRATCH)]
        parameters = struct.pack("<QQQQQII", *places, 0, MESSAGES, option)
        made = machine.launch(program_of("chain_keys", functions, image), parameters + struct.pack("<I", 352), 1, LANES, 0, [0])
        machine.seen.clear()
        program = program_of("chain_encrypt" if name == "chain_keys" else name, functions, image)
        counts.append(machine.launch(program, parameters, 1, LANES, 0, [0]))
        for i in range(0, MESSAGES, 7):
            right = chained(option & 255, keys[i % 8], registers[i], data[16 * blocks * i : 16 * blocks * (i + 1)])
            if memory[TO][16 * blocks * i : 16 * blocks * (i + 1)] != right:
                raise Problem(f"{name}: the machine code's result is wrong in message {i}")
        if name == "chain_keys":
            return Measured(made, "key", MESSAGES, f"{MESSAGES} messages of AES-128, 32 a thread", {})
    difference = Counter(counts[1])
    difference.subtract(counts[0])
    what = "PCBC decryption" if option & 255 else "CBC encryption"
    return Measured(difference, "byte", 2 * 16 * MESSAGES, f"{what} of {MESSAGES} messages with AES-128", machine.seen)


def chained(option, key, register, data):
    keys, result = aes.expand(key), b""
    for at in range(0, len(data), 16):
        block = data[at : at + 16]
        if option == CBC_ENCRYPT:
            register = aes.encrypt(keys, aes.xor(block, register))
            result += register
        else:
            text = aes.xor(aes.decrypt(keys, block), register)
            register = aes.xor(text, block)
            result += text
    return result


def product(x, y):
    """SP 800-38D, 6.3."""
    z = 0
    for i in range(127, -1, -1):
        z ^= y if x >> i & 1 else 0
        y = y >> 1 ^ (0xE1 << 120 if y & 1 else 0)
    return z


def ghash(key, register, data):
    y, h = int.from_bytes(register, "big"), int.from_bytes(key, "big")
    for at in range(0, len(data), 16):
        y = product(y ^ int.from_bytes(data[at : at + 16], "big"), h)
    return y.to_bytes(16, "big")


def hashing(name, functions, image):
    secret = random.Random(name)
    key = secret.randbytes(16)
    memory = {KEYS: bytearray(key), ROWS: bytearray(4 * 33 * 16), GLOBALS >> REGION: image.variables}
    machine = Machine(memory, (SEGMENTS, SEGMENT_BYTES))
    if name.endswith("_each"):
        count, size = 32, 1024
        data, registers = secret.randbytes(count * size), [secret.randbytes(16) for _ in range(count)]
        memory.update({FROM: bytearray(data), SEGMENTS: segments([size] * count, registers, [0] * count)})
        parameters = struct.pack("<QQQIII", SEGMENTS << REGION, KEYS << REGION, 0, count, 16, 0)
        counts = machine.launch(program_of(name, functions, image), parameters, 1, count, 0, [0])
        for i in range(count):
            if memory[SEGMENTS][80 * i + 64 : 80 * i + 80] != ghash(key, registers[i], data[size * i : size * (i + 1)]):
                raise Problem(f"{name}: the machine code's hash of message {i} is wrong")
        return Measured(counts, "byte", count * size, f"messages of {size} bytes, a thread each", machine.seen, moved=1)
    powers = name.rsplit("_", 1)[0] + "_powers"
    parameters = struct.pack("<QQIIII", KEYS << REGION, ROWS << REGION, 1, 1, 16, 0)
    made = machine.launch(program_of(powers, functions, image), parameters, 1, 32, 0, [0])
    if name == powers:
        return Measured(made, "key", 1, "a key, one level", {})
    return tiles(name, functions, image, machine, key, secret)


def matrices(name, functions, image):
    """ghash_matrices and ghash_tensor_tiles, with the powers that Python makes."""
    secret = random.Random(name)
    key = secret.randbytes(16)
    # The first row: the factors by which the lanes multiply their sums, and H^32, in the form that `field.cuh` uses.
    powers = [int.from_bytes(key, "big")]
    for _ in range(31):
        powers.append(product(powers[-1], powers[0]))
    row = b"".join(times_x(power).to_bytes(16, "big") for power in powers + [powers[31]])
    memory = {ROWS: bytearray(row + bytes(3 * 33 * 16)), MATRICES: bytearray(MATRICES_BYTES), GLOBALS >> REGION: image.variables}
    machine = Machine(memory, (SEGMENTS, SEGMENT_BYTES))
    parameters = struct.pack("<QQII", ROWS << REGION, MATRICES << REGION, 1, 0)
    made = machine.launch(program_of("ghash_matrices", functions, image), parameters, 16, 128, 0, range(16))
    if name == "ghash_tensor_tiles":
        return tiles(name, functions, image, machine, key, secret)
    for _ in range(4):
        check_matrix(memory[MATRICES], secret.randrange(16), secret.randbytes(16), powers[31])
    return Measured(made, "key", 1, "a key", {})


def times_x(power):
    """The form in which the kernels keep a power: H x of RFC 8452, appendix A; bits are in reverse."""
    return (power << 1 & (1 << 128) - 1) ^ (0xC2000000_00000000_00000000_00000001 if power >> 127 else 0)


def check_matrix(memory, power, block, stride):
    """The product of a block and a matrix is the product in the field."""
    number = int.from_bytes(block, "big")
    for _ in range(power):
        number = product(number, stride)
    words = struct.unpack("<4I", block)
    result = [0] * 4
    for word in range(4):
        for bit in range(32):
            group, column = bit % 16, 2 * word + bit // 16
            ones = 0
            for t in range(4):
                at = ((power // 2 * 8 + group // 2) * 32 + 4 * column + t) * 4 + 2 * (group % 2) + power % 2
                ones += (words[t] & int.from_bytes(memory[4 * at : 4 * at + 4], "little")).bit_count()
            result[word] |= (ones & 1) << bit
    if struct.pack("<4I", *result) != number.to_bytes(16, "big"):
        raise Problem(f"ghash_matrices: the matrix of power {power} is wrong")


def tiles(name, functions, image, machine, key, secret):
    tile, tiles, warps = 8192, 8, 4
    data = secret.randbytes(tile * tiles)
    memory = machine.regions
    memory.update({FROM: bytearray(data), SEGMENTS: segments([len(data)], [bytes(16)], [0])})
    memory.update({FIRST_TILE: bytearray(struct.pack("<QQ", 0, tiles)), OUTPUT: bytearray(16 * tiles)})
    places = [SEGMENTS << REGION, FIRST_TILE << REGION, 0, 0, OUTPUT << REGION, ROWS << REGION, 0, MATRICES << REGION]
    parameters = struct.pack("<QQQQQQQQQIIII", *places, tiles, 1, 0, 0, 0)
    machine.seen.clear()
    counts = machine.launch(program_of(name, functions, image), parameters, 2, 32 * warps, 0, [1])
    for i in range(warps, 2 * warps):
        if memory[OUTPUT][16 * i : 16 * i + 16] != ghash(key, bytes(16), data[tile * i : tile * (i + 1)]):
            raise Problem(f"{name}: the machine code's hash of tile {i} is wrong")
    return Measured(counts, "byte", warps * tile, "a message of many tiles of 512 blocks", machine.seen, moved=1)


MEASURED = {
    "chain_keys": chain, "chain_encrypt": chain, "chain_decrypt": chain,
    "ghash_matrices": matrices, "ghash_tensor_tiles": matrices,
    "ghash_powers": hashing, "ghash_tiles": hashing, "ghash_each": hashing,
    "ghash_carry_less_powers": hashing, "ghash_carry_less_tiles": hashing, "ghash_carry_less_each": hashing,
}  # fmt: skip
