"""Tests the names, messages, warnings and arguments of the package."""

import io
import logging
import os
import pathlib
import re
import subprocess
import sys
import tomllib

import pytest
from conftest import data, run_python

import lockstep

IDENTITY = "AGE-SECRET-KEY-1GFPYYSJZGFPYYSJZGFPYYSJZGFPYYSJZGFPYYSJZGFPYYSJZGFPQ4EGAEX"
RECIPIENT = "age1zvkyg2lqzraa2lnjvqej32nkuu0ues2s82hzrye869xeexvn73equnujwj"
MODULES = ["fsspec", "parquet", "random", "ray", "safetensors", "tensor", "torch"]


@pytest.fixture
def identity(tmp_path):
    path = tmp_path / "identity"
    path.write_text(IDENTITY + "\n")
    path.chmod(0o600)
    return path


def test_modules_are_imported_when_they_are_used():
    code = """
        import sys, lockstep
        heavy = {"fsspec", "numpy", "pandas", "ray", "torch", "lockstep.parquet", "lockstep.random", "lockstep.tensor"}
        assert not heavy & sys.modules.keys(), heavy & sys.modules.keys()
        assert lockstep.parquet.open and lockstep.tensor.seal and lockstep.random.Generator
        try:
            lockstep.nonsense
        except AttributeError as error:
            print(error)
    """
    done = run_python(code)
    assert (done.stdout, done.stderr) == ("module 'lockstep' has no attribute 'nonsense'\n", "")


def test_dir_is_complete():
    found = set(dir(lockstep))
    assert found >= {*lockstep.__all__, *MODULES}
    for name in found:
        # A module that cannot be imported must raise AttributeError and no other exception, because
        # `inspect.getmembers` and `help` handle only this one.
        try:
            getattr(lockstep, name)
        except AttributeError as error:
            assert name in ("ray", "torch") and "cannot be imported" in str(error)


def test_the_console_script(tmp_path):
    """The entry point of the wheel is the command."""
    project = tomllib.loads((pathlib.Path(__file__).parents[1] / "pyproject.toml").read_text(encoding="utf-8"))
    module, _, function = project["project"]["scripts"]["lockstep"].partition(":")
    code = f"import sys; from {module} import {function}; sys.argv[0] = 'lockstep'; sys.exit({function}())"
    done = subprocess.run([sys.executable, "-c", code, "decrypt", "missing"], capture_output=True, text=True, cwd=tmp_path, timeout=60)
    assert done.returncode == 2 and done.stderr.startswith("lockstep: ")
    done = subprocess.run([sys.executable, "-c", code, "--version"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and lockstep.__version__ in done.stdout


def test_names_and_modes_of_files(tmp_path):
    path, key = tmp_path / "file", data(32)
    with lockstep.open(path, "xb", key=key) as file:
        assert (file.name, file.mode, file.raw.mode) == (path, "xb", "xb")
    with lockstep.open(str(path), key=key) as file:
        assert (file.name, file.mode) == (str(path), "rb")
    with open(path, "rb") as inner, lockstep.open(inner, key=key) as file:
        assert file.name == inner.name
    # A file over a BytesIO has no name, as Python's BufferedReader over a BytesIO has none.
    with lockstep.open(io.BytesIO(path.read_bytes()), key=key) as file, pytest.raises(AttributeError):
        file.name  # noqa: B018


def test_one_recipient_and_one_identity(tmp_path, identity):
    plain, encrypted = tmp_path / "plain", tmp_path / "encrypted"
    plain.write_bytes(b"data")
    for recipients in (RECIPIENT, [RECIPIENT], (RECIPIENT,)):
        lockstep.encrypt_file(plain, encrypted, recipients=recipients, overwrite=True)
        for identities in (identity, str(identity), [identity], (str(identity),)):
            with lockstep.open(encrypted, identities=identities) as file:
                assert file.read() == b"data"
            assert lockstep.decrypt_file(encrypted, plain, identities=identities, overwrite=True) == 4
    with lockstep.open(encrypted, "wb", recipients=RECIPIENT) as file:
        file.write(b"more")


@pytest.mark.parametrize("wrong", [5, b"age1", [None], [b"age1"], {"a": 1}, [pathlib.Path("x")]])
def test_what_is_no_recipient(tmp_path, wrong):
    with pytest.raises(TypeError, match=r"^recipients must be a str such as 'age1\.\.\.' or a list of them, not [a-zA-Z]+$"):
        lockstep.open(tmp_path / "file", "wb", recipients=wrong)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("wrong", [5, b"path", [None], [b"path"], {"a": 1}])
def test_what_is_no_identity(tmp_path, wrong):
    with pytest.raises(TypeError, match="^identities must be the path of an identity file or a list of paths, not [a-zA-Z]+$"):
        lockstep.decrypt_file(tmp_path / "file", tmp_path / "out", identities=wrong)


def test_messages_have_no_words_of_the_command(tmp_path, identity):
    """No message names an option of the command, such as `-i` or `--force`."""
    key_file, plain, encrypted, secret = (tmp_path / name for name in ("key", "plain", "encrypted", "secret"))
    key_file.write_text("lockstep-key-256 " + data(32).hex() + "\n")
    key_file.chmod(0o600)
    plain.write_bytes(b"data")
    lockstep.encrypt_file(plain, encrypted, recipients=RECIPIENT)
    lockstep.encrypt_file(plain, secret, passphrase="secret")
    out = tmp_path / "out"
    calls = {
        "a recipient is cut off": lambda: lockstep.encrypt_file(plain, out, recipients=RECIPIENT[:-3]),
        "a recipient is text": lambda: lockstep.encrypt_file(plain, out, recipients="nonsense"),
        "a recipient is an identity": lambda: lockstep.encrypt_file(plain, out, recipients=IDENTITY),
        "there are no recipients": lambda: lockstep.encrypt_file(plain, out, recipients=[]),
        "an identity is a key file": lambda: lockstep.decrypt_file(encrypted, out, identities=key_file),
        "an identity is a plain file": lambda: lockstep.decrypt_file(encrypted, out, identities=plain),
        "a passphrase for recipients": lambda: lockstep.decrypt_file(encrypted, out, passphrase="secret"),
        "identities for a passphrase": lambda: lockstep.decrypt_file(secret, out, identities=identity),
        "a key for recipients": lambda: lockstep.decrypt_file(encrypted, out, data(32)),
        "a passphrase for a key": lambda: lockstep.decrypt_file(plain, out, passphrase="secret"),
        "a plain file as a key": lambda: lockstep.decrypt_file(encrypted, out, plain),
        "an identity as a key": lambda: lockstep.decrypt_file(encrypted, out, identity),
        "the output exists": lambda: lockstep.encrypt_file(plain, encrypted, data(32)),
        "the output exists for open": lambda: lockstep.open(plain, "xb", key=data(32)),
        "an empty passphrase": lambda: lockstep.encrypt_file(plain, out, passphrase=""),
        "nothing is given": lambda: lockstep.encrypt_file(plain, out),
    }
    for name, call in calls.items():
        with pytest.raises((ValueError, TypeError, OSError, lockstep.InvalidTag)) as caught:
            call()
        text = str(caught.value).replace(str(tmp_path), "")
        assert text and not re.search(r"(^|[ `(])--?[a-zA-Z]|\bforce\b|command line|standard input", text), (name, text)
    assert "give identities" in message(calls["a passphrase for recipients"])
    assert "passphrase" in message(calls["identities for a passphrase"])
    assert message(calls["a recipient is cut off"]).startswith("recipients: ")


def message(call):
    try:
        call()
    except Exception as error:
        return str(error)
    raise AssertionError


def test_the_total_in_progress_callbacks(tmp_path, identity):
    plain, encrypted, again = tmp_path / "plain", tmp_path / "encrypted", tmp_path / "again"
    plain.write_bytes(data(100_000))
    for encrypting, decrypting in (({"key": data(32)},) * 2, ({"recipients": RECIPIENT}, {"identities": identity})):
        calls = []
        options = {"progress": lambda *given: calls.append(given), "overwrite": True}
        lockstep.encrypt_file(plain, encrypted, **encrypting, **options)
        lockstep.decrypt_file(encrypted, again, **encrypting if "key" in encrypting else decrypting, **options)
        assert calls.count((100_000, 100_000)) >= 2 and {total for _, total in calls} == {100_000}
    # The length of the content of a pipe is unknown, so the total is None.
    os.mkfifo(tmp_path / "pipe")
    with subprocess.Popen(["cp", plain, tmp_path / "pipe"]):
        calls.clear()
        lockstep.encrypt_file(tmp_path / "pipe", encrypted, data(32), **options)
    assert calls[-1] == (100_000, None)


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o604, 0o620])
def test_a_warning_for_secrets_that_others_can_read(tmp_path, caplog, identity, mode):
    key_file, file = tmp_path / "key", tmp_path / "file"
    key_file.write_text("lockstep-key-256 " + data(32).hex() + "\n")
    key_file.chmod(mode)
    for _ in range(2):
        with lockstep.open(file, "wb", key=key_file):
            pass
        lockstep.decrypt_file(file, tmp_path / "out", str(key_file), overwrite=True)
    identity.chmod(mode)
    with lockstep.open(file, "wb", recipients=RECIPIENT):
        pass
    with lockstep.open(file, identities=identity):
        pass
    text = "other users can read or change the {} '{}': run `chmod 600` on it"
    expected = [text.format("key file", key_file), text.format("identity file", identity)]
    warnings = [record.message for record in caplog.records if record.levelno == logging.WARNING]
    assert warnings == (expected if mode != 0o600 else [])
    assert {record.name for record in caplog.records} <= {"lockstep"}


def test_a_warning_from_other_modules(tmp_path, caplog):
    key_file = tmp_path / "key"
    key_file.write_text("lockstep-key-256 " + data(32).hex() + "\n")
    uses = [
        lambda: lockstep.safetensors.save_file({}, tmp_path / "model", key=key_file),
        lambda: lockstep.safetensors.load_file(tmp_path / "model", "np", key=key_file),
        lambda: lockstep.fsspec.LockstepFileSystem(key=key_file, target_protocol="memory"),
    ]
    for mode, use in zip((0o640, 0o604, 0o644), uses, strict=True):
        key_file.chmod(mode)
        use()
        assert [record.levelname for record in caplog.records] == ["WARNING"]
        caplog.clear()


def test_no_warning_for_what_is_encrypted_or_no_file(tmp_path, caplog):
    path = tmp_path / "identity"
    path.write_bytes(b"age-encryption.org/v1\n-> scrypt\n")
    path.chmod(0o644)
    for identities in (path, tmp_path / "missing", tmp_path, "/dev/null"):
        with pytest.raises((ValueError, OSError)):
            lockstep.open(path, identities=identities)
    assert [record for record in caplog.records if record.levelno >= logging.WARNING] == []


def test_messages_by_logging(tmp_path, caplog):
    caplog.set_level(logging.DEBUG, "lockstep")
    plain, encrypted, key = tmp_path / "plain", tmp_path / "encrypted", data(32)
    plain.write_bytes(b"data")
    lockstep.encrypt_file(plain, encrypted, key)
    lockstep.decrypt_file(encrypted, tmp_path / "again", key)
    assert [record.message for record in caplog.records] == [
        f"encrypted '{plain}' to '{encrypted}': 4 bytes",
        f"decrypted '{encrypted}' to '{tmp_path / 'again'}': 4 bytes",
    ]
    assert key.hex() not in caplog.text
