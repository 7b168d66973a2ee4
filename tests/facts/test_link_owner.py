"""Who owns a link: distinguished from the managers' own state and files, on trees of hosts of each sort."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.facts.ifupdown import read_stanzas
from advisor.facts.interfaces_text import parse_interfaces
from advisor.facts.link_owner import LinkOwner, read_link_owner
from advisor.facts.networkd import NetworkMtu, read_network_mtu
from advisor.host import Host, MemoryFiles, Missing, NoCommands
from advisor.snapshot.archive import capture_host, open_snapshot
from tests.managers import NETWORK, PROFILE, UUID, configured, links, managed, profile, running
from tests.trees import host_of, make_tree


def host(files: dict[str, str], marks: dict[str, str] | None = None) -> Host:
    contents = {path: text.encode("utf-8", "surrogateescape") for path, text in (links() | files).items()}
    return Host(MemoryFiles(contents, marks or {}), NoCommands(), is_root=True)


def owner(
    files: dict[str, str], marks: dict[str, str] | None = None, link: str = "eth1"
) -> tuple[str, str | None, str]:
    found = read_link_owner(host(files, marks), link)
    assert isinstance(found, LinkOwner), found
    assert not found.shared_with
    assert found.evidence
    return found.manager, found.file, found.name


def refusal(files: dict[str, str], marks: dict[str, str] | None = None, link: str = "eth1") -> str:
    found = read_link_owner(host(files, marks), link)
    assert isinstance(found, Missing), found
    return found.why


# --- udev -----------------------------------------------------------------------------------------------------------


def test_what_nobody_claims_is_udevs() -> None:
    assert owner({}) == ("udev", "/usr/lib/systemd/network/99-default.link", "eth1")


def test_without_udev_nobody_would_set_anything() -> None:
    bare = Host(MemoryFiles({"/sys/class/net/eth1/ifindex": b"3"}), NoCommands())
    assert isinstance(read_link_owner(bare, "eth1"), Missing)


# --- NetworkManager -------------------------------------------------------------------------------------------------


def test_the_active_profile_is_found_by_its_uuid() -> None:
    other = PROFILE.replace("storage", "other")
    files = {PROFILE: profile(), other: profile(uuid="2f"), **managed()}
    assert owner(files) == ("NetworkManager", PROFILE, UUID)
    assert owner(files, running("NetworkManager")) == ("NetworkManager", PROFILE, UUID)


def test_what_a_stopped_manager_left_behind_says_nothing() -> None:
    assert owner({PROFILE: profile(), **managed()}, running("sshd"))[0] == "udev"


@pytest.mark.parametrize("state", ["[device]\nmanaged=false\n", "[device]\n", ""])
def test_an_unmanaged_device_is_left_to_others(state: str) -> None:
    assert owner({PROFILE: profile(), "/run/NetworkManager/devices/3": state})[0] == "udev"


def test_what_networkmanager_only_found_is_not_its_own() -> None:
    found = "/run/NetworkManager/system-connections/eth1.nmconnection"
    files = {found: profile() + "[.nmmeta]\nnm-generated=true\nexternal=true\n", **managed()}
    assert owner(files)[0] == "udev"


@pytest.mark.parametrize("uuid", [UUID, "a-profile-in-memory"])
def test_a_profile_in_no_file_that_lasts(uuid: str) -> None:
    files = {"/run/NetworkManager/system-connections/a.nmconnection": profile(), **managed(uuid=uuid)}
    assert "nmcli connection modify" in refusal(files)


def test_a_vendors_profile_is_named_where_it_lies() -> None:
    vendor = "/usr/lib/NetworkManager/system-connections/a.nmconnection"
    assert owner({vendor: profile(), **managed()}) == ("NetworkManager", vendor, UUID)
    # One with the same UUID in /etc stands in for it.
    assert owner({vendor: profile(), PROFILE: profile(), **managed()})[1] == PROFILE


def test_copies_and_folders_among_the_profiles_are_none() -> None:
    kept = [f"{PROFILE}~", PROFILE.replace("storage", ".storage"), f"{PROFILE}/x", PROFILE.replace("tion", "tion.bak")]
    assert "in no file" in refusal({path: profile() for path in kept} | managed())


def test_a_link_without_an_active_profile_has_the_only_one_that_is_made_for_it() -> None:
    idle = managed(uuid=None)
    assert owner({PROFILE: profile(), **idle}) == ("NetworkManager", PROFILE, UUID)
    assert owner({PROFILE: profile("autoconnect=false\n"), **idle})[0] == "udev"
    assert owner({PROFILE: profile(), PROFILE + "2": profile(uuid="2f"), **idle})[0] == "udev"
    assert owner({PROFILE: profile(link="eth0"), **idle})[0] == "udev"


def test_ifcfg_files_are_profiles_too() -> None:
    path = "/etc/sysconfig/network-scripts/ifcfg-Profile_1"
    assert owner({path: f"UUID={UUID}\nNAME='a b'\n", **managed()}) == ("NetworkManager", path, UUID)
    assert owner({path: "DEVICE=eth1\n", **managed()})[:2] == ("NetworkManager", path)


def test_a_profile_that_only_root_may_read(tmp_path: Path) -> None:
    root = make_tree(tmp_path, links() | managed() | {PROFILE: profile()})
    contents = {f"/{path.relative_to(root)}": path.read_bytes() for path in root.rglob("*") if path.is_file()}
    del contents[PROFILE]
    closed = Host(MemoryFiles(contents, unreadable={PROFILE: "Permission denied"}), NoCommands())
    found = read_link_owner(closed, "eth1")
    assert found == Missing(
        "unreadable", f"NetworkManager has it in hand, and {PROFILE} cannot be read: Permission denied"
    )


def test_one_profile_for_several_links() -> None:
    found = read_link_owner(host({PROFILE: profile(), **managed(), **managed("eth0")}), "eth1")
    assert isinstance(found, LinkOwner)
    assert found.shared_with == ("eth0",)


# --- systemd-networkd -----------------------------------------------------------------------------------------------


def test_networkd_names_the_file_that_it_uses() -> None:
    assert owner(configured(NETWORK)) == ("systemd-networkd", NETWORK, "eth1")
    assert owner({"/run/systemd/netif/links/3": "ADMIN_STATE=unmanaged\n"})[0] == "udev"
    assert owner(configured(NETWORK), running("sshd"))[0] == "udev"


def test_one_network_file_for_several_links() -> None:
    found = read_link_owner(host(configured(NETWORK) | configured(NETWORK, "eth0")), "eth1")
    assert isinstance(found, LinkOwner)
    assert found.shared_with == ("eth0",)


def test_what_a_network_file_and_its_drop_ins_say() -> None:
    below, above = f"{NETWORK}.d/10-a.conf", "/run/systemd/network/10-eth1.network.d/20-b.conf"
    hidden = "/usr/lib/systemd/network/10-eth1.network.d/10-a.conf"
    files = {
        NETWORK: "[Match]\nName=eth1\n[Link]\n# MTUBytes=1\n[DHCPv4]\nUseMTU=yes\n",
        below: "[Link]\nMTUBytes = \\\n 1400\n",
        above: "[Link]\nMTUBytes=1300\n[DHCP]\nUseMTU=no\n",
        hidden: "[DHCPv4]\nUseMTU=no\n",
        f"{NETWORK}.d/README": "[Link]\nMTUBytes=1\n",
    }
    assert read_network_mtu(host(files), NETWORK) == NetworkMtu((below, above), from_dhcp=False)
    del files[above]
    assert read_network_mtu(host(files), NETWORK) == NetworkMtu((below,), from_dhcp=True)
    assert isinstance(read_network_mtu(host({}), NETWORK), Missing)


# --- netplan --------------------------------------------------------------------------------------------------------

NETPLAN = "/etc/netplan/01-lan.yaml"
GENERATED = "/run/systemd/network/10-netplan-lan0.network"
LAN0 = "network:\n  version: 2\n  ethernets:\n    lan0:\n      match: {macaddress: '02:00:00:00:00:03'}\n"


def test_what_netplan_made_belongs_to_netplan_under_its_own_id() -> None:
    assert owner({NETPLAN: LAN0, **configured(GENERATED)}) == ("netplan", NETPLAN, "ethernets/lan0")


def test_netplan_for_networkmanager() -> None:
    made = "/run/NetworkManager/system-connections/netplan-lan0.nmconnection"
    keyfile = profile().replace(f"uuid={UUID}\n", "")
    assert owner({NETPLAN: LAN0, made: keyfile, **managed()}) == ("netplan", NETPLAN, "ethernets/lan0")
    by_address = keyfile.replace("interface-name=eth1\n", "") + "[ethernet]\nmac-address=02:00:00:00:00:03\n"
    assert owner({NETPLAN: LAN0, made: by_address, **managed()})[0] == "netplan"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "network: {version: 2}",
        "network: []",
        "[1]",
        "a: [",
        "network: {ethernets: {lan0: {}}, bonds: {lan0: {}}}",
        "network: {ethernets: &a {lan0: {<<: *a}}}",
        "{" * 5000,
        "\udcff",
    ],
)
def test_netplan_files_that_tell_nothing(text: str) -> None:
    found = read_link_owner(host({NETPLAN: text, **configured(GENERATED)}), "eth1")
    assert isinstance(found, LinkOwner if "&a" in text else Missing)


def test_a_bomb_of_aliases_is_not_unfolded() -> None:
    bomb = "a0: &a0 [x]\n" + "".join(f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]\n" for n in range(1, 60))
    assert owner({NETPLAN: bomb + LAN0, **configured(GENERATED)})[0] == "netplan"


# --- ifupdown -------------------------------------------------------------------------------------------------------

INTERFACES = "/etc/network/interfaces"
IFUP = {"/usr/sbin/ifup": ""}


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("auto eth1\niface eth1 inet dhcp\n", "eth1"),
        ("allow-hotplug eth0 eth1\niface eth1 inet dhcp\n", "eth1"),
        ("auto /eth*\niface eth1 inet dhcp\n", "eth1"),
        ("auto /eth*=lan\niface lan inet dhcp\n", "lan"),
        ("auto mac/02:*:03\niface eth1 inet dhcp\n", "eth1"),
        ("iface eth1 inet static\n  mtu 1500\n", "eth1"),
        ("  auto \\\n  eth1\n\tiface eth1 \\\n inet dhcp\n", "eth1"),
        ("auto eth1\nmapping wlan*\n  script x\niface eth1 inet dhcp\n", "eth1"),
    ],
)
def test_ifupdown_brings_it_up(text: str, name: str) -> None:
    assert owner({INTERFACES: text, **IFUP}) == ("ifupdown", INTERFACES, name)


@pytest.mark.parametrize(
    "text",
    [
        "iface eth1 inet manual\n",
        "auto eth0\niface eth0 inet dhcp\n",
        "auto eth1\n",
        "#auto eth1\n#iface eth1 inet dhcp\n",
        "# \\\nauto eth10\niface eth10 inet dhcp\n",
        "",
    ],
)
def test_ifupdown_leaves_it_alone(text: str) -> None:
    assert owner({INTERFACES: text, **IFUP})[0] == "udev"


def test_files_of_a_program_that_is_gone_say_nothing() -> None:
    assert owner({INTERFACES: "auto eth1\niface eth1 inet dhcp\n"})[0] == "udev"


def test_what_is_up_now_tells_the_stanza() -> None:
    state = {"/run/network/ifstate": "lo=lo\neth1=home\n"}
    text = "mapping eth*\n  script /x\niface home inet dhcp\niface work inet dhcp\n"
    assert owner({INTERFACES: text, **state}) == ("ifupdown", INTERFACES, "home")
    assert "mapping" in refusal({INTERFACES: text, **IFUP})


def test_one_stanza_for_several_links() -> None:
    state = {"/run/network/ifstate": "eth0=lan\neth1=lan\n"}
    found = read_link_owner(host({INTERFACES: "iface lan inet dhcp\n", **state}), "eth1")
    assert isinstance(found, LinkOwner)
    assert found.shared_with == ("eth0",)


def test_included_files() -> None:
    files = {
        INTERFACES: "source interfaces.d/*\nsource-directory /etc/network/more\nsource /none\n",
        "/etc/network/interfaces.d/b.cfg": "iface b inet dhcp\nsource ../interfaces\n",
        "/etc/network/interfaces.d/a": "iface a inet dhcp\n",
        "/etc/network/interfaces.d/.hidden": "iface h inet dhcp\n",
        "/etc/network/interfaces.d/folder/x": "iface x inet dhcp\n",
        "/etc/network/more/c.cfg": "iface c inet dhcp\n",
        "/etc/network/more/d_-9": "iface d inet dhcp\n",
    }
    placed = read_stanzas(host(files))
    assert not isinstance(placed, Missing)
    found = [(one.path.rpartition("/")[2], one.stanza.interface) for one in placed if one.stanza.interface]
    assert found == [("a", "a"), ("b.cfg", "b"), ("d_-9", "d")]


def test_files_that_include_each_other_end_somewhere() -> None:
    files = {INTERFACES: "source interfaces.d/*\n", **IFUP}
    chain = [f"/etc/network/interfaces.d/{number}" for number in range(60)]
    files |= dict.fromkeys(chain, "source ../interfaces.d/*\n")
    assert "includes more than" in refusal(files)


@pytest.mark.parametrize("pattern", ["$HOME/x", "`id`", "~/x", "'a b'", "{a,b}"])
def test_an_include_that_only_a_shell_expands(pattern: str) -> None:
    assert "only a shell" in refusal({INTERFACES: f"source {pattern}\n", **IFUP})


@given(st.text(alphabet="iface autoh0-\t\n\\ #mux=/*"))
def test_stanzas_lie_where_they_say(text: str) -> None:
    for stanza in parse_interfaces(text):
        for line in (stanza.head, *stanza.options):
            piece = text[line.start : line.end]
            assert re.sub(r"\\(\n|$)", lambda found: " " * len(found[0]), piece).removesuffix("\n") == line.text
            assert len(line.text) in (len(piece), len(piece) - 1)


# --- ifcfg ----------------------------------------------------------------------------------------------------------

SCRIPTS = "/etc/sysconfig/network-scripts/ifcfg-"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("eth1", "DEVICE=eth1\n"),
        ("lan", "export DEVICE='eth1' # c\n"),
        ("lan", 'HWADDR="02:00:00:00:00:03"\n'),
        ("eth1", "ONBOOT=yes\n"),
    ],
)
def test_the_network_scripts(name: str, text: str) -> None:
    files = {
        SCRIPTS + name: text,
        SCRIPTS + "lo": "DEVICE=lo",
        SCRIPTS + "eth1.bak": "DEVICE=eth1",
        SCRIPTS + "x~": text,
    }
    assert owner(files) == ("network-scripts", SCRIPTS + name, "eth1")
    assert owner(files, running("network")) == ("network-scripts", SCRIPTS + name, "eth1")
    assert owner(files, running("sshd"))[0] == "udev"


def test_two_files_for_one_device() -> None:
    assert "both describe it" in refusal({SCRIPTS + "a": "DEVICE=eth1", SCRIPTS + "b": "DEVICE=eth1"})


def test_wicked() -> None:
    path = "/etc/sysconfig/network/ifcfg-eth1"
    files = {path: "STARTMODE='auto'\n", "/etc/sysconfig/network/ifcfg.template": "MTU=''\n"}
    assert owner(files) == ("wicked", path, "eth1")
    assert owner(files, running("NetworkManager"))[0] == "udev"


# --- all --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["a'b", "-x", "a*", "$(id)", "#x", "[x]", 'a"b', "a\\b", "lan0;id"])
def test_hostile_names_of_links(name: str) -> None:
    files = {f"/sys/class/net/{name}/ifindex": "9", INTERFACES: "auto /eth*\n", "/run/network/ifstate": "lo=lo\n"}
    found = read_link_owner(host(files), name)
    assert isinstance(found, LinkOwner)
    assert found.manager == "udev"


@pytest.mark.parametrize(
    "files",
    [
        {},
        {PROFILE: profile(), **managed()},
        {NETPLAN: LAN0, **configured(GENERATED)},
        {NETWORK: "[Match]\n", **configured(NETWORK)},
        {
            INTERFACES: "source interfaces.d/*\n",
            "/etc/network/interfaces.d/a": "auto eth1\niface eth1 inet dhcp\n",
            **IFUP,
        },
        {SCRIPTS + "eth1": "DEVICE=eth1\n"},
    ],
)
def test_a_snapshot_tells_the_same(files: dict[str, str], tmp_path: Path) -> None:
    marks = running("NetworkManager", "systemd-networkd", "network")
    here = host_of(make_tree(tmp_path / "root", links() | files, marks))
    data = capture_host(here, lambda recording: read_link_owner(recording, "eth1"))
    (tmp_path / "x.tar.gz").write_bytes(data)
    assert read_link_owner(open_snapshot(tmp_path / "x.tar.gz"), "eth1") == read_link_owner(here, "eth1")
