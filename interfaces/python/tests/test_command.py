"""Tests that `python -m lockstep` behaves like the command `lockstep`."""

import json
import signal
import subprocess
import sys

import pytest
from conftest import started

import lockstep


def run(*arguments, data=b""):
    command = [sys.executable, "-m", "lockstep", *map(str, arguments)]
    return subprocess.run(command, input=data, capture_output=True, timeout=60)


def test_it_encrypts_and_decrypts(tmp_path):
    key, file = tmp_path / "key", tmp_path / "file"
    assert run("keygen", "-o", key).returncode == 0
    done = run("encrypt", "-k", key, "-o", file, data=b"data")
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    with lockstep.open(file, key=key) as encrypted:
        assert encrypted.read() == b"data"
    done = run("decrypt", "-k", key, file)
    assert (done.returncode, done.stdout) == (0, b"data")
    file.write_bytes(bytes(100))
    done = run("decrypt", "-k", key, file)
    assert done.returncode == 1 and done.stdout == b"" and b"wrong key" in done.stderr


def test_help_version_and_mistakes():
    done = run("--help")
    assert done.returncode == 0 and b"Usage: lockstep" in done.stdout
    done = run("--version", "--json")
    assert json.loads(done.stdout)["name"] == "lockstep"
    done = run("encrypt", "--nonsense")
    assert done.returncode == 2 and b"--nonsense" in done.stderr
    assert run().returncode == 2


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_command(tmp_path, number):
    """The exit code is that of the command, and no file remains. This shows that the command's signal handler runs, and not Python's."""
    key, file = tmp_path / "key", tmp_path / "file"
    assert run("keygen", "-o", key).returncode == 0
    command = [sys.executable, "-m", "lockstep", "encrypt", "-k", str(key), "-o", str(file)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    # If a shell starts the tests in the background, they ignore SIGINT, and the command would ignore it too. The default action is
    # therefore set for the command.
    with started(command, preexec_fn=lambda: signal.signal(number, signal.SIG_DFL), **pipes) as process:
        # These bytes do not fit into the pipe. When `write` returns, the command has therefore begun to read, and has installed its
        # signal handlers before that.
        process.stdin.write(bytes(1 << 20))
        process.stdin.flush()
        process.send_signal(number)
        assert process.wait(timeout=30) == 128 + number
        assert process.stdout.read() == b"" and b"Traceback" not in process.stderr.read()
    assert [path.name for path in tmp_path.iterdir()] == ["key"]
