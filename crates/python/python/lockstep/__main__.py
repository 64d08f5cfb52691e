"""The command `lockstep`: `python -m lockstep --help`."""

import os
import signal
import sys

from ._native import run_command

if not {"XDG_RUNTIME_DIR", "MESA_VK_DEVICE_SELECT", "NODEVICE_SELECT"} & os.environ.keys():
    # Mesa's device selection layer for Vulkan would print an error where there is no display server.
    os.environ["NODEVICE_SELECT"] = "1"
if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
    # The command calls the handler that it replaces. Python's handler would raise KeyboardInterrupt, and the exit code would be lost.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
code = run_command(sys.argv[1:])
# The command has ended its threads, except those that wait for signals. Python has printed nothing, so the interpreter
# does not have to be finalized.
os._exit(code)
