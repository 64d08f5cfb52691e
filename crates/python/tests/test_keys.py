"""Files for recipients and with passphrases, against the command."""

import subprocess
import sys

import pytest
from conftest import data

import lockstep

# Made for this test.
RECIPIENT = "age15kepa5g8tfkrt46d98xketn2dkls5qvqukcd34888la3rj6zz3kq8hgjdw"
IDENTITY = "AGE-SECRET-KEY-1M8E84DWESY8CPYRMC00XWF4XGLEJZP0ZJMH8UHPKNVZCZG2QNMQS8GGHVE"


@pytest.fixture
def identity(tmp_path):
    file = tmp_path / "identity"
    file.write_text(f"{IDENTITY}\n", encoding="ascii")
    return file


def command(*arguments):
    return subprocess.run([sys.executable, "-m", "lockstep", *map(str, arguments)], capture_output=True, timeout=60)


def test_recipients(tmp_path, identity):
    plain, file, back = data(100_000), tmp_path / "file", tmp_path / "back"
    with lockstep.open(file, "wb", recipients=[RECIPIENT]) as output:
        output.write(plain)
    done = command("decrypt", "-i", identity, file)
    assert (done.returncode, done.stdout) == (0, plain)
    (tmp_path / "plain").write_bytes(plain)
    assert command("encrypt", "-r", RECIPIENT, tmp_path / "plain", "-o", tmp_path / "theirs").returncode == 0
    with lockstep.open(tmp_path / "theirs", identities=[identity]) as source:
        source.seek(70_000)
        assert source.read() == plain[70_000:]
    assert lockstep.encrypt_file(tmp_path / "plain", file, recipients=[RECIPIENT], overwrite=True) == len(plain)
    assert lockstep.decrypt_file(file, back, identities=[str(identity)]) == len(plain)
    assert back.read_bytes() == plain


def test_passphrases(tmp_path):
    file = tmp_path / "file"
    with lockstep.open(file, "wb", passphrase="correct horse") as output:
        output.write(b"data")
    (tmp_path / "passphrase").write_text("correct horse\n", encoding="utf-8")
    done = command("decrypt", "--passphrase-file", tmp_path / "passphrase", file)
    assert (done.returncode, done.stdout) == (0, b"data")


def test_mistakes(tmp_path, identity, key):
    file, other = tmp_path / "file", tmp_path / "other"
    with lockstep.open(file, "wb", recipients=[RECIPIENT]) as output:
        output.write(b"data")
    with lockstep.open(other, "wb", key=key) as output:
        output.write(b"data")
    foreign = tmp_path / "foreign"
    foreign.write_text("AGE-SECRET-KEY-1QQQQ\n", encoding="ascii")
    changed = bytearray(file.read_bytes())
    changed[60] ^= 1
    (tmp_path / "changed").write_bytes(changed)
    for error, call in [
        (TypeError, lambda: lockstep.open(file)),
        (TypeError, lambda: lockstep.open(file, key=key, identities=[identity])),
        (TypeError, lambda: lockstep.open(file, recipients=[RECIPIENT])),
        (TypeError, lambda: lockstep.open(file, context=b"context", identities=[identity])),
        (ValueError, lambda: lockstep.open(file, key=key)),
        (ValueError, lambda: lockstep.open(other, identities=[identity])),
        (ValueError, lambda: lockstep.open(file, identities=[foreign])),
        (FileNotFoundError, lambda: lockstep.open(tmp_path / "none", identities=[identity])),
        (lockstep.InvalidTag, lambda: lockstep.open(tmp_path / "changed", identities=[identity])),
        (TypeError, lambda: lockstep.open(tmp_path / "new", "wb", identities=[identity])),
        (TypeError, lambda: lockstep.open(tmp_path / "new", "wb", recipients=[RECIPIENT], passphrase="x")),
        (ValueError, lambda: lockstep.open(tmp_path / "new", "wb", recipients=["age1nonsense"])),
        (ValueError, lambda: lockstep.open(tmp_path / "new", "wb", recipients=[])),
        (ValueError, lambda: lockstep.open(tmp_path / "new", "wb", recipients=[IDENTITY])),
        (ValueError, lambda: lockstep.open(tmp_path / "new", "wb", passphrase="")),
        (TypeError, lambda: lockstep.encrypt_file(file, tmp_path / "new")),
        (TypeError, lambda: lockstep.decrypt_file(file, tmp_path / "new", recipients=[RECIPIENT])),
    ]:
        with pytest.raises(error) as caught:
            call()
        assert IDENTITY not in str(caught.value)
    assert not (tmp_path / "new").exists()
