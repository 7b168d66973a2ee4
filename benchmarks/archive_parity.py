"""What a support archive says of a host, beside the host itself: findings and ceilings of both.

    python -m benchmarks.archive_parity      root, with Debian's `sosreport`

Each kind of host is this machine, as it is, or in namespaces with links or disks of its own. It is read live, from our
snapshot, from what ``sos report`` makes of it, and from a set in the form of supportconfig's: the same commands and
files, a section each. Prints a Markdown table, then what each archive lacks, and the unknown facts that explain it.
"""

from __future__ import annotations

import glob
import json
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from advisor.host.origin import package_data

ADVISOR = [sys.executable, "-m", "advisor"]
LINKS = (
    "mount -t sysfs sysfs /sys; ip link set lo up; ip link add br0 type bridge; for n in 0 1; do"
    " ip link add v$n type veth peer name p$n; ip link set p$n master br0; ip link set v$n up; ip link set p$n up;"
    " ip addr add 192.0.$n.1/24 dev v$n; done; ip link set v0 mtu 9000; ip link set br0 up;"
    " ip link add vx0 mtu 9000 type vxlan id 7 dev v0 remote 192.0.0.2 dstport 4789; ip link set vx0 up;"
    " sysctl -q net.ipv4.tcp_sack=0 net.ipv4.tcp_timestamps=0 net.ipv4.tcp_window_scaling=0"
    " net.ipv4.tcp_rmem='4096 16384 65536' net.ipv4.tcp_slow_start_after_idle=1 net.ipv4.conf.all.rp_filter=1"
)
DISKS = (
    "(cd $ADVISOR_STATE_DIR; mkdir m0 m1; truncate -s 320M d0 d1; mkfs.ext4 -qF d0;"
    " mkfs.ext4 -qF -E stride=4,stripe_width=12 d1; mount -o loop,discard,sync d0 m0; mount -o loop,strictatime d1 m1)"
)
KINDS = {"the machine": "true", "bridge, veths and VXLAN in a namespace": LINKS, "ext4 on loop disks": DISKS}
SOS = "--batch --quiet --tmp-dir {0} -z gzip --plugin-timeout 60"
SECTIONS = {
    "basic-environment.txt": ("/bin/date", "/bin/uname -a", "/etc/os-release", "/proc/cmdline", "/proc/meminfo"),
    "hardware.txt": ("/usr/bin/lscpu", "/proc/cpuinfo", "/usr/sbin/dmidecode", "/sbin/lspci -nnvv"),
    "memory.txt": ("/usr/bin/free -k", "/proc/vmstat", "/usr/bin/numactl --hardware"),
    "env.txt": ("/sbin/sysctl -a", "/etc/sysctl.conf", *sorted(glob.glob("/etc/sysctl.d/*.conf"))),
    "proc.txt": ("/proc/interrupts", "/proc/net/softnet_stat", "/proc/net/netstat", "/proc/net/snmp", "/proc/mdstat"),
    "fs-diskio.txt": (
        *("/bin/df -aT", "/bin/df -i", "/bin/mount", "/proc/mounts", "/proc/partitions", "/bin/lsblk -O -P"),
        *("/etc/fstab", "/bin/lsblk"),
    ),
    "lvm.txt": ("/sbin/dmsetup table", "/sbin/dmsetup info -c", "/sbin/lvs -a -o +devices,stripes,stripesize"),
    "udev.txt": ("/sbin/udevadm info -e",),
    "systemd.txt": ("/bin/systemctl --no-pager --all list-units",),
    "ps.txt": ("/bin/ps axwwo user,pid,ppid,%cpu,%mem,vsz,rss,stat,time,cmd",),
}
OF_LINKS = ("/usr/sbin/ethtool {0}", *(f"/usr/sbin/ethtool -{letter} {{0}}" for letter in "ikglcS"))


def print_of(command: str) -> str:
    return subprocess.run(f"{command} 2>&1", shell=True, capture_output=True).stdout.decode("utf-8", "replace")


def write_supportconfig(top: Path) -> None:
    """What supportconfig (3.1) prints of a host, as far as it says anything of its links, disks and settings."""
    top.mkdir()
    links = [one["ifname"] for one in json.loads(print_of("ip -j link"))]
    network = ["/sbin/ip addr", "/sbin/ip -s -d link", "/sbin/ip rule", "/sbin/ip route"]
    network += [one.format(name) for name in links for one in OF_LINKS]
    for name, asked in {**SECTIONS, "network.txt": network}.items():
        with (top / name).open("w", encoding="utf-8") as file:
            for one in asked:
                is_file = " " not in one and one.startswith(("/proc/", "/etc/"))
                heading = "Configuration File" if is_file else "Command"
                text = print_of(f"cat {one}" if is_file else one.partition("bin/")[2])
                file.write(f"#==[ {heading} ]======================================#\n# {one}\n{text}\n")
    (top / "supportconfig.txt").write_text("Script Version:  3.1.17\n", "utf-8")


def read(source: Sequence[str] = ()) -> Mapping[str, Any]:
    """Findings and ceilings, each as often as it is there, and the unknown facts."""
    scanned, limits = (
        json.loads(
            subprocess.run([*ADVISOR, one, "--json", *source], capture_output=True, check=one == "limits").stdout
        )
        for one in ("scan", "limits")
    )
    ceilings = [
        f"{path['device']}: {one['stage']} {' '.join(one['where'])} {one['known']} {list(one['sustained'].values())}"
        for path in limits["paths"]
        for one in path["ceilings"]
    ]
    return {
        "findings": Counter(one["id"] for one in scanned["findings"]),
        "ceilings": Counter(ceilings),
        "unknown": {one["fact"]: one["why"] for one in scanned["unknown"]},
    }


def compare(directory: Path) -> None:
    """Inside a kind of host: makes the archives and prints what each says."""
    own, set_of_texts = directory / "own.tar.gz", directory / "scc_host"
    live = read()
    subprocess.run([*ADVISOR, "snapshot", "-o", str(own)], check=True, capture_output=True)
    subprocess.run(["sos", "report", *SOS.format(directory).split()], check=True, capture_output=True)
    write_supportconfig(set_of_texts)
    archives = {"snapshot": own, "sosreport": next(directory.glob("sosreport-*.tar.gz")), "supportconfig": set_of_texts}
    said = {name: read(("--snapshot", str(path))) for name, path in archives.items()}
    json.dump({"live": live, **said}, sys.stdout)


def explain(what: str, name: str, unknown: Mapping[str, str]) -> str:
    """The unknown facts for which a finding or a ceiling is missing."""
    if what == "findings":
        rows = (line.split(",") for line in (package_data("tables") / "rule-facts.csv").read_text("utf-8").splitlines())
        asked = next((read.split() for _, rule, read in rows if rule == name), ())
        short = {re.sub(r"^(\w+)\.[^.]+\.(\w+)$", r"\1.\2", fact): fact for fact in unknown}
        found = [fact for one, fact in short.items() if one in asked or one.partition(".")[0] == fact]
    else:
        found = [fact for fact in unknown if set(fact.split(".")) & set(re.split(r"[: ]+", name))]
    return ", ".join(sorted(found)) or "NOT EXPLAINED"


def main() -> None:
    if sys.argv[1:]:
        return compare(Path(sys.argv[1]))
    missing: list[str] = []
    print("| host | live: findings, ceilings | snapshot | sosreport | supportconfig |\n|---|---|---|---|---|")
    for kind, setup in KINDS.items():
        with tempfile.TemporaryDirectory() as directory:
            environment = {**os.environ, "ADVISOR_STATE_DIR": directory, "ADVISOR_IGNORE_FILE": f"{directory}/none"}
            inside = ["unshare", "-nm", "sh", "-ec", f'{setup}; exec "$@"', "sh"] if setup != "true" else []
            command = [*inside, sys.executable, "-m", "benchmarks.archive_parity", directory]
            said = json.loads(subprocess.run(command, env=environment, check=True, capture_output=True).stdout)
        row = [kind, ", ".join(str(sum(said["live"][what].values())) for what in ("findings", "ceilings"))]
        for name in ("snapshot", "sosreport", "supportconfig"):
            shares = []
            for what in ("findings", "ceilings"):
                live, here = (Counter(said[one][what]) for one in ("live", name))
                shares.append(f"{100 * (live & here).total() / max(1, live.total()):.0f} %")
                for one in live - here:
                    missing.append(f"{kind}, {name}: {one}: {explain(what, one, said[name]['unknown'])}")
                missing += [f"{kind}, {name}: {one}: not live" for one in here - live]
            row.append(", ".join(shares))
        print(f"| {' | '.join(row)} |", flush=True)
    print("\n".join(["", *missing]))


if __name__ == "__main__":
    main()
