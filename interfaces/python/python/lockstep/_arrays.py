"""Functions for arrays of other libraries: they make new arrays, find the stream of an array, and refuse immutable arrays. The
extension calls these functions."""

import contextlib
import math
import operator
import sys
from typing import Any

from ._shown import shown

_JAX = frozenset({"jax", "jaxlib"})
# The names of the libraries whose arrays this module treats differently from other arrays.
_LIBRARIES = frozenset({"torch", "cupy", "numpy"}) | _JAX


def package_of(array: Any) -> str:
    """The name of the library of an array, without importing it. A subclass belongs to the library of its base class."""
    packages = [kind.__module__.partition(".")[0] for kind in type(array).__mro__]
    return next((package for package in packages if package in _LIBRARIES), packages[0])


def is_jax(array: Any) -> bool:
    """True for an array of JAX, which cannot be written to."""
    return package_of(array) in _JAX


def _module(name: str) -> Any:
    """The module of the library that an array belongs to. The program has imported it, because the array exists."""
    return sys.modules[name]


def check(array: Any, writes: bool) -> None:
    """Raises an exception if the memory of an array does not have its elements, or if an output must not be changed.

    DLPack does not state all of these properties.
    """
    library = package_of(array)
    if library == "torch":
        if array.layout != _module("torch").strided:
            raise BufferError("the tensor is sparse: give its .to_dense()")
        if array.is_conj() or array.is_neg():
            raise BufferError("the tensor is a conjugate or a negative view: make a copy by .resolve_conj() or .resolve_neg()")
        if writes and array.requires_grad:
            raise TypeError("the tensor requires gradients, so it must not be written to: give its .detach()")
    elif writes and is_jax(array):
        raise TypeError("arrays of JAX are read-only: leave out the output, and a new array is made")


def cuda_array(array: Any, stream: Any) -> tuple[tuple[int, ...], int, int, bool, int, str]:
    """The memory that `__cuda_array_interface__`, version 3, describes: shape, bytes of an element, address, whether it is read-only,
    handle of the stream, and name of the device. `stream` is the argument of the call.

    Raises an exception if the memory does not have the elements of the array, or belongs to another stream.
    """
    interface = array.__cuda_array_interface__
    try:
        shape, typestr = tuple(map(_word, interface["shape"])), str(interface["typestr"])
        address, is_read_only = interface["data"]
        address = 0 if address is None else _word(address)
        strides, producer = interface.get("strides"), interface.get("stream")
        strides, producer = strides and tuple(map(operator.index, strides)), None if producer is None else _word(producer)
        # The flag is a bool of Python or a bool of numpy.
        if not isinstance(is_read_only, bool) and str(getattr(is_read_only, "dtype", None)) != "bool":
            raise TypeError
    except (AttributeError, KeyError, TypeError, ValueError):
        raise ValueError("__cuda_array_interface__ has no valid shape, data, typestr, strides and stream") from None
    if not typestr[2:].isdecimal():
        raise TypeError(f'unknown type of elements "{typestr}"')
    if interface.get("mask") is not None:
        raise TypeError("masked arrays are not supported")
    item = _word(int(typestr[2:]))
    if strides is not None and not _is_compact(shape, strides, item):
        raise BufferError("the array is not contiguous: make a copy, for example by .contiguous()")
    # The handles 0 and 1 both mean the default stream.
    handle = producer if stream is None and producer is not None else stream_of(array, 0, stream)
    if producer is not None and max(producer, 1) != max(handle, 1):
        raise ValueError(
            "the array belongs to another stream: pass that stream, or make the given stream the current one of the library"
        )
    return shape, item, address, bool(is_read_only), handle, _only_cuda_device()


def _word(value: Any) -> int:
    """A number from 0 to 2 ** 64 - 1."""
    number = operator.index(value)
    if not 0 <= number < 1 << 64:
        raise ValueError(f"{shown(value)} is not a number from 0 to 2 ** 64 - 1")
    return number


def _only_cuda_device() -> str:
    """The only device with CUDA, for arrays that do not name their device."""
    names = _cuda_devices()
    if len(names) == 1:
        return names[0]
    if names:
        raise ValueError(
            "there are several devices with CUDA, and __cuda_array_interface__ does not name the device of an array: select one by "
            "lockstep.use, or give an array with __dlpack__"
        )
    from ._native import missing_devices

    why = missing_devices().get("cuda")
    raise ValueError("there is no device with CUDA for this array" + (f": {why}" if why else ""))


def _cuda_devices() -> list[str]:
    from ._native import devices

    return [name for name, _, _ in devices() if name.partition(":")[0] == "cuda"]


def _is_compact(shape: tuple[int, ...], strides: tuple[int, ...], item: int) -> bool:
    if 0 in shape:
        return True
    steps = [math.prod(shape[index + 1 :], start=item) for index in range(len(shape))]
    return len(strides) == len(steps) and all(
        size == 1 or stride == step for size, stride, step in zip(shape, strides, steps)
    )


def on_host(array: Any) -> Any:
    """Returns an array without a buffer as a view of its bytes by numpy, and other objects unchanged.

    Raises ValueError for an array on a device.
    """
    library = package_of(array)
    if library in ("builtins", "numpy") or not (hasattr(array, "__dlpack__") or hasattr(array, "__cuda_array_interface__")):
        return array
    if device_name(array) is not None:
        raise ValueError("the array is on a device: use lockstep.tensor.seal and open, or copy the array to the host")
    if library != "torch":
        import numpy

        host = numpy.atleast_1d(numpy.asarray(array) if is_jax(array) else numpy.from_dlpack(array))
        if not host.flags.c_contiguous:
            raise BufferError("the array is not contiguous: make a copy")
        return host.view(numpy.uint8)
    check(array, False)
    if not array.is_contiguous():
        raise BufferError("the tensor is not contiguous: make a copy by .contiguous()")
    torch = _module("torch")
    return (array.detach().reshape(1) if array.dim() == 0 else array.detach()).view(torch.uint8).numpy()


def result_like(array: Any, like: Any) -> Any:
    """Returns a new array that the extension has filled: as an array of JAX if `like` is one, otherwise unchanged."""
    if not is_jax(like) or device_name(array) == "cuda:emu":
        return array
    return _module("jax").dlpack.from_dlpack(array)


def as_library(array: Any, like: Any) -> Any:
    """Returns a numpy array as a tensor of PyTorch if `like` is a tensor of PyTorch, and otherwise the array unchanged."""
    if package_of(like) != "torch" or package_of(array) != "numpy":
        return array
    return _module("torch").from_numpy(array)


def empty_like(array: Any, size: int, zeroed: bool = False, stream: Any = None) -> Any:
    """A new array of `size` bytes from the library of `array` and on its device, for work on `stream`.

    The bytes are zero if `zeroed`. For arrays of libraries other than PyTorch and CuPy, the result is a `lockstep.tensor.DeviceArray` on a
    device. On the host it is an array of numpy or, if numpy is not loaded, a bytearray.
    """
    library = package_of(array)
    if library == "torch":
        torch = _module("torch")
        make = torch.zeros if zeroed else torch.empty
        with _torch_stream(torch, array, stream):
            return make(size, dtype=torch.uint8, device=array.device)
    if library == "cupy":
        cupy = _module("cupy")
        given = contextlib.nullcontext() if stream is None else cupy.cuda.ExternalStream(stream_of(array, 0, stream))
        with array.device, given:
            return (cupy.zeros if zeroed else cupy.empty)(size, dtype=cupy.uint8)
    name = device_name(array)
    if name is not None:
        from ._native import DeviceArray

        return DeviceArray(size, name)
    numpy = sys.modules.get("numpy")
    return bytearray(size) if numpy is None else numpy.zeros(size, dtype=numpy.uint8)


def _torch_stream(torch: Any, array: Any, stream: Any) -> Any:
    """A context in which PyTorch allocates memory for a stream. The context makes the stream current, because PyTorch assigns memory to
    the current stream."""
    if stream is None or not array.is_cuda:
        return contextlib.nullcontext()
    handle = stream_of(array, array.device.index, stream)
    return torch.cuda.stream(torch.cuda.ExternalStream(handle, device=array.device))


def device_name(array: Any) -> str | None:
    """The name of the device of an array in Lockstep; None for the host."""
    if hasattr(array, "__dlpack_device__"):
        kind, ordinal = array.__dlpack_device__()
        return {2: f"cuda:{ordinal}", 13: f"cuda:{ordinal}", 12: "cuda:emu"}.get(int(kind))
    if hasattr(array, "__cuda_array_interface__"):
        names = _cuda_devices()
        return names[0] if len(names) == 1 else None
    return None


def stream_of(array: Any, ordinal: int, stream: Any) -> int:
    """The handle of the given stream. If there is none, the handle of the current stream of the array's library, or 0 (the default
    stream) if the library has no current stream."""
    if stream is None:
        library = package_of(array)
        if library == "torch" and _module("torch").cuda.is_available():
            return int(_module("torch").cuda.current_stream(ordinal).cuda_stream)
        if library == "cupy":
            # CuPy has a current stream for each device.
            with array.device:
                return int(_module("cupy").cuda.get_current_stream().ptr)
        return 0
    handle: Any = None
    if isinstance(stream, int):
        handle = stream
    elif hasattr(stream, "__cuda_stream__"):
        handle = stream.__cuda_stream__()[1]
    else:
        found = [getattr(stream, name) for name in ("cuda_stream", "ptr", "handle") if hasattr(stream, name)]
        if not found:
            raise TypeError(f"'{type(stream).__name__}' is no stream: give a number, or a stream of PyTorch, CuPy or Numba")
        handle = found[0]
    number = int(getattr(handle, "value", handle) or 0)
    if not 0 <= number < 1 << 64:
        raise ValueError("the handle of a stream is a number from 0 to 2 ** 64 - 1")
    return number
