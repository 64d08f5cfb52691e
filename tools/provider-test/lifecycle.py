#!/usr/bin/env python3
"""Tests that programs start, fork, use threads and end correctly with our provider loaded.

    tools/provider-test/lifecycle.py LOCKSTEP_SO

Runs `openssl rand`, since the library's own random generator uses the preferred provider. Then a program in C (lifecycle.c,
in this folder) with contexts that live to the end, exit handlers, forks, threads that outlive OPENSSL_cleanup, and
library contexts that load and unload the module; some of it under valgrind. residue.c tests that no keys remain in memory.

LOCKSTEP_TEST_SUBJECT=default checks this script: it runs the same tests on the default provider alone, without checks of traces.
"""

import sys

sys.dont_write_bytecode = True

import itertools
import os
import platform
import xml.etree.ElementTree

import common

CASES = ("plain", "kept", "atexit-before", "atexit-after", "forks", "threads", "outlives", "reloads", "dlopen")
# The cases that also run under valgrind. Programs that end without freeing memory are not checked for leaks. There are few reloads,
# because valgrind reads the symbols of the module at each one.
UNDER_VALGRIND = ("plain", "atexit-before", "forks", "threads", "reloads-few")
# Kernels to check under valgrind. valgrind does not support AVX-512, so `auto` never selects kernels that need it.
KERNELS = ("auto", "cpu/aesni", "cpu/soft") if platform.machine() in ("x86_64", "AMD64") else ("auto",)
REPEATS = 3


def random_bytes(test):
    openssl = common.program("openssl")
    for size in (1, 100_000):
        trace = test.trace()
        output = test.ran(test.run(openssl, "rand", str(size), trace=trace), f"openssl rand {size}")
        test.check(output is not None and len(output) == size, f"openssl rand {size}: as many bytes")
        test.proved(trace, "AES-256-(CTR|ECB)", "encrypt", f"openssl rand {size}")
    drawn = {test.run(openssl, "rand", "32").stdout for _ in range(20)}
    test.check(len(drawn) == 20, "openssl rand: never the same twice")


def compiled(test, name):
    """Compiles a program in C, and returns its path."""
    source = os.path.join(os.path.dirname(os.path.abspath(__file__)), f"{name}.c")
    program = test.path(name)
    done = test.run(
        common.program("cc", "gcc", "clang"),
        "-g",
        "-O1",
        "-Wall",
        "-o",
        program,
        source,
        "-lcrypto",
        "-ldl",
        "-pthread",
        subject=False,
    )
    if done.returncode:
        common.fail(
            f"{done.said}\n{name}.c does not compile: are OpenSSL's headers there? run tools/setup.sh programs"
        )
    return program


def residue(test, program):
    """Tests that keys are wiped: from the stack after each call, and from the heap when memory is freed."""
    folder = os.path.dirname(os.path.abspath(test.module))
    for kernel, ahead in itertools.product(KERNELS, ("auto", "on", "off")):
        # LD_BIND_NOW is set, because lazy binding saves all registers on the stack at the first call of a function.
        settings = {"LOCKSTEP_KERNEL": kernel, "LOCKSTEP_AHEAD": ahead, "LD_BIND_NOW": "1"}
        done = test.run(program, "lockstep", folder, **settings)
        extent = ", without long messages" if "a development build" in done.said else ""
        test.check(done.returncode == 0, f"residue of keys, kernel {kernel}, ahead {ahead}{extent}", done.said)


def arguments(test, case):
    return [case, "lockstep", test.module] if test.proof else [case, "default"]


def native(test, program, case):
    for _ in range(REPEATS):
        trace = test.trace()
        test.ran(test.run(program, *arguments(test, case), trace=trace), f"lifecycle {case}")
        if case != "dlopen":
            test.proved(trace, "AES-256-CTR", "encrypt", f"lifecycle {case}")


def under_valgrind(test, program, case, kernel):
    """Runs a case under valgrind, which must find no invalid access, no use of uninitialised memory and no leak of the
    provider."""
    name = f"valgrind lifecycle {case}, kernel {kernel}"
    report = test.path(f"valgrind-{case}-{kernel.replace('/', '-')}.%p.xml")
    command = [
        common.program("valgrind"), "-q", "--leak-check=full", "--show-leak-kinds=definite", "--num-callers=40",
        "--child-silent-after-fork=no", "--xml=yes", f"--xml-file={report}", "--fair-sched=yes",
    ]  # fmt: skip
    environment = {} if kernel == "auto" else {"LOCKSTEP_KERNEL": kernel}
    done = test.run(*command, program, *arguments(test, case), **environment)
    test.ran(done, name)
    prefix, suffix = os.path.basename(report).split("%p")
    reports = [each for each in os.listdir(test.folder) if each.startswith(prefix) and each.endswith(suffix)]
    test.check(reports, f"{name}: a report")
    module = os.path.realpath(test.module)
    for each in reports:
        try:
            errors = xml.etree.ElementTree.parse(test.path(each)).getroot().iter("error")
        except xml.etree.ElementTree.ParseError:
            # The report of a process that ended by _exit or a signal is incomplete.
            errors = torn(test.path(each))
        for error in errors:
            kind = error.findtext("kind")
            places = [os.path.realpath(place.text) for place in error.iter("obj")]
            if not kind.startswith("Leak_") or module in places:
                frames = "\n".join(
                    frame.findtext("fn") or frame.findtext("ip") for frame in list(error.iter("frame"))[:8]
                )
                test.check(False, f"{name}: {kind} {error.findtext('what') or ''}", frames.replace("\n", " < "))


def torn(path):
    """The complete errors in a report of valgrind that ends too early."""
    with open(path, encoding="utf-8", errors="replace") as file:
        pieces = file.read().split("<error>")[1:]
    return [
        xml.etree.ElementTree.fromstring("<error>" + each.split("</error>")[0] + "</error>")
        for each in pieces
        if "</error>" in each
    ]


def main():
    test = common.Test(__doc__, "lifecycle")
    with test:
        random_bytes(test)
        if test.proof:
            residue(test, compiled(test, "residue"))
        program = compiled(test, "lifecycle")
        test.side_by_side(native, [(test, program, case) for case in CASES])
        # The code that starts, forks and ends is the same for all kernels. So all cases run with one kernel, and one case runs with each
        # other kernel.
        cases = [(test, program, case, KERNELS[0]) for case in UNDER_VALGRIND]
        if test.proof:
            cases += [(test, program, "plain", kernel) for kernel in KERNELS[1:]]
        test.side_by_side(under_valgrind, cases)
        return test.finish()


if __name__ == "__main__":
    sys.exit(main())
