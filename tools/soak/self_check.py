#!/usr/bin/env python3
"""Checks that the soak detects errors.

    tools/soak/self_check.py LOCKSTEP_SO

A run of some seconds must pass. Then runs are ended by SIGINT, SIGTERM and SIGKILL, some while they start and some
later: none of their processes may remain. In the last run

- clients get another digest than they expect, wait for a silent server, leak memory, connect to a closed port, and end
  each connection with a CBC suite after the handshake;
- forked programs get wrong bytes, hang, leak memory, end with an unknown exit code or too early, and refuse each update
  in place;
- no device fails.

Each of these flaws must be reported, and nothing else.
"""

import sys

sys.dont_write_bytecode = True

import ctypes
import json
import os
import random
import signal
import subprocess
import tempfile
import time

import soak

SECONDS = "8"
# The time limit of requests in a soak with flaws. It cannot be shorter, because requests on the emulator take seconds on a loaded
# machine. One client waits until this limit is exceeded.
FLAWED_SECONDS, FLAWED_PATIENCE = "12", "12"
CLIENT, FORKS = "client that must fail: ", "forks that must fail: "
FLAWS = {
    (CLIENT + "wrong", "wrong"),
    (CLIENT + "hang", "hung"),
    (CLIENT + "leak", "memory"),
    (CLIENT + "refused", "failed"),
    (CLIENT + "aborted", "aborted"),
    (FORKS + "wrong", "wrong"),
    (FORKS + "hang", "hung"),
    (FORKS + "leak", "memory"),
    (FORKS + "code", "failed"),
    (FORKS + "early", "early"),
    (FORKS + "refused", "refused"),
    # No device fails in this soak, which is an error that the soak must report.
    ("soak", "idle"),
}

# Messages that nginx logs about a worker. True for the messages that mean a crash.
LOGGED = {
    "[alert] 8#8: worker process 9 exited on signal 11 (core dumped)": True,
    "[alert] 8#8: worker process 9 exited with fatal code 2 and cannot be respawned": True,
    "[notice] 8#8: worker process 9 exited with code 1": True,
    "[notice] 8#8: worker process 9 exited with code 0": False,
    "[notice] 9#9: exiting": False,
}
# The minimum number of processes of a soak: servers with their workers, clients, and forking programs.
PROCESSES = 12
PATIENCE = 60
# The maximum number of seconds after which the early runs are interrupted. A soak needs about two seconds to start all its processes.
EARLY_SECONDS = 3
EARLY_RUNS = 6
PR_SET_CHILD_SUBREAPER = 36


def command(module):
    return [sys.executable, os.path.join(os.path.dirname(os.path.abspath(__file__)), "soak.py"), module]


def descendants(pid):
    """The processes that a process has started, directly or indirectly."""
    try:
        with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:
            children = [int(child) for child in file.read().split()]
    except OSError:
        return []
    return children + [each for child in children for each in descendants(child)]


def wait_until(condition):
    end = time.monotonic() + PATIENCE
    while not (value := condition()) and time.monotonic() < end:
        time.sleep(0.1)
    return value


def left():
    """Returns the processes that an ended soak has left. They are now children of this process."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass
    return descendants(os.getpid())


def name(pid):
    try:
        with open(f"/proc/{pid}/cmdline", encoding="utf-8", errors="replace") as file:
            return f"{pid} {file.read(80)}".replace("\0", " ")
    except OSError:
        return str(pid)


def interrupted(module, number, seconds):
    """Ends a soak by a signal: after a number of seconds, or when the soak has started all of its processes. If something is wrong
    afterwards, returns a message."""
    environment = {**os.environ, "SOAK_SECONDS": "600"}
    with subprocess.Popen(command(module), env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as running:
        try:
            if seconds is not None:
                time.sleep(seconds)
            elif not wait_until(lambda: len(descendants(running.pid)) >= PROCESSES):
                return "it has not started its processes"
            running.send_signal(number)
            running.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            return "it does not end"
        finally:
            if running.poll() is None:
                running.terminate()
    if wait_until(lambda: not left()):
        return None
    alive = left()
    why = f"left: {[name(pid) for pid in alive]}"
    for pid in alive:
        os.kill(pid, signal.SIGKILL)
    return why


def interruptions(module):
    """Interrupts soaks at different times. Returns true if none of their processes remains."""
    signals = (signal.SIGINT, signal.SIGTERM, signal.SIGKILL)
    cases = [(number, None) for number in signals]
    cases += [(signals[run % 3], random.uniform(0, EARLY_SECONDS)) for run in range(EARLY_RUNS)]
    for number, seconds in cases:
        if why := interrupted(module, number, seconds):
            when = "once it had started" if seconds is None else f"after {seconds:.3f} seconds"
            print(f"{number.name} {when}: {why}", file=sys.stderr)
            return False
    print(f"soak, ended by signals, {len(cases)} times: all processes have ended")
    return True


def short(module, **more):
    """Runs a short soak. Returns its exit code and its figures."""
    environment = {**os.environ, "SOAK_SECONDS": SECONDS, **more}
    with subprocess.Popen(
        command(module), env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as running:
        try:
            out, err = running.communicate()
        except BaseException:
            # When the soak is ended, it ends the processes that it has started.
            running.terminate()
            raise
    lines = out.splitlines()
    if not lines or not lines[-1].startswith("{"):
        sys.exit(f"the soak did not come to its end: {err.strip()}")
    return running.returncode, json.loads(lines[-1]), err


def main():
    if len(sys.argv) != 2 or sys.argv[1] in ("-h", "--help"):
        print(__doc__.strip())
        return 2
    # A shell starts background processes with SIGINT ignored. This statement handles SIGINT even then.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    if ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1):
        sys.exit("orphans cannot be found: prctl fails")
    for line, crash in LOGGED.items():
        if bool(soak.CRASH.search(line)) != crash:
            sys.exit(f"is this line of nginx a crash? {line}")
    # A soak that is killed does not remove its folder, so this folder contains it.
    with tempfile.TemporaryDirectory(prefix="lockstep-soak-") as folder:
        # Workers without root's rights must read the files in this folder.
        os.chmod(folder, 0o755)
        os.environ["TMPDIR"] = folder
        return checked(sys.argv[1])


def checked(module):
    """Runs all checks, and returns the exit code."""
    code, figures, err = short(module)
    if code != 0:
        print(f"the short soak failed:\n{err}", file=sys.stderr)
        return 1
    print(f"short soak: {figures['requests']} requests, {figures['forks']} forks, {figures['failures']} failures, passed")
    if not interruptions(module):
        return 1
    code, figures, err = short(module, SOAK_FLAWS="1", SOAK_SECONDS=FLAWED_SECONDS, SOAK_PATIENCE=FLAWED_PATIENCE)
    found = {(problem["who"], problem["kind"]) for problem in figures["problems"]}
    missing, more = FLAWS - found, found - FLAWS
    if code != 1 or missing or more:
        print(f"with flaws: exit code {code}, not found {missing}, found beside them {more}\n{err}", file=sys.stderr)
        return 1
    print(f"soak with flaws: all {len(FLAWS)} were found")
    return 0


if __name__ == "__main__":
    sys.exit(main())
