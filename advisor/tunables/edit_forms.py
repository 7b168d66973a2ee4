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
_FIELD = r"[^ \t\n\r\0]+"
_LLT_FIELD = r"[^ \t#\n\r\0][^ \t\n\r\0]*"
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
    match form:
        case "udev-rule":
            left, _, right = value.partition("=")
            own = rf"[ \t]*{re.escape(key)}[ \t]*,"
            return EditSetting(
                head=rf"{own}[ \t]*{re.escape(left)}[ \t]*=[ \t]*",
                body=_STRING,
                value=right,
                line=f"{key}, {value}",
                before=own if left in _ASSIGNED_FIRST else None,
            )
        case "udev-run":
            return EditSetting(rf"[ \t]*{re.escape(key)}[ \t]+", r'[^"\n\r\0]*"', f'{value}"', f'{key} {value}"')
        case "udev-class":
            keeping = f'ACTION!="remove", IMPORT{{db}}="{key}"'
            return EditSetting(
                rf"[^\n\r\0]*\b{re.escape(key)}\b", TO_THE_END, value, f"{keeping}\n{value}", is_whole=True
            )
        case "tmpfiles":
            head = rf"[ \t]*w[-+!=~^$]*[ \t]+{re.escape(key)}(?:[ \t]+{_FIELD}){{4}}[ \t]+"
            return EditSetting(head, TO_THE_END, value, f"w {key} - - - - {value}")
        case "llttab-timer":
            head = rf"[ \t]*set-timer[ \t]+{re.escape(key)}[ \t]*:[ \t]*"
            return EditSetting(head, WORD, value, f"set-timer {key}:{value}")
        case "llttab-directive":
            return EditSetting(rf"[ \t]*{re.escape(key)}[ \t]+", r"[^ \t#\n\r\0]+", value, f"{key} {value}")
        case "llttab-mtu":
            head = rf"[ \t]*link(?:-lowpri)?[ \t]+{re.escape(key)}(?:[ \t]+{_LLT_FIELD}){{4}}[ \t]+"
            return EditSetting(head, _LLT_FIELD, value, f"link {key} DEVICE NODES TYPE PORT {value}")
        case "conf":
            return EditSetting(rf"[ \t]*{re.escape(key)}[ \t]*=[ \t]*", TO_THE_END, value, f"{key} = {value}")
        case "cpf":
            head = rf"[ \t]*{re.escape(name)}[ \t]*=[ \t]*"
            return EditSetting(head, TO_THE_END, value, f"{name}={value}", section)
        case "word":
            return EditSetting(rf"[ \t]*{re.escape(key)}[ \t]*", r"(?=[\n\r\0]|$)", "", key)
        case "module-option":
            module, _, parameter = key.partition(" ")
            head = rf"[ \t]*options[ \t]+{re.escape(module)}[ \t]+{re.escape(parameter)}="
            return EditSetting(head, TO_THE_END, value, f"options {key}={value}")
        case "unit-list":
            head = rf"[ \t]*{re.escape(name)}[ \t]*=[ \t]*"
            return EditSetting(head, TO_THE_END, value, f"{name}=\n{name}={value}", section, is_whole=True)


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
