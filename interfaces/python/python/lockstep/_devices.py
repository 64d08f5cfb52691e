"""Lists, selects and tests the devices that do the work."""

from __future__ import annotations

from dataclasses import dataclass
from types import TracebackType
from typing import final

from . import _native


@final
@dataclass(frozen=True, repr=False)
class Device:
    """A device that Lockstep can use: an element of `devices`.

    name: the name by which `use` selects it, such as "cpu" or "cuda:0"; description: the model; kernels: the names of the kernels that
    it can run.

    >>> [device.name for device in lockstep.devices() if device.name == "cpu"]
    ['cpu']
    """

    __module__ = "lockstep"

    name: str
    description: str
    kernels: tuple[str, ...]

    def __repr__(self) -> str:
        return f"<lockstep.Device {self.name}: {self.description}>"


@final
class Selection:
    """The result of `use`. As a context manager it restores the earlier selection at the end of the block.

    >>> with lockstep.use(threads=2) as selection:
    ...     isinstance(selection, lockstep.Selection)
    True
    """

    __module__ = "lockstep"

    def __init__(self, arguments: dict[str, object], earlier: _native.EarlierSelection) -> None:
        self._arguments, self._earlier = arguments, earlier

    def __repr__(self) -> str:
        given = [f"{name}={value!r}" for name, value in self._arguments.items() if value is not None]
        return f"<lockstep.Selection({', '.join(given)})>"

    def __enter__(self) -> Selection:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None = None,
        value: BaseException | None = None,
        traceback: TracebackType | None = None,
    ) -> None:
        self._earlier.restore()


def use(
    device: str | None = None, *, kernel: str | None = None, threads: int | None = None, verify: str | None = None
) -> Selection:
    """Selects the device, the kernel, the number of CPU threads and the verification of results for all calls of the process.

    device: a name such as "cpu" or "cuda:0"; kernel: a name such as "cpu/vaes512"; threads: the number of CPU threads; verify: "off",
    "sample" or "full". A parameter that is None gets the value of the environment variable LOCKSTEP_DEVICE, LOCKSTEP_KERNEL,
    LOCKSTEP_THREADS or LOCKSTEP_VERIFY. If the variable is not set, the parameter gets its default: the planner chooses the device and the
    kernel, there is one thread for each processor, and samples of the results are verified.

    Returns an object that restores the earlier selection when it is used as a context manager. Raises ValueError for a device, a
    kernel or a number of threads that does not exist; the selection then does not change.

    >>> with lockstep.use("cpu", threads=1):
    ...     [device.name for device in lockstep.devices()]
    ['cpu']
    """
    earlier = _native.select(device, kernel, threads, verify)
    return Selection({"device": device, "kernel": kernel, "threads": threads, "verify": verify}, earlier)


@final
@dataclass(frozen=True, repr=False)
class SelfTest:
    """The result of the self-test of a kernel: an element of `selftest`.

    device: the name of the device; kernel: the name of the kernel; operations: the number of operations that were tested; failures: a text
    for each failure; passed: True if there was no failure.

    >>> with lockstep.use("cpu"):
    ...     lockstep.selftest()[0].device
    'cpu'
    """

    __module__ = "lockstep"

    device: str
    kernel: str
    operations: int
    failures: tuple[str, ...]

    @property
    def passed(self) -> bool:
        return not self.failures

    def __repr__(self) -> str:
        verdict = "passed" if self.passed else "FAILED"
        return f"<lockstep.SelfTest {self.device} {self.kernel}: {verdict}, {self.operations} operations>"


def devices() -> list[Device]:
    """The devices that Lockstep can use on this machine. The call starts the drivers of GPUs.

    >>> "cpu" in [device.name for device in lockstep.devices()]
    True
    """
    return [Device(name, description, tuple(kernels)) for name, description, kernels in _native.devices()]


def selftest() -> list[SelfTest]:
    """Tests every kernel of the selected devices against known answers, and returns the results.

    Devices for tests and study, such as "cuda:emu", are tested only if they are named, by `use` or LOCKSTEP_DEVICE. Each kernel
    is also tested automatically before its first use.

    >>> with lockstep.use("cpu"):
    ...     all(result.passed for result in lockstep.selftest())
    True
    """
    results = _native.selftest()
    return [SelfTest(device, kernel, operations, tuple(failures)) for device, kernel, operations, failures in results]
