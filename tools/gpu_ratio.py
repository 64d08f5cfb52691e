#!/usr/bin/env python3
"""Compares the bitsliced kernels of the wgpu and CUDA backends, as device_speed measured them on one GPU.

  tools/gpu_ratio.py WGPU.jsonl CUDA.jsonl [BAR]

Prints the rates of both at the largest common size, for each operation. Exits with 1 if the ratio of CTR-128 is below BAR (0.5).
"""

import json
import sys


def rates(path, kernel):
    """The rates in bytes per second by operation, key and size."""
    found = {}
    try:
        with open(path, encoding="utf-8") as file:
            for line in file:
                try:
                    row = json.loads(line)
                except ValueError:
                    # An interrupted measurement may leave an incomplete line, which is ignored.
                    continue
                if row.get("what") == "resident" and row.get("kernel") == kernel and "seconds" in row:
                    found[row["pass"], row["bits"], row["bytes"]] = row["bytes"] / row["seconds"]
    except OSError as error:
        sys.exit(f"{path} has no results of device_speed: {error}")
    return found


def main(arguments):
    if len(arguments) not in (2, 3):
        sys.exit(__doc__)
    bar = float(arguments[2]) if len(arguments) == 3 else 0.5
    ours, theirs = rates(arguments[0], "wgpu/bitslice"), rates(arguments[1], "cuda/bitslice")
    both = ours.keys() & theirs.keys()
    if not both:
        sys.exit("nothing was measured by both")
    largest = max(size for _, _, size in both)
    for key in sorted(key for key in both if key[2] == largest):
        print(f"{key[0]}-{key[1]}: {ours[key] / 1e9:.2f} and {theirs[key] / 1e9:.2f} GB/s, ratio {ours[key] / theirs[key]:.2f}")
    at = ("Ctr", 128, largest)
    if at not in both:
        sys.exit(f"CTR-128 of {largest} bytes was not measured by both")
    ratio = ours[at] / theirs[at]
    if ratio < bar:
        sys.exit(f"CTR-128 reaches {ratio:.2f} of CUDA's rate, less than {bar}")


if __name__ == "__main__":
    main(sys.argv[1:])
