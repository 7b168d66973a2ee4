"""An imported profile as a profile of advisor: the TOML of docs/profile-format.md, which loads and lints."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from advisor.importers.made import shorten_text
from advisor.importers.records import Imported, ImportedSetting
from advisor.profiles.profile import Only, Profile, parse_profile
from advisor.profiles.toml_text import toml_pairs
from advisor.tunables.catalogue import hurts_when

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
