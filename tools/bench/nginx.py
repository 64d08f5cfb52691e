#!/usr/bin/env python3
"""Compares nginx with the provider and without it: processor time for each GB, and requests per second, over TLS 1.3.

    tools/bench/nginx.py LOCKSTEP_SO [--nginx PROGRAM | --source FOLDER [--openssl RELEASE]]
                                     [--file FILE] [--suite SUITE] [--rounds N] [--seconds S]

Two nginx run at the same time, each with one worker and the same files: one reads an empty configuration of OpenSSL, the other one that
prefers the module. wrk requests a file from them in turn over 127.0.0.1, N (9) rounds of S (3) seconds for each file and cipher suite, or for the given ones.
The processor time is that of the worker with all its threads. It contains the reading of the file, which is in the page cache, and the
work of the operating system for the sockets. Prints a table in Markdown with medians, and the spread of the ratio over the rounds.

With --source, nginx is built first with a release of OpenSSL that tools/openssl_release.sh builds (4.0). FOLDER contains the unpacked
source of nginx: from nginx.org, from a source package of the distribution, or `nginx` in the crate nginx-src. The results of both builds
are kept in the target folder.
"""

import argparse
import contextlib
import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

import harness
import common

SUITES = {"AES-128-GCM": "TLS_AES_128_GCM_SHA256", "AES-256-GCM": "TLS_AES_256_GCM_SHA384"}
FILES = {"16 KB": 16_000, "10 MB": 10_000_000}
CONNECTIONS = 4
UNITS = {"KB": 1 << 10, "MB": 1 << 20, "GB": 1 << 30}

CONFIGURATION = """
{user}
worker_processes 1;
daemon off;
pid {folder}/{name}.pid;
error_log {folder}/{name}.log;
events {{ worker_connections 64; }}
http {{
    access_log off;
    keepalive_requests 1000000;
    client_body_temp_path {folder}/{name}-body;
    proxy_temp_path {folder}/{name}-proxy;
    fastcgi_temp_path {folder}/{name}-fastcgi;
    uwsgi_temp_path {folder}/{name}-uwsgi;
    scgi_temp_path {folder}/{name}-scgi;
    ssl_certificate {folder}/certificate.pem;
    ssl_certificate_key {folder}/key.pem;
    ssl_protocols TLSv1.3;
    root {folder};
    {servers}
}}
"""
SERVER = "server {{ listen 127.0.0.1:{port} ssl; ssl_conf_command Ciphersuites {suite}; }}"


def built(source, release):
    """Builds nginx with a release of OpenSSL unless this has been done, and returns the path of the program."""
    script = os.path.join(harness.TOOLS, "openssl_release.sh")
    openssl = subprocess.run([script, release], stdout=subprocess.PIPE, text=True, check=True).stdout.strip()
    with open(os.path.join(source, "src/core/nginx.h"), encoding="utf-8") as header:
        version = re.search(r'NGINX_VERSION\s+"([\d.]+)"', header.read())[1]
    folder = os.path.join(os.path.dirname(openssl), f"nginx-{version}-{os.path.basename(openssl)}")
    program = os.path.join(folder, "objs/nginx")
    if not os.path.exists(program):
        shutil.copytree(source, folder, dirs_exist_ok=True)
        # A release has the script `configure` in its root, a copy of the repository in `auto`.
        configure = next(path for path in ("./configure", "auto/configure") if os.path.exists(os.path.join(folder, path)))
        # Stapling by OCSP in nginx 1.28 accesses structures that OpenSSL 4.0 hides. The measurement does not use it.
        flags = f"-O2 -Wno-error -DOPENSSL_NO_OCSP -I{openssl}/include"
        options = ["--with-http_ssl_module", "--without-http_rewrite_module", "--without-http_gzip_module"]
        commands = (
            ["sh", configure, *options, f"--with-cc-opt={flags}", f"--with-ld-opt=-L{openssl}/lib"],
            ["make", f"-j{os.cpu_count()}"],
        )
        for command in commands:
            done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
            if done.returncode:
                sys.exit(f"{command[0]} failed in {folder}:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return program


class Server:
    """nginx with one worker, and a port for each cipher suite."""

    def __init__(self, stack, program, folder, name, environment):
        self.ports = {suite: common.free_port() for suite in SUITES}
        servers = "\n    ".join(SERVER.format(port=port, suite=SUITES[suite]) for suite, port in self.ports.items())
        user = "user root root;" if os.geteuid() == 0 else ""
        path = os.path.join(folder, f"{name}.conf")
        with open(path, "w", encoding="utf-8") as file:
            file.write(CONFIGURATION.format(user=user, folder=folder, name=name, servers=servers))
        self.log_path = os.path.join(folder, f"{name}.log")
        self.master = subprocess.Popen([program, "-p", folder, "-e", self.log_path, "-c", path], env=environment)
        stack.callback(self.stop)
        end = time.monotonic() + common.PATIENCE
        while not (worker := self.workers()):
            if self.master.poll() is not None or time.monotonic() > end:
                sys.exit(f"nginx does not start:\n{self.log()}")
            time.sleep(0.05)
        self.worker = worker[0]

    def log(self):
        """The messages of nginx. Their file is in the temporary folder, which is deleted when this program ends."""
        with contextlib.suppress(FileNotFoundError), open(self.log_path, encoding="utf-8", errors="replace") as file:
            return file.read()
        return "it has written no log"

    def workers(self):
        with open(f"/proc/{self.master.pid}/task/{self.master.pid}/children", encoding="ascii") as file:
            return file.read().split()

    def stop(self):
        self.master.terminate()
        self.master.wait()

    def has(self, module):
        with open(f"/proc/{self.worker}/maps", encoding="utf-8") as maps:
            return module in maps.read()

    def seconds(self):
        """The processor time of the worker so far."""
        total = 0
        for path in glob.glob(f"/proc/{self.worker}/task/*/schedstat"):
            with open(path, encoding="ascii") as file:
                total += int(file.read().split()[0])
        return total / 1e9


def request(server, suite, file, seconds):
    """Processor seconds for each GB, and requests per second."""
    before = server.seconds()
    command = ["wrk", "-t", "1", "-c", str(CONNECTIONS), "-d", str(seconds), f"https://127.0.0.1:{server.ports[suite]}/{file}"]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    spent = server.seconds() - before
    sent = re.search(r"(\d+) requests in ([\d.]+)s, ([\d.]+)([KMG]B) read", said)
    if not sent or "Non-2xx" in said or "Socket errors" in said:
        sys.exit(f"requests failed:\n{said}")
    gigabytes = float(sent[3]) * UNITS[sent[4]] / 1e9
    return spent / gigabytes, int(sent[1]) / float(sent[2])


def check(server, suite, file, folder):
    """Fetches a file once and compares it."""
    command = ["curl", "-sS", "--cacert", os.path.join(folder, "certificate.pem")]
    fetched = subprocess.run(
        [*command, f"https://127.0.0.1:{server.ports[suite]}/{file}"], capture_output=True, check=True
    ).stdout
    with open(os.path.join(folder, file), "rb") as original:
        if fetched != original.read():
            sys.exit(f"{suite}: the file differs")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("module", metavar="LOCKSTEP_SO")
    program = parser.add_mutually_exclusive_group()
    program.add_argument("--nginx", default="nginx")
    program.add_argument("--source", metavar="FOLDER")
    parser.add_argument("--openssl", metavar="RELEASE", help="the release for --source (4.0)")
    parser.add_argument("--file", choices=FILES, action="append")
    parser.add_argument("--suite", choices=SUITES, action="append")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--seconds", type=int, default=3)
    options = parser.parse_args()
    if options.openssl and not options.source:
        parser.error("--openssl requires --source")
    if options.source:
        options.nginx = built(options.source, options.openssl or "4.0")
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj",
             "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", f"{folder}/key.pem", "-out",
             f"{folder}/certificate.pem"], check=True, capture_output=True)
        for size in FILES.values():
            with open(os.path.join(folder, str(size)), "wb") as file:
                file.write(os.urandom(size))
        names = ("default", "lockstep")
        configurations = harness.configurations(folder, options.module)
        servers = {
            name: Server(stack, options.nginx, folder, name, harness.openssl_environment(configuration))
            for name, configuration in zip(names, configurations)
        }
        module = os.path.abspath(options.module)
        if [server.has(module) for server in servers.values()] != [False, True]:
            sys.exit("the module is not loaded by the right server")
        version = subprocess.run([options.nginx, "-V"], capture_output=True, text=True, check=True).stderr
        print("\n".join(version.splitlines()[:3]))
        print(f"{options.rounds} rounds of {options.seconds} s\n{harness.machine()}\n")
        harness.head("file", "suite", "processor s/GB: default", "lockstep", "ratio", "spread", "requests/s: default", "lockstep", "ratio")
        for label in options.file or FILES:
            size = FILES[label]
            for suite in options.suite or SUITES:
                for server in servers.values():
                    check(server, suite, str(size), folder)
                contenders = {
                    name: lambda server=server: request(server, suite, str(size), options.seconds)
                    for name, server in servers.items()
                }
                results = harness.alternate(contenders, options.rounds)
                times, rates = ([[pair[at] for pair in results[name]] for name in names] for at in (0, 1))
                time_ratio, rate_ratio = harness.Ratios(*times), harness.Ratios(*reversed(rates))
                harness.row(
                    label, suite, *(f"{median:.3f}" for median in time_ratio.medians), f"{time_ratio.median:.2f}",
                    time_ratio.spread(), *(f"{median:.0f}" for median in reversed(rate_ratio.medians)), f"{rate_ratio.median:.2f}",
                )


if __name__ == "__main__":
    main()
