"""The types of arguments. They also exist at run time, so that `typing.get_type_hints` finds them."""

import os
from typing import Any, Protocol


class _Buffer(Protocol):
    def __buffer__(self, flags: int, /) -> memoryview: ...


# A numpy array. Numpy declares `__buffer__` only for Python 3.12 and later, so this protocol has another attribute of its arrays.
class _Array(Protocol):
    @property
    def __array_interface__(self) -> dict[str, Any]: ...


# An array of another library: a tensor of PyTorch, for example.
class _Dlpack(Protocol):
    def __dlpack__(self, *args: Any, **kwargs: Any) -> Any: ...


class _CudaArray(Protocol):
    @property
    def __cuda_array_interface__(self) -> dict[str, Any]: ...


Tensor = _Dlpack | _CudaArray
# A type of bytes in memory: bytes, bytearray, memoryview, numpy's arrays and others.
Buffer = _Buffer | _Array
Path = str | os.PathLike[str]
