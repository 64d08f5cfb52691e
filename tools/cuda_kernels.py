#!/usr/bin/env python3
"""Compiles the CUDA kernels to an archive of machine code that a build embeds. No driver, no GPU and no root are required.

    tools/cuda_kernels.py [--full] [--arch 80,90] [--no-ptx] [--out FILE]
    tools/cuda_kernels.py --check       fails if sizes.txt is not of these kernels or, if the full archive is in the cache, of that
                                        archive, and if the archive is larger than 5 MB

Prints the path of the archive. Without options, this is the archive for all architectures if it is in the user's cache; otherwise an
archive for two architectures, with a message on standard error. --full (make cuda-kernels) compiles the archive for all architectures.
--arch names the architectures, and compiles all kernels for them. --out copies the archive to FILE.

Then: LOCKSTEP_CUDA_KERNELS=$(tools/cuda_kernels.py) cargo build --release. NVRTC, from Python wheels (tools/cuda_toolchain.py), compiles
in parallel processes. Machine code and archives are kept in ${XDG_CACHE_HOME:-~/.cache}/lockstep/cuda-kernels, by the content of the
kernels and the versions of the compilers, so nothing is compiled twice. What was not used for 30 days is removed.

Format of an archive: lines of text, an empty line, then the units.

    lockstep-kernels 1
    unit OFFSET PACKED UNPACKED         bytes after the empty line; LZMA (.lzma format); stored if both lengths are equal
    MODULE TARGET START END              a module in the unit above; TARGET: sm_NN, or ptx
"""

import argparse
import concurrent.futures
import ctypes
import functools
import hashlib
import lzma
import os
import platform
import re
import resource
import subprocess
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
KERNELS = os.path.join(ROOT, "devices", "cuda", "kernels")
SIZES = os.path.join(ROOT, "devices", "cuda", "sizes.txt")
# Machine code runs on all GPUs of the same major compute capability whose minor number is not lower, so the first architecture of each
# major one is enough (docs/cuda.md states what this costs). NVRTC 12 makes it, because drivers from series 525 on load its code.
# The driver compiles PTX for 11.0 (Thor), for which NVRTC 12 has no machine code.
ARCHITECTURES = [60, 70, 80, 90, 100, 120]
# Kernels for study, which are used by name only. Packages contain them as PTX.
ONLY_PTX = ["expand", "table", "table_small", "cuda_ctr", "global_sbox", "gems"]
# The architectures of a build without the full archive: 8.0 for A100, A10, L4, L40, GeForce 30 and 40, and 9.0 for H100 and H200.
# The driver compiles PTX for all others.
FEW = [80, 90]
# The driver compiles PTX of the oldest architecture for every architecture without machine code.
PTX = "compute_60"
# The module of GHASH by the carry-less multiply-add. Only NVRTC 13.3 and later compile this module, for compute capability 8.0 and later.
CARRY_LESS = "ghash_carry_less"
# The maximum size in bytes of the archive for all architectures, which packages contain.
MOST_BYTES = 5_000_000
# Modules that share a unit, because they have much code in common. A module is unpacked together with the modules before it in its
# unit. Each of all other modules is a separate unit.
TOGETHER = [
    ["bitslice_ecb_encrypt", "bitslice_cfb_decrypt", "chain"],
    ["bitslice_ctr32", "bitslice_ctr", "bitslice_ctr_little32"],
    ["bitslice_ecb_decrypt", "bitslice_cbc_decrypt"],
    ["bitslice_xts_encrypt", "bitslice_xts_decrypt"],
    ["bitslice_ocb_encrypt", "bitslice_ocb_decrypt"],
]
# Instructions of most architectures have 16 bytes, so compression uses the position of a byte modulo 16 to predict the byte.
FILTERS = [{"id": lzma.FILTER_LZMA1, "preset": 9 | lzma.PRESET_EXTREME, "lc": 0, "lp": 0, "pb": 4, "dict_size": 1 << 21}]
# PTX is text, so the position of a byte does not help to predict it.
TEXT_FILTERS = [{"id": lzma.FILTER_LZMA1, "preset": 9 | lzma.PRESET_EXTREME, "lc": 3, "lp": 0, "pb": 0, "dict_size": 1 << 24}]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--full", action="store_true", help="all architectures")
    parser.add_argument("--arch", help="these architectures, such as 80,90")
    parser.add_argument("--no-ptx", action="store_true", help="nothing for later architectures")
    parser.add_argument("--check", action="store_true", help="compare sizes.txt with the kernels")
    parser.add_argument("--out", help="also copy the archive to this file")
    options = parser.parse_args()
    if options.check:
        return check()
    if not has_compiler():
        # Standard output stays empty, so the build embeds no machine code.
        print("cuda_kernels.py: no machine code for GPUs, since there is no compiler for this system", file=sys.stderr)
        return
    try:
        make(options)
    except subprocess.CalledProcessError:
        sys.exit("cuda_kernels.py: no compiler; LOCKSTEP_CUDA_KERNELS= (empty) builds without machine code for GPUs")


def has_compiler():
    return (platform.system(), platform.machine()) in [("Linux", "x86_64"), ("Linux", "aarch64")]


def check():
    """Compares sizes.txt with the kernels, with the full archive if it is in the cache, and with the largest size of an archive."""
    with open(SIZES, encoding="ascii") as file:
        stamp, index = file.readline(), file.read()
    remedy = "run `make cuda-kernels`"
    if stamp != stamp_of_sources():
        sys.exit(f"cuda_kernels.py: the kernels have changed since devices/cuda/sizes.txt was made: {remedy}")
    full = path_of(plan(ARCHITECTURES, True)) if has_compiler() else None
    if full and is_made(full) and index_of(full) != index:
        sys.exit(f"cuda_kernels.py: devices/cuda/sizes.txt differs from the archive {full}: {remedy}")
    size = 0
    for _, offset, packed_length, _ in (line.split() for line in index.splitlines() if line.startswith("unit ")):
        if int(offset) != size:
            sys.exit(f"cuda_kernels.py: devices/cuda/sizes.txt has a unit at {offset} instead of {size}: {remedy}")
        size += int(packed_length)
    if size + len(index) > MOST_BYTES:
        sys.exit(f"cuda_kernels.py: the archive has {size + len(index)} bytes, at most {MOST_BYTES} are allowed")


def make(options):
    if options.arch:
        numbers = [int(number) for number in options.arch.split(",")]
        path = made(plan(numbers, not options.no_ptx, left_out=[]))
    else:
        full = plan(ARCHITECTURES, True)
        if options.full or is_made(path_of(full)):
            path = made(full)
            if options.full:
                write_sizes(path)
        else:
            names = " and ".join(f"sm_{number}" for number in FEW)
            print(f"cuda_kernels.py: machine code for {names} only, and PTX for other GPUs; `make cuda-kernels` compiles all", file=sys.stderr)
            path = made(plan(FEW, True))
    if options.out:
        with open(path, "rb") as file, open(options.out, "wb") as copy:
            copy.write(file.read())
    print(path)


@functools.cache
def sources():
    found = [os.path.join(folder, name) for folder, _, names in os.walk(KERNELS) for name in names]
    return {os.path.splitext(os.path.basename(path))[0]: path for path in sorted(found) if path.endswith(".cu")}


def text_of(path, seen):
    """Returns a source with the included files inserted, each once. Only kernels are inserted, because other included files are for
    other compilers."""
    path = os.path.normpath(path)
    if path in seen or not path.startswith(KERNELS + os.sep):
        return ""
    seen.add(path)
    lines = []
    with open(path, encoding="utf-8") as file:
        for line in file:
            included = re.match(r'\s*#include "(.*)"', line)
            if included:
                lines.append(text_of(os.path.join(os.path.dirname(path), included[1]), seen))
            elif line.strip() != "#pragma once":
                lines.append(line)
    return "".join(lines)


@functools.cache
def source_of(module):
    return text_of(sources()[module], set())


def plan(numbers, with_ptx, left_out=ONLY_PTX):
    """Returns the list of the code to be made, as tuples of module, target and version of NVRTC. It contains no machine code of the
    modules in `left_out`."""
    result = []
    for number in numbers:
        result += [(module, f"sm_{number}", 12) for module in sources() if module not in [CARRY_LESS, *left_out]]
        if number >= 80:
            result.append((CARRY_LESS, f"sm_{number}", 13))
    if with_ptx:
        result += [(module, "ptx", 12) for module in sources() if module != CARRY_LESS]
    return result


@functools.cache
def folder():
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    path = os.path.join(cache, "lockstep", "cuda-kernels")
    os.makedirs(path, mode=0o700, exist_ok=True)
    check_owner(path)
    return path


def check_owner(path):
    """Refuses files of the cache that another user can write: packages contain this code, and it processes keys."""
    status = os.stat(path)
    if status.st_uid != os.geteuid() or status.st_mode & 0o022:
        sys.exit(f"cuda_kernels.py: {path} belongs to another user, or others can write it: remove it")


def is_made(path):
    """True if a file of the cache exists. Such a file is then kept for another 30 days."""
    if not os.path.exists(path):
        return False
    check_owner(path)
    os.utime(path)
    return True


def remove_unused():
    """Removes the files of the cache that were not used for 30 days."""
    for name in os.listdir(folder()):
        path = os.path.join(folder(), name)
        if os.path.getmtime(path) < time.time() - 30 * 86400:
            os.remove(path)


def options_of(target):
    """The options with which NVRTC compiles for this target."""
    return [f"--gpu-architecture={PTX if target == 'ptx' else target}", "--std=c++17"]


def stamp_of_sources():
    """A hash of the sources of all kernels: the first line of sizes.txt."""
    text = repr([(module, source_of(module)) for module in sorted(sources())])
    return f"kernels {hashlib.sha256(text.encode()).hexdigest()}\n"


@functools.cache
def pins(version):
    return subprocess.run([*TOOLCHAIN, "--nvrtc", str(version), "--pins"], check=True, stdout=subprocess.PIPE, text=True).stdout


TOOLCHAIN = [sys.executable, os.path.join(ROOT, "tools", "cuda_toolchain.py")]


def code_path(job):
    module, target, version = job
    stamp = hashlib.sha256("\0".join([pins(version), target, *options_of(target), source_of(module)]).encode()).hexdigest()[:20]
    return os.path.join(folder(), f"{module}.{target}-{stamp}")


def path_of(jobs):
    """The path of the archive of this code. The name of the archive is a hash of everything that determines its
    content."""
    stamp = hashlib.sha256(repr([[os.path.basename(code_path(job)) for job in jobs], TOGETHER, FILTERS, TEXT_FILTERS]).encode())
    return os.path.join(folder(), f"archive-{stamp.hexdigest()[:20]}")


def made(jobs):
    path = path_of(jobs)
    if is_made(path):
        return path
    start, missing = time.monotonic(), [job for job in jobs if not is_made(code_path(job))]
    libraries = {version: nvrtc_folder(version) for version in {version for _, _, version in missing}}
    # The longest compilations start first, so that all processes end at about the same time.
    missing.sort(key=lambda job: (job[1] != "ptx", len(source_of(job[0]))), reverse=True)
    workers = min(len(os.sched_getaffinity(0)), 8)
    with concurrent.futures.ProcessPoolExecutor(workers) as pool:
        for job in pool.map(compiled, [(job, libraries[job[2]], code_path(job)) for job in missing]):
            print(f"compiled {job[0]} for {job[1]}", file=sys.stderr, flush=True)
        units = list(pool.map(packed, [[(module, target, code_path((module, target, version))) for module, target, version in unit] for unit in units_of(jobs)]))
    index, data = ["lockstep-kernels 1"], b""
    for packed_unit, length, modules in units:
        index.append(f"unit {len(data)} {len(packed_unit)} {length}")
        index += [f"{module} {target} {begin} {end}" for module, target, begin, end in modules]
        data += packed_unit
    write(path, "\n".join(index).encode() + b"\n\n" + data)
    remove_unused()
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(f"{len(missing)} compilations: {used.ru_utime + used.ru_stime:.0f} CPU seconds, {time.monotonic() - start:.0f} seconds", file=sys.stderr)
    return path


def units_of(jobs):
    """Groups the jobs into units, each for one target. PTX is one unit, because its compilation takes longer than unpacking all of it."""
    unit_of = {module: number for number, unit in enumerate(TOGETHER) for module in unit}
    units = {}
    for module, target, version in jobs:
        units.setdefault((target, target if target == "ptx" else unit_of.get(module, module)), []).append((module, target, version))
    order = [module for unit in TOGETHER for module in unit]
    return [sorted(unit, key=lambda job: order.index(job[0]) if job[0] in order else 0) for unit in units.values()]


def packed(unit):
    data, modules = b"", []
    for module, target, path in unit:
        with open(path, "rb") as file:
            code = file.read()
        modules.append((module, target, len(data), len(data) + len(code)))
        data += code
    filters = TEXT_FILTERS if unit[0][1] == "ptx" else FILTERS
    result = lzma.compress(data, format=lzma.FORMAT_ALONE, filters=filters)
    return result if len(result) != len(data) else data, len(data), modules


def nvrtc_folder(version):
    return subprocess.run([*TOOLCHAIN, "--nvrtc", str(version)], check=True, stdout=subprocess.PIPE, text=True).stdout.strip()


@functools.cache
def nvrtc(library_folder):
    """Opens NVRTC. NVRTC opens its second library by name, so this function opens that library first."""
    names = sorted(os.listdir(library_folder))
    for pattern in (r"libnvrtc-builtins\.so\.[\d.]+", r"libnvrtc\.so\.\d+"):
        name = next(name for name in names if re.fullmatch(pattern, name))
        library = ctypes.CDLL(os.path.join(library_folder, name), mode=ctypes.RTLD_GLOBAL)
    return library


def compiled(work):
    """Compiles one module and writes it to its file."""
    job, library_folder, path = work
    module, target, _ = job
    library, program = nvrtc(library_folder), ctypes.c_void_p()
    words = options_of(target)
    arguments = (ctypes.c_char_p * len(words))(*[word.encode() for word in words])
    if library.nvrtcCreateProgram(ctypes.byref(program), source_of(module).encode(), f"{module}.cu".encode(), 0, None, None):
        raise RuntimeError("NVRTC does not start")
    if library.nvrtcCompileProgram(program, len(words), arguments):
        raise RuntimeError(f"{module} for {target}: {result(library, program, 'ProgramLog').decode()}")
    # The zero byte at the end of PTX is kept, because the driver requires it.
    write(path, result(library, program, "PTX" if target == "ptx" else "CUBIN"))
    library.nvrtcDestroyProgram(ctypes.byref(program))
    return job


def result(library, program, what):
    size = ctypes.c_size_t()
    getattr(library, f"nvrtcGet{what}Size")(program, ctypes.byref(size))
    place = ctypes.create_string_buffer(size.value)
    getattr(library, f"nvrtcGet{what}")(program, place)
    return place.raw


def write(path, data):
    unfinished = f"{path}.{os.getpid()}.part"
    with open(unfinished, "wb") as file:
        file.write(data)
    os.replace(unfinished, path)


def index_of(path):
    """The lines of text at the start of an archive."""
    with open(path, "rb") as file:
        return file.read().split(b"\n\n", 1)[0].decode() + "\n"


def write_sizes(path):
    """Writes the lines of text of the full archive to sizes.txt. Tests count by them the bytes that a first call
    unpacks."""
    index = index_of(path)
    with open(SIZES, "w", encoding="ascii", newline="\n") as file:
        file.write(stamp_of_sources() + index)


if __name__ == "__main__":
    main()
