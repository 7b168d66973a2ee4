"""What the text of a configuration file gives one key, as one canonical line; the shell functions of the rollback
script's template read the same.

`UNSET` stands for a key that the text does not give, `EMPTY` for one without a value. Neither is a value that can be
asked for: what they say is what a rollback compares with.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

import msgspec

from advisor.host.missing import Missing
from advisor.host.patterns import lazy_regex

UNSET = "(unset)"
EMPTY = "(empty)"

_BLANKS = " \t\r"
# multipath.conf(5): a string in double quotes, a brace, or a word; text from # or ! on is a comment.
_TOKEN = lazy_regex(r'"(?P<string>[^"]*)"|(?P<brace>[{}])|(?P<word>[^ \t"{}#!]+)')


def canonical(value: str) -> str:
    """The value with its white space folded, or what stands for an empty one."""
    return " ".join(re.split(r"[ \t\r]+", value.strip(_BLANKS))) or EMPTY


def key_value(text: str, key: str) -> str:
    """The last ``key = value`` line (BeeGFS, iscsid.conf); a comment is a line of its own."""
    found = UNSET
    for line in text.split("\n"):
        name, equals, value = line.partition("=")
        if equals and name.strip(_BLANKS) == key:
            found = canonical(value)
    return found


def section_value(text: str, place: str) -> str:
    """The last ``key=value`` line in the ``[section]`` of ``place``, SECTION/KEY (InterSystems' CPF)."""
    section, _, key = place.partition("/")
    return key_value("\n".join(_in_section(text, section)), key)


def _in_section(text: str, section: str) -> Iterator[str]:
    is_inside = False
    for line in text.split("\n"):
        bare = line.strip(_BLANKS)
        if bare.startswith("["):
            is_inside = bare == f"[{section}]"
        elif is_inside:
            yield line


def directive(text: str, name: str) -> str:
    """What follows the word ``name`` where it begins a line, the last time it does (llttab); # begins a comment."""
    found = UNSET
    for line in text.split("\n"):
        words = line.partition("#")[0].strip(_BLANKS)
        first, *rest = re.split(r"[ \t\r]+", words, maxsplit=1)
        if first == name:
            found = canonical("".join(rest))
    return found


def link_mtu(text: str, tag: str) -> str | Missing:
    """The MTU field of the one line ``link TAG DEVICE NODES TYPE PORT MTU …`` with this tag (llttab); a word that
    begins with # begins a comment."""
    found = []
    for line in text.split("\n"):
        words = re.split(r"[ \t\r]+", line.strip(_BLANKS))
        end = next((at for at, word in enumerate(words) if word.startswith("#")), len(words))
        if words[0] in ("link", "link-lowpri") and words[1:2] == [tag] and end > 1:
            found.append(words[:end])
    if len(found) != 1:
        return Missing("unreadable", f"{len(found)} link lines have the tag {tag}")
    return found[0][6] if len(found[0]) > 6 else Missing("absent", f"the link line of {tag} has no MTU field")


class Attribute(msgspec.Struct, frozen=True):
    """One line of a multipath.conf that sets something: where its value stands in the line, and what it is."""

    line: int
    place: str
    """Sections and keyword, ``devices/device/path_checker``."""
    value: str
    start: int
    end: int
    opened: int
    """The line that opens its section."""

    @property
    def key(self) -> str:
        return self.place.rpartition("/")[2]


class Section(msgspec.Struct, frozen=True):
    """A section of a multipath.conf: the lines of its opening and of its closing brace, and what it is for."""

    place: str
    opened: int
    closed: int
    meant: str = ""
    """``VENDOR,PRODUCT`` of a device section (``all_devs`` where it is for all), the WWID of a multipath section."""


class Layout(msgspec.Struct, frozen=True):
    """A multipath.conf as multipath reads it.

    A place is SECTION/KEY; ``devices/device[VENDOR,PRODUCT]/KEY`` and ``multipaths/multipath[WWID]/KEY`` are those of
    the section that is for just that.
    """

    sections: tuple[Section, ...]
    attributes: tuple[Attribute, ...]

    def homes(self, section: str) -> tuple[Section, ...]:
        """The sections that ``section`` names, in the order of the file."""
        base, bracket, meant = section.partition("[")
        wanted = meant.removesuffix("]") if bracket else None
        return tuple(one for one in self.sections if one.place == base and wanted in (None, one.meant))

    def at(self, place: str) -> tuple[Attribute, ...]:
        """The lines that set ``place``, in the order of the file."""
        section, _, key = place.rpartition("/")
        opened = {one.opened for one in self.homes(section)}
        return tuple(one for one in self.attributes if one.opened in opened and one.key == key)

    def ambiguous(self, place: str) -> bool:
        """Whether the section of ``place``, below another, is there more than once: which one is meant is not said."""
        section = place.rpartition("/")[0]
        return "/" in section and len(self.homes(section)) > 1


def multipath_layout(lines: list[str]) -> Layout | Missing:
    """The sections and settings in the lines of a multipath.conf; Missing names the line that is not understood."""
    opened: list[tuple[str, int]] = []
    sections: list[Section] = []
    attributes: list[Attribute] = []
    for number, line in enumerate(lines):
        tokens = _split_tokens(line)
        if tokens is None:
            return _bad_line(number)
        shape = "".join(one["brace"] or "w" for one in tokens)
        place = "/".join(name for name, _ in opened)
        if shape == "w{":
            opened.append((tokens[0][0], number))
        elif shape == "}" and opened:
            began = opened.pop()[1]
            own = {one.key: one.value for one in attributes if one.opened == began}
            sections.append(Section(place, began, number, meant_by(place, own)))
        elif re.fullmatch("ww+", shape) and opened:
            value = tokens[1]["word"] or tokens[1]["string"]
            span = tokens[1].span()
            attributes.append(Attribute(number, f"{place}/{tokens[0][0]}", canonical(value), *span, opened[-1][1]))
        elif shape not in ("", "w"):
            return _bad_line(number)
    return _bad_line(opened[-1][1]) if opened else Layout(tuple(sections), tuple(attributes))


def meant_by(place: str, settings: Mapping[str, str]) -> str:
    """What a section is for, by what it sets: ``VENDOR,PRODUCT``, ``all_devs`` (RHEL 7) or a WWID; empty for others."""
    if place == "multipaths/multipath":
        return settings.get("wwid", "")
    if place != "devices/device":
        return ""
    if "vendor" not in settings and settings.get("all_devs") in ("yes", "1"):
        return "all_devs"
    return f"{settings.get('vendor', '')},{settings.get('product', '')}"


def _bad_line(number: int) -> Missing:
    return Missing("unreadable", f"line {number + 1} is not laid out as multipath.conf(5) says")


def _split_tokens(line: str) -> list[re.Match[str]] | None:
    """The tokens of a line; None where a string does not end."""
    found: list[re.Match[str]] = []
    at = 0
    line = line.rstrip(_BLANKS)
    while at < len(line):
        if line[at] in " \t":
            at += 1
        elif line[at] in "#!":
            break
        elif one := _TOKEN.match(line, at):
            found.append(one)
            at = one.end()
        else:
            return None
    return found


def multipath_value(text: str, place: str) -> str | Missing:
    """The last value at ``place``, ``defaults/path_selector``."""
    layout = multipath_layout(text.split("\n"))
    if isinstance(layout, Missing):
        return layout
    if layout.ambiguous(place):
        section = place.rpartition("/")[0]
        return Missing("unreadable", f"{section} occurs more than once: which one is meant is ambiguous")
    values = [one.value for one in layout.at(place)]
    return values[-1] if values else UNSET


# Words as the kernel's files, awk and sh separate them; ``str.split`` also splits at U+00A0, U+2028 and their like.

WHITE_SPACE = " \t\n\r\v\f"
"""What ``[:space:]`` is in the POSIX locale."""

_WORD = lazy_regex(rf"[^{WHITE_SPACE}]+")


def split_words(text: str) -> list[str]:
    """The words of a text between white space of the POSIX locale."""
    return _WORD.findall(text)


def or_empty(value: str) -> str:
    """A value as a line shows it: one of blanks alone is a word that can be seen."""
    return value if value.strip() else EMPTY


# CPU lists as systemd shows them, of every version: ranges, single numbers, or the bytes of the mask in hex.

_CPU = lazy_regex(r"\d{1,6}", re.ASCII)
_MASK = lazy_regex(r"(?:[0-9a-f]{16}){1,128}", re.ASCII)


def shown_cpus(text: str) -> str:
    """``0-3 8``, ``0 1 2 3 8`` and the bytes of the mask in hex, the lowest first, as ``0-3,8``.

    systemd before 243 has no ranges: it shows every CPU or, where a property is an array of bytes to it, the mask in
    words of eight bytes.
    """
    words = split_words(text.replace(",", " "))
    if len(words) == 1 and _MASK.fullmatch(words[0]):
        mask = int.from_bytes(bytes.fromhex(words[0]), "little")
        words = [str(cpu) for cpu in range(mask.bit_length()) if mask >> cpu & 1]
    # Neighbours in one range; what is no number stays as it is.
    found: list[list[str]] = []
    for word in words:
        low, _, high = word.partition("-")
        if found and _CPU.fullmatch(low) and _CPU.fullmatch(found[-1][1]) and int(low) == int(found[-1][1]) + 1:
            found[-1][1] = high or low
        else:
            found.append([low, high or low])
    return ",".join([low if low == high else f"{low}-{high}" for low, high in found])


# What ``lltconfig -F query`` and ``-T query`` print.

# InfoScale 7.4.2 prints the receive-side name so; Veritas' own documents spell it rporthighwater.
FLOW_ALIASES = {"rporthiswater": "rporthighwater"}

_NAMED = lazy_regex(r"[ \t\r]*([A-Za-z_][A-Za-z0-9_-]*)[ \t\r]*[=:][ \t\r]*(-?[0-9]{1,18})[ \t\r]*")


def parse_flow(text: str) -> dict[str, int]:
    """Name and value of each line ``name = value`` that ``lltconfig -F query`` prints; unknown names are kept.

    The spelling ``rporthiswater`` of InfoScale 7.4.2 is returned as ``rporthighwater``.
    """
    values: dict[str, int] = {}
    for line in text.split("\n"):
        found = _NAMED.fullmatch(line)
        if found:
            values[FLOW_ALIASES.get(found[1], found[1])] = int(found[2])
    return values
