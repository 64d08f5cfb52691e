"""The command `lockstep`: `python -m lockstep --help`."""

import os
import signal
import sys

from ._native import run_command

if not {"XDG_RUNTIME_DIR", "MESA_VK_DEVICE_SELECT", "NODEVICE_SELECT"} & os.environ.keys():
    # Mesa's device selection layer for Vulkan would print an error where there is no display server.
    os.environ["NODEVICE_SELECT"] = "1"
if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
    # The command calls the handler that it replaces, and Python's would raise KeyboardInterrupt instead of returning the exit code.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
code = run_command(sys.argv[1:])
# The command has ended its threads or left them waiting for signals: nothing of the interpreter is needed any more,
# and Python has printed nothing.
os._exit(code)
