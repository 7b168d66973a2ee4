#!/bin/sh
# Build the lab image: a Debian 12 root disk, an unpacked kernel and a small initramfs.
#
# usage: build.sh [--where | --tools | --force]
#
#   --where   print the directory the image belongs in, build nothing
#   --tools   install what builds and runs it, build nothing
#   --force   build again even if the image is there
#
# The products land in $ADVISOR_LAB_CACHE (default ${XDG_CACHE_HOME:-~/.cache}/advisor-lab), in a directory named by
# a hash of everything that shapes them. A second run with the same inputs finds it and ends at once. The last line
# on standard output is always that directory; progress goes to standard error.
#
# Exit status: 0 the image is there; 3 the image cannot be built here (the reason is on standard error); 1 it failed.
#
# The image holds no part of the project: the working tree is shared into the guest read-only at start.
set -eu

suite=bookworm
arch=amd64
# Counts by hand what the hash cannot see, for instance "take newer packages".
generation=1

# The order follows what a storage host is made of: base, disks, links, NUMA, observation; then the tools that use
# what is exported to them.
guest_packages="
    systemd-sysv udev dbus kmod procps util-linux python3 dash busybox-static ca-certificates passwd less
    e2fsprogs xfsprogs mdadm lvm2 dmsetup multipath-tools nvme-cli fio open-iscsi hdparm
    iproute2 ethtool nftables iputils-ping iperf3 openssh-server openssh-client
    network-manager netplan.io ifupdown
    numactl pciutils lshw strace
    tuned ansible-core cloud-init
"
# In the initramfs: what mounts the root disk, and link drivers in a fixed order, because with net.ifnames=0 the
# order in which drivers bind decides which link is eth0.
initramfs_modules="virtio_pci virtio_blk crc32c_generic ext4 vmxnet3 e1000e virtio_net"

# Loaded by udev for devices of the emulated board that no case uses; each costs emulated time.
idle_modules="kvm_amd kvm_intel cfg80211 drm iTCO_wdt pcspkr ahci serio_raw psmouse"

say() { printf 'lab: %s\n' "$*" >&2; }
cannot() { say "cannot build: $*"; exit 3; }

here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
project=$(CDPATH='' cd -- "$here/../.." && pwd)
cache=${ADVISOR_LAB_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/advisor-lab}
python=${ADVISOR_LAB_PYTHON:-}
if [ -z "$python" ]; then
    if [ -x "$project/.venv/bin/python" ]; then python=$project/.venv/bin/python; else python=python3; fi
fi

# One requirement per line: the project's own run-time dependencies, or the known set while there is no project file.
requirements() {
    "$python" - "$project/pyproject.toml" <<'PYTHON'
import sys, tomllib
try:
    with open(sys.argv[1], "rb") as file:
        wanted = tomllib.load(file).get("project", {}).get("dependencies", [])
except FileNotFoundError:
    wanted = []
print("\n".join(wanted or ["typer<0.29", "rich", "msgspec", "pyroute2", "psutil", "jinja2"]))
PYTHON
}

# The root tree costs minutes and changes rarely; what is laid over it costs seconds and changes often: two keys.
tree_key() {
    printf '%s\n' "$suite" "$arch" "$generation" "$guest_packages" | sha256sum | cut -c1-16
}
image_key() {
    { tree_key; printf '%s\n' "$initramfs_modules"; requirements; cat "$here/build.sh"; hash_files; } |
        sha256sum | cut -c1-16
}
hash_files() {
    (cd "$here/guest/files" && find . -type f ! -name '*.pyc' -print0 | LC_ALL=C sort -z | xargs -0 sha256sum)
}

# Debian-like hosts only; anywhere else the tools have to be there already.
install_tools() {
    missing=
    for pair in qemu-system-x86_64:qemu-system-x86 qemu-img:qemu-utils mmdebstrap:mmdebstrap cpio:cpio \
        mke2fs:e2fsprogs xz:xz-utils dpkg-deb:dpkg; do
        command -v "${pair%%:*}" >/dev/null 2>&1 || missing="$missing ${pair#*:}"
    done
    [ -e /usr/share/keyrings/debian-archive-keyring.gpg ] || missing="$missing debian-archive-keyring"
    [ -n "$missing" ] || return 0
    command -v apt-get >/dev/null 2>&1 || cannot "these Debian packages are missing and there is no apt-get:$missing"
    [ "$(id -u)" = 0 ] || cannot "these packages are missing and only root can install them:$missing"
    say "installing$missing"
    # shellcheck disable=SC2086  # a list of words
    DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=600 -qq install -y --no-install-recommends \
        $missing >&2 </dev/null || {
        apt-get -o DPkg::Lock::Timeout=600 -qq update >&2
        # shellcheck disable=SC2086
        DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=600 -qq install -y --no-install-recommends \
            $missing >&2 </dev/null || cannot "apt-get could not install:$missing"
    }
}

# A Debian tree with the kernel's files but no kernel installed: its post-install script would build an initramfs
# that the lab never uses.
make_tree() { # DIRECTORY
    say "making a Debian $suite tree (a few minutes, once)"
    # shellcheck disable=SC2086  # one package per word
    include=$(printf '%s,' $guest_packages)
    # shellcheck disable=SC2016  # the hooks are expanded by mmdebstrap's shell
    mmdebstrap --quiet --mode=root --variant=minbase --architectures="$arch" --include="${include%,}" \
        --aptopt='Acquire::Languages "none"' --dpkgopt=force-unsafe-io --dpkgopt='path-exclude=/usr/share/man/*' \
        --dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-exclude=/usr/share/locale/*' \
        --customize-hook='chroot "$1" sh -eu -c "
            cd /tmp
            real=\$(apt-cache depends linux-image-amd64 | sed -n \"s/^ *Depends: \(linux-image-[^ ]*\)/\1/p\" | head -n 1)
            apt-get -qq download \"\$real\"
            # Not straight into /, where /lib is a link that unpacking would replace by a directory.
            dpkg-deb -x linux-image-*.deb kernel
            cp -a kernel/lib/modules /lib/
            cp kernel/boot/vmlinuz-* /boot/
            rm -r kernel linux-image-*.deb
            depmod \"\$(ls /lib/modules)\""' \
        "$suite" "$1" >&2
}

# The kernel as an ELF file, so that the emulated CPU need not unpack it. The layout is that of the kernel's document
# "The Linux/x86 Boot Protocol": setup_sects at 0x1f1, payload_offset at 0x248, payload_length at 0x24c.
unpack_kernel() { # VMLINUZ VMLINUX
    sectors=$(od -An -tu1 -j 497 -N 1 "$1" | tr -d ' ')
    offset=$(od -An -tu4 -j 584 -N 4 "$1" | tr -d ' ')
    length=$(od -An -tu4 -j 588 -N 4 "$1" | tr -d ' ')
    start=$(((sectors + 1) * 512 + offset + 1))
    # The last four bytes of the payload are the unpacked size, not part of the stream.
    tail -c "+$start" "$1" | head -c "$((length - 4))" >"$2.packed"
    case $(od -An -tx1 -N 4 "$2.packed" | tr -d ' ') in
        fd377a58) xz -dc "$2.packed" >"$2" ;;
        28b52ffd) zstd -qdc "$2.packed" >"$2" ;;
        1f8b*) gzip -dc "$2.packed" >"$2" ;;
        *) say "unknown compression of $1"; return 1 ;;
    esac
    rm -f "$2.packed"
}

make_initramfs() { # TREE OUTPUT
    stage=$work/initramfs
    version=$(ls "$1/lib/modules")
    mkdir -p "$stage/bin" "$stage/lib" "$stage/proc" "$stage/sys" "$stage/dev" "$stage/root"
    cp "$1/bin/busybox" "$stage/bin/busybox"
    cp "$here/guest/files/initramfs-init" "$stage/init"
    chmod 0755 "$stage/init"
    : >"$stage/lib/order"
    for module in $initramfs_modules; do
        chroot "$1" modprobe --show-depends -S "$version" "$module" | sed -n 's/^insmod \([^ ]*\).*/\1/p'
    done | awk '!seen[$0]++' | while read -r path; do
        cp "$1$path" "$stage/lib/${path##*/}"
        printf '%s\n' "${path##*/}" >>"$stage/lib/order"
    done
    (cd "$stage" && find . -print0 | LC_ALL=C sort -z | cpio --quiet --null --create --format=newc) >"$2"
}

install_dependencies() { # TREE
    say "adding the project's run-time dependencies for the guest's Python"
    requirements >"$work/requirements.txt"
    version=$(chroot "$1" python3 -c 'import sys; print("%d.%d" % sys.version_info[:2])')
    "$python" -m pip --disable-pip-version-check --no-input install --quiet --target "$1/opt/advisor-deps" \
        --python-version "$version" --only-binary=:all: --no-compile -r "$work/requirements.txt" >&2
    # Compiled here, by the guest's own Python: under emulation it would cost seconds at each first import.
    # Where the `advisor` wrapper lets Python look for compiled modules, which any user may add to.
    PYTHONPYCACHEPREFIX=/var/cache/pycache chroot "$1" python3 -m compileall -q -j 0 \
        /opt/advisor-deps "/usr/lib/python$version" /usr/lib/python3/dist-packages >&2 || true
    chmod -R a+rwX "$1/var/cache/pycache"
}

configure_tree() { # TREE
    cp "$here/guest/files/agent.py" "$1/usr/local/lib/lab-agent.py"
    cp "$here/guest/files/lab-agent.service" "$1/etc/systemd/system/lab-agent.service"
    cp "$here/guest/files/src.mount" "$here/guest/files/src-live.service" "$1/etc/systemd/system/"
    install -m 0755 "$here/guest/files/advisor" "$1/usr/local/bin/advisor"
    install -m 0755 "$here/guest/files/lab-setup" "$1/usr/local/sbin/lab-setup"
    cp "$here"/guest/files/*.network "$1/etc/systemd/network/"
    cp "$here/guest/files/unmanaged.conf" "$1/etc/NetworkManager/conf.d/10-lab.conf"
    # udev would assemble whatever array it finds, also between stopping one and wiping its members.
    echo 'AUTO -all' >>"$1/etc/mdadm/mdadm.conf"
    mkdir -p "$1/src"
    echo lab >"$1/etc/hostname"
    printf '127.0.0.1 localhost\n127.0.1.1 lab\n::1 localhost\n' >"$1/etc/hosts"
    # An uninitialized ID would make the first start a "first boot", with presets applied and more to do.
    echo 1ab00000000000000000000000000001 >"$1/etc/machine-id"
    : >"$1/etc/fstab"
    chroot "$1" useradd --create-home --shell /bin/bash plain
    chroot "$1" ssh-keygen -A >&2
    chroot "$1" systemctl --quiet enable lab-agent.service src.mount src-live.service systemd-networkd.service >&2
    # Installed for the cases that ask for them, idle for the others (the links are systemd-networkd's); timers and
    # consoles have no reader here.
    chroot "$1" systemctl --quiet disable ssh.service open-iscsi.service iscsid.service iscsid.socket iperf3.service \
        nvmf-autoconnect.service nvmefc-boot-connections.service multipathd.service multipathd.socket \
        NetworkManager.service NetworkManager-dispatcher.service NetworkManager-wait-online.service networking.service \
        systemd-networkd-wait-online.service getty@tty1.service e2scrub_reap.service e2scrub_all.timer \
        apt-daily.timer apt-daily-upgrade.timer dpkg-db-backup.timer fstrim.timer tuned.service >&2 || true
    # Without this its generator looks for an instance's data at each start.
    mkdir -p "$1/etc/cloud"
    : >"$1/etc/cloud/cloud-init.disabled"
    # shellcheck disable=SC2086  # a list of words
    printf 'blacklist %s\n' $idle_modules >"$1/usr/lib/modprobe.d/lab.conf"
    chroot "$1" systemctl --quiet mask console-getty.service serial-getty@ttyS0.service getty-static.service >&2
}

make_disk() { # TREE OUTPUT
    used_kb=$(du -skx "$1" | cut -f1)
    truncate -s "$((used_kb / 1024 + 6144))M" "$2"
    # No lazy initialization: it would write to the disk in the background of every guest.
    mke2fs -q -F -t ext4 -L labroot -m 0 -E lazy_itable_init=0,lazy_journal_init=0,nodiscard -d "$1" "$2"
}

mode=${1:-}
[ -r "$here/guest/files/agent.py" ] || cannot "guest files are missing next to build.sh"
"$python" -c 'import tomllib' 2>/dev/null || cannot "Python 3.11 or later is needed as '$python'"
key=$(image_key)
target=$cache/image-$key
case $mode in
    --where) echo "$target"; exit 0 ;;
    --tools) install_tools; exit 0 ;;
    --force) rm -rf "$target" ;;
    '') ;;
    *) sed -n '2,9p' "$0" >&2; exit 2 ;;
esac

if [ -e "$target/complete" ] && command -v qemu-system-x86_64 >/dev/null && command -v qemu-img >/dev/null; then
    # The time of use; what has gone unused for long is removed when the next image is made.
    touch "$target/complete" 2>/dev/null || true
    echo "$target"
    exit 0
fi
install_tools
if [ ! -e "$target/complete" ]; then
    [ "$(id -u)" = 0 ] || cannot "only root can make a Debian root tree (owners, chroot)"
    mkdir -p "$cache"
    # Two test runs may start at once: the second waits and then finds the product.
    exec 9>"$cache/lock"
    flock 9
fi
if [ ! -e "$target/complete" ]; then
    work=$(mktemp -d "$cache/work.XXXXXX")
    trap 'rm -rf "$work"' EXIT
    trap 'exit 1' HUP INT TERM
    base=$cache/tree-$(tree_key)
    if [ ! -e "$base/etc/debian_version" ]; then
        make_tree "$work/tree"
        mv "$work/tree" "$base"
    fi
    cp -a --reflink=auto "$base" "$work/root"
    install_dependencies "$work/root"
    configure_tree "$work/root"
    mkdir "$work/image"
    unpack_kernel "$(ls "$base"/boot/vmlinuz-*)" "$work/image/vmlinux"
    make_initramfs "$work/root" "$work/image/initramfs"
    say "making the root disk"
    make_disk "$work/root" "$work/image/root.ext4"
    touch "$work/image/complete"
    rm -rf "$target"
    mv "$work/image" "$target"
    for old in "$cache"/image-*; do
        [ -z "$(find "$old/complete" -mtime +2 2>/dev/null)" ] || rm -rf "$old"
    done
    for old in "$cache"/tree-*; do
        [ "$old" = "$base" ] || rm -rf "$old"
    done
    say "image ready: $(du -sh "$target" | cut -f1)"
fi
echo "$target"
