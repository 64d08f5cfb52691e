# Functions that fetch Debian's Rust (rustc-web) for targets that rustup's toolchain may lack, and unpack it into a cache folder. The
# packages conflict with other Rust packages, so they are not installed. Scripts read this file; they set $tool, their name for messages,
# and $cache, the folder.

die() {
    echo "$tool: $*" >&2
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

# Set after the package lists have been refreshed, so that they are refreshed at most once.
refreshed=
refresh() {
    [ -z "$refreshed" ] || return 0
    refreshed=yes
    as_root apt-get -qq update || echo "$tool: could not refresh the package lists, using them as they are" >&2
}

require_apt() {
    command -v apt-get >/dev/null || die "needs apt-get (Debian or a relative of it)"
}

candidate() {
    apt-cache policy rustc-web 2>/dev/null | awk '/Candidate:/ { print $2 }'
}

# Sets $version to the newest version of rustc-web in the package lists, which must compile the project.
find_version() {
    local project=$1 wanted
    require_apt
    version=$(candidate)
    if [ -z "$version" ] || [ "$version" = '(none)' ]; then
        refresh
        version=$(candidate)
    fi
    [ -n "$version" ] && [ "$version" != '(none)' ] || die "no package rustc-web: add Debian's security archive to apt's sources"
    wanted=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' "$project/Cargo.toml")
    dpkg --compare-versions "$version" ge "$wanted" || die "rustc-web is $version, but the project needs $wanted"
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

# Lists all libraries that a package depends on, except those that every system has.
libraries_of() {
    apt-cache depends --recurse --no-recommends --no-suggests --no-conflicts --no-breaks --no-replaces --no-enhances "$1" |
        grep -E '^lib[^:]*(:amd64)?$' | grep -vE '^(libc6|libcrypt1|libgcc-s1|libstdc\+\+6)(:amd64)?$'
}

# Prints the folders with the shared libraries of an unpacked tree.
library_path() {
    echo "$1/usr/lib/x86_64-linux-gnu:$1/lib/x86_64-linux-gnu"
}

# Unpacks a version of rustc-web, the libraries that it needs, and further packages into a folder.
unpack_rust() {
    local root=$1 version=$2 work series llvm
    shift 2
    work=$(mktemp -d "$cache/unpack.XXXXXX")
    series=$(echo "$version" | cut -d. -f1,2)
    (
        cd "$work"
        mkdir root
        fetch root "rustc-web=$version" "libstd-rust-web-$series:amd64=$version" \
            "libstd-rust-web-dev:amd64=$version" "$@"
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

# Writes a program that runs another program with the libraries of an unpacked tree. If there is a fourth argument, it is the first argument
# of the other program.
wrapper() {
    printf '#!/usr/bin/env bash\nLD_LIBRARY_PATH=%q exec %q %s "$@"\n' "$(library_path "$1")" "$2" "${4:-}" >"$3"
    chmod +x "$3"
}
