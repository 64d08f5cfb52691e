#!/usr/bin/env python3
"""Prints a folder with PyTorch and JAX for the CPU, for the Python of tools/python_venv.py: add it to PYTHONPATH.

    tools/torch_packages.py

PyPI has one package of PyTorch for Linux, which requires 2.5 GB of libraries of NVIDIA: without them it cannot be loaded. On a machine
without a GPU it calls two of them, which are small (the CUDA runtime and CUPTI). The others are replaced by one library with the
names that PyTorch refers to; a call of one of these functions ends the program with its name.

The folder is under the build folder (1.6 GB; 0.7 GB are downloaded) and is created again when this file changes. Prints why and fails if
that is not possible.
"""

import glob
import hashlib
import os
import re
import shutil
import subprocess
import sys
import zipfile

import python_venv

PYTORCH = "torch==2.15.0"
# The other packages, without those that they require: the virtual environment has numpy, ml_dtypes and fsspec.
PACKAGES = [
    # What PyTorch requires, in the versions of its CUDA.
    "nvidia-cuda-runtime==13.2.*",
    "nvidia-cuda-cupti==13.2.*",
    "filelock",
    "jinja2",
    "markupsafe",
    "mpmath",
    "networkx>=2.5.1",
    "setuptools>=77.0.3",
    "sympy>=1.13.3",
    "typing-extensions>=4.13",
    # JAX also requires SciPy. It is not listed, because the tests do not import it.
    "jax>=0.10",
    "jaxlib>=0.10",
    "opt_einsum",
]
# Libraries that are replaced, by the start of their names and of the names of their functions.
LIBRARIES = "cublas|cudnn|cufft|cufile|cusolver|cusparse|nccl|nvrtc|nvshmem"
FUNCTIONS = LIBRARIES.replace("cufile", "cuFile")
# For the compilation of extensions.
LEFT_OUT = ("torch/include/", "torch/share/", "torch/bin/protoc")
FOLDER = os.path.join(os.path.dirname(python_venv.FOLDER), "torch-packages")
STAMP = os.path.join(FOLDER, "packages")


def stamp():
    with open(__file__, "rb") as file:
        return hashlib.sha256(sys.version.encode() + file.read()).hexdigest()


def is_current():
    try:
        with open(STAMP, encoding="ascii") as file:
            return file.read() == stamp()
    except OSError:
        return False


def run(command, problem, **options):
    done = subprocess.run(command, capture_output=True, text=True, timeout=900, **options)
    if done.returncode != 0:
        sys.exit(f"{done.stdout}{done.stderr}torch_packages: {problem}")
    return done.stdout


def install(python):
    print(f"installing {PYTORCH} in {FOLDER}", file=sys.stderr)
    shutil.rmtree(FOLDER, ignore_errors=True)
    pip = [python, "-m", "pip", "--disable-pip-version-check", "--quiet", "--timeout", "30", "--retries", "2"]
    problem = "pip cannot download the packages: is there a network?"
    alone = ["--only-binary", ":all:", "--no-deps"]
    run([*pip, "install", *alone, "--no-compile", "--target", FOLDER, *PACKAGES], problem)
    wheels = os.path.join(FOLDER, "wheels")
    run([*pip, "download", *alone, "--no-cache-dir", "--dest", wheels, PYTORCH], problem)
    with zipfile.ZipFile(glob.glob(os.path.join(wheels, "*.whl"))[0]) as wheel:
        wheel.extractall(FOLDER, [name for name in wheel.namelist() if not name.startswith(LEFT_OUT)])
    shutil.rmtree(wheels)
    # A zip file has no permissions that Python restores.
    os.chmod(os.path.join(FOLDER, "torch", "bin", "torch_shm_manager"), 0o755)
    replace_libraries(os.path.join(FOLDER, "torch", "lib"))
    # The compiled modules are where torch_test.sh has them.
    environment = {**os.environ, "PYTHONPATH": FOLDER, "PYTHONPYCACHEPREFIX": os.path.join(FOLDER, "pycache")}
    run([python, "-c", "import jax, torch"], "PyTorch or JAX cannot be loaded", env=environment)
    with open(STAMP, "w", encoding="ascii") as file:
        file.write(stamp())


def replace_libraries(folder):
    """Makes the libraries that PyTorch's own libraries refer to and that are not installed."""
    own = glob.glob(os.path.join(folder, "lib*.so"))
    needed = run(["readelf", "--dynamic", *own], "needs readelf: apt-get install binutils")
    names = set(re.findall(rf"\(NEEDED\).*\[(lib(?:{LIBRARIES})[^\]]*)\]", needed))
    undefined = run(["nm", "--dynamic", "--undefined-only", *own], "needs nm: apt-get install binutils")
    functions = sorted(set(re.findall(rf" U ((?:{FUNCTIONS})\w+)", undefined)))
    if not names or not functions:
        sys.exit(f"torch_packages: {folder} has no libraries of the expected kind: see LIBRARIES in {__file__}")
    source = [
        "#include <stdio.h>",
        "#include <stdlib.h>",
        'static void missing(const char *name) { fprintf(stderr, "%s: not in this PyTorch\\n", name); abort(); }',
        *(f'void {function}(void) {{ missing("{function}"); }}' for function in functions),
    ]
    compiler = ["cc", "-shared", "-fPIC", "-x", "c", "-o", os.path.join(folder, "libmissing.so"), "-"]
    run(compiler, "needs a C compiler: apt-get install gcc", input="\n".join(source))
    for name in names:
        os.symlink("libmissing.so", os.path.join(folder, name))


if __name__ == "__main__":
    if not is_current():
        if not python_venv.is_current():
            python_venv.install()
        install(python_venv.PYTHON)
    print(FOLDER)
