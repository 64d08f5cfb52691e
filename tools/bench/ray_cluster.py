#!/usr/bin/env python3
"""Compares lockstep.ray on three workers on this machine with one process of `lockstep encrypt -r`.

    tools/bench/ray_cluster.py PACKAGE LOCKSTEP [--files N] [--size BYTES] [--rounds N] [--dir DIR]

    PACKAGE   a wheel of `make wheel`, or a folder with the package, of the same build profile as LOCKSTEP
    LOCKSTEP  the command
    --files   number of files (20000), in folders of 1000
    --size    length of a file in bytes (65536)
    --rounds  counted rounds (5); both are measured in each round
    --dir     folder of the files (/dev/shm)

Both sides use all processors. The start of the cluster and of the workers is not timed: a run with other files precedes the measurement.
The times are those of the call of `encrypt_files`, with its manifest, and of the whole process of the command. CPU time is that of the
command, and that of the driver, the workers and Ray's own processes; on a machine with other work it is more reliable than the elapsed
time. Prints tables in Markdown with the bar (the required value), and the load of the machine, which should be low.
"""

import argparse
import contextlib
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile

import harness
import python_venv

BAR = 1.25
PER_FOLDER = 1000


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("package")
    parser.add_argument("lockstep")
    parser.add_argument("--files", type=int, default=20_000)
    parser.add_argument("--size", type=int, default=65_536)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--dir", default="/dev/shm")
    return parser.parse_args()


def make_files(folder, count, size):
    for number in range(count):
        path = folder / str(number // PER_FOLDER) / str(number)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(os.urandom(size))
    return folder


def measure(given, folder):
    # This module sets variables that Ray reads when it is imported.
    from local_cluster import local_cluster, meets
    import lockstep.ray

    key_file = folder / "key"
    key = lockstep.generate_key()
    key_file.write_text(f"lockstep-key-256 {key.hex()}\n")
    key_file.chmod(0o600)
    source = make_files(folder / "in", given.files, given.size)
    warm = make_files(folder / "warm", 300, given.size)
    path = str(key_file)

    def fetch():
        return pathlib.Path(path)

    def command(out):
        subprocess.run([given.lockstep, "encrypt", "-q", "-k", key_file, "-r", "-O", out, source], check=True)

    def by_ray(out):
        report = lockstep.ray.encrypt_files(source, out, key=fetch)
        assert report.files == given.files, report

    def cpu_of_cluster():
        taken = [sum(os.times()[:2])]
        for pid in cluster.processes():
            with contextlib.suppress(OSError):
                fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
                taken.append((int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK"))
        return sum(taken)

    def cpu_of_children():
        return sum(os.times()[2:4])

    out = folder / "out"

    def remove_output():
        shutil.rmtree(out, ignore_errors=True)
        pathlib.Path(f"{out}.manifest").unlink(missing_ok=True)

    with local_cluster() as cluster:
        lockstep.ray.encrypt_files(warm, folder / "warm-out", key=meets(fetch, folder / "workers", 3))
        contenders = {
            "lockstep encrypt -r": harness.timed_with_cpu(lambda: command(out), cpu_of_children),
            "lockstep.ray, three workers": harness.timed_with_cpu(lambda: by_ray(out), cpu_of_cluster),
        }
        return harness.alternate(contenders, given.rounds, warm_up=False, before=remove_output)


def report(given, times):
    import lockstep
    import ray

    print(f"lockstep-aes {lockstep.__version__}, Ray {ray.__version__}, Python {sys.version.split()[0]}")
    print(f"{harness.machine()}\n{lockstep.devices()[0].description}")
    print(f"{given.files} files of {given.size} bytes in {given.dir}\n")
    harness.head("", "best", "median", "MB/s (best)", "CPU time (best)")
    for name, taken in times.items():
        best, cpu = harness.best(taken)
        median = statistics.median(time for time, _ in taken)
        rate = given.files * given.size / best / 1e6
        harness.row(name, f"{best:.2f} s", f"{median:.2f} s", f"{rate:.0f}", f"{cpu:.2f} s")
    (command, command_cpu), (ours, ours_cpu) = map(harness.best, times.values())
    print()
    harness.head("figure", "ratio of best times", "ratio of CPU times", "bar")
    harness.row("Ray / command", f"{ours / command:.2f}", f"{ours_cpu / command_cpu:.2f}", BAR)


def main():
    given = arguments()
    python_venv.use(cluster=True)
    given.lockstep = shutil.which(given.lockstep)
    with tempfile.TemporaryDirectory(dir=given.dir) as folder:
        harness.use_package(given.package, folder)
        sys.path.insert(0, os.path.join(harness.ROOT, "interfaces", "python", "tests", "cluster"))
        report(given, measure(given, pathlib.Path(folder)))


if __name__ == "__main__":
    main()
