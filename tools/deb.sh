#!/usr/bin/env bash
# Makes the Debian package: the command, the provider, the C library with its header, manual pages and completions.
#
#   tools/deb.sh BUILT OUT      BUILT: the folder with lockstep, liblockstep_provider.so and liblockstep_c.a; OUT: the folder
#                               for lockstep_VERSION_ARCHITECTURE.deb
#
# `tools/arm64/run.sh tools/deb.sh BUILT OUT` makes the package for 64-bit Arm.
#
# dpkg-deb is on every Debian. cargo-deb would make the same package, but takes minutes to compile, and it cannot link the shared
# library with symbol versions (see c_library.sh).
set -euo pipefail

[ $# -eq 2 ] || {
    sed -n '2,7s/^# \{0,1\}//p' "$0" >&2
    exit 2
}
built=$1 out=$2
root=$(cd "$(dirname "$0")/.." && pwd)
version=$(sed -n '/^\[workspace.package\]/,/^\[/s/^version = "\(.*\)"$/\1/p' "$root/Cargo.toml")
architecture=${DEB_HOST_ARCH:-$(dpkg --print-architecture)}
cc=cc
[ -z "${CROSS_COMPILE:-}" ] || cc=${CROSS_COMPILE}gcc
multiarch=$($cc -print-multiarch)
# shellcheck disable=SC2206 # several words
command=(${EMULATOR:-} "$built/lockstep")
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
chmod 755 "$tree"
umask 022

put() { install -D -m "$1" "$2" "$tree/$3"; }
put 755 "$built/lockstep" usr/bin/lockstep
put 644 "$built/liblockstep_provider.so" "usr/lib/$multiarch/ossl-modules/lockstep.so"
put 644 "$root/interfaces/provider/lockstep.cnf" usr/share/lockstep/lockstep.cnf
sed -i "s|^# module = .*|module = /usr/lib/$multiarch/ossl-modules/lockstep.so|" "$tree/usr/share/lockstep/lockstep.cnf"
"$root/tools/c_library.sh" "$built/liblockstep_c.a" "$tree/usr" /usr "lib/$multiarch"

"${command[@]}" man --out-dir "$tree/usr/share/man/man1" >/dev/null
put 644 "$root/docs/lockstep-provider.7" usr/share/man/man7/lockstep-provider.7
find "$tree/usr/share/man" -type f -exec gzip -9n {} +
complete() {
    mkdir -p "$(dirname "$tree/usr/share/$2")"
    "${command[@]}" completions "$1" >"$tree/usr/share/$2"
}
complete bash bash-completion/completions/lockstep
complete zsh zsh/vendor-completions/_lockstep
complete fish fish/vendor_completions.d/lockstep.fish
for file in LICENSE-MIT LICENSE-APACHE README.md CHANGELOG.md; do
    put 644 "$root/$file" "usr/share/doc/lockstep/$file"
done
put 644 "$root/docs/c.md" usr/share/doc/lockstep/c.md
put 644 "$root/interfaces/capi/examples/c/encrypt_file.c" usr/share/doc/lockstep/examples/encrypt_file.c
cat >"$tree/usr/share/doc/lockstep/copyright" <<END
Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: lockstep

Files: *
Copyright: the authors of Lockstep
License: MIT or Apache-2.0
 The texts are in LICENSE-MIT and LICENSE-APACHE.
END

# The dependencies: the newest symbol version of the C library that a file needs, and the runtime libraries of GCC and C++ if a file needs
# them.
files=("$tree/usr/bin/lockstep" "$tree/usr/lib/$multiarch/ossl-modules/lockstep.so" "$tree/usr/lib/$multiarch/liblockstep.so.$version")
needed=$("${CROSS_COMPILE:-}objdump" -p "${files[@]}")
libc=$(grep -o 'GLIBC_2\.[0-9]*' <<<"$needed" | sort -Vu | tail -n 1)
depends="libc6 (>= ${libc#GLIBC_})"
! grep -q 'NEEDED.*libgcc_s' <<<"$needed" || depends+=", libgcc-s1"
! grep -q 'NEEDED.*libstdc++' <<<"$needed" || depends+=", libstdc++6"
mkdir -p "$tree/DEBIAN"
cat >"$tree/DEBIAN/control" <<END
Package: lockstep
Version: $version
Architecture: $architecture
Maintainer: The authors of Lockstep <lockstep@invalid>
Installed-Size: $(du -sk "$tree/usr" | cut -f 1)
Depends: $depends
Suggests: openssl (>= 3.0)
Section: utils
Priority: optional
Description: AES on parallel hardware
 The command lockstep encrypts files and folders on all cores. The package
 also has a provider for OpenSSL 3 and a library for C and C++.
END
# The cache of the dynamic linker is renewed when the library is installed or removed.
echo "activate-noawait ldconfig" >"$tree/DEBIAN/triggers"
mkdir -p "$out"
rm -f "$out"/lockstep_*_"$architecture".deb
# Level 2 takes a third of the time of the default, for a package that is a tenth larger.
dpkg-deb --root-owner-group -Zxz -z2 --build "$tree" "$out/lockstep_${version}_$architecture.deb"
