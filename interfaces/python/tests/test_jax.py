"""Arrays of JAX, on the CPU. tools/torch_test.sh runs these tests; elsewhere they are skipped without JAX."""

import numpy
import pytest
from conftest import data, torch_module
from cryptography.hazmat.primitives.ciphers import aead as pyca

import lockstep
import lockstep.parquet
from lockstep import aead, hazmat, tensor
from lockstep.random import Generator

jax = torch_module("jax")
from jax import numpy as jnp  # noqa: E402 (after the check that JAX is installed)


def content(array):
    return numpy.asarray(array).tobytes()


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int8", "bool", "complex64"])
def test_classes(key, dtype):
    plain, nonce = jnp.ones((30, 4), dtype=dtype), data(12)
    sealed = aead.AESGCM(key).encrypt(nonce, plain, b"aad")
    assert isinstance(sealed, jax.Array)
    assert content(sealed) == pyca.AESGCM(key).encrypt(nonce, content(plain), b"aad")
    opened = aead.AESGCM(key).decrypt(nonce, sealed, b"aad")
    assert isinstance(opened, jax.Array) and content(opened) == content(plain)
    with pytest.raises(lockstep.InvalidTag):
        aead.AESGCM(key).decrypt(nonce, sealed.at[5].add(1), b"aad")


@pytest.mark.parametrize("mode", ["AESGCM", "AESGCMSIV"])
def test_batches(key, mode):
    kind, nonces = getattr(aead, mode), data(4 * 12)
    rows, plain = jnp.asarray(numpy.frombuffer(nonces, numpy.uint8).reshape(4, 12)), jnp.arange(100, dtype="float32")
    result = tensor.seal(jnp.asarray(numpy.frombuffer(key, numpy.uint8)), rows, plain, mode=kind)
    assert all(isinstance(array, jax.Array) for array in result)
    expected = getattr(pyca, mode)(key).encrypt(nonces[24:36], content(plain)[200:300], None)
    assert content(result.data)[200:300] + content(result.tags)[32:48] == expected
    opened = tensor.open(key, rows, result.data, result.tags.at[0].add(1), mode=kind)
    assert content(opened.data) == bytes(100) + content(plain)[100:]
    with pytest.raises(lockstep.InvalidTag, match="message 0$"):
        tensor.check(opened.status)
    many = aead.encrypt_many(kind, key, rows, plain.reshape(4, 25))
    assert many[2].tobytes() == expected


def test_outputs_are_refused(key):
    array = jnp.zeros(100, dtype="uint8")
    for call in (
        lambda: aead.AESGCM(key).encrypt_into(data(12), array[:84], None, array),
        lambda: tensor.seal(key, data(12), array, out=array),
        lambda: hazmat.encrypt_into("CTR", key, array, array, data(16)),
        lambda: Generator(key).fill(array),
    ):
        with pytest.raises(TypeError, match="JAX are read-only"):
            call()
    assert not array.any()
    out = numpy.zeros(100, numpy.uint8)
    assert tensor.seal(key, data(12), array, out=out).data is out


def test_numbers_and_raw_modes(key):
    numbers = Generator(key).uniform(50, "float32", like=jnp.zeros(0))
    assert isinstance(numbers, jax.Array) and content(numbers) == Generator(key).uniform(50, "float32").tobytes()
    iv = data(16)
    result = hazmat.encrypt("CTR", key, numbers, iv)
    assert isinstance(result, jax.Array) and content(result) == hazmat.encrypt("CTR", key, content(numbers), iv)


def test_parquet_modules(key):
    nonce, aad = data(12), b"associated data"
    sealed = nonce + pyca.AESGCM(key).encrypt(nonce, b"the page", aad)
    module = jnp.asarray(numpy.frombuffer(len(sealed).to_bytes(4, "little") + sealed, numpy.uint8))
    plain, refused = lockstep.parquet.decrypt_modules([module, module.at[20].add(1)], key, [aad, aad])
    assert isinstance(plain, jax.Array) and content(plain) == b"the page"
    assert refused is None
