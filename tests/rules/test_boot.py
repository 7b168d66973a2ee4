"""What the next boot brings, and who has the last word: on hosts of a few files."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from advisor.facts.host_facts import scan
from advisor.facts.settings.sysctl import key_path
from advisor.host import Host, MemoryFiles, NoCommands
from advisor.rules.judged import judge
from advisor.rules.rule import Decide, Finding, comment_out, is_alternative
from tests.cases import cases

CASES = cases(__file__)
RULES = {"differs": "sysctl.differs-at-boot", "overridden": "sysctl.overridden", "nothing": "sysctl.names-nothing"}


def host_of(case: dict[str, Any]) -> Host:
    files = {**case["files"], **{key_path(key): value for key, value in case["live"].items()}}
    files["/usr/lib/systemd/systemd-sysctl"] = ""
    return Host(MemoryFiles({path: text.encode() for path, text in files.items()}, case.get("links", {})), NoCommands())


def found_on(case: dict[str, Any]) -> dict[str, Finding]:
    return {one.id: one for one in judge(scan(host_of(case), only_judged=True))}


@pytest.mark.parametrize("name", CASES)
def test_what_the_next_boot_brings(name: str) -> None:
    case = CASES[name]
    found = found_on(case)
    for word, rule in RULES.items():
        keys = found[rule].evidence["keys"] if rule in found else ()
        assert isinstance(keys, tuple)
        assert list(keys) == case.get(word, []), rule
    commands = [command for rule in RULES.values() if rule in found for command in found[rule].commands]
    for wanted in case.get("commands", ()):
        assert wanted in commands
    assert not [command for command in commands if "sysctl --system" in command]
    decisions = [
        one for rule in RULES.values() if rule in found for one in found[rule].remedy if isinstance(one, Decide)
    ]
    first = [one.text for one in decisions if one.is_prerequisite]
    assert bool(first) == bool(case.get("decided"))
    for wanted in case.get("decided", ()):
        assert wanted in " ".join(first)
        assert wanted in found["sysctl.differs-at-boot"].hurts_when
    for wanted in case.get("instead", ()):
        assert wanted in " ".join(one.text for one in decisions if is_alternative(one.text))


def test_a_line_is_made_a_comment_and_hard_links_stay(tmp_path: Path) -> None:
    place = tmp_path / "site file.conf"
    place.write_text("one = 1\ntwo = 2\nthree = 3\n")
    (tmp_path / "other").hardlink_to(place)
    subprocess.run(["sh", "-c", comment_out(str(place), 3, 1).command], check=True)
    assert (tmp_path / "other").read_text() == "# one = 1\ntwo = 2\n# three = 3\n"
    assert (tmp_path / "site file.conf.before").read_text() == "one = 1\ntwo = 2\nthree = 3\n"
