"""One variable of a file that a shell reads (ifcfg files): ``KEY=VALUE``, the quotes of the file kept."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from advisor.facts.network.link_files import JoinedLine, Stanza, parse_interfaces
from advisor.facts.text import as_mapping, as_scalar, child, compose, descend
from advisor.host import Missing
from advisor.host.patterns import lazy_regex

if TYPE_CHECKING:
    from yaml import MappingNode, Node

_LINE = lazy_regex(r"[^\n]*\n|[^\n]+")
_PIECES = r"""(?:[^\s"'`\\;&|<>()]|\\[^\n]|'[^'\n]*'|"(?:[^"\\\n]|\\[^\n])*"|\([^()\n]*\)|`[^`\n]*`)*"""
_ASSIGNMENT = lazy_regex(r"""[ \t]*(?:export[ \t]+)?[A-Za-z_]\w*=(["']?)""", re.ASCII)


def edit_assignment(text: str, key: str, value: str) -> str:
    """The last assignment of ``key`` gets the value in the quotes that it had; earlier ones go, or one is added."""
    lines = _LINE.findall(text)
    found = _find_assignments(lines, key)
    if not found:
        end = "\r\n" if lines and lines[0].endswith("\r\n") else "\n"
        quotes = Counter(match[1] for line in lines if (match := _ASSIGNMENT.match(line)))
        quote = quotes.most_common(1)[0][0] if quotes else ""
        before = "".join(lines)
        return before + ("" if not before or before.endswith("\n") else end) + f"{key}={quote}{value}{quote}{end}"
    last = max(found)
    head, body, rest = found[last]
    quote = body[:1] if body[:1] in ("'", '"') else ""
    lines[last] = f"{head}{quote}{value}{quote}{rest}"
    return "".join(line for number, line in enumerate(lines) if number == last or number not in found)


def assignment_mentions(text: str, key: str) -> bool:
    return bool(_find_assignments(_LINE.findall(text), key))


def is_one_value_a_line(text: str) -> bool:
    """Whether no value goes over the end of its line, so that each line can be edited alone."""
    return all(_is_closed(line.rstrip("\r\n")) for line in _LINE.findall(text))


def _is_closed(line: str) -> bool:
    quote = ""
    before = " "
    characters = iter(line)
    for character in characters:
        if character == "\\" and quote != "'":
            if next(characters, None) is None:
                return False
        elif quote:
            quote = "" if character == quote else quote
        elif character in "\"'`":
            quote = character
        elif character == "#" and before in " \t;":
            break
        before = character
    return not quote


def _find_assignments(lines: list[str], key: str) -> dict[int, tuple[str, str, str]]:
    """The lines, by number, that assign the variable: what stands before the value, the value, what follows."""
    pattern = re.compile(rf"([ \t]*(?:export[ \t]+)?{re.escape(key)}=)({_PIECES})([^\n]*\n?)")
    return {
        number: (match[1], match[2], match[3])
        for number, line in enumerate(lines)
        if (match := pattern.fullmatch(line)) is not None
    }


# The MTU of a logical interface in /etc/network/interfaces or a file that it includes (interfaces(5)).

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


# The MTU of one definition in a netplan file: a few characters of its YAML change, the rest stays as it is written.

_STEP = "  "
# Read as text by every YAML reader; anything else is quoted.
_PLAIN_KEY = lazy_regex(r"[A-Za-z_][\w.-]*", re.ASCII)
_NO_TEXT = lazy_regex(r"y|n|yes|no|on|off|true|false|null", re.IGNORECASE)
_MAX_NODES = 100_000
_MAX_DEPTH = 100

Plain = tuple[str, object]


def edit_netplan(text: str, place: str, value: str) -> str | None:
    """The text with the MTU of ``place``, TYPE/ID, set to ``value``; None where that cannot be done in its layout.

    What is written is read again: nothing else in the document means anything else than before.
    """
    path = ("network", *place.partition("/")[::2], "mtu")
    root = compose(text)
    if isinstance(root, Missing):
        return None
    if root is None:
        return _end_line(text) + _block_text(path, value, "", _line_end(text))
    present = as_scalar(descend(root, path))
    if present is not None and present.value == value:
        return text
    written = _set_value(text, root, path, value)
    return written if written is not None and _is_only_change(text, written, path, value) else None


def netplan_mentions(text: str, place: str) -> bool:
    """Whether the file sets an MTU for TYPE/ID."""
    root = compose(text)
    path = ("network", *place.partition("/")[::2], "mtu")
    return not isinstance(root, Missing) and as_scalar(descend(root, path)) is not None


def _set_value(text: str, node: Node, path: Sequence[str], value: str) -> str | None:
    for depth, name in enumerate(path):
        mapping = as_mapping(node)
        if mapping is None:
            return None
        below = child(mapping, name)
        if below is None:
            return _insert_value(text, mapping, path[depth:], value)
        node = below
        if as_scalar(node) is not None:
            start, end = node.start_mark.index, node.end_mark.index
            rest = path[depth + 1 :]
            quote = text[start] if end > start and text[start] in "'\"" else ""
            new = _flow_text(rest, value) if rest else f"{quote}{value}{quote}"
            return text[:start] + (" " if text[start - 1 : start] == ":" else "") + new + text[end:]
    return None


def _insert_value(text: str, mapping: MappingNode, path: Sequence[str], value: str) -> str | None:
    if mapping.flow_style or not mapping.value:
        brace = text.find("{", mapping.start_mark.index) + 1
        if brace == 0:
            return None
        brace += len(text[brace:]) - len(text[brace:].lstrip())
        inner = _flow_text(path, value)[1:-1]
        return text[:brace] + inner + (", " if mapping.value else "") + text[brace:]
    indent = " " * mapping.value[0][0].start_mark.column
    position = _last_leaf(mapping).end_mark.index
    if position and text[position - 1] == "\n":
        at = position
    else:
        found = text.find("\n", position)
        at = len(text) if found < 0 else found + 1
    end = _line_end(text)
    return _end_line(text[:at], end) + _block_text(path, value, indent, end) + text[at:]


def _last_leaf(node: Node) -> Node:
    """The last node in a collection of blocks, whose end is known; that of a block is where the next one begins."""
    from yaml import CollectionNode

    while isinstance(node, CollectionNode) and node.value and not node.flow_style:
        last = node.value[-1]
        node = last[1] if isinstance(last, tuple) else last
    return node


def _block_text(path: Sequence[str], value: str, indent: str, end: str) -> str:
    lines = [f"{indent}{_STEP * depth}{_quote_key(name)}:" for depth, name in enumerate(path)]
    if path[0] == "network":
        lines.insert(1, f"{indent}{_STEP}version: 2")
    return end.join([*lines[:-1], f"{lines[-1]} {value}"]) + end


def _flow_text(path: Sequence[str], value: str) -> str:
    return "".join(f"{{{_quote_key(name)}: " for name in path) + value + "}" * len(path)


def _quote_key(name: str) -> str:
    return name if _PLAIN_KEY.fullmatch(name) and not _NO_TEXT.fullmatch(name) else "'" + name.replace("'", "''") + "'"


def _line_end(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"


def _end_line(text: str, end: str = "\n") -> str:
    return text if not text or text.endswith("\n") else text + end


def _is_only_change(old: str, new: str, path: tuple[str, ...], value: str) -> bool:
    before, after = compose(old), compose(new)
    if isinstance(before, Missing) or isinstance(after, Missing) or after is None:
        return False
    mtu = as_scalar(descend(after, path))
    try:
        same = _plain_tree(before, path, _Budget()) == _plain_tree(after, path, _Budget())
    except _TooMuchError:
        return False
    return same and mtu is not None and mtu.value == value


class _TooMuchError(Exception):
    """Aliases of aliases make a small file a huge document, or an endless one."""


class _Budget:
    nodes = _MAX_NODES


def _plain_tree(node: Node | None, path: Sequence[str] | None, budget: _Budget, depth: int = 0) -> Plain | None:
    """What a document means, but for the value at ``path`` and what would be there for its sake alone."""
    budget.nodes -= 1
    if budget.nodes < 0 or depth > _MAX_DEPTH:
        raise _TooMuchError
    if node is None or (path is not None and not path):
        return None
    mapping, scalar = as_mapping(node), as_scalar(node)
    if scalar is not None:
        # On the way to the value, nothing and an empty mapping are as good as not there.
        return None if path is not None and scalar.tag.endswith(":null") else (scalar.tag, scalar.value)
    if mapping is None:
        return node.tag, tuple(_plain_tree(one, None, budget, depth + 1) for one in node.value)
    entries = [
        (_plain_tree(key, None, budget, depth + 1), _plain_tree(value, _rest_of_path(key, path), budget, depth + 1))
        for key, value in mapping.value
    ]
    on_the_way = [(key, value) for key, value in entries if value is not None]
    if path is None:
        return mapping.tag, tuple(entries)
    return (mapping.tag, tuple(on_the_way)) if on_the_way else None


def _rest_of_path(key: Node, path: Sequence[str] | None) -> Sequence[str] | None:
    name = as_scalar(key)
    return path[1:] if path and name is not None and name.value == path[0] else None
