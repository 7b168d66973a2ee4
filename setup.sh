#!/bin/sh
# All the set-up there is, on a fresh Debian-like or RHEL-like machine:
#   sh setup.sh scan    install what advisor needs and scan this machine
#   sh setup.sh test    install what the tests need as well and run them all
# Everything goes into .venv beside this file; system packages are installed only where one is missing and we are root.
set -eu
cd "$(dirname "$0")"
here=$(pwd)

say() {
    echo "setup: $*" >&2
}

fail() {
    say "$1"
    exit 1
}

install_packages() { # PACKAGE ...: for the manager that is here
    [ "$(id -u)" = 0 ] || fail "missing: $*; install it, or run this as root"
    say "installing $*"
    if command -v apt-get >/dev/null; then
        apt-get update -qq
        DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" >/dev/null
    elif command -v dnf >/dev/null; then
        dnf install -y -q "$@"
    else
        fail "neither apt-get nor dnf is here; install by hand: $*"
    fi
}

# A Python that is new enough and can make virtual environments.
find_python() {
    for python in python3.14 python3.13 python3.12 python3.11 python3; do
        if command -v "$python" >/dev/null &&
            "$python" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
            echo "$python"
            return
        fi
    done
}

ensure_python() {
    python=$(find_python)
    if [ -z "$python" ]; then
        if command -v apt-get >/dev/null; then
            install_packages python3 python3-venv
        else
            install_packages python3.11 || install_packages python3
        fi
        python=$(find_python)
    fi
    [ -n "$python" ] || fail "needs Python 3.11 or newer with venv"
}

ensure_venv() { # REQUIREMENT: . or .[test]
    ensure_python
    [ -x .venv/bin/python ] || "$python" -m venv .venv
    wanted="$1 $(cksum < pyproject.toml)"
    if [ "$(cat .venv/installed 2>/dev/null)" != "$wanted" ]; then
        say "installing advisor into $here/.venv"
        .venv/bin/python -m pip install --quiet --disable-pip-version-check --editable "$1"
        echo "$wanted" > .venv/installed
    fi
    # An editable install has no bytecode: without it every call compiles the package, where Python may not write any.
    .venv/bin/python -m compileall -q advisor || :
}

# What the tests judge with. The lab's own packages are installed by tests/lab/build.sh.
ensure_test_tools() {
    missing=
    for pair in fio:fio ip:iproute2 ethtool:ethtool dash:dash busybox:busybox-static setpriv:util-linux \
        ssh:openssh-client ping:iputils-ping; do
        command -v "${pair%%:*}" >/dev/null || missing="$missing ${pair##*:}"
    done
    if [ -n "$missing" ]; then
        command -v dnf >/dev/null && missing=$(echo "$missing" | sed -e 's/iproute2/iproute/' -e 's/busybox-static/busybox/' \
            -e 's/openssh-client/openssh-clients/' -e 's/iputils-ping/iputils/')
        # shellcheck disable=SC2086 # a list of words
        install_packages $missing
    fi
    [ -x /usr/sbin/sshd ] || ensure_sshd
}

# The tests start a server of their own, in a network namespace. Debian starts the package's at once and at each boot:
# a machine that had none gets none.
ensure_sshd() {
    units='ssh.service ssh.socket sshd.service sshd.socket'
    # shellcheck disable=SC2086 # a list of words
    [ ! -d /run/systemd/system ] || systemctl --quiet mask $units || :
    install_packages openssh-server
    # shellcheck disable=SC2086
    [ ! -d /run/systemd/system ] || { systemctl --quiet unmask $units && systemctl --quiet disable $units 2>/dev/null; } || :
}

case ${1:-} in
scan)
    shift
    ensure_venv .
    say "done: the command is $here/.venv/bin/advisor"
    exec .venv/bin/advisor scan "$@"
    ;;
test)
    shift
    ensure_test_tools
    ensure_venv '.[test]'
    if [ $# -gt 0 ]; then
        exec .venv/bin/python -m pytest "$@"
    fi
    # A virtual machine keeps a core busy: two at once, and what measures runs alone.
    result=0
    .venv/bin/python -m pytest -n 2 --dist worksteal -m "not lab and not thorough and not alone" || result=$?
    # In the order of their names: the module with the fewest tests takes longest.
    .venv/bin/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder -m "lab and not alone and not thorough" || result=$?
    .venv/bin/python -m pytest -m "alone and not thorough" || result=$?
    exit "$result"
    ;;
*)
    fail "usage: sh setup.sh scan | test"
    ;;
esac
