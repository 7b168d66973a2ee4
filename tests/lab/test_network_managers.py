"""A link's MTU, kept where the link's own network manager keeps it.

Judged by each manager's own parser, by what it does with its links afterwards, and by a start of the host.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from tests.cases import cases

from .guest import Machine
from .road import out

CASES = cases(__file__)

pytestmark = pytest.mark.thorough

# A link for each manager; NetworkManager, netplan and ifupdown are installed on the lab host and idle.
FILES = CASES["FILES"]
LINKS = ("keyfile0", "planned0", "planned1", "planned2", "static0", "dhcp0", "script0")
START = CASES["START"]
END = CASES["END"]
FOLDERS = "/etc/NetworkManager /etc/netplan /etc/network /etc/sysconfig /etc/systemd/network /etc/udev"


def state(guest: Machine) -> list[str]:
    """Every file of every manager: its name, mode and content."""
    return out(guest, f"find {FOLDERS} -type f -exec stat -c '%n %a %u' {{}} + -exec cksum {{}} + | sort").splitlines()


def mtus(guest: Machine) -> dict[str, int]:
    return {link["ifname"]: link["mtu"] for link in json.loads(out(guest, "ip -j link"))}


def apply(guest: Machine, *links: str) -> None:
    words = ["apply", "jumbo-frames", "--set", f"links={','.join(links)}", "--confirm-within", "0", "--yes"]
    guest.run(["advisor", *words], timeout=180).check()


@pytest.fixture
def managed(guest: Machine) -> Iterator[Machine]:
    """The lab host with a link for each manager."""
    out(guest, "rm -rf /var/lib/advisor; mkdir -p /etc/netplan /etc/sysconfig/network-scripts")
    for path, text in FILES.items():
        guest.put(path, text, 0o600)
    try:
        guest.run(START, timeout=120).check()
        yield guest
    finally:
        guest.run(END, timeout=120)


def test_each_manager_reads_what_was_written_and_acts_on_it(managed: Machine) -> None:
    before = state(managed)
    apply(managed, *LINKS)
    assert {name: mtu for name, mtu in mtus(managed).items() if name in LINKS} == dict.fromkeys(LINKS, 9000)
    changed = {line.split()[-1] for line in {*before} ^ {*state(managed)} if not line.startswith("/")}
    assert changed == {*FILES, "/etc/netplan/90-advisor.yaml"}
    for profile in ("lab", "netplan-lan1"):
        assert out(managed, f"nmcli -g 802-3-ethernet.mtu connection show {profile}") == "9000\n"
    assert out(managed, "netplan get ethernets.lan0.mtu; netplan get bridges.planned2.mtu") == "9000\n9000\n"
    assert "mtu: 9000" in out(managed, "ifquery static0").splitlines()
    assert 'ip link set dev "$IFACE" mtu 9000' in managed.run("ifup --no-act -v dhcp0 2>&1", timeout=60).stdout
    assert out(managed, '. /etc/sysconfig/network-scripts/ifcfg-script0; echo "$MTU $ONBOOT"') == "9000 yes\n"
    # Each sets its links up again: the MTU is its own now.
    own = [name for name in LINKS if name not in ("dhcp0", "script0")]
    out(managed, f"for name in {' '.join(own)}; do ip link set $name mtu 1500; done")
    again = (
        "nmcli --wait 20 connection up lab; nmcli --wait 20 connection up netplan-lan1; ifdown static0; ifup static0"
    )
    out(managed, f"{again}; networkctl reload; networkctl reconfigure planned0 planned2")
    out(
        managed,
        "for try in $(seq 50); do ip link | grep -q ' planned[02]: .*mtu 1500' || exit 0; sleep 0.2; done; exit 1",
    )
    assert {name: mtu for name, mtu in mtus(managed).items() if name in own} == dict.fromkeys(own, 9000)
    managed.run(["advisor", "rollback"], timeout=180).check()
    assert state(managed) == before
    assert out(managed, "nmcli -g 802-3-ethernet.mtu connection show lab") == "1500\n"
    assert {name: mtu for name, mtu in mtus(managed).items() if name in LINKS} == dict.fromkeys(LINKS, 1500)


def test_systemd_has_it_at_the_next_start_by_either_of_its_files(guest: Machine) -> None:
    """A .link file for eth0; a drop-in for eth1, whose .network file would set another one after udev."""
    site = "/etc/systemd/network/10-eth1.network.d/20-site.conf"
    guest.put(site, "[Link]\nMTUBytes=1500\n")
    try:
        out(guest, "rm -rf /var/lib/advisor; networkctl reload; udevadm settle")
        before = state(guest)
        apply(guest, "eth0", "eth1")
        new = {line.split()[-1] for line in {*state(guest)} - {*before} if not line.startswith("/")}
        ours = {"/etc/systemd/network/10-advisor-eth0.link", f"{site.rpartition('/')[0]}/50-advisor-mtu.conf"}
        assert new == ours
        guest.reboot()
        after = mtus(guest)
        assert (after["eth0"], after["eth1"], after["eth2"]) == (9000, 9000, 1500)
        assert out(guest, "networkctl --json=short status eth1 | grep -o '\"MTU\":[0-9]*'") == '"MTU":9000\n'
        guest.run(["advisor", "rollback"], timeout=180).check()
        assert state(guest) == before
    finally:
        out(guest, f"rm -rf {site.rpartition('/')[0]} /var/lib/advisor; networkctl reload")
