"""Edits of configuration files: the one setting, and not a byte of anything else."""

from __future__ import annotations

import configparser
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from advisor.tunables import FileEdit, apply_edit, mentions_key

SWAPPINESS = FileEdit("/f", "sysctl", "vm.swappiness", "10")
VLAN = FileEdit("/f", "sysctl", "net.ipv4.conf.eth0/10.mtu", "9000")
HIGHWATER = FileEdit("/f", "llttab-flow", "highwater", "2000")
MTU = FileEdit(
    "/f", "section", "Link/", "MTUBytes=9000", b"[Match]\nOriginalName=eth1\n\n[Link]\nMACAddressPolicy=none\n"
)
NUMA = FileEdit("/f", "section", "Service/", "NUMAPolicy=bind NUMAMask=0 CPUAffinity=numa")
EDITS = (SWAPPINESS, VLAN, HIGHWATER, MTU, NUMA)


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


def test_a_file_that_is_not_there_begins_with_its_header() -> None:
    assert (
        apply_edit(None, FileEdit("/f", "sysctl", "vm.swappiness", "10", b"# ours\n"))
        == b"# ours\nvm.swappiness = 10\n"
    )
    assert apply_edit(None, HIGHWATER) == b"set-flow highwater:2000\n"
    assert apply_edit(None, MTU) == MTU.fresh + b"MTUBytes=9000\n"
    assert apply_edit(None, NUMA) == b"[Service]\nNUMAPolicy=bind\nNUMAMask=0\nCPUAffinity=numa\n"


@pytest.mark.parametrize(
    ("edit", "before", "after"),
    [
        (SWAPPINESS, b"a = 1", b"a = 1\nvm.swappiness = 10\n"),
        (SWAPPINESS, b"a = 1\r\n", b"a = 1\r\nvm.swappiness = 10\r\n"),
        (SWAPPINESS, b"vm.swappiness=60\r\na=1\r\n", b"vm.swappiness=10\r\na=1\r\n"),
        (SWAPPINESS, b"vm.swappiness = 60", b"vm.swappiness = 10"),
        (SWAPPINESS, b"vm/swappiness = 60\n", b"vm/swappiness = 10\n"),
        (SWAPPINESS, b"\t- vm.swappiness\t=\t60 \n", b"\t- vm.swappiness\t=\t10 \n"),
        (SWAPPINESS, b"vm.swappiness = 1\na=1\nvm.swappiness = 2\nb=1\n", b"a=1\nvm.swappiness = 10\nb=1\n"),
        (SWAPPINESS, b"#vm.swappiness = 1\n", b"#vm.swappiness = 1\nvm.swappiness = 10\n"),
        (SWAPPINESS, b"vm.swappiness_x = 1\n", b"vm.swappiness_x = 1\nvm.swappiness = 10\n"),
        # NEL is a byte of an UTF-8 letter here, not the end of a line.
        (SWAPPINESS, "# Å".encode() + b"vm.swappiness=1\n", "# Å".encode() + b"vm.swappiness=1\nvm.swappiness = 10\n"),
        (VLAN, b"net/ipv4/conf/eth0.10/mtu=1\n", b"net/ipv4/conf/eth0.10/mtu=9000\n"),
        (VLAN, b"net.ipv4.conf.eth0.10.mtu=1\n", b"net.ipv4.conf.eth0.10.mtu=1\nnet.ipv4.conf.eth0/10.mtu = 9000\n"),
        (HIGHWATER, b"set-flow highwater:1000 # doubled\n", b"set-flow highwater:2000 # doubled\n"),
        (HIGHWATER, b"set-flow lowwater:800\nstart\n", b"set-flow lowwater:800\nstart\nset-flow highwater:2000\n"),
        (MTU, b"[Link]\nMTUBytes=1500\n\n[Other]\nMTUBytes=1\n", b"[Link]\nMTUBytes=9000\n\n[Other]\nMTUBytes=1\n"),
        (MTU, b"[Match]\nMTUBytes=1\n", b"[Match]\nMTUBytes=1\n\n[Link]\nMTUBytes=9000\n"),
        (MTU, b"[Link]\nA=1\n\n[Other]\n", b"[Link]\nA=1\nMTUBytes=9000\n\n[Other]\n"),
        (MTU, b"[Link]", b"[Link]\nMTUBytes=9000\n"),
        (
            MTU,
            b"[Link]\nMTUBytes=1\nA=1\n[Match]\nB=1\n[Link]\nMTUBytes=2\n",
            b"[Link]\nA=1\n[Match]\nB=1\n[Link]\nMTUBytes=9000\n",
        ),
        (MTU, b"[Link]\nMTUBytes=1\n[Match]\n[Link]\nA=1\n", b"[Link]\nMTUBytes=9000\n[Match]\n[Link]\nA=1\n"),
        (
            NUMA,
            b"[Service]\nCPUAffinity=0-3\nNUMAMask=\n",
            b"[Service]\nCPUAffinity=numa\nNUMAMask=0\nNUMAPolicy=bind\n",
        ),
    ],
)
def test_only_its_own_line(edit: FileEdit, before: bytes, after: bytes) -> None:
    assert apply_edit(before, edit) == after
    assert apply_edit(after, edit) == after


PIECES = st.sampled_from(
    [
        *(
            b"vm.swappiness",
            b"vm/swappiness",
            b"net.ipv4.conf.eth0/10.mtu",
            b"net/ipv4/conf/eth0.10/mtu",
            b"-",
            b"#",
            b";",
        ),
        *(
            b"set-flow",
            b"highwater",
            b":",
            b"=",
            b" ",
            b"\t",
            b"\n",
            b"\r\n",
            b"\r",
            b"\0",
            b"10",
            b"\xc3\x85",
            b"\xff",
        ),
        *(b"[Link]", b"[Service]", b"[", b"]", b"MTUBytes", b"NUMAMask", b"CPUAffinity", b"\\"),
    ]
)
CONTENTS = st.binary(max_size=60) | st.lists(PIECES | st.binary(max_size=3), max_size=30).map(b"".join)


@given(CONTENTS, st.sampled_from(EDITS))
def test_twice_is_once_and_what_was_written_is_found(content: bytes, edit: FileEdit) -> None:
    after = apply_edit(content, edit)
    assert apply_edit(after, edit) == after
    assert mentions_key(after, edit)


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


LINES = st.lists(st.sampled_from(["[Link]", "[Other]", "MTUBytes=1", " MTUBytes = 2", "A=1", "# MTUBytes=3", ""]))


@given(LINES)
def test_sections_as_another_parser_reads_them(content: list[str]) -> None:
    text = "[Match]\n" + "\n".join(content)
    after = apply_edit(text.encode(), MTU).decode()
    reader = configparser.ConfigParser(strict=False, interpolation=None, delimiters="=", comment_prefixes="#")
    # What it would take for the continuation of a value are settings to systemd.
    reader.read_string(re.sub(r"^[ \t]+", "", after, flags=re.MULTILINE))
    assert reader["Link"]["mtubytes"] == "9000"
    own = "[Match]"
    counted = []
    for line in after.splitlines():
        own = line if line.startswith("[") else own
        counted += [line] if own == "[Link]" and line.strip().startswith("MTUBytes") else []
    assert len(counted) == 1


def test_a_long_line_of_blanks_takes_no_time() -> None:
    blanks = b" " * 200_000
    assert apply_edit(b"vm.swappiness = 1" + blanks + b"x\n" + blanks, SWAPPINESS) == b"vm.swappiness = 10\n" + blanks
    assert b"highwater:2000" in apply_edit(b"set-flow" + blanks, HIGHWATER)


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
