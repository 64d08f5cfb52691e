#!/usr/bin/env python3
"""Prints the path of a Python with the packages that the tests of interfaces/python and `make wheel` need.

    tools/python_venv.py            what the tests of `make test` need
    tools/python_venv.py cluster    also what the tests with a cluster need

The packages are installed in a virtual environment under the build folder, which is created again when the first list changes. Prints
why and fails if that is not possible.
"""

import contextlib
import hashlib
import os
import shutil
import subprocess
import sys

PACKAGES = [
    "maturin>=1.16,<2",
    "pytest>=9",
    "cryptography>=50",
    "numpy>=2",
    "fsspec>=2026",
    # Libraries that open files through fsspec.
    "pandas>=3",
    "zarr>=3",
    "dask[dataframe]>=2026",
    # The tests of stores that zarr publishes are coroutines.
    "pytest-asyncio>=1",
    # These packages also implement encrypted Parquet, so they are compared with Lockstep.
    "pyarrow>=26",
    "duckdb>=2",
    "polars>=2",
    # The original implementation of safetensors, and the types of safetensors that numpy does not have.
    "safetensors>=0.8",
    "ml_dtypes>=0.6",
    "mypy>=1.15",
    "pyright>=1.1",
]
CLUSTER = [
    "ray[data]>=2.50,<3",
    # An example in docs/data.md uses this package.
    "distributed>=2026",
]
ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
TARGET = os.environ.get("CARGO_TARGET_DIR") or os.path.join(ROOT, "target")
FOLDER = os.path.abspath(os.path.join(TARGET, "python-venv"))
PYTHON = os.path.join(FOLDER, "bin", "python")
# This file contains a hash of the list of installed packages and of the interpreter's version.
STAMP = os.path.join(FOLDER, "packages")
CLUSTER_STAMP = os.path.join(FOLDER, "packages-cluster")
# Only binary packages are installed, because a build takes minutes and requires libraries that are rarely installed.
PIP = [PYTHON, "-m", "pip", "--disable-pip-version-check", "--quiet", "--timeout", "30", "--retries", "2"]
PIP += ["install", "--only-binary", ":all:"]


def stamp(packages):
    return hashlib.sha256("\n".join([sys.version, *packages]).encode()).hexdigest()


def is_current(path=STAMP, packages=PACKAGES):
    try:
        with open(path, encoding="ascii") as file:
            return file.read() == stamp(packages)
    except OSError:
        return False


def run(command, problem):
    done = subprocess.run(command, capture_output=True, text=True, timeout=900)
    if done.returncode != 0:
        # After a failure, these files are removed, so that the next call installs the packages again.
        for path in (STAMP, CLUSTER_STAMP):
            with contextlib.suppress(OSError):
                os.remove(path)
        sys.exit(f"{done.stdout}{done.stderr}python_venv: {problem}")


def write(path, packages):
    with open(path, "w", encoding="ascii") as file:
        file.write(stamp(packages))


def install():
    print(f"installing {', '.join(PACKAGES)} in {FOLDER}", file=sys.stderr)
    shutil.rmtree(FOLDER, ignore_errors=True)
    run([sys.executable, "-m", "venv", FOLDER], "no virtual environment: apt-get install python3-venv")
    run([*PIP, *PACKAGES], "pip cannot install the packages: is there a network?")
    write(STAMP, PACKAGES)


def install_cluster():
    print(f"installing {', '.join(CLUSTER)} in {FOLDER}", file=sys.stderr)
    # Both lists are installed together, so that pip keeps the versions of the packages in the first list.
    run([*PIP, *PACKAGES, *CLUSTER], "pip cannot install the packages: is there a network?")
    write(CLUSTER_STAMP, CLUSTER)


def use(cluster=False):
    """Returns if the script runs in the virtual environment. Otherwise starts the script again in the virtual environment."""
    if os.path.realpath(sys.prefix) == os.path.realpath(FOLDER):
        return
    if not is_current():
        install()
    if cluster and not is_current(CLUSTER_STAMP, CLUSTER):
        install_cluster()
    os.execv(PYTHON, [PYTHON, "-B", *sys.argv])


if __name__ == "__main__":
    if sys.version_info < (3, 11):
        sys.exit(f"python_venv: this is Python {sys.version.split()[0]}, and the package needs 3.11 or later")
    if sys.argv[1:] not in ([], ["cluster"]):
        sys.exit(__doc__.strip())
    if not is_current():
        install()
    if "cluster" in sys.argv and not is_current(CLUSTER_STAMP, CLUSTER):
        install_cluster()
    print(PYTHON)
