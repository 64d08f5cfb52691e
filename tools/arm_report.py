#!/usr/bin/env python3
"""The time of the loops of the CPU kernels for 64-bit Arm, by a model of the processor (llvm-mca), beside AWS-LC's GCM.

    tools/arm_report.py [--check]       writes docs/kernels-arm.md; with --check, only compares the limits below

The program compiles the crate lockstep-cpu for Arm (tools/arm64/run.sh), finds the loops of the kernels in the machine code, and
passes one iteration of each loop to llvm-mca. It does the same with the loops of GCM of AWS-LC, from the source of the crate
aws-lc-sys. It needs llvm-mca (Debian: package llvm-19).
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent
PAGE = PROJECT / "docs/kernels-arm.md"
TARGET = "aarch64-unknown-linux-gnu"

SHA3 = "cpu/armv8-sha3"
# AWS-LC's loops of GCM: the source file, and the blocks of a step.
FOUR_BLOCKS = ("aesv8-gcm-armv8", 4)
EIGHT_BLOCKS = ("aesv8-gcm-armv8-unroll8", 8)
# Processors for which LLVM has a model of their own, with the kernel and the loop of AWS-LC that run there. Neoverse N1 has no EOR3.
# AWS-LC uses its loop with EOR3 on Neoverse V1 and V2, and on processors that are not in this list, but not on Neoverse N2
# (`CRYPTO_is_ARMv8_GCM_8x_capable`).
PROCESSORS = {
    "neoverse-n1": ("Neoverse N1", "cpu/armv8", FOUR_BLOCKS),
    "neoverse-n2": ("Neoverse N2", SHA3, FOUR_BLOCKS),
    "neoverse-v1": ("Neoverse V1", SHA3, EIGHT_BLOCKS),
    "neoverse-v2": ("Neoverse V2", SHA3, EIGHT_BLOCKS),
}
# The version of llvm-mca whose models the page and the limit are from.
VERSION = "19."
KERNELS = {"Armv8Sha3": SHA3, "Armv8": "cpu/armv8"}
# The functions of the passes: the name on the page, the blocks of a step, and the number of loops (one for each direction).
PASSES = {
    "ecb::long": ("ECB", 8, 2),
    "ctr::long": ("CTR, 128-bit counter", 8, 1),
    "ctr32::long": ("CTR, 32-bit counter", 8, 1),
    "cbc_decrypt::long": ("CBC decryption", 8, 1),
    "cfb128_decrypt::long": ("CFB-128 decryption", 8, 1),
    "xts::long": ("XTS", 6, 2),
    "ocb::long": ("OCB3", 8, 2),
    "gcm::entry": ("GCM", 8, 2),
    "gcm_siv::entry": ("GCM-SIV", 8, 2),
}
ROUNDS = {128: 10, 192: 12, 256: 14}
# The key sizes of the tables.
SIZES = (128, 256)
# GCM may take at most this multiple of the clocks of AWS-LC's loop on each of the processors.
LIMIT = 1.00

INTRODUCTION = """# CPU kernels for 64-bit Arm, by a model

`tools/arm_report.py` writes this page. Do not edit it.

No processor with these instructions was measured. The figures are those of llvm-mca (LLVM {tool}), which simulates the execution
units of a processor, for one iteration of the loop over whole steps. rustc {compiler} has compiled the kernels. The model has no
caches, predicts no branch wrong, and knows the processors only as far as LLVM does: it shows which loop has too many instructions,
not the rate of a machine. The processors fuse AESE with an adjacent AESMC, and AESD with AESIMC. llvm-mca does not, so the report
passes it only the first of both.

LLVM has models of its own for the Neoverse processors in the tables, but not for Cortex-A76 (it uses that of Cortex-A57) and
not for Apple M1 (it uses that of Apple A7). Cortex-A76 and Apple M1 are therefore not in the tables. The kernel is `cpu/armv8`
on Neoverse N1, which does not have the instruction EOR3, and `cpu/armv8-sha3` on the other processors. The peer is AWS-LC in
aws-lc-sys {version}, with the loop that it selects for the processor.
"""
PASSES_TEXT = """Clocks per block of 16 bytes. If a pass has a loop for each direction, the figure is that of the slower one.
CTR with a 128-bit counter has several loops of eight blocks; the figure is that of the loop with the fewest instructions.
"""
GCM_TEXT = """Clocks per block of Lockstep and of AWS-LC, and their ratio (below 1: Lockstep takes fewer clocks). The figure is that of the slower
of sealing and opening. In the first two rows, loads do not wait for earlier stores, as on processors that predict which loads
depend on stores. In the last two rows, each load waits for all earlier stores. This is a bound, which no such processor reaches.
Neither Lockstep's loops nor those of AWS-LC access the stack.
"""

CONDITIONAL = ("b.", "cbz", "cbnz", "tbz", "tbnz")
ENDS = ("ret", "br", "bl", "blr", "brk", "udf")
# Paths through a loop that are longer are not the loop over whole steps.
MAX_INSTRUCTIONS = 1200
MAX_PATHS = 3000


def run(*command, **options):
    return subprocess.run([str(part) for part in command], check=True, text=True, capture_output=True, **options).stdout


def fail(message):
    sys.exit(f"arm_report: {message}")


class Function:
    """A function of an object file: its instructions as (address, operation, operands)."""

    def __init__(self, name):
        self.name = name
        self.instructions = []

    def target(self, index):
        """The index of the instruction that a branch names; None if it is outside of the function."""
        match = re.search(r"\b([0-9a-f]+) <", self.instructions[index][2])
        return match and self.places.get(int(match[1], 16))

    def loops(self):
        """The paths from the target of a backward branch to itself, as (index of the target, instructions)."""
        self.places = {address: index for index, (address, _, _) in enumerate(self.instructions)}
        heads = set()
        for index, (_, operation, _) in enumerate(self.instructions):
            if operation == "b" or operation.startswith(CONDITIONAL):
                target = self.target(index)
                if target is not None and target <= index:
                    heads.add(target)
        for head in sorted(heads):
            for path in self.paths(head):
                yield head, [self.instructions[index] for index in path]

    def paths(self, head):
        """The paths from `head` to itself that take no branch twice."""
        pending = [(head, [], frozenset())]
        for _ in range(MAX_PATHS):
            if not pending:
                return
            index, path, branches = pending.pop()
            while index < len(self.instructions) and len(path) < MAX_INSTRUCTIONS:
                operation = self.instructions[index][1]
                if index in branches or operation in ENDS:
                    break
                path = [*path, index]
                following = [index + 1]
                if operation == "b" or operation.startswith(CONDITIONAL):
                    branches = branches | {index}
                    target = self.target(index)
                    following = following if operation != "b" else []
                    following = following + ([target] if target is not None else [])
                if head in following:
                    yield path
                following = [place for place in following if place != head]
                if not following:
                    break
                index = following[0]
                pending += [(place, path, branches) for place in following[1:]]


def functions(objects):
    """The functions of an object file, by objdump."""
    found = []
    for line in run("aarch64-linux-gnu-objdump", "-d", "-C", "--no-show-raw-insn", objects).splitlines():
        if header := re.match(r"^[0-9a-f]+ <(.*)>:$", line):
            found.append(Function(header[1]))
        elif found and (match := re.match(r"^\s+([0-9a-f]+):\t(\S+)\s*(.*?)(\s*//.*)?$", line)):
            if not match[2].startswith("."):
                found[-1].instructions.append((int(match[1], 16), match[2], match[3]))
    return found


def rounds_of(body):
    return sum(operation in ("aese", "aesd") for _, operation, _ in body)


def steps(function, blocks, count):
    """The `count` shortest loops that process `blocks` blocks in an iteration, each as a dictionary from key size to its instructions.

    A loop has a path for each key size, because longer keys have additional rounds.
    """
    heads = {}
    for head, body in function.loops():
        for bits, rounds in ROUNDS.items():
            known = heads.setdefault(head, {}).get(bits)
            if rounds_of(body) == blocks * rounds and (known is None or len(body) < len(known)):
                heads[head][bits] = body
    loops = sorted((paths for paths in heads.values() if len(paths) == len(ROUNDS)), key=lambda paths: len(paths[128]))
    # A loop may be found from two of its instructions.
    different = [paths for i, paths in enumerate(loops) if all(set(paths[128]) != set(other[128]) for other in loops[:i])]
    if len(different) < count:
        fail(f"{function.name} has {len(different)} loops of {blocks} blocks, not {count}")
    return different[:count]


def assembly(body):
    """One iteration for llvm-mca. Adjacent AESE and AESMC (or AESD and AESIMC) of one register are one instruction for the
    processors in question, which fuse them; llvm-mca does not, so the second is left out."""
    lines, before = [".L:"], None
    for _, operation, operands in body:
        places = [operand.strip() for operand in operands.split(",")]
        fused = (
            operation in ("aesmc", "aesimc")
            and before is not None
            and before[0] in ("aese", "aesd")
            and places == [before[1], before[1]]
        )
        before = None if fused else (operation, places[0])
        if not fused and operation != "b":
            lines.append(f"{operation} " + re.sub(r"[0-9a-f]+ <.*>", ".L", operands))
    return "\n".join(lines) + "\n"


def clocks(body, processor, mca, waits=False):
    """Clocks of an iteration: the difference between 200 and 100 iterations, without start and end. If `waits` is true, loads wait for
    all earlier stores."""
    text = assembly(body)
    features = "+aes,+sha3" if PROCESSORS[processor][1] == SHA3 else "+aes"

    def total(iterations):
        result = run(
            mca, f"-mtriple={TARGET}", f"-mcpu={processor}", f"-mattr={features}", f"-iterations={iterations}",
            f"-noalias={str(not waits).lower()}", "-instruction-info=0", "-resource-pressure=0", input=text,
        )  # fmt: skip
        return int(re.search(r"Total Cycles:\s+(\d+)", result)[1])

    return (total(200) - total(100)) / 100


def own_object():
    """Compiles lockstep-cpu for Arm in one unit. Returns its object file."""
    folder = Path(os.environ.get("CARGO_TARGET_DIR", PROJECT / "target")) / "arm64-report"
    environment = {**os.environ, "CARGO_TARGET_DIR": str(folder)}
    command = [PROJECT / "tools/arm64/run.sh", "cargo", "rustc", "--release", "--lib", "-p", "lockstep-cpu"]
    command += ["--no-default-features", "--", "--emit=obj,link", "-C", "codegen-units=1"]
    subprocess.run([str(part) for part in command], check=True, cwd=PROJECT, env=environment)
    made = (folder / "arm64" / TARGET / "release/deps").glob("lockstep_cpu-*.o")
    return max(made, key=lambda path: path.stat().st_mtime)


def aws_lc():
    """The version of aws-lc-sys, and the folder of its assembly for Arm."""
    packages = json.loads(run("cargo", "metadata", "--format-version", "1", "--locked", cwd=PROJECT))["packages"]
    package = next(package for package in packages if package["name"] == "aws-lc-sys")
    return package["version"], Path(package["manifest_path"]).parent / "aws-lc"


def aws_object(source, name, folder):
    path = folder / f"{name}.o"
    file = source / f"generated-src/linux-aarch64/crypto/fipsmodule/{name}.S"
    run("aarch64-linux-gnu-gcc", "-c", "-march=armv8.2-a+crypto+sha3", "-I", source / "include", file, "-o", path)
    return path


def accesses_stack(body):
    return sum("[sp" in operands for _, _, operands in body)


def slowest(bodies, blocks, processor, mca, waits=False):
    """Clocks per block: the slowest of the loops."""
    return max(clocks(body, processor, mca, waits) for body in bodies) / blocks


def aws_gcm(source, folder):
    """AWS-LC's loops of GCM: (source file, bits) to the loops of sealing and opening."""
    found = {}
    for name, blocks in (FOUR_BLOCKS, EIGHT_BLOCKS):
        for function in functions(aws_object(source, name, folder)):
            shortest = {}
            for _, body in function.loops():
                for bits, rounds in ROUNDS.items():
                    known = shortest.get(bits)
                    if rounds_of(body) == blocks * rounds and (known is None or len(body) < len(known)):
                        shortest[bits] = body
            # A function for one key size has a loop that looks like a longer key's loop of fewer blocks: the name decides.
            named = re.search(r"_(128|192|256)$", function.name)
            for bits, body in shortest.items():
                if named is None or int(named[1]) == bits:
                    found.setdefault((name, bits), []).append(body)
    for name, _ in (FOUR_BLOCKS, EIGHT_BLOCKS):
        for bits in ROUNDS:
            if len(found.get((name, bits), [])) != 2:
                fail(f"AWS-LC's {name} does not have one loop for sealing and one for opening with keys of {bits} bits")
    return found


def own():
    """The loops of the kernels: (kernel, name of the pass, bits) to the loops of its directions."""
    found = {}
    for function in functions(own_object()):
        match = re.search(r"::(Armv8\w*) as .*>::(\w+::\w+)$", function.name)
        if match is None or match[2] not in PASSES:
            continue
        name, blocks, directions = PASSES[match[2]]
        loops = steps(function, blocks, directions)
        for bits in SIZES:
            found[KERNELS[match[1]], name, bits] = [paths[bits] for paths in loops]
    missing = [(kernel, name) for kernel in KERNELS.values() for name, _, _ in PASSES.values() if (kernel, name, 128) not in found]
    if missing:
        fail(f"no function in the machine code for {missing}")
    return found


def table(head, rows):
    lines = ["| " + " | ".join(head) + " |", "|---|--:|" + "--:|" * (len(head) - 2)]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows])


def gcm_rows(found, peer, mca, waits):
    """The rows of the table of GCM, and the ratios of Lockstep's clocks to AWS-LC's."""
    rows, ratios = [], []
    for bits in SIZES:
        cells = []
        for processor, (_, kernel, (name, blocks)) in PROCESSORS.items():
            ours = slowest(found[kernel, "GCM", bits], 8, processor, mca, waits)
            theirs = slowest(peer[name, bits], blocks, processor, mca, waits)
            ratios.append(ours / theirs)
            cells.append(f"{ours:.2f} / {theirs:.2f} = {ours / theirs:.2f}")
        rows.append(["wait" if waits else "do not wait", str(bits), *cells])
    return rows, ratios


def page(found, peer, version, mca):
    """The page as text, and the largest ratio of GCM to AWS-LC's."""
    processors = [name for name, _, _ in PROCESSORS.values()]
    passes = [
        [
            name,
            str(bits),
            *(f"{slowest(found[kernel, name, bits], blocks, cpu, mca):.2f}" for cpu, (_, kernel, _) in PROCESSORS.items()),
        ]
        for name, blocks, _ in PASSES.values()
        for bits in SIZES
    ]
    fast, ratios = gcm_rows(found, peer, mca, waits=False)
    slow, _ = gcm_rows(found, peer, mca, waits=True)
    gcm = [*peer.values(), *(bodies for (_, name, _), bodies in found.items() if name == "GCM")]
    if any(accesses_stack(body) for bodies in gcm for body in bodies):
        fail("a loop of GCM accesses the stack: values do not fit in the registers")
    compiler = run(PROJECT / "tools/arm64/run.sh", "sh", "-c", "$RUSTC --version").split()[1]
    text = INTRODUCTION.format(tool=mca_version(mca), compiler=compiler, version=version)
    text += "\n## Passes\n\n" + PASSES_TEXT + "\n" + table(["pass", "key bits", *processors], passes) + "\n"
    text += "\n## GCM beside AWS-LC\n\n" + GCM_TEXT
    text += "\n" + table(["loads and stores", "key bits", *processors], fast + slow) + "\n"
    return text, max(ratios)


def mca_version(mca):
    return re.search(r"LLVM version (\S+)", run(mca, "--version"))[1]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing; fail if GCM exceeds its limit")
    check = parser.parse_args().check
    programs = [program for program in ("llvm-mca-19", "llvm-mca") if shutil.which(program)]
    mca = next((program for program in programs if mca_version(program).startswith(VERSION)), None)
    if mca is None:
        fail("llvm-mca 19 is missing: install the package llvm-19")
    version, source = aws_lc()
    with tempfile.TemporaryDirectory() as folder:
        text, worst = page(own(), aws_gcm(source, Path(folder)), version, mca)
    if not check:
        PAGE.write_text(text)
    print(f"GCM takes at most {worst:.2f} of AWS-LC's clocks; the limit is {LIMIT:.2f}")
    if worst > LIMIT:
        fail("GCM exceeds the limit")


if __name__ == "__main__":
    main()
