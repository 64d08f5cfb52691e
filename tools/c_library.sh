#!/usr/bin/env bash
# Links the shared C library, and puts it with the header, the static library and the file for pkg-config into a folder.
#
#   tools/c_library.sh STATIC-LIBRARY FOLDER PREFIX [LIBDIR]      LIBDIR: `lib`, or for Debian lib/x86_64-linux-gnu
#
# Writes FOLDER/include and FOLDER/LIBDIR. PREFIX is the path at which a program will find FOLDER.
#
# The shared library is linked from the static one. For a shared library, rustc passes its own version script to the linker, and
# GNU ld and LLD refuse a second one that names a version. cargo-c would set the soname and write the file for pkg-config,
# but no symbol version, and compiling it takes longer than compiling this library, since it contains cargo.
#
# CROSS_COMPILE is the prefix of compiler and binutils for another processor (see arm64/run.sh).
set -euo pipefail

[ $# -ge 3 ] || {
    sed -n '2,6s/^# \{0,1\}//p' "$0" >&2
    exit 2
}
static=$1 folder=$2 prefix=$3 libdir=${4:-lib}
root=$(cd "$(dirname "$0")/.." && pwd)
version=$(sed -n '/^\[workspace.package\]/,/^\[/s/^version = "\(.*\)"$/\1/p' "$root/Cargo.toml")
# Versions 0.x may change the interface. The soname changes with each incompatible version.
soname=liblockstep.so.0
libs="-lpthread -lm -ldl"
cc=cc
[ -z "${CROSS_COMPILE:-}" ] || cc=${CROSS_COMPILE}gcc
# Only a library with the emulator of GPUs contains C++. grep reads all of its input, because nm fails if the pipe is closed before.
! "${CROSS_COMPILE:-}nm" -u "$static" 2>/dev/null | grep '__cxa_throw\|_Zn[wa]m' >/dev/null || libs="-lstdc++ $libs"

mkdir -p "$folder/include" "$folder/$libdir/pkgconfig"
install -m 644 "$root/interfaces/capi/include/lockstep.h" "$folder/include/"
install -m 644 "$static" "$folder/$libdir/liblockstep.a"
# The functions of the header, and nothing else, are exported. A function that a later version adds needs a separate version node.
map=$(mktemp)
trap 'rm -f "$map"' EXIT
functions=$(grep -o '\blockstep_[a-z0-9_]*(' "$root/interfaces/capi/include/lockstep.h" | sort -u | tr '(\n' '; ')
echo "LOCKSTEP_0.1 { global: $functions local: *; };" >"$map"
# With `nodelete`, the code stays in memory after dlclose, because threads and destructors of threads may still run it. shellcheck
# disable=SC2086 # several options
$cc -shared -o "$folder/$libdir/liblockstep.so.$version" -Wl,-soname,$soname -Wl,--version-script="$map" \
    -Wl,--whole-archive "$static" -Wl,--no-whole-archive -Wl,--gc-sections -Wl,--as-needed -Wl,-z,nodelete,-z,relro,-z,now,-z,defs \
    -Wl,--strip-all $libs -lgcc_s -lc
ln -sf "liblockstep.so.$version" "$folder/$libdir/$soname"
ln -sf $soname "$folder/$libdir/liblockstep.so"
cat >"$folder/$libdir/pkgconfig/lockstep.pc" <<END
prefix=$prefix
includedir=\${prefix}/include
libdir=\${prefix}/$libdir

Name: lockstep
Description: AES on parallel hardware
Version: $version
Cflags: -I\${includedir}
Libs: -L\${libdir} -llockstep
Libs.private: $libs
END
