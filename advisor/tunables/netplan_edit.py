"""The MTU of one definition in a netplan file: a few characters of its YAML change, the rest stays as it is written."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from advisor.facts.yaml_tree import as_mapping, as_scalar, child, compose, descend
from advisor.host import Missing
from advisor.host.patterns import lazy_regex

if TYPE_CHECKING:
    from yaml import MappingNode, Node

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
