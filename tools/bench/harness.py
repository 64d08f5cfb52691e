#!/usr/bin/env python3
"""What the measurements of this folder share: alternating rounds, statistics, the machine, tables, and the Python that runs them.

Rules of every measurement: all contenders run in each round, one after the other, and each round begins with another contender; the
first round warms up and is not counted; outputs are checked; data are random. `tools/bench/harness.py --self-test` tests this file.
"""

import datetime
import json
import os
import platform
import statistics
import sys
import time
import zipfile

TOOLS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
ROOT = os.path.dirname(TOOLS)
sys.path[:0] = [TOOLS, os.path.join(TOOLS, "provider-test")]
sys.dont_write_bytecode = True


def alternate(contenders, rounds, seconds=float("inf"), warm_up=True, before=lambda: None, after=lambda number: None):
    """Calls the contenders in turn, and returns their results as lists by name.

    `contenders` are functions by name. There are at most `rounds` counted rounds. After `seconds`, no further round begins, but
    there is at least one. `before` is called before each call. `after` is called at the end of each round with its number. Round 0
    is the warm-up.
    """
    names, results = list(contenders), {name: [] for name in contenders}
    end = None
    for number in range(0 if warm_up else 1, rounds + 1):
        if number == 1:
            end = time.perf_counter() + seconds
        elif number > 1 and time.perf_counter() >= end:
            break
        first = number % len(names)
        for name in names[first:] + names[:first]:
            before()
            result = contenders[name]()
            if number:
                results[name].append(result)
        after(number)
    return results


def timed(function, clock=time.perf_counter):
    """Makes a contender that calls the function and returns the seconds that the call took."""

    def run():
        start = clock()
        function()
        return clock() - start

    return run


def timed_with_cpu(function, cpu=time.process_time):
    """Makes a contender that calls the function and returns the seconds and the seconds of CPU time that the call took."""

    def run():
        start, begin = time.perf_counter(), cpu()
        function()
        return time.perf_counter() - start, cpu() - begin

    return run


def repeated(function, count):
    """Returns a function that calls another one `count` times."""

    def run():
        for _ in range(count):
            function()

    return run


def best(pairs):
    """Returns the minimum of the elapsed times and the minimum of the CPU times."""
    return tuple(map(min, zip(*pairs)))


class Ratios:
    """For each round, the figure of one contender divided by the figure of another one."""

    def __init__(self, figures, others):
        """`figures` and `others` are lists with one figure for each round."""
        self.medians = statistics.median(figures), statistics.median(others)
        self.of_medians = self.medians[0] / self.medians[1]
        self.sorted = sorted(a / b for a, b in zip(figures, others, strict=True))
        self.median = statistics.median(self.sorted)

    def spread(self):
        return f"{self.sorted[0]:.2f} to {self.sorted[-1]:.2f}"

    def middle_half(self):
        quarter = len(self.sorted) // 4
        return f"{self.sorted[quarter]:.2f} to {self.sorted[-1 - quarter]:.2f}"


def spread(values, digits=0):
    """The median, the minimum and the maximum."""
    low, middle, high = (f"{value:.{digits}f}" for value in (min(values), statistics.median(values), max(values)))
    return f"{middle} ({low} to {high})"


def duration(seconds):
    for unit, factor in (("s", 1), ("ms", 1e3), ("µs", 1e6)):
        if seconds * factor >= 1:
            return f"{seconds * factor:.2f} {unit}"
    return f"{seconds * 1e9:.0f} ns"


def size(count):
    """A number of bytes with a binary unit."""
    for unit, shift in (("GiB", 30), ("MiB", 20), ("KiB", 10)):
        if count >= 1 << shift:
            return f"{count / (1 << shift):.1f} {unit}"
    return f"{count} bytes"


def field(path, name):
    """The value of a field of a file in /proc, or None."""
    try:
        with open(path, encoding="utf-8") as file:
            return next((line.split(":", 1)[1].strip() for line in file if line.startswith(name)), None)
    except OSError:
        return None


def processor():
    return field("/proc/cpuinfo", "model name") or platform.machine()


def memory():
    """The bytes of memory of this machine, or None."""
    kib = field("/proc/meminfo", "MemTotal")
    return int(kib.split()[0]) << 10 if kib else None


def machine():
    """Returns a line with the machine, the system, the date, and the load of the machine, which should be low."""
    room = f", {size(memory())} of memory" if memory() else ""
    load = ", ".join(f"{value:.1f}" for value in os.getloadavg())
    system = f"{platform.system()} {platform.release()}"
    return f"{processor()}, {os.cpu_count()} processors{room}, {system}, {datetime.date.today()}, load {load}"


def as_json(versions, **results):
    """Returns the results as JSON, with the date, the processor and the versions of the measured programs."""
    date = datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")
    return json.dumps({"date": date, "processor": processor(), "versions": versions, **results})


def row(*cells):
    """Prints a row of a table in Markdown."""
    print(f"| {' | '.join(map(str, cells))} |", flush=True)


def head(*titles):
    """Prints the head of a table in Markdown."""
    row(*titles)
    print("|" + "---|" * len(titles), flush=True)


def use_package(package, folder):
    """Makes the package in this wheel or folder importable, here and in child processes. A wheel is unpacked in `folder`."""
    if os.path.isfile(package):
        zipfile.ZipFile(package).extractall(os.path.join(folder, "package"))
        package = os.path.join(folder, "package")
    package = os.path.abspath(package)
    sys.path.insert(0, package)
    os.environ["PYTHONPATH"] = package


def openssl_environment(configuration, **more):
    """Returns the environment of a program that reads this configuration file of OpenSSL, and no other setting of OpenSSL or
    Lockstep."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("LOCKSTEP_", "OPENSSL_"))}
    return {**kept, "OPENSSL_CONF": configuration, **more}


def configurations(folder, module, **settings):
    """The paths of two configuration files of OpenSSL: an empty one, and one that prefers this module."""
    import provider_configuration

    paths = os.path.join(folder, "empty.cnf"), os.path.join(folder, "lockstep.cnf")
    for path, text in zip(paths, ("", provider_configuration.text(os.path.abspath(module), **settings))):
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
    return paths


if __name__ == "__main__":
    import unittest

    if sys.argv[1:] != ["--self-test"]:
        sys.exit(__doc__.strip())
    tests = os.path.join(os.path.dirname(os.path.abspath(__file__)), "tests")
    found = unittest.defaultTestLoader.discover(tests)
    sys.exit(not unittest.TextTestRunner().run(found).wasSuccessful())
