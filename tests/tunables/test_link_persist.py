"""Where an MTU is kept on hosts of each network manager, and that nothing else of the manager's file changes."""

from __future__ import annotations

import configparser
import re
import subprocess
from pathlib import Path

import pytest
import yaml
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from advisor.host import Missing, RunCommand
from advisor.tunables import FileEdit, Persisted, apply_edit, mentions_key, parse_tunable
from advisor.tunables.file_edits import edit_assignment, edit_interfaces, edit_netplan, is_one_value_a_line
from advisor.tunables.link_mtu import LinkMtu
from tests.cases import cases
from tests.managers import NETWORK, PROFILE, configured, links, managed, profile, running
from tests.trees import host_of, make_tree

CASES = cases(__file__)


def edit_of(found: FileEdit | Persisted | Missing) -> FileEdit | Missing:
    assert not isinstance(found, Persisted)
    return found


def plan(
    root: Path, files: dict[str, str], marks: dict[str, str] | None = None, link: str = "eth1"
) -> FileEdit | Missing:
    host = host_of(make_tree(root, links("eth0", "eth1", "bond0") | files, marks))
    return edit_of(parse_tunable(f"link:{link}:mtu").make_edit(host, "9000", profile="p"))


def written(
    root: Path, files: dict[str, str], marks: dict[str, str] | None = None, link: str = "eth1"
) -> tuple[str, str]:
    """The path that is edited and its text afterwards, which a second edit leaves as it is."""
    edit = plan(root, files, marks, link)
    assert isinstance(edit, FileEdit), edit
    before = files.get(edit.path)
    after = apply_edit(None if before is None else before.encode(), edit)
    assert apply_edit(after, edit) == after
    assert mentions_key(after, edit)
    return edit.path, after.decode()


def refusal(root: Path, files: dict[str, str], link: str = "eth1") -> str:
    found = plan(root, files, link=link)
    assert isinstance(found, Missing), found
    return found.why


# --- udev and systemd-networkd ----------------------------------------------------------------------------------------

OURS = "/etc/systemd/network/10-advisor-eth1.link"
DROP_IN = f"{NETWORK}.d/50-advisor-mtu.conf"


def test_a_link_of_nobody_gets_a_link_file(tmp_path: Path) -> None:
    path, text = written(tmp_path, {"/usr/lib/systemd/network/99-default.link": "[Link]\nNamePolicy=keep\n"})
    assert (path, text.splitlines()[-2:]) == (OURS, ["NamePolicy=keep", "MTUBytes=9000"])


@pytest.mark.parametrize(("present", "ours"), CASES["only the first link file counts"])
def test_only_the_first_link_file_counts(present: str, ours: str | None, tmp_path: Path) -> None:
    known = {"/run/udev/data/n3": f"E:ID_NET_LINK_FILE=/etc/systemd/network/{present}.link\n"}
    if ours is None:
        assert "comes before any other" in refusal(tmp_path, known)
    else:
        assert written(tmp_path, known)[0] == OURS.replace("10-", f"{ours}-")


@pytest.mark.parametrize("said", ["[Link]\nMTUBytes=1500\n", "[DHCPv4]\nUseMTU=yes\n", "[DHCP]\nUseMTU=1\n"])
@pytest.mark.parametrize("file", [NETWORK, NETWORK.replace("/etc/", "/run/"), NETWORK.replace("/etc/", "/usr/lib/")])
def test_a_network_file_that_sets_it_gets_a_drop_in(said: str, file: str, tmp_path: Path) -> None:
    edit = plan(tmp_path, {file: f"[Match]\nName=eth1\n{said}", **configured(file)})
    assert isinstance(edit, FileEdit)
    assert (edit.path, apply_edit(None, edit), edit.reload) == (DROP_IN, b"[Link]\nMTUBytes=9000\n", ())


def test_a_drop_in_that_comes_later(tmp_path: Path) -> None:
    later = f"{NETWORK}.d/60-mtu.conf"
    files = {NETWORK: "[Link]\nMTUBytes=1400\n", later: "[Link]\n# ours\nMTUBytes = 1300\n", **configured(NETWORK)}
    assert written(tmp_path / "a", files) == (later, "[Link]\n# ours\nMTUBytes = 9000\n")
    vendors = later.replace("/etc/", "/usr/lib/")
    files[vendors] = files.pop(later)
    assert vendors in refusal(tmp_path / "b", files)


def test_settings_that_several_links_share(tmp_path: Path) -> None:
    why = refusal(tmp_path, {NETWORK: "[Link]\nMTUBytes=1\n", **configured(NETWORK), **configured(NETWORK, "eth0")})
    assert "eth0 alike" in why


# --- NetworkManager ---------------------------------------------------------------------------------------------------


def test_a_profile_is_edited_and_loaded(tmp_path: Path) -> None:
    text = profile("\n[ethernet]\nmtu=1500\nmac-address=02:00:00:00:00:03\n")
    assert written(tmp_path / "a", {PROFILE: text, **managed()}) == (PROFILE, text.replace("1500", "9000"))
    edit = plan(tmp_path / "b", {PROFILE: text, **managed()}, running("NetworkManager"))
    assert isinstance(edit, FileEdit)
    assert edit.reload == (RunCommand(("nmcli", "connection", "load", PROFILE)),)


@pytest.mark.parametrize(("kind", "sections", "section"), CASES["the section is that of the profiles type"])
def test_the_section_is_that_of_the_profiles_type(kind: str, sections: str, section: str, tmp_path: Path) -> None:
    text = profile(sections, kind=kind)
    _, after = written(tmp_path, {PROFILE: text, **managed()})
    before, reader = configparser.ConfigParser(delimiters="="), configparser.ConfigParser(delimiters="=")
    before.read_string(text)
    reader.read_string(after)
    assert reader[section].pop("mtu") == "9000"
    assert {name: dict(reader[name]) for name in reader if name != section or reader[section] or section in before} == {
        name: dict(before[name]) for name in before
    }


def test_a_vendors_profile_gets_a_copy_that_stands_in_for_it(tmp_path: Path) -> None:
    vendors = "/usr/lib/NetworkManager/system-connections/storage.nmconnection"
    edit = plan(tmp_path / "a", {vendors: profile(), **managed()})
    assert isinstance(edit, FileEdit)
    assert (edit.path, edit.mode, apply_edit(None, edit).decode()) == (
        PROFILE,
        0o600,
        profile() + "\n[ethernet]\nmtu=9000\n",
    )
    assert "another profile" in refusal(tmp_path / "b", {vendors: profile(), PROFILE: profile(uuid="2"), **managed()})


def test_a_profile_of_a_type_without_mtu(tmp_path: Path) -> None:
    assert "'loopback'" in refusal(tmp_path, {PROFILE: profile(kind="loopback"), **managed()})


def test_no_link_file_where_networkmanagers_own_cannot_be_written(tmp_path: Path) -> None:
    volatile = "/run/NetworkManager/system-connections/a.nmconnection"
    assert "nmcli connection modify" in refusal(tmp_path, {volatile: profile("[ethernet]\nmtu=1500\n"), **managed()})


# --- netplan ----------------------------------------------------------------------------------------------------------

LAN = "/etc/netplan/01-lan.yaml"
NETPLAN_OURS = "/etc/netplan/90-advisor.yaml"
GENERATED = "/run/systemd/network/10-netplan-lan0.network"
LAN0 = (
    "network:\n  version: 2\n  ethernets:\n    lan0:\n      match: {macaddress: '02:00:00:00:00:03'}\n      mtu: 1500\n"
)
V9 = "network:\n  version: 2\n  vlans:\n    v9:  # cluster\n      id: 9\n      link: lan0\n"
OURS_ALONE = "network:\n  version: 2\n  ethernets:\n    lan0:\n      mtu: 9000\n"


def test_what_netplan_finds_gets_its_mtu_in_a_file_of_its_own(tmp_path: Path) -> None:
    files = {LAN: LAN0, **configured(GENERATED)}
    assert written(tmp_path / "a", files) == (NETPLAN_OURS, OURS_ALONE)
    edit = plan(tmp_path / "b", files)
    assert isinstance(edit, FileEdit)
    assert (edit.mode, edit.reload) == (0o600, (RunCommand(("netplan", "generate")),))


def test_what_netplan_hands_networkmanager_is_loaded_too(tmp_path: Path) -> None:
    made = "/run/NetworkManager/system-connections/netplan-lan0.nmconnection"
    edit = plan(tmp_path, {LAN: LAN0, made: profile(), **managed()})
    assert isinstance(edit, FileEdit)
    assert (edit.path, edit.reload[1:]) == (NETPLAN_OURS, (RunCommand(("nmcli", "connection", "load", made)),))


def test_two_links_in_one_file(tmp_path: Path) -> None:
    there = OURS_ALONE.replace("lan0", "lan1").replace("9000", "8000")
    path, text = written(tmp_path, {LAN: LAN0, NETPLAN_OURS: there, **configured(GENERATED)})
    assert (path, text) == (NETPLAN_OURS, there + "    lan0:\n      mtu: 9000\n")


def test_a_later_file_has_the_last_word(tmp_path: Path) -> None:
    later = "/etc/netplan/99-site.yaml"
    text = "network:\n  ethernets:\n    lan0: {mtu: 1500, dhcp4: no} # by hand\n"
    files = {LAN: LAN0, later: text, **configured(GENERATED)}
    assert written(tmp_path / "a", files) == (later, text.replace("1500", "9000"))
    generated = later.replace("/etc/", "/run/")
    files[generated] = files.pop(later)
    assert generated in refusal(tmp_path / "b", files)
    # One that is silent on the MTU is in nobody's way.
    files[generated] = "network: {ethernets: {lan0: {dhcp4: true}}}\n"
    assert written(tmp_path / "c", files)[0] == NETPLAN_OURS


def test_what_netplan_makes_is_edited_where_it_is_defined(tmp_path: Path) -> None:
    """Our own file would go on defining it when the administrator has removed it, and netplan refuse them all."""
    made = GENERATED.replace("lan0", "v9")
    files = {LAN: LAN0, "/etc/netplan/02-vlan.yaml": V9, **configured(made)}
    assert written(tmp_path / "a", files) == ("/etc/netplan/02-vlan.yaml", V9 + "      mtu: 9000\n")
    files["/lib/netplan/03.yaml"] = "network: {vlans: {v9: {mtu: 1400}}}\n"
    assert "/lib/netplan/03.yaml" in refusal(tmp_path / "b", files)


def test_definitions_that_have_no_mtu(tmp_path: Path) -> None:
    files = {LAN: "network: {vrfs: {lan0: {table: 1}}}\n", **configured(GENERATED)}
    assert "vrfs have no MTU" in refusal(tmp_path, files)


def test_our_own_file_is_hidden_or_broken(tmp_path: Path) -> None:
    files = {LAN: LAN0, **configured(GENERATED)}
    hidden = {**files, "/run/netplan/90-advisor.yaml": "network: {}\n"}
    assert "hides" in refusal(tmp_path / "a", hidden)
    assert "not YAML" in refusal(tmp_path / "b", {**files, NETPLAN_OURS: "network: [\n"})
    shared = "network:\n  ethernets:\n    lan0: &a {mtu: 1400}\n    lan1: *a\n"
    assert "laid out" in refusal(tmp_path / "c", {**files, NETPLAN_OURS: shared})


@pytest.mark.parametrize("identity", ["yes", "1e3", "-x", 'a"b', "a'b", "a:b", "a#b", "~", "&x", "0x1f", "$(id)"])
def test_ids_that_yaml_would_take_for_something_else(identity: str, tmp_path: Path) -> None:
    text = "network:\n  ethernets:\n    " + "'" + identity.replace("'", "''") + "': {dhcp4: true}\n"
    made = f"/run/systemd/network/10-netplan-{identity}.network"
    _, after = written(tmp_path, {LAN: text, **configured(made)})
    assert yaml.safe_load(after) == {"network": {"version": 2, "ethernets": {identity: {"mtu": 9000}}}}


# --- ifupdown ---------------------------------------------------------------------------------------------------------

INTERFACES = "/etc/network/interfaces"
IFUP = {"/usr/sbin/ifup": ""}


def interfaces(text: str) -> str:
    return edit_interfaces(text, "eth1", "9000")


@pytest.mark.parametrize(("before", "after"), cases(__file__)["stanzas"])
def test_stanzas(before: str, after: str) -> None:
    assert interfaces(before) == after
    assert interfaces(after) == after


def test_the_stanza_may_be_in_an_included_file(tmp_path: Path) -> None:
    lan = "/etc/network/interfaces.d/lan"
    files = {
        INTERFACES: "auto eth1\nsource interfaces.d/*\n",
        lan: "iface eth1 inet static\n  address 10.0.0.1/24\n",
        **IFUP,
    }
    assert written(tmp_path / "a", files) == (lan, files[lan] + "  mtu 9000\n")
    files[INTERFACES] += "iface eth1 inet6 static\n  mtu 1500\n"
    assert written(tmp_path / "b", files)[0] == INTERFACES
    files[lan] += "  mtu 1400\n"
    assert "both give" in refusal(tmp_path / "c", files)


def test_a_stanza_of_another_name(tmp_path: Path) -> None:
    text = "auto /eth1=lan\niface lan inet dhcp\n  up ip link set eth1 mtu 1500\n"
    assert written(tmp_path, {INTERFACES: text, **IFUP}) == (INTERFACES, text.replace("1500", "9000"))


def test_an_inherited_mtu_is_changed_where_it_stands(tmp_path: Path) -> None:
    text = (
        "auto eth1\niface base inet static\n  mtu 1500\niface eth1 inet static inherits base\n  address 10.0.0.1/24\n"
    )
    assert written(tmp_path / "a", {INTERFACES: text, **IFUP}) == (INTERFACES, text.replace("1500", "9000"))
    others = text + "iface eth0 inet static inherits base\n"
    assert "so have others" in refusal(tmp_path / "b", {INTERFACES: others, **IFUP})
    silent = text.replace("  mtu 1500\n", "")
    assert written(tmp_path / "c", {INTERFACES: silent, **IFUP}) == (INTERFACES, silent + "  mtu 9000\n")


# --- ifcfg ------------------------------------------------------------------------------------------------------------

IFCFG = "/etc/sysconfig/network-scripts/ifcfg-eth1"


@pytest.mark.parametrize(("before", "after"), cases(__file__)["ifcfg files"])
def test_ifcfg_files(before: str, after: str, tmp_path: Path) -> None:
    assert written(tmp_path, {IFCFG: before}) == (IFCFG, after)


@pytest.mark.parametrize(
    "text", ["DEVICE=eth1\nX='a\nMTU=1\n'\n", "DEVICE=eth1\nMTU=1 ip link\\\n", 'DEVICE=eth1\nX="\n']
)
def test_values_over_several_lines_are_left_alone(text: str, tmp_path: Path) -> None:
    assert "over several lines" in refusal(tmp_path, {IFCFG: text})


def test_wicked_is_not_told_and_networkmanager_is(tmp_path: Path) -> None:
    wicked = "/etc/sysconfig/network/ifcfg-eth1"
    edit = plan(tmp_path / "a", {wicked: "STARTMODE='auto'\n"})
    assert isinstance(edit, FileEdit)
    assert (edit.path, edit.reload, apply_edit(b"STARTMODE='auto'\n", edit)) == (
        wicked,
        (),
        b"STARTMODE='auto'\nMTU='9000'\n",
    )
    edit = plan(tmp_path / "b", {IFCFG: "DEVICE=eth1\n", **managed()})
    assert isinstance(edit, FileEdit)
    assert (edit.path, edit.reload) == (IFCFG, (RunCommand(("nmcli", "connection", "load", IFCFG)),))


# --- notes ------------------------------------------------------------------------------------------------------------


def notes(root: Path, files: dict[str, str]) -> tuple[str, ...]:
    host = host_of(make_tree(root, links() | files))
    return LinkMtu("eth1").run_preflight(host, "1500", "9000").notes


# --- properties -------------------------------------------------------------------------------------------------------

BLANKS = st.sampled_from(["", " ", "\t", "    "])
WORDS = st.text(alphabet="ab'\"$ =\\;é", max_size=6)
COMMENTS = st.builds("{}#{}".format, BLANKS, WORDS)
VALUES = st.sampled_from(["1500", "'1500'", '"1500"', "", "a\\ b", "$X"])
ASSIGNMENTS = st.builds(
    "{}{}={}{}".format, BLANKS, st.sampled_from(["MTU", "X", "MTU_"]), VALUES, st.sampled_from(["", " # c'"])
)


@settings(deadline=None)
@given(st.lists(ASSIGNMENTS | COMMENTS, max_size=8))
def test_a_shell_reads_the_variable_and_nothing_else_changes(lines: list[str]) -> None:
    before = "\n".join(lines)
    assume(is_one_value_a_line(before))
    after = edit_assignment(before, "MTU", "9000")
    assert edit_assignment(after, "MTU", "9000") == after
    own = re.compile(r"[ \t]*MTU=")
    kept = [line for line in lines if not own.match(line)]
    assert [line for line in after.split("\n") if line and not own.match(line)] == [line for line in kept if line]
    said = subprocess.run(["sh", "-s"], input=f'{after}\nprintf %s "$MTU"', capture_output=True, text=True, check=True)
    assert said.stdout == "9000"


KEYS = st.sampled_from(["ethernets", "bonds", "lan0", "mtu", "network", "version", "dhcp4"])
SCALARS = st.sampled_from([1500, "1500", True, None, "a: b", "x\ny", "é"]) | st.lists(st.integers(), max_size=2)
TREES = st.recursive(SCALARS, lambda children: st.dictionaries(KEYS, children, max_size=3), max_leaves=10)
DOCUMENTS = st.fixed_dictionaries({"network": st.dictionaries(KEYS, TREES, max_size=3)})


def with_mtu(document: object, place: list[str]) -> object:
    """What the document is to mean afterwards."""
    if not place:
        return 9000
    tree = document if isinstance(document, dict) else {}
    return {**tree, place[0]: with_mtu(tree.get(place[0]), place[1:])}


@settings(deadline=None)
@given(DOCUMENTS, st.booleans(), st.sampled_from([2, 3, 4]), st.sampled_from(["", "# c\n", "---\n"]))
def test_yaml_means_the_same_but_for_the_mtu(document: object, flow: bool, indent: int, head: str) -> None:
    before = head + yaml.safe_dump(document, default_flow_style=flow, indent=indent, allow_unicode=True)
    after = edit_netplan(before, "ethernets/lan0", "9000")
    if after is None:
        return
    assert edit_netplan(after, "ethernets/lan0", "9000") == after
    wanted = with_mtu(document, ["network", "ethernets", "lan0", "mtu"])
    found = yaml.safe_load(after)
    # In the quotes that stood there it is text, which netplan takes for a number all the same.
    mtu = found["network"]["ethernets"]["lan0"].pop("mtu")
    assert isinstance(wanted, dict)
    wanted["network"]["ethernets"]["lan0"].pop("mtu")
    assert (str(mtu), found) == ("9000", wanted)
    head_length = same_length(before, after)
    tail_length = same_length(before[head_length:][::-1], after[head_length:][::-1])
    # One place changed: an old value went at the most.
    assert len(before) - head_length - tail_length <= 20


def same_length(one: str, other: str) -> int:
    """How many characters two texts begin with alike."""
    return next((n for n, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


@settings(deadline=None)
@given(st.text(alphabet="network: {}[]ethrslan0m&*1#'\"\n", max_size=80))
def test_any_text_as_netplan_file(text: str) -> None:
    after = edit_netplan(text, "ethernets/lan0", "9000")
    if after is not None:
        assert yaml.safe_load(after)["network"]["ethernets"]["lan0"]["mtu"] in (9000, "9000")


OPTIONS = st.sampled_from(
    [
        "mtu 1500",
        "mtu\t1400",
        "address 10.0.0.1/24",
        "up ip link set eth1 mtu 1500",
        "# mtu 1",
        "",
        "gateway \\\n 10.0.0.2",
    ]
)
HEADS = st.builds(
    "iface {} {} {}".format,
    st.sampled_from(["eth1", "eth10", "lo"]),
    st.sampled_from(["inet", "inet6"]),
    st.sampled_from(["static", "dhcp", "manual", "auto"]),
)
STANZAS = st.builds(
    lambda head, options, indent: "\n".join([head, *(indent + option for option in options)]),
    HEADS | st.sampled_from(["auto eth1", "source x"]),
    st.lists(OPTIONS, max_size=4),
    BLANKS,
)


@settings(deadline=None)
@given(st.lists(STANZAS, max_size=4), st.sampled_from(["", "\n"]))
def test_interfaces_keep_every_other_line(stanzas: list[str], end: str) -> None:
    before = "\n".join(stanzas) + end
    after = interfaces(before)
    assert interfaces(after) == after
    new = [] if "iface eth1 " in before else ["iface eth1 inet manual"]
    assert others(before) + new == others(after)
    assert re.search(r"mtu\s+9000", after)


def others(text: str) -> list[str]:
    """Lines that give no MTU, and those of other stanzas; the end of the last line is nobody's."""
    return [line for line in text.split("\n") if line and not re.search(r"\bmtu[ \t]+\d", line)]
