"""No password leaves a host in a snapshot, and what a plan reads of the same files does."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.facts.network.link_managers import read_link_owner
from advisor.facts.redaction import for_display, without_secrets
from advisor.snapshot.archive import capture_host, open_snapshot
from tests.cases import cases
from tests.managers import PROFILE, links, managed, profile
from tests.trees import host_of, make_command, make_tree

CASES = cases(__file__)


@pytest.mark.parametrize(("path", "line", "kept"), CASES["the value goes and the line stays"])
def test_the_value_goes_and_the_line_stays(path: str, line: str, kept: str) -> None:
    assert without_secrets(path, f"{line}\n".encode()) == f"{kept}\n".encode()


@pytest.mark.parametrize(("path", "text"), CASES["no form of a credential is kept"])
def test_no_form_of_a_credential_is_kept(path: str, text: str) -> None:
    kept = without_secrets(path, text.encode())
    assert b"topsecret" not in kept.replace(b"topsecret_is_not_this", b"")
    assert kept.count(b"\n") in (text.count("\n"), 1)
    assert without_secrets(path, kept) == kept
    if not path.startswith(("/proc", "/etc/fstab", "/etc/tmpfiles")):
        assert b"topsecret" not in for_display(path, text.encode()).replace(b"topsecret_is_not_this", b"")


@pytest.mark.parametrize(("path", "text"), CASES["what is no credential stays"])
def test_what_is_no_credential_stays(path: str, text: str) -> None:
    assert without_secrets(path, text.encode()) == text.encode()


def test_what_a_command_answers_is_looked_through(tmp_path: Path) -> None:
    make_command(tmp_path / "bin", "show", "echo 'Environment=A=1 DB_PASSWORD=topsecret'")
    here = host_of(make_tree(tmp_path / "root", {}), tmp_path / "bin")
    (tmp_path / "x").write_bytes(capture_host(here, lambda recording: recording.run(["show"])))
    assert "DB_PASSWORD=redacted" in str(open_snapshot(tmp_path / "x").run(["show"]))


@given(st.text(alphabet="pasword: k=ey\"'{},\n"))
def test_twice_is_once(text: str) -> None:
    once = without_secrets("/etc/netplan/1.yaml", text.encode())
    assert without_secrets("/etc/netplan/1.yaml", once).count(b"\n") == text.count("\n")


def test_a_snapshot_holds_none_and_tells_the_same(tmp_path: Path) -> None:
    other = PROFILE.replace("storage", "wlan")
    secret = profile("[wifi-security]\npsk=topsecret\n", uuid="2f", kind="wifi", link="wlan0")
    here = host_of(make_tree(tmp_path / "root", links() | managed() | {PROFILE: profile(), other: secret}))
    (tmp_path / "x").write_bytes(capture_host(here, lambda recording: read_link_owner(recording, "eth1")))
    there = open_snapshot(tmp_path / "x")
    assert "psk=redacted" in str(there.read(other))
    assert read_link_owner(there, "eth1") == read_link_owner(here, "eth1")
