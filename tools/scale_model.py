#!/usr/bin/env python3
"""Computes how time and cost grow with the work: the tables of docs/scale.md and docs/scale/figures.md, and docs/scale/time.svg.

    tools/scale_model.py              writes the two pages (between their markers) and the plot
    tools/scale_model.py --check      fails if they differ from what the figures yield
    tools/scale_model.py --figures FILE   prints the tables of another file of figures; writes nothing
    tools/scale_model.py --self-test  tests this tool

All figures are read from docs/scale/figures.json: change a price or a rate there. Only Python's standard library is required.
"""

import argparse
import os
import sys
import unittest

TOOLS = os.path.dirname(os.path.abspath(__file__))
HERE = os.path.join(TOOLS, "scale_model")
DOCS = os.path.join(os.path.dirname(TOOLS), "docs")
sys.path.insert(0, HERE)
sys.dont_write_bytecode = True

import figures  # noqa: E402
import page  # noqa: E402
import plot  # noqa: E402


def outputs(model):
    """The path and the wanted text of each generated file."""
    found = {os.path.join(DOCS, "scale", "time.svg"): plot.svg(model)}
    for name, parts in (("scale.md", page.parts(model)), (os.path.join("scale", "figures.md"), page.sources(model))):
        path = os.path.join(DOCS, name)
        with open(path, encoding="utf-8") as file:
            found[path] = page.replaced(file.read(), parts, os.path.relpath(path, os.path.dirname(DOCS)))
    return found


def run(check):
    wrong = []
    for path, text in outputs(figures.load(os.path.join(DOCS, "scale", "figures.json"))).items():
        if not check:
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
            continue
        try:
            with open(path, encoding="utf-8") as file:
                same = file.read() == text
        except FileNotFoundError:
            same = False
        if not same:
            wrong.append(path)
    for path in wrong:
        print(f"{os.path.relpath(path, os.path.dirname(DOCS))} is not up to date: run tools/scale_model.py", file=sys.stderr)
    return 1 if wrong else 0


def self_test():
    tests = os.path.join(HERE, "tests")
    suite = unittest.defaultTestLoader.discover(tests, top_level_dir=tests)
    return 0 if unittest.TextTestRunner().run(suite).wasSuccessful() else 1


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--check", action="store_true")
    what.add_argument("--figures", metavar="FILE")
    what.add_argument("--self-test", action="store_true")
    options = parser.parse_args()
    if options.self_test:
        return self_test()
    try:
        if options.figures:
            print("\n\n".join(page.parts(figures.load(options.figures)).values()))
            return 0
        return run(options.check)
    except (figures.Problem, OSError) as problem:
        print(f"scale_model.py: {problem}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
