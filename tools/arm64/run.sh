#!/usr/bin/env bash
# Runs a command with the environment that builds programs for 64-bit Arm on an x86-64 machine with Debian or a derivative, and
# runs them under QEMU's user-mode emulation.
#
#   tools/arm64/run.sh COMMAND...             `cargo` then builds for Arm, in the folder arm64 of the build folder
#   tools/arm64/run.sh --system COMMAND...    `openssl` and `python3` are Debian's programs for Arm, too, with Debian's libraries
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
project=$(cd "$(dirname "$0")/../.." && pwd)
cache=${XDG_CACHE_HOME:-$HOME/.cache}/lockstep-arm64
target=aarch64-unknown-linux-gnu
tools=(gcc-aarch64-linux-gnu g++-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user)

tool=arm64
. "$project/tools/rustc_web.sh"
. "$project/tools/arm64/packages.sh"

[ "$(uname -m)" = x86_64 ] || die "this script is for x86-64"
require_apt

missing=()
for package in "${tools[@]}"; do
    dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing+=("$package")
done
if [ ${#missing[@]} -gt 0 ]; then
    refresh
    as_root env DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends "${missing[@]}" >/dev/null ||
        die "missing packages: run as root: apt-get install ${missing[*]}"
fi

mkdir -p "$cache"
find_version "$project"
root=$cache/rust-$version
rustc=$cache/rustc-$version
if [ ! -x "$rustc" ] || [ ! -d "$root" ]; then
    add_architecture
    unpack_rust "$root" "$version" "libstd-rust-web-dev:arm64=$version"
    wrapper "$root" "$root/usr/bin/rustc" "$rustc"
fi
"$rustc" --version >&2 || die "Debian's rustc does not start: delete $cache and try again"

# Wrappers of the compiler and flags of the host's build would change what is built, so they are removed.
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
