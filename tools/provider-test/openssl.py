#!/usr/bin/env python3
"""Tests that the system's program `openssl` gives the same results on our provider and on the default provider.

    tools/provider-test/openssl.py LOCKSTEP_SO [LOCKSTEP_COMMAND]

list, enc, speed, cms, pkcs12, private keys, mac, and TLS between s_server and s_client: the output of one provider
must be readable with the other, and a trace of our provider proves that it did the work. With LOCKSTEP_COMMAND also
`lockstep openssl-conf`.

LOCKSTEP_TEST_SUBJECT=default checks this script: it runs the same tests on the default provider alone, without checks of traces.
"""

import sys

sys.dont_write_bytecode = True

import os
import platform
import random
import re

import common

BITS = (128, 192, 256)
# The modes of `openssl enc`. Except in the first two modes, a ciphertext is as long as its plaintext.
MODES = ("ecb", "cbc", "cfb", "cfb8", "cfb1", "ofb", "ctr")
SIZES = (0, 1, 15, 16, 17, 4095, 4096, 4097, 100_000, 10 << 20)
# The sizes for CFB1 are smaller, because it calls AES once for each bit.
CFB1_SIZES = (*SIZES[:-1], 1 << 20)

GCM128, GCM256, CBC128, CBC256, CCM128 = "AES-128-GCM", "AES-256-GCM", "AES-128-CBC", "AES-256-CBC", "AES-128-CCM"
# TLS prefers the default provider's CBC stitched with SHA-1 or SHA-256, which needs AES-NI and which our provider does not replace.
# This setting tells libcrypto that the processor has no AES-NI. Our provider ignores the setting.
UNSTITCHED = {"OPENSSL_ia32cap": "~0x200000000000000"} if platform.machine() in ("x86_64", "AMD64") else {}
# For each suite: the protocol, the name, the cipher of our provider that is used, further options of both programs, and their
# environment.
SUITES = (
    ("tls1_2", "ECDHE-RSA-AES128-GCM-SHA256", GCM128, (), {}),
    ("tls1_2", "AES256-GCM-SHA384", GCM256, (), {}),
    ("tls1_2", "AES128-CCM", CCM128, (), {}),
    ("tls1_2", "AES128-CCM8", CCM128, (), {}),
    ("tls1_2", "AES256-CCM", "AES-256-CCM", (), {}),
    ("tls1_2", "ECDHE-RSA-AES256-SHA384", CBC256, (), {}),
    ("tls1_2", "ECDHE-RSA-AES256-SHA384", CBC256, ("-no_etm",), {}),
    ("tls1_2", "AES128-SHA", CBC128, (), {}),
    ("tls1_2", "AES128-SHA", None, ("-no_etm",), {}),
    ("tls1_2", "AES128-SHA", CBC128, ("-no_etm",), UNSTITCHED),
    ("tls1_2", "AES256-SHA256", CBC256, ("-no_etm",), UNSTITCHED),
    ("tls1_1", "AES128-SHA", CBC128, (), {}),
    ("tls1_1", "AES256-SHA", CBC256, ("-no_etm",), UNSTITCHED),
    ("tls1", "AES256-SHA", CBC256, (), {}),
    ("tls1", "AES128-SHA", CBC128, ("-no_etm",), UNSTITCHED),
    ("tls1_3", "TLS_AES_128_GCM_SHA256", GCM128, (), {}),
    ("tls1_3", "TLS_AES_256_GCM_SHA384", GCM256, (), {}),
    ("tls1_3", "TLS_AES_128_CCM_SHA256", CCM128, (), {}),
    ("tls1_3", "TLS_AES_128_CCM_8_SHA256", CCM128, (), {}),
    ("dtls1_2", "ECDHE-RSA-AES128-GCM-SHA256", GCM128, (), {}),
    ("dtls1_2", "ECDHE-RSA-AES256-SHA384", CBC256, ("-no_etm",), {}),
    ("dtls1", "AES128-SHA", CBC128, ("-no_etm",), UNSTITCHED),
)
# The modes that must be listed with all three lengths of keys.
LISTED = "ECB CBC CBC-CTS CFB CFB1 CFB8 OFB CTR GCM CCM OCB WRAP WRAP-PAD WRAP-INV WRAP-PAD-INV".split()
# The number of bytes that are sent in each direction before the key change, and again after it.
TRANSFER = 3_000_000
# Datagrams are lost if a socket's buffer is full, and s_client does not repeat them.
DATAGRAM_TRANSFER = 4_000

# The seed is fixed, so each run has the same data. The data are not secret.
RANDOM = random.Random(0x10C57E9)


def listing(test, openssl):
    """Tests that the provider and the names of its ciphers are listed."""
    output = test.ran(test.run(openssl, "list", "-providers", "-verbose"), "list -providers")
    if not test.proof or output is None:
        return
    text = output.decode()
    found = re.search(r"^ {2}lockstep\n(.*\n)*? {4}status: active$", text, re.MULTILINE)
    test.check(found, "list -providers shows lockstep, active", text)
    output = test.ran(
        test.run(openssl, "list", "-cipher-algorithms", "-provider", "lockstep", "-propquery", "provider=lockstep"),
        "list -cipher-algorithms",
    )
    ours = {line.strip() for line in (output or b"").decode().splitlines() if line.rstrip().endswith("@ lockstep")}
    theirs = test.run(openssl, "list", "-cipher-algorithms", subject=False).stdout.decode()
    wanted = [f"AES-{bits}-{mode}" for bits in BITS for mode in LISTED]
    wanted += ["AES-128-XTS", "AES-256-XTS"]
    for name in wanted:
        # The line is like `{ 2.16.840.1.101.3.4.1.6, aes-128-gcm, AES-128-GCM, id-aes128-GCM } @ default`, with the names in any
        # order and case.
        lines = [line.strip() for line in theirs.splitlines() if name in aliases(line)]
        mine = [line for line in ours if name in aliases(line)]
        same = len(mine) == 1 and lines and aliases(lines[0]) <= aliases(mine[0])
        test.check(same, f"list: {name} has all names of the default provider", f"{mine} instead of {lines}")


def aliases(line):
    """The names in a line of `openssl list`, in capitals."""
    return set(re.sub(r"[{},]", " ", line.split("@")[0]).upper().split())


def enc(test, openssl, mode, bits, plains):
    """Tests `openssl enc` with one cipher."""
    cipher = f"-aes-{bits}-{mode}"
    secret = ["-K", RANDOM.randbytes(bits // 8).hex()] + (["-iv", RANDOM.randbytes(16).hex()] if mode != "ecb" else [])
    trace = test.trace()
    done_bytes = 0

    def run(*options, subject, data):
        return test.run(openssl, "enc", cipher, *options, subject=subject, trace=trace, data=data)

    for size in CFB1_SIZES if mode == "cfb1" else SIZES:
        name = f"enc {cipher}, {size} bytes"
        plain = plains[size]
        done_bytes += size
        theirs = test.ran(run("-e", *secret, subject=False, data=plain), f"{name}: encrypts on default")
        ours = test.ran(run("-e", *secret, subject=True, data=plain), f"{name}: encrypts")
        test.check(ours == theirs, f"{name}: the same ciphertext as the default provider's")
        output = test.ran(run("-d", *secret, subject=True, data=theirs or b""), f"{name}: decrypts default's")
        test.check(output == plain, f"{name}: the default provider's comes back")

    # Salts are random, so the ciphertexts differ. Each provider decrypts the ciphertext of the other one. Base64 has lines of 64 characters.
    for size in (0, 17, 4096, 100_000):
        for more in ((), ("-a",)):
            for subject in (True, False):
                name = (
                    f"enc {cipher}, {size} bytes, password, {'base64, ' if more else ''}encrypted by "
                    + "default ours".split()[subject]
                )
                options = ("-pbkdf2", "-iter", "50", "-pass", "pass:over the hills", *more)
                sealed = test.ran(run("-e", *options, subject=subject, data=plains[size]), name)
                output = test.ran(run("-d", *options, subject=not subject, data=sealed or b""), f"{name}, decrypted")
                test.check(output == plains[size], f"{name}: the other provider reads it")

    if mode in ("ecb", "cbc"):
        for size in (0, 16, 4096):
            name = f"enc {cipher} -nopad, {size} bytes"
            theirs = run("-e", *secret, "-nopad", subject=False, data=plains[size]).stdout
            ours = test.ran(run("-e", *secret, "-nopad", subject=True, data=plains[size]), name)
            test.check(ours == theirs and len(theirs) == size, f"{name}: the same ciphertext")
            output = test.ran(run("-d", *secret, "-nopad", subject=True, data=theirs), f"{name}: decrypts")
            test.check(output == plains[size], f"{name}: comes back")
        for option in ("-e", "-d"):
            test.refused(
                run(option, *secret, "-nopad", subject=True, data=plains[17]),
                f"enc {cipher} {option} -nopad refuses 17 bytes",
            )
        fixed = ("-pbkdf2", "-iter", "50", "-S", "0123456789abcdef")
        sealed = run("-e", *fixed, "-pass", "pass:right", subject=False, data=plains[100_000]).stdout
        # With one of 256 wrong passwords, the padding is valid by chance. So the test uses a password that the default provider
        # refuses.
        wrong = next(
            each for each in ("wrong", "bad", "false")
            if run("-d", *fixed, "-pass", f"pass:{each}", subject=False, data=sealed).returncode
        )  # fmt: skip
        done = run("-d", *fixed, "-pass", f"pass:{wrong}", subject=True, data=sealed)
        test.refused(done, f"enc {cipher}: a wrong password is refused", "bad decrypt")
        for cut in (1, 15):
            done = run("-d", *secret, subject=True, data=sealed[:-cut])
            test.refused(done, f"enc {cipher}: a ciphertext that lacks {cut} bytes is refused")
        cut = run("-e", *secret, subject=False, data=bytes(4096)).stdout[:-16]
        test.refused(
            run("-d", *secret, subject=True, data=cut), f"enc {cipher}: a ciphertext without its padding is refused"
        )
    else:
        theirs = run("-e", *secret, subject=False, data=plains[4097]).stdout
        output = test.ran(
            run("-d", *secret, subject=True, data=theirs[:-3]), f"enc {cipher}: the start of a ciphertext"
        )
        test.check(
            output == plains[4097][:-3], f"enc {cipher}: the start of a ciphertext gives the start of the plaintext"
        )

    algorithm = f"AES-{bits}-{mode}".upper() + ("(128)?" if mode == "cfb" else "")
    test.proved(trace, algorithm, "encrypt", f"enc {cipher}", at_least=done_bytes)
    test.proved(trace, algorithm, "decrypt", f"enc {cipher}", at_least=done_bytes)


def by_command_line(test, openssl, plains, certificate):
    """Tests the provider when it is named on the command line instead of in a configuration."""
    if not test.proof:
        return
    # `-provider lockstep` searches for a file with the name `lockstep.so`.
    folder = test.path("modules")
    os.mkdir(folder)
    os.symlink(test.module, os.path.join(folder, "lockstep.so"))
    options = [
        "-provider-path",
        folder,
        "-provider",
        "default",
        "-provider",
        "lockstep",
        "-propquery",
        "?provider=lockstep",
    ]
    key = ["-K", "00" * 32, "-iv", "11" * 16]
    trace = test.trace()

    def run(*command, data=b""):
        return test.run(openssl, *command, subject=False, data=data, LOCKSTEP_TRACE=trace.file)

    sealed = test.ran(run("enc", "-aes-256-ctr", *key, *options, data=plains[100_000]), "enc -provider lockstep")
    theirs = test.run(openssl, "enc", "-aes-256-ctr", *key, subject=False, data=plains[100_000]).stdout
    test.check(sealed == theirs, "enc -provider lockstep: the same ciphertext as the default provider's")
    test.proved(trace, "AES-256-CTR", "encrypt", "enc -provider lockstep", at_least=100_000)
    command = ["cms", "-encrypt", "-binary", "-outform", "DER", "-aes-128-cbc"]
    sealed = test.ran(run(*command, *options, certificate, data=plains[100_000]), "cms -provider lockstep")
    test.proved(trace, CBC128, "encrypt", "cms -provider lockstep", at_least=100_000)


def speed(test, openssl, arguments, algorithm, direction):
    """Runs `openssl speed`; its figures are not checked."""
    name = "speed " + " ".join(arguments)
    trace = test.trace()
    done = test.run(openssl, "speed", "-seconds", "1", "-bytes", "16", *arguments, trace=trace)
    output = test.ran(done, name)
    rate = re.search(rb"(?mi)^(?:evp|aes-\S+) +([0-9.]+)k", output or b"")
    errors = [line for line in done.said.splitlines() if "rror" in line]
    if any(argument.endswith("ccm") for argument in arguments):
        # `openssl speed` of 3.0.2 sets an IV for the first message only. The default provider encrypts further messages with the
        # same nonce, which our provider refuses.
        errors = [line for line in errors if "no iv set for this message" not in line]
    good = rate and float(rate[1]) > 0 and not errors
    test.check(good, f"{name}: shows a rate and no error", done.said + (output or b"").decode())
    test.proved(trace, algorithm, direction, name)


def seals(test, openssl, name, algorithm, seal, open_, plain, damage=False):
    """Checks that each provider opens what the other one has sealed. `seal` and `open_` are arguments of openssl."""
    for subject in (True, False):
        way = f"{name}, sealed by {'default ours'.split()[subject]}"
        trace = test.trace()
        sealed = test.ran(test.run(openssl, *seal, subject=subject, trace=trace, data=plain), way)
        output = test.ran(
            test.run(openssl, *open_, subject=not subject, trace=trace, data=sealed or b""), f"{way}, opened"
        )
        test.check(output == plain, f"{way}: the other provider reads it")
        if algorithm:
            test.proved(trace, algorithm, "encrypt" if subject else "decrypt", way, at_least=len(plain))
        if damage and sealed and subject:
            for at in (len(sealed) // 2, len(sealed) - 1):
                changed = bytearray(sealed)
                changed[at] ^= 1
                done = test.run(openssl, *open_, subject=True, data=bytes(changed))
                test.check(done.returncode > 0 and "rror" in done.said, f"{name}: a flipped bit is refused", done.said)


def cms(test, openssl, plains, key, certificate):
    binary = ["-binary", "-outform", "DER"]
    opens = ["cms", "-decrypt", "-binary", "-inform", "DER"]
    by_certificate = ["-recip", certificate, "-inkey", key]
    secret = ["-secretkey", "42" * 32, "-secretkeyid", "0102"]
    for size in (17, 100_000):
        for bits in BITS:
            for mode in ("cbc", "gcm"):
                name = f"cms -aes-{bits}-{mode}, {size} bytes"
                command = ["cms", "-encrypt", *binary, f"-aes-{bits}-{mode}", certificate]
                seals(
                    test,
                    openssl,
                    name,
                    f"AES-{bits}-{mode}",
                    command,
                    [*opens, *by_certificate],
                    plains[size],
                    mode == "gcm",
                )
    plain = plains[100_000]
    # AES key wrap wraps the key of the content. With a password, a CBC mode wraps it (RFC 3211).
    command = ["cms", "-encrypt", *binary, "-aes-256-cbc", *secret]
    seals(test, openssl, "cms -secretkey, -aes-256-cbc", CBC256, command, [*opens, *secret], plain)
    password = ["-pwri_password", "over the hills"]
    command = ["cms", "-encrypt", *binary, "-aes-128-cbc", *password]
    seals(test, openssl, "cms -pwri_password, -aes-128-cbc", CBC128, command, [*opens, *password], plain)
    command = ["cms", "-EncryptedData_encrypt", *binary, "-aes-256-cbc", *secret[:2]]
    open_ = ["cms", "-EncryptedData_decrypt", "-binary", "-inform", "DER", *secret[:2]]
    seals(test, openssl, "cms -EncryptedData_encrypt, -aes-256-cbc", CBC256, command, open_, plain)


def keys(test, openssl, key, certificate):
    """Tests private keys that are encrypted with a password, and PKCS 12."""
    with open(key, "rb") as file:
        plain = file.read()
    right = ["-passin", "pass:over the hills"]
    cases = [
        (f"pkcs8 -v2 aes-{bits}-{mode}", f"AES-{bits}-{mode}".upper(), ["pkcs8", "-topk8", "-v2", f"aes-{bits}-{mode}"])
        for bits in BITS for mode in ("cbc", "ofb")
    ]  # fmt: skip
    cases += [
        (f"rsa -traditional -aes{bits}", f"AES-{bits}-CBC", ["rsa", "-traditional", f"-aes{bits}"]) for bits in BITS
    ]
    for name, algorithm, command in cases:
        seal = [*command, "-passout", "pass:over the hills"]
        seals(test, openssl, name, None, seal, ["pkey", *right], plain)
        trace = test.trace()
        sealed = test.run(openssl, *seal, trace=trace, data=plain).stdout
        test.proved(trace, algorithm, "encrypt", name, at_least=1000)
        done = test.run(openssl, "pkey", "-passin", "pass:wrong", data=sealed)
        test.refused(done, f"{name}: a wrong password is refused")

    for subject in (True, False):
        name = f"genpkey -aes-256-cbc by {'default ours'.split()[subject]}"
        command = [
            "genpkey",
            "-algorithm",
            "EC",
            "-pkeyopt",
            "ec_paramgen_curve:P-256",
            "-aes-256-cbc",
            "-pass",
            right[1],
        ]
        made = test.ran(test.run(openssl, *command, subject=subject), name)
        output = test.ran(test.run(openssl, "pkey", *right, subject=not subject, data=made or b""), f"{name}, read")
        test.check(output and b"BEGIN PRIVATE KEY" in output, f"{name}: the other provider reads it")

    options = ["-keypbe", "AES-256-CBC", "-certpbe", "AES-128-CBC", "-passout", "pass:right"]
    for subject in (True, False):
        name = f"pkcs12 by {'default ours'.split()[subject]}"
        trace = test.trace()
        command = ["pkcs12", "-export", "-inkey", key, "-in", certificate, *options]
        sealed = test.ran(test.run(openssl, *command, subject=subject, trace=trace), name)
        read = ["pkcs12", "-nodes", "-passin", "pass:right"]
        output = test.ran(
            test.run(openssl, *read, subject=not subject, trace=trace, data=sealed or b""), f"{name}, read"
        )
        good = output and b"BEGIN PRIVATE KEY" in output and b"BEGIN CERTIFICATE" in output
        test.check(good, f"{name}: the other provider reads it")
        for algorithm in (CBC128, CBC256):
            test.proved(trace, algorithm, "encrypt" if subject else "decrypt", name, at_least=500)
        wrong = test.run(openssl, *read[:-1], "pass:wrong", data=sealed or b"")
        test.check(wrong.returncode == 1, f"{name}: a wrong password is refused", wrong.said)


def macs(test, openssl, plains):
    """Tests that CMAC and GMAC are the same as with the default provider."""
    for bits in BITS:
        key = f"hexkey:{RANDOM.randbytes(bits // 8).hex()}"
        file = test.path("mac-input")
        commands = {
            "mac CMAC": ["mac", "-in", file, "-cipher", f"AES-{bits}-CBC", "-macopt", key, "CMAC"],
            "mac GMAC": [
                "mac",
                "-in",
                file,
                "-cipher",
                f"AES-{bits}-GCM",
                "-macopt",
                key,
                "-macopt",
                "hexiv:" + "13" * 12,
                "GMAC",
            ],
            "dgst -mac cmac": ["dgst", "-mac", "cmac", "-macopt", f"cipher:aes-{bits}-cbc", "-macopt", key],
        }
        for what, command in commands.items():
            for size in (0, 1, 16, 17, 4097, 100_000):
                name = f"{what}, AES-{bits}, {size} bytes"
                trace = test.trace()
                test.write("mac-input", plains[size])
                theirs = test.run(openssl, *command, subject=False, data=plains[size])
                ours = test.ran(test.run(openssl, *command, trace=trace, data=plains[size]), name)
                test.check(ours and ours == theirs.stdout, f"{name}: the same", theirs.said)
                if size:
                    test.proved(trace, f"AES-{bits}-.*|[CG]MAC.*", None, name)


def tls(test, openssl, identity, suite, server_is_ours):
    """Tests one connection: data in both directions, a key change, and data in both directions again."""
    protocol, cipher, algorithm, options, more = suite
    name = (
        f"{protocol} {cipher} {' '.join([*options, *more])}".rstrip()
        + ", our "
        + ("server" if server_is_ours else "client")
    )
    key, certificate = identity
    trace = test.trace()
    datagrams = protocol.startswith("dtls")
    size = DATAGRAM_TRANSFER if datagrams else TRANSFER
    # The programs interpret some letters at the start of a piece of input as commands. The data do not contain these letters.
    source = random.Random(name)
    there, back = (source.randbytes(size // 2).hex().encode() + b"\n" for _ in range(2))
    common_options = [f"-{protocol}", *options]
    if protocol == "tls1_3":
        common_options += ["-ciphersuites", cipher, "-cipher", "DEFAULT:@SECLEVEL=0"]
    else:
        common_options += ["-cipher", f"{cipher}:@SECLEVEL=0"]

    def environment(ours):
        return test.environment(ours, trace, **(more if ours else {}))

    serve = [openssl, "s_server", "-accept", "127.0.0.1:0", "-naccept", "1", "-key", key, "-cert", certificate]
    connect = [openssl, "s_client", "-CAfile", certificate, "-verify_return_error", "-quiet", "-no_ign_eof"]
    if protocol == "tls1_2":
        serve.append("-client_renegotiation")
    with common.Process(*serve, *common_options, environment=environment(server_is_ours)) as server:
        port = server.wait_for(lambda it: re.search(rb"ACCEPT 127\.0\.0\.1:(\d+)\s", it.out))
        if not test.check(port, f"{name}: the server listens", server.said):
            return
        address = f"127.0.0.1:{port[1].decode()}"
        with common.Process(
            *connect, "-connect", address, *common_options, environment=environment(not server_is_ours)
        ) as client:
            for round_ in (1, 2):
                if round_ == 2 and protocol in ("tls1_3", "tls1_2"):
                    letter, word = (b"K\n", b"KEYUPDATE") if protocol == "tls1_3" else (b"R\n", b"RENEGOTIATING")
                    client.send(letter)
                    test.check(client.wait_for(lambda it: word in it.err), f"{name}: changes its keys", client.said)
                client.send(there)
                arrived = server.wait_for(lambda it: it.out.count(there) == round_)
                test.check(arrived, f"{name}: to the server, round {round_}", f"{server.said} {client.said}")
                server.send(back)
                arrived = server.running.poll() is None and client.wait_for(
                    lambda it: len(it.out) >= round_ * len(back)
                )
                test.check(
                    arrived and client.out == round_ * back,
                    f"{name}: to the client, round {round_}",
                    f"{server.said} {client.said}",
                )
                if not arrived:
                    return
            used = re.search(rb"CIPHER is (\S+)", server.out)
            test.check(used and used[1].decode() == cipher, f"{name}: the cipher suite", used and used[1])
            test.check(client.end() == 0, f"{name}: the client ends well", client.said)
            # With datagrams, s_server does not end by itself, because it waits for more datagrams.
            if not datagrams:
                code = server.wait_for(lambda it: b"CONNECTION CLOSED" in it.out) and server.end()
                test.check(code == 0, f"{name}: the server ends well", f"{code}: {server.said}")
    if algorithm:
        for direction in ("encrypt", "decrypt"):
            # A datagram server is ended by a signal, so it prints no totals.
            least = 0 if datagrams else 2 * size
            test.proved(trace, algorithm, direction, name, at_least=least)


def bad_settings(test, openssl):
    """Tests that invalid settings give a message that names the problem, without a crash. Invalid settings in the
    environment are ignored."""
    if not test.proof:
        return
    cases = [
        ("LOCKSTEP_DEVICE=abacus", {"LOCKSTEP_DEVICE": "abacus"}, True),
        ("LOCKSTEP_KERNEL=abacus", {"LOCKSTEP_KERNEL": "abacus"}, True),
        ("device = abacus", {"OPENSSL_CONF": test.configuration("abacus.cnf", device="abacus")}, False),
    ]
    for name, environment, loads in cases:
        done = test.run(openssl, "list", "-providers", **environment)
        good = done.returncode >= 0 and "abacus" in done.said and (b"Lockstep" in done.stdout) == loads
        test.check(
            good, f"{name}: list -providers names it on standard error", f"exit code {done.returncode}: {done.said}"
        )


def snippet(test, openssl, command):
    """Tests that the configuration that `lockstep openssl-conf` prints works."""
    done = test.run(command, "openssl-conf", subject=False)
    output = test.ran(done, "lockstep openssl-conf")
    if output is None or not test.proof:
        return
    # In the configuration, the path of an installed module is replaced by the module of this run.
    text = re.sub(r"(?m)^[ \t#]*module[ \t]*=.*$", lambda _: f"module = {test.module}", output.decode())
    trace = test.trace()
    conf = test.write("snippet.cnf", text)
    done = test.run(
        openssl, "enc", "-aes-128-ctr", "-K", "00" * 16, "-iv", "00" * 16, trace=trace, data=b"x", OPENSSL_CONF=conf
    )
    test.ran(done, "lockstep openssl-conf: openssl runs with it")
    test.proved(trace, "AES-128-CTR", "encrypt", "lockstep openssl-conf")


def key_objects(test, openssl):
    """Tests that our ciphers accept an EVP_SKEY. A cipher accepts only key objects of its own provider (OpenSSL 3.5 and later)."""
    options = test.run(openssl, "enc", "-help", subject=False).said
    if "-skeyopt" not in options:
        print("left out, this OpenSSL has none: keys as objects")
        return
    outputs = []
    for key in (["-K", "000102030405060708090a0b0c0d0e0f"],
                ["-skeymgmt", "AES", "-skeyopt", "hexraw-bytes:000102030405060708090a0b0c0d0e0f"]):
        trace = test.trace()
        done = test.run(openssl, "enc", "-aes-128-ctr", *key, "-iv", "00" * 16, trace=trace, data=b"hello")
        outputs.append(test.ran(done, f"enc with {key[0]}"))
        test.proved(trace, "AES-128-CTR", "encrypt", f"enc with {key[0]}")
    test.check(outputs[0] == outputs[1], "a key as an object gives the same")


def main():
    test = common.Test(__doc__, "openssl")
    openssl = common.program("openssl")
    with test:
        identity = common.make_certificate(test, openssl)
        plains = {size: RANDOM.randbytes(size) for size in {*SIZES, *CFB1_SIZES}}
        listing(test, openssl)
        bad_settings(test, openssl)
        by_command_line(test, openssl, plains, identity[1])
        if test.arguments:
            snippet(test, openssl, test.arguments[0])
        test.side_by_side(enc, [(test, openssl, mode, bits, plains) for mode in MODES for bits in BITS])
        modes = [f"{mode}" for mode in MODES if mode != "cfb"] + ["xts", "gcm", "ccm", "cfb"]
        cases = [(("-evp", f"aes-256-{mode}"), f"AES-256-{mode}(128)?", "encrypt") for mode in modes]
        cases += [(("-decrypt", "-evp", f"aes-128-{mode}"), f"AES-128-{mode}", "decrypt") for mode in ("cbc", "xts")]
        cases += [(("-aead", "-evp", f"aes-128-{mode}"), f"AES-128-{mode}", "encrypt") for mode in ("gcm", "ccm")]
        cases += [(("-multi", "2", "-evp", "aes-128-gcm"), GCM128, "encrypt")]
        cases += [(("-async_jobs", "2", "-evp", "aes-128-ctr"), "AES-128-CTR", "encrypt")]
        test.side_by_side(speed, [(test, openssl, *case) for case in cases])
        cms(test, openssl, plains, *identity)
        keys(test, openssl, *identity)
        key_objects(test, openssl)
        macs(test, openssl, plains)
        test.side_by_side(tls, [(test, openssl, identity, suite, ours) for suite in SUITES for ours in (True, False)])
        return test.finish()


if __name__ == "__main__":
    sys.exit(main())
