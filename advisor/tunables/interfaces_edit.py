"""The MTU of a logical interface in /etc/network/interfaces or a file that it includes (interfaces(5)).

``mtu`` is an option of the methods static, manual and tunnel of the family inet. In one of inet6 it raises the link's
MTU but never lowers it, and may set IPv6's alone; other methods have no such option, so that a command before the link
goes up has to do.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from advisor.facts.interfaces_text import JoinedLine, Stanza, parse_interfaces
from advisor.host.patterns import lazy_regex

_COMMANDS = frozenset({"pre-up", "up", "post-up"})
_NUMBER = lazy_regex(r"[0-9]+")
_COMMAND_MTU = lazy_regex(r"\bmtu[ \t]+([0-9]+)(?![^ \t;&|])")
_INDENT = lazy_regex(r"[ \t]*")
_PREFERRED = ("inet", "inet6")

Span = tuple[int, int]


def edit_interfaces(text: str, names: str, value: str) -> str:
    """Every place that gives the link its MTU gets the value, or one is added.

    ``names`` is the logical interface, and the link's own name after a blank where that is another. A text without a
    stanza of the logical interface gets one.
    """
    own = _own_stanzas(text, names)
    if not own:
        return f"{text}{_line_break(text)}iface {names.partition(' ')[0]} inet manual\n    mtu {value}\n"
    setting = _find_numbers(own, names)
    changes = [(span, value) for span in (*setting, *_related_options(text, own, setting, value))]
    changes += [(span, "") for stanza in own for span in _repeated_lines(stanza)]
    if not setting:
        changes.append(_make_addition(text, own, value))
    for (start, end), new in sorted(changes, reverse=True):
        text = text[:start] + new + text[end:]
    return text


def interfaces_mention(text: str, names: str) -> bool:
    """Whether the stanzas of the logical interface give an MTU."""
    own = _own_stanzas(text, names)
    return bool(_find_numbers(own, names)) or any(span for stanza in own for span in _mtu_options(stanza))


def _own_stanzas(text: str, names: str) -> list[Stanza]:
    return [stanza for stanza in parse_interfaces(text) if stanza.interface == names.partition(" ")[0]]


def _find_numbers(own: list[Stanza], names: str) -> list[Span]:
    """Numbers that are set as the link's MTU: of ``mtu`` where it is an option, and of commands that name the link."""
    spelt = "|".join(re.escape(name) for name in names.split(" "))
    link = re.compile(rf"\$(?:IFACE|\{{IFACE\}})(?![\w.:])|(?<![\w.:/-])(?:{spelt})(?![\w.:/-])")
    found = []
    for stanza in own:
        if stanza.takes_mtu:
            found += list(_mtu_options(stanza))[-1:]
        for option in stanza.options:
            if option.words[0] in _COMMANDS:
                commands = re.finditer(r"[^;&|]+", option.text)
                found += [span for one in commands if link.search(one[0]) for span in _command_numbers(option, one)]
    return found


def _command_numbers(option: JoinedLine, command: re.Match[str]) -> Iterator[Span]:
    start = option.start + command.start()
    for match in _COMMAND_MTU.finditer(command[0]):
        yield start + match.start(1), start + match.end(1)


def _mtu_options(stanza: Stanza) -> Iterator[Span]:
    """The value of each ``mtu`` option: its first word, for what follows may be a shell's comment."""
    for option in stanza.options:
        match = re.match(r"[ \t]*mtu[ \t]+(\S+)", option.text)
        if match:
            yield option.start + match.start(1), option.start + match.end(1)


def _repeated_lines(stanza: Stanza) -> Iterator[Span]:
    """All lines but the last that give ``mtu`` in one stanza: ifup would join their values."""
    given = [option for option in stanza.options if option.words[0] == "mtu"]
    yield from ((option.start, option.end) for option in given[:-1])


def _related_options(text: str, own: list[Stanza], setting: list[Span], value: str) -> Iterator[Span]:
    """``mtu`` of other stanzas that goes along. One of IPv6 may well be less than the link's, and then stays."""
    known = {text[start:end] for start, end in setting}
    for stanza in own:
        for start, end in [] if stanza.takes_mtu else list(_mtu_options(stanza))[-1:]:
            old = text[start:end]
            is_less = bool(_NUMBER.fullmatch(old)) and int(old) <= int(value)
            if stanza.family != "inet6" or not setting or old in known or not is_less:
                yield start, end


def _make_addition(text: str, own: list[Stanza], value: str) -> tuple[Span, str]:
    stanza = next((one for one in own if one.takes_mtu), None)
    line = f"mtu {value}"
    if stanza is None:
        stanza = min(own, key=lambda one: _PREFERRED.index(one.family) if one.family in _PREFERRED else 2)
        line = f'pre-up ip link set dev "$IFACE" mtu {value}'
    last = (stanza.head, *stanza.options)[-1]
    indent = _INDENT.match(stanza.options[-1].text) if stanza.options else None
    end = "\r\n" if text[: last.end].endswith("\r\n") else "\n"
    new = f"{indent[0] if indent else '    '}{line}{end}"
    return (last.end, last.end), _line_break(text[: last.end]) + new


def _line_break(before: str) -> str:
    """What ends the line before a new one: a backslash in its end would make the new one a part of it."""
    if before.endswith(("\\", "\\\n")):
        return "\n\n" if before.endswith("\\") else "\n"
    return "" if not before or before.endswith("\n") else "\n"
