#!/usr/bin/env python3
"""Tests run.sh of the GPU check with parts that do nothing: states, repetition, limits, signals, full disks. Takes some seconds.

    tools/gpu_check/self_test.py
"""

import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
# A parts.sh for this test. If the folder `orders` has a file with the name of the part, the part runs the commands in
# this file.
PARTS = """#!/usr/bin/env bash
echo "$1 on $3"
echo '{"step": "s", "command": "say \\"x\\"", "seconds": 0, "exit": 0}' >>"$2/.$1.steps"
echo '{"step": "t", "command": "u", "seconds": 0, "exit": 0}' >>"$2/.$1.steps"
echo result >"$2/$1.txt"
echo "$1" >>"$2/order"
[ ! -e "$(dirname "$0")/orders/$1" ] || . "$(dirname "$0")/orders/$1"
"""


class Folder:
    """A folder like the one that `gpu_check.sh build` makes, and a folder for the results."""

    def __init__(self, root):
        self.folder = root / "gpu check"
        self.out = root / "out"
        (self.folder / "orders").mkdir(parents=True)
        shutil.copy(HERE / "run.sh", self.folder)
        (self.folder / "parts.sh").write_text(PARTS)
        text = (HERE / "run.sh").read_text()
        self.names = re.findall(r"(?m)^([a-z-]+) +\d+ +\d+$", text)

    def order(self, part, commands):
        """Sets the commands that a part runs."""
        (self.folder / "orders" / part).write_text(commands)

    def change(self, part, least, limit):
        """Changes the limits of a part."""
        path = self.folder / "run.sh"
        path.write_text(re.sub(rf"(?m)^{part} +\d+ +\d+$", f"{part} {least} {limit}", path.read_text()))

    def start(self, *arguments, **environment):
        command = ["bash", self.folder / "run.sh", self.out, *arguments]
        environment = {**os.environ, **environment}
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment)

    def run(self, code, *arguments, **environment):
        """Runs run.sh to its end, and returns its output. Fails if the exit code differs from `code`."""
        running = self.start(*arguments, **environment)
        output, _ = running.communicate(timeout=60)
        assert running.returncode == code, f"exit code {running.returncode}, not {code}:\n{output}"
        return output

    def ran(self):
        """The parts that have started since the last call, in order."""
        path = self.out / "order"
        names = path.read_text().split() if path.exists() else []
        path.unlink(missing_ok=True)
        return names

    def part(self, name):
        return json.loads((self.out / f"{name}.json").read_text())

    def states(self):
        return {name: self.part(name)["state"] for name in self.names if (self.out / f"{name}.json").exists()}


def wait_for(condition, what):
    end = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < end, f"{what} did not happen"
        time.sleep(0.02)


def parts_and_repetition(folder):
    folder.order("suite", "echo 'FAILED: a step'; exit 1")
    folder.order("sanitizer", "echo 'NOT TESTED: no sanitizer'; exit 77")
    output = folder.run(1, "cuda:7")
    assert folder.ran() == folder.names and len(folder.names) == 15
    expected = dict.fromkeys(folder.names, "done") | {"suite": "failed", "sanitizer": "not tested"}
    assert folder.states() == expected
    assert "FAILED: a step" in output and "NOT TESTED: no sanitizer" in output
    part = folder.part("rates")
    assert part["device"] == "cuda:7" and part["results"] == ["rates.txt"] and part["steps"][0]["command"] == 'say "x"'
    assert (folder.out / part["log"]).read_text().endswith("\nrates on cuda:7\n")
    assert not list(folder.out.glob("*.part")) and not list(folder.out.glob(".*.steps"))
    # Only the failed part runs again.
    folder.order("suite", "")
    output = folder.run(0, "cuda:7")
    assert folder.ran() == ["suite"] and "machine: complete in an earlier call" in output
    # A complete part that is named runs again, and its earlier files are kept.
    before = (folder.out / "rates.json").read_text()
    folder.run(0, "cuda:7", "rates", "peers")
    assert folder.ran() == ["rates", "peers"]
    earlier = list((folder.out / "earlier").glob("*/rates.json"))
    assert [path.read_text() for path in earlier] == [before]
    folder.run(2, "cuda:7", "nonsense")
    assert folder.ran() == []
    # Results of another device or of another build do not count as complete.
    folder.run(0, "cuda:1")
    assert folder.ran() == folder.names and folder.part("rates")["device"] == "cuda:1"
    (folder.folder / "build").write_text("another one")
    folder.run(0, "cuda:1")
    assert folder.ran() == folder.names and folder.part("rates")["build"] == "another one"
    assert list((folder.out / "earlier").glob("*/suite.json"))


def limits(folder):
    output = folder.run(3, LIMIT_TOTAL="25")
    assert "machine" in folder.ran() and "suite: left for the next call: it needs 100 s" in output
    # A part that is ended by the limit of the call has not failed. It runs again in the next call.
    folder.order("selftest", "sleep 60")
    folder.change("selftest", 1, 9)
    output = folder.run(3, "cuda:0", "selftest", LIMIT_TOTAL="2")
    assert folder.states()["selftest"] == "unfinished", output
    folder.order("selftest", "exit 3")
    folder.run(3, "cuda:0", "selftest")
    assert folder.states()["selftest"] == "unfinished"
    folder.order("selftest", "")
    folder.ran()
    folder.run(0)
    assert folder.ran()[0] == "selftest"


def own_limit(folder):
    """Checks that a part that exceeds its own limit has failed, and that the next part runs."""
    folder.change("devices", 1, 1)
    folder.order("devices", "sleep 60 & echo $! >\"$2/child\"; wait")
    output = folder.run(3, "cuda:0", "devices", "selftest")
    assert folder.states() == {"devices": "failed", "selftest": "done"} and "ended after 1 seconds" in output
    wait_for(lambda: not alive(int((folder.out / "child").read_text())), "the end of the process of a part")


def alive(process):
    try:
        with open(f"/proc/{process}/stat", encoding="ascii") as file:
            return file.read().split(") ")[1][0] != "Z"
    except OSError:
        return False


def signals(folder):
    for number in (signal.SIGTERM, signal.SIGKILL):
        child = folder.out / "child"
        child.unlink(missing_ok=True)
        folder.order("selftest", "echo half >\"$2/selftest.rows\"; sleep 60 & echo $! >\"$2/child\"; wait")
        running = folder.start()
        wait_for(lambda child=child: child.exists() and child.read_text().strip(), "the part")
        process = int(child.read_text())
        running.send_signal(number)
        running.communicate(timeout=20)
        assert running.returncode != 0
        wait_for(lambda process=process: not alive(process), f"the end of a part after {number.name}")
        assert folder.states() == {"machine": "done", "devices": "done"}
        assert (folder.out / "selftest.rows").read_text() == "half\n"
    folder.order("selftest", "")
    folder.ran()
    folder.run(0)
    assert folder.ran() == folder.names[2:]


def full_disk(folder):
    folder.order("suite", "exit 1")
    folder.run(1)
    before = folder.states()
    folder.order("suite", "")
    for name in ("suite.json.part", "suite.log.part"):
        # /dev/full is a device on which each write fails, as on a full disk.
        (folder.out / name).symlink_to("/dev/full")
        folder.run(2)
        (folder.out / name).unlink()
        assert folder.states() == before
    folder.run(0)
    assert folder.states()["suite"] == "done"


def folders_without_permission(folder):
    folder.out = pathlib.Path("/dev/null/out")
    assert "cannot be written" in folder.run(2)
    folder.out = pathlib.Path("/proc/self")
    assert "cannot be written" in folder.run(2)


def main():
    tests = (parts_and_repetition, limits, own_limit, signals, full_disk, folders_without_permission)
    for test in tests:
        with tempfile.TemporaryDirectory(prefix="lockstep-gpu-check-") as root:
            test(Folder(pathlib.Path(root)))
    print(f"gpu_check: {len(tests)} tests of run.sh passed")


if __name__ == "__main__":
    main()
