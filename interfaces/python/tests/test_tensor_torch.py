"""Tensors of PyTorch, on the CPU. tools/torch_test.sh runs these tests; elsewhere they are skipped without PyTorch."""

import numpy
import pytest
from conftest import data, on_device, torch_module
from cryptography.hazmat.primitives.ciphers import aead as pyca
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from test_secrets import BYTES, MARKED, TEXTS, found_in, texts_of

import lockstep
from lockstep import _random_arrays, aead, hazmat, tensor
from lockstep.random import Generator

torch = torch_module()
ops = torch_module("lockstep.torch")
from torch import library  # noqa: E402 (after the check that PyTorch is installed)


def tensor_of(content, *shape):
    return torch.tensor(list(content), dtype=torch.uint8).reshape(*shape or (-1,))


def content(array):
    return bytes(array.contiguous().view(torch.uint8).flatten().tolist())


def test_classes(key):
    plain, nonce = torch.randn(100, 7), data(12)
    sealed = aead.AESGCM(key).encrypt(nonce, plain, b"aad")
    assert isinstance(sealed, torch.Tensor)
    assert content(sealed) == AESGCM(key).encrypt(nonce, content(plain), b"aad")
    assert content(aead.AESGCM(key).decrypt(nonce, sealed, b"aad")) == content(plain)
    out = torch.zeros(100, 7)
    assert aead.AESGCM(key).decrypt_into(nonce, sealed, b"aad", out) == 2800
    assert torch.equal(out, plain)
    sealed[3] += 1
    with pytest.raises(lockstep.InvalidTag):
        aead.AESGCM(key).decrypt(nonce, sealed, b"aad")


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "complex64", "bool", "int64"])
def test_types_and_batches(key, dtype):
    plain = torch.zeros(8, 50, dtype=getattr(torch, dtype))
    nonces = tensor_of(data(8 * 12), 8, 12)
    result = tensor.seal(tensor_of(key), nonces, plain)
    row = content(plain[3])
    expected = AESGCM(key).encrypt(content(nonces[3]), row, None)
    assert content(result.data)[3 * len(row) : 4 * len(row)] == expected[:-16]
    opened = tensor.open(key, nonces, result.data, result.tags)
    assert opened.status.tolist() == [1] * 8
    tensor.check(opened.status)
    assert content(opened.data) == content(plain)


def test_bad_tensors(key):
    with pytest.raises(BufferError, match="contiguous"):
        aead.AESGCM(key).encrypt(data(12), torch.zeros(4, 4).T[1:], None)
    with pytest.raises(BufferError, match="conjugate"):
        aead.AESGCM(key).encrypt(data(12), torch.zeros(4, dtype=torch.complex64).conj(), None)
    weights = torch.zeros(4, requires_grad=True)
    sealed = aead.AESGCM(key).encrypt(bytes(12), weights, None)
    with pytest.raises(TypeError, match="gradients"):
        aead.AESGCM(key).decrypt_into(bytes(12), sealed, None, weights)
    with pytest.raises(BufferError, match="sparse"):
        aead.AESGCM(key).encrypt(data(12), torch.zeros(4, 4).to_sparse(), None)
    assert len(aead.AESGCM(key).encrypt(data(12), torch.zeros(0), None)) == 16


def test_operators(key):
    # The data are integers. As floats, the ciphertext could contain NaN, and the comparison would fail because NaN does not equal itself.
    nonces, plain = tensor_of(data(4 * 12), 4, 12), torch.arange(400).reshape(4, 100)
    arguments, checks = (tensor_of(key), nonces, plain), ("test_schema", "test_faketensor")
    library.opcheck(torch.ops.lockstep.gcm_seal.default, arguments, test_utils=checks)
    sealed, tags, status = torch.ops.lockstep.gcm_seal(*arguments)
    assert (sealed.shape, sealed.dtype, tags.shape, status.tolist()) == (plain.shape, plain.dtype, (4, 16), [1] * 4)
    assert content(sealed[1]) + content(tags[1]) == AESGCM(key).encrypt(content(nonces[1]), content(plain[1]), None)
    library.opcheck(torch.ops.lockstep.gcm_open.default, (tensor_of(key), nonces, sealed, tags), test_utils=checks)
    tags[2, 0] ^= 1
    opened, status = torch.ops.lockstep.gcm_open(tensor_of(key), nonces, sealed, tags)
    assert status.tolist() == [1, 1, 2, 1]
    assert torch.equal(opened[2], torch.zeros(100, dtype=torch.int64))
    assert torch.equal(opened[3], plain[3])
    arguments = (tensor_of(key), 5, torch.zeros(10, dtype=torch.int32))
    library.opcheck(torch.ops.lockstep.random_bytes.default, arguments, test_utils=checks)


def test_a_key_in_a_wrong_place_is_not_shown(key, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert set(ops.__all__) == {"EncryptedStream", "Generator", "gcm_open", "gcm_seal", "random_bytes"}
    nonces, plain = tensor_of(data(12)), torch.zeros(100, dtype=torch.uint8)
    sealed, tags, _ = ops.gcm_seal(tensor_of(key), nonces, plain)
    assert torch.equal(ops.gcm_open(tensor_of(key), nonces, sealed, tags)[0], plain)
    ops.random_bytes(tensor_of(key), 7, plain)
    assert content(plain) == Generator(key, 7).bytes(100)
    generator = ops.Generator(MARKED)
    functions = [
        (ops.gcm_seal, {"key": tensor_of(key), "nonces": nonces, "data": plain}),
        (ops.gcm_open, {"key": tensor_of(key), "nonces": nonces, "data": sealed, "tags": tags}),
        (ops.random_bytes, {"key": tensor_of(key), "position": 0, "out": plain}),
        (generator.randint, {"low": 0, "high": 5, "size": (1,), "dtype": torch.int64}),
        (generator.set_state, {"state": generator.get_state()}),
        (lambda size: generator.rand(size), {"size": 1}),
        (lambda device: ops.Generator(MARKED, device=device), {"device": "cpu"}),
        (lambda context: ops.EncryptedStream(MARKED, context), {"context": b""}),
        (ops.EncryptedStream(MARKED).writer, {"path": "", "serialization_format": ""}),
    ]
    for function, arguments in functions:
        for name in arguments:
            for given in BYTES + TEXTS:
                try:
                    function(**{**arguments, name: given})
                except Exception as error:
                    found = [text for text in texts_of(error) if found_in(text)]
                    assert not found, f"{name} of the type {type(given).__name__}: {found[0][:300]}"
    with pytest.raises(TypeError, match="key is of the type bytes: give a tensor"):
        ops.gcm_seal(key, nonces, plain)
    with pytest.raises(ValueError, match="no device 'no-device'"):
        ops.Generator(key, device="no-device")
    for one in (generator, ops.EncryptedStream(MARKED)):
        assert found_in(f"{one!r} {one}") is None


def test_compiled(key):
    """torch.compile accepts the operators in a graph without breaks. The backend of the test does not compile the graph, so no C++ compiler
    is needed."""

    @torch.compile(backend="aot_eager", fullgraph=True)
    def mask(key, nonces, plain):
        noise = torch.zeros_like(plain)
        ops.random_bytes(key, 7, noise)
        sealed, tags, _ = ops.gcm_seal(key, nonces, plain * 2)
        opened, status = ops.gcm_open(key, nonces, sealed, tags)
        return opened + 1, noise, (status == 1).all()

    nonces, plain = tensor_of(data(4 * 12), 4, 12), torch.randn(4, 100)
    opened, noise, is_good = mask(tensor_of(key), nonces, plain)
    assert torch.equal(opened, plain * 2 + 1)
    assert content(noise) == Generator(key, 7).bytes(1600)
    assert is_good


def test_numbers(key):
    for name in ("uniform", "normal"):
        for dtype in ("float32", "float64"):
            ours = getattr(Generator(key, 2), name)(1001, dtype, like=torch.zeros(0))
            assert ours.dtype == getattr(torch, dtype)
            assert ours.numpy().tobytes() == getattr(Generator(key, 2), name)(1001, dtype).tobytes()
    array = torch.zeros(50, 2, dtype=torch.int16)
    Generator(key).integers(-5, 300, out=array)
    assert array.flatten().tolist() == Generator(key).integers(-5, 300, 100).tolist()


@pytest.mark.parametrize("bits", [32, 64])
def test_tensor_operations_make_the_same_numbers(key, bits, monkeypatch):
    """The array operations that make random numbers on a GPU make the same numbers here, on the CPU."""
    monkeypatch.setattr(_random_arrays, "_BATCH", 4096)
    name = f"float{bits}"
    for kind in ("uniform", "normal"):
        array = torch.zeros(10_000, dtype=getattr(torch, name))
        _random_arrays._fill_floats(torch, Generator(key, 1)._stream, kind, array, name)
        assert array.numpy().tobytes() == getattr(Generator(key, 1), kind)(10_000, name).tobytes()
    for low, high in [(0, 5), (-7, 1 << 33), (0, 1 << 63), (-(1 << 63), (1 << 62) + 3)]:
        array = torch.zeros(9000, dtype=torch.int64)
        _random_arrays._fill_integers(torch, Generator(key, 3)._stream, low, high - 1 - low, array)
        assert array.tolist() == Generator(key, 3).integers(low, high, 9000).tolist()


def test_generator(key):
    generator = ops.Generator(key)
    state = generator.get_state()
    first = generator.rand(3, 4)
    assert first.shape == (3, 4)
    assert generator.randn(5, dtype=torch.float64).dtype == torch.float64
    assert generator.randint(0, 10, (100,)).max() < 10
    assert torch.equal(generator.set_state(state).rand(3, 4), first)
    with pytest.raises(ValueError):
        generator.set_state(torch.zeros(3, dtype=torch.uint8))


@pytest.mark.parametrize("mode", ["AESGCM", "AESGCMSIV", "AESOCB3", "AESCCM"])
def test_modes(key, mode):
    kind, nonces, plain = getattr(aead, mode), tensor_of(data(4 * 12), 4, 12), torch.randn(4, 60)
    result = tensor.seal(tensor_of(key), nonces, plain, mode=kind)
    expected = getattr(pyca, mode)(key).encrypt(content(nonces[2]), content(plain[2]), None)
    assert content(result.data)[480:720] + content(result.tags)[32:48] == expected
    out = torch.zeros_like(plain)
    opened = tensor.open(tensor_of(key), nonces, result.data, result.tags, out=out, mode=kind)
    tensor.check(opened.status)
    assert opened.data is out and torch.equal(out, plain)


def test_batches_of_aead(key):
    """If the arguments are tensors and not buffers, the results are tensors too."""
    nonces, plain = tensor_of(data(5 * 12), 5, 12), torch.randn(5, 16, dtype=torch.bfloat16)
    sealed = aead.encrypt_many(aead.AESGCMSIV, tensor_of(key), nonces, plain)
    assert (sealed.shape, sealed.dtype) == ((5, 48), torch.uint8)
    assert content(sealed[3]) == pyca.AESGCMSIV(key).encrypt(content(nonces[3]), content(plain[3]), None)
    sealed[1, 0] ^= 1
    opened, authentic = aead.decrypt_many(aead.AESGCMSIV, key, nonces, sealed)
    assert authentic.tolist() == [True, False, True, True, True]
    assert opened[1].tolist() == [0] * 32 and content(opened[4]) == content(plain[4])
    sealed, ends = aead.encrypt_many(aead.AESGCM, key, nonces[:2], tensor_of(bytes(30)), offsets=torch.tensor([0, 10, 30]))
    assert ends.tolist() == [0, 26, 62] and len(sealed) == 62
    with pytest.raises(BufferError, match="contiguous"):
        aead.encrypt_many(aead.AESGCM, key, nonces, torch.zeros(16, 5).T)


@pytest.mark.parametrize("mode", ["CTR", "XTS", "CBC"])
def test_raw_modes(key, mode):
    iv, plain = data(16), torch.randn(32, 5)
    key = data(64) if mode == "XTS" else key
    expected = hazmat.encrypt(mode, key, content(plain), iv)
    result = hazmat.encrypt(mode, key, plain, iv)
    assert isinstance(result, torch.Tensor) and content(result) == expected
    assert hazmat.encrypt_into(mode, key, plain, plain, iv) == 640
    assert content(plain) == expected


def test_exchange_by_dlpack(key):
    """Arrays of other libraries that share their memory with a tensor."""
    plain = torch.arange(100)
    same = numpy.from_dlpack(plain)
    sealed = aead.AESGCM(key).encrypt(bytes(12), same, None)
    back = torch.from_dlpack(numpy.frombuffer(bytearray(sealed), numpy.uint8))
    assert aead.AESGCM(key).decrypt_into(bytes(12), back, None, plain.zero_()) == 800
    assert same.tolist() == list(range(100))


def test_memory_of_another_device(emulator, key):
    """PyTorch has no device for the memory of the emulator, so such arrays cannot be exchanged with tensors on the host."""
    array = on_device(bytes(64))
    with pytest.raises((BufferError, ImportError, RuntimeError, ValueError)):
        torch.from_dlpack(array)
    with pytest.raises(ValueError, match="same device"):
        tensor.seal(key, bytes(12), array, out=torch.zeros(64, dtype=torch.uint8))
    expected = tensor.seal(key, bytes(12), bytes(64))
    result = tensor.seal(tensor_of(key), tensor_of(bytes(12)), array)
    assert result.data.tobytes() == bytes(expected.data) and result.tags.tobytes() == bytes(expected.tags)
