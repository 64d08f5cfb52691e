#!/usr/bin/env python3
"""Checks the architecture: crates use only crates that the rules for their layer permit, and no modules of a crate import each
other in circles.

    tools/architecture/check.py              fails on a new circle, on a dependency against the order of the layers, on a line of known.txt
                                             that is no longer true, and if the picture of docs/architecture.md is old
    tools/architecture/check.py --write      draws the picture, and removes from known.txt what is no longer true; then checks
    tools/architecture/check.py --self-test  tests this tool

Crates and their dependencies, including optional ones but not those of tests, are read from `cargo metadata`. The modules are
the ones at the top level of a crate; their imports are read from the `use` lines and the paths of the sources. Only Python's
standard library is required.
"""

import argparse
import pathlib
import sys
import unittest

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path.insert(0, str(HERE))
sys.dont_write_bytecode = True

import crates as workspace  # noqa: E402
import known  # noqa: E402
import modules  # noqa: E402
import picture  # noqa: E402

PAGE = ROOT / "docs" / "architecture.md"
LIST = HERE / "known.txt"


def survey(crates):
    """Returns two lists: the circles of all crates, as pairs of a crate and its modules, and the dependencies that violate the
    layers."""
    circles = {(crate.name, group) for crate in crates.values() for group in modules.circles(modules.imports(crate.folder))}
    return circles, workspace.wrong_dependencies(crates)


def run(write):
    crates = workspace.read(ROOT)
    circles, wrong = survey(crates)
    page, listed = PAGE.read_text(encoding="utf-8"), LIST.read_text(encoding="utf-8")
    wanted = picture.replaced(page, crates)
    if write:
        listed = known.shrunk(listed, circles, wrong)
        PAGE.write_text(wanted, encoding="utf-8")
        LIST.write_text(listed, encoding="utf-8")
        page = wanted
    faults, stale = known.compare(known.parse(listed), circles, wrong)
    faults += [f"no longer true in tools/architecture/known.txt: {line}" for line in stale]
    if page != wanted:
        faults.append("the picture in docs/architecture.md is not up to date")
    if stale or page != wanted:
        faults.append("run tools/architecture/check.py --write")
    if faults:
        sys.exit("\n".join(faults))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    action = parser.add_mutually_exclusive_group()
    action.add_argument("--write", action="store_true")
    action.add_argument("--self-test", action="store_true")
    arguments = parser.parse_args()
    if arguments.self_test:
        found = unittest.defaultTestLoader.discover(str(HERE / "tests"))
        sys.exit(not unittest.TextTestRunner().run(found).wasSuccessful())
    run(arguments.write)


if __name__ == "__main__":
    main()
