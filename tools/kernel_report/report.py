"""Collects the facts of every entry point and the bounds that follow from them, and writes the two report files."""

import concurrent.futures
import glob
import hashlib
import json
import os
import pickle
import sys

import inputs
import sass
import taint
import toolkit
from image import Image
from sass import Problem

ARCH = "sm_90"
KERNELS = os.path.join(toolkit.ROOT, "devices", "cuda", "kernels")
JSON = os.path.join(KERNELS, "report.json")
MARKDOWN = os.path.join(toolkit.ROOT, "docs", "kernels.md")

# An H100 SXM: number of multiprocessors, clock rate, and bytes per second of memory.
MULTIPROCESSORS, CLOCK, MEMORY = 132, 1.755e9, 3.35e12
LANES = 32
# Warp instructions or passes of a multiprocessor per clock.
RATES = {
    "ALU": ("pipe:alu", 64 / LANES),
    "FMA": ("pipe:fma", 64 / LANES),
    # mma.m16n8k256 for bits: 2 clocks of a multiprocessor on an A100 (4992 TOPS at 1.41 GHz and 108 multiprocessors). No rate
    # is published for later architectures; this is taken for them too.
    "tensor": ("pipe:tensor", 1 / 2),
    # This rate is not published. For sm_80 to sm_100, the compiler schedules one such instruction in 4 clocks of a scheduler.
    "carry-less products": ("pipe:carry_less", 32 / LANES),
    "shared memory": ("wavefronts:shared", 1),
    "load/store": ("pipe:mem", 1),
    "issue": ("issue:", 4),
    # Constants with a different index in each lane: one address per clock, as documented for all generations.
    "constants": ("wavefronts:constant", 1),
}

# The bars (required values): kernel, quantity and maximum, in instructions of one thread per byte.
BARS = [
    ("bitslice_ctr_128", "alu", 33),
    ("bitslice_ctr_256", "alu", 45),
    ("bitslice_ecb_encrypt_128", "alu", 36),
    ("bitslice_ecb_decrypt_128", "alu", 42),
    ("table_ctr_128", "shared_loads", 10),
    ("table_ctr_128", "alu", 18),
]

# The kernels that a mode runs one after the other, and the rate in GB/s that their bounds must allow together.
MODES = [
    ("GCM-128", ["bitslice_ctr32_128", "ghash_tensor_tiles"], 300),
    ("GCM-256", ["bitslice_ctr32_256", "ghash_tensor_tiles"], None),
    # POLYVAL is hashed by the kernels of GHASH.
    ("GCM-SIV-128", ["bitslice_ctr_little32_128", "ghash_tensor_tiles"], 230),
    ("GCM-SIV-256", ["bitslice_ctr_little32_256", "ghash_tensor_tiles"], None),
    # The other kernels of this mode process only a few blocks of each message.
    ("OCB-128", ["bitslice_ocb_encrypt_128"], 400),
    ("OCB-128, opening", ["bitslice_ocb_decrypt_128"], None),
    ("OCB-256", ["bitslice_ocb_encrypt_256"], None),
    ("GCM-128 without tensor units", ["bitslice_ctr32_128", "ghash_tiles"], None),
]


def together(facts, kernels):
    """The rate of kernels that run one after the other over the same data, in GB/s."""
    return 1 / sum(1 / facts[name]["rate"] for name in kernels)


def cache():
    """The folder of cached results: they are valid until the sources or this tool change."""
    place = os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "lockstep", "kernel-report")
    os.makedirs(place, exist_ok=True)
    return place


def kernels(arch=ARCH, carry_less=False):
    """The facts of each entry point: {name: facts}. With `carry_less`, those of the modules that only the newest compiler compiles, otherwise
    those of all others. Each processor examines one source file at a time, the longest first."""
    folder = toolkit.folder(newest=carry_less)
    sources = sorted(toolkit.sources(KERNELS, carry_less), key=size, reverse=True)
    result, problems = {}, []
    with concurrent.futures.ProcessPoolExecutor() as pool:
        running = {pool.submit(entry_points_of, folder, source, arch, cache()): source for source in sources}
        for done in concurrent.futures.as_completed(running):
            found, wrong = done.result()
            problems += wrong
            for name, facts in found.items():
                if name in result:
                    raise Problem(f"{name} is there twice")
                result[name] = {"source": os.path.relpath(running[done], KERNELS), **facts}
    if problems:
        raise Problem("\n".join(sorted(problems)))
    return dict(sorted(result.items()))


def size(source):
    """The size of a source file with the files that it includes."""
    return sum(map(os.path.getsize, toolkit.included(source)))


def say(text):
    # One write, because several processes print.
    sys.stderr.write(text + "\n")
    sys.stderr.flush()


def entry_points_of(folder, source, arch, keep):
    """The facts of the entry points of a source file, and the problems."""
    problems = []
    say(f"compiling {os.path.relpath(source, KERNELS)}")
    compiled = toolkit.compile_source(folder, source, arch, keep=keep)
    return entry_points(compiled, arch, keep, problems), problems


def entry_points(compiled, arch, keep, problems):
    resources, image = toolkit.resources(compiled.resources), Image(compiled.cubin)
    result, functions = {}, functions_of(compiled, image)
    text = [i.text for code in functions.values() for i in code]
    for function in functions:
        if function not in resources:
            raise Problem(f"{function} is no entry point: kernels are to be inlined as a whole")
    for function, name in ((function, label) for function in functions for label in inputs.labels_of(function)):
        code = text if name in inputs.SERIAL else [i.text for i in functions[function]]
        stamp = hashlib.sha256(pickle.dumps([name, arch, code, image.banks(function), bytes(image.variables), own_source()]))
        place = os.path.join(keep, f"{name}.entry-{arch}-{stamp.hexdigest()[:20]}.json")
        if not os.path.exists(place):
            say(f"  {name}")
            try:
                facts = examined(name, functions, image, arch)
            except Problem as problem:
                problems.append(f"{name}: {problem}")
                continue
            for old in glob.glob(os.path.join(keep, f"{name}.entry-{arch}-*.json")):
                os.remove(old)
            with open(place + ".part", "w", encoding="utf-8") as file:
                json.dump(facts, file)
            os.rename(place + ".part", place)
        with open(place, encoding="utf-8") as file:
            result[name] = {**resources[function], **json.load(file)}
    return result


def functions_of(compiled, image):
    functions = sass.functions(compiled.disassembly)
    for name, code in functions.items():
        if is_known_set(compiled):
            sass.resolve(code, image.banks(name).get(2, b""))
    return functions


def is_known_set(compiled):
    """True if the code is for the architecture that this tool can analyse."""
    return ARCH.replace("_", "").upper() in compiled.disassembly[:100000].upper().replace("_", "")


def own_source():
    here = os.path.dirname(os.path.abspath(__file__))
    return [open(name, encoding="utf-8").read() for name in sorted(glob.glob(os.path.join(here, "*.py")))]


def examined(name, functions, image, arch):
    """The facts of one entry point, from its execution and its analysis."""
    function = inputs.function_of(name, functions)
    code = functions[function]
    facts = {"instructions": len(code), "local": sum(one.op in ("LDL", "STL") for one in code)}
    facts["generic"] = sum(one.op in ("LD", "ST") for one in code)
    if arch != ARCH:
        return facts  # analysis and interpreter support one instruction set
    findings, analysis = taint.analyse(function, code, image)
    facts["by_secret"] = {what: len(where) for what, where in findings.items()}
    measured = inputs.measure(name, functions, image)
    if measured is None:
        return facts
    for at, offsets in measured.seen.items():
        # The analysis identifies fields by the form of the address; the executed loads confirm it.
        if at in analysis.fields and offsets != {analysis.fields[at]}:
            raise Problem(f"{name}: the load at {at:#x} is of another field of Segment than the taint analysis took it for")
    each = {key: value / measured.units for key, value in measured.counts.items()}
    facts["per"], facts["input"] = measured.unit, measured.input
    for what in ("alu", "fma", "tensor", "mem", "uniform", "control"):
        facts[what] = rounded(LANES * each.get("pipe:" + what, 0))
    if each.get("pipe:carry_less"):
        facts["carry_less"] = rounded(LANES * each["pipe:carry_less"])
    facts["issued"] = rounded(LANES * each["issue:"])
    facts["shared_loads"] = rounded(each.get("lanes:shared_load", 0))
    facts["shared_passes"] = rounded(LANES * each.get("wavefronts:shared", 0))
    facts["constant_passes"] = rounded(LANES * each.get("wavefronts:constant", 0))
    facts["opcodes"] = {op: rounded(LANES * n) for op, n in sorted(each.items()) if ":" not in op and LANES * n >= 0.005}
    facts["limit"], facts["rate"] = bound(each, measured.moved if measured.unit == "byte" else each["bytes:global_load"] + each["bytes:global_store"])
    return facts


def rounded(number):
    return round(number, 3)


def bound(each, memory_bytes):
    """The slowest resource, and the rate that it allows, in units (bytes, keys) per nanosecond."""
    rates = {"memory": MEMORY / memory_bytes}
    for resource, (name, in_a_clock) in RATES.items():
        if each.get(name):
            rates[resource] = MULTIPROCESSORS * CLOCK * in_a_clock / each[name]
    limit = min(rates, key=rates.get)
    return limit, round(rates[limit] / 1e9, 4)


def complaints(facts, arch=ARCH, is_all=True):
    """Violations: spills and leaks of default kernels, missed bars, an analysis that does not find known leaks."""
    result = []
    for name, one in facts.items():
        family = inputs.family_of(name)
        is_helper = family is None
        if is_helper or family.default:
            if one["spill_stores"] or one["spill_loads"] or one["stack"] or one["local"]:
                result.append(f"{name} has local memory: {one['stack']} bytes, {one['local']} instructions")
            if arch == ARCH and one["by_secret"]:
                result.append(f"{name} is not constant time: {secrets(one)}")
        elif arch == ARCH and family.table and not inputs.EXPAND.match(name) and not one["by_secret"]:
            result.append(f"{name} looks up by secrets, and the taint analysis does not see it")
    if arch != ARCH or not is_all:
        return result
    for name, what, bar in BARS:
        if name not in facts:
            result.append(f"{name}, which has a bar, is not there")
        elif facts[name][what] > bar:
            result.append(f"{name}: {facts[name][what]} {what} a byte, at most {bar} wanted")
    for mode, kernels, bar in MODES:
        if bar and (missing := [name for name in kernels if name not in facts]):
            result.append(f"{mode}: {', '.join(missing)} is not there")
        elif bar and together(facts, kernels) < bar:
            result.append(f"{mode}: {together(facts, kernels):.0f} GB/s, at least {bar} wanted")
    return result


def secrets(one):
    names = {
        "address": ("lookup", "lookups"), "constant address": ("constant lookup", "constant lookups"),
        "branch": ("branch", "branches"), "guard": ("predicated access", "predicated accesses"), "lane": ("shuffle", "shuffles"),
    }  # fmt: skip
    return ", ".join(f"{n} {names[what][n != 1]}" for what, n in sorted(one["by_secret"].items())) or "none found"


def as_json(facts):
    """One line per kernel, so that differences are readable."""
    lines = [f"    {json.dumps(name)}: {json.dumps(one)}" for name, one in facts.items()]
    return '{\n  "architecture": "%s",\n  "kernels": {\n%s\n  }\n}\n' % (ARCH, ",\n".join(lines))


def table(head, rows):
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" + "--:|" * (len(head) - 1)]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows]) + "\n"


def as_markdown(facts):
    passes = {n: f for n, f in facts.items() if f.get("per") == "byte"}
    keys = {n: f for n, f in facts.items() if f.get("per") == "key"}
    rest = {n: f for n, f in facts.items() if "per" not in f}
    default = [n for n in passes if inputs.family_of(n).default]
    parts = [TEXT]
    rows = []
    for name, what, bar in BARS:
        label = {"alu": "ALU instructions", "shared_loads": "loads from shared memory"}[what]
        rows.append([f"`{name}`", label, f"{facts[name][what]:.2f}" if name in facts else "missing", f"{bar}"])
    parts.append("## Limits\n\n" + table(["kernel", "per byte", "counted", "at most"], rows))
    rows = [[mode, ", ".join(f"`{name}`" for name in kernels), f"{together(facts, kernels):.0f}", f"{bar or ''}"]
            for mode, kernels, bar in MODES if all(name in facts for name in kernels)]  # fmt: skip
    parts.append("## Modes\n\nThe kernels of a mode run one after the other over the same data.\n\n" + table(["mode", "kernels", "GB/s", "at least"], rows))
    head = ["kernel", "registers", "spills", "ALU", "FMA", "shared loads", "shared passes", "issued", "limit", "GB/s", "by secret"]
    for title, names in (("Default kernels", default), ("Others", [n for n in passes if n not in default])):
        rows = [[*common(n, passes[n]), f"{passes[n]['shared_loads']:.2f}", f"{passes[n]['shared_passes']:.2f}",
                 f"{passes[n]['issued']:.2f}", passes[n]["limit"], f"{passes[n]['rate']:.0f}", secrets(passes[n])] for n in names]  # fmt: skip
        parts.append(f"## {title}\n\n" + table(head, rows))
    rows = [[*common(n, f), f"{f['issued']:.0f}", f["limit"], f"{1000 * f['rate']:.0f}", secrets(f)] for n, f in keys.items()]
    parts.append("## Key expansion, per key\n\n" + table(["kernel", "registers", "spills", "ALU", "FMA", "issued", "limit", "million keys/s", "by secret"], rows))
    if rest:
        rows = [[f"`{n}`", str(f["registers"]), str(f["spill_stores"] + f["spill_loads"]), str(f["instructions"]), secrets(f)] for n, f in rest.items()]
        parts.append("## Helpers\n\n" + table(["kernel", "registers", "spills", "instructions in the code (not executed)", "by secret"], rows))
    return "\n".join(parts)


def common(name, one):
    digits = 2 if one["per"] == "byte" else 0
    return [f"`{name}`", str(one["registers"]), str(one["spill_stores"] + one["spill_loads"]), f"{one['alu']:.{digits}f}", f"{one['fma']:.{digits}f}"]


TEXT = """\
# Kernels, by their machine code

`make kernel-report` writes this page and `devices/cuda/kernels/report.json`. Do not edit these files. `tools/kernel_report.py
--check` fails if the files differ from a report on the current sources, or if a value violates its limit in the tables below.

Every kernel is compiled for sm_90 by the pinned compiler. No GPU is needed. An interpreter of the machine code
(`tools/kernel_report/`) runs a thread block on a representative input, compares the result with AES, and counts the executed
instructions. The interpreter executes all iterations of a loop, so their number is counted and not assumed. An error of the
interpreter would lead to a wrong ciphertext. The input is a tile in the middle of a large, aligned message. Data units of XTS
have 4 KiB, or the size of a tile if a tile is larger. For serial modes, the input is 1024 messages that are processed in
parallel. Some kernels make tables and then process several tiles in each thread block. For these kernels, only one additional
tile is counted, without the tables. The kernels of the papers run with 64 threads per thread block, and `global_sbox` with 10 AES
blocks per thread.

The tables have the numbers of instructions per byte of data, for one thread: an instruction of a warp counts as 32.

- **ALU**: logic, shifts, permutations, additions, comparisons. A multiprocessor executes 64 such instructions per clock.
- **FMA**: multiplications, and the moves and left shifts that the multiplier executes; 64 per clock and multiprocessor.
- **tensor**: products of bit matrices by the tensor units. A multiprocessor takes 2 clocks for each product. This is the rate of
  an A100, because no rate is published for an H100.
- **shared loads**: lanes that load from shared memory. **shared passes**: 32 for each clock in which shared memory is busy. There
  are more passes than loads if lanes access different words of one bank, and fewer if lanes access the same word.
- **issued**: all instructions; 4 warp instructions per clock.
- **limit**, **GB/s**: the resource that limits the speed on an H100 (132 multiprocessors, 1.755 GHz, 3.35 TB/s of memory for both
  directions together), and the rate at this limit. The rate is an upper bound, not a measurement: it assumes that no instruction
  waits.
- **by secret**: the lookups (addresses of loads and stores), branches, and accesses under a predicate that depend on keys, key
  schedules or data. Data flow analysis searches all paths of the machine code for them. Default kernels must not contain such
  lookups, branches or accesses. The analysis finds the lookups of the table kernels, which shows that it works.
"""
