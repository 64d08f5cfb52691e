#!/usr/bin/env bash
# Checks for what the build and the tests call, and installs from Debian's packages what is missing, if it may.
# Otherwise it names it in one line.
set -euo pipefail

command -v cargo >/dev/null || {
    echo "no Rust: install it with rustup, see rustup.rs" >&2
    exit 1
}

# Program and the Debian package that has it.
wanted="cc:gcc make:make openssl:openssl python3:python3 valgrind:valgrind ssh-keygen:openssh-client script:bsdutils"
missing=()
for pair in $wanted; do
    command -v "${pair%%:*}" >/dev/null || missing+=("${pair##*:}")
done
# AWS-LC's C needs the C library's headers; interoperability with pyca needs a virtual environment.
[ -e /usr/include/stdio.h ] || missing+=(libc6-dev)
python3 -c 'import venv, ensurepip' 2>/dev/null || missing+=(python3-venv)
[ ${#missing[@]} -gt 0 ] || exit 0

root=()
[ "$(id -u)" = 0 ] || root=(sudo -n)
if command -v apt-get >/dev/null && { [ "$(id -u)" = 0 ] || sudo -n true 2>/dev/null; }; then
    echo "installing ${missing[*]}"
    "${root[@]}" apt-get update -q >/dev/null
    "${root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -q "${missing[@]}" >/dev/null
else
    echo "missing: ${missing[*]}: install them, on Debian by: sudo apt-get install ${missing[*]}" >&2
    exit 1
fi
