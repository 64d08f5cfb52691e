"""`lockstep.safetensors.torch` and `lockstep.torch.EncryptedStream`."""

import io
from concurrent.futures import ThreadPoolExecutor

import pytest
from conftest import data, run_python, torch_module

import lockstep

torch = torch_module()
import lockstep.safetensors  # noqa: E402
import lockstep.torch  # noqa: E402
from lockstep.safetensors import safe_open  # noqa: E402
from lockstep.safetensors import torch as encrypted  # noqa: E402

# A process that runs longer than this number of seconds counts as blocked.
PATIENCE = 300
TYPES = [
    "bool", "uint8", "int8", "uint16", "int16", "float16", "bfloat16", "uint32", "int32", "float32", "uint64", "int64", "float64",
    "complex64", "float8_e4m3fn", "float8_e5m2", "float8_e8m0fnu", "float8_e4m3fnuz", "float8_e5m2fnuz", "float4_e2m1fn_x2",
]  # fmt: skip


def raw(tensor):
    return bytes(tensor.contiguous().reshape(-1).view(torch.uint8).tolist())


def tensor(name, count=12, shape=(3, 4)):
    dtype = getattr(torch, name)
    size = count * torch.empty(0, dtype=dtype).element_size()
    content = torch.frombuffer(bytearray(data(size)), dtype=torch.uint8)
    return (content & 1 if dtype == torch.bool else content).view(dtype).reshape(shape)


def test_the_plain_form_is_that_of_safetensors(tmp_path, key):
    other = torch_module("safetensors.torch")
    made = {name: tensor(name) for name in TYPES if hasattr(torch, name)}
    made |= {"large": tensor("bfloat16", 3_000_000, (3000, 1000)), "none": torch.empty(0, 3), "scalar": torch.tensor(5)}
    encrypted.save_file(made, tmp_path / "enc", {"format": "pt"}, key=key)
    lockstep.decrypt_file(tmp_path / "enc", tmp_path / "plain", key)
    assert (tmp_path / "plain").read_bytes() == other.save(made, {"format": "pt"})
    for loaded in (
        encrypted.load_file(tmp_path / "enc", key=key),
        encrypted.load(encrypted.save(made, key=key), key=key),
        lockstep.safetensors.load_file(tmp_path / "enc", "pt", key=key),
    ):
        assert loaded.keys() == made.keys()
        for name, expected in made.items():
            assert loaded[name].dtype == expected.dtype and loaded[name].shape == expected.shape
            assert name == "large" or raw(loaded[name]) == raw(expected)
        assert torch.equal(loaded["large"].view(torch.int16), made["large"].view(torch.int16))
    with safe_open(tmp_path / "enc", "pt", key=key) as file:
        part = file.get_slice("large")[5:2000:400, 3]
        assert torch.equal(part.view(torch.int16), made["large"][5:2000:400, 3].view(torch.int16))
        assert part.untyped_storage().nbytes() == part.nbytes
    assert lockstep.safetensors.load_file(tmp_path / "enc", "pt", "meta", key=key)["large"].is_meta


def test_what_cannot_be_saved(tmp_path, key):
    grid = torch.zeros(10, 10)
    for bad, error in [
        ({"a": grid.T[:5]}, ValueError),
        ({"a": grid.to_sparse()}, ValueError),
        ({"a": grid.to("meta")}, ValueError),
        ({"a": grid.to(torch.complex128)}, ValueError),
        ({"a": [1]}, ValueError),
        ({"a": grid, "b": grid[2:]}, RuntimeError),
    ]:
        with pytest.raises(error):
            encrypted.save_file(bad, tmp_path / "enc", key=key)
    assert list(tmp_path.iterdir()) == []
    conjugate = torch.tensor([1 + 2j], dtype=torch.complex64).conj()
    encrypted.save_file({"a": conjugate, "b": grid.requires_grad_()}, tmp_path / "enc", key=key)
    assert encrypted.load_file(tmp_path / "enc", key=key)["a"].tolist() == [1 - 2j]


def test_the_stream(key):
    stream, output = lockstep.torch.EncryptedStream(key, b"ctx"), io.BytesIO()
    output.write(b"before")
    closed = []
    output.close = lambda: closed.append(True)
    file = stream.transform_to(output)
    plain = data(100_000)
    file.write(plain)
    file.close()
    assert closed
    with lockstep.open(io.BytesIO(output.getvalue()[6:]), "rb", key=key, context=b"ctx") as file:
        assert file.read() == plain
    assert stream.transform_from(io.BytesIO(output.getvalue()[6:])).read() == plain
    with pytest.raises(lockstep.InvalidTag):
        lockstep.torch.EncryptedStream(key).transform_from(io.BytesIO(output.getvalue()[6:]))


CHECKPOINT = """
    import os, pathlib, pickle, sys, warnings
    import torch, torch.distributed as dist, torch.distributed.checkpoint as dcp
    from torch.distributed.checkpoint.filesystem import SerializationFormat
    import lockstep
    from lockstep.torch import EncryptedStream

    def state(fill):
        made = {"weight": torch.full((300, 400), fill), "step": 7, "nested": {"bias": torch.full((5,), fill)}, "none": torch.zeros(0)}
        if RANKS > 1:
            from torch.distributed.tensor import Shard, distribute_tensor, init_device_mesh
            mesh = init_device_mesh("cpu", (RANKS,))
            whole = torch.arange(1000.0).reshape(100, 10) if fill else torch.zeros(100, 10)
            made["shared"] = distribute_tensor(whole, mesh, [Shard(0)])
        return made

    def run(rank, folder):
        if RANKS > 1:
            dist.init_process_group("gloo", init_method=f"file://{folder.parent}/meet", rank=rank, world_size=RANKS)
        stream = EncryptedStream(bytes(32), b"run 5")
        dcp.save(state(2.5), storage_writer=stream.writer(folder))
        loaded = state(0.0)
        dcp.load(loaded, storage_reader=stream.reader(folder))
        assert (loaded["weight"] == 2.5).all() and (loaded["nested"]["bias"] == 2.5).all() and loaded["step"] == 7
        if RANKS > 1:
            assert torch.equal(loaded["shared"].full_tensor(), torch.arange(1000.0).reshape(100, 10))
            dist.destroy_process_group()
"""


def test_a_checkpoint_of_one_process(tmp_path):
    code = """
        if __name__ == "__main__":
            RANKS, folder = 1, pathlib.Path(sys.argv[1]) / "checkpoint"
            run(0, folder)
            files = sorted(folder.iterdir())
            assert len(files) == 2
            for file in files:
                content = file.read_bytes()
                assert b"weight" not in content and b"PK" not in content[:4]

            def refused(reader, error):
                try:
                    dcp.load({"weight": torch.zeros(300, 400)}, storage_reader=reader)
                except BaseException as got:
                    assert error in repr(got) + repr(getattr(got, "failures", "")), repr(got)
                else:
                    raise AssertionError("not refused")

            stream = EncryptedStream(bytes(32), b"run 5")
            refused(EncryptedStream(bytes(32)).reader(folder), "wrong key or context")
            data = next(file for file in files if file.suffix == ".distcp")
            content = bytearray(data.read_bytes())
            for at in range(70, len(content), 10_000):
                content[at] ^= 1
            data.write_bytes(content)
            refused(stream.reader(folder), "InvalidTag")
            # A plain checkpoint is refused. If only the data are encrypted, because they were written with the extension, they can be
            # read only with the extension.
            plain, mixed = folder.parent / "plain", folder.parent / "mixed"
            dcp.save({"weight": torch.zeros(300, 400)}, checkpoint_id=plain)
            refused(stream.reader(plain), "metadata is None")
            dcp.save({"weight": torch.ones(300, 400)}, storage_writer=dcp.FileSystemWriter(mixed, _extensions=[stream]))
            refused(dcp.FileSystemReader(mixed), "Unknown extension")
            loaded = {"weight": torch.zeros(300, 400)}
            dcp.load(loaded, storage_reader=dcp.FileSystemReader(mixed, _extension_registry=stream.registry()))
            assert (loaded["weight"] == 1).all()
            # The metadata are replaced by encrypted metadata, which are authentic, but the data of the checkpoint stay plain.
            metadata = (plain / ".metadata").read_bytes()
            with lockstep.open(plain / ".metadata", "wb", key=bytes(32), context=b"run 5") as file:
                file.write(metadata)
            refused(stream.reader(plain), "not encrypted")
            try:
                stream.writer(folder, serialization_format=SerializationFormat.SAFETENSORS)
            except ValueError as error:
                assert "TORCH_SAVE" in str(error)
            else:
                raise AssertionError("not refused")
    """
    done = run_python(CHECKPOINT.replace("\n    ", "\n        ") + code, tmp_path, timeout=PATIENCE)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_checkpoint_of_two_ranks(tmp_path):
    code = """
        RANKS = 2
        run(int(sys.argv[2]), pathlib.Path(sys.argv[1]) / "checkpoint")
        # Skips the finalisation of the interpreter. With PyTorch 2.15, a rank was once aborted at its end ("terminate called without an
        # active exception"), after `destroy_process_group` and all checks: a thread of gloo that releases a tensor during the
        # finalisation aborts the process (pytorch/pytorch#190489).
        os._exit(0)
    """
    code = CHECKPOINT.replace("\n    ", "\n        ") + code
    with ThreadPoolExecutor() as pool:
        options = {"timeout": PATIENCE, "environment": {"GLOO_SOCKET_IFNAME": "lo"}}
        ranks = [pool.submit(run_python, code, tmp_path, rank, **options) for rank in range(2)]
    for rank in ranks:
        assert rank.result().returncode == 0, rank.result().stdout + rank.result().stderr
    assert sorted(file.suffix for file in (tmp_path / "checkpoint").iterdir()) == ["", ".distcp", ".distcp"]
