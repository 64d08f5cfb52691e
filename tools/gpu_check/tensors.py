#!/usr/bin/env python3
"""Tests the Python package with arrays on a GPU, of the libraries that are installed. Part of the GPU check (tools/gpu_check).

    tensors.py interface|torch|cupy|numba|jax DEVICE OUT.json

`interface` needs no library: memory of the CUDA driver, by ctypes, with __cuda_array_interface__. All results are compared with those
of the CPU. Rates are written to OUT.json, with those of the library's own random generators for comparison. Exit code: 0; 1 something is wrong;
77 the library is not installed, or it has no GPU.
"""

import ctypes
import importlib
import json
import random
import statistics
import sys
import time

import lockstep
from lockstep import aead, tensor
from lockstep.random import Generator

RANDOM = random.Random(18)
# The number of messages in tests, and the number of bytes of each message.
COUNT, EACH = 64, 5003
# The total number of bytes in measurements, and the number of bytes of each message.
LARGE, MESSAGE = 1 << 30, 1 << 20
RESULTS = {"checks": 0, "rates": []}


class NotTested(Exception):
    """A library or a device is missing; the message names it."""


def check(good, what):
    """Counts a check. If the result is wrong, ends the program."""
    if not good:
        raise AssertionError(f"{what} is WRONG")
    RESULTS["checks"] += 1


class Expected:
    """Messages, and the results that the CPU computes for them before a device is selected."""

    def __init__(self):
        self.keys = [RANDOM.randbytes(32) for _ in range(COUNT)]
        self.rows = RANDOM.randbytes(16 * COUNT)
        self.nonces = [self.rows[16 * index :][:12] for index in range(COUNT)]
        self.plain = RANDOM.randbytes(COUNT * EACH)
        with lockstep.use("cpu"):
            messages = [self.plain[EACH * index :][:EACH] for index in range(COUNT)]
            batch = zip(self.keys, self.nonces, messages, strict=True)
            sealed = [aead.AESGCM(key).encrypt(nonce, message, None) for key, nonce, message in batch]
            self.siv = aead.AESGCMSIV(self.keys[0]).encrypt(self.nonces[0], self.plain, b"aad")
            self.one = aead.AESGCM(self.keys[0]).encrypt(self.nonces[0], self.plain, b"aad")
            self.random = Generator(self.keys[0], 2**64 - 3).bytes(len(self.plain))
        self.sealed = b"".join(message[:-16] for message in sealed)
        self.tags = b"".join(message[-16:] for message in sealed)


def check_library(expected, to_device, to_host, stream=None):
    """Tests all functions that take arrays. `to_device(bytes, shape)` makes an array on the device. `to_host(array)`
    returns the array's bytes."""
    keys = to_device(b"".join(expected.keys), (COUNT, 32))
    nonces = to_device(expected.rows, (COUNT, 16))
    plain = to_device(expected.plain, (COUNT, EACH))
    result = tensor.seal(keys, nonces, plain, out=plain, stream=stream)
    tensor.synchronize()
    check(to_host(plain) == expected.sealed, "the ciphertext in place")
    check(to_host(result.tags) == expected.tags, "a tag")
    check(to_host(result.status) == b"\1" * COUNT, "a status")
    tags = bytearray(expected.tags)
    tags[16 * 7] ^= 4
    opened = tensor.open(keys, nonces, plain, to_device(bytes(tags), (16 * COUNT,)), out=plain, stream=stream)
    tensor.synchronize()
    wanted = expected.plain[: 7 * EACH] + bytes(EACH) + expected.plain[8 * EACH :]
    check(to_host(opened.status) == b"\1" * 7 + b"\2" + b"\1" * (COUNT - 8), "the status of a forged message")
    check(to_host(plain) == wanted, "the plaintext, and zeros for a forged message")
    one = to_device(expected.plain, (len(expected.plain),))
    for name, wanted in (("AESGCM", expected.one), ("AESGCMSIV", expected.siv)):
        cipher = getattr(aead, name)(expected.keys[0])
        sealed = cipher.encrypt(expected.nonces[0], one, b"aad")
        check(to_host(sealed) == wanted, f"{name} of an array")
        check(to_host(cipher.decrypt(expected.nonces[0], sealed, b"aad")) == expected.plain, f"{name} of an array, decrypted")
    Generator(expected.keys[0], 2**64 - 3).fill(one)
    tensor.synchronize()
    check(to_host(one) == expected.random, "the random bytes")


def measure(name, size, call, wait):
    """Returns the median of the seconds of seven calls, after two calls that are not counted."""
    times = []
    for turn in range(9):
        begun = time.perf_counter()
        call()
        wait()
        if turn > 1:
            times.append(time.perf_counter() - begun)
    seconds = statistics.median(times)
    RESULTS["rates"].append({"name": name, "bytes": size, "seconds": seconds})
    print(f"{name}: {size / seconds / 1e9:.2f} GB/s, {seconds * 1e6:.1f} us", flush=True)


def measure_library(library, zeros, wait, peers):
    """Measures the rates of the package, and of `peers`, which are lists of a name, a size and a call. `zeros(shape)`
    makes an array of bytes."""
    size = LARGE
    key = RANDOM.randbytes(32)
    array, nonces = zeros((size // MESSAGE, MESSAGE)), zeros((size // MESSAGE, 16))
    generator = Generator(key)

    def both():
        tensor.synchronize()
        wait()

    measure(f"{library}: lockstep.random, bytes", size, lambda: generator.fill(array), both)
    what = f"{library}: lockstep.tensor.seal, {size >> 20} MiB in messages of 1 MiB"
    measure(what, size, lambda: tensor.seal(key, nonces, array, out=array), both)
    small = zeros((16,))
    measure(f"{library}: lockstep.tensor.seal, 16 bytes", 16, lambda: tensor.seal(key, bytes(12), small, out=small), both)
    measure(f"{library}: lockstep.random, 1 KiB", 1024, lambda: generator.fill(nonces[:64]), both)
    for name, bytes_, call in peers:
        measure(f"{library}: {name}", bytes_, call, wait)


def interface(device, expected):
    """Tests arrays that have only `__cuda_array_interface__`."""
    if device == "cuda:emu":
        # The array is in the memory of the emulator and also has `__cuda_array_interface__`.
        def emulated(content, shape):
            array = EmulatedArray(len(content), shape)
            array.memory.copy_from(content)
            return array

        check_library(expected, emulated, lambda array: getattr(array, "memory", array).tobytes())
        return
    driver = Driver(int(device.split(":")[1]))
    check_library(expected, driver.to_device, driver.to_host)
    check_library(expected, driver.to_device, driver.to_host, stream=driver.stream())
    measure_library("driver", driver.zeros, driver.wait, [])


class EmulatedArray:
    """Memory of the emulator that has only `__cuda_array_interface__`."""

    def __init__(self, size, shape):
        self.memory = tensor.DeviceArray(size, "cuda:emu")
        self.__cuda_array_interface__ = {**self.memory.__cuda_array_interface__, "shape": shape}


class Driver:
    """The functions of the CUDA driver that a test needs."""

    def __init__(self, number):
        try:
            self.driver = ctypes.CDLL("libcuda.so.1")
        except OSError as error:
            raise NotTested(f"no libcuda.so.1: {error}") from error
        self.call("cuInit", 0)
        device, context = ctypes.c_int(), ctypes.c_void_p()
        self.call("cuDeviceGet", ctypes.byref(device), number)
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
        self.call("cuCtxSetCurrent", context)

    def call(self, name, *arguments):
        code = getattr(self.driver, name)(*arguments)
        if code:
            raise RuntimeError(f"{name} failed with {code}")

    def zeros(self, shape):
        return DriverArray(self, shape)

    def to_device(self, content, shape):
        array = DriverArray(self, shape)
        self.call("cuMemcpyHtoD_v2", ctypes.c_uint64(array.address), content, ctypes.c_size_t(len(content)))
        return array

    def to_host(self, array):
        if isinstance(array, tensor.DeviceArray):
            return array.tobytes()
        content = ctypes.create_string_buffer(array.size)
        self.call("cuMemcpyDtoH_v2", content, ctypes.c_uint64(array.address), ctypes.c_size_t(array.size))
        return content.raw

    def stream(self):
        stream = ctypes.c_void_p()
        self.call("cuStreamCreate", ctypes.byref(stream), 1)
        return stream.value

    def wait(self):
        self.call("cuCtxSynchronize")


class DriverArray:
    """Memory of the driver, zeroed. It is never freed, because a test ends soon."""

    def __init__(self, driver, shape):
        self.size = 1
        for length in shape:
            self.size *= length
        address = ctypes.c_uint64()
        driver.call("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(self.size))
        self.address, self.shape = address.value, shape
        driver.call("cuMemsetD8_v2", address, ctypes.c_ubyte(0), ctypes.c_size_t(self.size))
        driver.wait()

    def __getitem__(self, rows):
        part = DriverArray.__new__(DriverArray)
        part.address, part.shape = self.address, (rows.stop, *self.shape[1:])
        part.size = rows.stop * (self.size // self.shape[0])
        return part

    @property
    def __cuda_array_interface__(self):
        return {"version": 3, "shape": self.shape, "typestr": "|u1", "data": (self.address, False), "strides": None}


def library(name):
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise NotTested(f"{name} is not installed") from error


def torch(device, expected):
    """Tests tensors of PyTorch: streams, operators and random numbers. PyTorch's Philox generator is a peer."""
    torch = library("torch")
    if not torch.cuda.is_available():
        raise NotTested("PyTorch has no GPU")
    ops = importlib.import_module("lockstep.torch")
    place = torch.device(device)

    def to_device(content, shape):
        return torch.frombuffer(bytearray(content), dtype=torch.uint8).reshape(shape).to(place)

    def to_host(array):
        return bytes(array.tobytes() if isinstance(array, tensor.DeviceArray) else array.contiguous().cpu().numpy().tobytes())

    check_library(expected, to_device, to_host)
    with torch.cuda.stream(torch.cuda.Stream(place)):
        check_library(expected, to_device, to_host)
    key = to_device(expected.keys[0], (32,))
    nonces = to_device(expected.rows, (COUNT, 16))
    plain = torch.randn(COUNT, 1000, device=place)

    def work(key, nonces, plain):
        noise = torch.zeros_like(plain)
        torch.ops.lockstep.random_bytes(key, 7, noise)
        sealed, tags, _ = torch.ops.lockstep.gcm_seal(key, nonces, plain * 2)
        opened, status = torch.ops.lockstep.gcm_open(key, nonces, sealed, tags)
        return opened + 1, noise.view(torch.uint8), (status == 1).all()

    wanted = work(key, nonces, plain)
    check(torch.equal(wanted[0], plain * 2 + 1) and bool(wanted[2]), "an operator")
    for backend in ("aot_eager", "inductor"):
        try:
            compiled = torch.compile(work, backend=backend, fullgraph=True)(key, nonces, plain)
        except Exception as error:
            # Only `inductor` may fail, because it needs a compiler, which the machine may not have.
            if backend == "aot_eager":
                raise
            print(f"NOT TESTED: torch.compile by {backend}: {type(error).__name__}: {str(error)[:200]}")
            continue
        check(all(torch.equal(a, b) for a, b in zip(wanted, compiled, strict=True)), f"torch.compile by {backend}")
    for name, dtype in (("uniform", "float32"), ("uniform", "float64"), ("normal", "float32"), ("normal", "float64")):
        there = getattr(Generator(expected.keys[0], 5), name)(100_003, dtype, like=key)
        with lockstep.use("cpu"):
            here = getattr(Generator(expected.keys[0], 5), name)(100_003, dtype)
        check(to_host(there) == here.tobytes(), f"{name} numbers of {dtype}: those of the CPU")
    with lockstep.use("cpu"):
        here = Generator(expected.keys[0]).integers(-5, 300, 10_001)
    check(Generator(expected.keys[0]).integers(-5, 300, 10_001, like=key).tolist() == here.tolist(), "integers")
    check(ops.Generator(expected.keys[0], device=place).rand(10).device.type == "cuda", "the device of a generator")
    philox = torch.empty(LARGE, dtype=torch.uint8, device=place)
    floats = philox.view(torch.float32)
    generator = Generator(expected.keys[0])
    peers = [
        ("torch.Tensor.random_, uint8 (Philox)", LARGE, lambda: philox.random_()),
        ("torch.Tensor.random_, int64 (Philox)", LARGE, lambda: philox.view(torch.int64).random_()),
        ("torch.Tensor.uniform_, float32 (Philox)", LARGE, lambda: floats.uniform_()),
        ("torch.Tensor.normal_, float32 (Philox)", LARGE, lambda: floats.normal_()),
        ("torch.Tensor.copy_", LARGE, lambda: philox[: LARGE // 2].copy_(philox[LARGE // 2 :])),
        ("lockstep.random, uniform float32", LARGE // 4, lambda: generator.uniform(LARGE // 16, "float32", like=key)),
        ("lockstep.random, normal float32", LARGE // 4, lambda: generator.normal(LARGE // 16, "float32", like=key)),
    ]
    measure_library("torch", lambda shape: torch.zeros(shape, dtype=torch.uint8, device=place), torch.cuda.synchronize, peers)


def cupy(device, expected):
    """Tests arrays of CuPy. The generators of CuPy are peers."""
    cupy = library("cupy")
    if cupy.cuda.runtime.getDeviceCount() == 0:
        raise NotTested("CuPy has no GPU")
    numpy = library("numpy")

    def to_device(content, shape):
        return cupy.asarray(numpy.frombuffer(content, numpy.uint8).reshape(shape))

    def to_host(array):
        return array.tobytes() if isinstance(array, tensor.DeviceArray) else cupy.asnumpy(array).tobytes()

    check_library(expected, to_device, to_host)
    with cupy.cuda.Stream(non_blocking=True) as stream:
        check_library(expected, to_device, to_host)
        stream.synchronize()
    philox = cupy.random.Generator(cupy.random.Philox4x3210(1))
    peers = [
        ("Generator(Philox4x3210).random, float32", LARGE // 4, lambda: philox.random(LARGE // 16, dtype=cupy.float32)),
        ("cupy.random.bytes (XORWOW)", LARGE // 4, lambda: cupy.random.randint(0, 256, LARGE // 4, dtype=cupy.uint8)),
    ]
    measure_library(
        "cupy", lambda shape: cupy.zeros(shape, cupy.uint8), cupy.cuda.Device(int(device.split(":")[1])).synchronize, peers
    )


def numba(device, expected):
    """Tests arrays of Numba."""
    cuda = library("numba.cuda")
    if not cuda.is_available():
        raise NotTested("Numba has no GPU")
    numpy = library("numpy")

    def to_device(content, shape):
        return cuda.to_device(numpy.frombuffer(content, numpy.uint8).reshape(shape).copy())

    def to_host(array):
        return array.tobytes() if isinstance(array, tensor.DeviceArray) else array.copy_to_host().tobytes()

    check_library(expected, to_device, to_host)


def jax(device, expected):
    """Tests arrays of JAX, which can only be inputs."""
    jax = library("jax")
    numpy = library("numpy")
    if not any(found.platform in ("gpu", "cuda") for found in jax.devices()):
        raise NotTested("JAX has no GPU")
    plain = jax.device_put(numpy.frombuffer(expected.plain, numpy.uint8))
    sealed = aead.AESGCM(expected.keys[0]).encrypt(expected.nonces[0], plain, b"aad")
    host = sealed.tobytes() if isinstance(sealed, tensor.DeviceArray) else numpy.asarray(sealed).tobytes()
    check(host == expected.one, "AESGCM of an array of JAX")


def main():
    sections = {function.__name__: function for function in (interface, torch, cupy, numba, jax)}
    if len(sys.argv) != 4 or sys.argv[1] not in sections:
        print(__doc__.strip(), file=sys.stderr)
        return 2
    section, device, path = sys.argv[1:]
    expected = Expected()
    try:
        if section != "interface" and device == "cuda:emu":
            raise NotTested(f"{section} has no memory of the emulator")
        with lockstep.use(device):
            sections[section](device, expected)
            tensor.synchronize()
    except NotTested as error:
        print(f"NOT TESTED: {error}")
        return 77
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"section": section, "device": device, **RESULTS}, file, indent=1)
    print(f"{section}: {RESULTS['checks']} checks passed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
