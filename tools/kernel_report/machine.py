"""Executes the machine code of a thread block and counts the executed instructions.

Lanes of a warp that are at different addresses run in the order of these addresses, lowest first, so that they converge again.
Each instruction is counted each time it is issued. This is a model of executed instructions, not of time.
"""

from collections import Counter

from lift import LANES, compiled
from sass import PT, Problem, blocks, pipe

REGION = 36  # an address is region << 36 | offset
SHARED_BASE = 0x400  # the system uses the addresses below


class Cost(Counter):
    """Executed warp instructions by opcode; additional costs have names with a colon."""

    def pipes(self):
        result = Counter()
        for name, count in self.items():
            if ":" in name:
                result[name] += count
        return result


class Program:
    """One entry point."""

    def __init__(self, code, banks):
        self.code, self.banks = code, banks
        self.blocks = blocks(code)
        self.order = {one.address: code[i + 1].address if i + 1 < len(code) else None for i, one in enumerate(code)}
        self.cache = {}
        self.costs = {start: self.cost(block) for start, block in self.blocks.items()}

    @staticmethod
    def cost(block):
        cost = Counter()
        for one in block:
            cost[one.op] += 1
            cost["pipe:" + pipe(one)] += 1
            cost["issue:"] += 1
        return cost

    def function(self, start, masked):
        key = (start, masked)
        if key not in self.cache:
            block = self.blocks[start]
            body = block[:-1] if ends(block[-1]) else block
            self.cache[key] = compiled(body, masked)
        return self.cache[key]


def ends(one):
    return one.op in ("BRA", "BRX", "EXIT", "BAR", "CALL", "RET", "KILL") or (one.op == "WARPSYNC" and "COLLECTIVE" in one.mods)


class Machine:
    """Memory and launches. `watched`: a region for which the offsets of loads are recorded, modulo a size."""

    def __init__(self, regions, watched=(None, 1)):
        self.regions = regions  # number -> bytearray
        self.watched, self.size = watched
        self.seen = {}  # address of a load -> where it loaded from

    def launch(self, program, parameters, grid, threads, dynamic_shared, only):
        """`only` selects the thread blocks to run."""
        static_shared = program.static_shared
        bank = bytearray(program.banks.get(0, b""))
        base = program.parameters
        bank.extend(bytes(max(0, base + len(parameters) - len(bank))))
        bank[base : base + len(parameters)] = parameters
        bank[0:12] = b"".join(x.to_bytes(4, "little") for x in (threads, 1, 1))
        bank[12:24] = b"".join(x.to_bytes(4, "little") for x in (grid, 1, 1))
        banks = dict(program.banks)
        banks[0] = bytes(bank)
        cost = Cost()
        for index in only:
            shared = bytearray(SHARED_BASE + static_shared + dynamic_shared + 1024)
            warps = []
            for first in range(0, threads, LANES):
                warps.append(Warp(self, program, banks, shared, index, first, min(LANES, threads - first), cost))
            running = warps
            while running:
                for warp in running:
                    warp.run()
                running = [warp for warp in running if not warp.is_done]
        return cost


class Warp:
    def __init__(self, machine, program, banks, shared, block, first, lanes, cost):
        self.machine, self.program, self.banks, self.shared = machine, program, banks, shared
        self.block, self.first_thread, self.cost = block, first, cost
        self.zero = [0] * LANES
        self.none, self.all = [False] * LANES, [True] * LANES
        self.R = [self.zero] * 256
        self.U = [0] * 64
        self.P = [self.none] * 7 + [self.all]
        self.V = [False] * 7 + [True]
        start = program.code[0].address
        self.at = [start] * lanes + [None] * (LANES - lanes)
        self.is_done = False
        self.local = {}
        self.words = {}

    def constant(self, bank, at):
        key = bank << 32 | at
        if key not in self.words:
            if bank not in self.banks or at + 4 > len(self.banks[bank]):
                # The driver's values follow the parameters. Of these, kernels only pass descriptors on to other instructions.
                if bank == 0 and at < self.program.parameters:
                    return 0
                raise Problem(f"nothing at c[{bank:#x}][{at:#x}]")
            self.words[key] = int.from_bytes(self.banks[bank][at : at + 4], "little")
        return self.words[key]

    def special(self, name):
        if name == "SR_TID.X":
            return [self.first_thread + i for i in range(LANES)]
        if name == "SR_LANEID":
            return list(range(LANES))
        known = {"SR_CTAID.X": self.block, "SR_CgaCtaId": 0, "SR_CTAID.Y": 0, "SR_CTAID.Z": 0}
        if name not in known:
            raise Problem(f"a special register: {name}")
        return known[name]

    @staticmethod
    def first(mask):
        return 0 if mask is None else mask.index(True) if True in mask else 0

    def run(self):
        """Runs until all lanes are at a barrier or have exited."""
        program = self.program
        while True:
            there = [at for at in self.at if at is not None]
            if not there:
                self.is_done = True
                return
            start = min(there)
            mask = [at == start for at in self.at]
            masked = not all(mask)
            block = program.blocks[start]
            self.cost.update(program.costs[start])
            program.function(start, masked)(self, mask if masked else None)
            if self.jump(block[-1], mask):
                return

    def jump(self, last, mask):
        """Moves the lanes to their next addresses. Returns True at a barrier."""
        behind = self.program.order[last.address]
        taking = mask
        if ends(last):
            for guard in [last.guard] + [o for o in last.operands if o.is_predicate()]:
                if guard is not None and guard.number != PT:
                    lanes = [self.V[guard.number]] * LANES if guard.kind == "UP" else self.P[guard.number]
                    taking = [bool(p) != guard.negated and t for p, t in zip(lanes, taking)]
                elif guard is not None and guard.negated:
                    taking = self.none
        if last.op == "BRA" and "DIV" in last.mods:
            # Taken if not all lanes are at this address.
            if sum(mask) == sum(at is not None for at in self.at):
                taking = self.none
        if last.op == "BRA":
            target = last.target()
        elif last.op in ("EXIT", "KILL"):
            target = None
        elif last.op == "CALL":
            target = last.target()
        elif last.op == "BRX":
            targets = self.R[last.operands[0].number]
            self.at = [(to if t else behind) if m else at for m, t, to, at in zip(mask, taking, targets, self.at)]
            return False
        elif last.op == "BAR":
            if mask != [at is not None for at in self.at]:
                raise Problem("some lanes of a warp are at a barrier and others are not")
            target = behind
        elif ends(last):
            raise Problem(f"a jump that the interpreter does not know: {last.text}")
        else:
            target = behind
            taking = mask
        self.at = [(target if t else behind) if m else at for m, t, at in zip(mask, taking, self.at)]
        return last.op == "BAR"

    # Memory

    def load(self, space, base, high, number, size, mask, at):
        signed, size = size < 0, abs(size)
        words = max(1, size // 4)
        results = [[0] * LANES for _ in range(words)]
        places = self.places(space, base, high, number, mask)
        self.count(space, places, size, "load")
        if space in "GX" and places and places[0][1] >> REGION == self.machine.watched:
            inside = (place & (1 << REGION) - 1 for _, place in places)
            self.machine.seen.setdefault(at, set()).update(place % self.machine.size for place in inside)
        for lane, place in places:
            memory, offset = self.memory(space, place, size, lane)
            raw = memory[offset : offset + size]
            if len(raw) != size or place % size:
                raise Problem(f"a load of {size} bytes at {place:#x} by the instruction at {at:#x}")
            if size >= 4:
                for i in range(words):
                    results[i][lane] = int.from_bytes(raw[4 * i : 4 * i + 4], "little")
            else:
                results[0][lane] = int.from_bytes(raw, "little", signed=signed) & 0xFFFFFFFF
        return results

    def store(self, space, base, high, number, size, mask, values, at):
        places = self.places(space, base, high, number, mask)
        self.count(space, places, size, "store")
        for lane, place in places:
            memory, offset = self.memory(space, place, size, lane)
            if place % size or offset + size > len(memory):
                raise Problem(f"a store of {size} bytes at {place:#x} by the instruction at {at:#x}")
            if size >= 4:
                memory[offset : offset + size] = b"".join(v[lane].to_bytes(4, "little") for v in values)
            else:
                memory[offset : offset + size] = (values[0][lane] & (1 << 8 * size) - 1).to_bytes(size, "little")

    def places(self, space, base, high, number, mask):
        lanes = [i for i in range(LANES) if self.at[i] is not None] if mask is None else [i for i in range(LANES) if mask[i]]
        if high is not None:
            return [(i, (base[i] | high[i] << 32) + number & 0xFFFFFFFFFFFFFFFF) for i in lanes]
        if space == "C":
            return [(i, base[i] + number) for i in lanes]
        return [(i, base[i] + number & 0xFFFFFFFF if space in "SL" else base[i] + number) for i in lanes]

    def memory(self, space, place, size, lane):
        if space == "S":
            if place < SHARED_BASE:
                raise Problem(f"shared memory at {place:#x}, which is the system's")
            return self.shared, place
        if space == "L":
            return self.local.setdefault(lane, bytearray(1 << 16)), place
        if space == "C":
            return self.banks.get(place >> 32, b""), place & 0xFFFFFFFF
        region = self.machine.regions.get(place >> REGION)
        if region is None:
            raise Problem(f"nothing at {place:#x}")
        return region, place & (1 << REGION) - 1

    def count(self, space, places, size, what):
        """Counts the cost of the access in addition to its issue."""
        name = {"S": "shared", "L": "local", "C": "constant"}.get(space, "global")
        self.cost[f"lanes:{name}_{what}"] += len(places)
        self.cost[f"bytes:{name}_{what}"] += len(places) * size
        if name == "shared":
            self.cost["wavefronts:shared"] += wavefronts(places, size)
        elif name == "constant":
            self.cost["wavefronts:constant"] += len({place for _, place in places})
        elif name == "global":
            self.cost[f"sectors:{what}"] += len({(place + i) >> 5 for _, place in places for i in (0, size - 1)})


def wavefronts(places, size):
    """Clocks of shared memory: 32 banks of 4 bytes, each of which delivers one word; a word that several lanes read is delivered
    once. Accesses of 8 and 16 bytes go by halves and quarters of the warp."""
    group = LANES // max(1, size // 4)
    total = 0
    for begin in range(0, LANES, group):
        words = {}
        for lane, place in places:
            if begin <= lane < begin + group:
                for word in range(place >> 2, (place + size + 3) >> 2):
                    words.setdefault(word % 32, set()).add(word)
        total += max(map(len, words.values()), default=0)
    return total
