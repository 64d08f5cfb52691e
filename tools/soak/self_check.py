#!/usr/bin/env python3
"""Does the soak find what it looks for?

    tools/soak/self_check.py LOCKSTEP_SO

Three runs of some seconds: one that must pass; one that is interrupted and must end all of its processes; and one in which clients get another digest than they expect, wait for a
server that is silent, leak memory and meet a closed port, forked programs likewise, and no device fails. Each of these
flaws must be reported, and nothing else.
"""

import sys

sys.dont_write_bytecode = True

import json
import os
import signal
import subprocess
import time

SECONDS = "8"
CLIENT, FORKS = "client that must fail: ", "forks that must fail: "
FLAWS = {
    (CLIENT + "wrong", "wrong"),
    (CLIENT + "hang", "hung"),
    (CLIENT + "leak", "memory"),
    (CLIENT + "refused", "failed"),
    (FORKS + "wrong", "wrong"),
    (FORKS + "hang", "hung"),
    (FORKS + "leak", "memory"),
    # No device has failed.
    ("soak", "idle"),
}


# How many processes a soak has at least: two servers with two workers, clients, forking programs.
PROCESSES = 10
PATIENCE = 60


def command(module):
    return [sys.executable, os.path.join(os.path.dirname(os.path.abspath(__file__)), "soak.py"), module]


def descendants(pid):
    """The processes that a process has started, and theirs."""
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


def interrupted(module, number):
    """What is left of an interrupted soak."""
    environment = {**os.environ, "SOAK_SECONDS": "600"}
    with subprocess.Popen(command(module), env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as running:
        try:
            if not wait_until(lambda: len(descendants(running.pid)) >= PROCESSES):
                return "it has not started its processes"
            started = descendants(running.pid)
            running.send_signal(number)
            running.communicate(timeout=PATIENCE)
        finally:
            if running.poll() is None:
                running.terminate()
    alive = [pid for pid in started if os.path.exists(f"/proc/{pid}")]
    # Those whose parent ended first are waited for by the system.
    return None if wait_until(lambda: not any(os.path.exists(f"/proc/{pid}") for pid in started)) else f"alive: {alive}"


def soak(module, **more):
    """Exit code and figures of a short soak."""
    environment = {**os.environ, "SOAK_SECONDS": SECONDS, **more}
    with subprocess.Popen(
        command(module), env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as running:
        try:
            out, err = running.communicate()
        except BaseException:
            # It ends its own processes.
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
    code, figures, err = soak(sys.argv[1])
    if code != 0:
        print(f"the short soak failed:\n{err}", file=sys.stderr)
        return 1
    print(f"short soak: {figures['requests']} requests, {figures['forks']} forks, {figures['failures']} failures, passed")
    for number in (signal.SIGINT, signal.SIGTERM):
        if left := interrupted(sys.argv[1], number):
            print(f"interrupted by {number.name}: {left}", file=sys.stderr)
            return 1
    print("soak, interrupted: all processes have ended")
    code, figures, err = soak(sys.argv[1], SOAK_FLAWS="1", SOAK_PATIENCE="3")
    found = {(problem["who"], problem["kind"]) for problem in figures["problems"]}
    missing, more = FLAWS - found, found - FLAWS
    if code != 1 or missing or more:
        print(f"with flaws: exit code {code}, not found {missing}, found beside them {more}\n{err}", file=sys.stderr)
        return 1
    print(f"soak with flaws: all {len(FLAWS)} were found")
    return 0


if __name__ == "__main__":
    sys.exit(main())
