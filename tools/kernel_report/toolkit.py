"""Compiles kernels and parses the output of the compiler and the disassembler."""

import glob
import hashlib
import os
import re
import subprocess
import sys
import tempfile

from sass import Problem

TOOLS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
ROOT = os.path.dirname(TOOLS)
# The options of the crate `lockstep-cuda` (its src/compile.rs and build.rs) for a release.
FLAGS = ["-std=c++17", "-O3", "-cubin", "-Xptxas", "-v"]


def folder(newest=False):
    words = [sys.executable, os.path.join(TOOLS, "cuda_toolchain.py"), *(["--newest"] if newest else [])]
    done = subprocess.run(words, stdout=subprocess.PIPE, text=True)
    if done.returncode != 0:
        raise Problem("no compiler")
    return done.stdout.strip()


class Compiled:
    """A source file: the machine code (bytes), its disassembly (text) and ptxas's report (text)."""

    def __init__(self, cubin, disassembly, resources):
        self.cubin, self.disassembly, self.resources = cubin, disassembly, resources


def sources(kernels, carry_less=False):
    """The modules that the default compiler compiles, or with `carry_less` those that only the newest compiler compiles."""
    found = [os.path.join(path, name) for path, _, names in os.walk(kernels) for name in names]
    return sorted(name for name in found if name.endswith(".cu") and name.endswith("_carry_less.cu") == carry_less)


def included(source):
    """The file and all files that it includes."""
    found, work = [], [os.path.normpath(source)]
    while work:
        name = work.pop()
        if name in found:
            continue
        found.append(name)
        with open(name, encoding="utf-8") as file:
            for one in re.findall(r'^#include "(.*)"', file.read(), re.MULTILINE):
                path = os.path.normpath(os.path.join(os.path.dirname(name), one))
                if os.path.exists(path):
                    work.append(path)
    return sorted(found)


def compile_source(toolkit, source, arch, defines=(), keep=None):
    """Returns the result from the folder `keep` if nothing has changed. The place of the checkout does not matter."""
    stamp = hashlib.sha256()
    for part in [toolkit, arch, *FLAGS, *defines]:
        stamp.update(part.encode() + b"\0")
    for name in included(source):
        with open(name, "rb") as file:
            stamp.update(os.path.relpath(name, os.path.dirname(source)).encode() + b"\0" + file.read())
    name = os.path.splitext(os.path.basename(source))[0]
    with tempfile.TemporaryDirectory() as scratch:
        place = os.path.join(keep or scratch, f"{name}-{arch}-{stamp.hexdigest()[:20]}")
        if not os.path.exists(place + ".sass"):
            options = [*FLAGS, "-arch=" + arch, *(f"-D{d}" for d in defines), "-o", place + ".cubin"]
            resources = command([os.path.join(toolkit, "bin", "nvcc"), *options, source], "stderr")
            with open(place + ".txt", "w", encoding="utf-8") as file:
                file.write(resources)
            text = command([os.path.join(toolkit, "bin", "cuobjdump"), "-sass", place + ".cubin"], "stdout")
            with open(place + ".sass.part", "w", encoding="utf-8") as file:
                file.write(text)
            os.rename(place + ".sass.part", place + ".sass")
            for old in glob.glob(os.path.join(keep, f"{name}-{arch}-*")) if keep else []:
                if not old.startswith(place):
                    os.remove(old)
        with open(place + ".cubin", "rb") as cubin, open(place + ".sass", encoding="utf-8") as text, open(
            place + ".txt", encoding="utf-8"
        ) as resources:
            return Compiled(cubin.read(), text.read(), resources.read())


def command(words, stream):
    done = subprocess.run(words, capture_output=True, text=True)
    if done.returncode != 0:
        raise Problem(f"{os.path.basename(words[0])} failed:\n{done.stdout}{done.stderr}")
    return done.stderr if stream == "stderr" else done.stdout


def resources(text):
    """Entry point -> registers, stack, spills, shared, from ptxas -v."""
    found, current = {}, None
    for line in text.splitlines():
        match = re.search(r"Compiling entry function '(\w+)'", line)
        if match:
            current = found.setdefault(match[1], {"registers": 0, "stack": 0, "spill_stores": 0, "spill_loads": 0, "shared": 0})
            continue
        if current is None:
            continue
        match = re.search(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads", line)
        if match:
            # Includes called functions: the maximum.
            for key, value in zip(("stack", "spill_stores", "spill_loads"), match.groups()):
                current[key] = max(current[key], int(value))
        match = re.search(r"Used (\d+) registers", line)
        if match:
            current["registers"] = int(match[1])
            shared = re.search(r"(\d+) bytes smem", line)
            current["shared"] = int(shared[1]) if shared else 0
    return found
