"""Runs blocks of shell at a terminal, and statements of Python in one interpreter."""

import contextlib
import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
import time

# The time limit of a block in seconds. A block that takes longer has failed.
LIMIT = 120
# Matches the end of a prompt for a passphrase. The second value is the passphrase that the script types there.
PROMPT = re.compile(rb"([Pp]assphrase for '[^']*'|[Pp]assphrase|The same again): $")
PASSPHRASE = b"correct horse battery staple\n"
READS_STATEMENTS = r"""
import contextlib, io, json, os, sys, traceback
names = {"__name__": "__main__"}
# Standard input and output of the statements and their child processes are separate from the channel for statements
# and replies.
statements, replies = os.fdopen(os.dup(0)), os.fdopen(os.dup(1), "w")
os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
os.dup2(2, 1)
for line in statements:
    printed, succeeded = io.StringIO(), True
    with contextlib.redirect_stdout(printed):
        try:
            exec(compile(json.loads(line), "example", "exec"), names)
        except BaseException:
            succeeded = False
            printed.write(traceback.format_exc())
    print(json.dumps([succeeded, printed.getvalue()]), file=replies, flush=True)
"""


def run(code, folder, environment):
    """Runs a script of bash at a terminal. Returns its exit status and what it has printed."""
    child, terminal = pty.fork()
    if child == 0:
        os.chdir(folder)
        os.execvpe("bash", ["bash", "-euo", "pipefail", "-c", code], environment)
    printed, answered, end = b"", -1, time.monotonic() + LIMIT
    while time.monotonic() < end:
        if not select.select([terminal], [], [], 0.5)[0]:
            continue
        try:
            piece = os.read(terminal, 65536)
        except OSError:
            piece = b""
        if not piece:
            break
        printed += piece
        if PROMPT.search(printed) and len(printed) > answered:
            answered = len(printed)
            os.write(terminal, PASSPHRASE)
    else:
        os.kill(child, signal.SIGKILL)
        printed += f"\nkilled after {LIMIT} seconds".encode()
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    os.close(terminal)
    return status, printed.decode(errors="replace").replace("\r\n", "\n")


class Python:
    """A Python interpreter that runs blocks one after the other and keeps their names."""

    def __init__(self, folder, environment):
        command = [sys.executable, "-c", READS_STATEMENTS]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        self.process = subprocess.Popen(command, cwd=folder, env=environment, text=True, **pipes)

    def run(self, code):
        """Runs a block. Returns whether it has succeeded, and what it has printed."""
        try:
            self.process.stdin.write(json.dumps(code) + "\n")
            self.process.stdin.flush()
        except OSError:
            return False, "the interpreter has ended"
        if not select.select([self.process.stdout], [], [], LIMIT)[0]:
            self.process.kill()
            return False, f"killed after {LIMIT} seconds"
        reply = self.process.stdout.readline()
        return json.loads(reply) if reply else (False, "the interpreter has ended")

    def close(self):
        # The process may have ended already. Then the pipe is closed.
        with contextlib.suppress(OSError):
            self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait()
