"""Who owns a link: distinguished from the managers' own state and files, on trees of hosts of each sort."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.facts.network.link_files import parse_interfaces, read_stanzas
from advisor.facts.network.link_managers import LinkOwner, NetworkMtu, read_link_owner, read_network_mtu
from advisor.host import Host, MemoryFiles, Missing, NoCommands
from advisor.snapshot.archive import capture_host, open_snapshot
from tests.cases import read_cases
from tests.each import for_each
from tests.managers import NETWORK, PROFILE, UUID, configured, links, managed, profile, running
from tests.trees import host_of, make_tree


def host(files: dict[str, str], marks: dict[str, str] | None = None) -> Host:
    contents = {path: text.encode("utf-8", "surrogateescape") for path, text in (links() | files).items()}
    return Host(MemoryFiles(contents, marks or {}), NoCommands(), is_root=True)


class Row(NamedTuple):
    """``owner`` is the manager alone, or manager, file and name; ``refused`` a part of the reason that none is known;
    ``shared`` are the links that the same file is for."""

    what: str
    files: dict[str, str]
    owner: str | tuple[str, str, str] = ""
    running: tuple[str, ...] = ()
    refused: str = ""
    shared: tuple[str, ...] = ()


VENDOR = "/usr/lib/NetworkManager/system-connections/a.nmconnection"
IN_RUN = "/run/NetworkManager/system-connections"
FOUND = {f"{IN_RUN}/eth1.nmconnection": profile() + "[.nmmeta]\nnm-generated=true\nexternal=true\n", **managed()}
COPIES = [f"{PROFILE}~", PROFILE.replace("storage", ".storage"), f"{PROFILE}/x", PROFILE.replace("tion", "tion.bak")]
IDLE = managed(uuid=None)
BY_UUID = {PROFILE: profile(), PROFILE.replace("storage", "other"): profile(uuid="2f"), **managed()}
IFCFG = "/etc/sysconfig/network-scripts/ifcfg-Profile_1"
NETPLAN = "/etc/netplan/01-lan.yaml"
GENERATED = "/run/systemd/network/10-netplan-lan0.network"
LAN0 = "network:\n  version: 2\n  ethernets:\n    lan0:\n      match: {macaddress: '02:00:00:00:00:03'}\n"
MADE = f"{IN_RUN}/netplan-lan0.nmconnection"
KEYFILE = profile().replace(f"uuid={UUID}\n", "")
BY_ADDRESS = KEYFILE.replace("interface-name=eth1\n", "") + "[ethernet]\nmac-address=02:00:00:00:00:03\n"
BOMB = "a0: &a0 [x]\n" + "".join(f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]\n" for n in range(1, 60))
INTERFACES = "/etc/network/interfaces"
IFUP = {"/usr/sbin/ifup": ""}
UP = {"/run/network/ifstate": "lo=lo\neth1=home\n"}
MAPPED = "mapping eth*\n  script /x\niface home inet dhcp\niface work inet dhcp\n"
SCRIPTS = "/etc/sysconfig/network-scripts/ifcfg-"
WICKED = "/etc/sysconfig/network/ifcfg-eth1"
WICKED_FILES = {WICKED: "STARTMODE='auto'\n", "/etc/sysconfig/network/ifcfg.template": "MTU=''\n"}
NETPLAN_OWN, KEPT = ("netplan", NETPLAN, "ethernets/lan0"), ("NetworkManager", PROFILE, UUID)
LOOP = {INTERFACES: "source interfaces.d/*\n", **IFUP} | dict.fromkeys(
    (f"/etc/network/interfaces.d/{number}" for number in range(60)), "source ../interfaces.d/*\n"
)


def ifup(text: str, name: str = "eth1") -> Row:
    return Row(text, {INTERFACES: text, **IFUP}, ("ifupdown", INTERFACES, name))


def script(name: str, text: str, running: tuple[str, ...] = ()) -> Row:
    """A file of the network scripts among others that are none."""
    others = {SCRIPTS + "lo": "DEVICE=lo", SCRIPTS + "eth1.bak": "DEVICE=eth1", SCRIPTS + "x~": text}
    own = "udev" if running == ("sshd",) else ("network-scripts", SCRIPTS + name, "eth1")
    return Row(text, {SCRIPTS + name: text, **others}, own, running)


ROWS = (
    Row("what nobody claims", {}, ("udev", "/usr/lib/systemd/network/99-default.link", "eth1")),
    Row("the active profile by its UUID", BY_UUID, KEPT),
    Row("the active profile of a manager that runs", BY_UUID, KEPT, ("NetworkManager",)),
    Row("what a stopped manager left behind", {PROFILE: profile(), **managed()}, "udev", ("sshd",)),
    *(
        Row("an unmanaged device", {PROFILE: profile(), "/run/NetworkManager/devices/3": state}, "udev")
        for state in ("[device]\nmanaged=false\n", "[device]\n", "")
    ),
    Row("what NetworkManager only found", FOUND, "udev"),
    *(
        Row(
            "a profile in no file that lasts",
            {f"{IN_RUN}/a.nmconnection": profile(), **managed(uuid=uuid)},
            refused="nmcli connection modify",
        )
        for uuid in (UUID, "a-profile-in-memory")
    ),
    Row("a vendor's profile where it lies", {VENDOR: profile(), **managed()}, ("NetworkManager", VENDOR, UUID)),
    Row("one of the same UUID in /etc", {VENDOR: profile(), PROFILE: profile(), **managed()}, KEPT),
    Row("copies and folders", dict.fromkeys(COPIES, profile()) | managed(), refused="in no file"),
    Row("none is active, one is made for it", {PROFILE: profile(), **IDLE}, KEPT),
    Row("one that does not connect by itself", {PROFILE: profile("autoconnect=false\n"), **IDLE}, "udev"),
    Row("two are made for it", {PROFILE: profile(), PROFILE + "2": profile(uuid="2f"), **IDLE}, "udev"),
    Row("one is made for another", {PROFILE: profile(link="eth0"), **IDLE}, "udev"),
    Row("an ifcfg file", {IFCFG: f"UUID={UUID}\nNAME='a b'\n", **managed()}, ("NetworkManager", IFCFG, UUID)),
    Row("an ifcfg file by its device", {IFCFG: "DEVICE=eth1\n", **managed()}, "NetworkManager"),
    Row("one for two", {PROFILE: profile(), **managed(), **managed("eth0")}, "NetworkManager", shared=("eth0",)),
    Row("networkd", configured(NETWORK), ("systemd-networkd", NETWORK, "eth1")),
    Row("networkd leaves it", {"/run/systemd/netif/links/3": "ADMIN_STATE=unmanaged\n"}, "udev"),
    Row("networkd does not run", configured(NETWORK), "udev", ("sshd",)),
    Row("one for two", configured(NETWORK) | configured(NETWORK, "eth0"), "systemd-networkd", shared=("eth0",)),
    Row("netplan's own id", {NETPLAN: LAN0, **configured(GENERATED)}, NETPLAN_OWN),
    Row("netplan for NetworkManager", {NETPLAN: LAN0, MADE: KEYFILE, **managed()}, NETPLAN_OWN),
    Row("by its address", {NETPLAN: LAN0, MADE: BY_ADDRESS, **managed()}, "netplan"),
    Row("a bomb of aliases is not unfolded", {NETPLAN: BOMB + LAN0, **configured(GENERATED)}, "netplan"),
    ifup("auto eth1\niface eth1 inet dhcp\n"),
    ifup("allow-hotplug eth0 eth1\niface eth1 inet dhcp\n"),
    ifup("auto /eth*\niface eth1 inet dhcp\n"),
    ifup("auto /eth*=lan\niface lan inet dhcp\n", "lan"),
    ifup("auto mac/02:*:03\niface eth1 inet dhcp\n"),
    ifup("iface eth1 inet static\n  mtu 1500\n"),
    ifup("  auto \\\n  eth1\n\tiface eth1 \\\n inet dhcp\n"),
    ifup("auto eth1\nmapping wlan*\n  script x\niface eth1 inet dhcp\n"),
    *(
        Row("ifupdown leaves it alone", {INTERFACES: text, **IFUP}, "udev")
        for text in (
            *("iface eth1 inet manual\n", "auto eth0\niface eth0 inet dhcp\n", "auto eth1\n", ""),
            *("#auto eth1\n#iface eth1 inet dhcp\n", "# \\\nauto eth10\niface eth10 inet dhcp\n"),
        )
    ),
    Row("files of a program that is gone", {INTERFACES: "auto eth1\niface eth1 inet dhcp\n"}, "udev"),
    Row("the state of now decides the stanza", {INTERFACES: MAPPED, **UP}, ("ifupdown", INTERFACES, "home")),
    Row("a mapping that nothing resolves", {INTERFACES: MAPPED, **IFUP}, refused="mapping"),
    Row(
        "one for two",
        {INTERFACES: "iface lan inet dhcp\n", "/run/network/ifstate": "eth0=lan\neth1=lan\n"},
        "ifupdown",
        shared=("eth0",),
    ),
    Row("files that include each other end somewhere", LOOP, refused="includes more than"),
    *(
        Row("what only a shell expands", {INTERFACES: f"source {pattern}\n", **IFUP}, refused="only a shell")
        for pattern in ("$HOME/x", "`id`", "~/x", "'a b'", "{a,b}")
    ),
    *(
        script(name, text, running)
        for name, text in (
            *(("eth1", "DEVICE=eth1\n"), ("lan", "export DEVICE='eth1' # c\n")),
            *(("lan", 'HWADDR="02:00:00:00:00:03"\n'), ("eth1", "ONBOOT=yes\n")),
        )
        for running in ((), ("network",), ("sshd",))
    ),
    Row("two files", {SCRIPTS + "a": "DEVICE=eth1", SCRIPTS + "b": "DEVICE=eth1"}, refused="both describe it"),
    Row("wicked", WICKED_FILES, ("wicked", WICKED, "eth1")),
    Row("wicked does not run", WICKED_FILES, "udev", ("NetworkManager",)),
)


@for_each("row", ROWS, lambda row: row.what)
def test_who_owns_a_link(row: Row) -> None:
    found = read_link_owner(host(row.files, running(*row.running) if row.running else None), "eth1")
    if row.refused:
        assert isinstance(found, Missing), found
        assert row.refused in found.why
        return
    assert isinstance(found, LinkOwner), found
    own = found.manager if isinstance(row.owner, str) else (found.manager, found.file, found.name)
    assert (own, found.shared_with) == (row.owner, row.shared)
    assert found.evidence


def test_without_udev_nobody_would_set_anything() -> None:
    bare = Host(MemoryFiles({"/sys/class/net/eth1/ifindex": b"3"}), NoCommands())
    assert isinstance(read_link_owner(bare, "eth1"), Missing)


def test_a_profile_that_only_root_may_read(tmp_path: Path) -> None:
    root = make_tree(tmp_path, links() | managed() | {PROFILE: profile()})
    contents = {f"/{path.relative_to(root)}": path.read_bytes() for path in root.rglob("*") if path.is_file()}
    del contents[PROFILE]
    closed = Host(MemoryFiles(contents, unreadable={PROFILE: "Permission denied"}), NoCommands())
    found = read_link_owner(closed, "eth1")
    assert found == Missing(
        "unreadable", f"NetworkManager has it in hand, and {PROFILE} cannot be read: Permission denied"
    )


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


DATA = read_cases(__file__)


@pytest.mark.parametrize("text", [*DATA["netplan_files_that_tell_nothing"], "{" * 5000, "\udcff"])
def test_netplan_files_that_tell_nothing(text: str) -> None:
    found = read_link_owner(host({NETPLAN: text, **configured(GENERATED)}), "eth1")
    assert isinstance(found, LinkOwner if "&a" in text else Missing)


def test_included_files() -> None:
    files = DATA["included_files"]
    placed = read_stanzas(host(files))
    assert not isinstance(placed, Missing)
    found = [(one.path.rpartition("/")[2], one.stanza.interface) for one in placed if one.stanza.interface]
    assert found == [("a", "a"), ("b.cfg", "b"), ("d_-9", "d")]


@given(st.text(alphabet="iface autoh0-\t\n\\ #mux=/*"))
def test_stanzas_lie_where_they_say(text: str) -> None:
    for stanza in parse_interfaces(text):
        for line in (stanza.head, *stanza.options):
            piece = text[line.start : line.end]
            assert re.sub(r"\\(\n|$)", lambda found: " " * len(found[0]), piece).removesuffix("\n") == line.text
            assert len(line.text) in (len(piece), len(piece) - 1)


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
