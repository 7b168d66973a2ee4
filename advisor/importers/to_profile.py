"""An imported profile as a profile of advisor: the TOML of docs/profile-format.md, which loads and lints."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

import msgspec

from advisor.facts.block.disks import kind_of
from advisor.facts.host_facts import Facts
from advisor.host import Host, Missing
from advisor.importers.records import Imported, ImportedSetting, Said, leave_out, shorten_text
from advisor.planning.comparison import combine_values
from advisor.planning.expansion import expand_targets
from advisor.planning.records import PlanTarget, Skipped
from advisor.planning.targets import Request, resolve_targets
from advisor.profiles.profile import Only, Profile, parse_profile
from advisor.profiles.toml_text import toml_pairs
from advisor.rules.settings.sysctls import judge_value
from advisor.tunables import parse_tunable
from advisor.tunables.catalogue import hurts_when
from advisor.tunables.preflight import ExpandsIds
from advisor.tunables.udev import may_agree

MAX_WHY = 240


def profile_name(text: str) -> str:
    """A name that a profile may have, after one that another tool gives."""
    plain = re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:63].strip("-")
    return plain or "imported"


def to_toml(imported: Imported, *, said: bool = True) -> str:
    """The file, with a comment on each line that became no tunable where ``said``.

    The same import gives the same bytes.
    """
    lines = [*_head_lines(imported), ""]
    for one in imported.settings:
        if one.outcome == "tunable":
            lines += ["[[tunables]]", *toml_pairs(_tunable_table(imported, one)), ""]
    if imported.links:
        about = "Links that the lines on links are for; those of the host on which the profile was imported."
        body = {"type": "names", "default": list(imported.links), "about": about}
        lines += ["[parameters.links]", *toml_pairs(body), ""]
    if said:
        left_out_lines = []
        for one in imported.settings:
            if one.outcome != "tunable" and not one.sets_nothing:
                text = shorten_text(
                    f"{f'[{one.section}] ' if one.section else ''}{one.quoted}: {one.outcome}, {one.why}"
                    f" ({one.file} line {one.line})"
                )
                left_out_lines.append(f"# {_printable_text(text)}")
        lines += ["# What became no tunable:", *left_out_lines] if left_out_lines else []
    return "\n".join(lines).rstrip("\n") + "\n"


def to_profile(imported: Imported) -> Profile:
    """The profile that the file holds. Raises InvalidInputError where the import made one that is none."""
    return parse_profile(to_toml(imported, said=False).encode(), imported.origin)


def _head_lines(imported: Imported) -> list[str]:
    about = shorten_text(imported.about or imported.title, MAX_WHY)
    origin = f"Imported from {imported.origin}, {_MODES[imported.mode]}"
    body = {
        "name": imported.name,
        "title": shorten_text(imported.title, 100) or imported.origin,
        "summary": f"{origin}: {about}" if about else f"{origin}.",
        "helps-when": f"Its author's own words: {shorten_text(imported.about, MAX_WHY)}"
        if imported.about
        else "Its author does not say.",
        "hurts-when": "On a host or for a load that its author did not have in mind; no value was measured here.",
        "sources": list(imported.sources),
        "notes": " ".join(imported.notes),
    }
    return [f"# {origin}.", *toml_pairs({key: value for key, value in body.items() if value})]


_MODES = {"faithful": "as that program really applies it on the host of the import", "intent": "as its author meant it"}


def _tunable_table(imported: Imported, one: ImportedSetting) -> dict[str, Any]:
    assert one.tunable is not None
    place = f"{one.file} line {one.line}"
    # The first sentence of an author's comment, and no more than a line or two of it.
    flat = shorten_text(one.why, 10_000)
    end = re.search(r"[.!?](?=\s|$)", flat)
    why = (
        shorten_text(flat[: end.end()] if end else flat, MAX_WHY) or f"Set by {imported.origin}, which gives no reason."
    )
    body: dict[str, Any] = {
        "tunable": one.tunable,
        "value": one.value if one.multiply is None else {"multiply": one.multiply, "of": "value-before-us"},
        "why": f"{why} ({shorten_text(one.note, MAX_WHY)})" if one.note else why,
        "hurts-when": hurts_when(one.tunable, one.value or ""),
        "sources": [f"{place}{_package_version(imported, one.file)}"],
    }
    if one.sense != "exactly":
        body["sense"] = list(one.sense) if isinstance(one.sense, tuple) else one.sense
    if one.for_each is not None:
        body["for-each"] = one.for_each
    if one.only is not None:
        default = Only()
        fields = msgspec.structs.fields(Only)
        body["only"] = {
            field.encode_name: value
            for field in fields
            if (value := getattr(one.only, field.name)) != getattr(default, field.name)
        }
    return body


def _package_version(imported: Imported, file: str) -> str:
    """The package that the file is of, as the list of sources names it."""
    found = next((one for one in imported.sources if one.startswith(f"{file} ")), "")
    return found.removeprefix(file)


def _printable_text(text: str) -> str:
    """A comment of TOML may hold no control characters."""
    return "".join(char if char.isprintable() else "\ufffd" for char in text)


# What an imported profile comes to on a host, without being in the library, and what a scan would say of it.


def say_of(facts: Facts, tunable: str, value: str) -> tuple[Said, ...]:
    """Return what the record of a kernel parameter says against a value; nothing for other tunables."""
    kind, _, key = tunable.partition(":")
    found = judge_value(facts, key, value) if kind == "sysctl" else ()
    return tuple(Said(one.id, one.severity, one.title, one.why, one.instead) for one in found)


def with_judgement(imported: Imported, facts: Facts) -> Imported:
    """Return the import with what is said against each of its values."""
    settings = tuple(
        msgspec.structs.replace(one, judged=say_of(facts, one.tunable, one.value)) if one.tunable and one.value else one
        for one in imported.settings
    )
    return msgspec.structs.replace(imported, settings=settings)


def imported_targets(
    imported: Imported, host: Host, facts: Facts
) -> tuple[tuple[PlanTarget, ...], tuple[Skipped, ...]]:
    """What it wants of each tunable of this host, and what it has nothing here for."""
    targets, skipped = resolve_targets(Request.from_settings(to_profile(imported), {}), facts)
    expanded, nowhere = expand_targets(host, targets)
    return tuple(expanded), (*skipped, *nowhere)


def made_of(values: Mapping[str, str], imported: Imported, host: Host, facts: Facts) -> Mapping[str, str]:
    """What the other program makes of these values (by tunable) when it sets its own: those alone that it changes.

    A value that is a multiple of what it finds is reported as such.
    """
    found = {}
    for target in imported_targets(imported, host, facts)[0]:
        ours = values.get(target.tunable)
        if ours is None:
            continue
        if target.multiply is not None:
            found[target.tunable] = f"{target.multiply} times what it finds"
            continue
        one = parse_tunable(target.tunable)
        wanted = one.choose_value(host, ours, target.value)
        theirs = combine_values(ours, wanted, target.sense)
        if theirs != ours:
            found[target.tunable] = theirs
    return found


# Lines for many devices that say different things of one: the later line keeps it, the earlier is reported by name.


def last_wins(settings: Sequence[ImportedSetting]) -> list[ImportedSetting]:
    """A tunable that two lines set has what the later one says."""
    last = {(one.tunable, one.only): one for one in settings if one.outcome == "tunable"}
    found = []
    for one in settings:
        winner = last.get((one.tunable, one.only), one) if one.outcome == "tunable" else one
        place = f"{winner.file} line {winner.line} ([{winner.section}])"
        found.append(one if winner is one else leave_out(one, f"{place} sets it again"))
    return found


def make_disjoint(settings: Sequence[ImportedSetting], host: Host) -> list[ImportedSetting]:
    """Each device and each file of the host in one line for each of its settings, as a profile needs it."""
    covered: dict[str, list[str]] = {}
    found = []
    for one in reversed(settings):
        subject = _subject_of(one)
        if subject is None:
            found.append(one)
            continue
        kind, patterns = subject
        later = covered.setdefault(kind, [])
        found.append(_without_later(one, later, host) if later else one)
        later.extend(patterns)
    return _files_once(found[::-1], host)


def _files_once(settings: Iterable[ImportedSetting], host: Host) -> list[ImportedSetting]:
    """What patterns and names of old kernels stand for on this host, each of it once."""
    covered: set[str] = set()
    found = []
    for one in reversed(list(settings)):
        names = _stands_for(one, host)
        again = covered & names
        covered |= names
        if not again:
            found.append(one)
        elif again == names:
            found.append(_leave_out_line(one))
        else:
            rest = sorted(names - again, reverse=True)
            found.extend(msgspec.structs.replace(one, tunable=name) for name in rest)
    return found[::-1]


def _stands_for(one: ImportedSetting, host: Host) -> set[str]:
    if one.outcome != "tunable" or one.tunable is None or one.for_each is not None:
        return set()
    known = parse_tunable(one.tunable)
    names = known.expand_ids(host) if isinstance(known, ExpandsIds) else (one.tunable,)
    return {one.tunable} if isinstance(names, Missing) else {_real_id(name, host) for name in names}


def _real_id(identity: str, host: Host) -> str:
    """An id by the file's own place, of which links below /sys/bus and /sys/class are other names."""
    place = host.real(identity.removeprefix("sysfs:")) if identity.startswith("sysfs:") else identity
    return identity if isinstance(place, Missing) or place == identity else f"sysfs:{place}"


def _subject_of(one: ImportedSetting) -> tuple[str, tuple[str, ...]] | None:
    """What is set of devices (``block::scheduler``), and of which."""
    if one.outcome != "tunable" or one.tunable is None:
        return None
    named = re.fullmatch(r"(block|link):(.+):([^:]+)", one.tunable)
    if named is None:
        return None
    kind, device, attribute = named.groups()
    each = {"{disk}": "disks", "{array}": "arrays", "{link}": "links"}.get(device)
    if each is None:
        each = "links" if kind == "link" else "arrays" if re.match(r"md|dm-", device) else "disks"
        return f"{each}:{attribute}", (device,)
    return f"{each}:{attribute}", (one.only.names if one.only is not None and one.only.names else ("*",))


def _without_later(one: ImportedSetting, later: Sequence[str], host: Host) -> ImportedSetting:
    if one.for_each is None:
        name = (one.tunable or "").split(":")[1]
        return _leave_out_line(one) if _fits_patterns(name, later) else one
    patterns = one.only.names if one.only is not None and one.only.names else ("*",)
    here = [name for name in _devices_of(host, one.for_each) if _fits_patterns(name, patterns)]
    if not any(may_agree(pattern, other) for pattern in patterns for other in later):
        return one
    names = tuple(name for name in here if not _fits_patterns(name, later))
    if not names:
        return _leave_out_line(one)
    only = msgspec.structs.replace(one.only or Only(), names=names)
    return msgspec.structs.replace(one, only=only)


def _leave_out_line(one: ImportedSetting) -> ImportedSetting:
    return leave_out(one, "a later line says otherwise of all that it could be for here")


def _devices_of(host: Host, each: str) -> Iterable[str]:
    if each == "links":
        return host.names("/sys/class/net")
    names = host.names("/sys/block")
    if each == "arrays":
        return [name for name in names if re.match(r"md([0-9]|_)|dm-[0-9]", name)]
    return [name for name in names if kind_of(name) is not None]


def _fits_patterns(name: str, patterns: Iterable[str]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)
