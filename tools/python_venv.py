#!/usr/bin/env python3
"""Prints the path of a Python with the packages that the tests of crates/python and `make wheel` need.

    tools/python_venv.py

The packages are installed in a virtual environment under the build folder, which is created again when this list changes. Prints
why and fails if that is not possible.
"""

import hashlib
import os
import shutil
import subprocess
import sys

PACKAGES = [
    "maturin>=1.9,<2",
    "pytest>=9",
    "cryptography>=50",
    "numpy>=2",
    "fsspec>=2026",
    # Other implementations of encrypted Parquet.
    "pyarrow>=26",
    "duckdb>=2",
    "polars>=2",
    # The other implementation of safetensors, and its types that numpy does not have.
    "safetensors>=0.8",
    "ml_dtypes>=0.6",
    "mypy>=1.15",
    "pyright>=1.1",
]
ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
TARGET = os.environ.get("CARGO_TARGET_DIR") or os.path.join(ROOT, "target")
FOLDER = os.path.abspath(os.path.join(TARGET, "python-venv"))
PYTHON = os.path.join(FOLDER, "bin", "python")
# The list that is installed, with the interpreter.
STAMP = os.path.join(FOLDER, "packages")


def stamp():
    return hashlib.sha256("\n".join([sys.version, *PACKAGES]).encode()).hexdigest()


def is_current():
    try:
        with open(STAMP, encoding="ascii") as file:
            return file.read() == stamp()
    except OSError:
        return False


def install():
    print(f"installing {', '.join(PACKAGES)} in {FOLDER}", file=sys.stderr)
    shutil.rmtree(FOLDER, ignore_errors=True)
    # Binary packages only: a build takes minutes and requires libraries that are rarely installed.
    pip = [PYTHON, "-m", "pip", "--disable-pip-version-check", "--quiet", "--timeout", "30", "--retries", "2"]
    steps = [
        ([sys.executable, "-m", "venv", FOLDER], "no virtual environment: apt-get install python3-venv"),
        ([*pip, "install", "--only-binary", ":all:", *PACKAGES], "pip cannot install the packages: is there a network?"),
    ]
    for command, problem in steps:
        done = subprocess.run(command, capture_output=True, text=True, timeout=900)
        if done.returncode != 0:
            shutil.rmtree(FOLDER, ignore_errors=True)
            sys.exit(f"{done.stdout}{done.stderr}python_venv: {problem}")
    with open(STAMP, "w", encoding="ascii") as file:
        file.write(stamp())


if __name__ == "__main__":
    if sys.version_info < (3, 11):
        sys.exit(f"python_venv: this is Python {sys.version.split()[0]}, and the package needs 3.11 or later")
    if not is_current():
        install()
    print(PYTHON)
