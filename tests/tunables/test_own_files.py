"""Which of our files has the last word on a key, by the order in which each reader takes them."""

from __future__ import annotations

from pathlib import Path

import pytest

from advisor.facts.settings.sysctl import origins, read_sysctl_sources
from advisor.facts.unknown import Unknowns
from advisor.tunables import FileEdit, apply_edit, parse_tunable
from advisor.tunables.kernel_file import tmpfiles_edit
from tests.trees import host_of, make_tree

SWAP = "vm.swappiness"


def put(root: Path, edit: FileEdit) -> str:
    place = root / edit.path.lstrip("/")
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_bytes(apply_edit(place.read_bytes() if place.exists() else None, edit))
    return place.name


@pytest.mark.parametrize("profiles", [["a", "b", "c"], ["c", "b", "a"], ["b", "a", "b"], ["a", "c", "b", "a", "c"]])
def test_the_last_one_that_writes_has_the_last_word(tmp_path: Path, profiles: list[str]) -> None:
    make_tree(tmp_path, {"/etc/sysctl.d/99-x.conf": "", "/usr/lib/tmpfiles.d/x.conf": "", "/etc/modprobe.d/x.conf": ""})
    host = host_of(tmp_path)
    for number, profile in enumerate(profiles, 1):
        value = str(number)
        edits = [
            parse_tunable(f"sysctl:{SWAP}").make_edit(host, value, profile=profile),
            tmpfiles_edit(host, "/sys/a", value, profile=profile),
            parse_tunable("module:other:option.depth").make_edit(host, value, profile=profile),
        ]
        for edit in edits:
            assert isinstance(edit, FileEdit)
            put(tmp_path, edit)
        assert origins(read_sysctl_sources(host, Unknowns()), [SWAP])[SWAP].winner.value == value
        files = sorted((tmp_path / "etc/tmpfiles.d").iterdir())
        lines = [line.split() for file in files for line in file.read_text().splitlines() if line.startswith("w ")]
        assert lines[0][6] == value, "tmpfiles.d(5): the first of several counts"
        options = [
            line
            for file in sorted((tmp_path / "etc/modprobe.d").iterdir())
            for line in file.read_text().splitlines(keepends=True)
        ]
        assert options[-1] == f"options other depth={value}\n", "modprobe.d(5): the last of several counts"


def test_names_change_only_where_the_order_would_lose(tmp_path: Path) -> None:
    make_tree(tmp_path, {"/etc/sysctl.d/90-advisor-m.conf": f"{SWAP} = 10\nnet.core.somaxconn = 1\n"})
    host, one = host_of(tmp_path), parse_tunable(f"sysctl:{SWAP}")
    names = {
        (profile, value): str(edit.path).rpartition("/")[2]
        for profile, value in (("z", "20"), ("a", "20"), ("a", "10"), ("m", "20"))
        if isinstance(edit := one.make_edit(host, value, profile=profile), FileEdit)
    }
    assert names == {
        ("z", "20"): "90-advisor-z.conf",
        ("a", "20"): "90-advisor.0001-a.conf",
        ("a", "10"): "90-advisor-a.conf",
        ("m", "20"): "90-advisor-m.conf",
    }
    other = parse_tunable("sysctl:vm.vfs_cache_pressure").make_edit(host, "1", profile="a")
    assert isinstance(other, FileEdit)
    assert other.path == "/etc/sysctl.d/90-advisor-a.conf"
