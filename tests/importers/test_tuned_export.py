"""What TuneD's own net plugin and its operators make of an exported profile, on what ``ethtool`` prints."""

from __future__ import annotations

import configparser
from pathlib import Path
from typing import cast

import msgspec

from advisor.exporters import Bundle, Exported, collect_settings, export_form
from advisor.exporters.settings import ExportedSetting
from advisor.facts.writers import BootSettings, Write
from advisor.facts.writers.last_word import RANKS
from advisor.host import WriteFile
from advisor.host.probes import ReadFile
from advisor.importers.tuned.convert import import_tuned
from advisor.planning.records import Plan, Skipped
from advisor.tunables.edits import FileEdit, Persisted
from advisor.tunables.kind import Sense
from tests.cases import read_cases
from tests.importers.hosts import machine, tuned
from tests.importers.tuned_package import ask
from tests.trees import host_of, make_command, make_tree

# ethtool 6.1 on virtio_net of Linux 6.1; the offloads are those of a port whose driver has more of them.
DATA = read_cases(__file__)

PRINTED = DATA["PRINTED"]


def setting(identity: str, value: str, sense: Sense = "exactly") -> ExportedSetting:
    step = WriteFile("/proc/x", value)
    return ExportedSetting(
        identity, value, "W.", "", (), ReadFile("/proc/x"), (step,), Persisted("/etc/x"), sense=sense
    )


def bundle(
    *settings: ExportedSetting, before: dict[str, str] | None = None, virtual: frozenset[str] = frozenset()
) -> Bundle:
    skipped = tuple(Skipped(one, at, at, "", "in-place", "p") for one, at in (before or {}).items())
    plan = Plan(("p",), None, (), (), (), skipped, ())
    return export_form(Exported("p", plan, settings, (), (), "h", virtual), "tuned")


def test_what_sets_a_value_again_after_the_form_is_said_at_its_head() -> None:
    edit = FileEdit("/etc/sysctl.d/90-advisor-p.conf", "sysctl", "vm.swappiness", "1")
    one = msgspec.structs.replace(setting("sysctl:vm.swappiness", "1"), edit=edit)
    many = msgspec.structs.replace(setting("sysctl:vm.max_map_count", "9", "at-least"), edit=edit)
    plan = Plan(("p",), None, (), (), (), (), ())

    def head(form: str, writer: str, value: str) -> str:
        writes = [Write(f"sysctl:{key}", value, writer, RANKS[writer]) for key in ("vm.swappiness", "vm.max_map_count")]
        wanted = Exported("p", plan, (one, many), (), (), "h", boot=BootSettings({}, tuple(writes)))
        return "".join(text.decode() for text in export_form(wanted, form).files.values())

    said = "vm.swappiness = 1: TuneD sets it to 20"
    assert said in head("ansible", "TuneD", "20")
    assert "max_map_count = 9:" not in head("ansible", "TuneD", "20")
    assert said not in head("tuned", "TuneD", "20")
    assert "vm.swappiness = 1: cron sets it to 20" in head("tuned", "cron", "20")
    assert "vm.swappiness = 1:" not in head("ansible", "TuneD", "1")


def options(found: Bundle) -> dict[str, dict[str, str]]:
    (text,) = found.files.values()
    parser = configparser.ConfigParser(delimiters=("=",), comment_prefixes=("#",), interpolation=None)
    parser.optionxform = str  # type: ignore[assignment, method-assign]
    parser.read_string(text.decode())
    return {name: dict(parser[name]) for name in parser.sections() if name != "main"}


def commands_of_tuned(place: Path, found: Bundle) -> list[str]:
    """What TuneD's plugin gives ethtool for the link's section."""
    for option, text in PRINTED.items():
        (place / f"printed{option}").write_text(text)
    make_command(
        place / "bin",
        "ethtool",
        f'if [ -f "{place}/printed$1" ]; then cat "{place}/printed$1"; else echo "$@" >> {place}/asked; fi',
    )
    section = options(found)["net_eth0"]
    wanted = [(key, text, "eth0") for key, text in section.items() if key not in ("type", "devices", "dynamic", "mtu")]
    ask({"directories": [], "links": wanted}, commands=place / "bin")
    asked = place / "asked"
    return sorted(asked.read_text().splitlines()) if asked.exists() else []


def test_offloads_are_those_that_tuned_finds_in_what_ethtool_prints(tmp_path: Path) -> None:
    wanted = DATA["offloads_are_those_that_tuned_finds"]
    found = bundle(*(setting(f"link:eth0:feature.{name}", value) for name, value in wanted.items()))
    assert found.left_out == ()
    (asked,) = commands_of_tuned(tmp_path, found)
    words = asked.split()
    assert words[:2] == ["-K", "eth0"]
    assert dict(zip(words[2::2], words[3::2], strict=True)) == {
        **{"rx": "off", "gro": "off", "rxhash": "off", "lro": "off", "ntuple": "on", "rxvlan": "off", "gso": "on"},
        **{"txvlan": "off", "hw-tc-offload": "on", "rx-udp-gro-forwarding": "on", "tx-gso-partial": "off"},
    }


def test_an_offload_below_a_summary_is_left_out(tmp_path: Path) -> None:
    """TuneD finds the summary's line alone, whose word switches all of them; by its own name it sets none."""
    names = (
        *("tx-tcp-segmentation", "tx-tcp6-segmentation", "tx-tcp-mangleid-segmentation", "tx-scatter-gather"),
        *("tx-checksum-ip-generic", "tx-scatter-gather-fraglist"),
    )
    wanted = [setting(f"link:eth0:feature.{name}", "off") for name in names]
    found = bundle(*wanted, setting("link:eth0:feature.rx-gro", "off"))
    assert [one.tunable for one in found.left_out] == [one.tunable for one in wanted]
    assert all("others" in one.why for one in found.left_out)
    assert commands_of_tuned(tmp_path, found) == ["-K eth0 gro off"]
    asked = " ".join(f"{name} off" for name in names)
    answer = ask({"directories": [], "links": [("features", asked, "eth0")]}, commands=tmp_path / "bin")
    assert answer["links"] == [{}]


def test_rings_channels_and_pause_frames_reach_ethtool(tmp_path: Path) -> None:
    found = bundle(
        setting("link:eth0:ring.rx", "4096"),
        setting("link:eth0:ring.tx", "1024"),
        setting("link:eth0:ring.rx-jumbo", "512"),
        setting("link:eth0:channels.combined", "4"),
        setting("link:eth0:pause.autoneg", "off"),
        setting("link:eth0:pause.rx", "off"),
    )
    # TuneD looks for "rx Jumbo", as it reads RX before RX Jumbo.
    assert [one.tunable for one in found.left_out] == ["link:eth0:ring.rx-jumbo"]
    assert commands_of_tuned(tmp_path, found) == [
        "-A eth0 autoneg off rx off",
        "-G eth0 rx 4096 tx 1024",
        "-L eth0 combined 4",
    ]
    answer = ask({"directories": [], "links": [("ring", "rx-jumbo 512", "eth0")]}, commands=tmp_path / "bin")
    assert answer["links"] == [{}]


def test_coalescing_is_left_out_as_tuned_gives_up_on_what_ethtool_prints(tmp_path: Path) -> None:
    one, other = setting("link:eth0:coalesce.rx-usecs", "30"), setting("link:eth0:mtu", "9000")
    found = bundle(one, other)
    assert [left.tunable for left in found.left_out] == [one.tunable]
    assert commands_of_tuned(tmp_path, found) == []
    answer = ask({"directories": [], "links": [("coalesce", "rx-usecs 30", "eth0")]}, commands=tmp_path / "bin")
    assert answer["links"] == [None]


def test_channels_that_a_link_has_none_of_are_left_out() -> None:
    """TuneD takes the other kind in their place, and of a line without both numbers breaks off."""
    wanted = [setting("link:eth0:channels.rx", "4"), setting("link:eth0:channels.combined", "0")]
    found = bundle(*wanted, setting("link:eth1:channels.combined", "2"), before={"link:eth0:channels.combined": "0"})
    assert {one.tunable for one in found.left_out} == {one.tunable for one in wanted}
    assert options(found) == {"net_eth1": {"type": "net", "devices": "eth1", "dynamic": "0", "channels": "combined 2"}}


def test_a_virtual_link_is_left_out() -> None:
    found = bundle(setting("link:bond0:mtu", "9000"), setting("link:eth0:mtu", "9000"), virtual=frozenset({"bond0"}))
    assert [one.tunable for one in found.left_out] == ["link:bond0:mtu"]
    assert "net_eth0" in options(found)


def test_links_below_the_virtual_ones_are_told_from_ports(tmp_path: Path) -> None:
    links = {"bond0": "devices/virtual/net/bond0", "eth0": "devices/pci0000:00/0000:00:03.0/net/eth0"}
    files = {f"sys/{place}/mtu": "9000\n" for place in links.values()}
    make_tree(tmp_path, files, {f"sys/class/net/{name}": f"../../{place}" for name, place in links.items()})
    skipped = tuple(Skipped(f"link:{name}:mtu", "9000", "9000", "", "in-place", "p") for name in links)
    plan = Plan(("p",), None, (), (), (), skipped, ())
    found = collect_settings(host_of(tmp_path), plan, hostname=None, senses={"link:eth0:mtu": "at-least"})
    assert found.virtual_links == {"bond0"}
    assert {one.tunable: one.sense for one in found.settings} == {
        "link:bond0:mtu": "exactly",
        "link:eth0:mtu": "at-least",
    }


def test_at_least_is_said_where_tuned_can_compare() -> None:
    found = bundle(
        setting("sysctl:net.core.rmem_max", "8388608", "at-least"),
        setting("sysctl:net.core.somaxconn", "4096"),
        setting("sysctl:vm.swappiness", "10", "at-most"),
        setting("sysctl:net.ipv4.tcp_rmem", "4096 131072 8388608", "at-least"),
        setting("link:eth0:mtu", "9000", "at-least"),
        setting("link:eth0:ring.rx", "4096", "at-least"),
        setting("block:sda:read_ahead_kb", "4096", "at-least"),
    )
    sections = options(found)
    assert sections["sysctl"] == DATA["at_least_is_said_where_tuned_can"]
    assert sections["net_eth0"]["mtu"] == ">9000"
    assert sections["disk_sda"]["readahead"] == ">4096"
    (text,) = found.files.values()
    head = text.decode().partition("[main]")[0].replace("\n#", "")
    assert "net.ipv4.tcp_rmem" in head
    assert "link:eth0:ring.rx" in head
    assert "rmem_max" not in head
    pairs = [(">8388608", "212992"), (">8388608", "16777216"), ("<10", "60"), ("<10", "1")]
    answer = ask({"directories": [], "operators": pairs})
    assert answer["operators"] == ["8388608", None, "10", None]


def test_an_exported_profile_comes_back_by_our_own_import(tmp_path: Path) -> None:
    wanted = {
        "link:eth0:mtu": ("9000", "at-least"),
        "link:eth0:txqueuelen": ("2000", "exactly"),
        "block:sda:read_ahead_kb": ("4096", "at-least"),
        "sysctl:net.core.rmem_max": ("8388608", "at-least"),
    }
    found = bundle(*(setting(name, value, cast(Sense, sense)) for name, (value, sense) in wanted.items()))
    (text,) = found.files.values()
    imported = import_tuned("mine", machine({**tuned(mine=text.decode())}), "faithful")
    assert [one.kind for one in imported.differences] == []
    back = {one.tunable: (one.value, one.sense) for one in imported.settings if one.outcome == "tunable"}
    assert back == {name.replace("eth0", "{link}").replace("sda", "{disk}"): one for name, one in wanted.items()}


def test_what_a_profile_leaves_as_it_is_is_not_exported(tmp_path: Path) -> None:
    tree = make_tree(tmp_path / "root", {"proc/sys/net/ipv4/tcp_rmem": "4096 131072 6291456\n"})
    skipped = Skipped("sysctl:net.ipv4.tcp_rmem", "4096 131072 6291456", "4096 87380 851968", "", "kept", "p")
    plan = Plan(("p",), None, (), (), (), (skipped,), ())
    found = collect_settings(host_of(tree), plan, hostname=None, senses={"sysctl:net.ipv4.tcp_rmem": "keep"})
    assert (found.settings, found.left_out) == ((), ())


def test_disks_are_said_to_be_known_by_name() -> None:
    (text,) = bundle(setting("block:nvme0n1:scheduler", "none")).files.values()
    head = text.decode().partition("[main]")[0]
    assert "kernel's names" in head
    (text,) = bundle(setting("sysctl:net.core.somaxconn", "4096")).files.values()
    assert "kernel's names" not in text.decode()


def test_the_reason_of_each_of_several_values_in_a_line_is_kept() -> None:
    one = msgspec.structs.replace(setting("link:eth0:ring.tx", "512"), why="Second.")
    (text,) = bundle(setting("link:eth0:ring.rx", "512"), one).files.values()
    assert "# W.\n# Second.\nring=rx 512 tx 512\n" in text.decode()
