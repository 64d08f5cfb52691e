"""Tests of files that are encrypted to recipients or with a passphrase. The command reads and writes the same files."""

import gzip
import io
import subprocess
import sys
import tarfile

import pytest
from conftest import data, run_python

import lockstep

# A key pair that was made for this test and is used nowhere else.
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
    # The passphrase has a byte order mark and a decomposed character.
    marked = "\ufeffcafe\u0301"
    with pytest.warns(UserWarning, match="byte order mark"), lockstep.open(file, "wb", passphrase=marked) as output:
        output.write(b"data")
    with lockstep.open(file, passphrase="caf\u00e9") as source:
        assert source.read() == b"data"
    (tmp_path / "passphrase").write_text("cafe\u0301\n", encoding="utf-8")
    done = command("decrypt", "--passphrase-file", tmp_path / "passphrase", file)
    assert (done.returncode, done.stdout) == (0, b"data")
    # The signal arrives while a key is derived from a wrong passphrase, because the derivation takes longer than the time until
    # the signal.
    code = """
import signal, sys, threading, time, lockstep
def handler(*_):
    raise KeyboardInterrupt
def kill(thread=threading.get_ident()):
    time.sleep(0.1)
    signal.pthread_kill(thread, signal.SIGUSR1)
signal.signal(signal.SIGUSR1, handler)
try:
    threading.Thread(target=kill).start()
    lockstep.open(sys.argv[1], passphrase="battery staple")
except KeyboardInterrupt:
    print("stopped")
"""
    done = run_python(code, str(file))
    assert done.stdout == "stopped\n", done.stderr


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
        (ValueError, lambda: lockstep.open(tmp_path / "new", "wb", passphrase="\ufeff")),
        (TypeError, lambda: lockstep.encrypt_file(file, tmp_path / "new")),
        (TypeError, lambda: lockstep.decrypt_file(file, tmp_path / "new", recipients=[RECIPIENT])),
    ]:
        with pytest.raises(error) as caught:
            call()
        assert IDENTITY not in str(caught.value)
    assert not (tmp_path / "new").exists()


def test_arguments_are_checked_before_files(tmp_path):
    none, source = tmp_path / "none", io.BytesIO(bytes(1000))
    source.seek(7)
    for text, call in [
        ("recipients are for writing", lambda: lockstep.open(none, recipients=[RECIPIENT])),
        ("recipients are for writing", lambda: lockstep.open(source, recipients=[RECIPIENT])),
        ("recipients are for writing", lambda: lockstep.open(source, recipients=[RECIPIENT], identities=[])),
        ("identities are for reading", lambda: lockstep.open(none, "wb", recipients=[RECIPIENT], identities=[none])),
        ("recipients, or a passphrase", lambda: lockstep.open(none, "wb", recipients=[RECIPIENT], passphrase="x")),
        ("identities are for reading", lambda: lockstep.open(none, "wb", identities=[none])),
        ("identities are for reading", lambda: lockstep.open(none, "wb", identities=[], passphrase="x")),
        ("identities are for reading", lambda: lockstep.open(source, "wb", identities=[none], passphrase="x")),
    ]:
        with pytest.raises(TypeError, match=text):
            call()
    assert source.tell() == 7 and not none.exists()


def test_text_files_of_other_systems(tmp_path, identity, key):
    with lockstep.open(tmp_path / "file", "wb", recipients=[RECIPIENT]) as output:
        output.write(b"data")
    with lockstep.open(tmp_path / "bare", "wb", key=key) as output:
        output.write(b"data")
    # The codec utf-16 writes a byte order mark.
    for encoding in ["utf-8-sig", "utf-16"]:
        identity.write_text(f"# mine\r\n{IDENTITY}\r\n", encoding=encoding)
        with lockstep.open(tmp_path / "file", identities=[identity]) as source:
            assert source.read() == b"data"
        (tmp_path / "key").write_text(f"lockstep-key-256 {key.hex()}\r\n", encoding=encoding)
        with lockstep.open(tmp_path / "bare", key=tmp_path / "key") as source:
            assert source.read() == b"data"


def test_headers_of_too_many_recipients(tmp_path, identity):
    age = b"age-encryption.org/v1\n" + b"-> a\n\n" * 8000 + b"--- " + b"A" * 43 + b"\n" + bytes(100)
    (tmp_path / "file").write_bytes(b"lockstep.file/v1\n" + len(age).to_bytes(4, "little") + age)
    for call in [
        lambda: lockstep.open(tmp_path / "file", identities=[identity]),
        lambda: lockstep.decrypt_file(tmp_path / "file", tmp_path / "new", passphrase="x"),
    ]:
        with pytest.raises(ValueError, match="more than 3000 recipients"):
            call()


def test_files_of_other_programs_are_named(tmp_path, identity, key):
    with gzip.open(tmp_path / "gzip", "wb") as output:
        output.write(data(1000))
    with tarfile.open(tmp_path / "tar", "w") as archive:
        archive.add(tmp_path / "gzip", arcname="notes")
    for name in ["gzip", "tar"]:
        with pytest.raises(lockstep.InvalidTag, match=f"begins like a {name}"):
            lockstep.open(tmp_path / name, key=key)
        with pytest.raises(lockstep.InvalidTag, match=f"begins like a {name}"), open(tmp_path / name, "rb") as source:
            lockstep.open(source, key=key)
        with pytest.raises(lockstep.InvalidTag, match=f"begins like a {name}"):
            lockstep.decrypt_file(tmp_path / name, tmp_path / "new", key)
        with pytest.raises(ValueError, match=f"begins like a {name}"):
            lockstep.open(tmp_path / name, identities=[identity])
        with pytest.raises(ValueError, match=f"begins like a {name}"):
            lockstep.decrypt_file(tmp_path / name, tmp_path / "new", passphrase="x")
    assert not (tmp_path / "new").exists()
