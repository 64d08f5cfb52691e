# Functions that fetch Debian's packages for 64-bit Arm and unpack them into the cache folder; run.sh reads them. $cache is this folder.

die() {
    echo "arm64: $*" >&2
    exit 1
}

as_root() {
    if [ "$(id -u)" = 0 ]; then
        "$@"
    elif command -v sudo >/dev/null && sudo -n true 2>/dev/null; then
        sudo -n "$@"
    else
        return 1
    fi
}

# Set when the package lists have been refreshed, so that this happens at most once.
refreshed=
refresh() {
    [ -z "$refreshed" ] || return 0
    refreshed=yes
    as_root apt-get -qq update || echo "arm64: could not refresh the package lists, using them as they are" >&2
}

# The newest version of rustc-web in the package lists.
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
