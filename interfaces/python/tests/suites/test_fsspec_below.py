"""Runs the tests that fsspec publishes for file systems, with paths that are relative to a folder."""

import pytest
from fsspec.tests import abstract

import lockstep.fsspec

KEY = bytes(range(32))


class Below(abstract.AbstractFixtures):
    """Sets up a file system whose paths are relative to its root."""

    @pytest.fixture
    def fs(self, tmp_path):
        options = {"auto_mkdir": True}
        return lockstep.fsspec.LockstepFileSystem(str(tmp_path / "encrypted"), key=KEY, target_protocol="file", target_options=options)

    @pytest.fixture
    def fs_path(self):
        return ""


class TestCopyBelow(abstract.AbstractCopyTests, Below):
    pass


class TestGetBelow(abstract.AbstractGetTests, Below):
    pass


class TestPutBelow(abstract.AbstractPutTests, Below):
    pass


class TestOpenBelow(abstract.AbstractOpenTests, Below):
    pass


class TestPipeBelow(abstract.AbstractPipeTests, Below):
    pass
