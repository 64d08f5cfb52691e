#!/usr/bin/env bash
# Checks for the programs that the build and the tests call. Installs missing ones from Debian's packages if it is permitted to;
# otherwise prints their names in one line.
#
#   tools/setup.sh              for `make` and `make run`
#   tools/setup.sh programs     for tools/provider-test: servers and clients as well
#   tools/setup.sh gpus         for make test: Mesa's software devices, age and strace as well
#   tools/setup.sh browser      for tools/bench_page/check.py: a headless browser as well
set -euo pipefail

command -v cargo >/dev/null || {
    echo "no Rust: install it with rustup, see rustup.rs" >&2
    exit 1
}

# Programs, each with the Debian package that contains it.
wanted="cc:gcc c++:g++ make:make openssl:openssl python3:python3 valgrind:valgrind ssh-keygen:openssh-client script:bsdutils
    pkg-config:pkgconf"
case ${1:-} in
"" | browser) ;;
# Programs for the tests of the command: peers for comparison, and a program that traces system calls.
gpus) wanted+=" age:age strace:strace" ;;
# apache2-bin has Apache's program without a service.
programs) wanted+=" setpriv:util-linux nginx:nginx-light apache2:apache2-bin ab:apache2-utils wrk:wrk curl:curl" ;;
*)
    echo "setup: unknown argument $1" >&2
    exit 2
    ;;
esac
# Servers are in folders of root's PATH.
PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin
missing=()
for pair in $wanted; do
    command -v "${pair%%:*}" >/dev/null || missing+=("${pair##*:}")
done
# AWS-LC's C needs the C library's headers; interoperability with pyca needs a virtual environment.
[ -e /usr/include/stdio.h ] || missing+=(libc6-dev)
python3 -c 'import venv, ensurepip' 2>/dev/null || missing+=(python3-venv)
# The tests of the provider link to OpenSSL; the build of another release requires Perl with its modules.
echo '#include <openssl/provider.h>' | cc -E - >/dev/null 2>&1 || missing+=(libssl-dev)
perl -MIPC::Cmd -e 1 2>/dev/null || missing+=(perl)
# The backends wgpu and opengl are tested on Mesa's software devices: lavapipe for Vulkan, llvmpipe for OpenGL.
if [ "${1:-}" = gpus ]; then
    ls /usr/share/vulkan/icd.d/lvp_icd.*json >/dev/null 2>&1 || missing+=(mesa-vulkan-drivers)
    libraries=$(ldconfig -p 2>/dev/null || true)
    [[ $libraries == *libvulkan.so.1* ]] || missing+=(libvulkan1)
    [[ $libraries == *libEGL.so.1* ]] || missing+=(libegl1)
    [[ $libraries == *libEGL_mesa.so.0* ]] || missing+=(libegl-mesa0 libgl1-mesa-dri)
fi
# tools/bench_page/check.py shows the page of `lockstep bench` in a browser, which needs a font.
if [ "${1:-}" = browser ]; then
    browser=
    for program in chromium-headless-shell chromium chromium-browser google-chrome; do
        ! command -v $program >/dev/null || browser=$program
    done
    [ -n "$browser" ] || missing+=(chromium-headless-shell fonts-dejavu-core)
fi
[ ${#missing[@]} -gt 0 ] || exit 0

root=()
[ "$(id -u)" = 0 ] || root=(sudo -n)
if command -v apt-get >/dev/null && { [ "$(id -u)" = 0 ] || sudo -n true 2>/dev/null; }; then
    echo "installing ${missing[*]}"
    "${root[@]}" apt-get update -q >/dev/null
    # The tests start their own servers, so nginx must not start as a service. Debian's packages check this file.
    policy=/usr/sbin/policy-rc.d
    if [[ " ${missing[*]} " == *" nginx-light "* ]] && ! [ -e $policy ]; then
        trap '"${root[@]}" rm -f "$policy"' EXIT
        printf '#!/bin/sh\nexit 101\n' | "${root[@]}" tee $policy >/dev/null
        "${root[@]}" chmod 755 $policy
    fi
    "${root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends "${missing[@]}" >/dev/null
    if [[ " ${missing[*]} " == *" nginx-light "* ]] && command -v systemctl >/dev/null; then
        "${root[@]}" systemctl disable -q nginx
    fi
else
    echo "missing: ${missing[*]}: install them, on Debian by: sudo apt-get install ${missing[*]}" >&2
    exit 1
fi
