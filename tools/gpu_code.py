#!/usr/bin/env python3
"""Writes the machine code of CUDA kernels for sm_90, as packages embed it, with its disassembly to a folder.

    tools/gpu_code.py FOLDER MODULE...

The code is taken from the archive that tools/cuda_kernels.py prints (LOCKSTEP_CUDA_KERNELS=path: another archive). The disassembler is
cuobjdump, from the wheels of tools/cuda_toolchain.py. Writes MODULE.cubin and MODULE.sass, and prints the SHA-256 of each cubin.
"""

import hashlib
import lzma
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
TARGET = "sm_90"


def main():
    folder, modules = sys.argv[1], sys.argv[2:]
    archive = os.environ.get("LOCKSTEP_CUDA_KERNELS") or output_of("cuda_kernels.py")
    cuobjdump = os.path.join(output_of("cuda_toolchain.py"), "bin", "cuobjdump")
    with open(archive, "rb") as file:
        index, data = file.read().split(b"\n\n", 1)
    codes = dict(code_of(index.decode().splitlines()[1:], data, modules))
    os.makedirs(folder, exist_ok=True)
    for module in modules:
        if module not in codes:
            sys.exit(f"gpu_code.py: {archive} has no {module} for {TARGET}")
        place = os.path.join(folder, module)
        with open(place + ".cubin", "wb") as file:
            file.write(codes[module])
        # The disassembler has warnings on standard error that do not concern this code.
        done = subprocess.run([cuobjdump, "-sass", place + ".cubin"], check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        with open(place + ".sass", "wb") as file:
            file.write(done.stdout)
        print(f"{module} {TARGET} sha256 {hashlib.sha256(codes[module]).hexdigest()}")


def output_of(tool):
    return subprocess.run([sys.executable, os.path.join(HERE, tool)], check=True, stdout=subprocess.PIPE, text=True).stdout.strip()


def code_of(lines, data, modules):
    """The code of the modules, by the index of an archive (its format is in cuda_kernels.py)."""
    for line in lines:
        words = line.split()
        if words[0] == "unit":
            offset, packed, length = map(int, words[1:])
            unit = None
        elif words[0] in modules and words[1] == TARGET:
            if unit is None:
                unit = data[offset : offset + packed]
                unit = lzma.decompress(unit, format=lzma.FORMAT_ALONE) if packed != length else unit
            yield words[0], unit[int(words[2]) : int(words[3])]


if __name__ == "__main__":
    main()
