#!/usr/bin/env python3
"""Installs the compiler for the CUDA kernels from Python wheels. No driver, no GPU and no root are required.

    tools/cuda_toolchain.py [FOLDER] [--newest]

Installs the pinned wheels below into FOLDER (default: ${XDG_CACHE_HOME:-~/.cache}/lockstep/cuda-<hash of the pins>), unless they are
installed already; with --newest, installs those of the newest compiler. Prints the folder of the toolkit, which contains bin/nvcc,
bin/cuobjdump, bin/nvdisasm and lib/libnvrtc.so.13. nvcc also requires a C++ compiler for the host (g++).
"""

import argparse
import fcntl
import hashlib
import os
import platform
import shutil
import subprocess
import sys

# 13.0 is the newest compiler whose output every driver of series 580 takes. Its wheels have no disassemblers: those
# begin with 13.2, and read what 13.0 writes.
WHEELS = [
    "nvidia-cuda-nvcc==13.0.88",
    "nvidia-nvvm==13.0.88",
    "nvidia-cuda-crt==13.0.88",
    "nvidia-cuda-runtime==13.0.96",
    "nvidia-cuda-nvrtc==13.0.88",
    "nvidia-cuda-cuobjdump==13.2.86",
    "nvidia-cuda-nvdisasm==13.2.86",
]
# The newest compiler. Drivers of series 580 load its machine code but not its PTX. It is used only for modules whose instructions
# the compiler above does not have: see tools/cuda_kernels.py --carry-less.
NEWEST_WHEELS = [
    "nvidia-cuda-nvcc==13.5.37",
    "nvidia-nvvm==13.5.37",
    "nvidia-cuda-crt==13.5.37",
    "nvidia-cuda-runtime==13.5.37",
    "nvidia-cuda-cuobjdump==13.5.37",
    "nvidia-cuda-nvdisasm==13.5.37",
]
TOOLS = ["nvcc", "ptxas", "cuobjdump", "nvdisasm"]


def main():
    parser = argparse.ArgumentParser(description="Installs the pinned CUDA compiler and prints its folder.")
    parser.add_argument("folder", nargs="?", help="where to (default: a folder in the user's cache)")
    parser.add_argument("--newest", action="store_true", help="the newest compiler instead of the default one")
    options = parser.parse_args()
    wheels = NEWEST_WHEELS if options.newest else WHEELS
    folder = os.path.abspath(options.folder or default_folder(wheels))
    if (platform.system(), platform.machine()) not in [("Linux", "x86_64"), ("Linux", "aarch64")]:
        give_up(f"there are no wheels for {platform.system()} on {platform.machine()}: run this on Linux, x86_64 or aarch64")
    os.makedirs(os.path.dirname(folder), exist_ok=True)
    # A lock, because parallel builds may install the compiler at the same time.
    with open(folder + ".lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not is_complete(folder, wheels):
            install(folder, wheels)
    print(toolkit(folder))


def pins(wheels):
    return "\n".join(wheels) + "\n"


def default_folder(wheels):
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return os.path.join(cache, "lockstep", "cuda-" + hashlib.sha256(pins(wheels).encode()).hexdigest()[:12])


def toolkit(folder):
    """The folder in which the wheels put the toolkit."""
    return os.path.join(folder, "nvidia", "cu13")


def is_complete(folder, wheels):
    """True if exactly the pinned wheels were installed there, completely."""
    try:
        with open(os.path.join(folder, "pins"), encoding="utf-8") as file:
            return file.read() == pins(wheels) and all(works(folder, tool) is None for tool in TOOLS)
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
    """Installs into a temporary folder, checks it, and renames it: an existing folder is complete."""
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
    for tool in TOOLS:
        problem = works(fresh, tool)
        if problem is not None:
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
