"""Edits of configuration files, rules and products' files: the one setting, and not a byte of anything else."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st

from advisor.host import Missing
from advisor.host.config_text import multipath_layout
from advisor.host.probes import reduce
from advisor.tunables import FileEdit, apply_edit, mentions_key
from tests.cases import cases

SWAPPINESS = FileEdit("/f", "sysctl", "vm.swappiness", "10")
VLAN = FileEdit("/f", "sysctl", "net.ipv4.conf.eth0/10.mtu", "9000")
HIGHWATER = FileEdit("/f", "llttab-flow", "highwater", "2000")
MTU = FileEdit(
    "/f", "section", "Link/", "MTUBytes=9000", b"[Match]\nOriginalName=eth1\n\n[Link]\nMACAddressPolicy=none\n"
)
NUMA = FileEdit("/f", "section", "Service/", "NUMAPolicy=bind NUMAMask=0 CPUAffinity=numa")
DISK = 'ACTION=="add|change", ENV{ID_SERIAL}=="A+1.b"'
RULE = FileEdit("/f", "udev-rule", DISK, 'ATTR{queue/read_ahead_kb}="4096"', b"# ours\n")
SCHEDULER = FileEdit("/f", "udev-rule", DISK, 'ATTR{queue/scheduler}="none"')
THP = FileEdit("/f", "tmpfiles", "/sys/kernel/mm/transparent_hugepage/enabled", "madvise")
TIMER = FileEdit("/f", "llttab-timer", "peerinact", "3200")
ARP = FileEdit("/f", "llttab-directive", "set-arp", "0")
LLT_MTU = FileEdit("/f", "llttab-mtu", "a", "1472")
BEEGFS = FileEdit("/f", "conf", "tuneNumWorkers", "32")
ISCSI = FileEdit("/f", "conf", "node.conn[0].timeo.noop_out_interval", "5")
CPF = FileEdit("/f", "cpf", "config/globals", "0,0,512,0,0,0")
SELECTOR = FileEdit("/f", "multipath", "defaults/path_selector", "service-time 0")
CHECKER = FileEdit("/f", "multipath", "devices/device/path_checker", "tur")
CPUS = FileEdit("/f", "unit-list", "Service/CPUAffinity", "0-3,8")
EDITS = (SWAPPINESS, VLAN, HIGHWATER, MTU, NUMA, RULE, SCHEDULER, THP, TIMER, ARP, BEEGFS, ISCSI, CPF, SELECTOR, CPUS)

# How each is read back: the form of its probe, which has its own tests against awk.
FORMS = {
    ARP: "directive:set-arp",
    BEEGFS: "conf:tuneNumWorkers",
    ISCSI: "conf:node.conn[0].timeo.noop_out_interval",
    CPF: "cpf:config/globals",
    SELECTOR: "multipath:defaults/path_selector",
}


def lines(content: bytes) -> list[bytes]:
    """As systemd reads them: CR and NUL end a line too."""
    return re.split(rb"\r\n|[\n\r\0]", content)


def setting(line: bytes, edit: FileEdit) -> tuple[str, bytes] | None:
    """The setting and its value that a line gives, if it is one that the edit is for: sysctl.d(5), llttab."""
    bare = line.strip(b" \t")
    if edit.form == "llttab-flow":
        word, _, rest = bare.replace(b"\t", b" ").partition(b" ")
        name, colon, value = rest.partition(b":")
        found = colon and word == b"set-flow" and name.strip() == edit.key.encode()
        return (edit.key, value.partition(b"#")[0].strip(b" ")) if found else None
    name, equals, value = bare.removeprefix(b"-").partition(b"=")
    first = re.search(rb"[./]", name)
    if first and first[0] == b"/":
        name = name.translate(bytes.maketrans(b"./", b"/."))
    return (edit.key, value.strip(b" \t")) if equals and name.strip(b" \t") == edit.key.encode() else None


@pytest.mark.parametrize(
    ("edit", "before", "after"), [(edit, *texts) for edit, listed in cases(__file__).items() for texts in listed]
)
def test_only_its_own_line(edit: str, before: str | None, after: str) -> None:
    it, wanted = globals()[edit], after.encode()
    assert apply_edit(None if before is None else before.encode(), it) == wanted
    assert apply_edit(wanted, it) == wanted


WORDS = "vm.swappiness vm/swappiness net.ipv4.conf.eth0/10.mtu net/ipv4/conf/eth0.10/mtu - # ; set-flow highwater : ="
MORE = "10 [Link] [Service] [ ] MTUBytes NUMAMask CPUAffinity \\"
BLANKS = [b" ", b"\t", b"\n", b"\r\n", b"\r", b"\0", b"\xc3\x85", b"\xff"]
PIECES = st.sampled_from([*WORDS.encode().split(), *MORE.encode().split(), *BLANKS])
CONTENTS = st.binary(max_size=60) | st.lists(PIECES | st.binary(max_size=3), max_size=30).map(b"".join)
LINES = st.sampled_from(
    [
        *(f'{DISK}, ATTR{{queue/scheduler}}="x"', f'{DISK}, ATTR{{queue/read_ahead_kb}}="1"', 'KERNEL=="a", RUN+="b"'),
        *(
            "w /sys/kernel/mm/transparent_hugepage/enabled - - - - never",
            "d /run/x",
            "set-timer peerinact:1",
            "set-arp 1",
        ),
        *("set-flow highwater:2000", "# c", "", "tuneNumWorkers = 1", "tuneNumWorkers =", "other = 1", "globals=1"),
        *("node.conn[0].timeo.noop_out_interval = 9", "[config]", "[Service]", "[z]", "CPUAffinity=1", "CPUAffinity="),
        *(
            "defaults {",
            "devices {",
            "device {",
            "}",
            "path_selector x",
            '  path_selector "x y" # c',
            "path_checker tur",
        ),
        *("node.startup = manual", "Nice=5"),
    ]
)
ENDS = st.sampled_from(["\n", "\n", "\n", "\r\n"])


@st.composite
def files(draw: st.DrawFn) -> bytes:
    """Files of lines that mean something to one of the edits, and of a few that are noise."""
    lines = draw(st.lists(LINES | st.text('ab =#!{}"[]\t\\é', max_size=8), max_size=10))
    end = draw(ENDS)
    text = end.join(lines) + draw(st.sampled_from(["", end]))
    return text.encode("latin-1" if draw(st.booleans()) else "utf-8")


OFTEN_FILTERED = settings(suppress_health_check=[HealthCheck.filter_too_much])
"""Many a file of random lines has no layout of multipath."""


def is_understood(content: bytes, edit: FileEdit) -> bool:
    if edit.form != "multipath":
        return True
    return not isinstance(multipath_layout(content.decode("latin-1").split("\n")), Missing)


@given(files() | CONTENTS, st.sampled_from((*EDITS, CHECKER)))
def test_twice_is_once_and_what_was_written_is_found(content: bytes, edit: FileEdit) -> None:
    after = apply_edit(content, edit)
    assert apply_edit(after, edit) == after
    assert mentions_key(after, edit) or edit is CHECKER or not is_understood(content, edit)


@OFTEN_FILTERED
@given(files(), st.sampled_from(tuple(FORMS)))
@example(b'defaults {\npath_selector x\n}\ndefaults {\npath_selector "y"\n}', SELECTOR)
def test_what_was_written_is_read_back(content: bytes, edit: FileEdit) -> None:
    assume(is_understood(content, edit))
    after = apply_edit(content, edit).decode("latin-1").rstrip(" \t\r\n\0")
    assert reduce(after, FORMS[edit]) == edit.value


OWN: dict[FileEdit, Callable[[bytes], bool]] = {
    RULE: lambda line: line.startswith(f'{DISK}, ATTR{{queue/read_ahead_kb}}="'.encode()),
    SCHEDULER: lambda line: line.startswith(f'{DISK}, ATTR{{queue/scheduler}}="'.encode()),
    THP: lambda line: line.startswith(f"w {THP.key} ".encode()),
    TIMER: lambda line: bool(re.match(rb"[ \t]*set-timer[ \t]+peerinact[ \t]*:", line)),
    ARP: lambda line: bool(re.match(rb"[ \t]*set-arp[ \t]+[^ \t#]", line)),
    BEEGFS: lambda line: line.partition(b"=")[0].strip() == b"tuneNumWorkers" and b"=" in line,
    ISCSI: lambda line: line.partition(b"=")[0].strip() == b"node.conn[0].timeo.noop_out_interval",
}


@given(files(), st.sampled_from(tuple(OWN)))
def test_every_other_line_is_kept(content: bytes, edit: FileEdit) -> None:
    before, after = (re.split(rb"\r?\n", text) for text in (content, apply_edit(content, edit)))
    foreign = [line for line in before if not OWN[edit](line)]
    kept = [line for line in after if not OWN[edit](line)]
    # The last line has no end: nothing stands for it where a line of advisor's was added after it.
    assert [line for line in kept if line] == [line for line in foreign if line]
    assert sum(map(OWN[edit], after)) == 1


@OFTEN_FILTERED
@given(files())
def test_a_multipath_file_changes_in_one_line(content: bytes) -> None:
    assume(is_understood(content, SELECTOR))
    before = content.decode("latin-1").split("\n")
    after = apply_edit(content, SELECTOR).decode("latin-1").split("\n")
    for number, line in enumerate(after):
        if "service-time 0" in line:
            rest = after[:number] + after[number + 1 :]
            changed = before[:number] + before[number + 1 :]
            is_added = rest == before or [*rest[:-2], ""] == before or "\n".join(rest).startswith("\n".join(before))
            assert rest == changed or is_added
            return
    raise AssertionError("it is nowhere")


@given(CONTENTS, st.sampled_from((SWAPPINESS, VLAN, HIGHWATER)))
@example(b"vm.swappiness=1\rvm.swappiness=2\0vm/swappiness=3", SWAPPINESS)
def test_one_line_of_the_key_and_every_other_kept(content: bytes, edit: FileEdit) -> None:
    after = apply_edit(content, edit)
    foreign = [line for line in lines(content) if not setting(line, edit)]
    kept = [line for line in lines(after) if not setting(line, edit)]
    # The last line has no end: nothing stands for it where a line of advisor's was added after it.
    assert [line for line in kept if line] == [line for line in foreign if line]
    assert [found[1] for line in lines(after) if (found := setting(line, edit))] == [edit.value.encode()]
    assert mentions_key(content, edit) == (len(foreign) < len(lines(content)))


@pytest.mark.parametrize("edit", EDITS)
def test_a_long_line_of_blanks_takes_no_time(edit: FileEdit) -> None:
    blanks = b" " * 100_000
    for beginning in (b"", b"w " + edit.key.encode(), edit.key.encode(), b"set-timer", b"defaults {\n path_selector"):
        apply_edit(beginning + blanks + b"x\n" + blanks, edit)


@pytest.mark.parametrize("before", [b"", b"# c\n; c\n\nvm.dirty_ratio=20", b"vm.swappiness = 1\n-vm/swappiness=2\n"])
def test_procps_reads_what_was_written(before: bytes, tmp_path: Path) -> None:
    sysctl, setpriv = shutil.which("sysctl"), shutil.which("setpriv")
    if not sysctl or not setpriv or os.geteuid() != 0 or b"--dry-run" not in _output(sysctl, "--help"):
        pytest.skip("needs root, setpriv, and a sysctl that knows --dry-run")
    path = tmp_path / "f.conf"
    path.write_bytes(apply_edit(before, SWAPPINESS))
    # As nobody, so that it cannot write whatever it takes a dry run for; from standard input, which nobody may read.
    with path.open("rb") as file:
        words = [setpriv, "--reuid=65534", "--clear-groups", sysctl, "--dry-run", "-p", "-"]
        said = subprocess.run(words, stdin=file, capture_output=True, check=True).stdout
    assert [line for line in said.splitlines() if b"swappiness" in line] == [b"vm.swappiness = 10"]


def _output(*words: str) -> bytes:
    return subprocess.run(words, capture_output=True, check=False).stdout
