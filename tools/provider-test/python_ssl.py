#!/usr/bin/env python3
"""Tests Python's `ssl` module on our provider.

    tools/provider-test/python_ssl.py LOCKSTEP_SO

Python has no interface for providers: only OPENSSL_CONF selects ours. A server and a client with 16 parallel connections, one
thread for each, send each other messages of random lengths, with TLS 1.2 and 1.3, between our provider and the default one and
between two processes on ours. Then processes that were forked with open connections and a used random generator continue. All
must end with exit code 0.

LOCKSTEP_TEST_SUBJECT=default checks this script: it runs the same tests on the default provider alone, without checks of traces.
"""

import sys

sys.dont_write_bytecode = True

import hashlib
import os
import random
import re
import socket
import ssl
import struct
import threading

CONNECTIONS = 16
MESSAGES = 12
LONGEST = 200_000
# For each suite: the TLS version, the name (in TLS 1.3 the library uses its first suite), and the cipher of our provider that is
# used.
SUITES = (
    ("TLSv1_2", "ECDHE-RSA-AES128-GCM-SHA256", "AES-128-GCM"),
    ("TLSv1_2", "ECDHE-RSA-AES256-SHA384", "AES-256-CBC"),
    ("TLSv1_2", "AES256-CCM", "AES-256-CCM"),
    ("TLSv1_3", None, "AES-256-GCM"),
)


def main():
    import common

    test = common.Test(__doc__, "python_ssl")
    with test:
        identity = common.make_certificate(test, common.program("openssl"))
        for version, suite, algorithm in SUITES:
            for server_is_ours, client_is_ours in ((True, False), (False, True), (True, True)):
                name = (
                    f"{version} {suite or 'first suite'}, our" + " server" * server_is_ours + " client" * client_is_ours
                )
                arguments = [version, suite or "-", *identity]
                pair(test, common, name, arguments, server_is_ours, client_is_ours, algorithm)
        forks(test, identity)
        for subject in (True, False):
            done = test.run(sys.executable, __file__, "exits", *identity, subject=subject)
            test.ran(done, f"a Python that ends with a live connection, {'default ours'.split()[subject]}")
        return test.finish()


def pair(test, common, name, arguments, server_is_ours, client_is_ours, algorithm):
    """Runs two processes: one serves, and the other one connects."""
    server_trace, client_trace = test.trace(), test.trace()
    command = [sys.executable, __file__]
    environment = test.environment(server_is_ours, server_trace)
    with common.Process(*command, "serve", *arguments, environment=environment) as server:
        port = server.wait_for(lambda it: re.match(rb"port (\d+)\n", it.out))
        if not test.check(port, f"{name}: the server listens", server.said):
            return
        done = test.run(*command, "connect", *arguments, port[1].decode(), subject=client_is_ours, trace=client_trace)
        test.ran(done, f"{name}: the client")
        code = server.end()
        test.check(code == 0, f"{name}: the server", f"exit code {code}: {server.said}")
    for ours, trace, what in ((server_is_ours, server_trace, "server"), (client_is_ours, client_trace, "client")):
        for direction in ("encrypt", "decrypt"):
            if ours:
                test.proved(trace, algorithm, direction, f"{name}: {what}", at_least=CONNECTIONS * LONGEST)


def forks(test, identity):
    trace = test.trace()
    done = test.run(sys.executable, __file__, "forks", *identity, trace=trace)
    test.ran(done, "forked processes")
    # The random generator of forked processes uses the preferred provider.
    test.proved(trace, "AES-256-CTR", "encrypt", "forked processes: random bytes")
    if test.proof:
        users = trace.users("AES-256-GCM", "encrypt")
        test.check(len(users) >= 5, "forked processes: five used our provider", "\n".join(trace.lines()))


# The code below runs in separate processes, with OPENSSL_CONF set.


def contexts(version, suite, certificate, key):
    """The TLS contexts of a server and of a client."""
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(certificate, key)
    client = ssl.create_default_context(cafile=certificate)
    for each in (server, client):
        each.minimum_version = each.maximum_version = ssl.TLSVersion[version]
        if suite != "-":
            each.set_ciphers(suite)
    return server, client


def send(connection, message):
    """Sends the length, the digest and the message in one call."""
    connection.sendall(struct.pack(">I", len(message)) + hashlib.sha256(message).digest() + message)


def receive(connection):
    """Receives a message and compares its digest."""
    length = struct.unpack(">I", exactly(connection, 4))[0]
    digest = exactly(connection, 32)
    message = exactly(connection, length)
    if hashlib.sha256(message).digest() != digest:
        raise SystemExit("a message was changed on its way")
    return message


def exactly(connection, length):
    data = bytearray()
    while len(data) < length:
        piece = connection.recv(length - len(data))
        if not piece:
            raise SystemExit("the connection ended in a message")
        data += piece
    return bytes(data)


def in_threads(count, function):
    """Calls a function with 0, 1, ... at the same time; any failure ends the process."""
    problems = []

    def call(number):
        try:
            function(number)
        except BaseException as problem:
            problems.append(problem)

    threads = [threading.Thread(target=call, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if problems:
        raise SystemExit(f"{len(problems)} of {count} threads failed; the first: {problems[0]!r}")


def lengths(number):
    """The lengths of the messages of a connection: the maximum length, 0, and random lengths."""
    source = random.Random(number)
    return [LONGEST, 0, 1, *(source.randrange(LONGEST) for _ in range(MESSAGES - 3))]


def serve(version, suite, key, certificate):
    settings, _ = contexts(version, suite, certificate, key)
    with socket.create_server(("127.0.0.1", 0), backlog=CONNECTIONS) as listener:
        listener.settimeout(60)
        print(f"port {listener.getsockname()[1]}", flush=True)

        def answer(_):
            plain, _ = listener.accept()
            plain.settimeout(60)
            with settings.wrap_socket(plain, server_side=True) as connection:
                for _ in range(MESSAGES):
                    # The answer is the message in reverse, so that a mere echo is detected.
                    send(connection, receive(connection)[::-1])
                receive(connection)

        in_threads(CONNECTIONS, answer)


def connect(version, suite, key, certificate, port):
    _, settings = contexts(version, suite, certificate, key)

    def ask(number):
        plain = socket.create_connection(("127.0.0.1", int(port)), timeout=60)
        with settings.wrap_socket(plain, server_hostname="localhost") as connection:
            if suite != "-" and connection.cipher()[0] != suite:
                raise SystemExit(f"the suite is {connection.cipher()[0]}, not {suite}")
            for length in lengths(number):
                message = os.urandom(length // 2) + ssl.RAND_bytes(length - length // 2)
                send(connection, message)
                if receive(connection) != message[::-1]:
                    raise SystemExit("another message came back")
            send(connection, b"")

    in_threads(CONNECTIONS, ask)


def connection_in_memory(settings, client_settings):
    """Creates both ends of a connection in this process."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    server = settings.wrap_bio(to_server, to_client, server_side=True)
    client = client_settings.wrap_bio(to_client, to_server, server_hostname="localhost")
    for _ in range(10):
        for end in (client, server):
            try:
                end.do_handshake()
            except ssl.SSLWantReadError:
                pass
    return server, client


def exchange(server, client, length):
    """Sends a message in each direction."""
    for sender, receiver in ((server, client), (client, server)):
        message = os.urandom(length)
        got = b""
        # The message is sent in single records, because the other end reads only after each of them.
        for at in range(0, length, 10_000):
            sender.write(message[at : at + 10_000])
            got += receiver.read(10_000)
        if got != message:
            raise SystemExit("a message was changed on its way")


def forks_(key, certificate):
    settings = contexts("TLSv1_3", "-", certificate, key)
    ssl.RAND_bytes(100)
    ends = connection_in_memory(*settings)
    exchange(*ends, 100_000)
    draws = []
    for number in range(4):
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(reading)
            # Threads of the child use the parent's connection, which was made before the fork, and a new connection.
            exchange(*ends, 100_000)
            in_threads(4, lambda _: exchange(*connection_in_memory(*settings), 100_000))
            os.write(writing, ssl.RAND_bytes(32) + hashlib.sha256(b"").digest())
            # One child ends without running exit handlers, and the other child runs them.
            if number % 2:
                os._exit(0)
            sys.exit(0)
        os.close(writing)
        draws.append((child, reading))
    exchange(*ends, 100_000)
    drawn = {ssl.RAND_bytes(32)}
    for child, reading in draws:
        with open(reading, "rb") as pipe:
            drawn.add(pipe.read()[:32])
        _, status = os.waitpid(child, 0)
        if status:
            raise SystemExit(f"a forked process ended with status {status}")
    if len(drawn) != 5 or any(len(each) != 32 for each in drawn):
        raise SystemExit("random bytes of forked processes are not all different")


def exits(key, certificate):
    # The variable is global, so it still exists when the interpreter ends.
    global alive
    alive = connection_in_memory(*contexts("TLSv1_2", "AES256-GCM-SHA384", certificate, key))
    exchange(*alive, 100_000)


if __name__ == "__main__":
    roles = {"serve": serve, "connect": connect, "forks": forks_, "exits": exits}
    if len(sys.argv) > 1 and sys.argv[1] in roles:
        sys.exit(roles[sys.argv[1]](*sys.argv[2:]))
    sys.exit(main())
