#!/usr/bin/env bash
# Unpacks the Debian package into a clean folder and uses all of its parts: the library by pkg-config, the static library, the
# command, the provider in OpenSSL, manual pages and completions.
#
#   tools/deb_check.sh PACKAGE [COMMAND]     COMMAND: another `lockstep`, with which files are exchanged
#
# `tools/arm64/run.sh --system tools/deb_check.sh PACKAGE COMMAND` uses a package for 64-bit Arm.
set -euo pipefail

package=$(realpath "$1")
other=${2:+$(realpath "$2")}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
fail() {
    echo "deb-check: $*" >&2
    exit 1
}
# Settings of the user must not change the result.
unset "${!LOCKSTEP_@}" OPENSSL_CONF OPENSSL_MODULES

dpkg-deb --extract "$package" root
lib=$(dirname "$(find root/usr/lib -name liblockstep.so)")
cc=cc
[ -z "${CROSS_COMPILE:-}" ] || cc=${CROSS_COMPILE}gcc
# shellcheck disable=SC2206 # several words
emulator=(${EMULATOR:-})
command=("${emulator[@]}" "$folder/root/usr/bin/lockstep")
[ "$(dpkg-deb --field "$package" Architecture)" = "${DEB_HOST_ARCH:-$(dpkg --print-architecture)}" ] || fail "the architecture is wrong"
head -c 100000 /dev/urandom >plain
"${command[@]}" keygen -o key

# Tests the command: it tests its kernels, exchanges files with the other command, and compares outputs of raw modes with it.
"${command[@]}" selftest --device cpu >selftest || fail "the self-test failed: $(cat selftest)"
if [ -n "$other" ]; then
    "${command[@]}" encrypt -k key plain -o here.enc
    "$other" encrypt -k key plain -o there.enc
    "$other" decrypt -k key here.enc | cmp - plain || fail "$other does not read the file"
    "${command[@]}" decrypt -k key there.enc | cmp - plain || fail "the file of $other is not read"
    (umask 077 && head -c 32 /dev/urandom >raw.key)
    for mode in ctr gcm-siv xts cbc; do
        length=16
        [ $mode != gcm-siv ] || length=12
        raw=(cipher --mode $mode --key-file raw.key --iv-hex "$(printf '1f%.0s' $(seq $length))" plain)
        "${command[@]}" "${raw[@]}" >here
        "$other" "${raw[@]}" >there
        cmp here there || fail "the commands disagree on $mode"
    done
fi

# Tests the library: the example is linked to the shared library by pkg-config, and then to the static library.
export PKG_CONFIG_SYSROOT_DIR=$folder/root PKG_CONFIG_LIBDIR=$folder/$lib/pkgconfig
flags=$(pkg-config --cflags --libs lockstep)
example=root/usr/share/doc/lockstep/examples/encrypt_file.c
# shellcheck disable=SC2086 # several options
$cc -std=c99 -Wall -Wextra -pedantic -Werror $example $flags -o shared
# shellcheck disable=SC2046
$cc $example $(pkg-config --cflags lockstep) "$lib/liblockstep.a" $(sed -n 's/^Libs.private: //p' "$lib/pkgconfig/lockstep.pc") -o static
for program in shared static; do
    LD_LIBRARY_PATH=$folder/$lib "${emulator[@]}" ./$program key plain $program.enc >/dev/null
    "${command[@]}" decrypt -k key $program.enc -o $program.out
    cmp plain $program.out || fail "the example and the command disagree"
    ! LD_LIBRARY_PATH=$folder/$lib "${emulator[@]}" ./$program key plain $program.enc 2>error || fail "the example overwrote a file"
    grep -q 'choose another output' error || fail "no message"
done
grep -q 'SONAME.*liblockstep.so.0' <<<"$("${CROSS_COMPILE:-}readelf" -d "$lib/liblockstep.so")" || fail "the soname is wrong"
grep -q 'NEEDED.*liblockstep.so.0' <<<"$("${CROSS_COMPILE:-}readelf" -d shared)" || fail "the program does not use the shared library"
# All functions of the header have the symbol version, and there are no other symbols.
exported=$("${CROSS_COMPILE:-}nm" -D --defined-only "$lib/liblockstep.so" | awk '$2 != "A" { print $3 }' | sort)
declared=$(grep -o '\blockstep_[a-z0-9_]*(' root/usr/include/lockstep.h | tr -d '(' | sort -u | sed 's/$/@@LOCKSTEP_0.1/')
[ "$exported" = "$declared" ] || fail "the symbols are not those of the header: $(diff <(echo "$declared") <(echo "$exported"))"

# Tests the provider: `openssl` encrypts once with the provider and once without it.
sed "s|^module = .*|module = $folder/$lib/ossl-modules/lockstep.so|" root/usr/share/lockstep/lockstep.cnf >openssl.cnf
export OPENSSL_CONF=$folder/openssl.cnf
grep -qi lockstep <<<"$(openssl list -providers)" || fail "openssl does not load the provider"
cipher=(openssl enc -aes-256-ctr -K "$(printf '2b%.0s' {1..32})" -iv "$(printf '01%.0s' {1..16})")
"${cipher[@]}" -in plain -out ours
unset OPENSSL_CONF
"${cipher[@]}" -in plain -out theirs
cmp ours theirs || fail "the provider and openssl disagree"

for file in share/man/man1/lockstep.1.gz share/man/man7/lockstep-provider.7.gz share/bash-completion/completions/lockstep \
    share/zsh/vendor-completions/_lockstep share/fish/vendor_completions.d/lockstep.fish; do
    [ -s "root/usr/$file" ] || fail "$file is missing"
done
bash -n root/usr/share/bash-completion/completions/lockstep
grep -q libc6 <<<"$(dpkg-deb --field "$package" Depends)" || fail "no dependency on the C library"
grep -q ldconfig <<<"$(dpkg-deb --info "$package" triggers)" || fail "the cache of the dynamic linker is not renewed"
echo "deb-check: library, command and provider of $(basename "$package") work"
