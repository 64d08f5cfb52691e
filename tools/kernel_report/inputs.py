"""The inputs of every entry point, and which of its parameters point to secrets.

A kernel that is not listed here is an error: a new kernel needs a description of its measurement. The result of each run is
compared with AES, so counts come from correct runs only.
"""

import random
import re
import struct
from collections import Counter

import aes
from image import GLOBALS
from machine import REGION, Machine, Program
from sass import Problem

FROM, TO, SCHEDULES, SEGMENTS, FIRST_TILE, SCRATCH, KEYS, MASKS = range(1, 9)
SEGMENT_BYTES = 80
SECTOR = 4096

PASSES = "ecb_encrypt|ecb_decrypt|ctr_little32|ctr32|ctr|cbc_decrypt|cfb_decrypt|xts_encrypt|xts_decrypt|ocb_encrypt|ocb_decrypt"
PASS = re.compile(rf"(?P<family>\w+?)_(?P<name>{PASSES})_(?P<bits>128|192|256)$")
EXPAND = re.compile(r"(?P<family>\w+?)_expand_(?P<bits>128|192|256)$")


class Family:
    """The shape of a launch: see src/kernel.rs. `marginal`: a thread block processes one tile after the other, and only the
    instructions that a further tile adds are counted, without those that run once."""

    def __init__(self, tile, threads, shared=0, marginal=False, option=0, default=False, table=False, block_tiles=1, any_size=False):
        self.tile, self.threads, self.shared, self.marginal, self.option = tile, threads, shared, marginal, option
        self.block_tiles = block_tiles  # bytes that a thread block processes at once
        self.any_size = any_size  # one entry point of a pass is for all key sizes, and the option is the number of rounds
        self.default = default  # constant time and without spills, or the check fails
        self.table = table  # has lookups by secrets, which the taint analysis must find


# The papers' kernels, with 64 threads in a block. The number of threads determines the tile.
FAMILIES = {
    "bitslice": Family(16384, 32, default=True, any_size=True),
    "bitslice_lane": Family(512, 32, default=True, block_tiles=32, any_size=True),
    # One of 16 warps is run: they share only the tables.
    "table": Family(8192, 32, 128 * 1024, marginal=True, table=True),
    "table_small": Family(8192, 32, 32 * 1024, marginal=True, table=True),
    "fine_shared": Family(256, 64, 4096 + 8 * 64, marginal=True, table=True),
    "coarse_shared": Family(1024, 64, 4096 + 16 * 64, marginal=True, table=True),
    "fine_constant": Family(256, 64, 8 * 64, marginal=True, table=True),
    "coarse_constant": Family(1024, 64, 16 * 64, marginal=True, table=True),
    "global_sbox": Family(10240, 64, marginal=True, option=10, table=True),
    "gems": Family(1024, 64, marginal=True, table=True, any_size=True),
}

# Not counted per byte: these kernels process no data, or one block per tile.
HELPERS = {"edges", "set_states", "table_segments", "table_results", "zero_refused", "gcm_tags", "gcm_messages",
           "ocb_keys", "ocb_begin", "ocb_sum", "ocb_tags", "uniform_tiles", "gather", "carry_less_products"}  # fmt: skip
# Constant time, since they belong to the default family; others.py runs them.
SERIAL = {"chain_keys", "chain_encrypt", "chain_decrypt", "ghash_powers", "ghash_tiles", "ghash_each", "ghash_matrices", "ghash_tensor_tiles",
          "ghash_carry_less_powers", "ghash_carry_less_tiles", "ghash_carry_less_each"}  # fmt: skip

# Structures of common/work.cuh and common/aead.cuh: size, offsets of pointers to secrets, and offsets of registers (chaining states).
STRUCTURES = {"segments": (SEGMENT_BYTES, [(0, 16)], [(48, 80)]), "extras": (64, [(0, 8), (16, 40)], []), "addresses": (8, [(0, 8)], [])}

# Parameters by offset. `secret`: a pointer to secrets (keys, schedules, data). `public`: a pointer to
# public data. `segments`, `extras`, `addresses`: a pointer to an array of those structures.
LAUNCH = {0: "segments", 8: "public", 16: "secret", 24: "secret"}
PARAMETERS = [
    (re.compile(r"\w+_expand_\d+$"), {0: "secret", 8: "secret"}),
    (re.compile(r"\w+_ocb_(encrypt|decrypt)(_\d+)?$"), LAUNCH | {48: "secret"}),
    (re.compile(rf"\w+?_({PASSES})(_\d+)?$"), LAUNCH),
    (re.compile(r"edges$|chain_(keys|encrypt|decrypt)$"), LAUNCH),
    (re.compile(r"set_states$"), {0: "segments", 8: "public"}),
    (re.compile(r"table_segments$"), {o: "public" for o in (0, 8, 16, 72, 80, 96)} | {64: "segments", 88: "segments"}),
    (re.compile(r"table_results$"), {0: "segments", 8: "public", 16: "public"}),
    (re.compile(r"ghash_(carry_less_)?powers$"), {0: "secret", 8: "secret"}),
    (re.compile(r"ghash_matrices$"), {0: "secret", 8: "secret"}),
    (re.compile(r"ghash_(tensor_|carry_less_)?tiles$"), {0: "segments", 8: "public", 16: "public"} | {o: "secret" for o in (24, 32, 40, 56)} | {48: "extras"}),
    (re.compile(r"ghash_(carry_less_)?each$"), {0: "segments", 8: "secret", 16: "extras"}),
    (re.compile(r"gcm_tags$"), {0: "segments", 8: "extras", 16: "public"}),
    (re.compile(r"ocb_keys$"), {0: "secret", 8: "secret"}),
    (re.compile(r"ocb_(begin|sum|tags)$"), {0: "segments", 8: "extras", 16: "secret", 24: "public", 32: "secret", 40: "public"}),
    (re.compile(r"zero_refused$"), {0: "segments", 8: "public"}),
    # These parameters point only to offsets, counts and IVs.
    (re.compile(r"gcm_messages$"), {0: "segments", 8: "extras", 16: "public", 24: "segments", 32: "public"}),
    (re.compile(r"uniform_tiles$"), {0: "public"}),
    (re.compile(r"carry_less_products$"), {0: "public", 8: "public"}),
    (re.compile(r"gather$"), {0: "addresses", 8: "public", 16: "public", 24: "secret"}),
]
# In these kernels Segment.state and Segment.next are IVs, counters and ciphertext. In other kernels they are an encrypted tweak or a hash.
PUBLIC_REGISTERS = re.compile(r"\w+_(ecb_encrypt|ecb_decrypt|ctr|ctr32|ctr_little32|cbc_decrypt|cfb_decrypt)(_\d+)?$|edges$|set_states$|table_")
# Kernels whose shared memory is an array with a structure of this many bytes for each thread. The structures contain pointers too.
SHARED_STRUCTURES = {"chain_encrypt": 40, "chain_decrypt": 40}


def shared_structure(name):
    return SHARED_STRUCTURES.get(name)


def parameters_of(name):
    for pattern, kinds in PARAMETERS:
        if pattern.match(name):
            return kinds
    raise Problem(f"{name}: inputs.py does not say which of its parameters lead to secrets")


def has_public_registers(name):
    return bool(PUBLIC_REGISTERS.match(name))


def family_of(name):
    """The family of a kernel; None for helpers."""
    match = PASS.match(name) or EXPAND.match(name)
    if match and match["family"] in FAMILIES:
        return FAMILIES[match["family"]]
    if name in HELPERS:
        return None
    if name in SERIAL:
        return FAMILIES["bitslice"]
    raise Problem(f"{name}: inputs.py does not say how it is launched")


def labels_of(function):
    """The names under which the report lists a function: one for each key size."""
    match = PASS.match(function + "_128")
    is_any_size = match and match["family"] in FAMILIES and FAMILIES[match["family"]].any_size
    return [f"{function}_{bits}" for bits in (128, 192, 256)] if is_any_size else [function]


def function_of(label, functions):
    """The function that is listed under this name."""
    return label if label in functions else label.rsplit("_", 1)[0]


class Measured:
    """Counts for `units` (bytes, or keys). `seen`: the offsets in a Segment from which each instruction loaded. `moved`: bytes read and written
    for each byte of data."""

    def __init__(self, counts, unit, units, text, seen, moved=2):
        self.counts, self.unit, self.units, self.input, self.seen, self.moved = counts, unit, units, text, seen, moved


def program_of(name, functions, image):
    name = function_of(name, functions)
    program = Program(functions[name], image.banks(name))
    program.parameters, _ = image.parameters(name)
    program.static_shared = image.static_shared(name)
    return program


def measure(name, functions, image):
    """Runs an entry point. Returns None if it is not counted."""
    if name in HELPERS:
        return None
    if name in SERIAL:
        import others

        return others.MEASURED[name](name, functions, image)
    program = program_of(name, functions, image)
    match = EXPAND.match(name)
    if match:
        return expand(name, program, image, int(match["bits"]))
    match = PASS.match(name)
    if not match:
        raise Problem(f"{name}: inputs.py does not say how it is run")
    family = family_of(name)
    if not family.marginal:
        counts, text, seen = run_pass(name, program, image, match, family, tiles=4 * family.block_tiles, only_block=2)
        return Measured(counts, "byte", family.tile * family.block_tiles, text, seen)
    few, text, _ = run_pass(name, program, image, match, family, tiles=1)
    many, _, seen = run_pass(name, program, image, match, family, tiles=3)
    counts = Counter(many)
    counts.subtract(few)
    return Measured(counts, "byte", 2 * family.tile, text, seen)


def expand(name, program, image, bits):
    """Runs the key expansion of 32 keys in a warp."""
    secret = random.Random(name)
    keys = [secret.randbytes(bits // 8) for _ in range(32)]
    size = len(aes.schedule(keys[0])[1])
    memory = {KEYS: bytearray(b"".join(keys)), SCHEDULES: bytearray(32 * size), GLOBALS >> REGION: image.variables}
    parameters = struct.pack("<QQI", KEYS << REGION, SCHEDULES << REGION, 32)
    counts = Machine(memory).launch(program, parameters, 1, 32, 0, [0])
    for i, key in enumerate(keys):
        if memory[SCHEDULES][size * i : size * (i + 1)] != aes.schedule(key)[1]:
            raise Problem(f"{name}: the machine code makes a wrong schedule")
    return Measured(counts, "key", 32, "32 keys, one thread each", {})


def run_pass(name, program, image, match, family, tiles, only_block=None):
    """Runs a message of `tiles` whole, aligned tiles, or the tiles of one thread block."""
    secret = random.Random(name)
    bits, what = int(match["bits"]), match["name"]
    key, reg, before = secret.randbytes(bits // 8), bytearray(secret.randbytes(16)), secret.randbytes(16)
    reg[12:] = struct.pack(">I", 0x01234000)  # no carry out of the last two bytes: as in 63 tiles of 64
    text = f"a message of many tiles of {family.tile} bytes, aligned"
    length = family.tile * tiles
    each = length
    if what.startswith("xts"):
        # A tweak at a later position of a data unit requires a power of x. Units of one tile begin at x^0. Several small tiles are in one sector.
        each = max(family.tile, SECTOR)
        text = f"data units of {each} bytes"
    units = range(length // each)
    data = secret.randbytes(length)
    memory = {FROM: bytearray(data), TO: bytearray(length), GLOBALS >> REGION: image.variables}
    memory[SCHEDULES] = bytearray(aes.schedule(key)[1])
    memory[SEGMENTS] = bytearray()
    for i in units:
        memory[SEGMENTS] += struct.pack("<QQQQIIQ", (FROM << REGION) + i * each, (TO << REGION) + i * each, each, 0, 0, 0, 0)
        memory[SEGMENTS] += reg + bytes(16)
    first_tile = [i * tiles // len(units) for i in range(len(units) + 1)]
    memory[FIRST_TILE] = bytearray(struct.pack(f"<{len(first_tile)}Q", *first_tile))
    # What `edges` has stored: the ciphertext block before each tile.
    edges = [before] + [data[family.tile * i - 16 : family.tile * i] for i in range(1, tiles)]
    memory[SCRATCH] = bytearray(b"".join(edges))
    places = [number << REGION for number in (SEGMENTS, FIRST_TILE, SCHEDULES, SCRATCH)]
    option = bits // 32 + 6 if family.any_size else family.option
    parameters = struct.pack("<QQQQQII", *places, tiles, len(units), option)
    if what.startswith("ocb"):
        memory[MASKS] = bytearray(b"".join(aes.ocb_masks(key)))
        parameters += struct.pack("<Q", MASKS << REGION)
    grid = 1 if family.marginal else tiles // family.block_tiles
    only = 0 if only_block is None else only_block
    machine = Machine(memory, (SEGMENTS, SEGMENT_BYTES))
    counts = machine.launch(program, parameters, grid, family.threads, family.shared, [only])
    blocks = length // grid // 16
    step = 7  # shares no factor with the shapes: all lanes and all rows are seen
    for block in range(only * blocks, (only + 1) * blocks, step):
        unit, inside = divmod(16 * block, each)
        part = data[unit * each : (unit + 1) * each]
        right = aes.expected(what, key, bytes(reg), part, before, inside // 16)
        if memory[TO][16 * block : 16 * block + 16] != right:
            raise Problem(f"{name}: the machine code's result is wrong in block {block}")
    if what.startswith("ocb"):
        check_checksums(name, memory, family.tile, range(only * family.block_tiles, (only + 1) * family.block_tiles))
    return counts, text, machine.seen


def check_checksums(name, memory, tile, tiles):
    """The checksums of tiles are the sums of their blocks of plaintext."""
    plaintext = memory[FROM if "encrypt" in name else TO]
    for i in tiles:
        total = bytes(16)
        for at in range(tile * i, tile * (i + 1), 16):
            total = aes.xor(total, plaintext[at : at + 16])
        if memory[SCRATCH][16 * i : 16 * i + 16] != total:
            raise Problem(f"{name}: the machine code's checksum of tile {i} is wrong")
