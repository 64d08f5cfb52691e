"""The source of random words for numpy."""

from collections.abc import Mapping
from typing import Any

import numpy
from numpy.random.bit_generator import ISeedSequence

from . import _forks
from ._native import NumpyBits

_POSITIONS = 1 << 128
_JUMP = 1 << 64


class _NoSeed(ISeedSequence):
    """Takes the place of the seed sequence in numpy's class. A generator with a key has no seed, and its numbers must not depend on one."""

    def generate_state(self, n_words: int, dtype: Any = numpy.uint32) -> Any:
        raise TypeError("a BitGenerator of a key has no seed sequence: use jumped or advance of the BitGenerator")

    def spawn(self, n_children: int) -> Any:
        return self.generate_state(n_children)

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"there is no {name!r}, since a BitGenerator of a key has no seed sequence: use jumped or advance")


# numpy accepts every ISeedSequence, but its type annotations do not permit this class.
_NO_SEED: Any = _NoSeed()


class BitGenerator(numpy.random.BitGenerator):
    """AES-256-CTR for `numpy.random.Generator`: `numpy.random.Generator(lockstep.random.BitGenerator(key))`.

    key: 32 bytes. position: the first block of the keystream, from 0 to 2 ** 128 - 1.

    Words of 32 and 64 bits are taken in order, at multiples of their size, and a double is the upper 53 bits of a word of 64 bits. It
    cannot be pickled or copied, since that would store its key. There is no seed sequence, so `spawn` and `seed_seq` raise TypeError: use
    `jumped`. Parent and child of a fork get the same numbers: use `jumped` for one of them.
    """

    def __init__(self, key: Any, position: int = 0) -> None:
        if hasattr(self, "_bits"):
            # Generators of numpy store the address of the state, so the state must not be replaced by another one.
            raise TypeError("a BitGenerator is initialised once: make a new one")
        super().__init__(_NO_SEED)
        if not 0 <= position < _POSITIONS:
            raise ValueError("the position must be from 0 to 2 ** 128 - 1")
        self._install(NumpyBits(key, position))

    def _install(self, bits: NumpyBits) -> None:
        self._bits = bits
        bits.install(self.capsule)
        _forks.in_child(self, BitGenerator._renew)

    def _renew(self) -> None:
        """Renews the lock and the buffer in the child of a fork. At the fork, another thread could hold the lock and change the buffer."""
        _forks.renew_lock(self.lock)
        self._bits.set_position(*self._bits.position)

    @property
    def state(self) -> Mapping[str, Any]:
        """The position, without the key: the block of the next word, and the bytes of this block that are used up."""
        with self.lock:
            block, used = self._bits.position
        return {"bit_generator": type(self).__name__, "state": {"position": block, "used": used}}

    @state.setter
    def state(self, value: Mapping[str, Any]) -> None:
        if value.get("bit_generator") != type(self).__name__:
            raise ValueError(f"not a state of {type(self).__name__}")
        block, used = value["state"]["position"], value["state"]["used"]
        if not 0 <= block < _POSITIONS:
            raise ValueError("the position must be from 0 to 2 ** 128 - 1")
        with self.lock:
            self._bits.set_position(block, used)

    def advance(self, blocks: int) -> "BitGenerator":
        """Moves the position to the start of the block that is `blocks` blocks after the block of the next word, modulo 2 ** 128. Returns
        this object."""
        with self.lock:
            block, _ = self._bits.position
            self._bits.set_position((block + blocks) % _POSITIONS, 0)
        return self

    def jumped(self, jumps: int = 1) -> "BitGenerator":
        """A new generator, `jumps` times 2 ** 64 blocks after this one."""
        with self.lock:
            block, used = self._bits.position
            bits = self._bits.at((block + jumps * _JUMP) % _POSITIONS, used)
        new = type(self).__new__(type(self))
        numpy.random.BitGenerator.__init__(new, _NO_SEED)
        new._install(bits)
        return new

    @property
    def seed_seq(self) -> Any:
        raise TypeError("a BitGenerator of a key has no seed sequence: use jumped or advance")

    @property
    def _seed_seq(self) -> Any:
        return self.seed_seq

    def spawn(self, n_children: int) -> Any:
        raise TypeError("spawn is not supported, since there is no seed sequence: use jumped or advance")

    def __reduce__(self) -> Any:
        raise TypeError("a BitGenerator of a key is not pickled or copied, since that would store the key: use state")

    def __getstate__(self) -> Any:
        return self.__reduce__()

    def __setstate__(self, state: Any) -> None:
        raise TypeError("a BitGenerator of a key is not made of a pickle: make one with the key, and set its state")
