#!/usr/bin/env python3
"""Runs test programs that are built, as many at the same time as there are processors.

    cargo test --no-run --message-format=json-render-diagnostics ... >MESSAGES
    tools/test_binaries.py MESSAGES

`cargo test` runs one program after the other, and a program's longest test often leaves the other processors idle. The output
of a program appears when it has ended. The exit status is 1 if a test failed; all programs are run in any case.
"""

import concurrent.futures
import json
import os
import subprocess
import sys
import time

def programs(messages):
    """The name, the path, the folder of the package and the main source of each program in cargo's messages."""
    found = []
    for line in messages:
        message = json.loads(line)
        if message["reason"] == "compiler-artifact" and message["profile"]["test"] and message["executable"]:
            package = os.path.dirname(message["manifest_path"])
            name = f"{os.path.relpath(package, os.getcwd())}: {message['target']['name']}"
            found.append((name, message["executable"], package, message["target"]["src_path"]))
    return found


def size(program):
    """Returns the size of a program's sources. Programs with large sources start first, so that none of them runs alone at the end."""
    sources, main = os.path.split(program[3])
    if main != "main.rs":
        return 0
    return sum(
        os.path.getsize(os.path.join(folder, file)) for folder, _, files in os.walk(sources) for file in files
    )


def run(program):
    """Runs a program in the folder of its package. Returns its exit status, its output and its time in seconds."""
    _, path, package, _ = program
    start = time.monotonic()
    environment = os.environ | {"CARGO_MANIFEST_DIR": package}
    ended = subprocess.run(
        [path, "--quiet"],
        cwd=package,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
    )
    return ended.returncode, ended.stdout, time.monotonic() - start


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    failed = []
    with open(sys.argv[1], encoding="utf-8") as messages:
        all_programs = sorted(programs(messages), key=size, reverse=True)
    if not all_programs:
        sys.exit(f"{sys.argv[1]} names no test program")
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        running = {pool.submit(run, program): program for program in all_programs}
        for ended in concurrent.futures.as_completed(running):
            name = running[ended][0]
            status, output, seconds = ended.result()
            print(f"{name}, {seconds:.0f} s", flush=True)
            sys.stdout.buffer.write(output.strip() + b"\n\n")
            sys.stdout.flush()
            if status:
                failed.append(name)
    for name in failed:
        print(f"failed: {name}", file=sys.stderr)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
