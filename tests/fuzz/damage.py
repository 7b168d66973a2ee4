"""Damaged captures: a host with some of its files, links and answers changed as a seed says, and every question asked.

`make` and `ask` depend on the seed and the hosts alone, so a failure is repeated with ``python -m tests.fuzz.damage
SEED``, or ``captured:SEED`` for one of the captured hosts.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Final

from advisor import operations as api
from advisor.errors import AdvisorError
from advisor.facts.host_facts import Facts, scan
from advisor.host import Completed, Host, Missing
from advisor.limits.declared import Declared
from advisor.limits.links import read_pci_and_network
from advisor.limits.storage_use import read_front
from advisor.limits.what_if import Scene, limits_of_scene
from advisor.planner import plan_profiles
from advisor.profiles.profile import load, profile_paths
from advisor.report.host_ceiling import add_ceiling
from advisor.report.json import scan_document
from advisor.report.layout import Page
from advisor.report.limits import limits_document
from advisor.report.plan import plan_text
from advisor.report.scan_page import scan_text
from advisor.rules.judged import judge
from tests.fuzz.hosts import CAPTURED, HOSTS, Parts, parts_of

_TEXTS: Final = (
    *("", "\n", "0", "-1", "-5", "+1", " 7 ", "1_0", "１", "٣", "1500\x1b[31m", "abc", "nan", "1e9", "0x10", "010"),
    *("9" * 20, "9" * 400, "-" + "9" * 30, "4294967296", "18446744073709551615", "1\n2", "1 2 3", "\0", "none"),
    *("\x1b]0;x\x07", "N/A", "[a] b", "a b c d e f g h", "/", "/dev/../x", "..", "*", "[", "{", '{"a":', "[]"),
    *("null", '"x"', "[{}]", '[{"ifname": 1}]', "=", ":", "é", "日本", "\u202e", "%s", "x" * 5000, "#", "- - - -"),
)
WORDS: Final = (*(text.encode() for text in _TEXTS), b"\xff\xfe", b"\xc3(")


def make(seed: int, hosts: Mapping[str, Callable[[], Host]] = HOSTS) -> tuple[str, Host]:
    """The name of the host that was damaged, and the damaged host."""
    chance = random.Random(seed)
    name = chance.choice(sorted(hosts))
    parts = parts_of(hosts[name]())
    for _ in range(chance.choice((1, 1, 2, 3, 8, 20))):
        parts = _damaged(parts, chance)
    return name, parts.host()


def _damaged(parts: Parts, chance: random.Random) -> Parts:
    places = parts.places()
    place = chance.choice(places)
    kind = chance.random()
    if kind < 0.12:
        return _without(parts, place, chance)
    if kind < 0.2:
        return _structure(parts, place, chance)
    if kind < 0.3:
        return parts.with_content(place, parts.content(chance.choice(places)))
    return parts.with_content(place, _changed(parts.content(place), chance))


def _without(parts: Parts, place: str, chance: random.Random) -> Parts:
    """A file is gone or cannot be read, a command is not installed, does not answer, or fails."""
    if place.startswith("$ "):
        argv = tuple(place.removeprefix("$ ").split("\0"))
        answers = (
            Missing("absent", f"{argv[0]} is not installed"),
            Missing("unreadable", f"{argv[0]} did not answer within 10 s"),
            Completed(1, "", f"{argv[0]}: Permission denied\n"),
            Completed(0, "", ""),
            Completed(127, parts.content(place).decode("utf-8", "replace"), ""),
        )
        return parts.with_answer(argv, chance.choice(answers))
    kept = {path: data for path, data in parts.files.items() if path != place}
    if chance.random() < 0.5:
        return parts._replace(files=kept)
    return parts._replace(files=kept, unreadable={**parts.unreadable, place: "Permission denied"})


def _structure(parts: Parts, place: str, chance: random.Random) -> Parts:
    """A directory or a link where a file was, a link elsewhere, a loop."""
    links = dict(parts.links)
    if links and chance.random() < 0.5:
        links[chance.choice(sorted(links))] = chance.choice(("/", "..", "x", "/sys", "/nowhere", "\n", "../../../.."))
        return parts._replace(links=links)
    if place.startswith("$ "):
        return parts
    kept = {path: data for path, data in parts.files.items() if path != place}
    if chance.random() < 0.5:
        return parts._replace(files=kept, directories=parts.directories | {place})
    links[place] = chance.choice((place, place.rpartition("/")[0], "/proc/self/mountinfo"))
    return parts._replace(files=kept, links=links)


def _changed(data: bytes, chance: random.Random) -> bytes:
    kind = chance.random()
    if kind < 0.3:
        return chance.choice(WORDS) + chance.choice((b"", b"\n"))
    if kind < 0.6:
        return _with_word(data, chance)
    at = chance.randrange(len(data) + 1)
    if kind < 0.75:
        return data[:at]
    if kind < 0.9:
        return data[:at] + bytes(byte ^ chance.randrange(1, 256) for byte in data[at : at + 1]) + data[at + 1 :]
    lines = data.split(b"\n")
    chance.shuffle(lines)
    return b"\n".join(lines * chance.choice((1, 2)))


def _with_word(data: bytes, chance: random.Random) -> bytes:
    """One word of one line is another."""
    lines = data.split(b"\n")
    number = chance.randrange(len(lines))
    words = lines[number].split(b" ")
    words[chance.randrange(len(words))] = chance.choice(WORDS)
    lines[number] = b" ".join(words)
    return b"\n".join(lines)


def questions(host: Host, chance: random.Random, *, profiles: int | None = None) -> Iterator[Callable[[], object]]:
    """Scan, recommend, limits, and the plans of all profiles (or of some), each with its document and its page."""
    known: list[Facts] = []

    def scanned() -> None:
        facts = scan(host)
        known.append(facts)
        findings = judge(facts)
        scan_document(facts, findings)
        scan_text(facts, findings, width=80, color=False)

    def limited() -> None:
        context = read_pci_and_network(host, known[0])
        found = limits_of_scene(Scene(known[0], context, Declared(), read_front(host, known[0])))
        limits_document(found)
        if found.host is not None:
            add_ceiling(Page(80, color=False), found.host, "The whole host")

    yield scanned
    yield lambda: api.document(api.recommend(host))
    yield limited
    names = [name for name in sorted(profile_paths()) if not _needs_values(name)]
    for name in names if profiles is None else chance.sample(names, profiles):
        yield lambda name=name: _planned(host, name, known[0])  # type: ignore[misc]


def _needs_values(name: str) -> bool:
    return any(one.default is None for one in load(name).parameters.values())


def _planned(host: Host, name: str, facts: Facts) -> None:
    made = plan_profiles(host, (name,), {}, facts=facts)
    api.document(made)
    plan_text(made, width=80, color=False)


def ask(seed: int, *, profiles: int | None = None, hosts: Mapping[str, Callable[[], Host]] = HOSTS) -> None:
    """Every question to the host of this seed. Raises what is no AdvisorError."""
    _, host = make(seed, hosts)
    for question in questions(host, random.Random(seed), profiles=profiles):
        try:
            question()
        except AdvisorError:
            continue


if __name__ == "__main__":
    for word in sys.argv[1:]:
        chosen = CAPTURED if word.startswith("captured:") else HOSTS
        number = int(word.removeprefix("captured:"))
        print(make(number, chosen)[0])
        ask(number, hosts=chosen)
