"""Random numbers from AES-256 in counter mode. The numbers are the same bit for bit on every device.

| name | content |
|---|---|
| `Generator` | fills arrays on the host and on GPUs with bytes, integers, uniform and normal numbers |
| `BitGenerator` | the source of random words for `numpy.random.Generator` |

Block n of the keystream is the encryption of n, as a 128-bit big-endian number (SP 800-38A, 6.5). Every call of a `Generator` starts with
a whole block of 16 bytes and uses whole blocks, so the results of a call depend only on the key, the position and the arguments.

The numbers are as secret as the key. Two generators with the same key and overlapping positions give the same numbers.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from . import _forks, _random_arrays
from ._native import Keystream

if TYPE_CHECKING:
    from ._random_numpy import BitGenerator

__all__ = ["BitGenerator", "Generator"]

_POSITIONS = 1 << 128
# The number of blocks between the starts of two consecutive streams of `jumped`.
_JUMP = 1 << 64

Shape = int | Sequence[int]


class Generator:
    """A source of random numbers with a key of 32 bytes and a position, which counts blocks of 16 bytes from 0 to 2 ** 128 - 1.

    Threads can share a generator: they get different parts of the keystream. Parent and child of a fork get the same numbers: use
    `jumped` for one of them.

    Raises ValueError for a key of another length, or for a position that is out of range. A generator cannot be pickled or copied,
    since that would store its key: use `state` and `from_state`.
    """

    def __init__(self, key: Any, position: int = 0) -> None:
        self._stream = Keystream(key, _checked(position))
        self._lock = _forks.lock()

    @property
    def position(self) -> int:
        """The block with which the next call starts. If another thread is in a call, this waits until the call ends."""
        with self._lock:
            return self._stream.position

    @position.setter
    def position(self, position: int) -> None:
        with self._lock:
            self._stream.position = _checked(position)

    @property
    def state(self) -> dict[str, Any]:
        """The position, without the key, for `from_state`. It is not secret."""
        return {"generator": "lockstep.random.Generator", "version": 1, "position": self.position}

    @classmethod
    def from_state(cls, key: Any, state: dict[str, Any]) -> "Generator":
        """A generator with a key, at the position of a `state`. Raises ValueError for the state of another version or class."""
        if state.get("generator") != "lockstep.random.Generator" or state.get("version") != 1:
            raise ValueError("not a state of lockstep.random.Generator, version 1")
        return cls(key, state["position"])

    def advance(self, blocks: int) -> "Generator":
        """Moves the position by a number of blocks, which may be negative, modulo 2 ** 128. Returns this generator."""
        with self._lock:
            self.position = (self.position + blocks) % _POSITIONS
        return self

    def jumped(self, jumps: int = 1) -> "Generator":
        """A new generator `jumps` times 2 ** 64 blocks after this one, for work in parallel."""
        new = object.__new__(type(self))
        new._stream = self._stream.at((self.position + jumps * _JUMP) % _POSITIONS)
        new._lock = _forks.lock()
        return new

    def bytes(self, size: int) -> bytes:
        """`size` random bytes."""
        with self._lock:
            return self._stream.bytes(size)

    def fill(self, array: Any, *, stream: Any = None) -> None:
        """Fills an array of any type, on the host or on a GPU, with random bytes. On a GPU, the call returns before the work is
        done.

        Raises TypeError for a read-only array, BufferError for one that is not contiguous, ValueError for a device that is not
        supported. The stream is as in `lockstep.tensor`.
        """
        with self._lock:
            self._stream.fill(array, stream)

    def uniform(self, shape: Shape = (), dtype: Any = "float64", *, like: Any = None, out: Any = None) -> Any:
        """Numbers in [0, 1): multiples of 2 ** -53 for float64 and of 2 ** -24 for float32, each equally likely.

        Fills and returns `out` if it is given. Otherwise returns a new array: of the library and on the device of `like`, or of
        numpy.
        """
        with self._lock:
            return _random_arrays.floats(self._stream, "uniform", shape, dtype, like, out)

    def normal(self, shape: Shape = (), dtype: Any = "float64", *, like: Any = None, out: Any = None) -> Any:
        """Normally distributed numbers with mean 0 and variance 1. They are quantiles of uniform numbers of 63 bits (31 for float32),
        computed by polynomials with an error of about 1e-15. The largest number is 9.1 (6.3 for float32).

        The arguments and the result are those of `uniform`. The coefficients are looked up by the upper bits of a number, so the time
        of a call may reveal something about the numbers to other programs on the same machine. Use these numbers for simulations, not
        as secrets.
        """
        with self._lock:
            return _random_arrays.floats(self._stream, "normal", shape, dtype, like, out)

    def integers(
        self, low: int, high: int, shape: Shape = (), dtype: Any = "int64", *, like: Any = None, out: Any = None
    ) -> Any:
        """Integers from low to high - 1, each equally likely.

        The words of the keystream are taken in order. They have 32 bits if high - low is at most 2 ** 32, otherwise 64 bits. The lowest
        k bits of each word are a number, where k is the number of bits of high - low - 1. If the number is less than high - low, its sum
        with low is the next result; otherwise the word is skipped. The other arguments and the result are as for `uniform`. Raises
        ValueError if low >= high, or if a number does not fit the type.
        """
        with self._lock:
            return _random_arrays.integers(self._stream, low, high, shape, dtype, like, out)

    def __repr__(self) -> str:
        # The stream returns its position at once. `self.position` would wait until calls in other threads have ended.
        return f"<lockstep.random.Generator at position {self._stream.position}>"

    def __reduce__(self) -> Any:
        raise TypeError("a generator is not pickled or copied, since that would store its key: use state and from_state")


def _checked(position: int) -> int:
    if not 0 <= position < _POSITIONS:
        raise ValueError("the position must be from 0 to 2 ** 128 - 1")
    return position


def __getattr__(name: str) -> Any:
    # numpy is imported at the first use.
    if name == "BitGenerator":
        from ._random_numpy import BitGenerator

        return BitGenerator
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
