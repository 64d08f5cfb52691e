"""Tests that keys do not remain in memory. A program uses each class and function with a key and drops the key, and this test searches
the memory of the program.

After each step, the stack of the main thread is searched. At the end, all writable memory is searched.
"""

import os
import re
import subprocess
import sys

import pyarrow
import pyarrow.parquet
import pytest
from conftest import started
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from residue import byte

PROGRAM = os.path.join(os.path.dirname(os.path.abspath(__file__)), "residue.py")
# The program gets this text in its environment. The operating system stores the environment on the stack, so the search must find the
# text there.
ON_STACK = "lockstep residue control 7f3a"


def sbox():
    """The S-box of FIPS 197, 5.1.1."""
    def double(value):
        return value << 1 ^ (0x11B if value & 0x80 else 0)

    logs, power = {}, 1
    for exponent in range(255):
        logs[power] = exponent
        power ^= double(power)
    powers = {exponent: value for value, exponent in logs.items()}
    result = []
    for value in range(256):
        inverse = powers[-logs[value] % 255] if value else 0
        rotated = [inverse << shift | inverse >> 8 - shift for shift in range(5)]
        result.append((rotated[0] ^ rotated[1] ^ rotated[2] ^ rotated[3] ^ rotated[4] ^ 0x63) & 0xFF)
    return bytes(result)


SBOX = sbox()


def round_keys(key):
    """The round keys of a key (FIPS 197, 5.2)."""
    count, words = len(key) // 4, [key[at : at + 4] for at in range(0, len(key), 4)]
    constant = 1
    while len(words) < 4 * (count + 7):
        word = words[-1]
        if len(words) % count == 0:
            word = bytes(SBOX[value] for value in word[1:] + word[:1])
            word = bytes([word[0] ^ constant]) + word[1:]
            constant = constant << 1 ^ (0x11B if constant & 0x80 else 0)
        elif count > 6 and len(words) % count == 4:
            word = bytes(SBOX[value] for value in word)
        words.append(bytes(one ^ other for one, other in zip(word, words[-count])))
    return [b"".join(words[at : at + 4]) for at in range(0, len(words), 4)]


def secrets(step, size):
    """The secrets of a step, by name: the halves of its key, round keys of each AES key in it, and the hash key H of GCM."""
    key = bytes(byte(step, index) for index in range(size))
    found = {f"bytes {at} to {at + 15} of the key": key[at : at + 16] for at in range(0, size, 16)}
    for start in (0, 32)[: 2 if size == 64 else 1]:
        expanded = round_keys(key[start : start + 32])
        found[f"a round key ({start})"], found[f"the last round key ({start})"] = expanded[2], expanded[-1]
    h = Cipher(algorithms.AES(key[:32]), modes.ECB()).encryptor().update(bytes(16))
    return found | {"H of GCM": h, "H of GCM, reversed": h[::-1]}


def memory(process, names=None):
    """The writable mappings of a process: name and content."""
    with open(f"/proc/{process}/maps", encoding="ascii") as maps, open(f"/proc/{process}/mem", "rb", 0) as file:
        for line in maps:
            start, end, rights, name = re.fullmatch(r"(\w+)-(\w+) (\S+) \S+ \S+ \S+ *(.*)\n", line).groups()
            if not rights.startswith("rw") or name.startswith("[vv") or (names and name not in names):
                continue
            file.seek(int(start, 16))
            try:
                content = file.read(int(end, 16) - int(start, 16))
            except OSError:
                # A mapping that cannot be read is skipped: it is memory of a device.
                continue
            # Pages of zeros are removed to shorten the search: most pages are zeros, and such a page contains no secret.
            yield name or start, content.replace(bytes(4096), b"")


@pytest.mark.skipif(not os.path.exists("/proc/self/mem"), reason="NOT TESTED: residue of keys, which needs /proc")
def test_no_key_remains_in_memory(tmp_path):
    pyarrow.parquet.write_table(pyarrow.table({"a": list(range(1000))}), tmp_path / "table.parquet")
    environment = {**os.environ, "RESIDUE_CONTROL": ON_STACK, "LD_BIND_NOW": "1"}
    command = [sys.executable, PROGRAM, tmp_path]
    finds, needles, control = [], {}, {}
    with started(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment) as program:
        for step in range(1000):
            program.stdin.write(b"x")
            program.stdin.flush()
            size, name = program.stdout.readline().decode().strip().split(" ", 1)
            if name == "control":
                control = secrets(step, int(size))
                break
            wanted = secrets(step, int(size))
            [(_, stack)] = memory(program.pid, ["[stack]"])
            assert ON_STACK.encode() in stack
            finds += [f"{name}: {what} on the stack" for what, secret in wanted.items() if secret in stack]
            needles[name] = wanted
        is_control_found = False
        for place, content in memory(program.pid):
            is_control_found |= any(secret in content for secret in control.values())
            for name, wanted in needles.items():
                for what, secret in wanted.items():
                    count = content.count(secret)
                    finds += [f"{name}: {what}, {count} times in {place}"] if count else []
        program.stdin.write(b"x")
    assert program.returncode == 0 and len(needles) > 20
    assert is_control_found, "the search did not find the key of a cipher that is alive"
    assert not finds, "\n".join(finds)


def test_round_keys():
    # The key and the expected round keys are those of FIPS 197, appendix A.1.
    expanded = round_keys(bytes.fromhex("2b7e151628aed2a6abf7158809cf4f3c"))
    assert expanded[1].hex() == "a0fafe1788542cb123a339392a6c7605" and expanded[-1].hex() == "d014f9a8c9ee2589e13f0cc8b6630ca6"
