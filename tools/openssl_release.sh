#!/usr/bin/env bash
# Builds a static release of OpenSSL from the crate `openssl-src`, and runs a command with it. The provider is tested
# with the oldest and the newest release as well as with the distribution's.
#
#   tools/openssl_release.sh RELEASE                 prints the folder that the release is installed in
#   tools/openssl_release.sh RELEASE COMMAND ...     runs a command with the release: Rust programs are linked to it, and
#                                                    `openssl` is its program
#
# RELEASE is a folder of tools/openssl-releases: 3.0.2 (of Ubuntu 22.04, the oldest that is tested), 3.5 (long-term
# support), 4.0 (the newest). For example
#
#   tools/openssl_release.sh 3.0.2 cargo test -p lockstep-provider --locked --test openssl
#
# The first call for a release takes minutes; the result is kept in the target folder. Perl and make are required. The
# configuration is that of openssl-src, which builds only the libraries, without its option `no-module`: with this option
# OpenSSL 3.0 has no dynamic loading, and so loads no provider.
set -euo pipefail

root=$(cd "$(dirname "$0")/.." && pwd)
release=${1:-}
if [ -z "$release" ] || [ ! -e "$root/tools/openssl-releases/$release/Cargo.toml" ]; then
    echo "openssl_release.sh: no release \`$release\`: give one of $(cd "$root/tools/openssl-releases" && echo [0-9]*)" >&2
    exit 2
fi
shift

target=${CARGO_TARGET_DIR:-$root/target}
mkdir -p "$target"
target=$(cd "$target" && pwd)

source_target=$target/openssl-source/$release
CARGO_TARGET_DIR=$source_target cargo build --quiet --locked \
    --manifest-path "$root/tools/openssl-releases/$release/Cargo.toml" >&2
{ read -r source; read -r version; } < <("$source_target/debug/openssl-release")
# The version of the crate has a form such as 300.0.5+3.0.2 or 3.0.2.
version=${version##*+}

# The path contains the version, because cargo links programs again only if the path of the library changes, not if its content
# changes.
install=$target/openssl-$version
# This file is written last, so that an interrupted build does not count as complete.
marker=$install/complete
if [ ! -e "$marker" ]; then
    build=$install-build
    log=$install.log
    rm -rf "$install" "$build"
    cp -r "$source" "$build"
    echo "building OpenSSL $version, once" >&2
    (
        cd "$build"
        perl ./Configure --prefix="$install" --openssldir=/usr/lib/ssl --libdir=lib \
            no-shared no-tests no-comp no-zlib no-zlib-dynamic no-legacy no-ssl3 no-md2 no-rc5 no-weak-ssl-ciphers
        make -j"$(nproc)" build_libs
        make -j"$(nproc)" apps/openssl
        make install_dev
    ) >"$log" 2>&1 || {
        tail -n 30 "$log" >&2
        echo "building OpenSSL $version failed: the whole output is in $log" >&2
        exit 1
    }
    mkdir -p "$install/bin"
    cp "$build/apps/openssl" "$install/bin/"
    rm -rf "$build"
    touch "$marker"
fi

if [ $# -eq 0 ]; then
    echo "$install"
    exit
fi
# The variable OPENSSL_DIR has the prefix of this platform; only the crate openssl-sys reads it. Without the prefix, aws-lc-sys
# would be rebuilt too, and then all of Lockstep. The tests fail if they are linked to a release other than LOCKSTEP_TEST_OPENSSL.
platform=$(rustc -vV | sed -n 's/^host: //p' | tr 'a-z-' 'A-Z_')
export "${platform}_OPENSSL_DIR=$install" PATH="$install/bin:$PATH" LOCKSTEP_TEST_OPENSSL="$version"
exec "$@"
