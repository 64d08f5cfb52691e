"""Shared code of the tests of the provider with real programs: settings, configurations, processes, and traces, which prove who did the work.

Imported by the scripts in this folder; not run directly.
"""

import contextlib
import glob
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import provider_configuration

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
# Seconds after which a program counts as hung. No test measures time.
PATIENCE = 120
# Seconds from a signal to SIGKILL for programs that have not ended, and seconds from a signal to the exit of the script in any
# case.
TERMINATION_SECONDS, ENDING_SECONDS = 10, 15
DEFAULT_CONFIGURATION = """
openssl_conf = openssl_init
[openssl_init]
providers = provider_sect
[provider_sect]
default = default_sect
[default_sect]
activate = 1
"""


# Set when a signal ends the script. Other threads then start no more programs.
ENDING = threading.Event()


def wait_if_ending():
    """If a signal ends the script, waits for the end of the script. Otherwise returns at once."""
    while ENDING.is_set():
        time.sleep(ENDING_SECONDS)


class Trace:
    """The lines that processes of the subject wrote to the file that LOCKSTEP_TRACE names."""

    FIRST = re.compile(r"^lockstep\[(\d+)\]: (\S+) (encrypt|decrypt|\S+): first use$")
    TOTAL = re.compile(r"^lockstep\[(\d+)\]: (\S+) (encrypt|decrypt|\S+): (\d+) bytes in (\d+) calls?\b")

    def __init__(self, file):
        self.file = file
        # The file is created in advance for two kinds of processes: those that have dropped their privileges cannot create it, and
        # those that never load the provider do not create it.
        with open(file, "ab"):
            pass
        os.chmod(file, 0o666)

    def lines(self):
        with open(self.file, encoding="utf-8", errors="replace") as text:
            return text.read().splitlines()

    def users(self, algorithm, direction=None):
        """The processes that used an algorithm (a regular expression), by id."""
        return {int(found[1]) for found in self._find(self.FIRST, algorithm, direction)}

    def bytes(self, algorithm, direction=None, without=()):
        """The number of bytes that ended processes passed to the subject, except the processes in `without`."""
        found = self._find(self.TOTAL, algorithm, direction)
        return sum(int(each[4]) for each in found if int(each[1]) not in without)

    def _find(self, pattern, algorithm, direction):
        for line in self.lines():
            found = pattern.match(line)
            if found and re.fullmatch(algorithm, found[2], re.IGNORECASE) and direction in (None, found[3]):
                yield found


class Test:
    """A script's tests: the subject, the folder, the configurations and the number of checks."""

    def __init__(self, documentation, name):
        arguments = sys.argv[1:]
        self.name = name
        self.proof = os.environ.get("LOCKSTEP_TEST_SUBJECT", "lockstep") != "default"
        if "-h" in arguments or "--help" in arguments or (self.proof and not arguments):
            asked = "-h" in arguments or "--help" in arguments
            print(documentation.strip(), file=sys.stdout if asked else sys.stderr)
            sys.exit(0 if asked else 2)
        self.module = os.path.abspath(arguments[0]) if arguments else ""
        self.arguments = arguments[1:]
        if self.proof and not os.path.isfile(self.module):
            fail(f"{self.module} is not there: cargo build --release -p lockstep-provider, and give its path")
        self.passed = 0
        self.failed = 0
        self.traces = 0
        self.lock = threading.Lock()

    def __enter__(self):
        self.temporary = tempfile.TemporaryDirectory(prefix="lockstep-provider-")
        self.folder = self.temporary.name
        for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
            if signal.getsignal(number) != signal.SIG_IGN:
                signal.signal(number, lambda number, _: end_by_signal(number, self.folder))
        # Workers of servers have dropped root's privileges, and must read files in this folder.
        os.chmod(self.folder, 0o755)
        self.default_conf = self.write("default.cnf", DEFAULT_CONFIGURATION)
        self.subject_conf = self.configuration("subject.cnf") if self.proof else self.default_conf
        return self

    def __exit__(self, *_):
        self.temporary.cleanup()

    def configuration(self, name, **settings):
        """Writes a configuration that prefers the provider. `settings` are added to the section of the provider."""
        shipped = os.path.join(ROOT, "interfaces", "provider", "lockstep.cnf")
        text = provider_configuration.text()
        if os.path.isfile(shipped):
            with open(shipped, encoding="utf-8") as file:
                text = file.read()
        line = "\n".join([f"module = {self.module}", *(f"{key} = {value}" for key, value in settings.items())])
        text, changed = re.subn(r"(?m)^[ \t#]*module[ \t]*=.*$", lambda _: line, text)
        if changed != 1:
            fail(f"{shipped} does not have exactly one line `module = ...`, in use or not")
        return self.write(name, text)

    def path(self, name):
        return os.path.join(self.folder, name)

    def write(self, name, data):
        with open(self.path(name), "wb") as file:
            file.write(data if isinstance(data, bytes) else data.encode())
        return self.path(name)

    def trace(self):
        """A new trace."""
        with self.lock:
            self.traces += 1
            return Trace(self.path(f"trace-{self.traces}"))

    def environment(self, subject, trace=None, **more):
        """The environment of a program that runs on the subject or on the default provider."""
        environment = {
            key: value for key, value in os.environ.items() if key not in ("LOCKSTEP_TRACE", "OPENSSL_MODULES")
        }
        environment["OPENSSL_CONF"] = self.subject_conf if subject else self.default_conf
        environment["LC_ALL"] = "C"
        if subject and trace:
            environment["LOCKSTEP_TRACE"] = trace.file
        environment.update(more)
        return environment

    def run(self, *command, subject=True, trace=None, data=b"", **more):
        """Runs a program to its end. `more` has additional environment variables."""
        environment = self.environment(subject, trace, **more)
        wait_if_ending()
        try:
            done = subprocess.run(command, input=data, capture_output=True, env=environment, timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            done = subprocess.CompletedProcess(command, -1, b"", b"it hung")
        done.said = done.stderr.decode(errors="replace").strip()
        return done

    def check(self, good, name, why=""):
        """Counts a check; prints a failure at once, with the last output of the program."""
        with self.lock:
            if good:
                self.passed += 1
                return True
            self.failed += 1
        why = " | ".join(str(why).strip().splitlines()[-4:])
        print(f"FAILED: {self.name}: {name}{': ' + why if why else ''}", file=sys.stderr)
        return False

    def ran(self, done, name):
        """Checks that a program ended with exit code 0; returns its output, or None."""
        why = done.said
        if done.returncode < 0:
            why = f"ended by signal {-done.returncode}: {why}"
        elif done.returncode:
            why = f"exit code {done.returncode}: {why}"
        return done.stdout if self.check(done.returncode == 0, name, why) else None

    def refused(self, done, name, reason=""):
        """Checks that a program failed with exit code 1 and an OpenSSL error, and did not crash."""
        reported = re.search(r"error:[0-9A-F]{6,}:|:error:", done.said) and reason in done.said
        self.check(done.returncode == 1 and reported, name, f"exit code {done.returncode}: {done.said}")

    def proved(self, trace, algorithm, direction, name, at_least=0, not_by=()):
        """Checks by the trace that our provider did the work, in a process that is not one of `not_by`."""
        if not self.proof:
            return
        by = trace.users(algorithm, direction) - set(not_by)
        what = f"{name}: our provider did {algorithm} {direction or ''}".rstrip()
        if self.check(by, what, "\n".join(trace.lines()) or "the trace is empty") and at_least:
            done = trace.bytes(algorithm, direction, not_by)
            self.check(done >= at_least, f"{what}, {at_least} bytes", f"only {done}")

    def unused(self, trace, name):
        """Checks that a trace shows no work."""
        if self.proof:
            self.check(not trace.users(".*"), name, "\n".join(trace.lines()))

    def side_by_side(self, function, cases):
        """Calls a function for each case, and runs several calls at the same time."""
        with ThreadPoolExecutor(max_workers=max(2, os.cpu_count() or 1)) as pool:
            for _ in pool.map(lambda case: function(*case), cases):
                pass

    def finish(self):
        """Prints the totals, and returns the exit code."""
        what = "our provider" if self.proof else "the default provider instead, so WITHOUT PROOF BY TRACE"
        print(f"{self.name} on {what}: {self.passed} passed, {self.failed} failed")
        return 0 if self.passed and not self.failed else 1


def ending_with_us(command):
    """Returns the command line of a program that SIGTERM ends when this process, or the thread that has started it, ends.

    So no process remains if a script is killed, because a server ends its workers on SIGTERM. If this process ended before setpriv
    took effect, the shell does not start the program. A preexec_fn would need no other programs, but is unsafe in a process with
    threads.
    """
    guard = '[ "$PPID" = "$0" ] && exec "$@"'
    return [program("setpriv"), "--pdeathsig", "TERM", "sh", "-c", guard, str(os.getpid()), *command]


class Process:
    """A running program whose output is collected. The program is ended at the end of the `with` block, and together
    with the thread that starts it."""

    def __init__(self, *command, environment):
        wait_if_ending()
        self.running = subprocess.Popen(
            ending_with_us(command), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment
        )
        self.out = bytearray()
        self.err = bytearray()
        self.changed = threading.Condition()
        pairs = ((self.running.stdout, self.out), (self.running.stderr, self.err))
        self.readers = [threading.Thread(target=self._read, args=pair, daemon=True) for pair in pairs]
        for reader in self.readers:
            reader.start()

    def _read(self, pipe, into):
        while piece := pipe.read1(1 << 16):
            with self.changed:
                into += piece
                self.changed.notify_all()
        with self.changed:
            self.changed.notify_all()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.running.poll() is None:
            self.running.terminate()
            try:
                self.running.wait(10)
            except subprocess.TimeoutExpired:
                self.running.kill()
                self.running.wait()
        for reader in self.readers:
            reader.join(10)
        for pipe in (self.running.stdin, self.running.stdout, self.running.stderr):
            try:
                pipe.close()
            except OSError:
                pass

    @property
    def said(self):
        return self.err.decode(errors="replace").strip()

    def send(self, data):
        """Writes to the standard input of the program; returns false if the program has stopped reading."""
        try:
            self.running.stdin.write(data)
            self.running.stdin.flush()
            return True
        except OSError:
            return False

    def wait_for(self, ready):
        """Waits until ready(self) is true for the output; returns its value, or None if the program ended or hung."""
        end = time.monotonic() + PATIENCE
        with self.changed:
            while True:
                alive = any(reader.is_alive() for reader in self.readers)
                value = ready(self)
                if value or not alive or time.monotonic() > end:
                    return value or None
                self.changed.wait(0.2)

    def end(self):
        """Closes the program's input and waits for its end. Returns the exit code, or None if the program hung."""
        try:
            self.running.stdin.close()
        except OSError:
            pass
        try:
            code = self.running.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            return None
        for reader in self.readers:
            reader.join(10)
        return code


def child_processes():
    """The ids of the processes that any thread of this process has started."""
    found = []
    for path in glob.glob("/proc/self/task/*/children"):
        with contextlib.suppress(OSError), open(path, encoding="ascii") as file:
            found += [int(child) for child in file.read().split()]
    return found


def end_by_signal(number, folder):
    """Handles a signal: ends the child processes, removes the folder and exits.

    The handler raises no exception, because an exception within `subprocess` or `threading` can leave one of their locks held. The
    code that then ends the processes would wait for that lock forever.
    """
    signal.signal(number, signal.SIG_IGN)
    ENDING.set()
    begun = time.monotonic()
    sent = {}
    while (seconds := time.monotonic() - begun) < ENDING_SECONDS and (children := child_processes()):
        for child in children:
            # The signal is sent again each second, because a server that is starting may miss the first signal.
            if sent.get(child) != int(seconds):
                sent[child] = int(seconds)
                with contextlib.suppress(OSError):
                    os.kill(child, signal.SIGTERM if seconds < TERMINATION_SECONDS else signal.SIGKILL)
            with contextlib.suppress(OSError):
                os.waitpid(child, os.WNOHANG)
        time.sleep(0.02)
    shutil.rmtree(folder, ignore_errors=True)
    os.write(2, f"ended by {signal.Signals(number).name}\n".encode())
    os._exit(1)


def fail(why):
    """Prints one line and ends the script."""
    print(why, file=sys.stderr)
    sys.exit(2)


def program(*names):
    """The path of the first of these programs that is installed."""
    path = os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/usr/local/sbin", "/sbin"])
    for name in names:
        if found := shutil.which(name, path=path):
            return found
    fail(f"no {' or '.join(names)}: run tools/setup.sh programs")


def free_port():
    """A port on which no program listens at the moment."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def first_of(*patterns):
    """The first existing path that matches one of the patterns, or None."""
    for pattern in patterns:
        for path in sorted(glob.glob(pattern)):
            return path
    return None


def make_certificate(test, openssl):
    """Makes a key and a certificate for 127.0.0.1 and localhost with the default provider. Returns both paths."""
    key, certificate = test.path("key.pem"), test.path("certificate.pem")
    done = test.run(
        openssl, "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", certificate, "-days", "30",
        "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1", "-config",
        test.write("req.cnf", "[req]\ndistinguished_name = name\n[name]\n"), subject=False,
    )  # fmt: skip
    if done.returncode:
        fail(f"openssl req made no certificate: {done.said}")
    return key, certificate
