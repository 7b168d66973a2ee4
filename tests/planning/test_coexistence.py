"""Other tools that write what a plan or an active transaction sets are named, with the values and the way to resolve
together; who writes other things is not."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from advisor.host import Host, MemoryFiles, NoCommands, ReadFile
from advisor.planning.records import Change
from advisor.report.transaction import verify_text
from advisor.transaction.conflicts import OtherWriter, managed_by, writers_beside
from advisor.transaction.journal import Store
from advisor.transaction.status import Status, verify_transactions
from tests.cases import cases
from tests.planning.system import applied, host, planned, system

CASES = cases(__file__)

BUFFERS = "socket-buffers-8m"
OUR_FILE = "/etc/sysctl.d/90-advisor-socket-buffers-8m.conf"
RUNNING = {"/run/tuned/tuned.pid": "7\n", "/proc/7/comm": "tuned\n"}
SMALL = "[sysctl]\nnet.core.rmem_max=1048576\nnet.core.optmem_max=8388608\nvm.swappiness=10\n"


def tuned(text: str | None = SMALL, main: str = "reapply_sysctl=0\n") -> dict[str, str]:
    files = {"/etc/tuned/active_profile": "small\n", "/etc/tuned/tuned-main.conf": main, **RUNNING}
    return files if text is None else {**files, "/usr/lib/tuned/small/tuned.conf": text}


def verified(where: Path) -> Status:
    return verify_transactions(host(where), None, Store(str(where / "state")))


def words(notes: tuple[str, ...] | Status) -> str:
    return " / ".join(one.note for one in notes.others) if isinstance(notes, Status) else " / ".join(notes)


def test_what_tuned_sets_otherwise_is_told_with_its_value(tmp_path: Path) -> None:
    system(tmp_path, files=tuned())
    note = planned(tmp_path, BUFFERS).notes[0]
    assert note.startswith(
        "TuneD is active with the profile small, which sets sysctl:net.core.rmem_max = 1048576: it does so again "
    )
    assert "advisor profiles export socket-buffers-8m --format tuned" in note
    applied(tmp_path, BUFFERS)
    found = verified(tmp_path)
    assert [(one.who, one.otherwise) for one in found.others] == [
        ("TuneD (profile small)", {"sysctl:net.core.rmem_max": "1048576"})
    ]
    assert "sysctl:net.core.rmem_max = 1048576" in verify_text(found, width=80, color=False).replace("\n", " ")


def test_what_stands_in_sysctl_d_has_the_last_word_where_tuned_reads_it(tmp_path: Path) -> None:
    system(tmp_path, files=tuned(main="reapply_sysctl=1\n"))
    note = planned(tmp_path, BUFFERS).notes[0]
    assert "gives way to /etc/sysctl.d, which it reads after its own" in note
    applied(tmp_path, BUFFERS)
    assert verified(tmp_path).others[0].otherwise == {}
    # Without advisor's file it is TuneD's again.
    (tmp_path / "root" / OUR_FILE.lstrip("/")).unlink()
    assert verified(tmp_path).others[0].otherwise == {"sysctl:net.core.rmem_max": "1048576"}


@pytest.mark.parametrize("main", ["reapply_sysctl=0\n", "reapply_sysctl=1\n"])
def test_what_leaves_ours_or_sets_the_same_is_no_rival(tmp_path: Path, main: str) -> None:
    text = "[sysctl]\nnet.core.rmem_max=>1048576\nnet.core.wmem_max=>16777216\n"
    system(tmp_path, files=tuned(text, main))
    note = planned(tmp_path, BUFFERS, runtime_only="yes").notes[0]
    assert "which sets sysctl:net.core.wmem_max = 16777216: it does so again" in note
    same = tmp_path / "same"
    system(same, files=tuned("[sysctl]\nnet.core.rmem_max=8388608\nvm.swappiness=1\n", main))
    assert "which sets none of these values otherwise" in planned(same, BUFFERS).notes[0]


@pytest.mark.parametrize("text", [None, "[main]\ninclude=nowhere\n", "\0["])
def test_what_cannot_be_found_out_is_said(tmp_path: Path, text: str | None) -> None:
    system(tmp_path, files=tuned(text))
    note = planned(tmp_path, BUFFERS).notes[0]
    assert "cannot be read here" in note
    assert "it may set some of these values again" in note
    applied(tmp_path, BUFFERS)
    assert verified(tmp_path).others[0].otherwise is None


def test_a_file_that_a_configuration_manager_writes(tmp_path: Path) -> None:
    system(tmp_path, files={OUR_FILE: "# Ansible managed\n"})
    assert f"{OUR_FILE} says that Ansible manages it" in words(planned(tmp_path, BUFFERS).notes)
    applied(tmp_path, BUFFERS)
    assert [(one.who, one.files) for one in verified(tmp_path).others] == [("Ansible", (OUR_FILE,))]


def test_an_agent_where_no_file_says_whose_it_is(tmp_path: Path) -> None:
    system(tmp_path, files={"/etc/salt/minion": "", "/sys/fs/cgroup/system.slice/salt-minion.service/x": ""})
    assert f"Salt runs here: add {OUR_FILE} to it" in words(planned(tmp_path, BUFFERS).notes)
    applied(tmp_path, BUFFERS)
    assert f"Salt runs here: add {OUR_FILE} to it" in words(verified(tmp_path))


def change(identity: str, persist: str | None = None) -> Change:
    return Change(identity, "1", "2", persist, None, "none", "now", "W.", "H.", ("S",), "p", ReadFile("/x"), (), ())


def writers_of(files: Mapping[str, str], *changes: Change) -> tuple[OtherWriter, ...]:
    content = {path: text.encode() for path, text in files.items()}
    return writers_beside(Host(MemoryFiles(content), NoCommands()), changes, ())


@pytest.mark.parametrize(
    ("files", "concerned", "named", "not_concerned"), CASES["each is named where it writes such values"]
)
def test_each_is_named_where_it_writes_such_values(
    files: Mapping[str, str], concerned: list[str], named: str, not_concerned: list[str]
) -> None:
    assert named in " ".join(one.note for one in writers_of(files, change(*concerned)))
    assert writers_of(files, change(*not_concerned)) == ()
    assert writers_of({}, change(*concerned)) == ()


@pytest.mark.parametrize(
    ("head", "manager"),
    [
        (b"#\n# Ansible managed\n#\n", "Ansible"),
        (b"# This file is managed by Puppet. DO NOT EDIT.\n", "Puppet"),
        (b"# Generated by Chef for host\n", "Chef"),
        (b"# This file is managed by SaltStack\n", "Salt"),
        (
            b"# This file is generated from information provided by the datasource.  Changes\n"
            b"# to it will not persist. To disable cloud-init's network configuration capabilities, write a file\n",
            "cloud-init",
        ),
        (b"# Ask the chef what he manages.\nset-node puppet\n", None),
        (b"x\n" * 100 + b"# Ansible managed\n", None),
        (b"\xff\xfe\0", None),
    ],
)
def test_a_file_that_names_its_manager(head: bytes, manager: str | None) -> None:
    assert managed_by(head) == manager
