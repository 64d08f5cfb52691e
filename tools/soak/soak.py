#!/usr/bin/env python3
"""Tests that the provider stays correct, responsive and free of leaks under load, with reloads, forks and failing devices.

    tools/soak/soak.py LOCKSTEP_SO

Runs for SOAK_SECONDS (600). LOCKSTEP_SO must be built with the tests (`make soak-module`): only such a module
injects the faults that LOCKSTEP_TEST_FAULTS describes. These run at the same time:

- two nginx servers on the provider with the device cuda:emu and injected faults: one with a trace, one without;
  each reloads its configuration every few seconds;
- a third one whose device does not fail, and which does not reload: its workers live as long as the soak;
- HTTPS clients, on the default provider and on ours, that compare the digest of everything they fetch and send;
- two fork-heavy programs (forks.c) on the failing device, one with a trace, one without, and one on the processor.

The soak fails if a byte is wrong, a request fails or takes longer than SOAK_PATIENCE seconds (60), a process crashes or
ends early, memory grows (memory.py has the tolerance), or something that it tests did not happen: no reload, no
fork, no fault, a suite without a fetch or an upload. A connection with a CBC or GCM suite may be ended, after the handshake, by
a server whose device failed within a record: that is counted as `aborted`, and at most the share ABORTED_SHARE of these
connections may be aborted. Only loopback is used. Prints the figures; the last line is all of them as JSON.

LOCKSTEP_TEST_SUBJECT=default checks this script: it runs the same tests on the default provider alone, without faults.
SOAK_FLAWS=1 starts faulty clients and injects no faults; the soak must report each of them, see self_check.py.
"""

import sys

sys.dont_write_bytecode = True

import contextlib
import copy
import hashlib
import json
import os
import random
import re
import shutil
import signal
import subprocess
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "provider-test"))

import common
import memory
import servers

# The objects that clients fetch. They are short, because the emulator is slow.
OBJECTS = {"1k": 1000, "35k": 35_000, "150k": 150_000}
# The TLS versions and suites. The device processes records with CBC and CCM, and the CTR part of records with GCM
# (docs/provider.md). So a failing device may end a connection of any suite.
SUITES = (
    ("TLSv1_2", "ECDHE-RSA-AES128-GCM-SHA256"),
    ("TLSv1_2", "AES256-GCM-SHA384"),
    ("TLSv1_2", "AES128-CCM"),
    ("TLSv1_2", "ECDHE-RSA-AES256-SHA384"),
    ("TLSv1_3", "-"),
)
# All results are compared, because a comparison of samples can miss a wrong byte (docs/provider.md).
DEVICE = {"device": "cuda:emu", "threshold": "2048", "verify": "full"}
# The faults of two servers and of two programs (devices/cuda/src/machine/failing.rs). After three failures, a process gives up its device.
# After each reload, new workers have new devices.
FAULTS = ("launch:23,copy:41", "wait:19,allocation:37,lost:200", "copy:17,wait:29", "launch:31,lost:90")
RELOAD_SECONDS = 3
PROBLEMS = ("failed", "wrong", "hung")
# The maximum share of aborted requests, and of rounds in place that are refused. In most runs 12 % of the fetches and 20 % of the
# uploads are aborted, and 4 % of the rounds are refused.
ABORTED_SHARE = 0.6
# The minimum number of requests or rounds for which a share is checked. With fewer of them, the share is not significant.
LEAST_TRIES = 20
# The number of worker processes of a server, as in tools/provider-test/servers.py.
WORKERS = 3
WORKER_BEGINS = re.compile(r"start worker process \d")
CRASH = re.compile(r"exited on signal|exited with (?:fatal )?code [1-9]|core dumped|\[emerg\]")


class Server:
    """An nginx with a separate folder."""

    def __init__(self, test, number, values, traced, faults, lasts):
        self.test = copy.copy(test)
        self.test.folder = test.path(f"server-{number}")
        os.mkdir(self.test.folder)
        os.chmod(self.test.folder, 0o755)
        self.name = f"server {number}"
        self.trace = test.trace() if traced else None
        self.values = {**values, "folder": self.test.folder}
        self.faults = faults
        # True if the device does not fail, so that the workers live as long as the soak.
        self.lasts = lasts
        self.reloads = 0
        self.workers = None
        os.mkdir(self.test.path("upload"))
        if os.geteuid() == 0:
            shutil.chown(self.test.path("upload"), servers.user())

    def start(self):
        os.environ["LOCKSTEP_TEST_FAULTS"] = self.faults
        try:
            self.process = servers.started(self.test, self.configured, self.values, self.trace)
        finally:
            os.environ.pop("LOCKSTEP_TEST_FAULTS")
        if not self.process:
            common.fail(f"{self.name} does not start")
        return self.process

    def configured(self, test, values):
        command = servers.nginx(test, values)
        with open(command[-1], "r+", encoding="utf-8") as file:
            text = file.read()
            file.seek(0)
            # nginx removes all environment variables of its workers except the variables that its configuration names.
            file.write(f"env LOCKSTEP_TEST_FAULTS;\n{text}")
        return command

    def children(self):
        try:
            return servers.children(self.process.running.pid)
        except OSError:
            return set()

    def reload(self):
        """Begins the next reload. If the last reload has brought new workers, counts it."""
        now = self.children()
        if self.workers is not None and now - self.workers:
            self.reloads += 1
        self.workers = now
        self.process.running.send_signal(signal.SIGHUP)

    def logged(self, pattern):
        """The lines of its log that contain a pattern."""
        with open(self.test.path("nginx.log"), encoding="utf-8", errors="replace") as file:
            return [line for line in file if pattern.search(line)]


class Soak:
    def __init__(self, test):
        self.test = test
        self.seconds = float(os.environ.get("SOAK_SECONDS") or 600)
        self.patience = int(os.environ.get("SOAK_PATIENCE") or 60)
        self.flawed = bool(os.environ.get("SOAK_FLAWS"))
        self.problems = []
        self.series = []
        self.running = {}
        self.servers = []
        # For each suite and direction: the number of requests that succeeded, and for servers whose device fails, the
        # number of all requests and of aborted requests.
        self.kinds = {}
        self.slowest = (0, "none")
        self.ended = []
        self.stack = contextlib.ExitStack()

    def problem(self, who, kind, what):
        self.problems.append({"who": who, "kind": kind, "what": str(what)[-500:]})

    def prepare(self):
        test = self.test
        if test.proof:
            test.subject_conf = test.configuration("device.cnf", **DEVICE)
            self.processor_conf = test.configuration("processor.cnf", device="cpu")
        else:
            self.processor_conf = test.default_conf
        key, certificate = common.make_certificate(test, common.program("openssl"))
        source = random.Random(0x50AC)
        self.objects = {}
        os.mkdir(test.path("documents"))
        for name, size in OBJECTS.items():
            data = source.randbytes(size)
            test.write(f"documents/{name}", data)
            self.objects[name] = (size, hashlib.sha256(data).hexdigest())
        self.certificate = certificate
        values = {"documents": test.path("documents"), "key": key, "certificate": certificate}
        values.update(tls12=servers.TLS12, tls13=servers.TLS13)
        faults = ("", "") if self.flawed else FAULTS
        self.servers = [Server(test, number, values, number == 0, faults[number], False) for number in (0, 1)]
        self.servers.append(Server(test, 2, values, True, "", True))
        self.program = test.path("forks")
        source = os.path.join(HERE, "forks.c")
        done = test.run("cc", "-O1", "-Wall", "-o", self.program, source, "-lcrypto", subject=False)
        if done.returncode:
            common.fail(f"{done.said}\nforks.c does not compile: are OpenSSL's headers there? run tools/setup.sh programs")

    def start(self, name, *command, environment):
        process = self.stack.enter_context(common.Process(*command, environment=environment))
        self.running[name] = process
        self.series.append(memory.Series(name, lambda: [process.running.pid]))

    def client(self, number, subject, flaw="none"):
        # Only a request that a device may abort can have these flaws.
        aborts = flaw in ("aborted", "refused")
        settings = {
            "seed": number,
            "flaw": flaw,
            "patience": self.patience,
            "certificate": self.certificate,
            "objects": self.objects,
            "suites": SUITES,
            "servers": [
                {
                    "port": server.values["port"],
                    "uploads": server.test.path("upload"),
                    "fails": not server.lasts,
                    "lasts": server.lasts,
                }
                for server in self.servers
                if not (server.lasts and aborts)
            ],
        }
        environment = self.test.environment(subject, OPENSSL_CONF=self.processor_conf if subject else self.test.default_conf)
        name = f"client {number}" if flaw == "none" else f"client that must fail: {flaw}"
        command = [sys.executable, os.path.join(HERE, "client.py"), json.dumps(settings)]
        self.start(name, *command, environment=environment)

    def forks(self, number, trace, flaw="none", faults="", **more):
        provider = "lockstep" if self.test.proof else "default"
        name = f"forks {number}" if flaw == "none" else f"forks that must fail: {flaw}"
        environment = self.test.environment(True, trace, LOCKSTEP_TEST_FAULTS=faults, **more)
        self.start(name, self.program, provider, str(self.patience), flaw, environment=environment)

    def begin(self):
        for server in self.servers:
            process = self.stack.enter_context(server.start())
            self.running[server.name] = process
            self.series.append(memory.Series(f"{server.name}, master", lambda pid=process.running.pid: [pid]))
            self.series.append(memory.Series(f"{server.name}, workers", server.children))
        self.traces = [self.servers[0].trace, self.test.trace(), self.servers[2].trace]
        if self.flawed:
            for flaw in ("wrong", "hang", "leak", "refused", "aborted"):
                self.client(flaw, False, flaw)
            for flaw in ("wrong", "hang", "leak", "code", "early", "refused"):
                self.forks(flaw, None, flaw, OPENSSL_CONF=self.processor_conf)
            return
        for number, subject in enumerate((False, True, False)):
            self.client(number, subject)
        self.forks(0, self.traces[1], faults=FAULTS[2])
        self.forks(1, None, faults=FAULTS[3])
        self.forks(2, None, OPENSSL_CONF=self.processor_conf)

    def watch(self):
        """Reloads servers and takes samples until the time is over or a process has ended."""
        begun = time.monotonic()
        pause = min(1.0, self.seconds / 60)
        reloading = [server for server in self.servers if not server.lasts]
        reload_seconds = min(RELOAD_SECONDS, self.seconds / 4)
        reloaded, turn = begun, 0
        while (now := time.monotonic()) - begun < self.seconds:
            for series in self.series:
                series.sample()
            self.ended = [name for name, process in self.running.items() if process.running.poll() is not None]
            if self.ended and not self.flawed:
                break
            if now - reloaded >= reload_seconds / len(reloading):
                reloaded = now
                reloading[turn % len(reloading)].reload()
                turn += 1
            time.sleep(pause)
        self.elapsed = time.monotonic() - begun

    def finish(self):
        """Ends all processes; returns the sums of their counts."""
        sums = {}
        # Servers end last, because clients may wait for their answers.
        for name, process in reversed(self.running.items()):
            if not name.startswith("client"):
                process.running.send_signal(signal.SIGQUIT if name.startswith("server") else signal.SIGTERM)
            code = process.end()
            if name in self.ended and code == 0:
                self.problem(name, "early", f"ended early, with exit code 0: {process.said}")
            if name.startswith("client"):
                self.add(sums, name, self.client_counts(name, process, code))
            elif name.startswith("forks"):
                self.add(sums, name, self.forks_counts(name, process, code))
            elif code != 0:
                self.problem(name, "failed", f"exit code {code}: {process.said}")
        for server in self.servers:
            sums["reloads"] = sums.get("reloads", 0) + server.reloads
            for line in server.logged(CRASH):
                self.problem(server.name, "failed", line)
            begun = len(server.logged(WORKER_BEGINS))
            if server.lasts and begun != WORKERS:
                self.problem(server.name, "failed", f"{begun} workers, not the {WORKERS} of its start")
        return sums

    def add(self, sums, name, counts):
        for kind, value in counts.items():
            sums[kind] = sums.get(kind, 0) + value
        for kind in ("requests", "rounds"):
            if counts.get(kind) == 0:
                self.problem(name, "idle", f"no {kind}")
        self.limit(name, "refused", counts.get("inplace", 0), counts.get("refused", 0))

    def limit(self, name, kind, tries, ended):
        """Checks that a failing device has ended at most the permitted share of the requests or rounds."""
        if tries >= LEAST_TRIES and ended > ABORTED_SHARE * tries:
            self.problem(name, kind, f"{ended} of {tries}, more than {ABORTED_SHARE:.0%}")

    def add_kinds(self, name, kinds):
        """Adds the counts of a client to those of all clients. If the clients have flaws, the shares of each client are checked separately."""
        for kind, counts in kinds.items():
            self.kinds[kind] = [sum(pair) for pair in zip(self.kinds.get(kind, (0, 0, 0)), counts)]
            if self.flawed:
                self.limit(name, "aborted", *counts[1:])

    def client_counts(self, name, process, code):
        lines = process.out.decode().splitlines()
        counts = json.loads(lines[-1]) if lines else {"requests": 0}
        self.add_kinds(name, counts.pop("kinds", {}))
        seconds, what = counts.pop("slowest", (0, ""))
        self.slowest = max(self.slowest, (seconds, f"{name}: {what}"))
        for kind in PROBLEMS:
            if counts.get(kind):
                said = [line for line in process.said.splitlines() if line.startswith(kind)]
                self.problem(name, kind, f"{counts[kind]}: {said[:3]}")
        if code != 0:
            self.problem(name, "failed", f"exit code {code}: {process.said}")
        return counts

    def forks_counts(self, name, process, code):
        lines = process.out.decode().splitlines()
        words = lines[-1].split() if lines else ["rounds", "0"]
        counts = dict(zip(words[::2], map(int, words[1::2])))
        kind = {3: "wrong", 4: "hung", -signal.SIGALRM: "hung", None: "hung"}.get(code, "failed")
        if code != 0:
            self.problem(name, kind, f"exit code {code}: {process.said}")
            counts[kind] = 1
        return counts

    def faults(self):
        """Reads the number of faults from the traces, and the number of bytes that the device without faults has processed."""
        found = {"failures": 0, "wrong_results": 0, "lasting_device_bytes": 0}
        for line in self.traces[2].lines():
            total = re.search(r"cuda:emu \w+: (\d+) bytes in \d+ launches", line)
            found["lasting_device_bytes"] += int(total[1]) if total else 0
        for trace in self.traces[:2]:
            for line in trace.lines():
                found["failures"] += "LOCKSTEP_TEST_FAULTS" in line
                found["wrong_results"] += "gave a wrong result" in line
        return found

    def demand_happened(self, sums, faults):
        """Fails if one of the events that the soak must test did not happen."""
        wanted = ["requests", "uploads", "bytes", "forks", "reloads", "lasting"]
        for kind in wanted:
            if not sums.get(kind):
                self.problem("soak", "idle", f"no {kind}")
        for kind, (succeeded, tries, aborted) in self.kinds.items():
            if not succeeded:
                self.problem("soak", "idle", f"no {kind} succeeded")
            if not self.flawed:
                self.limit("soak", "aborted", tries, aborted)
        if self.test.proof:
            for kind, count in faults.items():
                if not count:
                    self.problem("soak", "idle", f"no {kind} of devices: is the module built with the tests?")
            first, forks, last = self.traces
            demanded = [(trace, algorithm) for trace in (first, last) for algorithm in ("AES-256-CBC", "AES-128-GCM")]
            for trace, algorithm in (*demanded, (forks, ".*")):
                if not trace.users(algorithm, "encrypt"):
                    self.problem("soak", "idle", f"the trace shows no {algorithm}")

    def run(self):
        self.prepare()
        with self.stack:
            self.begin()
            self.watch()
            sums = self.finish()
        figures = {series.name: series.figures(self.elapsed) for series in self.series}
        for name, figure in figures.items():
            if not figure["flat"] and not (self.flawed and figure["samples"] < 4 * memory.LEAST_SAMPLES):
                self.problem(name, "memory", figure)
        faults = self.faults()
        self.demand_happened(sums, faults)
        return self.tell(sums, faults, figures)

    def tell(self, sums, faults, figures):
        version = subprocess.run([common.program("openssl"), "version"], capture_output=True, text=True, check=False)
        total = {"seconds": round(self.elapsed, 1), "openssl": version.stdout.strip(), **sums, **faults}
        total["slowest_request"] = f"{self.slowest[0]} s: {self.slowest[1]}"
        for kind, value in total.items():
            print(f"{kind:>24}: {value}")
        for kind, (succeeded, tries, aborted) in self.kinds.items():
            share = f", {aborted} of {tries} aborted by devices" if tries else ""
            print(f"{kind:>36}: {succeeded} succeeded{share}")
        for name, figure in figures.items():
            parts = ", ".join(f"{key} {value}" for key, value in figure.items())
            print(f"{name:>24}: {parts}")
        for problem in self.problems:
            print(f"FAILED: soak: {problem['who']}: {problem['kind']}: {problem['what']}", file=sys.stderr)
        print(f"soak: {'passed' if not self.problems else f'{len(self.problems)} problems'}")
        print(json.dumps({**total, "kinds": self.kinds, "memory": figures, "problems": self.problems}))
        return 1 if self.problems else 0


def main():
    test = common.Test(__doc__, "soak")
    with test:
        return Soak(test).run()


if __name__ == "__main__":
    sys.exit(main())
