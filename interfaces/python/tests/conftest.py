"""Data, fixtures and classes that several tests use."""

import contextlib
import importlib
import os
import random
import subprocess
import sys
import textwrap

import pytest

import lockstep
from lockstep import tensor

# The generator has a fixed seed, so that each run of the tests has the same data. No secret depends on these data.
RANDOM = random.Random(0x10C57E9)


def data(size):
    """Returns `size` pseudorandom bytes."""
    return RANDOM.randbytes(size)


def run_python(code, *arguments, timeout=60, environment=None):
    """Runs code in a separate Python process. Returns the finished process, whose output is text."""
    command = [sys.executable, "-X", "faulthandler", "-c", textwrap.dedent(code), *map(str, arguments)]
    return subprocess.run(
        command, capture_output=True, text=True, timeout=timeout, env={**os.environ, **(environment or {})}
    )


@contextlib.contextmanager
def started(command, **options):
    """Starts a program that runs during the `with` block. If the block fails, the program is killed. `Popen` alone would wait
    for the program, which may never end."""
    with subprocess.Popen(command, **options) as process:
        try:
            yield process
        except BaseException:
            process.kill()
            raise


def torch_module(name="torch"):
    """Returns a module of PyTorch or JAX. If it is missing, the tests of the calling file are skipped, or fail if LOCKSTEP_TEST_TORCH
    is set."""
    if os.environ.get("LOCKSTEP_TEST_TORCH"):
        return importlib.import_module(name)
    return pytest.importorskip(name, reason=f"NOT TESTED: {name} is not installed")


@pytest.fixture
def key():
    return data(32)


class Dlpack:
    """An array that has only the methods of DLPack, like a tensor of PyTorch."""

    def __init__(self, array, device=None):
        self.array, self.device = array, device

    def __dlpack__(self, **arguments):
        return self.array.__dlpack__(**arguments)

    def __dlpack_device__(self):
        return self.device or self.array.__dlpack_device__()


class CudaArray:
    """An array that has only `__cuda_array_interface__`, like an array of Numba."""

    def __init__(self, array, **changes):
        self.array = array
        self.__cuda_array_interface__ = {**array.__cuda_array_interface__, **changes}


@pytest.fixture
def emulator():
    try:
        selection = lockstep.use("cuda:emu")
    except ValueError:
        pytest.skip("NOT TESTED: memory of devices, because the extension has no simulated devices")
    with selection:
        yield "cuda:emu"


def on_device(content, shape=None):
    content = bytes(content)
    array = tensor.DeviceArray(len(content) if shape is None else shape, "cuda:emu")
    array.copy_from(content)
    return array
