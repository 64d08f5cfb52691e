"""`python -m lockstep` is the command."""

import json
import subprocess
import sys

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
