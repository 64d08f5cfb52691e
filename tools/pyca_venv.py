"""Provides Python's package `cryptography` for the other scripts, in a virtual environment under the build folder.

Imported by interop/pyca.py and bench/pyca.py; not run directly.
"""

import os
import shutil
import subprocess
import sys

WANTED = "cryptography>=50"
ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
TARGET = os.environ.get("CARGO_TARGET_DIR") or os.path.join(ROOT, "target")
FOLDER = os.path.abspath(os.path.join(TARGET, "pyca-venv"))
PYTHON = os.path.join(FOLDER, "bin", "python")


def has_cryptography():
    """True if this interpreter has a version of the package that reads Cobblestone."""
    try:
        import cryptography.cobblestone  # noqa: F401
    except ImportError:
        return False
    return True


def ensure(what):
    """Returns if this interpreter has the package. Otherwise starts the script again with an interpreter that has the package, and
    installs the package if necessary. If this is not possible, prints a message and ends. The script then fails if `CI` is set, and
    succeeds otherwise."""
    if has_cryptography():
        return
    if os.path.realpath(sys.prefix) == os.path.realpath(FOLDER):
        give_up(what, f"{FOLDER} has no {WANTED} although it was installed there: delete it and try again")
    if not works(PYTHON):
        install(what)
    os.execv(PYTHON, [PYTHON, "-B", *sys.argv])


def works(python):
    """True if the interpreter of the virtual environment exists and has the package."""
    command = [python, "-c", "import cryptography.cobblestone"]
    try:
        return subprocess.run(command, stderr=subprocess.DEVNULL, timeout=60).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False


def install(what):
    """Creates the virtual environment again."""
    print(f"installing {WANTED} in {FOLDER}", file=sys.stderr)
    shutil.rmtree(FOLDER, ignore_errors=True)
    # Only binary packages are installed, because a build takes minutes and requires libraries that are rarely installed.
    pip = [PYTHON, "-m", "pip", "--disable-pip-version-check", "--quiet", "--timeout", "30", "--retries", "2"]
    steps = [
        ([sys.executable, "-m", "venv", FOLDER], "no virtual environment: apt-get install python3-venv"),
        ([*pip, "install", "--only-binary", ":all:", WANTED], f"pip cannot install {WANTED}: is there a network?"),
    ]
    for command, problem in steps:
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=600)
            output, good = done.stdout + done.stderr, done.returncode == 0
        except (OSError, subprocess.TimeoutExpired) as error:
            output, good = str(error), False
        if not good:
            shutil.rmtree(FOLDER, ignore_errors=True)
            print(output.rstrip(), file=sys.stderr)
            give_up(what, problem)


def give_up(what, why):
    """Prints a message and ends the script."""
    print(f"NOT TESTED: {what}: {why}", file=sys.stderr)
    sys.exit(1 if os.environ.get("CI") else 0)
