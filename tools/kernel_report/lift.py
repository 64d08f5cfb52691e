"""Translates machine code to Python: each basic block becomes a function that executes it for the 32 lanes of a warp.

A register is a list of 32 numbers, a uniform register a number, a predicate a list of 32 truth values. An unknown
instruction is an error. The results of a kernel are compared with AES, so a wrong translation is detected too.
"""

from sass import FULL, PT, RZ, Problem

LANES = 32


def logic(table, a, b, c):
    """An expression for a function of three inputs; `table` bit 4a + 2b + c."""
    known = {
        0x3C: f"{a}^{b}", 0x96: f"{a}^{b}^{c}", 0xC0: f"{a}&{b}", 0xFC: f"{a}|{b}", 0x0C: f"{b}&~{a}", 0x30: f"{a}&~{b}",
        0x78: f"{a}^({b}&{c})", 0x6A: f"{c}^({a}&{b})", 0x6C: f"{b}^({a}&{c})", 0x28: f"({a}^{b})&{c}",
        0x48: f"({a}^{c})&{b}", 0x60: f"({b}^{c})&{a}", 0xF8: f"{a}|({b}&{c})", 0xCA: f"{c}^({a}&({b}^{c}))",
        0xE2: f"({a}&{b})|({c}&~{b})", 0xE4: f"({a}&{c})|({b}&~{c})", 0x33: f"~{b}", 0x0F: f"~{a}", 0x80: f"{a}&{b}&{c}",
        0xFE: f"{a}|{b}|{c}", 0x69: f"~({a}^{b}^{c})", 0xC3: f"~({a}^{b})", 0x00: "0", 0xFF: "-1",
    }  # fmt: skip
    if table in known:
        return f"({known[table]})&{FULL}"
    terms = []
    for i in range(8):
        if table >> i & 1:
            terms.append("&".join(name if i & bit else f"~{name}" for name, bit in ((a, 4), (b, 2), (c, 1))))
    return f"({'|'.join(f'({t})' for t in terms)})&{FULL}"


class Block:
    """Collects the lines of one function."""

    def __init__(self, masked):
        self.lines, self.masked, self.guarded, self.lanes, self.serial = [], masked, False, {}, 0

    def add(self, line):
        self.lines.append(line)

    # Sources

    def value(self, one, high=0):
        """The source of a 32-bit operand; of a pair, the word `high`. If the operand has a value for each lane, the source is a lane variable."""
        number = one.number + high
        if one.kind == "R":
            if one.number == RZ:
                text = "0"
            else:
                text = self.lanes.setdefault(f"R[{number}]", f"a{len(self.lanes)}")
        elif one.kind == "UR":
            text = "0" if one.number == 63 else f"U[{number}]"
        elif one.kind == "I":
            text = str(one.number & FULL if not high else (one.number >> 32) & FULL)
        elif one.kind == "C" and one.base is None:
            text = f"K({one.bank},{one.number + 4 * high})"
        else:
            raise Problem(f"an operand of unknown kind: {one.text}")
        if one.inverted:
            return f"({text}^{FULL})"
        if one.negated and not high:
            return f"(({text}^{FULL})+1)"
        return text

    def pair(self, one):
        """The source of a 64-bit operand, which is a pair of registers."""
        if one.kind == "I":
            return str(one.number & 0xFFFFFFFFFFFFFFFF)
        if one.number in (RZ if one.kind == "R" else 63,) and one.is_register():
            return "0"
        negated, one.negated = one.negated, False
        text = f"({self.value(one)}|{self.value(one, 1)}<<32)"
        one.negated = negated
        return f"(-{text}&0xffffffffffffffff)" if negated else text

    def truth(self, one):
        if one.number == PT:
            return "False" if one.negated else "True"
        text = f"V[{one.number}]" if one.kind == "UP" else self.lanes.setdefault(f"P[{one.number}]", f"a{len(self.lanes)}")
        return f"(not {text})" if one.negated else text

    # Destinations

    def compute(self, expression):
        """Adds lines that evaluate an expression for all lanes. Returns the name of the list, or of the single value if there are no lanes."""
        self.serial += 1
        name = f"n{self.serial}"
        if not self.lanes:
            self.add(f"{name}={expression}")
            return name, False
        names, lists = ",".join(self.lanes.values()), ",".join(self.lanes)
        if len(self.lanes) == 1:
            self.add(f"{name}=[{expression} for {names} in {lists}]")
        else:
            self.add(f"{name}=[{expression} for {names} in zip({lists})]")
        return name, True

    def store(self, one, name, is_list, high=0):
        number = one.number + high
        if one.kind in ("R", "P"):
            if one.number == (RZ if one.kind == "R" else PT):
                return
            place = f"{one.kind}[{number}]"
            if not is_list:
                name = f"[{name}]*{LANES}"
            if self.masked or self.guarded:
                self.add(f"{place}=[x if q else y for x,y,q in zip({name},{place},q)]")
            else:
                self.add(f"{place}={name}")
            return
        if is_list:
            raise Problem("lanes into a uniform register")
        if one.number == (63 if one.kind == "UR" else PT):
            return
        place = f"{'U' if one.kind == 'UR' else 'V'}[{number}]"
        self.add(f"if s: {place}={name}" if self.guarded else f"{place}={name}")

    def assign(self, one, expression):
        name, is_list = self.compute(expression)
        self.store(one, name, is_list)

    def assign_parts(self, expression, parts):
        """Several results of one value `t`: (operand, high, expression in t)."""
        name, is_list = self.compute(expression)
        for one, high, part in parts:
            self.serial += 1
            piece = f"n{self.serial}"
            self.add(f"{piece}=[{part} for t in {name}]" if is_list else f"t={name};{piece}={part}")
            self.store(one, piece, is_list, high)

    def begin(self, one):
        """The guard: `q` are the lanes that take part, `s` whether the warp does."""
        self.lanes = {}
        self.guarded = one.guard is not None and not (one.guard.number == PT and not one.guard.negated)
        if not self.guarded:
            self.add("q=m")
            return
        flip = "not " if one.guard.negated else ""
        if one.guard.kind == "UP":
            self.add(f"s={flip}V[{one.guard.number}]")
            self.add("q=m if s else F" if self.masked else "q=T if s else F")
        elif one.guard.number == PT:
            self.add("s=False;q=F")
        else:
            lanes = f"[{flip}p for p in P[{one.guard.number}]]"
            self.add(f"q=[{flip}p and x for p,x in zip(P[{one.guard.number}],m)]" if self.masked else f"q={lanes}")
            self.add("s=any(q)")


def outputs(operands):
    """The destination, predicates written behind it, and the sources."""
    count = 1
    while count < len(operands) and operands[count].is_predicate():
        count += 1
    return operands[0], operands[1:count], operands[count:]


def lift(block, one):
    """Adds one instruction that does not jump."""
    op = one.op
    if op in ("NOP", "BSSY", "BSYNC", "WARPSYNC", "BREAK", "YIELD", "BMOV", "MEMBAR", "ERRBAR", "CCTL", "DEPBAR"):
        return  # lanes converge by the order in which machine.py runs them
    block.begin(one)
    if op in ("LDG", "LD", "LDS", "LDL", "STG", "ST", "STS", "STL") or (op == "LDC" and one.memory()):
        return access(block, one)
    name = op[1:] if op.startswith("U") and op[1:] in MEANING else op
    if name not in MEANING:
        raise Problem(f"an instruction that the interpreter does not know: {one.text}")
    MEANING[name](block, one)


def is_part(one):
    """True if less than a word is moved."""
    return any(m in ("U8", "S8", "U16", "S16") for m in one.mods)


def lop3(b, one):
    operands = list(one.operands)
    truth = operands.pop(0) if operands[0].is_predicate() else None
    a0, a1, a2 = (b.value(x) for x in operands[1:4])
    expression = logic(operands[4].number, a0, a1, a2)
    name, is_list = b.compute(expression)
    if truth is not None:
        # The predicate is "the result is not 0", combined with the last operand: with PAND by AND, otherwise by OR.
        word = "and" if "PAND" in one.mods else "or"
        found = b.compute(f"(({expression})!=0 {word} {b.truth(operands[5])})")
    b.store(operands[0], name, is_list)
    if truth is not None:
        b.store(truth, *found)


def iadd3(b, one):
    to, carries, sources = outputs(one.operands)
    values = [x for x in sources if not x.is_predicate()]
    added = [b.truth(x) for x in sources if x.is_predicate()] if "X" in one.mods else []
    terms = [b.value(x) for x in values]
    if len(carries) < 2:
        total = "+".join(terms + added)
        parts = [(to, 0, f"t&{FULL}")] + [(x, 0, "t>>32!=0") for x in carries]
        return b.assign_parts(total, parts)
    # The order of the two carries does not matter: the instruction that reads them adds both.
    total = "+".join(terms + added)
    b.assign_parts(total, [(to, 0, f"t&{FULL}"), (carries[0], 0, "t>>32>0"), (carries[1], 0, "t>>32>1")])


def imad(b, one):
    to, carries, sources = outputs(one.operands)
    x, y, z = sources[:3]
    extra = [b.truth(p) for p in sources[3:] if p.is_predicate()] if "X" in one.mods else []
    signed = "U32" not in one.mods
    if "WIDE" in one.mods:
        a, c = b.value(x), b.value(y)
        if signed:
            a, c = (f"(({v}&{FULL}^0x80000000)-0x80000000)" for v in (a, c))
        total = "+".join([f"{a}*{c}", b.pair(z)] + extra)
        parts = [(to, 0, f"t&{FULL}"), (to, 1, f"t>>32&{FULL}")] + [(p, 0, "t>>64!=0") for p in carries]
        return b.assign_parts(total, parts)
    if "HI" in one.mods:
        if signed:
            raise Problem(f"a signed high product: {one.text}")
        total = "+".join([f"{b.value(x)}*{b.value(y)}", b.pair(z)] + extra)
        return b.assign_parts(total, [(to, 0, f"t>>32&{FULL}")] + [(p, 0, "t>>64!=0") for p in carries])
    if carries:
        raise Problem(f"a carry out of a product: {one.text}")
    b.assign(to, f"({'+'.join([f'{b.value(x)}*{b.value(y)}', b.value(z)] + extra)})&{FULL}")


def shf(b, one):
    to, low, count, high = one.operands
    kind = next(m for m in one.mods if m in ("U32", "S32", "U64", "S64"))
    a, n, c = b.value(low), b.value(count), b.value(high)
    if kind[0] == "S":
        c = f"(({c}^0x80000000)-0x80000000)"
    n = f"({n}&31)" if "W" in one.mods else f"min({n},{63 if kind.endswith('64') else 32})"
    value = f"(({c}<<32|{a}){'<<' if 'L' in one.mods else '>>'}{n})"
    b.assign(to, f"{value}>>32&{FULL}" if "HI" in one.mods else f"{value}&{FULL}")


def isetp(b, one):
    first, second, x, y, last = one.operands[:5]
    compare = {"LT": "<", "LE": "<=", "GT": ">", "GE": ">=", "EQ": "==", "NE": "!="}[one.mods[0]]
    joined = next(m for m in one.mods if m in ("AND", "OR", "XOR"))
    a, c = b.value(x), b.value(y)
    if "U32" not in one.mods and compare not in ("==", "!="):
        a, c = (f"(({v}&{FULL}^0x80000000)-0x80000000)" for v in (a, c))
    elif x.negated or y.negated:
        a, c = f"{a}&{FULL}", f"{c}&{FULL}"
    result = f"({a}{compare}{c})"
    if "EX" in one.mods:
        low = b.truth(one.operands[5])
        if compare == "!=":
            result = f"(({a}!={c}) or {low})"
        elif compare == "==":
            result = f"(({a}=={c}) and {low})"
        else:
            result = f"(({a}{compare[0]}{c}) or (({a}=={c}) and {low}))"
    word, p = {"AND": "and", "OR": "or", "XOR": "!="}[joined], b.truth(last)
    other = f"((not {result}) {word} {p})"
    name, is_list = b.compute(f"({result} {word} {p},{other})")
    for place, index in ((first, 0), (second, 1)):
        b.add(f"n=[x[{index}] for x in {name}]" if is_list else f"n={name}[{index}]")
        b.store(place, "n", is_list)


def lea(b, one):
    to, carries, sources = outputs(one.operands)
    x, y = sources[:2]
    numbers = [s for s in sources[2:] if not s.is_predicate()]
    extra = [b.truth(p) for p in sources if p.is_predicate()] if "X" in one.mods else []
    if x.negated and ("SX32" in one.mods or "HI" in one.mods):
        raise Problem(f"an address that the interpreter does not know: {one.text}")
    if "SX32" in one.mods:
        a = f"((({b.value(x)}^0x80000000)-0x80000000)<<{numbers[-1].number}>>32&{FULL})"
    elif "HI" in one.mods:
        a = f"((({b.value(numbers[0])}<<32|{b.value(x)})<<{numbers[1].number})>>32&{FULL})"
    else:
        # The sign applies to the shifted value, so the carry is that of a subtraction.
        is_negated, x.negated = x.negated, False
        a = f"({b.value(x)}<<{numbers[0].number}&{FULL})"
        x.negated = is_negated
        a = f"(({a}^{FULL})+1)" if is_negated else a
    b.assign_parts("+".join([a, b.value(y)] + extra), [(to, 0, f"t&{FULL}")] + [(p, 0, "t>>32!=0") for p in carries])


def prmt(b, one):
    to, x, digits, y = one.operands
    if set(one.mods) or digits.kind != "I":
        raise Problem(f"a permutation that the interpreter does not know: {one.text}")
    parts = []
    for place in range(4):
        digit = digits.number >> 4 * place & 15
        source, at = (y if digit & 4 else x), 8 * (digit & 3)
        value = b.value(source)
        if value == "0":
            continue
        byte = f"({value}>>{at}&255)" if not digit & 8 else f"(255*({value}>>{at + 7}&1))"
        parts.append(f"{byte}<<{8 * place}")
    b.assign(to, "|".join(parts) or "0")


def prmt_any(b, one):
    to, x, digits, y = one.operands
    if digits.kind == "I":
        return prmt(b, one)
    b.assign(to, f"permuted({b.value(x)},{b.value(digits)},{b.value(y)})")


def permuted(a, digits, c):
    both, result = c << 32 | a, 0
    for place in range(4):
        digit = digits >> 4 * place & 15
        byte = both >> 8 * (digit & 7) & 255
        result |= ((255 if byte & 128 else 0) if digit & 8 else byte) << 8 * place
    return result


def plop3(b, one):
    outs, ins = one.operands[:2], one.operands[2:5]
    x, y, z = (b.truth(p) for p in ins)
    tables = [p.number for p in one.operands[5:7]]
    # The first table is for the first predicate.
    for place, table in zip(outs, tables):
        b.assign(place, f"bool({table}>>(4*{x}+2*{y}+{z})&1)")


def select(b, one):
    to, x, y, p = one.operands
    b.assign(to, f"({b.value(x)} if {b.truth(p)} else {b.value(y)})&{FULL}")


def minmax(b, one, sources):
    *values, p = sources
    if "U32" not in one.mods:
        values = [f"(({v}&{FULL}^0x80000000)-0x80000000)" for v in values]
    b.assign(one.operands[0], f"(min if {b.truth(p)} else max)({values[0]},{values[1]})&{FULL}")


def viaddmnmx(b, one):
    _, x, y, z, p = one.operands
    minmax(b, one, [f"({b.value(x)}+{b.value(y)}&{FULL})", b.value(z), p])


def imnmx(b, one):
    _, x, y, p = [o for o in one.operands]
    minmax(b, one, [b.value(x), b.value(y), p])


def move(b, one):
    to, source = one.operands[:2]
    if is_part(one):
        if source.kind != "C" or source.base is not None or not ("U8" in one.mods or "U16" in one.mods):
            raise Problem(f"a move that the interpreter does not know: {one.text}")
        word, at = source.number & ~3, source.number & 3
        return b.assign(to, f"K({source.bank},{word})>>{8 * at}&{255 if 'U8' in one.mods else 65535}")
    for high in range(one.width()):
        b.lanes = {}
        b.assign(to, f"{b.value(source, high)}&{FULL}" if source.negated else b.value(source, high))
        to = plus(to)


def plus(operand):
    """The next register."""
    from copy import copy

    result = copy(operand)
    result.number += 1
    return result


def special(b, one):
    to, source = one.operands[:2]
    if source.text == "SRZ" or one.op == "CS2R":
        if source.text != "SRZ":
            raise Problem(f"a special register: {one.text}")
        for high in range(1 if "32" in one.mods else 2):
            b.store(to, "0", False, high)
        return
    if source.text in ("SR_TID.X", "SR_LANEID"):
        b.add(f"n=w.special('{source.text}')")
        b.store(to, "n", True)
        return
    b.add(f"n=w.special('{source.text}')")
    b.store(to, "n", False)


def to_uniform(b, one):
    to, source = one.operands[0], one.operands[-1]
    if source.number == RZ:
        b.store(to, "0", False)
    else:
        # The compiler uses this instruction only if all lanes have the same value.
        b.add(f"n=R[{source.number}][w.first(q)]")
        b.store(to, "n", False)


def shuffle(b, one):
    kind = one.mods[0]
    truth, to, source, lane, clamp = one.operands
    if clamp.kind != "I" or kind not in ("IDX", "BFLY", "UP", "DOWN"):
        raise Problem(f"a shuffle that the interpreter does not know: {one.text}")
    b.add(f"l={listed(b, lane)}")
    b.add(f"v={listed(b, source)}")
    b.add(f"n,o=shuffled('{kind}',v,l,{clamp.number})")
    b.store(to, "n", True)
    b.store(truth, "o", True)


def shuffled(kind, values, lanes, clamp):
    result, there = [], []
    for own in range(LANES):
        segment, limit = clamp >> 8 & 31, clamp & 31
        low = own & segment
        high = low | (limit & ~segment)
        other = {"IDX": low | (lanes[own] & ~segment & 31), "BFLY": own ^ lanes[own], "UP": own - lanes[own], "DOWN": own + lanes[own]}[kind]
        good = other >= high if kind == "UP" else other <= high
        result.append(values[other] if good else values[own])
        there.append(good)
    return result, there


def listed(b, one):
    if one.kind == "R" and one.number != RZ:
        return f"R[{one.number}]"
    return f"[{b.value(one)}]*{LANES}"


def vote(b, one):
    kind = one.mods[0]
    places = [o for o in one.operands[:-1]]
    source = one.operands[-1]
    b.add(f"v=[{b.truth(source)} for {','.join(b.lanes.values()) or '_'} in {','.join(b.lanes) or 'range(32)'}]")
    b.add("v=[bool(x) and (q is None or q[i]) for i,x in enumerate(v)]")
    b.add("n=sum(1<<i for i,x in enumerate(v) if x)")
    b.add("c=32 if q is None else sum(q)")
    for place in places:
        if place.is_register():
            b.store(place, "n", False)
        elif place.number != PT:
            b.add({"ANY": "o=any(v)", "ALL": "o=sum(v)==c", "EQ": "o=sum(v) in (0,c)"}[kind])
            b.store(place, "o", False)


def tensor(b, one):
    """The product of matrices of bits that the whole warp holds (PTX ISA, "Matrix fragments for mma.m16n8k256")."""
    if one.mods != ("168256", "AND", "POPC") or b.masked or b.guarded:
        raise Problem(f"a tensor instruction that the interpreter does not know: {one.text}")
    to, left, right, sums = one.operands

    def registers(operand, count):
        return ",".join("Z" if operand.number == RZ else f"R[{operand.number + i}]" for i in range(count))

    b.add(f"n=product_of_bits(({registers(left, 4)}),({registers(right, 2)}),({registers(sums, 4)}))")
    for i in range(4):
        b.add(f"o=n[{i}]")
        b.store(to, "o", True, i)


def product_of_bits(left, right, sums):
    def row(index):
        low, high = index // 8, 2 + index // 8
        words = [left[low][4 * (index % 8) + t] for t in range(4)] + [left[high][4 * (index % 8) + t] for t in range(4)]
        return sum(word << 32 * i for i, word in enumerate(words))

    def column(index):
        return sum(right[i // 4][4 * index + i % 4] << 32 * i for i in range(8))

    rows, columns = [row(i) for i in range(16)], [column(i) for i in range(8)]
    result = [list(one) for one in sums]
    for i, a in enumerate(rows):
        for j, c in enumerate(columns):
            lane, place = 4 * (i % 8) + j // 2, 2 * (i // 8) + j % 2
            result[place][lane] = result[place][lane] + (a & c).bit_count() & FULL
    return result


def carry_less(b, one):
    to, left, right, summand = one.operands
    shift = 64 if one.mods == ("HI",) else 0
    if one.mods not in (("HI",), ("LO",)):
        raise Problem(f"a carry-less product that the interpreter does not know: {one.text}")
    total = f"carry_less_product({b.pair(left)},{b.pair(right)})>>{shift}&0xffffffffffffffff^{b.pair(summand)}"
    b.assign_parts(total, [(to, 0, f"t&{FULL}"), (to, 1, f"t>>32&{FULL}")])


def carry_less_product(a, b):
    """Polynomials over GF(2)."""
    result = 0
    while b:
        if b & 1:
            result ^= a
        a, b = a << 1, b >> 1
    return result


def one_of(expression):
    def meaning(b, one):
        b.assign(one.operands[0], expression.format(*(b.value(x) for x in one.operands[1:] if not x.is_predicate())))

    return meaning


def viadd(b, one):
    b.assign(one.operands[0], f"({'+'.join(b.value(x) for x in one.operands[1:])})&{FULL}")


MEANING = {
    "LOP3": lop3, "IADD3": iadd3, "IMAD": imad, "SHF": shf, "ISETP": isetp, "LEA": lea, "PRMT": prmt_any, "PLOP3": plop3,
    "SEL": select, "VIADDMNMX": viaddmnmx, "IMNMX": imnmx, "VIMNMX": imnmx, "MOV": move, "LDC": move, "LDCU": move, "ULDC": move,
    "VIADD": viadd, "S2R": special, "S2UR": special, "CS2R": special, "R2UR": to_uniform, "SHFL": shuffle, "VOTE": vote,
    "BMMA": tensor, "CLMAD": carry_less,
    "BREV": one_of("int(f'{{{0}:032b}}'[::-1],2)"), "POPC": one_of("({0}).bit_count()"),
}  # fmt: skip
MEANING["VOTEU"] = vote


def access(b, one):
    """Loads and stores: machine.py executes them and counts their cost."""
    size = {"U8": 1, "S8": -1, "U16": 2, "S16": -2, "64": 8, "128": 16}
    size = next((size[m] for m in one.mods if m in size), 4)
    place = next(o for o in one.operands if o.kind in ("M", "C"))
    spaces = {"LDG": "G", "STG": "G", "LD": "X", "ST": "X", "LDS": "S", "STS": "S", "LDL": "L", "STL": "L"}
    space = "C" if place.kind == "C" else spaces[one.op]
    base = "Z" if place.base is None else f"R[{place.base[1]}]"
    high = f"R[{place.base[1] + 1}]" if place.base is not None and space in "GX" and (place.wide or one.op in ("LD", "ST")) else "None"
    number = f"{place.number}"
    if place.uniform is not None and place.uniform != 63:
        number += f"+U[{place.uniform}]" + (f"+(U[{place.uniform + 1}]<<32)" if space in "GX" and place.base is None else "")
    if space == "C":
        number += f"+({place.bank}<<32)"
    if one.op[:2] == "LD":
        to = one.operands[0]
        if to.kind == "P":
            raise Problem(f"a load with a predicate: {one.text}")
        b.add(f"n=w.load('{space}',{base},{high},{number},{size},q,{one.address})")
        for i in range(max(1, size // 4)):
            if to.number != RZ:
                b.add(f"o=n[{i}]")
                b.store(to, "o", True, i)
        return
    source = one.operands[-1]
    values = ",".join("Z" if source.number == RZ else f"R[{source.number + i}]" for i in range(max(1, size // 4)))
    b.add(f"w.store('{space}',{base},{high},{number},{size},q,({values},),{one.address})")


def compiled(code, masked):
    """A function of (warp) and, if masked, (mask) that runs instructions without a jump."""
    block = Block(masked)
    for one in code:
        lift(block, one)
    head = ["def run(w,m):", "R=w.R;U=w.U;P=w.P;V=w.V;K=w.constant;Z=w.zero;F=w.none;T=w.all"]
    source = "\n ".join(head + block.lines)
    names = {"permuted": permuted, "shuffled": shuffled, "product_of_bits": product_of_bits, "carry_less_product": carry_less_product}
    exec(source, names)  # our own lines, made above
    return names["run"]
