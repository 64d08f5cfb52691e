"""A long-lived HTTPS client of the soak, which compares the digest of everything it fetches and sends.

    client.py SETTINGS

SETTINGS is JSON: see `Soak.client` in soak.py. It runs until its standard input ends, and prints its counts as JSON each
second and at the end. The configuration of OpenSSL comes from OPENSSL_CONF, so it runs on the default provider or on the
subject. Started by soak.py.
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

# A client with flaws makes its faulty request when it reaches this number of requests.
FLAWED = 5
# The numbers of uploads and of fetches with each suite in one round of requests.
UPLOADS, FETCHES = 1, 4
LEAK = 4 << 20
UPLOAD = 120_000
# Requests to a server whose device fails have one of two lengths. The shorter ones fit into one record and are rarely aborted. The
# longer ones take two records, and a third of them is aborted. Most requests that are even longer would be aborted.
UPLOADS_TO_FAILING = (15_000, 30_000)


class Hung(Exception):
    """A request took longer than the limit."""


class Ended(Exception):
    """The server ended the connection after the handshake, before its answer was complete."""


class WrongBytes(Exception):
    """The received data differ from the sent data."""


class NotAuthentic(WrongBytes):
    """A received record is not authentic."""


class Deadline:
    def __init__(self, seconds):
        self.end = time.monotonic() + seconds

    def set(self, connection):
        """Sets the time limit of the next call on a socket to the time that is left."""
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


def converse(made, port, request, deadline, cut):
    """Sends a request on a new connection. Returns the status and the body of the answer. If `cut` is true, injects a flaw: the
    connection ends after the handshake."""
    try:
        plain = socket.create_connection(("127.0.0.1", port), timeout=max(0.001, deadline.end - time.monotonic()))
        with plain:
            deadline.set(plain)
            with made.wrap_socket(plain, server_hostname="localhost") as connection:
                if cut:
                    connection.shutdown(socket.SHUT_RDWR)
                answer = exchange(connection, request, deadline)
    except TimeoutError as problem:
        raise Hung from problem
    head, _, body = answer.partition(b"\r\n\r\n")
    lines = head.decode("latin-1").split("\r\n")
    lengths = [int(line.split(":")[1]) for line in lines if line.lower().startswith("content-length:")]
    # An answer with the status 204 has no body and no length.
    if not head or len(body) < (lengths or [0])[0]:
        raise Ended(f"the answer ended after {len(head)} and {len(body)} bytes of {lengths}")
    return int(lines[0].split()[1]), body


def exchange(connection, request, deadline):
    """Sends a request on a connection whose handshake is complete, and receives until the server ends the connection."""
    answer = bytearray()
    try:
        deadline.set(connection)
        connection.sendall(request)
        while True:
            deadline.set(connection)
            piece = connection.recv(1 << 16)
            if not piece:
                return bytes(answer)
            answer += piece
    except TimeoutError:
        raise
    except ssl.SSLError as problem:
        # With this reason, the client itself has detected the error. An alert from the server would have another reason.
        if problem.reason == "DECRYPTION_FAILED_OR_BAD_RECORD_MAC":
            raise NotAuthentic(f"a record after {len(answer)} bytes is not authentic") from problem
        raise Ended(repr(problem)) from problem
    except OSError as problem:
        raise Ended(repr(problem)) from problem


class Client:
    def __init__(self, settings):
        self.settings = settings
        self.random = random.Random(settings["seed"])
        self.contexts = [(suite, context(settings, *suite)) for suite in settings["suites"]]
        self.counts = dict.fromkeys(("requests", "bytes", "uploads", "aborted", "failed", "wrong", "hung", "lasting"), 0)
        # For each suite and direction: the number of requests that succeeded, and for servers whose device fails, the
        # number of all requests and of aborted requests.
        self.kinds = {f"{each[1]} {way}": [0, 0, 0] for each in settings["suites"] for way in ("fetch", "upload")}
        self.slowest = (0, "none")
        self.dealt = []
        self.kept = []

    def flaw(self, name):
        return self.settings["flaw"] == name and self.counts["requests"] == FLAWED

    def report(self):
        print(json.dumps({**self.counts, "kinds": self.kinds, "slowest": self.slowest}), flush=True)

    def problem(self, kind, what):
        self.counts[kind] += 1
        print(f"{kind}: {what}", file=sys.stderr, flush=True)

    def deal(self):
        """Chooses the suite and the direction of the next request in random order. All suites are equally frequent."""
        if not self.dealt:
            ways = [False] * FETCHES + [True] * UPLOADS
            self.dealt = [(*each, uploads) for each in self.contexts for uploads in ways]
            self.random.shuffle(self.dealt)
        return self.dealt.pop()

    def ask(self):
        """Makes one request of a random kind."""
        (version, suite), made, uploads = self.deal()
        server = self.random.choice(self.settings["servers"])
        may_abort = server["fails"]
        name = self.random.choice(list(self.settings["objects"]))
        port = server["port"]
        what = f"{version} {suite} {'upload' if uploads else name} port {port}"
        kind = self.kinds[f"{suite} {'upload' if uploads else 'fetch'}"]
        begun = time.monotonic()
        deadline = Deadline(self.settings["patience"])
        # A failing device may abort this request, but it cannot refuse the connection. So the flaw must be reported.
        refused = self.settings["flaw"] == "refused" and may_abort
        silent = socket.create_server(("127.0.0.1", 0)) if self.flaw("hang") or refused else None
        if silent:
            port = silent.getsockname()[1]
            if refused:
                silent.close()
        cut = self.settings["flaw"] == "aborted" and may_abort
        kind[1] += may_abort
        try:
            if uploads:
                size = self.random.choice(UPLOADS_TO_FAILING) if may_abort else UPLOAD
                kind[0] += self.upload(made, server["uploads"], port, size, deadline, cut)
            else:
                kind[0] += self.fetch(made, port, name, deadline, cut)
        except Hung:
            self.problem("hung", what)
        except (WrongBytes, Ended) as problem:
            # A record is ciphered in place, so a device that fails in it ends the connection. OpenSSL counts a record of GCM and
            # CCM before the record is encrypted, so the client cannot authenticate the alert that follows.
            is_alert = isinstance(problem, NotAuthentic) and ("GCM" in suite or "CCM" in suite or version == "TLSv1_3")
            if isinstance(problem, WrongBytes) and not (may_abort and is_alert):
                self.problem("wrong", f"{what}: {problem}")
            elif may_abort:
                self.counts["aborted"] += 1
                kind[2] += 1
            else:
                self.problem("failed", f"{what}: {problem}")
        except (OSError, ValueError, IndexError) as problem:
            self.problem("failed", f"{what}: {problem!r}")
        finally:
            if silent:
                silent.close()
        self.slowest = max(self.slowest, (round(time.monotonic() - begun, 3), what))
        self.counts["requests"] += 1
        self.counts["lasting"] += server["lasts"]
        if self.settings["flaw"] == "leak":
            self.kept.append(b"x" * LEAK)

    def fetch(self, made, port, name, deadline, cut):
        """Fetches an object. Returns true if it has arrived."""
        _, expected = self.settings["objects"][name]
        if self.flaw("wrong"):
            expected = hashlib.sha256(b"another").hexdigest()
        request = f"GET /{name} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode()
        status, body = converse(made, port, request, deadline, cut)
        self.counts["bytes"] += len(body)
        if status != 200:
            self.problem("failed", f"{name}: status {status}")
            return False
        if hashlib.sha256(body).hexdigest() != expected:
            raise WrongBytes(f"{name}, {len(body)} bytes: another digest")
        return True

    def upload(self, made, folder, port, size, deadline, cut):
        """Uploads data. Returns true if they have arrived."""
        data = self.random.randbytes(size)
        name = f"client-{self.settings['seed']}"
        head = f"PUT /upload/{name} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: {size}\r\n\r\n"
        status, _ = converse(made, port, head.encode() + data, deadline, cut)
        if status not in (201, 204):
            self.problem("failed", f"upload: status {status}")
            return False
        with open(os.path.join(folder, name), "rb") as file:
            arrived = file.read()
        if self.flaw("wrong"):
            arrived = arrived[:-1]
        self.counts["uploads"] += 1
        self.counts["bytes"] += len(data)
        if arrived != data:
            raise WrongBytes(f"upload: {len(arrived)} of {size} bytes arrived, or others")
        return True


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
