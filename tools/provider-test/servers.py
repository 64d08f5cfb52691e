#!/usr/bin/env python3
"""Tests that nginx and Apache httpd serve HTTPS on our provider.

    tools/provider-test/servers.py LOCKSTEP_SO

Both servers run with several workers, which drop root's privileges if they have them, on free ports of 127.0.0.1, with
separate configurations and folders. curl, on the default provider, fetches 35 KB, 150 KB and 100 MB over each
cipher suite and sends some megabytes; wrk and ab send parallel requests, once while the server reloads its configuration.
No byte may differ, no request may fail, and a trace proves that the workers used our AES.

LOCKSTEP_TEST_SUBJECT=default checks this script: it runs the same tests on the default provider alone, without checks of traces.
"""

import sys

sys.dont_write_bytecode = True

import contextlib
import grp
import hashlib
import os
import pwd
import random
import re
import shutil
import signal
import socket
import time

import common

OBJECTS = {"35k": 35_000, "150k": 150_000, "100m": 100 << 20}
UPLOAD = 5_000_000
# The users that the workers may have if this script runs as root.
USERS = ("www-data", "nobody")
# For each suite: the TLS version, the name, and the cipher of our provider that is used. The servers offer encrypt-then-MAC on
# their first port but not on the second.
SUITES = (
    ("1.2", "ECDHE-RSA-AES128-GCM-SHA256", "AES-128-GCM"),
    ("1.2", "AES256-GCM-SHA384", "AES-256-GCM"),
    ("1.2", "AES128-CCM", "AES-128-CCM"),
    ("1.2", "ECDHE-RSA-AES256-SHA384", "AES-256-CBC"),
    ("1.3", "TLS_AES_128_GCM_SHA256", "AES-128-GCM"),
    ("1.3", "TLS_AES_256_GCM_SHA384", "AES-256-GCM"),
    ("1.3", "TLS_AES_128_CCM_SHA256", "AES-128-CCM"),
)
TLS12 = ":".join(suite for version, suite, _ in SUITES if version == "1.2")
TLS13 = ":".join(suite for version, suite, _ in SUITES if version == "1.3")
CONCURRENCY = 32

NGINX = """
{user}
worker_processes 3;
daemon off;
pid {folder}/nginx.pid;
error_log {folder}/nginx.log info;
events {{ worker_connections 512; }}
http {{
    access_log off;
    default_type application/octet-stream;
    client_max_body_size 64m;
    client_body_temp_path {folder}/temporary;
    proxy_temp_path {folder}/temporary-proxy;
    fastcgi_temp_path {folder}/temporary-fastcgi;
    uwsgi_temp_path {folder}/temporary-uwsgi;
    scgi_temp_path {folder}/temporary-scgi;
    keepalive_requests 1000000;
    ssl_certificate {certificate};
    ssl_certificate_key {key};
    ssl_protocols TLSv1.2 TLSv1.3;
    ssl_ciphers {tls12};
    server {{
        listen 127.0.0.1:{port} ssl;
        ssl_conf_command Ciphersuites {tls13};
        root {documents};
        location /upload/ {{ root {folder}; dav_methods PUT; create_full_put_path on; }}
        # Here nginx is a client, too.
        location /through/ {{
            proxy_pass https://127.0.0.1:{second}/;
            proxy_buffering off;
            proxy_ssl_protocols TLSv1.3;
            proxy_ssl_conf_command Ciphersuites TLS_AES_256_GCM_SHA384;
        }}
    }}
    server {{
        listen 127.0.0.1:{second} ssl;
        root {documents};
        ssl_conf_command Ciphersuites {tls13};
        ssl_conf_command Options -EncryptThenMac;
    }}
}}
"""
APACHE = """
ServerRoot {folder}
ServerName localhost
PidFile {folder}/apache.pid
ErrorLog {folder}/apache.log
LogLevel warn
DefaultRuntimeDir {folder}
Mutex file:{folder} default
{modules}
{user}
Listen 127.0.0.1:{port} https
Listen 127.0.0.1:{second} https
# Two processes stay, and there is room for their successors. Apache closes kept connections if it ends their process, or if no thread is
# left.
StartServers 2
ServerLimit 8
ThreadsPerChild 64
MaxRequestWorkers 128
MinSpareThreads 1
MaxSpareThreads 128
MaxKeepAliveRequests 0
SSLSessionCache shmcb:{folder}/sessions(512000)
SSLCertificateFile {certificate}
SSLCertificateKeyFile {key}
SSLProtocol -all +TLSv1.2 +TLSv1.3
SSLCipherSuite {tls12}
SSLCipherSuite TLSv1.3 {tls13}
DocumentRoot {documents}
ScriptSock {folder}/cgi.sock
ScriptAlias /upload {folder}/upload.cgi
<Directory {folder}>
    Require all granted
</Directory>
<VirtualHost 127.0.0.1:{port}>
    SSLEngine on
</VirtualHost>
<VirtualHost 127.0.0.1:{second}>
    SSLEngine on
    SSLOpenSSLConfCmd Options -EncryptThenMac
</VirtualHost>
"""
APACHE_MODULES = ("mpm_event", "unixd", "authz_core", "authz_host", "alias", "cgid", "socache_shmcb", "ssl")


def user():
    """The user that the workers have."""
    known = {entry.pw_name for entry in pwd.getpwall()}
    return next((name for name in USERS if name in known), None) or common.fail(f"no user {' or '.join(USERS)}")


def group():
    """The first group of the user that the workers have."""
    return grp.getgrgid(pwd.getpwnam(user()).pw_gid).gr_name


def nginx(test, values):
    """Writes the configuration of nginx, and returns the command line."""
    line = f"user {user()} {group()};" if os.geteuid() == 0 else ""
    conf = test.write("nginx.conf", NGINX.format(user=line, **values))
    return [common.program("nginx"), "-p", test.folder, "-e", test.path("nginx.log"), "-c", conf]


def apache(test, values):
    """Writes the configuration of Apache, and returns the command line."""
    folder = common.first_of("/usr/lib/apache2/modules", "/usr/lib*/httpd/modules", "/usr/libexec/apache2")
    if not folder:
        common.fail("no folder of Apache's modules: run tools/setup.sh programs")
    # A module that is a part of the program has no file.
    files = [(name, os.path.join(folder, f"mod_{name}.so")) for name in APACHE_MODULES]
    modules = "\n".join(f"LoadModule {name}_module {file}" for name, file in files if os.path.exists(file))
    line = f"User {user()}\nGroup {group()}" if os.geteuid() == 0 else ""
    script = "#!/bin/sh\nprintf 'Content-Type: text/plain\\r\\n\\r\\n'\nexec sha256sum\n"
    os.chmod(test.write("upload.cgi", script), 0o755)
    conf = test.write("apache.conf", APACHE.format(user=line, modules=modules, **values))
    return [common.program("apache2", "httpd"), "-D", "FOREGROUND", "-d", test.folder, "-f", conf]


def listens(port):
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError:
        return False
    return True


def started(test, make, values, trace):
    """Starts a server and waits until it listens. If another program takes the port first, tries again."""
    for _ in range(3):
        values.update(port=common.free_port(), second=common.free_port())
        with contextlib.ExitStack() as stack:
            command = make(test, values)
            server = stack.enter_context(common.Process(*command, environment=test.environment(True, trace)))
            end = time.monotonic() + common.PATIENCE
            while server.running.poll() is None and time.monotonic() < end:
                if listens(values["port"]) and listens(values["second"]):
                    # The caller ends it.
                    stack.pop_all()
                    return server
                time.sleep(0.05)
            why = f"{server.said}\n{log(test)}"
        if "in use" not in why:
            break
    test.check(False, "starts and listens", why)
    return None


def log(test):
    """Returns the end of the log that the server writes."""
    text = ""
    for name in ("nginx.log", "apache.log"):
        if os.path.exists(test.path(name)):
            with open(test.path(name), encoding="utf-8", errors="replace") as file:
                text += file.read()[-2000:]
    return text


def fetch(test, curl, server, values, expected):
    """Fetches each object over each suite from each port. Returns the bytes that workers sent and received, by algorithm."""
    sent, received = {}, {}
    for version, suite, algorithm in SUITES:
        for which in ("port", "second"):
            name = f"{server}, {suite}, {'with' if which == 'port' else 'without'} encrypt-then-MAC"
            address = f"https://127.0.0.1:{values[which]}"
            options = (
                ["--tls-max", "1.2", "--ciphers", suite]
                if version == "1.2"
                else ["--tlsv1.3", "--tls13-ciphers", suite]
            )
            command = [curl, "-sS", "--cacert", values["certificate"], *options]
            for object_, size in OBJECTS.items():
                output = test.ran(
                    test.run(*command, f"{address}/{object_}", subject=False), f"{name}: fetches {size} bytes"
                )
                test.check(
                    hashlib.sha256(output or b"").hexdigest() == expected[object_], f"{name}: {size} bytes, checksum"
                )
                sent[algorithm] = sent.get(algorithm, 0) + size
            if which == "port":
                upload = os.path.join(test.folder, "sent")
                if server == "nginx":
                    target = f"{address}/upload/{suite}"
                else:
                    target = f"{address}/upload"
                method = ["-X", "PUT" if server == "nginx" else "POST", "-H", "Content-Type: application/octet-stream"]
                done = test.run(*command, "-f", *method, "--data-binary", f"@{upload}", target, subject=False)
                output = test.ran(done, f"{name}: sends {UPLOAD} bytes")
                arrived = (output or b"").split(b" ")[0].decode()
                if server == "nginx" and output is not None:
                    with open(os.path.join(test.folder, "upload", suite), "rb") as file:
                        arrived = hashlib.sha256(file.read()).hexdigest()
                test.check(arrived == expected["sent"], f"{name}: {UPLOAD} bytes arrive, checksum")
                received[algorithm] = received.get(algorithm, 0) + UPLOAD
    if server == "nginx":
        name = "nginx as a client of itself"
        address = f"https://127.0.0.1:{values['port']}/through/100m"
        output = test.ran(test.run(curl, "-sS", "--cacert", values["certificate"], address, subject=False), name)
        test.check(hashlib.sha256(output or b"").hexdigest() == expected["100m"], f"{name}: checksum")
        received["AES-256-GCM"] += OBJECTS["100m"]
    return sent, received


def load(test, server, running, values):
    """Sends parallel requests: first without a reload, then with a reload in the middle. No request may fail."""
    address = f"https://127.0.0.1:{values['port']}"
    wrk, ab = common.program("wrk"), common.program("ab")
    name = f"{server}, wrk"
    output = test.ran(
        test.run(wrk, "-t", "2", "-c", str(CONCURRENCY), "-d", "3", "--timeout", "30s", f"{address}/35k", subject=False), name
    )
    text = (output or b"").decode()
    answers = re.search(r"(\d+) requests in", text)
    good = answers and int(answers[1]) > 100 and "Socket errors" not in text and "Non-2xx" not in text
    test.check(good, f"{name}: many answers, no error", text)
    before = children(running.running.pid)
    for suite, kept, count in (
        ("ECDHE-RSA-AES128-GCM-SHA256", ["-k"], 3000),
        ("ECDHE-RSA-AES256-SHA384", ["-k"], 1500),
        ("AES128-CCM", ["-k"], 1500),
        # A reload may close a kept-alive connection while a request is sent on it. It must not close new connections.
        ("AES256-GCM-SHA384", [], 1500),
    ):
        name = f"{server}, ab, {suite}{'' if kept else ', reloading'}"
        command = [
            ab,
            "-q",
            "-n",
            str(count),
            "-c",
            str(CONCURRENCY),
            *kept,
            "-f",
            "TLS1.2",
            "-Z",
            suite,
            f"{address}/35k",
        ]
        with common.Process(*command, environment=test.environment(False)) as asking:
            if not kept:
                # After this time, approximately half of the requests are done.
                time.sleep(0.3)
                running.running.send_signal(signal.SIGHUP if server == "nginx" else signal.SIGUSR1)
            code = asking.end()
        text = asking.out.decode(errors="replace")
        complete = re.search(r"Complete requests:\s+(\d+)", text)
        counts = re.findall(r"(?m)^(?:Complete|Failed|Write|Non-2xx|   .Connect).*", text)
        failed = re.search(r"Failed requests:\s+(\d+)", text)
        good = (
            code == 0
            and complete
            and failed
            and (int(complete[1]), int(failed[1])) == (count, 0)
            and "Non-2xx" not in text
        )
        test.check(
            good,
            f"{name}: {count} answers, no error",
            f"exit code {code}: {asking.said} {' '.join(counts)}",
        )
    end = time.monotonic() + common.PATIENCE
    while not children(running.running.pid) - before and time.monotonic() < end:
        time.sleep(0.05)
    test.check(children(running.running.pid) - before, f"{server}: reloaded: there are new workers")
    done = test.run(common.program("curl"), "-sS", "--cacert", values["certificate"], f"{address}/35k", subject=False)
    test.ran(done, f"{server}: serves after the reload")
    test.check(len(done.stdout) == OBJECTS["35k"], f"{server}: serves 35 KB after the reload")


def children(pid):
    """The processes that a process has started."""
    with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:
        return set(file.read().split())


def serve(test, server, make, values, expected):
    trace = test.trace()
    curl = common.program("curl")
    running = started(test, make, values, trace)
    if not running:
        return
    master = running.running.pid
    with running:
        sent, received = fetch(test, curl, server, values, expected)
        load(test, server, running, values)
        # SIGQUIT ends nginx gracefully, and SIGWINCH ends Apache gracefully.
        running.running.send_signal(signal.SIGQUIT if server == "nginx" else signal.SIGWINCH)
        code = running.end()
    test.check(code == 0, f"{server} ends well", f"exit code {code}: {running.said}\n{log(test)}")
    crashes = [line for line in log(test).splitlines() if re.search(r"exited on signal|exit signal|core dumped", line)]
    test.check(not crashes, f"{server}: no worker crashed", "\n".join(crashes))
    for direction, sums in (("encrypt", sent), ("decrypt", received)):
        for algorithm, size in sums.items():
            # Apache's workers end without freeing their ciphers, so OpenSSL never unloads our provider. Their trace contains first
            # uses but no totals.
            least = size if server == "nginx" else 0
            test.proved(trace, algorithm, direction, f"{server}'s workers", at_least=least, not_by=(master,))
    if test.proof:
        workers = trace.users("AES-128-GCM", "encrypt") - {master}
        test.check(len(workers) > 1, f"{server}: several workers used our provider", "\n".join(trace.lines()))


def main():
    test = common.Test(__doc__, "servers")
    with test:
        key, certificate = common.make_certificate(test, common.program("openssl"))
        documents = test.path("documents")
        source = random.Random(0x10C57E9)
        expected = {}
        for name, size in {**OBJECTS, "sent": UPLOAD}.items():
            data = source.randbytes(size)
            expected[name] = hashlib.sha256(data).hexdigest()
            os.makedirs(documents, exist_ok=True)
            test.write("sent" if name == "sent" else f"documents/{name}", data)
        os.mkdir(test.path("upload"))
        if os.geteuid() == 0:
            shutil.chown(test.path("upload"), user())
        values = {"folder": test.folder, "documents": documents, "key": key, "certificate": certificate}
        values.update(tls12=TLS12, tls13=TLS13)
        serve(test, "nginx", nginx, dict(values), expected)
        serve(test, "Apache", apache, dict(values), expected)
        return test.finish()


if __name__ == "__main__":
    sys.exit(main())
