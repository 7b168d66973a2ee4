#!/bin/sh
# All the set-up there is, on a fresh machine with apt, dnf, zypper, apk or pacman:
#   sh setup.sh scan    install what advisor needs and scan this machine
#   sh setup.sh test    install what the tests need as well and run them all
# Everything goes into .venv next to this file; system packages are installed only where one is missing and we are root.
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

# The packages that bring such a Python, as far as the manager's lists show; nothing where it has none.
find_python_packages() {
    case $manager in
    dnf)
        for name in python3.14 python3.13 python3.12 python3.11; do
            if dnf -q list "$name" >/dev/null 2>&1; then
                echo "$name"
                return
            fi
        done
        offered=$(dnf -q list python3 2>/dev/null | sed -n 's/^python3\.[^ ]* *\([0-9.]*\).*/\1/p' | tail -n 1)
        ! is_new_enough "$offered" || echo python3
        ;;
    apt-get)
        for name in python3 python3.14 python3.13 python3.12 python3.11; do
            # shellcheck disable=SC2086 # a list of words
            offered=$(apt-cache $apt_lists policy "$name" 2>/dev/null | sed -n 's/^ *Candidate: *//p')
            if is_new_enough "$offered"; then
                echo "$name $name-venv"
                return
            fi
        done
        ;;
    zypper)
        for name in python314 python313 python312 python311; do
            if zypper --quiet --non-interactive search --match-exact "$name" >/dev/null 2>&1; then
                echo "$name"
                return
            fi
        done
        ;;
    apk)
        offered=$(apk --no-cache search -q -x -v python3 2>/dev/null | sed -n 's/^python3-\([0-9.]*\).*/\1/p' | tail -n 1)
        ! is_new_enough "$offered" || echo python3
        ;;
    pacman)
        offered=$(pacman -Si python 2>/dev/null | sed -n 's/^Version *: *//p')
        ! is_new_enough "$offered" || echo python
        ;;
    esac
}

is_new_enough() { # VERSION
    case $1 in
    3.1[1-9]* | 3.[2-9][0-9]*) ;;
    *) return 1 ;;
    esac
}

# Prints the packages of the test tools that are missing. The lab's own are installed by tests/lab/build.sh.
find_test_packages() {
    for pair in fio:fio ip:iproute2 ethtool:ethtool dash:dash busybox:busybox-static setpriv:util-linux \
        ssh:openssh-client ping:iputils-ping sysctl:procps; do
        command -v "${pair%%:*}" >/dev/null || echo "${pair##*:}"
    done | case $manager in
    dnf)
        sed -e 's/iproute2/iproute/' -e 's/busybox-static/busybox/' -e 's/openssh-client/openssh-clients/' \
            -e 's/iputils-ping/iputils/' -e 's/procps/procps-ng/'
        ;;
    zypper) sed -e 's/openssh-client/openssh-clients/' -e 's/iputils-ping/iputils/' ;;
    apk) sed -e 's/openssh-client/openssh-client-default/' -e 's/iputils-ping/iputils/' -e 's/util-linux/setpriv/' ;;
    pacman)
        sed -e 's/busybox-static/busybox/' -e 's/openssh-client/openssh/' -e 's/iputils-ping/iputils/' \
            -e 's/procps/procps-ng/'
        ;;
    *) cat ;;
    esac
    # What judges the packages: the tests of it are skipped elsewhere.
    if [ "$manager" = apt-get ]; then
        for pair in lintian:lintian rpmbuild:rpm rpmlint:rpmlint dpkg-source:dpkg-dev; do
            command -v "${pair%%:*}" >/dev/null || echo "${pair##*:}"
        done
    fi
    command -v sshd >/dev/null || [ -x /usr/sbin/sshd ] || [ "$manager" = pacman ] || echo openssh-server
}

# The words that install packages, as root.
install_words() {
    case $manager in
    apk) echo "apk add" ;;
    pacman) echo "pacman -S --needed" ;;
    *) echo "$manager install -y" ;;
    esac
}

# Every requirement is checked before anything is installed or made.
ensure_packages() { # scan or test
    manager=
    apt_lists=
    for name in apt-get dnf zypper apk pacman; do
        [ -n "$manager" ] || ! command -v "$name" >/dev/null || manager=$name
    done
    packages=
    python=$(find_python)
    if [ -z "$python" ]; then
        packages=$(find_python_packages)
        if [ -z "$packages" ] && [ "$manager" = apt-get ] && [ "$(id -u)" = 0 ]; then
            # A fresh image has no lists. Those of a place of our own change nothing where nothing is installed then.
            lists=$(mktemp -d)
            apt_lists="-o Dir::State::Lists=$lists -o Dir::Cache=$lists"
            # shellcheck disable=SC2086 # a list of words
            apt-get $apt_lists update -qq || :
            packages=$(find_python_packages)
            rm -rf "$lists"
        fi
        [ -n "$manager" ] || fail "needs Python 3.11 or newer with venv; no package manager that is known here offers one"
        [ -n "$packages" ] || fail "needs Python 3.11 or newer with venv; $manager offers none"
    fi
    [ "$1" = scan ] || packages="$packages $(find_test_packages)"
    # shellcheck disable=SC2086 # a list of words, on one line
    set -- $packages
    packages=$*
    [ -n "$packages" ] || return 0
    [ -n "$manager" ] || fail "missing: $packages; no package manager that is known here: install them by hand"
    [ "$(id -u)" = 0 ] || fail "missing: $packages; install with: sudo $(install_words) $packages"
    say "installing $packages"
    case " $packages " in
    *" openssh-server "*) install_with_sshd ;;
    *) install_packages ;;
    esac
    [ -n "$python" ] || python=$(find_python)
    [ -n "$python" ] || fail "needs Python 3.11 or newer with venv: $packages did not bring it"
}

install_packages() {
    # shellcheck disable=SC2086 # lists of words
    case $manager in
    apt-get)
        apt-get update -qq
        DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $packages >/dev/null
        ;;
    dnf) dnf install -y -q $packages ;;
    zypper) zypper --quiet --non-interactive install --no-recommends $packages ;;
    apk) apk add -q --no-cache $packages ;;
    pacman) pacman -S --needed --noconfirm --quiet $packages >/dev/null ;;
    esac
}

# The tests start a server of their own, in a network namespace. Debian starts the package's at once and at each boot:
# a machine that had none gets none.
install_with_sshd() {
    units='ssh.service ssh.socket sshd.service sshd.socket'
    # shellcheck disable=SC2086 # a list of words
    [ ! -d /run/systemd/system ] || systemctl --quiet mask $units || :
    install_packages
    # shellcheck disable=SC2086
    [ ! -d /run/systemd/system ] || { systemctl --quiet unmask $units && systemctl --quiet disable $units 2>/dev/null; } || :
}

ensure_venv() { # REQUIREMENT: . or .[test]
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

run_lab_tests() {
    if [ "${ADVISOR_LAB:-}" != off ]; then
        sh tests/lab/build.sh >/dev/null 2>.venv/lab-image || say "the lab's image was not made: $(tail -n 1 .venv/lab-image)"
    fi
    exec .venv/bin/python -m pytest -m "lab and not alone and not thorough"
}

case ${1:-} in
scan)
    shift
    ensure_packages scan
    ensure_venv .
    say "done: the command is $here/.venv/bin/advisor"
    command -v advisor >/dev/null || say "to type advisor alone, as root: ln -s $here/.venv/bin/advisor /usr/local/bin/"
    exec .venv/bin/advisor scan "$@"
    ;;
test)
    shift
    ensure_packages test
    ensure_venv '.[test]'
    if [ $# -gt 0 ]; then
        exec .venv/bin/python -m pytest "$@"
    fi
    # Each process compiles all tests otherwise.
    unset PYTHONDONTWRITEBYTECODE
    # Most tests wait as long as they compute: four at once. What measures, alone.
    result=0
    # The lab's image takes minutes of waiting for packages, and its virtual machine much waiting for itself: both run
    # beside the tests that do without it.
    lab=
    if [ "${ADVISOR_LAB:-}" != off ] && sh tests/lab/build.sh --tools; then
        run_lab_tests > .venv/lab-tests 2>&1 &
        lab=$!
        trap 'kill "$lab" 2>/dev/null || :' EXIT
        trap 'exit 130' INT
        trap 'exit 143' TERM
    fi
    .venv/bin/python -m pytest -n 4 --dist worksteal -m "not lab and not thorough and not alone" || result=$?
    if [ -n "$lab" ]; then
        wait "$lab" || result=$?
        cat .venv/lab-tests
    else
        (run_lab_tests) || result=$?
    fi
    .venv/bin/python -m pytest -m "alone and not thorough" || result=$?
    exit "$result"
    ;;
*)
    fail "usage: sh setup.sh scan | test"
    ;;
esac
