#!/usr/bin/env python3
"""Compares the speed of lockstep.random with that of PyTorch, numpy and the operating system.

    PYTHONPATH=FOLDER tools/bench/random_numbers.py    FOLDER has the package lockstep

Prints GB/s (10^9 bytes per second) of each, the best of several rounds; each round measures all of them. PyTorch is omitted if it is
not installed.
"""

import secrets

import numpy

import harness
from lockstep.random import BitGenerator, Generator

SIZES = (1 << 10, 1 << 16, 1 << 20, 1 << 26)
ROUNDS = 7
# The minimum time of a measurement in seconds.
LEAST = 0.05
KEY = bytes(range(32))


def candidates(size):
    """Pairs of a name and a function that makes `size` bytes."""
    generator, array = Generator(KEY), numpy.zeros(size, numpy.uint8)
    singles, doubles = array.view(numpy.float32), array.view(numpy.float64)
    yield "Generator.fill", lambda: generator.fill(array)
    yield "secrets.token_bytes", lambda: secrets.token_bytes(size)
    yield "numpy PCG64 bytes", lambda rng=numpy.random.default_rng(1): rng.bytes(size)
    yield "Generator.uniform float32", lambda: generator.uniform(out=singles)
    yield "Generator.normal float32", lambda: generator.normal(out=singles)
    yield "Generator.normal float64", lambda: generator.normal(out=doubles)
    integers = array.view(numpy.int64)
    yield "Generator.integers(0, 6) int64", lambda: generator.integers(0, 6, out=integers)
    ours, theirs = numpy.random.Generator(BitGenerator(KEY)), numpy.random.default_rng(1)
    yield "numpy random float64, BitGenerator", lambda: ours.random(out=doubles)
    yield "numpy random float64, PCG64", lambda: theirs.random(out=doubles)
    try:
        import torch
    except ImportError:
        return
    tensor, out = torch.zeros(size // 4), torch.zeros(size, dtype=torch.uint8)
    yield "Generator.fill of a tensor", lambda: generator.fill(out)
    yield "torch.rand float32", lambda: torch.rand(size // 4, out=tensor)
    yield "torch.randn float32", lambda: torch.randn(size // 4, out=tensor)
    yield "torch random_ uint8", lambda: out.random_()


def seconds(function):
    """The seconds that one call takes."""
    calls = 1
    while True:
        spent = harness.timed(harness.repeated(function, calls))()
        if spent >= LEAST:
            return spent / calls
        calls = max(2 * calls, int(calls * LEAST / max(spent, 1e-9)))


def main():
    print(harness.machine())
    for size in SIZES:
        contenders = {name: lambda function=function: seconds(function) for name, function in candidates(size)}
        print(f"{size} bytes")
        for name, times in harness.alternate(contenders, ROUNDS).items():
            print(f"  {name:36} {size / min(times) / 1e9:8.3f}")


if __name__ == "__main__":
    main()
