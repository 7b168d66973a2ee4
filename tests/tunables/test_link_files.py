"""The systemd .link file that carries an MTU over a reboot: it matches one link, and hides nothing from it."""

from __future__ import annotations

from pathlib import Path

import pytest

from advisor.host import Missing
from advisor.tunables import FileEdit, Persisted, apply_edit, parse_tunable
from tests.trees import host_of, make_tree

PORT = {
    "/run/udev/data/n2": "E:ID_NET_LINK_FILE=/usr/lib/systemd/network/73-usb.link\nE:ID_PATH=pci-0000:3b:00.0\n",
    "/usr/lib/systemd/network/73-usb.link": (
        "[Match]\nPath=*\n[Link]\nNamePolicy=keep mac \\\n  onboard\n# c\nMTUBytes=1400\nMTUBytes = 1\nWakeOnLan=off\n"
        "[Other]\nB=1\n[Link]\nA=1\n"
    ),
    "/sys/class/net/eth1/ifindex": "2\n",
    "/sys/class/net/eth1/address": "02:00:00:00:00:01\n",
    "/sys/class/net/eth1/addr_assign_type": "0\n",
    "/sys/class/net/eth1/device/uevent": "",
}
DRIVER = {"/sys/class/net/eth1/device/driver": "../../../bus/pci/drivers/mlx5_core"}


def written(root: Path, link: str = "eth1") -> str | Missing:
    edit = parse_tunable(f"link:{link}:mtu").make_edit(host_of(root), "9000", profile="p")
    assert not isinstance(edit, Persisted)
    return apply_edit(None, edit).decode() if isinstance(edit, FileEdit) else edit


def test_a_port_is_matched_by_its_own_address_and_keeps_its_policies(tmp_path: Path) -> None:
    assert written(make_tree(tmp_path, PORT, DRIVER)) == (
        "[Match]\nMACAddress=02:00:00:00:00:01\nDriver=mlx5_core\n\n"
        "[Link]\nNamePolicy=keep mac onboard\nWakeOnLan=off\nA=1\nMTUBytes=9000\n"
    )


@pytest.mark.parametrize(
    ("changed", "match"),
    [
        # A bond member shows the bond's address.
        (
            {
                "/sys/class/net/eth1/addr_assign_type": "3",
                "/sys/class/net/eth1/bonding_slave/perm_hwaddr": "02:00:00:00:00:09",
            },
            "MACAddress=02:00:00:00:00:09",
        ),
        ({"/sys/class/net/eth1/addr_assign_type": "1"}, "Path=pci-0000:3b:00.0"),
    ],
)
def test_an_address_that_will_not_last_is_no_match(changed: dict[str, str], match: str, tmp_path: Path) -> None:
    text = written(make_tree(tmp_path, {**PORT, **changed}))
    assert isinstance(text, str)
    assert text.splitlines()[1] == match


def test_a_virtual_link_is_matched_by_its_name(tmp_path: Path) -> None:
    root = make_tree(
        tmp_path, {"/run/udev/data/n9": "", "/sys/class/net/bond0/mtu": "1500", "/sys/class/net/a*/mtu": ""}
    )
    assert written(root, "bond0") == "[Match]\nOriginalName=bond0\n\n[Link]\nMTUBytes=9000\n"
    assert isinstance(written(root, "a*"), Missing)


def test_without_udev_nothing_would_read_it(tmp_path: Path) -> None:
    found = written(make_tree(tmp_path, {"/sys/class/net/eth1/mtu": "1500"}))
    assert isinstance(found, Missing)
    assert "udev" in found.why


def test_a_port_with_nothing_to_be_known_by(tmp_path: Path) -> None:
    found = written(make_tree(tmp_path, {**PORT, "/sys/class/net/eth1/addr_assign_type": "1", "/run/udev/data/n2": ""}))
    assert isinstance(found, Missing)
    assert not found.is_absent
