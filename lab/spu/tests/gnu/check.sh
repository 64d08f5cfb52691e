#!/bin/sh
# Compares this crate's assembler with the GNU assembler for spu-elf, which is built here from Debian's sources of
# binutils (a few minutes). Both assemblers must produce the same bytes for every exported kernel and for text.s.
# This script is not part of the test run.
#
# usage: check.sh [FOLDER TO BUILD IN]
set -eu
here=$(cd "$(dirname "$0")/../.." && pwd)
work=${1:-$(mktemp -d)}
mkdir -p "$work/build" "$work/out"
work=$(cd "$work" && pwd)
if [ ! -x "$work/build/gas/as-new" ]; then
    cd "$work"
    [ -n "$(ls binutils-source_*.deb 2>/dev/null)" ] || apt-get download binutils-source
    dpkg-deb -x binutils-source_*.deb unpacked
    tar -xf unpacked/usr/src/binutils/binutils-*.tar.*
    cd build
    "$work"/binutils-*/configure --target=spu-elf --disable-ld --disable-gold --disable-gprofng --disable-nls \
        --disable-gdb --disable-sim --disable-gprof MAKEINFO=true >configure.log 2>&1
    make all-gas MAKEINFO=true >make.log 2>&1
    make configure-binutils MAKEINFO=true >>make.log 2>&1
    make -C binutils objcopy MAKEINFO=true >>make.log 2>&1
fi
cd "$here"
cargo run --quiet --example export -- "$work/out"
failed=0
for source in "$work"/out/*.s; do
    name=${source%.s}
    "$work/build/gas/as-new" "$source" -o "$name.o"
    "$work/build/binutils/objcopy" -O binary -j .text "$name.o" "$name.gnu"
    if cmp -s "$name.raw" "$name.gnu"; then
        echo "same: $(basename "$name")"
    else
        echo "DIFFERENT: $name.raw and $name.gnu"
        failed=1
    fi
done
exit $failed
