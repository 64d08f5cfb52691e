"""Compares `lockstep.safetensors` for numpy with the package safetensors."""

import io
import json
import random
import subprocess
import sys

import numpy as np
import pytest
from conftest import data, run_python

import lockstep
import lockstep.safetensors
from lockstep.safetensors import numpy as encrypted
from lockstep.safetensors import safe_open
from lockstep.safetensors._file import TensorFile

safetensors = pytest.importorskip("safetensors")
plain_files = pytest.importorskip("safetensors.numpy")
ml_dtypes = pytest.importorskip("ml_dtypes")

TYPES = ["bool", "u1", "i1", "u2", "i2", "f2", "u4", "i4", "f4", "u8", "i8", "f8", "c8"]
EXTRA = ["bfloat16", "float8_e4m3fn", "float8_e5m2", "float8_e8m0fnu", "float8_e4m3fnuz", "float8_e5m2fnuz"]
SHAPES = [(), (0,), (1,), (3, 5), (2, 0, 4), (100, 41), (4097,)]


def array(dtype, shape):
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    content = np.frombuffer(data(size), np.uint8)
    return (content & 1 if np.dtype(dtype) == bool else content).view(dtype).reshape(shape)


def tensors():
    made = {f"{name}.{shape}": array(name, shape) for name in TYPES for shape in SHAPES}
    made |= {f"{name} é\n\"": array(getattr(ml_dtypes, name), (7, 3)) for name in EXTRA}
    # The last tensor has 5.2 MB. It therefore has many chunks, and a read of it is so long that it runs on a separate thread.
    return made | {"large": array("f4", (1300, 1000))}


def same(one, other):
    assert one.dtype == other.dtype and one.shape == other.shape
    assert one.tobytes() == other.tobytes()


def test_the_plain_form_is_that_of_safetensors(tmp_path, key):
    """A decrypted file equals the file that the package safetensors writes, byte for byte. If a file of that package is encrypted,
    this package reads it."""
    made, metadata = tensors(), {"format": "é\x01"}
    encrypted.save_file(made, tmp_path / "a", metadata, key=key, context=b"ctx")
    lockstep.decrypt_file(tmp_path / "a", tmp_path / "plain", key, b"ctx")
    assert (tmp_path / "plain").read_bytes() == plain_files.save(made, metadata)
    with lockstep.open(tmp_path / "b", "wb", key=key, context=b"ctx") as file:
        file.write(plain_files.save(made, metadata))
    for loaded in (
        encrypted.load_file(tmp_path / "b", key=key, context=b"ctx"),
        encrypted.load((tmp_path / "b").read_bytes(), key=key, context=b"ctx"),
        lockstep.safetensors.load_file(str(tmp_path / "b"), "np", key=key, context=b"ctx"),
    ):
        assert loaded.keys() == made.keys()
        for name, expected in made.items():
            same(loaded[name], expected)
            assert loaded[name].flags.writeable
    assert lockstep.safetensors.save_file({}, tmp_path / "c", key=key) is None
    assert encrypted.load_file(tmp_path / "c", key=key) == {}


def test_the_command_makes_the_same_format(tmp_path, key):
    made = {"a": array("f4", (300, 70)), "b": array("i8", (5,))}
    plain_files.save_file(made, tmp_path / "plain")
    (tmp_path / "key").write_text(f"lockstep-key-256 {key.hex()}\n", encoding="ascii")
    command = [sys.executable, "-m", "lockstep", "encrypt", "-k", tmp_path / "key", "-o", tmp_path / "enc", tmp_path / "plain"]
    subprocess.run(command, check=True, capture_output=True, timeout=60)
    loaded = encrypted.load_file(tmp_path / "enc", key=tmp_path / "key")
    same(loaded["a"], made["a"])
    same(loaded["b"], made["b"])


def test_safe_open(tmp_path, key):
    made = tensors()
    encrypted.save_file(made, tmp_path / "enc", {"a": "b"}, key=key)
    lockstep.decrypt_file(tmp_path / "enc", tmp_path / "plain", key)
    with (
        safe_open(tmp_path / "enc", "np", key=key) as file,
        safetensors.safe_open(tmp_path / "plain", "np") as other,
    ):
        assert file.keys() == other.keys() and file.offset_keys() == other.offset_keys()
        assert file.metadata() == other.metadata() == {"a": "b"}
        for name in made:
            same(file.get_tensor(name), made[name])
            mine, theirs = file.get_slice(name), other.get_slice(name)
            assert mine.get_shape() == theirs.get_shape() and mine.get_dtype() == theirs.get_dtype()
        assert file.get_tensors().keys() == made.keys()
        with pytest.raises(KeyError, match="no tensor 'x'"):
            file.get_tensor("x")
        with pytest.raises(KeyError):
            file.get_slice("x")
    with pytest.raises(ValueError, match="closed"):
        file.get_tensor("large")
    with pytest.raises(ValueError, match="framework"):
        safe_open(tmp_path / "enc", "tf", key=key)
    with pytest.raises(ValueError, match="device"), safe_open(tmp_path / "enc", "np", "cuda", key=key) as file:
        file.get_tensor("large")
    with pytest.raises(TypeError):
        safe_open(tmp_path / "enc", "np")


INDICES = [
    np.s_[3], np.s_[-1], np.s_[2:9], np.s_[:, 4], np.s_[90:200:7, ::3], np.s_[..., 2], np.s_[5:5], np.s_[50:10], np.s_[::-1],
    np.s_[[1, 5]], np.s_[None, 2], np.s_[7, 3], np.s_[-4:], np.s_[:], np.s_[()], np.s_[np.int64(6), :2],
]  # fmt: skip


def test_parts_of_tensors(tmp_path, key):
    made = {"m": array("f4", (100, 41)), "s": array("f8", ()), "e": array("u1", (0, 3)), "b": array("u1", (5,))}
    encrypted.save_file(made, tmp_path / "enc", key=key)
    with safe_open(tmp_path / "enc", "np", key=key) as file:
        for index in INDICES:
            same(np.asarray(file.get_slice("m")[index]), np.asarray(made["m"][index]))
        part = file.get_slice("m")[10:12, 3]
        assert part.base is None, "a part does not keep the rows in memory"
        same(file.get_slice("s")[...], made["s"])
        same(file.get_slice("e")[0:], made["e"])
        for bad in (100, -101, (0, 41)):
            with pytest.raises(IndexError):
                file.get_slice("m")[bad]


def test_parts_of_a_vector_with_elements_of_half_a_byte(key):
    """An element of the array contains two numbers, as an element of PyTorch's type for F4 does."""

    class Pairs(type(encrypted.FRAMEWORK)):
        def empty(self, dtype, shape):
            assert dtype == "F4" and shape[-1] % 2 == 0
            return super().empty("U8", (*shape[:-1], shape[-1] // 2))

    header = {
        "v": {"dtype": "F4", "shape": [8], "data_offsets": [0, 4]},
        "m": {"dtype": "F4", "shape": [3, 4], "data_offsets": [4, 10]},
    }
    sealed = io.BytesIO()
    with lockstep.open(sealed, "wb", key=key) as file:
        file.write(file_of(header, bytes(range(10))))
    tensors = TensorFile(io.BytesIO(sealed.getvalue()), Pairs(), "cpu", key, b"")
    assert tensors.read_part("v", np.s_[2:4]).tolist() == [2, 3]
    assert tensors.read_part("v", 3) == 3
    assert tensors.read_part("m", np.s_[1:]).tolist() == [[6, 7], [8, 9]]


def test_only_the_chunks_that_are_needed_are_read(tmp_path, key):
    made = {"m": array("f4", (1000, 1024)), "n": array("u1", (50_000,))}
    encrypted.save_file(made, tmp_path / "enc", key=key)
    message = bytearray((tmp_path / "enc").read_bytes())
    # The changed byte is in chunk 122, which contains parts of the rows 487 to 492 and no other rows.
    message[56 + 122 * 16400 + 1] ^= 1
    with safe_open(io.BytesIO(message), "np", key=key) as file:
        same(file.get_tensor("n"), made["n"])
        same(file.get_slice("m")[:480], made["m"][:480])
        same(file.get_slice("m")[494:], made["m"][494:])
        with pytest.raises(lockstep.InvalidTag, match="chunk 122"):
            file.get_slice("m")[490]
        with pytest.raises(lockstep.InvalidTag):
            file.get_tensors()


def test_what_is_not_authentic_is_refused(tmp_path, key):
    encrypted.save_file({"a": array("f4", (100_000,))}, tmp_path / "enc", key=key)
    message = (tmp_path / "enc").read_bytes()
    for arguments in ({"key": data(32)}, {"key": key, "context": b"x"}):
        with pytest.raises(lockstep.InvalidTag):
            encrypted.load(message, **arguments)
    for opens in (lambda: encrypted.load(message, key=None), lambda: safe_open(tmp_path / "enc", "np", key=None)):
        with pytest.raises(TypeError, match="a key is missing"):
            opens()
    # In these files the salt, the header or a tensor is changed.
    for damaged in (b"x" + message[1:], *(message[:at] + bytes([message[at] ^ 1]) + message[at + 1 :] for at in (60, 200_000))):
        with pytest.raises(lockstep.InvalidTag):
            encrypted.load(damaged, key=key)
    with pytest.raises(lockstep.InvalidTag):
        encrypted.load(message[: 56 + 3 * 16400], key=key)


def test_what_cannot_be_saved_leaves_no_file(tmp_path, key):
    path = tmp_path / "enc"
    grid = np.arange(100, dtype="f4").reshape(10, 10)
    for bad, error in [
        ({"a": grid.T[:5]}, ValueError),
        ({"a": np.zeros(3, "c16")}, ValueError),
        ({"a": [1, 2]}, TypeError),
        ({"__metadata__": grid}, ValueError),
    ]:
        with pytest.raises(error):
            encrypted.save_file(bad, path, key=key)
    with pytest.raises(TypeError):
        encrypted.save_file({"a": grid}, path, {"a": 5}, key=key)
    with pytest.raises(ValueError):
        encrypted.save_file({"a": grid}, path, key=b"short")
    with pytest.raises(TypeError, match="a key is missing"):
        encrypted.save_file({"a": grid}, path, key=None)
    assert list(tmp_path.iterdir()) == []
    encrypted.save_file({"a": grid.astype(">f4")}, path, key=key)
    encrypted.save_file({"a": grid.astype(">f4")}, path, key=key)
    same(encrypted.load_file(path, key=key)["a"], grid)
    assert [entry.name for entry in tmp_path.iterdir()] == ["enc"]


ONE = {"dtype": "U8", "shape": [4], "data_offsets": [0, 4]}


def file_of(header, content=b"1234"):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + content


MALFORMED = {
    "empty": b"",
    "short": b"1234567",
    "header too long": (100_000_001).to_bytes(8, "little") + b"{}",
    "header longer than the file": (100).to_bytes(8, "little") + b"{}",
    "no JSON": file_of(b"{x"),
    "no UTF-8": file_of(b'{"\xff":1}'),
    "a list": file_of([ONE]),
    "space first": file_of(b" {}", b""),
    "deep": file_of(b'{"a":' * 100_000),
    "gap at the start": file_of({"a": ONE | {"data_offsets": [1, 5]}}, b"12345"),
    "gap": file_of({"a": ONE, "b": ONE | {"data_offsets": [5, 9]}}, bytes(9)),
    "overlap": file_of({"a": ONE, "b": ONE | {"data_offsets": [3, 7]}}, bytes(7)),
    "same place": file_of({"a": ONE, "b": ONE}),
    "rest": file_of({"a": ONE}, b"12345"),
    "too short": file_of({"a": ONE}, b"123"),
    "wrong size": file_of({"a": ONE | {"shape": [5]}}),
    "overflow": file_of({"a": ONE | {"shape": [1 << 63, 2]}}),
    "backwards": file_of({"a": ONE | {"data_offsets": [4, 0]}}),
    "negative": file_of({"a": ONE | {"shape": [-2, -2]}}),
    "fraction": file_of({"a": ONE | {"shape": [4.0]}}),
    "boolean": file_of({"a": ONE | {"shape": [4, True]}}),
    "type": file_of({"a": ONE | {"dtype": "U9"}}),
    "type is a number": file_of({"a": ONE | {"dtype": 8}}),
    "part of a byte": file_of({"a": ONE | {"dtype": "F4", "shape": [7]}}),
    "missing": file_of({"a": {"dtype": "U8", "shape": [4]}}),
    "three offsets": file_of({"a": ONE | {"data_offsets": [0, 4, 4]}}),
    "null": file_of({"a": None}),
    "metadata": file_of({"__metadata__": {"a": 1}, "a": ONE}),
    "twice": file_of(f'{{"a":{json.dumps(ONE)},"a":{json.dumps(ONE)}}}'.encode()),
    "surrogate": file_of({"\ud800": ONE}),
}


@pytest.mark.parametrize("problem", MALFORMED)
def test_malformed_headers_are_refused(problem, key):
    sealed = io.BytesIO()
    with lockstep.open(sealed, "wb", key=key) as file:
        file.write(MALFORMED[problem])
    with pytest.raises(ValueError, match="not a safetensors file"):
        encrypted.load(sealed.getvalue(), key=key)
    if problem not in ("twice", "space first"):
        # The `safetensors` package accepts two equal names (it takes the last one) and leading spaces,
        # although its documentation forbids both.
        with pytest.raises((safetensors.SafetensorError, ValueError)):
            plain_files.load(MALFORMED[problem])


def test_the_control_of_malformed_headers(key):
    sealed = io.BytesIO()
    with lockstep.open(sealed, "wb", key=key) as file:
        file.write(file_of({"b": ONE | {"data_offsets": [4, 8]}, "__metadata__": None, "a": ONE | {"more": 1}}, b"12345678"))
    assert {name: bytes(value) for name, value in encrypted.load(sealed.getvalue(), key=key).items()} == {
        "a": b"1234",
        "b": b"5678",
    }


def test_changed_headers_raise_value_errors_only(key):
    """Headers are changed at random. Lockstep refuses each header that safetensors refuses, and reads the same tensors as safetensors
    if the header is accepted."""
    generator, good = random.Random(5), plain_files.save({"a": array("f4", (3, 4)), "b": array("u1", (9,))}, {"k": "v"})
    for _ in range(150):
        changed = bytearray(good)
        for _ in range(generator.randrange(1, 4)):
            changed[generator.randrange(len(good) - 57)] = generator.choice(b'0123456789{}[]",:UF8ab')
        try:
            expected = plain_files.load(bytes(changed))
        except Exception:
            expected = None
        sealed = io.BytesIO()
        with lockstep.open(sealed, "wb", key=key) as file:
            file.write(changed)
        try:
            loaded = encrypted.load(sealed.getvalue(), key=key)
        except ValueError:
            continue
        assert expected is not None, changed
        for name, value in expected.items():
            same(loaded[name], value)


def test_the_framework_is_imported_only_if_it_is_used(tmp_path):
    code = """
        import sys, lockstep.safetensors
        assert "numpy" not in sys.modules and "torch" not in sys.modules
    """
    done = run_python(code)
    assert done.returncode == 0, done.stderr


def test_types_that_numpy_lacks(tmp_path, key):
    for dtype, shape, size in [("F4", [8], 4), ("F6_E2M3", [4], 3)]:
        sealed = io.BytesIO()
        with lockstep.open(sealed, "wb", key=key) as file:
            file.write(file_of({"a": {"dtype": dtype, "shape": shape, "data_offsets": [0, size]}}, bytes(size)))
        with pytest.raises(ValueError, match="framework 'pt'"):
            encrypted.load(sealed.getvalue(), key=key)
