"""Sysctls: the live values, the files that set them at boot, and what the kernel would refuse."""

from __future__ import annotations

import json
import os
import sys
import tarfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.facts.settings.sysctl import (
    KEYS,
    SysctlOrigin,
    SysctlSource,
    dotted_key,
    key_path,
    list_files,
    origins,
    parse_sysctl_file,
    read_sysctl,
    read_sysctl_sources,
)
from advisor.facts.settings.value import refusal
from advisor.facts.unknown import Unknowns
from advisor.host import Host, MemoryFiles, NoCommands
from tests.captured import captured_file
from tests.cases import read_cases
from tests.each import for_each
from tests.running import run_text

ROOT = Path(__file__).parents[2]
RMEM = "net.ipv4.tcp_rmem"
SYSTEMD = {"/usr/lib/systemd/systemd-sysctl": ""}


def host(
    files: dict[str, str], links: dict[str, str] | None = None, *, unreadable: dict[str, str] | None = None
) -> Host:
    contents = {path: text.encode("utf-8", "surrogateescape") for path, text in files.items()}
    return Host(MemoryFiles(contents, links or {}, frozenset(), unreadable or {}), NoCommands())


def origin(
    files: dict[str, str], key: str = "vm.swappiness", links: dict[str, str] | None = None
) -> SysctlOrigin | None:
    return origins(read_sysctl_sources(host(files, links), Unknowns()), [key]).get(key)


def winner(files: dict[str, str], key: str = "vm.swappiness", links: dict[str, str] | None = None) -> str | None:
    found = origin(files, key, links)
    return found.winner.value if found else None


# --- live values ----------------------------------------------------------------------------------------------------


def test_keys_are_sorted_and_named_once() -> None:
    assert list(KEYS) == sorted(set(KEYS))


def test_keys_hold_what_rules_and_profiles_name() -> None:
    assert {
        *("net.core.rmem_default", "net.core.wmem_max", "net.core.default_qdisc", "net.ipv4.tcp_rmem"),
        *("net.ipv4.udp_mem", "net.ipv4.conf.all.arp_announce", "net.ipv4.ip_local_reserved_ports"),
        *("vm.dirty_background_bytes", "vm.zone_reclaim_mode", "kernel.numa_balancing", "kernel.shmmax"),
        *("dev.raid.speed_limit_max", "fs.aio-max-nr"),
    } <= {*KEYS}


def test_live_values() -> None:
    files = {"/proc/sys/net/ipv4/tcp_rmem": "4096\t131072\t6291456\n", "/proc/sys/vm/swappiness": "60\n\0"}
    machine = host(files, unreadable={"/proc/sys/vm/dirty_ratio": "Permission denied"})
    unknown = Unknowns()
    values = read_sysctl(machine, unknown)
    assert values == {RMEM: "4096 131072 6291456", "vm.swappiness": "60"}
    assert [(one.fact, one.why) for one in unknown.listed()] == [("sysctl.vm.dirty_ratio", "Permission denied")]


def test_an_empty_value_is_a_value() -> None:
    key = "net.ipv4.ip_local_reserved_ports"
    assert read_sysctl(host({"/proc/sys/net/ipv4/ip_local_reserved_ports": "\n"}), Unknowns()) == {key: ""}


# --- the grammar ----------------------------------------------------------------------------------------------------


DATA = read_cases(__file__)


@pytest.mark.parametrize(("line", "key", "value"), DATA["a_line"])
def test_a_line(line: str, key: str, value: str) -> None:
    (source,) = parse_sysctl_file(f"\n{line}\n", "/etc/sysctl.d/x.conf")
    assert (source.key, source.value, source.line, source.path) == (key, value, 2, "/etc/sysctl.d/x.conf")


@pytest.mark.parametrize(
    "line", ["", "   ", "# vm.swappiness=1", "; vm.swappiness=1", "vm.swappiness 10", "=5", "-", "vm"]
)
def test_a_line_that_sets_nothing(line: str) -> None:
    assert parse_sysctl_file(line, "x") == ()


def test_dashes() -> None:
    forgiving, excluding = parse_sysctl_file("- vm.swappiness = 5\n-net.ipv4.conf.lo.rp_filter\n", "x")
    assert (forgiving.key, forgiving.value, forgiving.ignores_failure) == ("vm.swappiness", "5", True)
    assert forgiving.excludes is False
    assert (excluding.key, excluding.excludes) == ("net.ipv4.conf.lo.rp_filter", True)


def test_a_dot_in_a_link_name_finds_its_file() -> None:
    assert key_path(dotted_key("net/ipv4/conf/eth0.10/rp_filter")) == "/proc/sys/net/ipv4/conf/eth0.10/rp_filter"
    assert key_path(dotted_key("net.ipv4.conf.eth0/10.rp_filter")) == "/proc/sys/net/ipv4/conf/eth0.10/rp_filter"


@given(st.text(alphabet="ab./", min_size=1))
def test_both_spellings_of_a_key_are_one(written: str) -> None:
    assert dotted_key(dotted_key(written)) == dotted_key(written) or "/" in written


# --- the order of the files, and who wins ----------------------------------------------------------------------------


ETC, RUN, USR, LIB = ("/etc/sysctl.d/", "/run/sysctl.d/", "/usr/lib/sysctl.d/", "/lib/sysctl.d/")
ARP, ALL = "net.ipv4.conf.*.rp_filter", "net.ipv4.conf.all.rp_filter"
CONF = {"/etc/sysctl.conf": "vm.swappiness=7"}


def swap(**places: str) -> dict[str, str]:
    """Files that set vm.swappiness, by a directory and a name in it: ``etc_10_a="1"``."""
    directories = {"etc": ETC, "run": RUN, "usr": USR, "lib": LIB}
    split = {name.partition("_")[::2]: value for name, value in places.items()}
    return {f"{directories[where]}{name}.conf": f"vm.swappiness={value}" for (where, name), value in split.items()}


@for_each(
    "files links value",
    [
        *DATA["the_file_that_wins"],
        ({f"{ETC}{name}": "vm.swappiness=9" for name in ("README", "x.conf.bak", ".x.conf", "x.conf~")}, {}, None),
    ],
)
def test_the_file_that_wins(files: dict[str, str], links: dict[str, str], value: str | None) -> None:
    assert winner(files, links=links) == value


@for_each("text key value", DATA["the_line_that_wins"])
def test_the_line_that_wins(text: str, key: str, value: str | None) -> None:
    assert winner({f"{ETC}50-a.conf": text}, key) == value


def decided(files: dict[str, str] | str, key: str = "vm.swappiness") -> SysctlOrigin:
    found = origin({f"{ETC}50-a.conf": files} if isinstance(files, str) else files, key)
    assert found is not None
    return found


def test_what_was_decided_is_told() -> None:
    assert [one.value for one in decided(swap(etc_10a="1", usr_50b="2")).losers] == ["1"]
    later = decided({**CONF, **SYSTEMD, **swap(etc_50a="1")})
    assert later.later is not None
    assert (later.winner.value, later.later.value, later.later.at_boot) == ("1", "7", False)
    assert decided({**CONF, **SYSTEMD, **swap(etc_50a="7")}).later is None
    refused = decided(f'{RMEM} = 4096 87380 1000000\n{RMEM} = "4096 87380 8388608"\n', RMEM)
    assert refused.winner.value == "4096 87380 1000000"
    assert [one.rejected for one in refused.losers] == ["the quotes become part of the value"]
    # systemd-sysctl keeps one line per key and that one fails.
    assert refused.voided_by == refused.losers[0]
    both = decided(f"{RMEM} = \"1 2 3\"\n{RMEM} = '4 5 6'\n", RMEM)
    assert (both.winner.value, both.winner.rejected is None, both.voided_by) == ("'4 5 6'", False, None)
    out = decided("vm.swappiness=5\n-vm.swappiness\n")
    assert out.winner.value == "5"
    assert out.voided_by is not None
    assert out.voided_by.excludes


def test_a_merged_lib_is_read_once_and_what_cannot_be_read_is_noted() -> None:
    merged = read_sysctl_sources(host(swap(usr_50b="2"), {"/lib": "usr/lib"}), Unknowns())
    assert [source.path for source in merged] == [f"{USR}50b.conf"]
    unknown = Unknowns()
    read_sysctl_sources(host({}, unreadable={f"{ETC}10-a.conf": "Permission denied"}), unknown)
    assert [one.why for one in unknown.listed()] == ["Permission denied"]


# --- what the kernel refuses ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("key", "value", "is_refused"), [*DATA["refusal"], ("net.core.rmem_max", "9" * 5000, True)])
def test_refusal(key: str, value: str, *, is_refused: bool) -> None:
    assert (refusal(key, value) is not None) == is_refused


# --- the captured texts ---------------------------------------------------------------------------------------------


def _captured(name: str) -> str:
    with tarfile.open(captured_file("cmd/insights_cmds.tar.xz")) as tar:
        member = next(one for one in tar if one.name.endswith(f"sysctl/{name}"))
        opened = tar.extractfile(member)
        assert opened is not None
        return opened.read().decode()


@pytest.mark.captured
@pytest.mark.parametrize(("name", "expected"), DATA["captured_files"])
def test_captured_files(name: str, expected: dict[str, str]) -> None:
    assert {one.key: one.value for one in parse_sysctl_file(_captured(name), "x")} == expected


@pytest.mark.captured
def test_captured_initramfs_listing() -> None:
    """lsinitrd wraps the file in rules and titles; what is between them reads as the file would."""
    sources = parse_sysctl_file(_captured("SYSCTL_CONF_INITRAMFS_TEST.txt"), "x")
    values = {one.key: one.value for one in sources}
    assert {
        "fs.inotify.max_user_watches": "524288",
        "key2": "value2",
        "key2_alt": "value2_alt",
    }.items() <= values.items()
    assert "key4" not in values


@pytest.mark.captured
@pytest.mark.parametrize("release", ["centos-7.7", "ubuntu-18.04"])
def test_every_value_that_a_kernel_had_is_one_that_it_takes(release: str) -> None:
    with tarfile.open(captured_file("cmd/jc_cmds.tar.xz")) as tar:
        member = next(one for one in tar if one.name.endswith(f"{release}/sysctl-a.out"))
        opened = tar.extractfile(member)
        assert opened is not None
        sources = parse_sysctl_file(opened.read().decode(), "x")
    assert len(sources) > 500
    assert [one for one in sources if one.rejected] == []
    assert {"net.ipv4.tcp_rmem", "vm.swappiness", "fs.file-max"} <= {one.key for one in sources}


# --- the real readers and the real kernel as judges ----------------------------------------------------------------


def in_namespace(script: str) -> str:
    """Standard output of a script in network and mount namespaces of its own."""
    if os.geteuid() != 0:
        pytest.skip("needs root to make namespaces")
    done = run_text(["unshare", "--net", "--mount", "sh", "-c", script], timeout=60)
    if "unshare failed" in done.stderr:
        pytest.skip(done.stderr.strip())
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture
def directories(tmp_path: Path) -> str:
    """Shell lines that put made-up directories over the host's own, in the namespace only."""
    layout = {
        "etc": {"10-a.conf": "a=1", "50-empty.conf": "", "zz.conf": "a=2", "Zz.conf": "a=3", "x.conf.bak": "a=4"},
        "run": {"10-a.conf": "a=5", "99-x.conf": "a=6"},
        "usr": {"20-b.conf": "a=7", "40-null.conf": "a=8", "50-empty.conf": "a=9", "99-x.conf": "a=10"},
    }
    for directory, files in layout.items():
        (tmp_path / directory).mkdir()
        for name, text in files.items():
            (tmp_path / directory / name).write_text(f"{text}\n")
    (tmp_path / "etc/40-null.conf").symlink_to("/dev/null")
    for needed in ("/etc/sysctl.d", "/usr/lib/sysctl.d"):
        if not Path(needed).is_dir():
            pytest.skip(f"this host has no {needed}")
    return (
        f"set -e; mount -t tmpfs t /run; mkdir /run/sysctl.d; cp {tmp_path}/run/* /run/sysctl.d/\n"
        f"mount --bind {tmp_path}/etc /etc/sysctl.d; mount --bind {tmp_path}/usr /usr/lib/sysctl.d\n"
    )


OURS = f"""{sys.executable} -c '
import sys
sys.path.insert(0, "{ROOT}")
from advisor.facts.settings.sysctl import list_files
from advisor.host import live_host
print(*(path for path, _ in list_files(live_host())), sep="\\n")'
"""


def test_the_order_is_that_of_systemd_sysctl(directories: str) -> None:
    tool = next(
        (path for path in ("/usr/lib/systemd/systemd-sysctl", "/lib/systemd/systemd-sysctl") if Path(path).exists()),
        None,
    )
    if tool is None:
        pytest.skip("systemd-sysctl is not installed")
    ours = in_namespace(directories + OURS).split()
    theirs = in_namespace(f"{directories}{tool} --cat-config")
    assert ours[-1] == "/etc/sysctl.conf"
    # Later versions name a link to /dev/null as what it is.
    named = [line.removeprefix("# ").removesuffix(" is a mask.") for line in theirs.splitlines()]
    assert ours[:-1] == [name for name in named if name.startswith("/")]


def test_the_order_is_that_of_sysctl_system(directories: str) -> None:
    if not any(Path(path).exists() for path in ("/usr/sbin/sysctl", "/sbin/sysctl")):
        pytest.skip("sysctl is not installed")
    theirs = in_namespace(f"{directories}sysctl --system --dry-run 2>&1 || true")
    if "--dry-run" in theirs:
        pytest.skip("this sysctl has no --dry-run")
    applied = [line.split()[2] for line in theirs.splitlines() if line.startswith("* Applying")]
    ours = in_namespace(directories + OURS).split()
    assert applied in (ours, ours[:-1])


_KERNEL = """
import json, sys
answers = []
for value in json.load(sys.stdin):
    try:
        with open("/proc/sys/net/ipv4/conf/all/arp_ignore", "wb", buffering=0) as key:
            key.write(value.encode() + b"\\n")
        answers.append(True)
    except OSError:
        answers.append(False)
print(json.dumps(answers))
"""
_WORDS = DATA["_WORDS"]
_WORDS += ["2147483647", "2147483648", "-2147483648", "-2147483649", "9" * 25, "-", "0b1", "1.5", "\t1", "1\t", "", " "]
_WORDS += ["1\v2", "1\f", "0X1F", "00", "-0", "- 1", "1e3", "x", "1;", "١"]


def test_the_kernel_refuses_what_we_say_it_does(tmp_path: Path) -> None:
    """arp_ignore takes any int, so that it refuses exactly what it cannot read. In a network namespace of its own."""
    (tmp_path / "values").write_text(json.dumps(_WORDS))
    (tmp_path / "kernel.py").write_text(_KERNEL)
    accepted = json.loads(in_namespace(f"{sys.executable} {tmp_path}/kernel.py < {tmp_path}/values"))
    key = "net.ipv4.conf.all.arp_ignore"
    # Both readers strip a value before they write it.
    ours = [refusal(key, value.strip(" \t\r\n")) is None for value in _WORDS]
    assert dict(zip(_WORDS, ours, strict=True)) == dict(zip(_WORDS, accepted, strict=True))


def test_sources_are_records_of_what_stands_in_files() -> None:
    source = SysctlSource("vm.swappiness", "1", "/etc/sysctl.d/a.conf", 1)
    assert (source.at_boot, source.rejected) == (True, None)
    assert list_files(host(SYSTEMD)) == (("/etc/sysctl.conf", False),)
