#!/usr/bin/env python3
"""Compiles the CUDA kernels to machine code that a build can embed. No GPU is required.

    tools/cuda_kernels.py FOLDER [--arch 75,80,86,89,90,100,120] [--no-ptx]

Compiles each module of crates/cuda/kernels into FOLDER as MODULE.sm_NN.cubin for each architecture, and as MODULE.ptx for later
architectures. Then: LOCKSTEP_CUDA_KERNELS=FOLDER cargo build --release. Files that are newer than all sources are not compiled again.
"""

import argparse
import os
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
KERNELS = os.path.join(ROOT, "crates", "cuda", "kernels")
# All architectures up to the newest that the pinned compiler supports.
ARCHITECTURES = "75,80,86,89,90,100,120"


def sources():
    found = [os.path.join(folder, name) for folder, _, names in os.walk(KERNELS) for name in names]
    return sorted(path for path in found if path.endswith((".cu", ".cuh")))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("--arch", default=ARCHITECTURES, help=f"architectures (default: {ARCHITECTURES})")
    parser.add_argument("--no-ptx", action="store_true", help="nothing for later architectures")
    options = parser.parse_args()
    toolchain = os.path.join(ROOT, "tools", "cuda_toolchain.py")
    toolkit = subprocess.run([sys.executable, toolchain], check=True, capture_output=True, text=True).stdout.strip()
    nvcc = os.path.join(toolkit, "bin", "nvcc")
    os.makedirs(options.folder, exist_ok=True)
    newest = max(os.path.getmtime(path) for path in sources())
    architectures = options.arch.split(",")
    # The driver compiles PTX of the oldest architecture for all later ones.
    targets = [(f"sm_{number}.cubin", ["-cubin", f"-arch=sm_{number}"]) for number in architectures]
    if not options.no_ptx:
        targets.append(("ptx", ["-ptx", f"-arch=compute_{architectures[0]}"]))
    for path in (path for path in sources() if path.endswith(".cu")):
        module = os.path.splitext(os.path.basename(path))[0]
        for ending, flags in targets:
            output = os.path.join(options.folder, f"{module}.{ending}")
            if os.path.exists(output) and os.path.getmtime(output) > newest:
                continue
            print(f"{module}.{ending}", flush=True)
            unfinished = output + ".part"
            subprocess.run([nvcc, "-std=c++17", "-O3", *flags, "-o", unfinished, path], check=True)
            os.replace(unfinished, output)


if __name__ == "__main__":
    main()
