"""A long-lived HTTPS client of the soak, which compares the digest of everything it fetches and sends.

    client.py SETTINGS

SETTINGS is JSON: see `main`. It runs until its standard input ends, and prints its counts as JSON each second and at the
end. The configuration of OpenSSL comes from OPENSSL_CONF, so it runs on the default provider or on the subject.
Started by soak.py.
"""

import sys

sys.dont_write_bytecode = True

import hashlib
import json
import os
import random
import select
import socket
import ssl
import time

# The request in which a flaw is planted.
FLAWED = 5
LEAK = 4 << 20
UPLOAD = 120_000


class Hung(Exception):
    """A request took longer than anyone waits."""


class Deadline:
    def __init__(self, seconds):
        self.end = time.monotonic() + seconds

    def set(self, connection):
        """The next call on a socket may take what is left."""
        left = self.end - time.monotonic()
        if left <= 0:
            raise Hung
        connection.settimeout(left)


def context(settings, version, suite):
    made = ssl.create_default_context(cafile=settings["certificate"])
    made.minimum_version = made.maximum_version = ssl.TLSVersion[version]
    if suite != "-":
        made.set_ciphers(suite)
    return made


def converse(made, port, request, deadline):
    """Sends a request on a connection of its own; the status and the body of the answer."""
    try:
        plain = socket.create_connection(("127.0.0.1", port), timeout=max(0.001, deadline.end - time.monotonic()))
        with plain:
            deadline.set(plain)
            with made.wrap_socket(plain, server_hostname="localhost") as connection:
                deadline.set(connection)
                connection.sendall(request)
                answer = bytearray()
                while True:
                    deadline.set(connection)
                    piece = connection.recv(1 << 16)
                    if not piece:
                        break
                    answer += piece
    except TimeoutError as problem:
        raise Hung from problem
    head, _, body = bytes(answer).partition(b"\r\n\r\n")
    lines = head.decode("latin-1").split("\r\n")
    lengths = [int(line.split(":")[1]) for line in lines if line.lower().startswith("content-length:")]
    # A 204 has no body and no length.
    if not head or len(body) < (lengths or [0])[0]:
        raise ConnectionError(f"the answer ended after {len(head)} and {len(body)} bytes of {lengths}")
    return int(lines[0].split()[1]), body


class Client:
    def __init__(self, settings):
        self.settings = settings
        self.random = random.Random(settings["seed"])
        self.contexts = [(suite, context(settings, *suite[:2])) for suite in settings["suites"]]
        self.counts = dict.fromkeys(("requests", "bytes", "uploads", "aborted", "failed", "wrong", "hung"), 0)
        self.kept = []

    def flaw(self, name):
        return self.settings["flaw"] == name and self.counts["requests"] == FLAWED

    def report(self):
        print(json.dumps(self.counts), flush=True)

    def problem(self, kind, what):
        self.counts[kind] += 1
        print(f"{kind}: {what}", file=sys.stderr, flush=True)

    def ask(self):
        """One request of random kind."""
        (version, suite, may_abort), made = self.random.choice(self.contexts)
        server = self.random.choice(self.settings["servers"])
        # What a failing device does takes long in the emulator.
        names = [name for name, (size, _) in self.settings["objects"].items() if not may_abort or size <= 200_000]
        name = self.random.choice(names)
        uploads = self.random.random() < 0.2
        port = server["port"]
        what = f"{version} {suite} {'upload' if uploads else name} port {port}"
        deadline = Deadline(self.settings["patience"])
        silent = socket.create_server(("127.0.0.1", 0)) if self.flaw("hang") or self.flaw("refused") else None
        if silent:
            port = silent.getsockname()[1]
            if self.flaw("refused"):
                silent.close()
        try:
            if uploads:
                self.upload(made, server, port, deadline)
            else:
                self.fetch(made, port, name, deadline)
        except Hung:
            self.problem("hung", what)
        except (OSError, ValueError) as problem:
            # A device that fails in a record, which is ciphered in place, ends the connection.
            if may_abort:
                self.counts["aborted"] += 1
            else:
                self.problem("failed", f"{what}: {problem!r}")
        finally:
            if silent:
                silent.close()
        self.counts["requests"] += 1
        if self.settings["flaw"] == "leak":
            self.kept.append(b"x" * LEAK)

    def fetch(self, made, port, name, deadline):
        _, expected = self.settings["objects"][name]
        if self.flaw("wrong"):
            expected = hashlib.sha256(b"another").hexdigest()
        request = f"GET /{name} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode()
        status, body = converse(made, port, request, deadline)
        if status != 200:
            self.problem("failed", f"{name}: status {status}")
        elif hashlib.sha256(body).hexdigest() != expected:
            self.problem("wrong", f"{name}, {len(body)} bytes: another digest")
        self.counts["bytes"] += len(body)

    def upload(self, made, server, port, deadline):
        data = self.random.randbytes(UPLOAD)
        name = f"client-{self.settings['seed']}"
        head = f"PUT /upload/{name} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: {UPLOAD}\r\n\r\n"
        status, _ = converse(made, port, head.encode() + data, deadline)
        if status not in (201, 204):
            return self.problem("failed", f"upload: status {status}")
        with open(os.path.join(server["uploads"], name), "rb") as file:
            arrived = file.read()
        if self.flaw("wrong"):
            arrived = arrived[:-1]
        if arrived != data:
            self.problem("wrong", f"upload: {len(arrived)} of {UPLOAD} bytes arrived, or others")
        self.counts["uploads"] += 1
        self.counts["bytes"] += len(data)


def main():
    settings = json.loads(sys.argv[1])
    client = Client(settings)
    told = time.monotonic()
    while not select.select([sys.stdin], [], [], 0)[0]:
        client.ask()
        if time.monotonic() - told >= 1:
            told = time.monotonic()
            client.report()
    client.report()


if __name__ == "__main__":
    main()
