# Functions that fetch Debian's packages for 64-bit Arm; run.sh reads this file after ../rustc_web.sh.

# Adds the architecture arm64 to the package lists of apt.
add_architecture() {
    if ! dpkg --print-foreign-architectures | grep -qx arm64; then
        as_root dpkg --add-architecture arm64 || die "missing architecture: run as root: dpkg --add-architecture arm64"
        refreshed=
    fi
    refresh
}

# Unpacks OpenSSL and Python for Arm with the libraries that they need, and makes programs `openssl` and `python3` that run them.
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
