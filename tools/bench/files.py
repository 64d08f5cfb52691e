#!/usr/bin/env python3
"""Encryption and decryption of a file in memory: lockstep compared with openssl, age and pyca (to /dev/null), and with cp (to a file).

    tools/bench/files.py LOCKSTEP [--size SIZE] [--rounds N] [--dir DIR] [--threads N]

    --size     of the file: 512M, 2G, ... (default 2G)
    --rounds   number of counted rounds (default 5), after one warm-up round
    --dir      folder of the files: a tmpfs with room for four times the size (default /dev/shm)
    --threads  number of threads of lockstep (default: all)

Every round runs every contender once, and each round begins with a different contender. Times are those of the whole program, except
pyca's, which exclude the start of Python. The table is Markdown: medians, with minimum and maximum. Contenders that are not
installed are named and omitted; age is Debian's package `age`.
"""

import argparse
import os
import re
import secrets
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile

import harness

PYCA = os.path.join(os.path.dirname(os.path.abspath(__file__)), "pyca.py")
BLOCK = 1 << 20


def bytes_of(text):
    """The number of bytes of a size such as 512M. Sizes below one megabyte are refused, because their times are too
    short to measure."""
    found = re.fullmatch(r"(\d+)([KMGT]?)", text)
    count = int(found[1]) << {"": 0, "K": 10, "M": 20, "G": 30, "T": 40}[found[2]] if found else 0
    if count < BLOCK:
        raise ValueError(f"{text} is no size: give one from 1M, such as 512M or 2G")
    return count


def positive(text):
    if int(text) < 1:
        raise ValueError(text)
    return int(text)


def note(text):
    print(f"bench-files: {text}", file=sys.stderr)


def kind_of(folder):
    """The type of the file system, as stat names it."""
    return subprocess.run(["stat", "-f", "-c", "%T", folder], check=True, capture_output=True, text=True).stdout.strip()


def check_room(folder, size):
    """Ends the program if there is no room for the file, the encrypted file, the destination of the previous
    round, and the temporary file that replaces it."""
    wanted = 4 * size + size // 50 + (256 << 20)
    available = int(harness.field("/proc/meminfo", "MemAvailable").split()[0]) << 10
    for name, room in (("of memory", available), (f"in {folder}", shutil.disk_usage(folder).free)):
        if room < wanted:
            sys.exit(f"bench-files: needs {harness.size(wanted)} {name}, there are {harness.size(room)}: take a smaller --size")


class Bench:
    """The files of the run, and the contenders by name."""

    def __init__(self, given, folder):
        self.lockstep = given.lockstep
        names = ("input", "encrypted", "destination", "key")
        self.input, self.encrypted, self.destination, self.key = (os.path.join(folder, name) for name in names)
        self.threads = ["--threads", str(given.threads)] if given.threads else []
        with open(self.input, "wb") as file:
            for at in range(0, given.size, BLOCK):
                file.write(os.urandom(min(BLOCK, given.size - at)))
        subprocess.run([self.lockstep, "keygen", "-o", self.key], check=True)
        subprocess.run(self.encrypt("-o", self.encrypted), check=True)
        self.versions, self.missing = [self.output(self.lockstep, "--version"), self.output("cp", "--version")], []

    @staticmethod
    def output(*command):
        """The first line that a program prints."""
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.partition("\n")[0]

    def command(self, *command, to=os.devnull):
        """A contender that runs this program with its output to a file. The time includes the truncation of the file, as for cp."""

        def run():
            with open(to, "wb") as out:
                subprocess.run(command, check=True, stdout=out)

        return harness.timed(run)

    def encrypt(self, *more):
        return (self.lockstep, "encrypt", "-q", "-k", self.key, *more, self.input)

    def to_null(self):
        found = {
            " ".join(["lockstep encrypt -k", *self.threads]): self.command(*self.encrypt(*self.threads)),
            "lockstep encrypt -k --threads 1": self.command(*self.encrypt("--threads", "1")),
            " ".join(["lockstep decrypt -k", *self.threads]): self.command(
                self.lockstep, "decrypt", "-q", "-k", self.key, *self.threads, self.encrypted
            ),
        }
        if shutil.which("openssl"):
            key, iv = secrets.token_hex(32), secrets.token_hex(16)
            found["openssl enc -aes-256-ctr"] = self.command(
                "openssl", "enc", "-aes-256-ctr", "-K", key, "-iv", iv, "-in", self.input
            )
            self.versions.append(self.output("openssl", "version").partition(" (")[0])
        else:
            self.missing.append("openssl: not installed (Debian: apt-get install openssl)")
        if shutil.which("age") and shutil.which("age-keygen"):
            keys = subprocess.run(["age-keygen"], check=True, capture_output=True, text=True).stdout
            recipient = re.search("^# public key: (.*)$", keys, re.M)[1]
            found["age -r"] = self.command("age", "-r", recipient, self.input)
            self.versions.append(f"age {self.output('age', '--version')}")
        else:
            self.missing.append("age: not installed (Debian: apt-get install age)")
        trial = subprocess.run([PYCA, "--version"], capture_output=True, text=True)
        if trial.returncode == 0 and trial.stdout:
            self.versions.append(trial.stdout.strip())
            for name, options in (("update_into", []), ("update", ["--update"])):
                command = [PYCA, "--file", self.input, *options]
                found[f"pyca Cobblestone-256, 4 MiB {name}"] = lambda command=command: float(self.output(*command))
        else:
            self.missing.append(f"pyca: {(trial.stderr.strip().splitlines() or ['it gave no result'])[-1]}")
        return found

    def to_file(self):
        threads = " ".join(["", *self.threads])
        return {
            f"lockstep encrypt -k -f -o FILE{threads}": self.command(*self.encrypt(*self.threads, "-f", "-o", self.destination)),
            f"lockstep encrypt -k > FILE{threads}": self.command(*self.encrypt(*self.threads), to=self.destination),
            "cp --reflink=never": self.command("cp", "--reflink=never", self.input, self.destination),
        }

    def check(self):
        """Writes the destination, and checks that it can be decrypted."""
        subprocess.run(self.encrypt("-f", "-o", self.destination), check=True)
        with subprocess.Popen([self.lockstep, "decrypt", "-q", "-k", self.key, self.destination], stdout=subprocess.PIPE) as decrypted:
            same = subprocess.run(["cmp", "-", self.input], stdin=decrypted.stdout).returncode == 0
        if not same or decrypted.returncode:
            sys.exit("bench-files: lockstep does not give back what was encrypted")


def table(title, size, results):
    """A table in which the first contender is compared with each of the others."""
    harness.head(title, "seconds, median (least to most)", "GB/s", "lockstep takes")
    first = None
    for name, times in results.items():
        middle = statistics.median(times)
        ratio = f"{first / middle:.2f} x its time" if first else ""
        first = first or middle
        harness.row(f"`{name}`", harness.spread(times, 3), f"{size / middle / 1e9:.2f}", ratio)
    print()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("lockstep", help="the program, such as target/release/lockstep")
    parser.add_argument("--size", type=bytes_of, default=2 << 30)
    parser.add_argument("--rounds", type=positive, default=5)
    parser.add_argument("--dir", default="/dev/shm")
    parser.add_argument("--threads", type=positive)
    given = parser.parse_args()
    given.lockstep = os.path.abspath(given.lockstep)
    if not os.access(given.lockstep, os.X_OK):
        parser.error(f"{given.lockstep} is no program")
    check_room(given.dir, given.size)
    kind = kind_of(given.dir)
    if kind != "tmpfs":
        note(f"{given.dir} is {kind}, not tmpfs: files written there are measured with its disk")
    # SIGTERM ends the script by an exception, so that the folder is removed.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    with tempfile.TemporaryDirectory(prefix="lockstep-bench.", dir=given.dir) as folder:
        bench = Bench(given, folder)
        to_null = bench.to_null()
        for line in bench.missing:
            note(f"NOT MEASURED: {line}")
        round_of = lambda group: lambda number: note(f"{group}: round {number} of {given.rounds}")
        null = harness.alternate(to_null, given.rounds, after=round_of("null"))
        bench.check()
        written = harness.alternate(bench.to_file(), given.rounds, after=round_of("file"))
    print(f"## Files\n\n{harness.machine()}.\n{'; '.join(bench.versions)}.")
    print(f"A file of {harness.size(given.size)} of random bytes on {kind}; {given.rounds} rounds, interleaved, after one to warm up.\n")
    table("to /dev/null", given.size, null)
    table(f"to a file on {kind}, written before", given.size, written)
    for line in bench.missing:
        print(f"Not measured: {line}")


if __name__ == "__main__":
    main()
