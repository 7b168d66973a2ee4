"""The forms that edits of configuration files take, beyond sysctl.d and the sections of systemd's files."""

from __future__ import annotations

import re
from typing import Literal

import msgspec

from advisor.host import Missing
from advisor.host.config_text import Layout, multipath_layout
from advisor.host.patterns import lazy_regex

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
