#!/usr/bin/env python3
"""Checks the guides for contributors: applies the example of each to a copy of the project, and compiles the copy.

    tools/guides/check.py [--tree FOLDER] [GUIDE...]   GUIDE: kernel, mode (all); FOLDER: another checkout than this one
    tools/guides/check.py --no-compile                 applies the examples only: seconds
    tools/guides/check.py --self-test                  tests this tool

The copy is in the build folder. The example of the guide for a backend is not compiled here: it is a test of the crate
`lockstep-testkit`. The form of the comments in the guides is described in example.py.
"""

import argparse
import os
import pathlib
import shutil
import subprocess
import sys
import unittest

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path.insert(0, str(HERE))
sys.dont_write_bytecode = True

import example  # noqa: E402

GUIDES = ("kernel", "mode")


def copy(tree, folder):
    """Copies the files of the checkout to a folder, which is emptied first. Changes that are not committed are copied too."""
    shutil.rmtree(folder, ignore_errors=True)
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=tree, check=True, capture_output=True, text=True).stdout
    for name in filter(None, listed.split("\0")):
        source, copied = tree / name, folder / name
        if source.is_file():
            copied.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, copied)


def check(guide, tree, compiles):
    page = tree / "docs" / f"adding-a-{guide}.md"
    found = example.parse(page.read_text(encoding="utf-8"))
    target = pathlib.Path(os.environ.get("CARGO_TARGET_DIR") or tree / "target").resolve()
    folder = target / "guides" / guide
    # The build folder is not that of the project. cargo would take the crates of the copy for the crates of the
    # project, because it distinguishes sources only by their modification times.
    build = target / "guides" / "build"
    copy(tree, folder)
    example.apply(found, folder)
    for command in found.commands if compiles else ():
        print(f"{guide}: {' '.join(command)}", flush=True)
        done = subprocess.run(command, cwd=folder, env={**os.environ, "CARGO_TARGET_DIR": str(build)})
        if done.returncode:
            raise example.Wrong(f"the example does not compile: see {folder}")
    shutil.rmtree(folder)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("guides", nargs="*", metavar="GUIDE")
    parser.add_argument("--tree", type=pathlib.Path, default=ROOT)
    parser.add_argument("--no-compile", action="store_true")
    parser.add_argument("--self-test", action="store_true")
    given = parser.parse_args()
    if given.self_test:
        found = unittest.defaultTestLoader.discover(str(HERE / "tests"))
        sys.exit(not unittest.TextTestRunner().run(found).wasSuccessful())
    for guide in given.guides or GUIDES:
        try:
            check(guide, given.tree.resolve(), not given.no_compile)
        except example.Wrong as error:
            sys.exit(f"docs/adding-a-{guide}.md: {error}")


if __name__ == "__main__":
    main()
