"""The systemd .link file and the udev rules that carry a link's values over a reboot: each matches one link, hides
nothing from it, and nothing else can enter it."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from advisor.host import Host, MemoryFiles, Missing, NoCommands
from advisor.tunables import FileEdit, Persisted, apply_edit, mentions_key, parse_tunable
from tests.cases import cases
from tests.trees import host_of, make_tree

CASES = cases(__file__)

PORT = CASES["PORT"]
DRIVER = {"/sys/class/net/eth1/device/driver": "../../../bus/pci/drivers/mlx5_core"}
MATCH = 'ACTION=="add", SUBSYSTEM=="net", ATTR{address}=="02:00:00:00:00:01", DRIVERS=="mlx5_core"'
FIRST = "# Values of links that last over a reboot. See udev(7).\n"
LINES = CASES["LINES"]


def edit_of(root: Path, attribute: str, value: str, link: str = "eth1") -> FileEdit | Missing:
    found = parse_tunable(f"link:{link}:{attribute}").make_edit(host_of(root), value, profile="p")
    assert not isinstance(found, Persisted)
    return found


def edits_of(root: Path) -> dict[str, FileEdit]:
    found = {attribute: edit_of(root, attribute, value) for attribute, (value, *_) in LINES.items()}
    assert not [one for one in found.values() if isinstance(one, Missing)]
    return {attribute: one for attribute, one in found.items() if isinstance(one, FileEdit)}


def mtu_text(root: Path, link: str = "eth1") -> str | Missing:
    edit = edit_of(root, "mtu", "9000", link)
    return apply_edit(None, edit).decode() if isinstance(edit, FileEdit) else edit


@pytest.fixture
def port(tmp_path: Path) -> Path:
    return make_tree(tmp_path / "root", PORT, DRIVER)


def test_each_value_is_one_line_that_names_the_port(port: Path) -> None:
    for attribute, edit in edits_of(port).items():
        _, path, assignment = LINES[attribute]
        assert edit.path == path
        assert apply_edit(None, edit).decode() == f"{FIRST}{MATCH}, {assignment}\n"
    assert mtu_text(port) == (
        "[Match]\nMACAddress=02:00:00:00:00:01\nDriver=mlx5_core\n\n"
        "[Link]\nNamePolicy=keep mac onboard\nWakeOnLan=off\nA=1\nMTUBytes=9000\n"
    )


def test_a_line_is_changed_where_it_is_there_and_the_others_are_left(port: Path) -> None:
    edits = edits_of(port)
    content: bytes | None = None
    for edit in edits.values():
        assert content is None or not mentions_key(content, edit)
        content = apply_edit(content, edit)
    assert content is not None
    for edit in edits.values():
        assert mentions_key(content, edit)
        assert apply_edit(content, edit) == content
    other = edit_of(port, "ring.rx", "512")
    assert isinstance(other, FileEdit)
    assert apply_edit(content, other) == content.replace(b"rx 4096", b"rx 512")
    # ring.tx is another line than ring.rx, and feature.rx-gro another than feature.rx-gro-hw.
    for attribute, value in (("ring.tx", "9"), ("feature.rx-gro-hw", "off"), ("rps.rx-00"[:-1], "0")):
        one = edit_of(port, attribute, value)
        assert isinstance(one, FileEdit)
        assert mentions_key(content, one) == (attribute == "rps.rx-0")


@pytest.mark.parametrize(("changed", "match", "section"), CASES["an address that will not last is no match"])
def test_an_address_that_will_not_last_is_no_match(
    changed: dict[str, str], match: str, section: str | None, tmp_path: Path
) -> None:
    root = make_tree(tmp_path, {**PORT, **changed})
    assert section is None or str(mtu_text(root)).splitlines()[1] == section
    edit = edit_of(root, "txqueuelen", "5")
    assert isinstance(edit, FileEdit)
    assert edit.key == f'ACTION=="add", SUBSYSTEM=="net", {match}'


@settings(deadline=None)
@given(st.text(st.sampled_from("a.-_0\"'$%*?[|,{}\\=#;&"), min_size=1, max_size=9))
def test_no_name_adds_anything_to_a_rule(name: str) -> None:
    if name.strip(".") == "":
        return
    files = {path: text.encode() for path, text in PORT.items()}
    port = files | {path.replace("/eth1/", f"/{name}/"): text for path, text in files.items()}
    for machine in (Host(MemoryFiles(files), NoCommands()), Host(MemoryFiles(port), NoCommands())):
        edit = parse_tunable(f"link:{name}:rps.rx-0").make_edit(machine, "0", profile="p")
        if set(name) <= set("a.-_0"):
            assert isinstance(edit, FileEdit)
        else:
            assert isinstance(edit, Missing)
            assert "cannot be written into a udev rule" in edit.why


@pytest.mark.parametrize(("without", "words"), CASES["without what would set it nothing is written"])
def test_without_what_would_set_it_nothing_is_written(without: tuple[str, ...], words: str, tmp_path: Path) -> None:
    files = {path: text for path, text in PORT.items() if path not in without}
    root = make_tree(tmp_path, files)
    for found in (edit_of(root, "ring.rx", "4096"), *((edit_of(root, "mtu", "9000"),) if "udev" in words else ())):
        assert isinstance(found, Missing)
        assert words in found.why
