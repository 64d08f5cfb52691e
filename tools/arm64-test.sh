#!/usr/bin/env bash
# Runs the arm64 tests on an x86-64 machine with Debian or a derivative, under QEMU's user-mode emulation.
#
#   tools/arm64-test.sh [cargo test arguments]     default: -p lockstep-core -p lockstep-modes -p lockstep-cpu
#
# rustup's toolchain may lack the arm64 standard library. Debian's rustc-web and its arm64 library have it. They conflict with
# other Rust packages, so they are unpacked into a cache folder and not installed. The cross compiler (for the linker
# and for C dependencies) and QEMU are ordinary packages: the script installs them if it is permitted to, and otherwise names them.
set -euo pipefail

cd "$(dirname "$0")/.."
cache=${XDG_CACHE_HOME:-$HOME/.cache}/lockstep-arm64
target=aarch64-unknown-linux-gnu
tools=(gcc-aarch64-linux-gnu g++-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user)

die() {
    echo "arm64-test: $*" >&2
    exit 1
}

[ "$(uname -m)" = x86_64 ] || die "this script is for x86-64; on arm64 run cargo test"
command -v apt-get >/dev/null || die "needs apt-get (Debian or a relative of it)"

as_root() {
    if [ "$(id -u)" = 0 ]; then
        "$@"
    elif command -v sudo >/dev/null && sudo -n true 2>/dev/null; then
        sudo -n "$@"
    else
        return 1
    fi
}

# Package lists, refreshed at most once.
refreshed=
refresh() {
    [ -z "$refreshed" ] || return 0
    refreshed=yes
    as_root apt-get -qq update || echo "arm64-test: could not refresh the package lists, using them as they are" >&2
}

missing=()
for package in "${tools[@]}"; do
    dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing+=("$package")
done
if [ ${#missing[@]} -gt 0 ]; then
    refresh
    as_root env DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends "${missing[@]}" >/dev/null ||
        die "missing packages: run as root: apt-get install ${missing[*]}"
fi

# The newest version of rustc-web that a package list has.
candidate() {
    apt-cache policy rustc-web 2>/dev/null | awk '/Candidate:/ { print $2 }'
}

# Downloads packages and unpacks them into a folder.
fetch() {
    local root=$1
    shift
    rm -f ./*.deb
    apt-get -qq -o APT::Sandbox::User=root download "$@" || die "could not download $*"
    for package in *.deb; do
        dpkg -x "$package" "$root" || die "could not unpack $package"
    done
}

# All libraries that a package depends on, except those that every system has.
libraries_of() {
    apt-cache depends --recurse --no-recommends --no-suggests --no-conflicts --no-breaks --no-replaces --no-enhances "$1" |
        grep -E '^lib[^:]*(:amd64)?$' | grep -vE '^(libc6|libcrypt1|libgcc-s1|libstdc\+\+6)(:amd64)?$'
}

# The folders with the shared libraries of an unpacked tree.
library_path() {
    echo "$1/usr/lib/x86_64-linux-gnu:$1/lib/x86_64-linux-gnu"
}

unpack_rust() {
    local root=$1 version=$2 work series llvm
    work=$(mktemp -d "$cache/unpack.XXXXXX")
    series=$(echo "$version" | cut -d. -f1,2)
    (
        cd "$work"
        mkdir root
        fetch root "rustc-web=$version" "libstd-rust-web-$series:amd64=$version" \
            "libstd-rust-web-dev:amd64=$version" "libstd-rust-web-dev:arm64=$version"
        llvm=$(dpkg-deb -f libstd-rust-web-"$series"_*_amd64.deb Depends | grep -o 'libllvm[0-9]*' | head -n 1)
        fetch root "$llvm:amd64"
        if LD_LIBRARY_PATH=$(library_path root) ldd root/usr/lib/x86_64-linux-gnu/*.so* | grep -q 'not found'; then
            mapfile -t libraries < <(libraries_of "$llvm")
            fetch root "${libraries[@]}"
        fi
    ) >&2 || {
        rm -rf "$work"
        exit 1
    }
    rm -rf "$root"
    mv "$work/root" "$root"
    rm -rf "$work"
}

mkdir -p "$cache"
version=$(candidate)
if [ -z "$version" ] || [ "$version" = '(none)' ]; then
    refresh
    version=$(candidate)
fi
[ -n "$version" ] && [ "$version" != '(none)' ] || die "no package rustc-web: add Debian's security archive to apt's sources"
wanted=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)
dpkg --compare-versions "$version" ge "$wanted" || die "rustc-web is $version, but the project needs $wanted"

root=$cache/rust-$version
rustc=$cache/rustc-$version
if [ ! -x "$rustc" ] || [ ! -d "$root" ]; then
    if ! dpkg --print-foreign-architectures | grep -qx arm64; then
        as_root dpkg --add-architecture arm64 || die "missing architecture: run as root: dpkg --add-architecture arm64"
        refreshed=
    fi
    refresh
    unpack_rust "$root" "$version"
    # A wrapper, so that only rustc gets the library path.
    printf '#!/bin/sh\nLD_LIBRARY_PATH=%s exec %s/usr/bin/rustc "$@"\n' "$(library_path "$root")" "$root" >"$rustc"
    chmod +x "$rustc"
fi
"$rustc" --version >&2 || die "Debian's rustc does not start: delete $cache and try again"

export RUSTC=$rustc RUSTDOC=/bin/false RUSTFLAGS=
unset RUSTC_WRAPPER RUSTC_WORKSPACE_WRAPPER CARGO_ENCODED_RUSTFLAGS CARGO_BUILD_TARGET
export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc
export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER="qemu-aarch64 -L /usr/aarch64-linux-gnu -cpu max"
# For C dependencies.
export CC_aarch64_unknown_linux_gnu=aarch64-linux-gnu-gcc CXX_aarch64_unknown_linux_gnu=aarch64-linux-gnu-g++
export AR_aarch64_unknown_linux_gnu=aarch64-linux-gnu-ar
# Tests of kernels that the processor lacks must fail here, not be skipped.
export LOCKSTEP_ARM64_TEST=1

arguments=("$@")
[ ${#arguments[@]} -gt 0 ] || arguments=(-p lockstep-core -p lockstep-modes -p lockstep-cpu)
# By default all tests except documentation tests, which would require a cross rustdoc.
case " ${arguments[*]} " in
    *' --lib '* | *' --test '* | *' --tests '* | *' --bin '* | *' --bins '* | *' --all-targets '*) ;;
    *) arguments=(--tests "${arguments[@]}") ;;
esac
exec cargo test --target "$target" --target-dir "${CARGO_TARGET_DIR:-target}/arm64" "${arguments[@]}"
