#!/usr/bin/env bash
# Runs a command with the environment that builds programs for 64-bit Arm on an x86-64 machine with Debian or a derivative, and
# runs them under QEMU's user-mode emulation.
#
#   tools/arm64.sh COMMAND...             `cargo` then builds for Arm, in the folder arm64 of the build folder
#   tools/arm64.sh --system COMMAND...    `openssl` and `python3` are Debian's programs for Arm, too, with Debian's libraries
#
# The scripts of packages read CROSS_COMPILE (the prefix of compiler and binutils), DEB_HOST_ARCH (Debian's name of the
# architecture) and EMULATOR (the command that runs a program for Arm).
#
# rustup's toolchain may lack the arm64 standard library. Debian's rustc-web and its arm64 library have it. They conflict with
# other Rust packages, so they are unpacked into a cache folder and not installed; the same is done with OpenSSL and Python. The
# cross compiler (for the linker and for C dependencies) and QEMU are ordinary packages: the script installs them if it is
# permitted to, and otherwise prints their names.
set -euo pipefail

system=
if [ "${1:-}" = --system ]; then
    system=yes
    shift
fi
[ $# -gt 0 ] || {
    sed -n '2,9s/^# \{0,1\}//p' "$0" >&2
    exit 2
}
project=$(cd "$(dirname "$0")/.." && pwd)
cache=${XDG_CACHE_HOME:-$HOME/.cache}/lockstep-arm64
target=aarch64-unknown-linux-gnu
tools=(gcc-aarch64-linux-gnu g++-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user)

die() {
    echo "arm64: $*" >&2
    exit 1
}

[ "$(uname -m)" = x86_64 ] || die "this script is for x86-64"
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
    as_root apt-get -qq update || echo "arm64: could not refresh the package lists, using them as they are" >&2
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
        found=$(LD_LIBRARY_PATH=$(library_path root) ldd root/usr/lib/x86_64-linux-gnu/*.so*)
        if [[ $found == *'not found'* ]]; then
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

# Adds the architecture arm64 to the package lists of apt.
add_architecture() {
    if ! dpkg --print-foreign-architectures | grep -qx arm64; then
        as_root dpkg --add-architecture arm64 || die "missing architecture: run as root: dpkg --add-architecture arm64"
        refreshed=
    fi
    refresh
}

# OpenSSL and Python for Arm with the libraries that they need, and programs `openssl` and `python3` that run them.
unpack_system() {
    local root=$1 work python
    work=$(mktemp -d "$cache/unpack.XXXXXX")
    (
        cd "$work"
        mkdir root
        mapfile -t packages < <(apt-cache depends --recurse --no-recommends --no-suggests --no-conflicts --no-breaks \
            --no-replaces --no-enhances openssl:arm64 python3:arm64 libgcc-s1:arm64 | grep -E '^(lib|openssl|python3|zlib)[^:]*:arm64$')
        fetch root "${packages[@]}"
    ) >&2 || {
        rm -rf "$work"
        exit 1
    }
    python=$(readlink "$work/root/usr/bin/python3") || die "Debian's Python for arm64 has no program python3"
    mkdir "$work/root/bin"
    for program in openssl python3; do
        printf '#!/bin/sh\nexec qemu-aarch64 -L %s -cpu max %s/usr/bin/%s "$@"\n' "$root" "$root" "${program/%python3/$python}" \
            >"$work/root/bin/$program"
        chmod +x "$work/root/bin/$program"
    done
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
wanted=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' "$project/Cargo.toml")
dpkg --compare-versions "$version" ge "$wanted" || die "rustc-web is $version, but the project needs $wanted"

root=$cache/rust-$version
rustc=$cache/rustc-$version
if [ ! -x "$rustc" ] || [ ! -d "$root" ]; then
    add_architecture
    unpack_rust "$root" "$version"
    # A wrapper, so that only rustc gets the library path.
    printf '#!/bin/sh\nLD_LIBRARY_PATH=%s exec %s/usr/bin/rustc "$@"\n' "$(library_path "$root")" "$root" >"$rustc"
    chmod +x "$rustc"
fi
"$rustc" --version >&2 || die "Debian's rustc does not start: delete $cache and try again"

# A wrapper of the compiler, or flags of the host's build, would change what is built.
export RUSTC=$rustc RUSTDOC=/bin/false RUSTFLAGS=
unset RUSTC_WRAPPER RUSTC_WORKSPACE_WRAPPER CARGO_ENCODED_RUSTFLAGS
export CARGO_BUILD_TARGET=$target CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$project/target}/arm64
export CROSS_COMPILE=aarch64-linux-gnu- DEB_HOST_ARCH=arm64
export EMULATOR="qemu-aarch64 -L /usr/aarch64-linux-gnu -cpu max"
if [ -n "$system" ]; then
    system=$cache/system-$(. /etc/os-release && echo "${VERSION_CODENAME:-debian}")
    if [ ! -x "$system/bin/python3" ]; then
        add_architecture
        unpack_system "$system"
    fi
    PATH=$system/bin:$PATH
    EMULATOR="qemu-aarch64 -L $system -cpu max"
fi
export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=${CROSS_COMPILE}gcc
export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER=$EMULATOR
# The compiler for C dependencies.
export CC_aarch64_unknown_linux_gnu=${CROSS_COMPILE}gcc CXX_aarch64_unknown_linux_gnu=${CROSS_COMPILE}g++
export AR_aarch64_unknown_linux_gnu=${CROSS_COMPILE}ar
exec "$@"
