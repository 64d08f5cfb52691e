"""What several tests use."""

import os
import random
import subprocess
import sys
import textwrap

import pytest

# The same data in each run; they are not secret.
RANDOM = random.Random(0x10C57E9)


def data(size):
    """Data of a size in bytes."""
    return RANDOM.randbytes(size)


def run_python(code, *arguments, timeout=60, environment=None):
    """Runs code in a Python of its own; returns the finished process, whose output is text."""
    command = [sys.executable, "-X", "faulthandler", "-c", textwrap.dedent(code), *map(str, arguments)]
    return subprocess.run(
        command, capture_output=True, text=True, timeout=timeout, env={**os.environ, **(environment or {})}
    )


@pytest.fixture
def key():
    return data(32)
