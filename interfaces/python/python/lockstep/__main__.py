"""Runs the command `lockstep`. `python -m lockstep` runs it too."""

import os
import signal
import sys
from typing import NoReturn

from ._native import run_command


def main() -> NoReturn:
    """Runs the command with the arguments of the process, and ends the process."""
    if not {"XDG_RUNTIME_DIR", "MESA_VK_DEVICE_SELECT", "NODEVICE_SELECT"} & os.environ.keys():
        # Mesa's device selection layer for Vulkan would print an error where there is no display server.
        os.environ["NODEVICE_SELECT"] = "1"
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        # The command calls the signal handler that it replaces. Python's handler would raise KeyboardInterrupt, and the exit code of the
        # command would be lost.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    # If a standard stream was closed when Python started, Python has no object for the stream. The next file that is opened, such as a
    # pipe, would get the number of the stream, and the command would read from this file or write to it.
    closed = [number for number, stream in enumerate((sys.__stdin__, sys.__stdout__, sys.__stderr__)) if stream is None]
    while closed and os.open(os.devnull, os.O_RDWR) < max(closed):
        pass
    code = run_command(sys.argv[1:], closed)
    # The process may end without finalizing the interpreter: only the threads that wait for signals are left, and Python has printed
    # nothing that is still in a buffer.
    os._exit(code)


if __name__ == "__main__":
    main()
