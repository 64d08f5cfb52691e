"""Tests of lockstep.parquet.decrypt_modules and module_aad, with modules in the memory of the host and of a device."""

import io

import lockstep
import lockstep.parquet
import pytest
from conftest import data
from lockstep.aead import AESGCM

FOOTER = data(32)


def sealed_module(key, plain, aad):
    """A module that is encrypted with GCM, computed as the format defines it."""
    nonce = data(12)
    sealed = nonce + AESGCM(key).encrypt(nonce, plain, aad)
    return len(sealed).to_bytes(4, "little") + sealed


class Dlpack:
    """An array that has only the methods of DLPack, like a tensor of PyTorch."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **arguments):
        return self.array.__dlpack__(**arguments)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


class TestModules:
    KEYS = [data(32), data(16), data(24)]
    PLAIN = [data(5000), b"", data(17)]
    AADS = [lockstep.parquet.module_aad(b"the file", "data_page", 1, 2, i) for i in range(3)]

    def modules(self):
        return [sealed_module(*parts) for parts in zip(self.KEYS, self.PLAIN, self.AADS, strict=True)]

    def test_associated_data(self):
        aad = lockstep.parquet.module_aad
        assert aad(b"12345678", "footer") == b"12345678\0"
        assert aad(b"12345678", "offset_index", 0x102, 3, aad_prefix=b"p") == b"p12345678\x07\x02\x01\x03\0"
        assert aad(b"12345678", "data_page_header", 1, 2, 0x7FFF) == b"12345678\x04\x01\0\x02\0\xff\x7f"
        for length in (0, 7, 9, 16):
            with pytest.raises(ValueError, match=f"8 bytes, not {length}"):
                aad(bytes(length), "footer", aad_prefix=b"prefix")
        with pytest.raises(ValueError, match="'page'"):
            aad(b"12345678", "page")
        for ordinal in (-1, 1 << 15):
            with pytest.raises(ValueError, match="32767"):
                aad(b"12345678", "data_page", 0, 0, ordinal)
        for module, ordinals in (("footer", (1, 0, 0)), ("footer", (0, 0, 1)), ("dictionary_page", (1, 2, 3))):
            with pytest.raises(ValueError, match="the others must be 0"):
                aad(b"12345678", module, *ordinals)

    def test_on_the_host(self):
        numpy = pytest.importorskip("numpy")
        modules = self.modules()
        assert lockstep.parquet.decrypt_modules(modules, self.KEYS, self.AADS) == self.PLAIN
        pages = [modules[0], numpy.frombuffer(modules[1], numpy.uint8), memoryview(modules[2])]
        assert lockstep.parquet.decrypt_modules(pages, self.KEYS, self.AADS) == self.PLAIN
        pages[1] = Dlpack(numpy.frombuffer(bytearray(modules[1]), numpy.uint8))
        plain = lockstep.parquet.decrypt_modules(pages, self.KEYS, self.AADS)
        assert [bytes(page) for page in plain] == self.PLAIN and isinstance(plain[1], numpy.ndarray)
        same = [sealed_module(self.KEYS[0], *parts) for parts in zip(self.PLAIN, self.AADS, strict=True)]
        assert lockstep.parquet.decrypt_modules(same, self.KEYS[0], self.AADS) == self.PLAIN
        assert lockstep.parquet.decrypt_modules([], self.KEYS[0], []) == []

    def test_pages_of_a_file(self):
        """Decrypts the first page header and the first page of files that pyarrow encrypted with both algorithms."""
        pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
        pe = pytest.importorskip("pyarrow.parquet.encryption")
        table = pa.table({"a": pa.array(range(100), pa.int64())})
        for algorithm in ("AES_GCM_V1", "AES_GCM_CTR_V1"):
            properties, sink = pe.create_encryption_properties(FOOTER, encryption_algorithm=algorithm), io.BytesIO()
            options = {"compression": "none", "use_dictionary": False, "store_schema": False}
            pq.write_table(table, sink, encryption_properties=properties, **options)
            file = sink.getvalue()
            end = len(file) - 8 - int.from_bytes(file[-8:-4], "little")
            header_end = 8 + int.from_bytes(file[4:8], "little")
            page_end = header_end + 4 + int.from_bytes(file[header_end : header_end + 4], "little")
            # The identifier of the file has 8 bytes and follows the first 4 bytes of the crypto metadata.
            aad = [
                lockstep.parquet.module_aad(file[end + 4 : end + 12], module, 0, 0, 0) for module in ("data_page_header", "data_page")
            ]
            header = lockstep.parquet.decrypt_modules([file[4:header_end]], FOOTER, aad[:1])
            cipher = "CTR" if "CTR" in algorithm else "GCM"
            page = lockstep.parquet.decrypt_modules([file[header_end:page_end]], FOOTER, aad[1:], cipher=cipher)
            assert header[0] is not None
            assert page[0].endswith(b"".join(i.to_bytes(8, "little") for i in range(100)))

    def test_changes(self):
        modules = [bytearray(module) for module in self.modules()]
        modules[0][100] ^= 1
        modules[1][0] ^= 1
        assert lockstep.parquet.decrypt_modules(modules, self.KEYS, self.AADS) == [None, None, self.PLAIN[2]]
        # The first module gets the associated data of another module, so it is not authentic.
        aads = [self.AADS[1], *self.AADS[1:]]
        assert lockstep.parquet.decrypt_modules(self.modules(), self.KEYS, aads) == [None, *self.PLAIN[1:]]

    def test_wrong_arguments(self):
        modules = self.modules()
        with pytest.raises(ValueError, match="2 strings of associated data"):
            lockstep.parquet.decrypt_modules(modules, self.KEYS, self.AADS[:2])
        with pytest.raises(ValueError, match="2 keys"):
            lockstep.parquet.decrypt_modules(modules, self.KEYS[:2], self.AADS)
        with pytest.raises(ValueError, match="31 bytes"):
            lockstep.parquet.decrypt_modules([bytes(31)], self.KEYS[0], [b""])
        with pytest.raises(ValueError, match="'XTS'"):
            lockstep.parquet.decrypt_modules(modules, self.KEYS, self.AADS, cipher="XTS")
        with pytest.raises(TypeError):
            lockstep.parquet.decrypt_modules(["text"], self.KEYS[0], [b""])
        with pytest.raises(ValueError, match="key"):
            lockstep.parquet.decrypt_modules(modules, bytes(15), self.AADS)

    def test_on_a_device(self):
        """The pages stay in the memory of the emulator. The same code processes this memory and the memory of a GPU."""
        tensor = pytest.importorskip("lockstep.tensor")
        try:
            selection = lockstep.use("cuda:emu")
        except ValueError:
            pytest.skip("NOT TESTED: memory of devices, because the extension has no simulated devices")

        def on_device(module):
            array = tensor.DeviceArray(len(module), "cuda:emu")
            array.copy_from(module)
            return array

        with selection:
            modules = self.modules()
            plain = lockstep.parquet.decrypt_modules([on_device(module) for module in modules], self.KEYS, self.AADS)
            assert all(isinstance(page, tensor.DeviceArray) for page in plain)
            assert [page.tobytes() for page in plain] == self.PLAIN
            modules[2] = modules[2][:-1] + bytes([modules[2][-1] ^ 1])
            plain = lockstep.parquet.decrypt_modules([on_device(module) for module in modules], self.KEYS, self.AADS)
            assert plain[2] is None and plain[0].tobytes() == self.PLAIN[0]
            # The modules are changed to pages of CTR, which have no tags, and decrypted with CTR. The keystream of CTR differs from
            # that of GCM, so the result differs from PLAIN.
            pages = [(len(module) - 20).to_bytes(4, "little") + module[4:-16] for module in modules]
            plain = lockstep.parquet.decrypt_modules(
                [on_device(page) for page in pages], self.KEYS, [b""] * 3, cipher="CTR"
            )
            on_host = lockstep.parquet.decrypt_modules(pages, self.KEYS, [b""] * 3, cipher="CTR")
            assert [page.tobytes() for page in plain] == on_host and on_host[0] != self.PLAIN[0]
            with pytest.raises(ValueError, match="one device"):
                lockstep.parquet.decrypt_modules([on_device(modules[0]), modules[1]], self.KEYS[0], self.AADS[:2])
