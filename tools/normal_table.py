#!/usr/bin/env python3
"""Writes or checks the coefficients of the normal distribution of `lockstep.random`.

    tools/normal_table.py          writes interfaces/python/src/random/normal.bin
    tools/normal_table.py --check  computes 100 of its segments again and measures the error of the polynomials

Requires the package mpmath. The file has, for each of 63 octaves of the probability u in (0, 1/2) and each of 16 equal parts of an
octave, the 9 coefficients of a polynomial in s in [-1, 1), the lowest degree first, as 64-bit little-endian floats. Part k of
octave o is the interval from (16 + k) * 2 ** (-6 - o), of the length 2 ** (-6 - o), and s runs over it from its start to its end. The
polynomial interpolates -quantile(u) at the 9 Chebyshev nodes of the interval. Its distance from the quantile is below
9e-16, which is half of the last place of the largest coefficients.
"""

import os
import random
import struct
import sys

import mpmath
from mpmath import mp, mpf

OCTAVES, PARTS, TERMS = 63, 16, 9
FILE = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "interfaces/python/src/random/normal.bin")
mp.dps = 50


def upper(u):
    """The number that a normally distributed value exceeds with the probability u."""
    return mp.sqrt(2) * mpmath.erfinv(1 - 2 * mpf(u))


def point(octave, part, s):
    """Returns the probability u for a position s, from -1 to 1, in a part of an octave."""
    return (16 + part + (mpf(s) + 1) / 2) * mpf(2) ** (-6 - octave)


def coefficients(octave, part):
    nodes = [mp.cos(mp.pi * (2 * i + 1) / (2 * TERMS)) for i in range(TERMS)]
    values = mp.matrix([upper(point(octave, part, node)) for node in nodes])
    powers = mp.matrix([[node**degree for degree in range(TERMS)] for node in nodes])
    return [float(value) for value in mp.lu_solve(powers, values)]


def error(octave, part, terms):
    """The largest distance between the polynomial and the quantile at some points, computed without rounding."""
    worst = mpf(0)
    for i in range(9):
        s = mpf(i) / 4 - 1
        value = mpf(0)
        for term in reversed(terms):
            value = value * s + mpf(term)
        worst = max(worst, abs(value - upper(point(octave, part, s))))
    return worst


def check():
    with open(FILE, "rb") as file:
        table = file.read()
    chosen = random.Random(1).sample([(o, p) for o in range(OCTAVES) for p in range(PARTS)], 100)
    worst = mpf(0)
    for octave, part in chosen:
        start = 8 * TERMS * (octave * PARTS + part)
        terms = list(struct.unpack_from(f"<{TERMS}d", table, start))
        if terms != coefficients(octave, part):
            sys.exit(f"{FILE}: octave {octave}, part {part} differs: run tools/normal_table.py")
        worst = max(worst, error(octave, part, terms))
    print(f"the largest error of 100 segments is {mp.nstr(worst, 3)}")


def write():
    with open(FILE, "wb") as file:
        for octave in range(OCTAVES):
            for part in range(PARTS):
                file.write(struct.pack(f"<{TERMS}d", *coefficients(octave, part)))


if __name__ == "__main__":
    check() if sys.argv[1:] == ["--check"] else write()
