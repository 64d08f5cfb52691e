#!/usr/bin/env bash
# Runs a command with the environment that compiles for WebAssembly with SIMD128: `cargo build --target wasm32-unknown-unknown`.
#
#   tools/web/run.sh [--clippy] COMMAND...     --clippy: runs clippy-driver in place of rustc; warnings are errors
#
# If rustup has installed the target (`rustup target add wasm32-unknown-unknown`), its toolchain is used. Otherwise, Debian's rustc-web
# and lld are unpacked into a cache folder, and the standard library is compiled there from rust-web-src, once (a minute).
set -euo pipefail

[ $# -gt 0 ] || {
    sed -n '2,7s/^# \{0,1\}//p' "$0" >&2
    exit 2
}
project=$(cd "$(dirname "$0")/../.." && pwd)
cache=${XDG_CACHE_HOME:-$HOME/.cache}/lockstep-web
target=wasm32-unknown-unknown
tool=web

. "$project/tools/rustc_web.sh"

# Builds the standard library with the bitcode that link-time optimisation requires, in the place where rustc expects it.
compile_std() {
    local root=$1 rustc=$2 work library=$1/usr/lib/rustlib/$target/lib
    work=$(mktemp -d "$cache/std.XXXXXX")
    (
        cd "$work"
        mkdir src
        : >src/lib.rs
        printf '[package]\nname = "empty"\nversion = "0.0.0"\nedition = "2024"\n[workspace]\n' >Cargo.toml
        cp "$project/rust-toolchain.toml" .
        RUSTC_BOOTSTRAP=1 RUSTC=$rustc RUSTFLAGS="-C embed-bitcode=yes" CARGO_TARGET_DIR=$work/target \
            cargo build --quiet --release -Z build-std=std,panic_abort --target "$target"
        rm -f target/$target/release/deps/libempty-*
        rm -rf "$library.new"
        mkdir -p "$library.new"
        cp target/$target/release/deps/*.rlib target/$target/release/deps/*.rmeta "$library.new"
    ) >&2 || {
        rm -rf "$work"
        die "the standard library does not compile"
    }
    mv "$library.new" "$library"
    rm -rf "$work"
}

# Unpacks Debian's lld of the release of LLVM that rustc uses.
unpack_linker() {
    local root=$1 work llvm
    llvm=$(basename "$root"/usr/lib/x86_64-linux-gnu/libLLVM-*.so .so)
    work=$(mktemp -d "$cache/unpack.XXXXXX")
    (cd "$work" && fetch "$root" "lld-${llvm#libLLVM-}") >&2
    rm -rf "$work"
    wrapper "$root" "$root/usr/lib/llvm-${llvm#libLLVM-}/bin/wasm-ld" "$cache/wasm-ld-$version"
}

clippy=
[ "$1" != --clippy ] || {
    clippy=yes
    shift
}

# Unpacks Debian's clippy of the compiler's version. With `rustc` as the first argument, its driver takes the arguments of the compiler.
unpack_clippy() {
    local root=$1 work
    work=$(mktemp -d "$cache/unpack.XXXXXX")
    (cd "$work" && fetch "$root" "rust-web-clippy=$version") >&2
    rm -rf "$work"
    wrapper "$root" "$root/usr/bin/clippy-driver" "$2" rustc
}

# Wrappers of the compiler and flags of the host's build would change the output of this build, so they are removed.
unset RUSTC_WRAPPER RUSTC_WORKSPACE_WRAPPER CARGO_ENCODED_RUSTFLAGS RUSTFLAGS
if ! [ -d "$(cd "$project" && rustc --print sysroot)/lib/rustlib/$target" ]; then
    [ "$(uname -m)" = x86_64 ] || die "rustup has no target $target: rustup target add $target"
    mkdir -p "$cache"
    find_version "$project"
    root=$cache/rust-$version
    rustc=$cache/rustc-$version
    linker=$cache/wasm-ld-$version
    if [ ! -x "$rustc" ] || [ ! -d "$root" ]; then
        refresh
        unpack_rust "$root" "$version" "rust-web-src=$version"
        wrapper "$root" "$root/usr/bin/rustc" "$rustc"
    fi
    "$rustc" --version >&2 || die "Debian's rustc does not start: delete $cache and try again"
    [ -x "$linker" ] || unpack_linker "$root"
    [ -d "$root/usr/lib/rustlib/$target/lib" ] || compile_std "$root" "$rustc"
    if [ -n "$clippy" ]; then
        rustc=$cache/clippy-driver-$version
        [ -x "$rustc" ] || unpack_clippy "$root" "$rustc"
    fi
    export RUSTC=$rustc RUSTDOC=/bin/false CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER=$linker
elif [ -n "$clippy" ]; then
    export RUSTC_WRAPPER=clippy-driver
fi
export CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_RUSTFLAGS="-C target-feature=+simd128${clippy:+ -D warnings}"
exec "$@"
