"""Runs the tests that zarr publishes for stores. The store is on the file system `lockstep`, which encrypts the files."""

from typing import Any

import pytest
from zarr.core.buffer import Buffer, cpu
from zarr.storage import FsspecStore
from zarr.testing.store import StoreTests

import lockstep
import lockstep.fsspec

KEY = bytes(range(32))


class TestStore(StoreTests[FsspecStore, cpu.Buffer]):
    store_cls = FsspecStore
    buffer_cls = cpu.Buffer

    @pytest.fixture
    def store_kwargs(self, tmp_path) -> dict[str, Any]:
        from fsspec.implementations.asyn_wrapper import AsyncFileSystemWrapper

        (tmp_path / "store").mkdir()
        files = lockstep.fsspec.LockstepFileSystem(key=KEY, target_protocol="file", target_options={"auto_mkdir": True})
        return {"fs": AsyncFileSystemWrapper(files, asynchronous=True), "path": str(tmp_path / "store")}

    async def get(self, store, key: str) -> Buffer:
        with lockstep.open(f"{store.path}/{key}", key=KEY) as file:
            return self.buffer_cls.from_bytes(file.read())

    async def set(self, store, key: str, value: Buffer) -> None:
        store.fs.sync_fs.pipe_file(f"{store.path}/{key}", value.to_bytes())

    def test_store_repr(self, store) -> None:
        assert str(store).startswith("<FsspecStore(") and KEY.hex() not in repr(store)

    def test_store_supports_writes(self, store) -> None:
        assert store.supports_writes

    def test_store_supports_listing(self, store) -> None:
        assert store.supports_listing
