#!/bin/sh
# Puts things on the guest that a test wants to find. Each can be asked for again without harm.
#
# usage: lab-setup NAME…
#   md            md0: raid0 (64 KiB chunks) over two drives of node 0, XFS, /srv/node0
#                 md1: raid1 over a drive of each node, ext4, /srv/span; both come back after a reboot
#   degraded      md2: raid1 over a drive of node 1 and a missing one
#   no-md         takes all arrays away again
#   service       demo-storage.service: holds 32 MiB and sleeps
#   sysctl        two sysctl.d files, one after the other's order, and their values
#   llt           stand-in lltconfig and lltstat, llttab with two UDP links
#   no-llt        takes them away
#   peer          moves eth1 into the network namespace `peer`, 192.0.2.2: traffic from eth0 crosses two devices
#   no-peer       brings it back
set -eu
here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)

drive() { # SERIAL: the drive's device; names are given in probing order, serials are not
    for serial in /sys/block/*/device/serial; do
        # Not `tr`: each process of the emulated guest costs as much as the rest of this.
        read -r found <"$serial" || :
        if [ "$found" = "$1" ]; then
            serial=${serial#/sys/block/}
            echo "/dev/${serial%%/*}"
            return 0
        fi
    done
    echo "lab-setup: no drive has the serial number $1" >&2
    return 1
}

make_array() { # DEVICE LEVEL OPTIONS…
    device=$1
    level=$2
    shift 2
    # --assume-clean: a resync would go on in the background of the test. The drives are blank, so the halves agree.
    case $level in raid1) set -- --assume-clean "$@" ;; esac
    mdadm --quiet --create "$device" --run --level="$level" --metadata=1.2 --homehost=lab "$@"
    udevadm settle
    mdadm --detail --brief "$device" >>/etc/mdadm/mdadm.conf
}

mount_array() { # DEVICE TYPE DIRECTORY
    mkdir -p "$3"
    echo "$1 $3 $2 defaults,nofail 0 0" >>/etc/fstab
    systemctl daemon-reload
    mount "$3"
}

# udev assembles what it finds whenever a member's last writer closes it: between stopping an array and wiping its
# members that would bring the array back, half of it at times. It may assemble what mdadm.conf lists and nothing else.
only_listed_arrays() {
    grep -qx 'AUTO -all' /etc/mdadm/mdadm.conf || echo 'AUTO -all' >>/etc/mdadm/mdadm.conf
}

is_running() { # ARRAY: a device node alone says nothing
    case $(cat "/sys/block/$1/md/array_state" 2>/dev/null) in '' | clear | inactive) return 1 ;; esac
}

md() {
    only_listed_arrays
    is_running md0 || {
        make_array /dev/md0 raid0 --chunk=64 --raid-devices=2 "$(drive LAB-N0-1)" "$(drive LAB-N0-2)"
        mkfs.xfs -q -f -L node0 /dev/md0
    }
    is_running md1 || {
        make_array /dev/md1 raid1 --raid-devices=2 "$(drive LAB-N0-0)" "$(drive LAB-N1-0)"
        mkfs.ext4 -q -F -L span -E lazy_itable_init=0,lazy_journal_init=0,nodiscard /dev/md1
    }
    mountpoint -q /srv/node0 || mount_array /dev/md0 xfs /srv/node0
    mountpoint -q /srv/span || mount_array /dev/md1 ext4 /srv/span
}

degraded() {
    only_listed_arrays
    is_running md2 || make_array /dev/md2 raid1 --raid-devices=2 "$(drive LAB-N1-1)" missing
}

no_md() {
    for directory in /srv/node0 /srv/span; do
        if mountpoint -q "$directory"; then umount "$directory"; fi
    done
    only_listed_arrays
    sed -i '/^ARRAY /d' /etc/mdadm/mdadm.conf
    udevadm settle
    for array in /sys/block/md*/md; do
        [ -e "$array" ] || continue
        array=${array#/sys/block/}
        mdadm --quiet --stop "/dev/${array%/md}"
    done
    udevadm settle
    for serial in LAB-N0-0 LAB-N0-1 LAB-N0-2 LAB-N1-0 LAB-N1-1; do
        wipefs --quiet --all "$(drive "$serial")"
    done
    sed -i '/^\/dev\/md[0-9]/d' /etc/fstab
    systemctl daemon-reload
}

service() {
    cat >/etc/systemd/system/demo-storage.service <<'UNIT'
[Unit]
Description=A storage service that holds memory and does nothing

[Service]
ExecStart=/usr/bin/python3 -I -S -c "import time; held = b'x' * (32 << 20); time.sleep(1 << 30)"

[Install]
WantedBy=multi-user.target
UNIT
    systemctl daemon-reload
    systemctl --quiet enable demo-storage.service
    systemctl restart demo-storage.service
}

sysctl_files() {
    cat >/etc/sysctl.d/30-site.conf <<'CONF'
# Site defaults
net.core.rmem_max = 425984
net.core.wmem_max = 425984
vm.swappiness = 30
CONF
    cat >/etc/sysctl.d/99-zz-local.conf <<'CONF'
# Comes last, so it wins over what a tool writes into 90-*.conf
vm.swappiness=10
CONF
    /lib/systemd/systemd-sysctl
}

llt() {
    install -m 0755 "$here/bin/lltconfig" "$here/bin/lltstat" /sbin/
    cat >/etc/llttab <<'CONF'
set-node lab
set-cluster 4711
link eth0 udp - udp 50000 - 192.0.2.1 192.0.2.63
link eth1 udp - udp 50001 - 192.0.2.65 192.0.2.127
CONF
    printf '0 lab\n1 peer\n' >/etc/llthosts
    lltconfig -c
}

no_llt() {
    rm -f /sbin/lltconfig /sbin/lltstat /etc/llttab /etc/llthosts
    rm -rf /run/llt-standin
}

peer() {
    if ip netns list | grep -qw peer; then return 0; fi
    ip netns add peer
    ip link set eth1 netns peer
    ip -n peer link set lo up
    ip -n peer addr add 192.0.2.2/26 dev eth1
    ip -n peer link set eth1 up
}

no_peer() {
    # A real device goes back to the first namespace when its own goes away, and networkd configures it again.
    if ip netns list | grep -qw peer; then
        ip -n peer link set eth1 netns 1
        ip netns delete peer
    fi
}

[ $# -gt 0 ] || { sed -n '4,16p' "$0" >&2; exit 2; }
for wanted in "$@"; do
    case $wanted in
        md) md ;;
        degraded) degraded ;;
        no-md) no_md ;;
        service) service ;;
        sysctl) sysctl_files ;;
        llt) llt ;;
        no-llt) no_llt ;;
        peer) peer ;;
        no-peer) no_peer ;;
        *) echo "lab-setup: unknown name $wanted" >&2; exit 2 ;;
    esac
done
