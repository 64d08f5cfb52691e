#!/usr/bin/env bash
# Builds the newest OpenSSL (4.x, static) from the crate `openssl-src` and prints the folder it is installed in, for
#
#     OPENSSL_DIR=$(tools/openssl_newest.sh) OPENSSL_STATIC=1 CARGO_TARGET_DIR=target/newest \
#         cargo test -p lockstep-provider
#
# so that the provider is proved on the newest OpenSSL as well as on the distribution's. bin/openssl is built too, for
# `openssl speed`. Takes minutes once; afterwards it only prints. Needs perl and make. Everything but the folder's name
# goes to standard error. The configuration is openssl-src's own: that crate drops its build folder too early to have
# the program from it.
set -euo pipefail
cd "$(dirname "$0")/.."

target=${CARGO_TARGET_DIR:-target}
mkdir -p "$target"
target=$(cd "$target" && pwd)

CARGO_TARGET_DIR=$target/openssl-newest-source cargo build --quiet --locked --manifest-path tools/openssl-newest/Cargo.toml >&2
{ read -r source; read -r version; } < <("$target/openssl-newest-source/debug/openssl-newest")

install=$target/openssl-newest
# Written last: a build that was broken off is not taken for a complete one, nor an older version for this one.
marker=$install/complete
if [ "$(cat "$marker" 2>/dev/null)" != "$version" ]; then
    build=$target/openssl-newest-build
    rm -rf "$install" "$build"
    cp -r "$source" "$build"
    (
        cd "$build"
        perl ./Configure --prefix="$install" --openssldir=/usr/lib/ssl --libdir=lib \
            no-shared no-module no-tests no-comp no-zlib no-zlib-dynamic no-legacy no-ssl3 no-md2 no-rc5 no-weak-ssl-ciphers
        make -j"$(nproc)" build_libs
        make -j"$(nproc)" apps/openssl
        make install_dev
    ) >"$target/openssl-newest.log" 2>&1 || {
        tail -n 30 "$target/openssl-newest.log" >&2
        echo "building OpenSSL $version failed: all of it is in $target/openssl-newest.log" >&2
        exit 1
    }
    mkdir -p "$install/bin"
    cp "$build/apps/openssl" "$install/bin/"
    rm -rf "$build"
    echo "$version" >"$marker"
fi
echo "$install"
