"""Edits of configuration files, as data and as one pure function over the file's bytes.

Every edit is idempotent, touches only its own setting, and keeps everything else of the file byte for byte.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Literal

import msgspec

from advisor.host import Missing, RunCommand
from advisor.host.config_text import FLOW_ALIASES, Layout, multipath_layout
from advisor.host.patterns import lazy_regex
from advisor.tunables.file_edits import (
    assignment_mentions,
    edit_assignment,
    edit_interfaces,
    edit_netplan,
    interfaces_mention,
    netplan_mentions,
)

LineForm = Literal[
    "udev-rule",
    "udev-run",
    "udev-class",
    "tmpfiles",
    "llttab-timer",
    "llttab-directive",
    "llttab-mtu",
    "conf",
    "cpf",
    "unit-list",
    "word",
    "module-option",
]

TO_THE_END = r"(?:[^\n\r\0]*[^ \t\n\r\0])?"
WORD = r"[^ \t#\n\r\0]*"
_STRING = r'"(?:[^"\\\n\r\0]|\\[^\n\r\0])*"'
_PLAIN_VALUE = lazy_regex(r"[\w.:+-]+", re.ASCII)

# The kernel resets nr_requests with the scheduler, and refuses a threshold above the cache it is one of.
_ASSIGNED_FIRST = ("ATTR{queue/scheduler}", "ATTR{md/stripe_cache_size}")


class EditSetting(msgspec.Struct, frozen=True):
    """One setting: patterns of what stands before its value and of a value, and the line that is added for it.

    ``section`` is that of a systemd file or of one like it. A line that is added stands before the first that
    ``before`` fits, else at the end. With ``is_whole`` a line that is there is replaced by ``line`` as it stands.
    """

    head: str
    body: str
    value: str
    line: str
    section: str | None = None
    before: str | None = None
    is_whole: bool = False


def line_setting(form: LineForm, key: str, value: str) -> EditSetting:
    """The setting of a form that has one line for each (``unit-list``: two).

    ``udev-rule``: the line ``key, value``; ``key`` is the rule's match part, ``value`` one assignment with its quotes,
    by whose left side the line is found again. ``udev-run``: ``key`` is a rule that runs a program, up to the program's
    last word, which ``value`` is. ``udev-class``: two lines that name the property ``key``: one keeps it in udev's
    database, the other is ``value``, a whole rule. ``tmpfiles``: ``value`` is written into the file ``key`` at boot.
    ``llttab-timer``: ``set-timer key:value``. ``llttab-directive``: ``key value``. ``llttab-mtu``: the MTU field of the
    link line whose tag is ``key``, which must be there. ``conf``: ``key = value``. ``cpf``: ``key`` is SECTION/KEY.
    ``unit-list``: SECTION/KEY of a unit's list, which is emptied first: what several lines give is joined. ``word``:
    the line ``key`` and nothing else. ``module-option``: ``options MODULE PARAMETER=value``, where ``key`` is ``MODULE
    PARAMETER``.
    """
    section, _, name = key.partition("/")
    if form == "udev-rule":
        left, _, right = value.partition("=")
        own = rf"[ \t]*{re.escape(key)}[ \t]*,"
        return EditSetting(
            head=rf"{own}[ \t]*{re.escape(left)}[ \t]*=[ \t]*",
            body=_STRING,
            value=right,
            line=f"{key}, {value}",
            before=own if left in _ASSIGNED_FIRST else None,
        )
    head, body, line = _LINES[form]
    places = {"key": key, "name": name}
    blank = r"[ \t]+" if form == "module-option" else r"\ "
    spelt = {place: re.escape(text).replace(r"\ ", blank) for place, text in places.items()}
    return EditSetting(
        head=r"[ \t]*" + head.format(**spelt),
        body=body,
        value={"word": "", "udev-run": f'{value}"'}.get(form, value),
        line=line.format(value=value, **places),
        section=section if form in ("cpf", "unit-list") else None,
        is_whole=form in ("udev-class", "unit-list"),
    )


_LINES = {
    "udev-run": (r"{key}[ \t]+", r'[^"\n\r\0]*"', '{key} {value}"'),
    "udev-class": (r"[^\n\r\0]*\b{key}\b", TO_THE_END, 'ACTION!="remove", IMPORT{{db}}="{key}"\n{value}'),
    "tmpfiles": (r"w[-+!=~^$]*[ \t]+{key}(?:[ \t]+[^ \t\n\r\0]+){{4}}[ \t]+", TO_THE_END, "w {key} - - - - {value}"),
    "llttab-timer": (r"set-timer[ \t]+{key}[ \t]*:[ \t]*", WORD, "set-timer {key}:{value}"),
    "llttab-directive": (r"{key}[ \t]+", r"[^ \t#\n\r\0]+", "{key} {value}"),
    "llttab-mtu": (
        r"link(?:-lowpri)?[ \t]+{key}(?:[ \t]+[^ \t#\n\r\0][^ \t\n\r\0]*){{4}}[ \t]+",
        r"[^ \t#\n\r\0][^ \t\n\r\0]*",
        "link {key} DEVICE NODES TYPE PORT {value}",
    ),
    "conf": (r"{key}[ \t]*=[ \t]*", TO_THE_END, "{key} = {value}"),
    "cpf": (r"{name}[ \t]*=[ \t]*", TO_THE_END, "{name}={value}"),
    "word": (r"{key}[ \t]*", r"(?=[\n\r\0]|$)", "{key}"),
    "module-option": (r"options[ \t]+{key}=", TO_THE_END, "options {key}={value}"),
    "unit-list": (r"{name}[ \t]*=[ \t]*", TO_THE_END, "{name}=\n{name}={value}"),
}
"""By form what stands before the value, the value, and the line that is added."""


def edit_multipath(text: str, place: str, value: str) -> str:
    """A multipath.conf that gives ``place``, SECTION/KEY, this value; as it was where its layout is not understood."""
    lines = text.split("\n")
    layout = _read_layout(lines, place)
    if layout is None:
        return text
    found = layout.at(place)
    if not found:
        return _multipath_added(lines, layout, place, value)
    last = found[-1]
    line = lines[last.line]
    # Where no blank parts it from its neighbours, quotes do.
    is_quoted = line[last.start] == '"' or line[last.end : last.end + 1].strip() != ""
    lines[last.line] = line[: last.start] + _multipath_value(value, is_quoted=is_quoted) + line[last.end :]
    return "\n".join(lines)


def multipath_mentions(text: str, place: str) -> bool:
    """Whether a multipath.conf sets ``place``."""
    layout = _read_layout(text.split("\n"), place)
    return layout is not None and bool(layout.at(place))


def _read_layout(lines: list[str], place: str) -> Layout | None:
    layout = multipath_layout(lines)
    return None if isinstance(layout, Missing) or layout.ambiguous(place) else layout


def _multipath_value(value: str, *, is_quoted: bool) -> str:
    return f'"{value}"' if is_quoted or not _PLAIN_VALUE.fullmatch(value) else value


def _multipath_added(lines: list[str], layout: Layout, place: str, value: str) -> str:
    section, _, key = place.rpartition("/")
    new = f"{key} {_multipath_value(value, is_quoted=False)}"
    homes = layout.homes(section)
    if homes:
        home = homes[-1]
        last = max([one.line for one in layout.attributes if one.opened == home.opened], default=home.opened)
        indent = re.match(r"[ \t]*", lines[last])
        shift = (indent[0] if indent else "") + ("\t" if last == home.opened else "")
        lines.insert(last + 1, shift + new + ("\r" if lines[last].endswith("\r") else ""))
    elif "/" not in section:
        has_end = lines[-1] == ""
        lines[-1:] = [*([] if has_end else [lines[-1]]), f"{section} {{", f"\t{new}", "}", ""]
    return "\n".join(lines)


Form = Literal["sysctl", "section", "llttab-flow", LineForm, "multipath", "shell", "interfaces", "netplan"]
_WHOLE = {
    "multipath": (edit_multipath, multipath_mentions),
    "shell": (edit_assignment, assignment_mentions),
    "interfaces": (edit_interfaces, interfaces_mention),
}
"""Forms of files that are edited as a whole, and what tells whether a file gives the key."""

# systemd ends a line at CR and at NUL too; no other byte ends one, whatever it may mean in some encoding.
_LINE = lazy_regex(r"[^\n\r\0]*(?:\r\n|[\n\r\0])|[^\n\r\0]+")
_SWAPPED = {ord("."): "/", ord("/"): "."}


class FileEdit(msgspec.Struct, frozen=True):
    """Set ``key`` to ``value`` in the file at ``path``.

    ``form``: ``sysctl`` (``key = value``), ``section`` (``key`` is "SECTION/" of a systemd file, ``value`` one or more
    settings ``KEY=VALUE`` with blanks between), ``llttab-flow`` (``set-flow key:value``), or one of
    `advisor.tunables.edits`; or of a network manager: ``shell`` (the variable ``key``), ``interfaces`` (``key``
    is a logical interface and, after a blank, the link where that is called otherwise; ``value`` its MTU), ``netplan``
    (``key`` is TYPE/ID, ``value`` its MTU). ``fresh`` is the content a file that is not
    there yet starts from; ``reload`` the steps that make the owner read it. ``also`` are edits that belong to it.
    """

    path: str
    form: Form
    key: str
    value: str
    fresh: bytes = b""
    mode: int = 0o644
    reload: tuple[RunCommand, ...] = ()
    also: tuple[FileEdit, ...] = ()

    @property
    def whole(self) -> tuple[FileEdit, ...]:
        """This edit and those that belong to it."""
        return (self, *self.also)


class Persisted(msgspec.Struct, frozen=True):
    """The steps themselves leave the value on disk, below ``path``; what is there belongs to the value that is read."""

    path: str


def apply_edit(old: bytes | None, edit: FileEdit) -> bytes:
    """The file's bytes after the edit: the last line of the key gets the value, earlier ones go, or one is added."""
    # latin-1 maps every byte to one character and back: what we do not touch stays byte for byte.
    content = edit.fresh if old is None else old
    text = content.decode("latin-1")
    if edit.form == "netplan":
        # One that cannot be edited (no YAML, blocked by aliases) is begun again: who plans the edit looks first.
        known = _to_utf8(content)
        written = None if known is None else edit_netplan(known, edit.key, edit.value)
        return (written or edit_netplan("", edit.key, edit.value) or "").encode()
    if edit.form in _WHOLE:
        return _WHOLE[edit.form][0](text, to_latin(edit.key), to_latin(edit.value)).encode("latin-1")
    for setting in _split_settings(edit):
        lines: list[str] = _LINE.findall(text)
        matching = _find_lines(lines, setting)
        if not matching:
            end = "\r\n" if lines and lines[0].endswith("\r\n") else "\n"
            at = len(lines)
            new = [setting.line + end]
            if setting.section is not None:
                headers = [n for n, line in enumerate(lines) if line.strip(" \t\r\n\0") == f"[{setting.section}]"]
                if headers:
                    filled = [n for n in _section_lines(lines, setting.section) if lines[n].strip(" \t\r\n\0")]
                    at = max([headers[-1], *filled]) + 1
                else:
                    new = [*([end] if lines else []), f"[{setting.section}]{end}", *new]
            if setting.before is not None:
                at = next((number for number, line in enumerate(lines) if re.match(setting.before, line)), at)
            before = "".join(lines[:at])
            text = before + ("" if not before or before[-1] in "\n\r\0" else end) + "".join(new) + "".join(lines[at:])
        else:
            last = max(matching)
            end = lines[last][matching[last].end() :]
            lines[last] = setting.line + end if setting.is_whole else matching[last][1] + setting.value + end
            text = "".join(line for number, line in enumerate(lines) if number == last or number not in matching)
    return text.encode("latin-1")


def mentions_key(content: bytes, edit: FileEdit) -> bool:
    """Whether the file sets this key (or one of them), whatever the value."""
    if edit.form == "netplan":
        text = _to_utf8(content)
        return text is not None and netplan_mentions(text, edit.key)
    if edit.form in _WHOLE:
        return _WHOLE[edit.form][1](content.decode("latin-1"), to_latin(edit.key))
    lines = _LINE.findall(content.decode("latin-1"))
    return any(_find_lines(lines, setting) for setting in _split_settings(edit))


def _split_settings(edit: FileEdit) -> Iterator[EditSetting]:
    key, value = to_latin(edit.key), to_latin(edit.value)
    match edit.form:
        case "sysctl":
            # sysctl.d(5): where a slash is the first separator, dots and slashes stand for each other.
            spelt = f"{re.escape(key)}|{re.escape(key.translate(_SWAPPED))}"
            head = rf"[ \t]*(?:-[ \t]*)?(?:{spelt})[ \t]*=[ \t]*"
            yield EditSetting(head, TO_THE_END, value, f"{key} = {value}")
        case "llttab-flow":
            # The spelling of the file stays, whichever of the two it is.
            spelt = "|".join([re.escape(key), *(other for other, name in FLOW_ALIASES.items() if name == key)])
            head = rf"[ \t]*set-flow[ \t]+(?:{spelt})[ \t]*:[ \t]*"
            yield EditSetting(head, WORD, value, f"set-flow {key}:{value}")
        case "section":
            for setting in value.split(" "):
                name, _, wanted = setting.partition("=")
                head = rf"[ \t]*{re.escape(name)}[ \t]*=[ \t]*"
                yield EditSetting(head, TO_THE_END, wanted, setting, key.partition("/")[0])
        case "multipath" | "shell" | "interfaces" | "netplan":
            raise AssertionError("a file with nested sections is edited whole")
        case _:
            yield line_setting(edit.form, key, value)


def to_latin(text: str) -> str:
    """The bytes of a text as characters, so that an edit keeps those that are not UTF-8."""
    return text.encode("utf-8", "surrogateescape").decode("latin-1")


def _to_utf8(content: bytes) -> str | None:
    try:
        return content.decode()
    except UnicodeDecodeError:
        return None


def _find_lines(lines: list[str], setting: EditSetting) -> dict[int, re.Match[str]]:
    """The lines, by number, that give the setting."""
    pattern = re.compile(f"({setting.head}){setting.body}")
    places = range(len(lines)) if setting.section is None else _section_lines(lines, setting.section)
    return {number: match for number in places if (match := pattern.match(lines[number]))}


def _section_lines(lines: Iterable[str], section: str) -> Iterator[int]:
    """Numbers of the lines in a section of a systemd file, which may begin more than once; its headers are left out."""
    is_inside = False
    for number, line in enumerate(lines):
        bare = line.strip(" \t\r\n\0")
        if bare.startswith("["):
            is_inside = bare == f"[{section}]"
        elif is_inside:
            yield number
