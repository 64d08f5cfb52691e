"""The command `lockstep`: `python -m lockstep --help`."""

import os
import sys

from ._native import run_command

if not {"XDG_RUNTIME_DIR", "MESA_VK_DEVICE_SELECT", "NODEVICE_SELECT"} & os.environ.keys():
    # Mesa's device selection layer for Vulkan would print an error where there is no display server.
    os.environ["NODEVICE_SELECT"] = "1"
code = run_command(sys.argv[1:])
sys.stdout.flush()
# The command has ended its threads or left them waiting for signals: nothing of the interpreter is needed any more.
os._exit(code)
