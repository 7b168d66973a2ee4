"""A value of a driver that NetworkManager sets again after udev is said to be overridden, with the place to change."""

from __future__ import annotations

import pytest

from advisor.host import Host, MemoryFiles, NoCommands
from advisor.host.steps import DriverGroup
from advisor.tunables.link_override import overriding_setting
from tests.cases import cases
from tests.managers import PROFILE, UUID, links, managed, profile

CASES = cases(__file__)


def reason(ethtool: str, group: DriverGroup, key: str, value: str, place: str = PROFILE) -> str | None:
    files = {**links(), place: f"{profile()}\n[ethtool]\n{ethtool}\n", **managed()}
    if place != PROFILE:
        files["/etc/netplan/1.yaml"] = "network: {version: 2, ethernets: {lan0: {}}}"
        files[place] = files[place].replace(f"uuid={UUID}\n", "")
    host = Host(MemoryFiles({path: text.encode() for path, text in files.items()}, {}), NoCommands(), is_root=True)
    return overriding_setting(host, "eth1", group, key, value)


@pytest.mark.parametrize(("setting", "group", "key", "value"), CASES["a setting of the profile wins and is named"])
def test_a_setting_of_the_profile_wins_and_is_named(setting: str, group: DriverGroup, key: str, value: str) -> None:
    said = reason(setting, group, key, value)
    assert said is not None
    assert f"NetworkManager sets {setting} ([ethtool] of {PROFILE})" in said
    same = "on" if setting.endswith("=true") else "off" if setting.endswith("=false") else setting.partition("=")[2]
    assert reason(setting, group, key, same) is None


@pytest.mark.parametrize("setting", ["", "ring-tx=256", "#ring-rx=256", "feature-rx=true"])
def test_what_the_profile_leaves_open_is_ours(setting: str) -> None:
    assert reason(setting, "rings", "rx", "4096") is None


def test_the_profile_that_netplan_makes_counts_as_well() -> None:
    made = "/run/NetworkManager/system-connections/netplan-lan0.nmconnection"
    assert made in (reason("ring-rx=256", "rings", "rx", "4096", place=made) or "")
