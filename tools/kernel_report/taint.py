"""Data flow from secrets to addresses and branches in the machine code, over all paths.

A value is a set of labels. SECRET: it depends on a key or on data. TO_SECRET, TO_PUBLIC, SEGMENTS: it was computed from a
pointer to secret data, to public data or to segments, so it may be an address of them. A loaded value gets its labels from the labels of the
address. A load from an address without such a label counts as secret. Shared memory and local memory are one value each, to which every
store adds its labels.

Findings are: addresses of loads and stores that depend on secrets, including indexed constants and shuffles; branches and
exits that depend on secrets; and loads and stores whose predicate depends on secrets. A selection by a secret without a branch is no finding.
"""

from math import gcd

from inputs import STRUCTURES, has_public_registers, parameters_of, shared_structure
from sass import CARRY_LESS, PT, RZ, TENSOR, Problem, blocks, successors

SECRET, TO_SECRET, TO_PUBLIC = "secret", "to_secret", "to_public"
# Labels of single bytes of a register, because the compiler keeps small variables in parts of registers.
BYTES = ("byte 0", "byte 1", "byte 2", "byte 3")
KINDS = {"secret": TO_SECRET, "public": TO_PUBLIC, **{name: name for name in STRUCTURES}}
# In addition to the labels: (m, r) if the value minus the pointer from which it was computed is r modulo m. With m = 0 the difference is r;
# (1, 0) means unknown. The analysis uses this to find the offset of an address in a structure.
UNKNOWN = (1, 0)
NOTHING = (frozenset(), UNKNOWN)

JUMPS = ("BRA", "EXIT", "CALL", "RET", "BRX", "KILL", "BREAK", "BSSY", "BSYNC")
PAIRS_OUT = ("CS2R",)


def join(a, b):
    if a == b:
        return a
    return (a[0] | b[0], either(a[1], b[1]))


def reduced(m, r):
    return (m, r % m if m else r)


def either(a, b):
    return reduced(gcd(a[0], b[0], a[1] - b[1]), a[1])


def total(a, b):
    return reduced(gcd(a[0], b[0]), a[1] + b[1])


def times(a, b):
    return reduced(gcd(a[0] * b[0], a[0] * b[1], b[0] * a[1]), a[1] * b[1])


def is_secret(labels):
    return SECRET in labels or any(byte in labels for byte in BYTES)


def whole(value):
    """A value in which one byte may affect all bytes."""
    return (value[0].difference(BYTES) | {SECRET}, value[1]) if is_secret(value[0]) else value


def byte_of(labels, index):
    return SECRET in labels or BYTES[index] in labels


class Analysis:
    """`findings`: {(address, what)}. `fields`: instruction -> offset in a Segment from which it loads, according to the analysis."""

    def __init__(self, name, code, parameter_base):
        self.code = {one.address: one for one in code}
        self.kinds = parameters_of(name)
        self.base = parameter_base
        self.is_register_secret = not has_public_registers(name)
        self.memory = {}  # space, or (space, place in its structure) -> value
        self.structure = shared_structure(name)
        self.findings, self.fields = set(), {}
        if not code:
            return
        following = successors(code)
        self.blocks = blocks(code)
        # The labels of shared memory only grow; the analysis is repeated until they no longer change.
        while True:
            before = dict(self.memory)
            self.findings.clear()
            self.walk(code[0].address, following)
            if before == self.memory:
                return

    def walk(self, start, following):
        entry = {start: {}}
        work = [start]
        while work:
            at = work.pop()
            state = dict(entry[at])
            self.under = {}
            for one in self.blocks[at]:
                self.step(one, state)
            for target in following[self.blocks[at][-1].address]:
                known = entry.get(target)
                if known is None:
                    entry[target] = dict(state)
                    work.append(target)
                    continue
                changed = False
                for key, value in state.items():
                    old = known.get(key, NOTHING)
                    new = join(old, value)
                    if new != old:
                        known[key] = new
                        changed = True
                if changed and target not in work:
                    work.append(target)

    # Operands

    def read(self, state, one, count=1):
        if one.kind in ("R", "UR"):
            if one.number == (RZ if one.kind == "R" else 63):
                return (frozenset(), (0, 0))
            result = NOTHING
            for i in range(count):
                value = self.read_key(state, (one.kind, one.number + i))
                result = value if i == 0 else (result[0] | value[0], result[1])
            return result
        if one.kind in ("P", "UP"):
            return self.read_key(state, (one.kind, one.number))
        if one.kind == "C":
            return self.constant(one, state)
        if one.kind == "PR":
            return (frozenset().union(*(self.read_key(state, ("P", i))[0] for i in range(7))), UNKNOWN)
        if one.kind == "I":
            return (frozenset(), (0, one.number - (1 << 32 if one.number >> 31 == 1 else 0)))
        return NOTHING

    def constant(self, one, state):
        if one.base is not None:
            labels = self.read_key(state, one.base)[0]
            return (frozenset({SECRET}) if is_secret(labels) else frozenset(), UNKNOWN)
        if one.bank == 4:
            return (frozenset({TO_PUBLIC}), UNKNOWN)
        if one.bank != 0 or one.number < self.base:
            return NOTHING
        kind = self.kinds.get((one.number - self.base) & ~7)
        return NOTHING if kind is None else (frozenset({KINDS[kind]}), (0, 0))

    def read_key(self, state, key):
        """The labels of a register if the guard of this instruction is true."""
        return self.under.get(self.guard, {}).get(key) or state.get(key, NOTHING)

    def write(self, state, one, value, count, guarded):
        if one.kind not in ("R", "UR", "P", "UP", "PR"):
            raise Problem(f"a result that the analysis does not know: {one.text}")
        if one.kind == "PR":
            self.under = {}
            for i in range(7):
                state[("P", i)] = join(state.get(("P", i), NOTHING), value)
            return
        if one.number == {"R": RZ, "UR": 63, "P": PT, "UP": PT}[one.kind]:
            return
        for i in range(count):
            key = (one.kind, one.number + i)
            opposite = (*self.guard[:2], not self.guard[2]) if guarded is not None else None
            for guard, known in self.under.items():
                if guard != opposite:
                    known.pop(key, None)
            if one.kind in ("P", "UP"):
                # Facts that were valid only if the old predicate is true are dropped.
                self.under = {g: known for g, known in self.under.items() if g[:2] != key}
            if guarded is None:
                state[key] = value
                continue
            # If the guard is false, the register keeps its value, which may have been written under the opposite guard.
            state[key] = join(self.under.get(opposite, {}).get(key) or state.get(key, NOTHING), value)
            if key != self.guard[:2]:
                self.under.setdefault(self.guard, {})[key] = value

    # Instructions

    def step(self, one, state):
        guard, self.guard = NOTHING, None
        if one.guard is not None and one.guard.number != PT:
            guard = self.read(state, one.guard)
        guarded = one.guard if one.guard is not None and one.guard.number != PT else None
        self.guard = (guarded.kind, guarded.number, guarded.negated) if guarded else None
        if one.op in JUMPS or one.op in ("WARPSYNC", "BAR"):
            labels = guard[0].union(*(self.read(state, o, 2 if o.wide else 1)[0] for o in one.operands))
            if is_secret(labels):
                self.findings.add((one.address, "branch"))
            return
        places = one.memory()
        if places or one.op == "SHFL":
            if is_secret(guard[0]):
                self.findings.add((one.address, "guard"))
        if any(o.kind == "M" for o in places):
            return self.access(one, state, places[0], guard, guarded)
        for place in places:
            if is_secret(self.constant(place, state)[0]):
                self.findings.add((one.address, "constant address"))
        if one.op == "SHFL" and is_secret(self.read(state, one.operands[3])[0]):
            self.findings.add((one.address, "lane"))
        if not one.operands:
            return
        self.plain(one, state, guard, guarded)

    def plain(self, one, state, guard, guarded):
        """An instruction whose result depends on all sources."""
        if one.op in ("NOP", "BMOV", "YIELD", "DEPBAR", "MEMBAR", "ERRBAR", "CCTL", "ENDCOLLECTIVE", "FENCE", "NANOSLEEP"):
            return
        operands = one.operands
        count = 1 if not operands[0].is_predicate() else 0
        results = [operands[0]] if count else []
        while count < len(operands) and operands[count].is_predicate() and (results == [] or len(operands) > count):
            # Predicates before the first source are results; ISETP and PLOP3 have two.
            if one.op.lstrip("U") in ("PLOP3", "ISETP", "FSETP", "DSETP") and count == 2:
                break
            results.append(operands[count])
            count += 1
        if count < len(operands) and one.op in ("LOP3", "SHFL") and operands[0].is_predicate():
            results.append(operands[count])
            count += 1
        if one.op in TENSOR:
            return self.tensor(state, *operands, guard, guarded)
        if one.op in CARRY_LESS:
            return self.carry_less(state, *operands, guard, guarded)
        wide_last = "WIDE" in one.mods or ("HI" in one.mods and one.op.lstrip("U") == "IMAD")
        sources = operands[count:]
        if self.by_bytes(one, results, sources, state, guard, guarded):
            return
        labels, reads = guard[0], []
        for index, source in enumerate(sources):
            pair = source.wide or (wide_last and index == 2) or (one.width() == 2 and one.op.lstrip("U") not in ("LDC", "SHF"))
            read = self.read(state, source, 2 if pair else 1)
            labels = labels | whole(read)[0]
            if not source.is_predicate():
                number = read[1]
                reads.append(times(number, (0, -1)) if source.negated and source.kind != "I" else UNKNOWN if source.inverted else number)
        value = (labels, remainder(one, reads))
        parts = one.width() if one.op.lstrip("U") in ("LDC", "LDCU", "MOV") else 1
        if "WIDE" in one.mods or (one.op in PAIRS_OUT and "32" not in one.mods) or (one.op.lstrip("U") not in ("LDC", "SHF", "MOV") and "64" in one.mods):
            parts = max(parts, 2)
        for index, result in enumerate(results):
            if result.is_predicate():
                self.write(state, result, (value[0], UNKNOWN), 1, guarded)
                continue
            if one.op.lstrip("U") == "LDC" and sources[0].kind == "C" and sources[0].base is None:
                # Neighbouring parameters may be of different kinds.
                for i in range(parts):
                    word = Shifted(sources[0], 4 * i)
                    known = self.constant(word, state)
                    self.write(state, Shifted(result, i), (known[0] | guard[0], known[1]), 1, guarded)
                continue
            self.write(state, result, value, parts, guarded)

    def tensor(self, state, to, left, right, sums, guard, guarded):
        """All results depend on the parts of both matrices in all lanes."""
        labels = guard[0]
        for source, count in ((left, 4), (right, 2), (sums, 4)):
            labels = labels | whole(self.read(state, source, count))[0]
        self.write(state, to, (labels, UNKNOWN), 4, guarded)

    def carry_less(self, state, to, left, right, summand, guard, guarded):
        """64 bits of three pairs of registers."""
        labels = guard[0]
        for source in (left, right, summand):
            labels = labels | whole(self.read(state, source, 2))[0]
        self.write(state, to, (labels, UNKNOWN), 2, guarded)

    def by_bytes(self, one, results, sources, state, guard, guarded):
        """Processes permutations, logic and moves, which do not mix bytes. Returns True if the instruction was one of them and had secrets."""
        name = one.op.lstrip("U")
        is_move = name == "MOV" or (name == "IMAD" and "MOV" in one.mods)
        if name not in ("PRMT", "LOP3") and not is_move or is_secret(guard[0]):
            return False
        if name == "PRMT" and sources[1].kind != "I":
            return False
        values = [self.read(state, s) if not s.is_predicate() else NOTHING for s in sources]
        if not any(is_secret(v[0]) for v in values) or any(is_secret(self.read(state, s)[0]) for s in sources if s.is_predicate()):
            return False
        is_whole = all(v[0].isdisjoint(BYTES) for v in values)
        if is_whole and name != "PRMT" and not any(s.kind == "I" for s in sources[:3]):
            return False  # the same operation on all bytes, without a mask
        secret = set()
        for place in range(4):
            if name == "PRMT":
                digit = sources[1].number >> 4 * place & 7
                hit = byte_of(values[0 if digit < 4 else 2][0], digit & 3)
            elif name == "LOP3":
                zero = [s.kind == "I" and s.number >> 8 * place & 255 == 0 for s in sources[:3]]
                zero = [z or (s.is_register() and s.number == (RZ if s.kind == "R" else 63)) for z, s in zip(zero, sources)]
                hit = any(byte_of(v[0], place) and matters(sources[3].number, i, zero) for i, v in enumerate(values[:3]))
            else:
                hit = any(byte_of(v[0], place) for v in values)
            if hit:
                secret.add(BYTES[place])
        others = frozenset().union(*(v[0] for v in values)) - {SECRET, *BYTES}
        for result in results:
            labels = others | ({SECRET} if secret and (len(secret) == 4 or result.is_predicate()) else secret)
            self.write(state, result, (frozenset(labels), UNKNOWN), 1, guarded)
        return True

    def access(self, one, state, place, guard, guarded):
        space = {"LDG": "G", "STG": "G", "LD": "X", "ST": "X", "RED": "G", "ATOM": "G", "ATOMG": "G", "ATOMS": "S"}.get(one.op, one.op[2:3])
        if space not in "GXSL":
            raise Problem(f"an access that the analysis does not know: {one.text}")
        is_pair = space in "GX"
        address = (frozenset(), (0, 0))
        if place.base is not None:
            for i in range(2 if is_pair else 1):
                value = self.read_key(state, (place.base[0], place.base[1] + i))
                address = value if i == 0 else (address[0] | value[0], address[1])
        if place.uniform is not None and place.uniform != 63:
            for i in range(2 if is_pair and place.base is None else 1):
                value = self.read_key(state, ("UR", place.uniform + i))
                address = (address[0] | value[0], total(address[1], value[1]) if i == 0 else address[1])
        if is_secret(address[0]):
            self.findings.add((one.address, "address"))
        words = one.width()
        is_load = one.op.startswith("LD")
        if is_load or one.op.startswith("ATOM"):
            to = next(o for o in one.operands if o.is_register())
            for i in range(words):
                value = self.loaded(space, address, place.number + 4 * i, one, i)
                value = (value[0] | guard[0], value[1])
                self.write(state, Shifted(to, i), value, 1, guarded)
        if not is_load and space in "SL":
            source = one.operands[-1]
            for i in range(words):
                if source.number != RZ:
                    value = self.read_key(state, ("R", source.number + i))
                    key = self.slot(space, address, place.number + 4 * i)
                    kept = (value[0] | guard[0], value[1]) if one.width() > 1 or not one.mods else (value[0] | guard[0], UNKNOWN)
                    self.memory[key] = join(self.memory[key], whole(kept)) if key in self.memory else whole(kept)

    def slot(self, space, address, number):
        """The part of shared memory that the address denotes: all of it, or a word in each structure of an array."""
        modulus, rest = address[1]
        if space == "S" and self.structure and modulus % self.structure == 0:
            return (space, (rest + number) % self.structure // 4)
        return space

    def loaded(self, space, address, number, one, index):
        labels = address[0]
        extra = frozenset({SECRET}) if is_secret(labels) else frozenset()
        if space in "SL":
            key = self.slot(space, address, number)
            places = [space, key] if key != space else [k for k in self.memory if k == space or k[0] == space]
            values = [self.memory[k] for k in places if k in self.memory]
            value = values[0] if values else NOTHING
            for other in values[1:]:
                value = join(value, other)
            return (value[0] | extra, value[1])
        if TO_SECRET in labels:
            return (extra | {SECRET}, UNKNOWN)
        for kind, (size, pointers, registers) in STRUCTURES.items():
            if kind not in labels:
                continue
            modulus, rest = address[1]
            if modulus % size:
                return (extra | {SECRET, TO_SECRET}, UNKNOWN)
            offset = (rest + number) % size
            if index == 0 and kind == "segments":
                self.fields[one.address] = offset
            if any(begin <= offset < end for begin, end in pointers):
                return (extra | {TO_SECRET}, (0, 0))
            if self.is_register_secret and any(begin <= offset < end for begin, end in registers):
                return (extra | {SECRET}, UNKNOWN)
            return (extra, UNKNOWN)
        if TO_PUBLIC in labels:
            return (extra, UNKNOWN)
        return (extra | {SECRET}, UNKNOWN)


def remainder(one, reads):
    """The remainder of the result of sums and products."""
    op = one.op.lstrip("U")
    if op in ("S2R", "S2"):
        return (0, 0) if one.operands[1].text == "SR_CgaCtaId" else UNKNOWN  # launches have no clusters
    if "HI" in one.mods or "X" in one.mods:
        return UNKNOWN
    if op in ("MOV", "R2") and len(reads) == 1:
        return reads[0]
    if op in ("IADD3", "IADD", "VIADD"):
        result = (0, 0)
        for read in reads:
            result = total(result, read)
        return result
    if op == "IMAD" and len(reads) == 3:
        return total(times(reads[0], reads[1]), reads[2])
    if op == "LEA" and len(reads) == 3 and reads[2][0] == 0:
        return total(times(reads[0], (0, 1 << reads[2][1])), reads[1])
    if op == "SHF" and "L" in one.mods and reads[1][0] == 0 and reads[2] == (0, 0):
        return times(reads[0], (0, 1 << (reads[1][1] & 63)))
    if op == "SEL" and len(reads) == 2:
        return either(reads[0], reads[1])
    return UNKNOWN


def matters(table, index, zero):
    """True if a logic function, some of whose inputs are 0, depends on input `index`."""
    bit = 4 >> index
    for i in range(8):
        if i & bit or any(zero[k] and i & 4 >> k for k in range(3)):
            continue
        if (table >> i ^ table >> (i | bit)) & 1:
            return True
    return False


class Shifted:
    """An operand at an offset of registers or bytes."""

    def __init__(self, one, by):
        self.kind, self.number, self.text = one.kind, one.number, one.text
        self.bank, self.base = one.bank, one.base
        if not (one.kind == "R" and one.number == RZ) and not (one.kind == "UR" and one.number == 63):
            self.number += by


def analyse(name, code, image):
    """Findings by kind: {kind: [instructions]}."""
    analysis = Analysis(name, code, image.parameters(name)[0])
    result = {}
    for address, what in sorted(analysis.findings):
        result.setdefault(what, []).append(analysis.code[address])
    return result, analysis
