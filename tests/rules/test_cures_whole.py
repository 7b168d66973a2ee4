"""A remedy cures whole hosts: their files with the values that a finding asks for are scanned and judged again."""

from __future__ import annotations

import shlex
import subprocess
from functools import cache
from pathlib import Path

from advisor.facts.host_facts import scan
from advisor.host import Host
from advisor.host.probes import ReadFile
from advisor.rules.judged import judge
from advisor.rules.rule import Finding, SetTunable
from advisor.tunables import FileEdit, apply_edit, parse_tunable
from tests.each import for_each
from tests.fuzz.hosts import HOSTS, Parts, parts_of
from tests.rules.test_cures import COUNTED, STAY, values_of


@cache
def judged(name: str) -> tuple[Host, tuple[Finding, ...]]:
    host = HOSTS[name]()
    return host, judge(scan(host))


def in_files(one: SetTunable) -> bool:
    """Whether the value is read from one file: what ethtool or lltconfig prints is not changed by writing a file."""
    return isinstance(parse_tunable(one.tunable).probe, ReadFile)


def curable(findings: tuple[Finding, ...]) -> tuple[Finding, ...]:
    values = {one.id: values_of((one,)) for one in findings}
    return tuple(one for one in findings if values[one.id] and all(map(in_files, values[one.id])))


def with_value(parts: Parts, one: SetTunable) -> Parts:
    """The live value, and the file that keeps it."""
    item = parse_tunable(one.tunable)
    probe = item.probe
    assert isinstance(probe, ReadFile)
    edit = item.make_edit(parts.host(), one.value, profile="values")
    if not one.tunable.startswith("file:"):
        for path in (probe.path, probe.path.replace("/smp_affinity_list", "/effective_affinity_list")):
            place = parts.host().files.real(path)
            assert isinstance(place, str)
            parts = parts.with_content(place, as_kernel_prints(parts.files.get(place, b""), one.value))
    for each in edit.whole if isinstance(edit, FileEdit) else ():
        parts = parts.with_content(each.path, apply_edit(parts.files.get(each.path), each))
    return parts


def as_kernel_prints(before: bytes, value: str) -> bytes:
    """A choice is marked among those that there are."""
    words = before.decode().replace("[", "").replace("]", "").split()
    if b"[" not in before or value not in words:
        return f"{value}\n".encode()
    return (" ".join(f"[{word}]" if word == value else word for word in words) + "\n").encode()


@cache
def found_everywhere() -> frozenset[tuple[str, str]]:
    return frozenset((name, one.id) for name in HOSTS for one in curable(judged(name)[1]))


def test_many_rules_are_cured_on_whole_hosts() -> None:
    assert len({rule for _, rule in found_everywhere()}) > 10
    kinds = {part.tunable.partition(":")[0] for name in HOSTS for part in values_of(curable(judged(name)[1]))}
    assert kinds >= {"block", "file", "irq", "sysctl"}


def with_comment(parts: Parts, command: str, place: Path) -> Parts:
    """The file after the command that makes one of its lines a comment has been run on it."""
    path = shlex.split(command)[0].removeprefix("f=").removesuffix(";")
    place.write_bytes(parts.files[path])
    subprocess.run(["sh", "-c", command.replace(path, str(place))], check=True)
    return parts.with_content(path, place.read_bytes())


@for_each("name", HOSTS)
def test_a_whole_host_is_cured(name: str, tmp_path: Path) -> None:
    for rule in sorted(rule for each, rule in found_everywhere() if each == name):
        check_cure(name, rule, tmp_path)


def check_cure(name: str, rule: str, tmp_path: Path) -> None:
    host, findings = judged(name)
    meant = tuple(one for one in findings if one.id == rule)
    parts = parts_of(host)
    for one in values_of(meant):
        parts = with_value(parts, one)
    # A file that is read after advisor's own holds until its line is a comment.
    for command in (command for one in meant for command in one.commands if command.startswith("f=")):
        parts = with_comment(parts, command, tmp_path / "file")
    left = tuple(one for one in judge(scan(parts.host())) if one.id == rule)
    if rule in COUNTED:
        assert values_of(left) == (), rule
    elif rule not in STAY:
        assert left == (), rule
