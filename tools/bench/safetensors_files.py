#!/usr/bin/env python3
"""Measures how long it takes to load a model from an encrypted safetensors file into host memory.

    tools/bench/safetensors_files.py [MIB]    MIB: the size of the model in MiB (512)

Run it with a Python that has lockstep, safetensors and numpy. It also measures cryptotensors, tensorizer (with PyTorch) and PyTorch
if they are installed. The files are cached, the loads alternate, and the best time of each is reported. After each load all tensors are
in separate memory, so PyTorch's plain load, which maps the file, is followed by a copy. Prints a table in Markdown with the bar (the
required value) of each figure: at most 25 % slower than the plain load, and at least twice as fast as the other programs.
"""

import base64
import importlib
import os
import sys
import tempfile

import numpy
import safetensors.numpy

import harness
import lockstep
import lockstep.safetensors.numpy

ROUNDS = 7


def model(mib):
    """Makes the tensors of a transformer: large matrices and small vectors, whose numbers have two bytes."""
    generator, tensors, left, layer = numpy.random.default_rng(1), {}, mib << 20, 0
    while left > 0:
        rows = min(4096, -(-left // (2 * 2048)))
        values = generator.integers(0, 1 << 16, (rows, 2048), numpy.uint16)
        tensors[f"layers.{layer}.weight"] = values
        tensors[f"layers.{layer}.norm"] = values[0].copy()
        left -= values.nbytes + 4096
        layer += 1
    return tensors


def optional(name):
    try:
        return importlib.import_module(name)
    except ImportError as error:
        print(f"not measured: {name} ({error})", file=sys.stderr)
        return None


def cryptotensors(folder, tensors):
    """The program cryptotensors, which encrypts each tensor by AES-256-GCM of the library ring."""
    module, library = optional("cryptotensors.numpy"), optional("cryptotensors")
    if module is None:
        return None

    def text(content):
        return base64.b64encode(content).decode()

    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    signer = Ed25519PrivateKey.generate()
    signing = {
        "kty": "okp",
        "alg": "ed25519",
        "kid": "sign",
        "private": text(signer.private_bytes_raw()),
        "public": text(signer.public_key().public_bytes_raw()),
    }
    encrypting = {"kty": "oct", "alg": "aes256gcm", "kid": "enc", "k": text(os.urandom(32))}
    path = os.path.join(folder, "cryptotensors")
    config = {"enc_key": encrypting, "sign_key": signing}
    module.save_file(tensors, path, config=config)

    def load():
        with library.safe_open(path, framework="np", config=config) as file:
            return {name: file.get_tensor(name) for name in file.keys()}

    return load


def tensorizer(folder, tensors):
    """The program tensorizer, which encrypts by XSalsa20-Poly1305 of libsodium."""
    module, torch = optional("tensorizer"), optional("torch")
    if module is None or torch is None:
        return None
    path, key = os.path.join(folder, "tensorizer"), os.urandom(32)
    serializer = module.TensorSerializer(path, encryption=module.EncryptionParams(key=key))
    serializer.write_state_dict({name: torch.from_numpy(value) for name, value in tensors.items()})
    serializer.close()

    def load():
        parameters = module.DecryptionParams.from_key(key)
        with module.TensorDeserializer(path, device="cpu", encryption=parameters, lazy_load=False) as deserializer:
            return dict(deserializer)

    return load


def loads(folder, tensors):
    """Functions by name. Each of them loads the model."""
    plain, encrypted, key = os.path.join(folder, "plain"), os.path.join(folder, "encrypted"), lockstep.generate_key()
    safetensors.numpy.save_file(tensors, plain)
    lockstep.safetensors.numpy.save_file(tensors, encrypted, key=key)
    found = {
        "lockstep, numpy": lambda: lockstep.safetensors.numpy.load_file(encrypted, key=key),
        "safetensors, numpy": lambda: safetensors.numpy.load_file(plain),
        "cryptotensors, numpy": cryptotensors(folder, tensors),
        "tensorizer, PyTorch": tensorizer(folder, tensors),
    }
    if optional("torch"):
        ours, theirs = optional("lockstep.safetensors.torch"), optional("safetensors.torch")
        found["lockstep, PyTorch"] = lambda: ours.load_file(encrypted, key=key)
        found["safetensors, PyTorch"] = lambda: {name: tensor.clone() for name, tensor in theirs.load_file(plain).items()}
    return {name: load for name, load in found.items() if load}


def check(name, loaded, tensors):
    """Checks that all loads return the same, complete tensors."""
    for key, value in tensors.items():
        if numpy.asarray(loaded[key]).tobytes() != value.tobytes():
            sys.exit(f"{name} loads another tensor {key}")


def main():
    mib = int(sys.argv[1]) if len(sys.argv) > 1 else 512
    tensors = model(mib)
    with tempfile.TemporaryDirectory(dir=os.environ.get("BENCH_FOLDER")) as folder:
        functions = loads(folder, tensors)
        for name, load in functions.items():
            check(name, load(), tensors)
        results = harness.alternate({name: harness.timed(load) for name, load in functions.items()}, ROUNDS)
    times = {name: min(taken) for name, taken in results.items()}
    size = sum(value.nbytes for value in tensors.values())
    ours = {"numpy": times["lockstep, numpy"], "PyTorch": times.get("lockstep, PyTorch")}
    print(f"{harness.machine()}\n")
    harness.head("load", "ms", "GB/s", "time of lockstep for the same framework", "bar")
    for name, taken in times.items():
        library, framework = name.split(", ")
        bar = {"lockstep": "", "safetensors": "<= 1.25"}.get(library, "<= 0.5")
        ratio = f"{ours[framework] / taken:.2f}" if bar else ""
        harness.row(name, f"{taken * 1e3:.0f}", f"{size / taken / 1e9:.2f}", ratio, bar)


if __name__ == "__main__":
    main()
