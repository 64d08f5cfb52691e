#!/usr/bin/env python3
"""Installs the compiler for the CUDA kernels from Python wheels. No driver, no GPU and no root are required.

    tools/cuda_toolchain.py [FOLDER] [--newest | --nvrtc 12|13] [--pins]

Installs the pinned wheels below into FOLDER (default: ${XDG_CACHE_HOME:-~/.cache}/lockstep/cuda-<hash of the pins>), unless they are
installed already; with --newest, installs those of the newest compiler. Prints the folder of the toolkit, which contains bin/nvcc,
bin/cuobjdump, bin/nvdisasm and lib/libnvrtc.so.13. nvcc also requires a C++ compiler for the host (g++).

With --nvrtc, installs only NVRTC, the compiler as a library, and prints the folder of the library. tools/cuda_kernels.py compiles the
kernels of packages with it. With --pins, prints the wheels and installs nothing.
"""

import argparse
import ctypes
import fcntl
import hashlib
import os
import platform
import re
import shutil
import subprocess
import sys

# 13.0 is the newest compiler whose output every driver of series 580 loads. There are no wheels of version 13.0 with the disassemblers. The
# oldest wheels with them are those of version 13.2, which also read the output of 13.0.
WHEELS = [
    "nvidia-cuda-nvcc==13.0.88",
    "nvidia-nvvm==13.0.88",
    "nvidia-cuda-crt==13.0.88",
    "nvidia-cuda-runtime==13.0.96",
    "nvidia-cuda-nvrtc==13.0.88",
    "nvidia-cuda-cuobjdump==13.2.86",
    "nvidia-cuda-nvdisasm==13.2.86",
]
# The newest compiler. Drivers of series 580 load its machine code but not its PTX. tools/kernel_report.py uses this compiler for the
# modules whose instructions the compiler above does not support.
NEWEST_WHEELS = [
    "nvidia-cuda-nvcc==13.5.37",
    "nvidia-nvvm==13.5.37",
    "nvidia-cuda-crt==13.5.37",
    "nvidia-cuda-runtime==13.5.37",
    "nvidia-cuda-cuobjdump==13.5.37",
    "nvidia-cuda-nvdisasm==13.5.37",
]
TOOLS = ["nvcc", "ptxas", "cuobjdump", "nvdisasm"]
# NVRTC 12 makes machine code that drivers from series 525 on load ("minor version compatibility" of CUDA 12). NVRTC 13 compiles the modules
# that NVRTC 12 does not compile. Drivers from series 580 on load its machine code.
NVRTC_WHEELS = {12: ["nvidia-cuda-nvrtc-cu12==12.9.86"], 13: ["nvidia-cuda-nvrtc==13.5.37"]}
NVRTC_FOLDERS = {12: "cuda_nvrtc", 13: "cu13"}


def main():
    parser = argparse.ArgumentParser(description="Installs the pinned CUDA compiler and prints its folder.")
    parser.add_argument("folder", nargs="?", help="where to (default: a folder in the user's cache)")
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--newest", action="store_true", help="the newest compiler instead of the default one")
    which.add_argument("--nvrtc", type=int, choices=NVRTC_WHEELS, help="only NVRTC, of this version")
    parser.add_argument("--pins", action="store_true", help="print the pinned wheels")
    options = parser.parse_args()
    wheels = NVRTC_WHEELS[options.nvrtc] if options.nvrtc else NEWEST_WHEELS if options.newest else WHEELS
    if options.pins:
        print(pins(wheels), end="")
        return
    folder = os.path.abspath(options.folder or default_folder(wheels))
    if (platform.system(), platform.machine()) not in [("Linux", "x86_64"), ("Linux", "aarch64")]:
        give_up(f"there are no wheels for {platform.system()} on {platform.machine()}: run this on Linux, x86_64 or aarch64")
    os.makedirs(os.path.dirname(folder), exist_ok=True)
    # The lock is needed because parallel builds may install the compiler at the same time.
    with open(folder + ".lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not is_complete(folder, wheels):
            install(folder, wheels)
    print(library_folder(folder, options.nvrtc) if options.nvrtc else toolkit(folder))


def pins(wheels):
    return "\n".join(wheels) + "\n"


def default_folder(wheels):
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return os.path.join(cache, "lockstep", "cuda-" + hashlib.sha256(pins(wheels).encode()).hexdigest()[:12])


def toolkit(folder):
    """The folder of the compiler within the folder in which the wheels are installed."""
    return os.path.join(folder, "nvidia", "cu13")


def library_folder(folder, version):
    return os.path.join(folder, "nvidia", NVRTC_FOLDERS[version], "lib")


def problems(folder, wheels):
    """The tools in the folder that do not work, as pairs of a name and a message."""
    for version, pinned in NVRTC_WHEELS.items():
        if wheels == pinned:
            return [("NVRTC", problem)] if (problem := nvrtc_problem(library_folder(folder, version))) else []
    return [(tool, problem) for tool in TOOLS if (problem := works(folder, tool)) is not None]


def nvrtc_problem(folder):
    try:
        name = next(name for name in os.listdir(folder) if re.fullmatch(r"libnvrtc\.so\.\d+", name))
        ctypes.CDLL(os.path.join(folder, name))
    except (OSError, StopIteration) as error:
        return f"{folder}: {error!r}"
    return None


def is_complete(folder, wheels):
    """True if exactly the pinned wheels are completely installed in the folder."""
    try:
        with open(os.path.join(folder, "pins"), encoding="utf-8") as file:
            return file.read() == pins(wheels) and not problems(folder, wheels)
    except OSError:
        return False


def works(folder, tool):
    """Returns None if the tool starts, otherwise a message about the problem."""
    try:
        done = subprocess.run(
            [os.path.join(toolkit(folder), "bin", tool), "--version"], capture_output=True, text=True, timeout=60
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    return None if done.returncode == 0 else done.stdout + done.stderr


def install(folder, wheels):
    """Installs the wheels into a temporary folder, checks it, and renames it. So a folder with the final name is always
    complete."""
    if os.path.exists(folder) and os.listdir(folder) and not os.path.exists(os.path.join(folder, "pins")):
        give_up(f"{folder} is there and is not from this script: name another folder")
    print(f"installing the CUDA compiler (100 MB) in {folder}", file=sys.stderr)
    fresh = folder + ".fresh"
    shutil.rmtree(fresh, ignore_errors=True)
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet", "--timeout", "30", "--retries", "3"]
    command = [*pip, "install", "--no-deps", "--only-binary", ":all:", "--target", fresh, *wheels]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=1800)
    except (OSError, subprocess.TimeoutExpired) as error:
        shutil.rmtree(fresh, ignore_errors=True)
        give_up(f"pip did not finish: {error}")
    if done.returncode != 0:
        shutil.rmtree(fresh, ignore_errors=True)
        print((done.stdout + done.stderr).rstrip(), file=sys.stderr)
        missing = "No module named pip" in done.stderr
        give_up("no pip: apt-get install python3-pip" if missing else "pip cannot install the wheels: is there a network?")
    for tool, problem in problems(fresh, wheels):
        give_up(f"{tool} was installed in {fresh} but does not start: {problem.rstrip()}")
    with open(os.path.join(fresh, "pins"), "w", encoding="utf-8") as file:
        file.write(pins(wheels))
    shutil.rmtree(folder, ignore_errors=True)
    os.rename(fresh, folder)


def give_up(why):
    print(f"cuda_toolchain.py: {why}", file=sys.stderr)
    sys.exit(1)


if __name__ == "__main__":
    main()
