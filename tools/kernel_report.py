#!/usr/bin/env python3
"""Analyses the machine code of the CUDA kernels: instructions per byte of data, leaks, and the resulting bounds.

    tools/kernel_report.py              writes docs/kernels.md and devices/cuda/kernels/report.json
    tools/kernel_report.py --check      fails if those differ, or a kernel misses a requirement
    tools/kernel_report.py --taint [NAME...]   where addresses and branches depend on secrets
    tools/kernel_report.py --arch sm_86        registers and local memory on another architecture
    tools/kernel_report.py --carry-less        prints the same report of the modules that only the newest compiler compiles
    tools/kernel_report.py --self-test  tests this tool

No GPU is required. tools/cuda_toolchain.py installs the compiler.
"""

import argparse
import os
import sys
import unittest

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "kernel_report")
sys.path.insert(0, HERE)
sys.dont_write_bytecode = True

import report  # noqa: E402
import sass  # noqa: E402
import taint  # noqa: E402
import toolkit  # noqa: E402
from image import Image  # noqa: E402


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--check", action="store_true")
    what.add_argument("--taint", nargs="*", metavar="NAME")
    what.add_argument("--carry-less", action="store_true")
    what.add_argument("--self-test", action="store_true")
    parser.add_argument("--arch", default=report.ARCH)
    options = parser.parse_args()
    try:
        if options.self_test:
            return self_test()
        if options.taint is not None:
            return show_taint(options.arch, options.taint)
        return show_carry_less() if options.carry_less else run(options)
    except sass.Problem as problem:
        print(f"kernel_report.py: {problem}", file=sys.stderr)
        return 1


def run(options):
    facts = report.kernels(options.arch)
    wrong = report.complaints(facts, options.arch)
    if options.arch != report.ARCH:
        for name, one in facts.items():
            print(f"{name}: {one['registers']} registers, {one['stack']} bytes of local memory, {one['spill_stores']} spilled")
    else:
        for path, text in ((report.JSON, report.as_json(facts)), (report.MARKDOWN, report.as_markdown(facts))):
            if options.check:
                try:
                    with open(path, encoding="utf-8") as file:
                        if file.read() == text:
                            continue
                except OSError:
                    pass
                wrong.append(f"{os.path.relpath(path, toolkit.ROOT)} is not what the sources give: make kernel-report")
            else:
                with open(path, "w", encoding="utf-8") as file:
                    file.write(text)
    for line in wrong:
        print(f"kernel_report.py: {line}", file=sys.stderr)
    return 1 if wrong else 0


def show_carry_less():
    facts = report.kernels(carry_less=True)
    for name, one in facts.items():
        print(f"{name}: {one['registers']} registers, by secret: {report.secrets(one)}")
        if "per" in one:
            counts = ", ".join(f"{what} {one[what]:.2f}" for what in ("alu", "fma", "carry_less", "mem", "issued"))
            print(f"    by the {one['per']}: {counts}; limit {one['limit']}, {one['rate']:.0f} a ns")
    wrong = report.complaints(facts, is_all=False)
    for line in wrong:
        print(f"kernel_report.py: {line}", file=sys.stderr)
    return 1 if wrong else 0


def show_taint(arch, names):
    folder = toolkit.folder()
    for source in toolkit.sources(report.KERNELS):
        compiled = toolkit.compile_source(folder, source, arch, keep=report.cache())
        image = Image(compiled.cubin)
        for name, code in report.functions_of(compiled, image).items():
            if names and not any(part in name for part in names):
                continue
            findings, _ = taint.analyse(name, code, image)
            print(f"{name}: {sum(map(len, findings.values())) or 'none'}")
            for kind, where in findings.items():
                for one in where:
                    print(f"    {kind}: /*{one.address:04x}*/ {one.text}")
    return 0


def self_test():
    suite = unittest.defaultTestLoader.discover(os.path.join(HERE, "tests"), top_level_dir=os.path.join(HERE, "tests"))
    return 0 if unittest.TextTestRunner(verbosity=2).run(suite).wasSuccessful() else 1


if __name__ == "__main__":
    sys.exit(main())
