"""Tests that no message, representation or serialised form shows a key, even if a user gives the key in a wrong place."""

import base64
import contextlib
import copy
import hashlib
import inspect
import json
import logging
import os
import pickle
import traceback
import warnings

import fsspec
import numpy
import pyarrow
import pyarrow.parquet
import pytest

import lockstep
import lockstep._manifest
import lockstep.fsspec
import lockstep.parquet
import lockstep.random
import lockstep.safetensors
import lockstep.safetensors.numpy
import lockstep.tensor
from lockstep import aead, hazmat

# The key that no output may contain.
MARKED = hashlib.sha256(b"a marked key").digest()
OTHER = hashlib.sha256(b"another key").digest()
AGE = "AGE-SECRET-KEY-1" + base64.b32encode(MARKED).decode().rstrip("=")
BYTES = [MARKED, bytearray(MARKED), numpy.frombuffer(MARKED, numpy.uint8), [MARKED], {MARKED: MARKED}]
TEXTS = [
    MARKED.hex(),
    base64.b64encode(MARKED).decode(),
    f"lockstep-key-256 {MARKED.hex()}\n",
    AGE,
    os.fsdecode(MARKED),
    # No file can have this name, because it contains a zero byte.
    os.fsdecode(MARKED[:-1] + b"\0"),
    f"{AGE}\udc80",
]
MODULES = [lockstep, aead, hazmat, lockstep.tensor, lockstep.random, lockstep.parquet, lockstep.safetensors, lockstep.safetensors.numpy]
# These functions are slow and have no argument in whose place a key could be given.
SKIPPED = {"selftest", "devices", "missing_devices", "synchronize"}


def pieces(text):
    """All parts of 8 characters."""
    return {text[at : at + 8] for at in range(len(text) - 7)}


FORBIDDEN = {
    piece.lower()
    for text in (
        MARKED.hex(),
        base64.b64encode(MARKED).decode(),
        AGE.removeprefix("AGE-SECRET-KEY-1"),
        repr(MARKED)[2:-1],
        os.fsdecode(MARKED),
        str(int.from_bytes(MARKED)),
        # These texts are the bytes in decimal, as a list and as a numpy array show them.
        ", ".join(map(str, MARKED)),
        " ".join(f"{byte:3}" for byte in MARKED),
    )
    for piece in pieces(text)
}


def found_in(text):
    """The part of the key that a text contains, or None."""
    return next(iter(pieces(text.lower()) & FORBIDDEN), None)


def texts_of(error, with_traceback=True):
    """All texts that a program can print about an exception and about the exceptions that caused it."""
    seen, left = set(), [error]
    while left:
        one = left.pop()
        if one is None or id(one) in seen:
            continue
        seen.add(id(one))
        left += [one.__cause__, one.__context__]
        yield from (str(one), repr(one), repr(one.args), repr(getattr(one, "__notes__", "")))
        yield from (repr(getattr(one, name, "")) for name in ("filename", "filename2", "object", "doc", "key"))
    if with_traceback:
        yield "".join(traceback.format_exception(error))


def sample(name, folder):
    """A valid value for the parameter with this name, so that a call does not fail because of this parameter."""
    values = {
        "key": OTHER,
        "footer_key": OTHER,
        "keys": OTHER,
        "wrapping_key": OTHER,
        "key_to_wrap": OTHER,
        "nonce": bytes(12),
        "nonces": [bytes(12)],
        "iv": bytes(16),
        "tweak": bytes(16),
        "data": [b"message"] if folder.endswith("many") else b"a message of two blocks, 32 bytes",
        "mode": "CTR",
        "position": 0,
        "size": 16,
        "shape": (2,),
        "low": 0,
        "high": 9,
        "bit_length": 256,
        "tensors": {"a": numpy.zeros(3)},
        "aads": [b""],
        "pages": [bytes(64)],
        "module": "footer",
        "file_aad": b"",
        "buf": bytearray(64),
        "array": bytearray(64),
        "input": os.path.join(folder, "input"),
        "source": os.path.join(folder, "input"),
        "file": os.path.join(folder, "input"),
        "filename": os.path.join(folder, "input"),
        "output": os.path.join(folder, "output"),
        "destination": os.path.join(folder, "output"),
        "device": "cpu",
        "associated_data": b"",
        "state": {"generator": "lockstep.random.Generator", "version": 1, "position": 0},
    }
    return values.get(name)


def parameters(function):
    try:
        found = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return []
    variable = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return [one for one in found if one.name != "self" and one.kind not in variable]


def calls(function, folder, given):
    """The arguments of calls. In each call except the last one, one argument is the marked value and the others are valid. In
    the last call, all required positional arguments are the marked value."""
    found = parameters(function)
    for marked in found:
        positional, named = [], {}
        for one in found:
            is_required = one.default is inspect.Parameter.empty
            if one is not marked and not is_required and one.name != "key":
                continue
            value = given if one is marked else sample(one.name, folder)
            if one.kind is inspect.Parameter.POSITIONAL_ONLY:
                positional.append(value)
            else:
                named[one.name] = value
        yield positional, named
    required = [one for one in found if one.default is inspect.Parameter.empty and one.kind is not inspect.Parameter.KEYWORD_ONLY]
    yield [given] * len(required), {}


def public(module):
    """The functions and classes of a module, with their static methods."""
    names = getattr(module, "__all__", None) or [name for name in vars(module) if not name.startswith("_")]
    for name in names:
        one = getattr(module, name)
        if not callable(one) or name in SKIPPED:
            continue
        if inspect.isclass(one) and issubclass(one, BaseException):
            continue
        yield f"{module.__name__}.{name}", one
        for method in ("generate_key", "from_state"):
            if inspect.isclass(one) and hasattr(one, method):
                yield f"{module.__name__}.{name}.{method}", getattr(one, method)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "input").write_bytes(b"no encrypted file")
    return str(tmp_path)


def leaks(functions, folder, forms):
    """Calls functions with the marked key as each argument. Returns the leaks, and the number of calls that raised an exception."""
    found, raised = [], 0
    for name, function in functions:
        for given in forms:
            for positional, named in calls(function, folder, given):
                where = f"{name}({type(given).__name__} as {next((key for key, value in named.items() if value is given), 'all')})"
                try:
                    result = function(*positional, **named)
                except Exception as error:
                    raised += 1
                    # A traceback contains the same texts and, in addition, lines of source code. It is therefore enough to search it
                    # for one form of the key.
                    texts = texts_of(error, with_traceback=given is forms[0])
                    found += [f"{where}: {text[:300]}" for text in texts if found_in(text)]
                else:
                    del result
                if isinstance(given, str):
                    # A call may have written an output whose name is the key. It is removed, because error
                    # messages may show names of existing files.
                    with contextlib.suppress(OSError, ValueError):
                        os.remove(given)
    return found, raised


def checked_output(capfd, caplog):
    output = "".join(capfd.readouterr()) + caplog.text
    assert found_in(output) is None, output


def test_the_search_finds_keys():
    for text in (f"x {MARKED.hex().upper()}", repr(MARKED[3:9]), repr(list(MARKED)), AGE, repr(numpy.frombuffer(MARKED, numpy.uint8))):
        assert found_in(text), text
    assert found_in("the mode must be a class of lockstep.aead, such as AESGCM") is None

    def leak(key):
        try:
            {}[key]
        except (KeyError, TypeError):
            raise ValueError("a wrong key") from None

    found, raised = leaks([("leak", leak)], "", [MARKED.hex()])
    assert raised == 2 and found, "the control: the context of the exception has the key"


@pytest.mark.filterwarnings("ignore")
def test_a_key_in_a_wrong_place_is_not_shown(folder, capfd, caplog):
    caplog.set_level(logging.DEBUG)
    functions = [one for module in MODULES for one in public(module)]
    # The other functions of `lockstep.ray` cannot be tested here, because they need Ray.
    functions.append(("lockstep.ray.read_manifest", lockstep._manifest.read))
    assert len(functions) > 40
    found, raised = leaks(functions, folder, BYTES + TEXTS)
    assert not found, "\n".join(found)
    assert raised > 1000
    checked_output(capfd, caplog)


def objects(folder):
    """Objects that were made with the marked key, by name."""
    path = os.path.join(folder, "file")
    with lockstep.open(path, "wb", key=MARKED) as file:
        file.write(b"plaintext")
    for cipher in (aead.AESGCM, aead.AESGCMSIV, aead.AESOCB3, aead.AESSIV, aead.AESCCM, aead.XAES256GCM, aead.AESEAX):
        yield cipher.__name__, cipher(MARKED)
    yield "Generator", lockstep.random.Generator(MARKED)
    yield "BitGenerator", lockstep.random.BitGenerator(MARKED)
    yield "numpy.random.Generator", numpy.random.Generator(lockstep.random.BitGenerator(MARKED))
    yield "reader", lockstep.open(path, key=MARKED)
    yield "writer", lockstep.open(path + "2", "wb", key=MARKED)
    yield "Keys", lockstep._file_keys.Keys(key=MARKED, passphrase=MARKED.hex())
    local = fsspec.filesystem("file")
    yield "file system", lockstep.fsspec.LockstepFileSystem(folder, MARKED, fs=local)
    yield "file system with a passphrase", lockstep.fsspec.LockstepFileSystem(folder, passphrase=MARKED.hex(), fs=local)
    lockstep.safetensors.numpy.save_file({"a": numpy.zeros(3)}, path + ".st", key=MARKED)
    yield "TensorFile", lockstep.safetensors.safe_open(path + ".st", "np", key=MARKED)
    pyarrow.parquet.write_table(pyarrow.table({"a": [1, 2]}), path + ".parquet")
    lockstep.parquet.encrypt(path + ".parquet", path + ".pme", footer_key=MARKED)
    yield "PlainFile", lockstep.parquet.open(path + ".pme", {"footer": MARKED})


# These attributes contain the key on purpose: a pickled file system is sent to workers, which need the key
# (docs/python.md).
HAS_ITS_KEY = {"storage_options", "storage_args", "_for_reading", "_for_writing", "storage"}


def attributes(one):
    for name in dir(one) if not isinstance(one, lockstep._file_keys.Keys) else ():
        if name not in HAS_ITS_KEY and not (name.startswith("__") and name.endswith("__")):
            try:
                value = getattr(one, name)
            except Exception as error:
                value = list(texts_of(error))
            yield name, value


@pytest.mark.filterwarnings("ignore")
def test_objects_do_not_show_their_keys(folder, capfd, caplog):
    caplog.set_level(logging.DEBUG)
    for name, one in objects(folder):
        shown = {"repr": repr(one), "str": str(one), "format": f"{one}"}
        shown |= {attribute: repr(value) for attribute, value in attributes(one) if not callable(value)}
        for store in (pickle.dumps, copy.copy, copy.deepcopy):
            if "file system" in name or name == "Keys":
                continue
            try:
                shown[store.__name__] = repr(store(one))
            except (TypeError, NotImplementedError) as refused:
                shown[store.__name__] = "\n".join(texts_of(refused))
        if "file system" in name:
            shown["to_json"], shown["to_dict"] = one.to_json(), repr(one.to_dict())
            shown["to_json without password"] = one.to_json(include_password=False)
            assert json.loads(shown["to_json"])["fo"] == folder
            shown["token"] = one._fs_token
        for what, text in shown.items():
            assert found_in(text) is None, f"{name}, {what}: {text[:300]}"
    checked_output(capfd, caplog)


@pytest.mark.filterwarnings("ignore")
def test_methods_do_not_show_a_key_in_a_wrong_place(folder, capfd, caplog):
    caplog.set_level(logging.DEBUG)
    functions = []
    for name, one in objects(folder):
        # These objects have methods of fsspec and numpy, which regard a text as a path or a name. Their messages may show
        # it.
        is_foreign = "file system" in name or name == "numpy.random.Generator"
        if name == "file system with a passphrase" or is_foreign:
            continue
        methods = [(f"{name}.{method}", value) for method, value in attributes(one) if callable(value) and not method.startswith("_")]
        # The method `random_raw` is left out, because numpy's error message shows its argument.
        methods = [one for one in methods if one[0] != "BitGenerator.random_raw"]
        functions += methods
    found, raised = leaks(functions, folder, BYTES + TEXTS)
    assert not found, "\n".join(found)
    assert raised > 500
    checked_output(capfd, caplog)


def test_a_key_as_a_path_of_a_file_system_is_not_shown(folder):
    files = lockstep.fsspec.LockstepFileSystem(folder, OTHER, fs=fsspec.filesystem("file"))
    methods = ["open", "info", "ls", "exists", "cat_file", "rm_file", "mkdir", "created", "modified", "find", "walk", "glob", "pipe_file"]
    found, raised = leaks([(name, getattr(files, name)) for name in methods], folder, [MARKED, bytearray(MARKED)])
    assert not found, "\n".join(found)
    assert raised


def test_tokens_of_file_systems_distinguish_keys(folder):
    local = fsspec.filesystem("file")
    make = lambda **options: lockstep.fsspec.LockstepFileSystem(folder, fs=local, **options)
    assert make(passphrase="a") == make(passphrase="a")
    assert make(passphrase="a") != make(passphrase="b") and make(key=MARKED) != make(key=OTHER)


def test_names_that_are_no_keys_are_shown(folder):
    with pytest.raises(FileNotFoundError, match="a-file-that-does-not-exist"):
        lockstep.open(os.path.join(folder, "a-file-that-does-not-exist.enc"), key=OTHER)
    with pytest.raises(FileNotFoundError, match="my-key-file"):
        lockstep.open("input", key="my-key-file")
    with pytest.raises(ValueError, match="no device `cuda:99`"):
        lockstep.use("cuda:99")
    with pytest.raises(FileNotFoundError, match="a key in place of a path"):
        lockstep.open("input", key=MARKED.hex())
