"""Tests the text and the equality of the package's objects, and the content of its exceptions for errors of the operating system."""

import errno
import os

import fsspec
import pytest

import lockstep
from lockstep import _manifest, aead


def test_devices_are_values():
    first, second = lockstep.devices(), lockstep.devices()
    assert first == second and [hash(device) for device in first] == [hash(device) for device in second]
    assert len({device.name for device in first}) == len(set(first + second))
    assert first[0] != first[0].name
    assert repr(first[0]) == f"<lockstep.Device {first[0].name}: {first[0].description}>"


def test_a_selection_shows_its_arguments():
    with lockstep.use("cpu", threads=2) as selection:
        assert repr(selection) == "<lockstep.Selection(device='cpu', threads=2)>"
        # The two selections have equal arguments, but are not equal, because each restores a different
        # earlier selection.
        with lockstep.use("cpu", threads=2) as other:
            assert other != selection
    with lockstep.use(verify="off") as selection:
        assert repr(selection) == "<lockstep.Selection(verify='off')>"


@pytest.mark.parametrize("mode", [aead.AESGCM, aead.AESGCMSIV, aead.AESOCB3, aead.AESSIV, aead.AESCCM, aead.XAES256GCM, aead.AESEAX])
def test_a_cipher_shows_lengths_and_no_key(mode):
    bits = 512 if mode is aead.AESSIV else 256
    key = mode.generate_key(bits)
    assert repr(mode(key)) == f"<lockstep.aead.{mode.__name__}: key of {bits} bits, tags of 128 bits>"
    assert mode(key) != mode(key), "keys are not compared"


def test_a_cipher_with_short_tags_shows_their_length():
    assert repr(aead.AESCCM(bytes(16), 8)) == "<lockstep.aead.AESCCM: key of 128 bits, tags of 64 bits>"


def test_exceptions_of_the_system_name_error_and_file(tmp_path):
    key, missing, source, existing = bytes(32), tmp_path / "none", tmp_path / "source", tmp_path / "existing"
    source.write_bytes(b"data")
    existing.write_bytes(b"other data")
    files = fsspec.filesystem("lockstep", target_protocol="file", key=key, full_paths=True)
    cases = [
        (FileNotFoundError, errno.ENOENT, missing, lambda: lockstep.encrypt_file(missing, tmp_path / "out", key)),
        (FileNotFoundError, errno.ENOENT, missing, lambda: lockstep.open(missing, "rb", key=key)),
        (FileNotFoundError, errno.ENOENT, missing, lambda: lockstep.encrypt_file(source, tmp_path / "out", missing)),
        (FileNotFoundError, errno.ENOENT, missing / "out", lambda: lockstep.encrypt_file(source, missing / "out", key)),
        (IsADirectoryError, errno.EISDIR, tmp_path, lambda: lockstep.encrypt_file(tmp_path, tmp_path / "out", key)),
        (FileExistsError, errno.EEXIST, existing, lambda: lockstep.encrypt_file(source, existing, key)),
        (FileExistsError, errno.EEXIST, existing, lambda: lockstep.open(existing, "xb", key=key)),
        (FileExistsError, errno.EEXIST, existing, lambda: files.open(existing, "xb")),
        (FileNotFoundError, errno.ENOENT, missing, lambda: _manifest.read(missing)),
        (FileExistsError, errno.EEXIST, existing, lambda: _manifest.Journal(str(existing), "encrypt", False)),
    ]
    for kind, number, path, call in cases:
        with pytest.raises(kind) as caught:
            call()
        assert (caught.value.errno, caught.value.filename) == (number, os.fspath(path)), caught.value
        assert str(caught.value).count(os.fspath(path)) == 1 and "os error" not in str(caught.value)
    assert sorted(os.listdir(tmp_path)) == ["existing", "source"]


def test_a_key_in_place_of_a_path_is_not_in_the_exception(tmp_path):
    key_text = "lockstep-key-256 " + "5a" * 32
    with pytest.raises(OSError) as caught:
        lockstep.encrypt_file(key_text, tmp_path / "out", bytes(32))
    assert "5a5a" not in f"{caught.value} {caught.value!r} {caught.value.filename}"
