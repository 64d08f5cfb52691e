#!/usr/bin/env python3
"""Runs the examples of the pages as a reader would: every code block, in order, from a clean folder for each page.

    tools/pages/run.py COMMAND EXTENSION MODULE C_LIBRARY [PAGE...]    PAGE: README.md, docs/command.md; all pages by default
    tools/pages/run.py --self-test

COMMAND is the program `lockstep`, beside which is `lockstep-lab`, EXTENSION the Python extension, MODULE the module for OpenSSL, C_LIBRARY
the static library. A folder has the files that the examples use (see Folder), a home folder with an SSH key, and on its path the programs
and a `make` that only checks that its targets exist.

A block of sh or python must succeed. Where the page prints output, it is compared; `...` stands for any text:

    print(error)  # there is no key for column ...       the output of a statement of Python
    lockstep inspect f.enc                               the output of a block, in a block of text below the comment
    <!-- output -->

Blocks of c and cpp are compiled, and those of rust are compiled elsewhere: COMPILED says where. LEFT_OUT has the blocks that are not run,
with the reasons.
"""

import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.append(os.path.join(ROOT, "tools"))
sys.dont_write_bytecode = True

import blocks  # noqa: E402
import python_venv  # noqa: E402
import terminal  # noqa: E402

GPU, SUPERUSER, NETWORK = "needs a GPU or a board", "needs root", "needs a network"
BENCHMARK = "takes minutes: its suites are tested with --quick"

# The first block that needs a cluster: its page and its beginning. All later blocks of the page also need the cluster.
CLUSTER = ("docs/data.md", "import ray\n")
# Blocks that are not run: the page, a part of the block's text, and the reason.
LEFT_OUT = [
    ("CONTRIBUTING.md", "cargo test", "runs the tests themselves"),
    ("README.md", "git clone", NETWORK),
    ("README.md", "sudo make install", SUPERUSER),
    ("docs/benchmarks.md", "lockstep bench", BENCHMARK),
    ("docs/c.md", "sudo apt install", SUPERUSER),
    ("docs/command.md", "lockstep bench", BENCHMARK),
    ("docs/cuda.md", "--device cuda:0", GPU),
    ("docs/papers/cuda-geforce8.md", "--device cuda:0", GPU),
    ("docs/papers/geforce-engine.md", "lab geforce measure", GPU),
    ("docs/papers/opengl.md", "--device opengl:0", GPU),
    ("docs/planner.md", "--device cuda:0", GPU),
    ("docs/provider.md", "sudo make install", SUPERUSER),
    ("docs/provider.md", "systemctl", SUPERUSER),
    ("docs/python.md", 'pip install dist', "`make wheel` installs and tests the wheel"),
    ("docs/python.md", 'lockstep.use("cuda:0")', GPU),
    ("docs/python.md", "lockstep::s3", NETWORK),
    ("docs/videocore.md", "--device qpu:0", GPU),
    ("docs/wgpu.md", "--device wgpu:0", GPU),
    (*CLUSTER, "a cluster: `make test-ray` runs this and the blocks after it"),
]
# For each page with Rust code, the file that compiles the code and runs most of it. This script checks that the file names the
# page.
COMPILED = {
    "docs/adding-a-backend.md": "dev/testkit/src/lib.rs",
    "docs/adding-a-kernel.md": "tools/guides/check.py",
    "docs/adding-a-mode.md": "tools/guides/check.py",
    "docs/library.md": "lab/backends/src/lib.rs",
    "docs/rustls.md": "lab/backends/src/lib.rs",
}
# The languages of blocks that are not code.
NO_CODE = ("", "text", "json", "mermaid")


def pages():
    patterns = ("README.md", "CONTRIBUTING.md", "docs/*.md", "docs/papers/*.md")
    return [name for pattern in patterns for name in sorted(glob.glob(pattern, root_dir=ROOT))]


class Folder:
    """A clean folder with the files that examples use, and the environment variables that a reader has."""

    def __init__(self, path, command, built):
        self.path, self.home, self.prefix = f"{path}/work", f"{path}/home", f"{built}/usr/local"
        programs = f"{path}/bin"
        for folder in (self.path, programs, f"{self.home}/.ssh", f"{self.path}/photos/2026"):
            os.makedirs(folder)
        for name in ("lockstep", "lockstep-lab"):
            os.symlink(os.path.join(os.path.dirname(os.path.abspath(command)), name), f"{programs}/{name}")
        with open(f"{programs}/make", "w", encoding="utf-8") as make:
            make.write(f'#!/bin/sh\nexec {shutil.which("make")} -n -C "{ROOT}" "$@" >/dev/null\n')
        os.chmod(f"{programs}/make", 0o755)
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", f"{self.home}/.ssh/id_ed25519"], check=True)
        files = {"report.pdf": 50_000, "notes.txt": 100, "photos/2026/1.jpg": 70_000, "photos/2026/2.jpg": 10, "data": 4096, "f": 1, "photos.tar": 300_000}
        for name, size in files.items():
            with open(f"{self.path}/{name}", "wb") as file:
                file.write(os.urandom(size))
        for name in ("penguin.png", "photo.png"):
            shutil.copy(f"{ROOT}/docs/modes/penguin.png", f"{self.path}/{name}")
        shutil.copy(f"{ROOT}/interfaces/capi/examples/c/encrypt_file.c", self.path)
        for kernel in glob.glob(f"{ROOT}/lab/papers/examples/qpu/*.qpu"):
            shutil.copy(kernel, self.path)
        os.mkdir(f"{self.path}/target")
        os.symlink(f"{built}/c", f"{self.path}/target/c")
        self.environment = {name: os.environ[name] for name in ("LANG", "LC_ALL", "TMPDIR") if name in os.environ}
        python = os.path.dirname(sys.executable)
        self.environment |= {"HOME": self.home, "PATH": f"{programs}:{python}:{os.environ['PATH']}", "PYTHONPATH": f"{built}/package", "TERM": "dumb"}

    def code(self, block):
        """The text of a block. Paths below /usr/local are replaced by paths in a folder."""
        return block.text.replace("/usr/local/", f"{self.prefix}/")


class Page:
    """The blocks of a page, and the functions that run them."""

    def __init__(self, name, folder):
        self.name, self.folder = name, folder
        self.python, self.printed = None, None
        self.counts = {"run": 0, "compiled": 0, "compiled elsewhere": 0, "left out": 0}
        self.ways = {
            "sh": ("run", self.shell),
            "python": ("run", self.statements),
            "c": ("compiled", lambda block: self.compile(block, "cc", "c")),
            "cpp": ("compiled", lambda block: self.compile(block, "c++", "c++")),
        }

    def run(self, text):
        """Runs all blocks. Returns the failures."""
        failures, in_cluster = [f"{self.name}: {found} is to be replaced" for found in re.findall(r"@@\w+@@", text)], False
        for block in blocks.of(text):
            in_cluster |= self.name == CLUSTER[0] and CLUSTER[1] in block.text
            if block.is_output:
                why = blocks.difference(block.text, self.printed)
            elif block.language in NO_CODE:
                continue
            elif in_cluster or any(page == self.name and part in block.text for page, part, _ in LEFT_OUT):
                self.counts["left out"] += 1
                self.printed = None
                continue
            else:
                what, run = self.ways.get(block.language, ("compiled elsewhere", self.compiled_elsewhere))
                self.counts[what] += 1
                why = run(block)
            if why:
                failures.append(f"{self.name}:{block.line}: {why}")
        if self.python:
            self.python.close()
        return failures

    def shell(self, block):
        """Runs a block of sh at a terminal, where it may ask for a passphrase."""
        status, self.printed = terminal.run(self.folder.code(block), self.folder.path, self.folder.environment)
        return f"exit status {status}\n{blocks.end_of(self.printed)}" if status else None

    def statements(self, block):
        """Runs a block of Python after the blocks before it."""
        if not self.python:
            self.python = terminal.Python(self.folder.path, self.folder.environment)
        succeeded, self.printed = self.python.run(self.folder.code(block))
        if not succeeded:
            return blocks.end_of(self.printed)
        return blocks.difference_of_comments(block.text, self.printed)

    def compile(self, block, compiler, language):
        command = [compiler, "-x", language, "-Wall", "-Wextra", "-Werror", "-fsyntax-only", "-I", "target/c/include", "-"]
        done = subprocess.run(
            command, input=block.text, cwd=self.folder.path, capture_output=True, text=True, timeout=terminal.LIMIT
        )
        return done.stderr if done.returncode else None

    def compiled_elsewhere(self, block):
        where = COMPILED.get(self.name)
        if not where:
            return f"nothing compiles this block of {block.language}"
        with open(os.path.join(ROOT, where), encoding="utf-8") as file:
            if not re.search(re.escape(os.path.basename(self.name)) + r"|adding-a-\{guide\}\.md", file.read()):
                return f"{where} does not name the page"
        return None


def build(folder, extension, module, library):
    """Builds the files that examples need: the files of `make install`, the Python package, and the C library."""
    prefix = f"{folder}/usr/local"
    os.makedirs(f"{prefix}/lib/ossl-modules")
    os.makedirs(f"{prefix}/share/lockstep")
    shutil.copy(module, f"{prefix}/lib/ossl-modules/lockstep.so")
    with open(os.path.join(ROOT, "interfaces/provider/lockstep.cnf"), encoding="utf-8") as file:
        text = re.sub(r"^# module = .*", f"module = {prefix}/lib/ossl-modules/lockstep.so", file.read(), flags=re.MULTILINE)
    with open(f"{prefix}/share/lockstep/lockstep.cnf", "w", encoding="utf-8") as file:
        file.write(text)
    subprocess.run([os.path.join(ROOT, "tools/python_package.sh"), extension, f"{folder}/package"], check=True)
    subprocess.run([os.path.join(ROOT, "tools/c_library.sh"), library, f"{folder}/c", f"{folder}/c"], check=True)


def main():
    if sys.argv[1:] == ["--self-test"]:
        sys.exit(subprocess.run([sys.executable, "-m", "unittest", "discover", "-q", os.path.join(ROOT, "tools/pages/tests")]).returncode)
    if len(sys.argv) < 5 or sys.argv[1].startswith("-"):
        sys.exit(__doc__)
    try:
        python_venv.use()
    except SystemExit as why:
        print(f"{why}\nNOT TESTED: the examples of the pages", file=sys.stderr)
        sys.exit(1 if os.environ.get("CI") else 0)
    command, extension, module, library, *names = sys.argv[1:]
    totals, failures = {}, []
    for page, _, _ in LEFT_OUT:
        assert page in pages(), f"LEFT_OUT: no page {page}"
    with tempfile.TemporaryDirectory(prefix="pages-") as folder:
        built = f"{folder}/built"
        build(built, extension, module, library)
        for name in names or pages():
            with open(os.path.join(ROOT, name), encoding="utf-8") as file:
                text = file.read()
            page = Page(name, Folder(f"{folder}/{name.replace('/', '-')}", command, built))
            failures += page.run(text)
            totals = {what: totals.get(what, 0) + count for what, count in page.counts.items()}
    print("\n\n".join(failures))
    print("code blocks of the pages: " + ", ".join(f"{count} {what}" for what, count in totals.items()))
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
