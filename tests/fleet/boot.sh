#!/bin/sh
# The first process of a test host, in namespaces of its own: makes its mounts, brings its link up, starts sshd.
# Usage: boot.sh HOME NAME NUMBER, the last of its address. HOME holds etc, lib, root (kept over a reboot), boot (new at each) and over (files
# that lie over the machine's own).
set -eu
home=$1 name=$2 number=$3

mount --make-rprivate /
mount -t sysfs none /sys
# What a host changes must be its own: of /sys and /proc that are the links and the network's settings.
mount --bind /sys/devices/virtual/net /sys/devices/virtual/net
mount -o remount,bind,ro /sys
mount --bind /proc/sys /proc/sys
mount --bind /proc/sys/net /proc/sys/net
mount -o remount,bind,ro /proc/sys
mount --bind /proc/irq /proc/irq
mount -o remount,bind,ro /proc/irq
mount --bind "$home/etc" /etc
mount --bind "$home/lib" /var/lib
mount --bind "$home/root" /root
mount -t tmpfs none /home
mount -t tmpfs none /run
mount -t tmpfs none /dev/shm
mount -t tmpfs none /mnt
mkdir /run/sshd /mnt/base
# The home may lie in /tmp: it is seen in /mnt from here on.
mount --bind "$home" /mnt/base
mount -t tmpfs none /tmp
chmod 1777 /tmp
chmod 755 /mnt
mkdir -p /home/keeper
chown 1234:1234 /home/keeper
home=/mnt/base
mount --bind "$home/boot/boot_id" /proc/sys/kernel/random/boot_id
while read -r path file; do
  mount --bind "$home/over/$file" "$path"
done <"$home/over.list"
mount -o remount,bind,ro /

hostname "$name"
ip link set lo up
until ip link set eth0 up 2>/dev/null; do sleep 0.02; done
ip address add "192.0.2.$number/24" dev eth0
ip address add "2001:db8:77::$number/64" dev eth0 nodad
# Among many hosts: where the others are need not be learnt.
if [ -s "$home/neighbours" ]; then ip -batch "$home/neighbours"; fi
while read -r link mtu; do
  ip link add "$link" mtu "$mtu" type veth peer name "$link-far" mtu "$mtu"
  ip link set "$link" up
  ip link set "$link-far" up
done <"$home/links"
if [ -x "$home/at_boot" ]; then "$home/at_boot"; fi
if [ ! -e "$home/no-sshd" ]; then /usr/sbin/sshd -D -E "$home/sshd.log" -f "$home/sshd_config" & fi
: >"$home/up"
# An init that reaps whatever its children leave behind.
while :; do
  sleep 100000 &
  wait
done
