#!/usr/bin/env bash
# Checks for the programs that a target of make calls. Missing ones are installed from Debian's packages:
#
#   SETUP=yes, or CI is set      without a question
#   SETUP=no                     never
#   otherwise                    after a question, if there is a terminal; without a terminal never
#
# If nothing is installed, the script prints what is missing and fails.
#
#   tools/setup.sh              to build: a C compiler
#   tools/setup.sh lab          to build the simulated devices: a C++ compiler as well
#   tools/setup.sh python       to build the wheel: Python as well
#   tools/setup.sh peers        to compile and run tests on a machine with a GPU: OpenSSL's headers, Python, valgrind, ...
#   tools/setup.sh tests        to compile and run all tests: Mesa's software devices, age and strace as well
#   tools/setup.sh programs     for tools/provider-test: servers and clients as well
#   tools/setup.sh browser      for tools/bench_page/check.py: a headless browser
#   tools/setup.sh firefox      for tools/web_page.sh: Firefox
#   tools/setup.sh node         for tools/web: Node
#   tools/setup.sh --self-test  checks that each purpose names one of its packages if PATH has none of the programs
#
# Several purposes may be given.
set -euo pipefail

command -v cargo >/dev/null || {
    echo "no Rust: install it with rustup, see rustup.rs" >&2
    exit 1
}

self_test() {
    local name pair output
    # Not local: the trap runs after this function.
    folder=$(mktemp -d)
    trap 'rm -rf "$folder"' EXIT
    for name in bash id ls sed sort; do
        ln -s "$(type -P $name)" "$folder"
    done
    ln -s "$(type -P true)" "$folder/cargo"
    local pairs=(lab:g++ python:python3 peers:valgrind tests:strace programs:wrk)
    pairs+=(browser:chromium-headless-shell firefox:firefox-esr node:nodejs)
    for pair in "${pairs[@]}"; do
        output=$(PATH=$folder SETUP=no ONLY_PATH=yes bash "$0" "${pair%%:*}" 2>&1) && output="nothing is missing"
        [[ $output == "missing: "* && " $output " == *" ${pair##*:}"[\ :]* ]] || {
            echo "setup: without programs, \`${pair%%:*}\` does not name ${pair##*:}: $output" >&2
            exit 1
        }
    done
    exit 0
}
[ "${1:-}" != --self-test ] || self_test

missing=()
# Whether a folder of PATH has the program. `command -v` would also find the functions of this script, some of which have a program's name.
installed() {
    type -P "$1" >/dev/null
}
# Adds the Debian package of each program that is missing. The arguments have the form PROGRAM:PACKAGE.
programs() {
    local pair
    for pair in "$@"; do
        installed "${pair%%:*}" || missing+=("${pair##*:}")
    done
}
build() {
    programs cc:gcc
    # AWS-LC's C needs the C library's headers.
    [ -e /usr/include/stdio.h ] || missing+=(libc6-dev)
}
python() {
    programs python3:python3
    python3 -c 'import venv, ensurepip' 2>/dev/null || missing+=(python3-venv)
}
lab() {
    programs c++:g++
}
peers() {
    lab
    python
    programs openssl:openssl valgrind:valgrind ssh-keygen:openssh-client script:bsdutils pkg-config:pkgconf
    # The tests of the provider link to OpenSSL. The build of another release of OpenSSL requires Perl with its modules.
    echo '#include <openssl/provider.h>' | cc -E - >/dev/null 2>&1 || missing+=(libssl-dev)
    perl -MIPC::Cmd -e 1 2>/dev/null || missing+=(perl)
}
tests() {
    peers
    programs age:age strace:strace
    # The backends wgpu and opengl are tested on Mesa's software devices: lavapipe for Vulkan, llvmpipe for OpenGL.
    ls /usr/share/vulkan/icd.d/lvp_icd.*json >/dev/null 2>&1 || missing+=(mesa-vulkan-drivers)
    local libraries
    libraries=$(ldconfig -p 2>/dev/null || true)
    [[ $libraries == *libvulkan.so.1* ]] || missing+=(libvulkan1)
    [[ $libraries == *libEGL.so.1* ]] || missing+=(libegl1)
    [[ $libraries == *libEGL_mesa.so.0* ]] || missing+=(libegl-mesa0 libgl1-mesa-dri)
}
servers() {
    tests
    # The package apache2-bin installs Apache's program without a service.
    programs setpriv:util-linux nginx:nginx-light apache2:apache2-bin ab:apache2-utils wrk:wrk curl:curl
}
browser() {
    local program
    for program in chromium-headless-shell chromium chromium-browser google-chrome; do
        ! installed $program || return 0
    done
    # The browser needs a font to show a page.
    missing+=(chromium-headless-shell fonts-dejavu-core)
}

firefox() {
    ! installed firefox || return 0
    programs firefox-esr:firefox-esr
}

node() {
    programs node:nodejs
}

# Debian's servers are in folders of root's PATH. The self-test sets ONLY_PATH, because these folders have all programs on some systems.
[ "${ONLY_PATH:-}" ] || PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin
build
for purpose in "$@"; do
    case $purpose in
    lab | python | peers | tests | browser | firefox | node) $purpose ;;
    programs) servers ;;
    *)
        echo "setup: unknown argument $purpose" >&2
        exit 2
        ;;
    esac
done
# Duplicates are removed, because several purposes can require the same package.
mapfile -t missing < <(printf '%s\n' "${missing[@]}" | sed '/^$/d' | sort -u)
[ ${#missing[@]} -gt 0 ] || exit 0

# Exits with a message that names the missing packages.
stop() {
    echo "missing: ${missing[*]}: $1; on Debian: sudo apt-get install ${missing[*]}" >&2
    exit 1
}
root=()
[ "$(id -u)" = 0 ] || root=(sudo)
command -v apt-get >/dev/null || stop "install them"
[ "$(id -u)" = 0 ] || command -v sudo >/dev/null || stop "install them as root"
case ${SETUP:-} in
no) stop "SETUP=no does not install them" ;;
yes) ;;
"")
    if [ -z "${CI:-}" ]; then
        { [ -t 0 ] && [ -t 2 ]; } || stop "install them, or set SETUP=yes"
        read -rp "make needs ${missing[*]}. Install them by apt-get? [y/N] " answer || answer=
        [[ $answer == [yY]* ]] || stop "install them"
    fi
    ;;
*) stop "SETUP is yes or no, not \`$SETUP\`" ;;
esac

echo "installing ${missing[*]}" >&2
"${root[@]}" apt-get update -q >/dev/null
# The tests start their own servers, so nginx must not start as a service, unless it was a service before. Debian's packages check this
# file.
policy=/usr/sbin/policy-rc.d
new_service=
if [[ " ${missing[*]} " == *" nginx-light "* ]] && ! systemctl cat nginx.service >/dev/null 2>&1; then
    new_service=yes
    if ! [ -e $policy ]; then
        trap '"${root[@]}" rm -f "$policy"' EXIT
        printf '#!/bin/sh\nexit 101\n' | "${root[@]}" tee $policy >/dev/null
        "${root[@]}" chmod 755 $policy
    fi
fi
"${root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends "${missing[@]}" >/dev/null
if [ "$new_service" ] && command -v systemctl >/dev/null; then
    "${root[@]}" systemctl disable -q nginx
fi
