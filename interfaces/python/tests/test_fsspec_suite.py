"""Runs the tests that fsspec publishes for file systems, with paths of the underlying file system. suites/test_fsspec_below.py runs them
with paths that are relative to a folder."""

import fsspec
import pytest
from fsspec.tests import abstract

import lockstep.fsspec

KEY = bytes(range(32))


class Full(abstract.AbstractFixtures):
    """Sets up a file system that has the paths of the underlying file system."""

    @pytest.fixture
    def fs(self, tmp_path):
        files, _ = fsspec.url_to_fs(f"lockstep::file://{tmp_path}", lockstep={"key": KEY}, file={"auto_mkdir": True})
        return files

    @pytest.fixture
    def fs_path(self, tmp_path):
        return str(tmp_path / "encrypted")


class TestCopyFull(abstract.AbstractCopyTests, Full):
    pass


class TestGetFull(abstract.AbstractGetTests, Full):
    pass


class TestPutFull(abstract.AbstractPutTests, Full):
    pass


class TestOpenFull(abstract.AbstractOpenTests, Full):
    pass


class TestPipeFull(abstract.AbstractPipeTests, Full):
    pass
