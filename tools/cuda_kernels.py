#!/usr/bin/env python3
"""Compiles the CUDA kernels to machine code that a build can embed. No GPU is required.

    tools/cuda_kernels.py FOLDER [--arch 75,80,86,89,90,100,120] [--no-ptx] [--carry-less]

Compiles each module of devices/cuda/kernels into FOLDER as MODULE.sm_NN.cubin for each architecture, and as MODULE.ptx for later
architectures. With --carry-less, also compiles the modules *_carry_less by the newest compiler (tools/cuda_toolchain.py --newest), for
compute capability 8.0 and later. They are not compiled as PTX, which only newer drivers would load. Without --carry-less, such files are
removed.

Then: LOCKSTEP_CUDA_KERNELS=FOLDER cargo build --release. Files that are newer than all sources are not compiled again.
"""

import argparse
import os
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
KERNELS = os.path.join(ROOT, "devices", "cuda", "kernels")
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
    parser.add_argument("--carry-less", action="store_true", help="also GHASH by the carry-less multiply-add")
    options = parser.parse_args()
    os.makedirs(options.folder, exist_ok=True)
    newest = max(os.path.getmtime(path) for path in sources())
    architectures = options.arch.split(",")
    # The driver compiles PTX of the oldest architecture for all later ones.
    targets = [(f"sm_{number}.cubin", ["-cubin", f"-arch=sm_{number}"]) for number in architectures]
    if not options.no_ptx:
        targets.append(("ptx", ["-ptx", f"-arch=compute_{architectures[0]}"]))
    modules = [path for path in sources() if path.endswith(".cu")]
    compile_modules(compiler(), [path for path in modules if not is_carry_less(path)], targets, options.folder, newest)
    # Machine code only: PTX, the last target, is left out.
    targets = [target for target, number in zip(targets, architectures) if options.carry_less and int(number) >= 80]
    wanted = {f"{module_of(path)}.{ending}" for path in modules if is_carry_less(path) for ending, _ in targets}
    for name in os.listdir(options.folder):
        if name.split(".")[0].endswith("_carry_less") and name not in wanted:
            os.remove(os.path.join(options.folder, name))
    if targets:
        compile_modules(compiler("--newest"), [path for path in modules if is_carry_less(path)], targets, options.folder, newest)


def module_of(path):
    return os.path.splitext(os.path.basename(path))[0]


def is_carry_less(path):
    """True for modules with instructions that the default compiler does not have."""
    return path.endswith("_carry_less.cu")


def compiler(*options):
    toolchain = os.path.join(ROOT, "tools", "cuda_toolchain.py")
    done = subprocess.run([sys.executable, toolchain, *options], check=True, stdout=subprocess.PIPE, text=True)
    return os.path.join(done.stdout.strip(), "bin", "nvcc")


def compile_modules(nvcc, paths, targets, folder, newest):
    for path in paths:
        module = module_of(path)
        for ending, flags in targets:
            output = os.path.join(folder, f"{module}.{ending}")
            if os.path.exists(output) and os.path.getmtime(output) > newest:
                continue
            print(f"{module}.{ending}", flush=True)
            unfinished = output + ".part"
            subprocess.run([nvcc, "-std=c++17", "-O3", *flags, "-o", unfinished, path], check=True)
            os.replace(unfinished, output)


if __name__ == "__main__":
    main()
