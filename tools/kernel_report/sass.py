"""Machine code as text: what cuobjdump prints, as instructions with operands, classes and control flow."""

import re

FULL = 0xFFFFFFFF
RZ, PT = 255, 7  # numbers of the register that is 0 and of the predicate that is true


class Problem(Exception):
    """An unknown instruction, or a violated requirement."""


class Operand:
    """kind: R, UR, P, UP, I (number), C (constant bank), M (memory), SR (special register), B (barrier), PR (all
    predicates)."""

    __slots__ = ("kind", "number", "negated", "inverted", "bank", "base", "wide", "uniform", "descriptor", "text")

    def __init__(self, kind, number=0, text=""):
        self.kind, self.number, self.text = kind, number, text
        self.negated = self.inverted = self.wide = False
        self.bank = self.base = self.uniform = self.descriptor = None

    def is_register(self):
        return self.kind in ("R", "UR")

    def is_predicate(self):
        return self.kind in ("P", "UP")


class Instruction:
    __slots__ = ("address", "guard", "op", "mods", "operands", "text", "targets")

    def __init__(self, address, text):
        self.targets = []  # of a jump by a register
        self.address, self.text, self.guard = address, text, None
        match = re.match(r"@(!?)(U?P[T0-9]+)\s+(.*)$", text)
        rest = text
        if match:
            self.guard = operand(match[1] + match[2])
            rest = match[3]
        name, _, arguments = rest.partition(" ")
        self.op, *mods = name.split(".")
        self.mods = tuple(mods)
        self.operands = [operand(part) for part in split(arguments)]

    def target(self):
        """The target of a branch, or None."""
        for one in reversed(self.operands):
            if one.kind == "I":
                return one.number
        return None

    def memory(self):
        """The operands that are addresses, including constant banks with a register."""
        return [one for one in self.operands if one.kind == "M" or (one.kind == "C" and one.base is not None)]

    def width(self):
        """The number of registers of a load, a store or a move."""
        return 4 if "128" in self.mods else 2 if "64" in self.mods else 1


def split(arguments):
    """Splits at commas, but not between `desc[..]` and its address."""
    arguments = arguments.strip()
    return [part.strip() for part in arguments.split(",")] if arguments else []


REGISTER = re.compile(r"(U?)R(Z|\d+)((?:\.\w+)*)$")
PREDICATE = re.compile(r"(U?)P(T|\d)$")
NUMBER = re.compile(r"[-+]?(0x[0-9a-f]+|\d+)$")


def operand(text):
    whole, text = text, text.replace(".reuse", "")
    negated = inverted = False
    while text[:1] in "!-~|":
        negated |= text[0] in "!-"
        inverted |= text[0] == "~"
        if text[0] == "|":
            raise Problem(f"absolute value: {whole}")
        if NUMBER.match(text):
            break
        text = text[1:]
    result = plain_operand(text, whole)
    if result.kind != "I":
        result.negated, result.inverted = negated, inverted
    return result


def plain_operand(text, whole):
    match = REGISTER.match(text.partition(" ")[0])
    if match:
        uniform = match[1] == "U"
        number = (63 if uniform else RZ) if match[2] == "Z" else int(match[2])
        result = Operand("UR" if uniform else "R", number, whole)
        result.wide = ".64" in match[3]
        # Operands of tensor instructions name how a lane holds the matrix.
        if match[3] not in ("", ".64", ".ROW", ".COL"):
            raise Problem(f"part of a register: {whole}")
        return result
    match = PREDICATE.match(text)
    if match:
        return Operand("U" * bool(match[1]) + "P", PT if match[2] == "T" else int(match[2]), whole)
    if NUMBER.match(text):
        return Operand("I", int(text, 0), whole)
    match = re.match(r"c\[(0x[0-9a-f]+)\]\s*\[(.*)\]$", text)
    if match:
        result = Operand("C", 0, whole)
        result.bank = int(match[1], 16)
        address(result, match[2])
        return result
    match = re.match(r"(?:g?desc\[(UR\d+)\])?(?:\.64)?\[(.*)\]$", text)
    if match:
        result = Operand("M", 0, whole)
        if match[1]:
            result.descriptor = int(match[1][2:])
        address(result, match[2])
        return result
    if text.startswith("SR"):
        return Operand("SR", 0, text)
    if re.match(r"B\d+$", text):
        return Operand("B", int(text[1:]), whole)
    if text in ("PR", "UPR"):
        return Operand("PR", 0, whole)
    # Labels, scoreboards and similar operands carry no data.
    if re.match(r"[-+]?(INF|QNAN)|\d+\.|[-+]\d", text):
        return Operand("F", 0, whole)
    return Operand("X", 0, whole)


def address(result, inside):
    """base + uniform + number."""
    for part in re.split(r"(?<=[\w])\+", inside):
        match = REGISTER.match(part.replace(".X4", "").replace(".X8", "").replace(".X16", ""))
        if ".X" in part:
            raise Problem(f"scaled address: [{inside}]")
        if match and match[1] == "U":
            result.uniform = 63 if match[2] == "Z" else int(match[2])
            if ".64" in match[3]:
                result.wide = True
            if result.kind == "C" and result.base is None:
                result.base = ("UR", result.uniform)
        elif match:
            number = RZ if match[2] == "Z" else int(match[2])
            result.wide |= ".64" in match[3]
            if number != RZ:
                result.base = ("R", number)
        else:
            result.number += int(part, 0)


LINE = re.compile(r"^\s+/\*([0-9a-f]{4,})\*/\s+(.*?)\s*;")
def resolve(code, tables):
    """Determines the targets of jumps by a register: the targets are in its table in constant bank 2, which ends where the next table begins."""
    begins = {}
    for index, one in enumerate(code):
        if one.op != "BRX":
            continue
        register = one.operands[0].number
        loads = [i for i in code[max(0, index - 16) : index] if i.op == "LDC" and i.operands[0].number == register and i.operands[1].bank == 2]
        if not loads or one.address + 16 + jump_base(one) != 0:
            raise Problem(f"a jump whose targets are not known: {one.text}")
        begins[one.address] = loads[-1].operands[1].number
    there = {one.address for one in code}
    for one in code:
        if one.address in begins:
            begin = begins[one.address]
            end = min([other for other in begins.values() if other > begin], default=len(tables))
            one.targets = sorted({int.from_bytes(tables[i : i + 4], "little") for i in range(begin, end, 4)})
            if not one.targets or not set(one.targets) <= there:
                raise Problem(f"a jump to where nothing is: {one.text}")


def jump_base(one):
    """`BRX R4 -0xae0`: the offset that is added to the register and the next address."""
    return int(one.text.split()[-1], 0)


BRANCHES = ("BRA", "BRX", "JMP", "JMX", "EXIT", "RET", "CALL", "BRXU", "JMXU", "KILL")


def functions(text):
    """Name -> instructions, from `cuobjdump -sass`."""
    found, current = {}, None
    for line in text.splitlines():
        if "Function : " in line:
            current = found.setdefault(line.split("Function : ")[1].strip(), [])
            continue
        match = LINE.match(line)
        if match and current is not None:
            instruction = Instruction(int(match[1], 16), re.sub(r"\s+", " ", match[2].replace("{", "").strip()))
            # After the last jump there is only padding.
            current.append(instruction)
    for code in found.values():
        while code and code[-1].op == "NOP":
            code.pop()
        if code and code[-1].op == "BRA" and code[-1].target() == code[-1].address:
            code.pop()
    return found


def blocks(code):
    """Basic blocks: address of the first instruction -> instructions."""
    leaders = {code[0].address} if code else set()
    for index, one in enumerate(code):
        if one.op in BRANCHES or one.op == "BAR":
            if one.op in ("BRA", "CALL") and one.target() is not None:
                leaders.add(one.target())
            leaders.update(one.targets)
            if index + 1 < len(code):
                leaders.add(code[index + 1].address)
    result, current = {}, None
    for one in code:
        if one.address in leaders:
            current = result[one.address] = []
        current.append(one)
    missing = leaders - set(result)
    if missing:
        raise Problem(f"a jump to {min(missing):#x}, where nothing is")
    return result


def successors(code):
    """Address -> addresses that may follow it, for each instruction."""
    returns = [code[i + 1].address for i, one in enumerate(code[:-1]) if one.op == "CALL"]
    result = {}
    for index, one in enumerate(code):
        behind = [code[index + 1].address] if index + 1 < len(code) else []
        always = one.guard is None or (one.guard.number == PT and not one.guard.negated)
        if one.op == "BRA":
            extra = [o for o in one.operands if o.is_predicate() and o.number != PT] or "DIV" in one.mods
            result[one.address] = [one.target()] + ([] if always and not extra else behind)
        elif one.op == "CALL":
            result[one.address] = [one.target()] + ([] if always else behind)
        elif one.op == "RET":
            result[one.address] = returns + ([] if always else behind)
        elif one.op == "BRX" and one.targets:
            result[one.address] = one.targets + ([] if always else behind)
        elif one.op in ("EXIT", "KILL"):
            result[one.address] = [] if always else behind
        elif one.op in BRANCHES:
            raise Problem(f"indirect jump: {one.text}")
        elif one.op == "WARPSYNC" and "COLLECTIVE" in one.mods:
            # The whole warp runs the code at the target; ENDCOLLECTIVE returns to the next instruction.
            result[one.address] = [one.target()] + behind
        else:
            result[one.address] = behind
    collectives = [code[i + 1].address for i, one in enumerate(code[:-1]) if one.op == "WARPSYNC" and "COLLECTIVE" in one.mods]
    for one in code:
        if one.op == "ENDCOLLECTIVE":
            result[one.address] = result[one.address] + collectives
    return result


# The execution unit of each instruction on Hopper. `alu`: 64 lanes per multiprocessor and clock; `fma`: the multiplier's pipe, 64 lanes (the
# heavy half); `tensor`: the tensor units; `carry_less`: carry-less products; `mem`: loads and stores; `uniform`: one value
# per warp, on a separate unit; `control`: the rest.
ALU = (
    "LOP3 SHF PRMT IADD3 SEL ISETP LEA MOV VIADD VIADDMNMX VIMNMX IMNMX PLOP3 BREV SGXT BMSK FLO IABS LOP IADD FSEL ISCADD "
    "FMNMX P2R R2P VIMNMX3 POPC I2F F2I MUFU VABSDIFF VABSDIFF4"
).split()
FMA = "IMAD FFMA FMUL FADD HFMA2 HADD2 HMUL2 IDP IMUL".split()
TENSOR = "BMMA".split()
CARRY_LESS = "CLMAD".split()
MEMORY = "LDG STG LDS STS LDC LDL STL LD ST ATOM ATOMS ATOMG RED LDSM LDGSTS REDUX SHFL".split()
CONTROL = (
    "BRA EXIT BSSY BSYNC BREAK NOP WARPSYNC BAR CALL RET BMOV YIELD MEMBAR ERRBAR CCTL DEPBAR ENDCOLLECTIVE S2R S2UR CS2R R2UR "
    "VOTE VOTEU NANOSLEEP KILL FENCE ELECT MATCH LEPC JMP BRX RPCMOV PREEXIT ACQBULK UCGABAR_ARV UCGABAR_WAIT"
).split()


def pipe(one):
    """The class of an instruction."""
    if one.op in ALU:
        return "alu"
    if one.op in FMA:
        return "fma"
    if one.op in TENSOR:
        return "tensor"
    if one.op in CARRY_LESS:
        return "carry_less"
    if one.op in MEMORY:
        return "mem"
    if one.op in CONTROL:
        return "control"
    if one.op.startswith("U"):
        return "uniform"
    raise Problem(f"an instruction of unknown class: {one.text}")
